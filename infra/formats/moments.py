"""The moments of `TIMESTAMP AS OF`."""

from __future__ import annotations

import datetime

from stagecoach.planner.errors import CatalogError
from stagecoach.planner.versioned_names import TableVersion


def moment_of(version: TableVersion) -> datetime.datetime:
    """Return the moment of `TIMESTAMP AS OF`.

    Raises:
        CatalogError: It is not a time, or has no time zone.
    """
    try:
        found = datetime.datetime.fromisoformat(version.value.strip())
    except ValueError:
        raise CatalogError(
            f"{version} is not a valid time; write it as '2024-01-31 12:00:00Z'"
        ) from None
    if found.tzinfo is None:
        raise CatalogError(
            f"{version} has no time zone; add its offset, as in '2024-01-31 12:00:00+01:00', or Z"
        )
    return found
