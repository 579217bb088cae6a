"""Commits data files to a Delta table by one entry of its log.

    files that tasks reported ─▶ add actions    ┐
    files that they replace   ─▶ remove actions ┴▶ 00000000000000000042.json, put if absent

deltalake puts the entry in place only if no other writer has. Its own retries, which would not look
at what that one has published, are off: the caller looks at the table again.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

from stagecoach.infra.errors import StorageError
from stagecoach.infra.formats.delta.log_files import list_log, live_vectors
from stagecoach.infra.formats.delta.opening import (
    open_table,
    problem_of,
    storage_options,
    table_url,
    translated,
)
from stagecoach.infra.formats.lake_tables.publications import Publication
from stagecoach.infra.formats.publishing import PublishError
from stagecoach.infra.storage.object_store import StorageOptions
from stagecoach.infra.storage.table_files import NoFilesError, is_remote

if TYPE_CHECKING:
    from deltalake import DeltaTable
    from deltalake.transaction import AddAction

_KEPT_IN_PATHS = "!$&'()+,-./:;=@_~"  # what deltalake does not escape


class CommitConflictError(Exception):
    """Another writer was first; nothing has changed."""


def find_table(location: str, options: StorageOptions) -> DeltaTable | None:
    """Return a table as it is now; None if there is none. See `open_table`."""
    try:
        return open_table(location, options)
    except NoFilesError:
        return None


def create_table(
    location: str,
    options: StorageOptions,
    schema: Mapping[str, Any],
    partition_by: Sequence[str],
) -> DeltaTable:
    """Create a table without rows, unless another writer is first.

    Args:
        location: Its folder.
        options: How to reach storage.
        schema: Its columns, as the log has them.
        partition_by: Its partition columns.

    Raises:
        StorageError: The storage failed.
    """
    from deltalake import DeltaTable, Schema
    from deltalake.exceptions import DeltaError
    from deltalake.transaction import CommitProperties

    try:
        DeltaTable.create(
            table_url(location),
            Schema.from_json(json.dumps(schema)),
            partition_by=list(partition_by),
            storage_options=storage_options(options) if is_remote(location) else None,
            # A retry would put the same columns above those of the writer that was first.
            commit_properties=CommitProperties(max_commit_retries=0),
        )
    except (DeltaError, OSError) as error:
        found = find_table(location, options)
        if found is None:
            raise StorageError(
                f"Delta table {location} cannot be created: {problem_of(error)}"
            ) from error
        return found
    return open_table(location, options)


def commit(
    table: DeltaTable,
    location: str,
    options: StorageOptions,
    added: Sequence[AddAction],
    removed: Sequence[str] | None,
    published: Publication,
) -> None:
    """Put one more entry into the log, on the version of `table`.

    Args:
        table: The table on whose version it is made.
        location: Its folder.
        options: How to reach storage.
        added: Files to add.
        removed: Paths of files to remove, as the log has them; None for all.
        published: What the commit says of itself.

    Raises:
        CommitConflictError: Another writer was first.
        PublishError: The table refuses the commit.
        StorageError: The storage failed; the outcome may be unknown.
    """
    from deltalake.exceptions import CommitFailedError, DeltaError
    from deltalake.transaction import CommitProperties, RemoveAction

    now = int(time.time() * 1000)
    gone = [RemoveAction(unquote(path), True, now) for path in removed or ()]
    properties = CommitProperties(
        custom_metadata=published.properties(),
        max_commit_retries=0,
    )
    base = table.version()
    try:
        table.create_write_transaction(
            [*added, *gone],
            "overwrite" if removed is None else "append",
            table.schema(),
            table.metadata().partition_columns,
            commit_properties=properties,
        )
    except CommitFailedError as error:
        if (found := find_table(location, options)) is not None and found.version() > base:
            raise CommitConflictError(problem_of(error)) from error
        raise PublishError(
            f"Delta table {location} refuses the commit: {problem_of(error)}"
        ) from error
    except (DeltaError, OSError) as error:
        raise StorageError(f"the commit to {location} failed: {problem_of(error)}") from error


def add_actions(location: str, reported: Iterable[Mapping[str, Any]]) -> list[AddAction]:
    """Return files that tasks reported as the log has them.

    Args:
        location: The table's folder.
        reported: What `DeltaPlan.write_reported` returned.
    """
    from deltalake.transaction import AddAction

    now = int(time.time() * 1000)
    return [
        AddAction(
            path=str(values["path"]).removeprefix(f"{location}/"),
            size=values["num_bytes"],
            partition_values=values["partition"],
            modification_time=now,
            data_change=True,
            stats=values["stats"],
        )
        for values in reported
    ]


def check_removable(
    name: str,
    table: DeltaTable,
    location: str,
    options: StorageOptions,
    paths: Sequence[str],
    *,
    is_all: bool,
) -> None:
    """Look whether deltalake can remove files.

    Args:
        name: Name of the table, for messages.
        table: The table.
        location: Its folder.
        options: How to reach storage.
        paths: The files, as the log has them.
        is_all: Whether they are all that are live; then deletion vectors do not matter.

    Raises:
        PublishError: It cannot.
    """
    for path in paths:
        # It escapes what it removes in its own way, and what is spelled otherwise would stay.
        if quote(unquote(path), safe=_KEPT_IN_PATHS) != path:
            raise PublishError(
                f"table '{name}': the log spells the path of {path} in a way in which deltalake "
                "cannot remove it; rewrite the file with the tool that wrote it (OPTIMIZE)"
            )
    if is_all or not paths or "deletionVectors" not in (table.protocol().reader_features or ()):
        return
    with translated(location):
        vectors = live_vectors(list_log(location, options), table.version(), options)
    found = next((path for path in paths if vectors.get(path) is not None), None)
    if found is not None:
        raise PublishError(
            f"table '{name}': {found} has a deletion vector, and deltalake cannot remove such a "
            "file from a partition; purge the table first (REORG TABLE … APPLY (PURGE)), or use "
            "mode replace"
        )
