"""The versions of a published table: which is the newest, and how one more is committed.

How a commit is made, and what a race or a crash can do, is told in `version_log`.
"""

from __future__ import annotations

from dataclasses import dataclass

from stagecoach.infra.formats.published import paths
from stagecoach.infra.formats.published.changes import TableChange, apply_change, is_published
from stagecoach.infra.formats.published.staging import (
    check_base,
    discard_change,
    find_staged,
    staged_change,
)
from stagecoach.infra.formats.published.version import TableVersion
from stagecoach.infra.formats.publishing import PublishError
from stagecoach.infra.formats.version_log import MAX_COMMIT_TRIES as MAX_COMMIT_TRIES
from stagecoach.infra.formats.version_log import VersionLog, new_token, utc_now
from stagecoach.infra.storage.object_store import ObjectStore


@dataclass(frozen=True)
class Committed:
    """How a commit ended.

    Args:
        version: The version that holds the change.
        reused: Whether it was there already, so that nothing was written.
    """

    version: TableVersion
    reused: bool = False


def table_log(store: ObjectStore, table: str) -> VersionLog[TableVersion]:
    """Return the log of a published table."""
    return VersionLog(
        store,
        table,
        paths.table_prefix(table),
        lambda text, uri: TableVersion.from_json(text, uri=uri),
    )


def read_current(store: ObjectStore, table: str) -> TableVersion | None:
    """Return the newest version of a table, or None where nothing was ever published.

    Raises:
        TableVersionError: The newest version is damaged.
        StorageError: The store failed.
    """
    return table_log(store, table).current()


def read_version(store: ObjectStore, table: str, number: int) -> TableVersion:
    """Return one version of a table.

    Raises:
        StorageError: There is no such version (any more), or the store failed.
        TableVersionError: It is damaged.
    """
    return table_log(store, table).version(number)


def version_numbers(store: ObjectStore, table: str) -> list[int]:
    """Return the numbers of the versions that are kept, ascending. Lists the store."""
    return table_log(store, table).numbers()


def commit(store: ObjectStore, change: TableChange) -> Committed:
    """Make a change visible, whole and after all that was committed before it.

    Raises:
        PublishError: The change does not fit the table.
        TableVersionError: The newest version is damaged.
        StorageError: The store failed, or others were first `MAX_COMMIT_TRIES` times.
    """

    def step(base: TableVersion | None) -> TableVersion | None:
        return None if is_published(base, change) else apply_change(base, change)

    return Committed(*table_log(store, change.table).commit(change.token, step))


def publish_staged(store: ObjectStore, table: str, staged_id: str) -> TableVersion:
    """Make visible what is staged.

    Raises:
        PublishError: It is not staged any more, or does not fit the table; then it stays staged.
        TableChangedError: It is a merge of another version.
        TableVersionError: The newest version is damaged.
        StorageError: The store failed, or others were first `MAX_COMMIT_TRIES` times.
    """
    token, moment = new_token(), utc_now()

    def step(base: TableVersion | None) -> TableVersion | None:
        staged = find_staged(base, staged_id)
        if staged is None:
            raise PublishError(
                f"table '{table}': '{staged_id}' is not staged (any more); `stagecoach tables "
                f"{table} --staged` lists what is"
            )
        if staged.mode == "merge":
            check_base(base, staged.base, staged.base_files)
        return apply_change(base, staged_change(table, staged, token=token, committed_at=moment))

    return table_log(store, table).commit(token, step)[0]


def discard_staged(store: ObjectStore, table: str, staged_id: str) -> None:
    """Forget what is staged; gc removes its files.

    Raises:
        TableVersionError: The newest version is damaged.
        StorageError: The store failed, or others were first `MAX_COMMIT_TRIES` times.
    """
    token = new_token()

    def step(base: TableVersion | None) -> TableVersion | None:
        if base is None or find_staged(base, staged_id) is None:
            return None
        return discard_change(base, staged_id, token)

    if read_current(store, table) is not None:
        table_log(store, table).commit(token, step)


def clear_table(store: ObjectStore, table: str) -> TableVersion:
    """Commit a version without rows and columns, so that a table can begin anew.

    Older versions stay until gc removes them. Readers are told that the table has no data yet.

    Raises:
        StorageError: The store failed.
    """
    change = TableChange(
        table=table,
        mode="clear",
        token=new_token(),
        committed_at=utc_now(),
        rows={},
    )
    return commit(store, change).version


def repair_hint(store: ObjectStore, version: TableVersion) -> None:
    """Let `current.json` name a version unless it names a later one; a failure is only logged."""
    table_log(store, version.table).repair_hint(version)
