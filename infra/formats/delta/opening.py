"""Opens Delta tables with deltalake, which is imported when the first one is needed.

deltalake replays the log: it knows the schema, the live data files and their statistics. What a
reader must support (`readerFeatures`) is checked here, by name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from stagecoach.infra.errors import StorageError
from stagecoach.infra.host.extras import require_extra
from stagecoach.infra.storage import secrets
from stagecoach.infra.storage.object_store import StorageOptions
from stagecoach.infra.storage.table_files import NoFilesError, is_remote
from stagecoach.planner.errors import CatalogError

if TYPE_CHECKING:
    from deltalake import DeltaTable

SUPPORTED_FEATURES = frozenset(
    {
        "columnMapping",
        "deletionVectors",
        "timestampNtz",
        "typeWidening",
        "typeWidening-preview",
        "v2Checkpoint",
        "vacuumProtocolCheck",
    }
)
_NEWEST_PROTOCOL = 3
_REFUSED_IN_PATHS = "[]\\^|%"  # deltalake escapes them wrongly
_BACKTRACE = re.compile(r"(?m)^\s*(stack backtrace|0: )")
_UNKNOWN_FEATURE = re.compile(r"Feature '([^']*)' is not supported|Unknown feature '?([^' ]*)")
_NO_ANSWER = re.compile(
    r"error sending request|timed out|Client error|Server error|50[0-9] |denied"
)


def open_table(location: str, options: StorageOptions, version: int | None = None) -> DeltaTable:
    """Return a table as it is now, or at a version.

    Args:
        location: Its folder, a canonical path or an S3 URL.
        options: How to reach storage.
        version: The version; the newest by default.

    Raises:
        CatalogError: There is no such table, or it needs what this Stagecoach does not read.
        NoFilesError: There is no log.
        ConfigError: deltalake is not installed.
        StorageError: The storage does not answer.
    """
    require_extra("delta", "deltalake", "a table with 'format: delta'")
    url = table_url(location)
    given = storage_options(options) if is_remote(location) else None
    with translated(location):
        from deltalake import DeltaTable

        table = DeltaTable(url, version=version, storage_options=given)
    _check_protocol(location, table)
    return table


def table_url(location: str) -> str:
    """Return the URL of a table as deltalake takes it.

    Raises:
        CatalogError: deltalake cannot reach such a place.
    """
    if location.startswith("s3://"):
        bucket, _, key = location.removeprefix("s3://").partition("/")
        return f"s3://{bucket}/{quote(key)}"
    if is_remote(location):
        scheme = location.partition("://")[0]
        raise CatalogError(
            f"{location}: Delta tables are read from local folders and from s3://, not from "
            f"{scheme}://; copy the table, or mount the storage"
        )
    bad = next((sign for sign in _REFUSED_IN_PATHS if sign in location), None)
    if bad is not None:
        raise CatalogError(
            f"{location}: deltalake opens no table with {bad!r} in its path; rename the folder"
        )
    return Path(location).as_uri()


def storage_options(options: StorageOptions) -> dict[str, str]:
    """Return how S3 is reached, as deltalake takes it.

    Raises:
        StorageError: The profile does not exist.
    """
    from stagecoach.infra.storage.aws import s3_address, s3_credentials

    address, who = s3_address(options), s3_credentials(options)
    given: dict[str, str | None] = {
        "aws_endpoint": address.endpoint,
        "aws_region": who.region or "us-east-1",
        "aws_access_key_id": who.access_key,
        "aws_secret_access_key": who.secret_key,
        "aws_session_token": who.session_token,
        "aws_virtual_hosted_style_request": None
        if address.path_style is None
        else str(not address.path_style).lower(),
        "aws_allow_http": "true" if (address.endpoint or "").startswith("http://") else None,
        "timeout": f"{options.timeout_seconds}s",
        "connect_timeout": f"{options.timeout_seconds}s",
        "retry_timeout": f"{max(1, int(options.retry_seconds))}s",
        "max_retries": None if options.retry_seconds else "0",
    }
    return {name: value for name, value in given.items() if value}


@contextmanager
def translated(location: str) -> Iterator[None]:
    """Turn deltalake's errors into ours.

    Args:
        location: The table, for messages.
    """
    from deltalake.exceptions import DeltaError, TableNotFoundError

    try:
        yield
    except TableNotFoundError as error:
        raise NoFilesError(
            f"{location} has no Delta log (_delta_log); write the table or correct the location"
        ) from error
    except (DeltaError, ValueError, OSError) as error:
        problem = problem_of(error)
        if "catalog-managed" in problem:
            raise _unsupported(location, ["catalogManaged"]) from error
        unknown = _UNKNOWN_FEATURE.search(problem)
        if unknown is not None:
            raise _unsupported(location, [unknown[1] or unknown[2]]) from error
        if _NO_ANSWER.search(problem):
            raise StorageError(f"cannot read the Delta log of {location}: {problem}") from error
        raise CatalogError(f"Delta table {location} cannot be opened: {problem}") from error


def problem_of(error: Exception) -> str:
    """Return what an error of deltalake says, in one line and without secrets."""
    return secrets.redact(" ".join(_BACKTRACE.split(str(error), maxsplit=1)[0].split()))


def _check_protocol(location: str, table: DeltaTable) -> None:
    found = table.protocol()
    if found.min_reader_version > _NEWEST_PROTOCOL:
        raise CatalogError(
            f"{location} is of reader version {found.min_reader_version} of the Delta protocol; "
            f"versions up to {_NEWEST_PROTOCOL} are read"
        )
    missing = set(found.reader_features or ()) - SUPPORTED_FEATURES
    if missing:
        raise _unsupported(location, sorted(missing))


def _unsupported(location: str, features: list[str]) -> CatalogError:
    names = ", ".join(f"'{name}'" for name in features)
    return CatalogError(
        f"{location} needs the Delta reader feature {names}, which is not supported (supported: "
        f"{', '.join(sorted(SUPPORTED_FEATURES))}); drop the feature from the table, or read a "
        "copy of it without"
    )
