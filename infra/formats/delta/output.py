"""What a query says of the Delta table that its result goes to: the folder."""

from __future__ import annotations

import os

from stagecoach.infra.formats.mapped_files.paths import canonical_path
from stagecoach.infra.formats.publishing import OutputError
from stagecoach.infra.storage.object_store import redact_url
from stagecoach.infra.storage.table_files import is_remote
from stagecoach.planner.errors import CatalogError


def output_location(location: object, folder: str) -> str:
    """Return the folder of a table: an absolute path or an S3 URL.

    Args:
        location: What the query says.
        folder: Where relative paths start; empty for the working folder.

    Raises:
        OutputError: There is no location, or Delta tables cannot be written there.
    """
    from stagecoach.infra.formats.delta.opening import table_url

    if not isinstance(location, str) or not location:
        raise OutputError(
            "location",
            "give output.location: the folder of the Delta table, such as lake/daily or "
            "s3://bucket/daily",
        )
    if redact_url(location) != location:
        raise OutputError(
            "location",
            "output.location has credentials in it, which everybody would see; put them into the "
            "storage options or the environment",
        )
    found = canonical_path(location)
    if not is_remote(found):
        found = os.path.abspath(os.path.join(folder, os.path.expanduser(found)))
    found = found.rstrip("/")
    try:
        table_url(found)
    except CatalogError as error:
        raise OutputError("location", str(error)) from None
    return found
