"""The versions of a published table: in, a store and a table; out, its newest version, or one more.

    commit:  read the newest version ─▶ apply the change ─▶ put_if_absent of the next number
                     ▲                                            │ somebody else was first
                     └────────────────────────────────────────────┘

The highest number is the newest version. `current.json` is a hint: readers start there and look
whether there is a next number. A hint that is missing, old or damaged costs a listing, nothing
else. Numbers have no gaps (gc removes from the oldest on), so a next number that is not there
means that the hint's version is the newest.

Where the store honours put-if-absent (local folders, Amazon S3, Google, Azure, MinIO, R2) no commit
is ever lost. Where it does not, each commit is read back, twice: a writer that overwrote another
within these moments makes the other one try again. Only two commits of the same table within
milliseconds can then lose one of them; readers see a whole version all the same.
"""

from __future__ import annotations

import json
import logging
import random
import secrets
import time
from dataclasses import dataclass

from infra.errors import StorageError
from infra.storage import layout
from infra.storage.object_store import ObjectMissingError, ObjectStore
from infra.tables.changes import TableChange, apply_change, is_published
from infra.tables.version import TableVersion, TableVersionError

log = logging.getLogger(__name__)

MAX_COMMIT_TRIES = 1000
_HINT_VERSION = 1
_WAIT_SECONDS = 0.05
_LIST_TRIES = 10


@dataclass(frozen=True)
class Committed:
    """How a commit ended.

    Args:
        version: The version that holds the change.
        reused: Whether it was there already, so that nothing was written.
    """

    version: TableVersion
    reused: bool = False


def read_current(store: ObjectStore, table: str) -> TableVersion | None:
    """Return the newest version of a table, or None where nothing was ever published.

    Raises:
        TableVersionError: The newest version is damaged.
        StorageError: The store failed.
    """
    hinted = _read_hint(store, table)
    if hinted is not None and (found := _newest_from(store, table, hinted)) is not None:
        return found
    for _ in range(_LIST_TRIES):
        numbers = version_numbers(store, table)
        if not numbers:
            return None
        # Between the listing and the reading others may have committed, and gc been here.
        if (found := _newest_from(store, table, numbers[-1])) is not None:
            return found
    raise StorageError(
        f"table '{table}': its versions are listed but cannot be read; try again, and look at "
        f"{store.uri(layout.table_versions(table))}"
    )


def read_version(store: ObjectStore, table: str, number: int) -> TableVersion:
    """Return one version of a table.

    Raises:
        StorageError: There is no such version (any more), or the store failed.
        TableVersionError: It is damaged.
    """
    found = _read(store, table, number)
    if found is None:
        kept = version_numbers(store, table)
        raise ObjectMissingError(
            f"table '{table}' has no version {number}; "
            + (f"there are {kept[0]} to {kept[-1]}" if kept else "nothing was ever published")
        )
    return found


def version_numbers(store: ObjectStore, table: str) -> list[int]:
    """Return the numbers of the versions that are kept, ascending. Lists the store."""
    keys = store.list(layout.table_versions(table))
    numbers = (layout.parse_table_version(key) for key in keys)
    return sorted(number for number in numbers if number is not None)


def commit(store: ObjectStore, change: TableChange) -> Committed:
    """Make a change visible, whole and after all that was committed before it.

    Raises:
        PublishError: The change does not fit the table.
        TableVersionError: The newest version is damaged.
        StorageError: The store failed, or others were first `MAX_COMMIT_TRIES` times.
    """
    for attempt in range(MAX_COMMIT_TRIES):
        base = read_current(store, change.table)
        if base is not None and base.token == change.token:
            return Committed(base)  # our write of a moment ago, whose answer was lost
        if base is not None and is_published(base, change):
            return Committed(base, reused=True)
        version = apply_change(base, change)
        if _write(store, version):
            return Committed(version)
        log.debug("table %s: version %d is another's; again", change.table, version.number)
        time.sleep(random.uniform(0, _WAIT_SECONDS) * min(attempt + 1, 10))
    raise StorageError(
        f"table '{change.table}': {MAX_COMMIT_TRIES} other commits were first; publish again"
    )


def clear_table(store: ObjectStore, table: str, *, run_id: str = "") -> TableVersion:
    """Commit a version without rows and columns, so that a table can begin anew.

    Older versions stay until gc removes them. Readers are told that the table has no data yet.

    Raises:
        StorageError: The store failed.
    """
    change = TableChange(
        table=table,
        mode="clear",
        token=new_token(),
        committed_at=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        rows={},
        run_id=run_id,
    )
    return commit(store, change).version


def new_token() -> str:
    """Return the identity of a commit: no two are the same, and they sort by time."""
    return f"{time.strftime('%Y%m%dT%H%M%S', time.gmtime())}-{secrets.token_hex(6)}"


def repair_hint(store: ObjectStore, version: TableVersion) -> None:
    """Let `current.json` name a version unless it names a later one; a failure is only logged."""
    try:
        hinted = _read_hint(store, version.table)
        if hinted is None or hinted < version.number:
            _write_hint(store, version)
    except StorageError as error:
        # The version is committed: readers find it without the hint, only slower.
        log.warning("table %s: its hint cannot be written: %s", version.table, error)


def _write(store: ObjectStore, version: TableVersion) -> bool:
    """Write a version and return whether it is ours that is there."""
    store.put_if_absent(layout.table_version(version.table, version.number), version.to_json())
    if not _is_ours(store, version):
        return False
    repair_hint(store, version)
    # A local folder never overwrites; of others we cannot know.
    return store.is_local or _is_ours(store, version)


def _is_ours(store: ObjectStore, version: TableVersion) -> bool:
    found = _read(store, version.table, version.number)
    return found is not None and found.token == version.token


def _newest_from(store: ObjectStore, table: str, number: int) -> TableVersion | None:
    """The newest version, given that there was one of `number`; None if that one is gone."""
    while store.exists(layout.table_version(table, number + 1)):
        number += 1
    return _read(store, table, number)


def _read(store: ObjectStore, table: str, number: int) -> TableVersion | None:
    key = layout.table_version(table, number)
    try:
        text = store.read_bytes(key)
    except ObjectMissingError:
        return None
    version = TableVersion.from_json(text, uri=store.uri(key))
    if (version.table.lower(), version.number) != (table.lower(), number):
        raise TableVersionError(
            f"{store.uri(key)} is version {version.number} of table '{version.table}'; restore it"
        )
    return version


def _read_hint(store: ObjectStore, table: str) -> int | None:
    try:
        values = json.loads(store.read_bytes(layout.table_current(table)))
        number = values["version"]
        return number if isinstance(number, int) and number >= 1 else None
    except ObjectMissingError:
        return None
    except (ValueError, KeyError, TypeError) as error:
        log.warning("table %s: its hint is damaged (%s); versions are listed", table, error)
        return None


def _write_hint(store: ObjectStore, version: TableVersion) -> None:
    name = layout.table_version(version.table, version.number).rsplit("/", 1)[-1]
    values = {
        "format_version": _HINT_VERSION,
        "table": version.table,
        "version": version.number,
        "path": f"{layout.TABLE_VERSIONS}/{name}",
    }
    store.write_bytes(layout.table_current(version.table), json.dumps(values).encode())
