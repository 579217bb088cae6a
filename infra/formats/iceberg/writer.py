"""Publishes a result in an Iceberg table: data files in place, then one snapshot.

    find_published ─▶ the table, created if need be ─▶ plan ─▶ tasks write ─▶ publish
                                                        │                       │
                                          pending/<token>.json                removed

A run that dies on the way leaves files that no snapshot names, and the record of them, by which
garbage collection finds them.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from stagecoach.infra.errors import StorageError
from stagecoach.infra.formats.iceberg import leftovers
from stagecoach.infra.formats.iceberg.catalogs import (
    check_writable,
    create_table,
    find_table,
    translated,
)
from stagecoach.infra.formats.iceberg.commit import (
    commit,
    data_files,
    files_of_partitions,
    live_files,
)
from stagecoach.infra.formats.iceberg.publications import (
    IcebergVersion,
    Publication,
    find_publication,
    publication_of,
    version_of,
)
from stagecoach.infra.formats.iceberg.result_columns import (
    check_iceberg_columns,
    check_schema,
    iceberg_columns,
    new_schema,
    new_spec,
    spec_columns,
)
from stagecoach.infra.formats.iceberg.schema import table_columns
from stagecoach.infra.formats.iceberg.stored_table import (
    FOLDER,
    data_location,
    source_of,
    storage_options,
)
from stagecoach.infra.formats.iceberg.write_plan import IcebergPlan
from stagecoach.infra.formats.publishing import PublishedPart, PublishError, PublishTarget
from stagecoach.infra.formats.row_keys import target_row_keys
from stagecoach.infra.formats.stored_version import StoredVersion
from stagecoach.infra.formats.table_places import write_place
from stagecoach.infra.formats.version_log import new_token
from stagecoach.infra.storage.object_store import ObjectStore
from stagecoach.planner.types import Field

if TYPE_CHECKING:
    from pyiceberg.manifest import DataFile
    from pyiceberg.table import Table
    from pyiceberg.table.snapshots import Snapshot

MAX_COMMIT_TRIES = 20
_FIRST_WAIT_SECONDS = 0.05
_LONGEST_WAIT_SECONDS = 5.0

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class AddedFile:
    """A data file; a `WrittenFile`."""

    path: str
    num_rows: int
    num_bytes: int


class IcebergWriter:
    """One commit of an Iceberg table; a `ResultWriter`.

    Args:
        store: The storage root.
        target: The table, and what becomes of the rows that are there.
        columns: The result's columns.
        fingerprint: Identity of the rows: they are published once only.
        run_id: The run.

    Raises:
        PublishError: The columns do not fit the target.
    """

    def __init__(
        self,
        store: ObjectStore,
        target: PublishTarget,
        columns: Sequence[Field],
        *,
        fingerprint: str,
        run_id: str = "",
    ) -> None:
        self._store = store
        self._target = target
        self._columns = tuple(columns)
        self._check_columns()
        self._source = source_of(target.place)
        self._options = storage_options(store)
        self._kept: dict[str, Any] = {}
        self._row_keys = target_row_keys(self._columns, target)
        self._reported: list[Mapping[str, Any]] = []
        self._holder: tuple[Table, Snapshot] | None = None
        self._table: Table | None = None
        self.reused = False
        self._published = Publication(
            fingerprint=fingerprint,
            mode=target.mode,
            token=new_token(),
            run_id=run_id,
            rows=dict.fromkeys(target.partition_keys or (None,), 0),
        )

    @cached_property
    def plan(self) -> IcebergPlan:
        """How its files are written; creates the table if there is none."""
        table = self._opened(create=True)
        schema, target = table.schema(), self._target
        location = f"{data_location(table).rstrip('/')}/{self._published.token}"
        plan = IcebergPlan(
            table=target.table,
            location=location,
            token=self._published.token,
            columns=self._columns,
            trees=table_columns(schema),
            required=tuple(i for i, field in enumerate(schema.fields) if field.required),
            partition_by=self._partition_by(table),
            partition_key=target.partition_keys[0] if target.partition_keys else None,
            row_keys=self._row_keys,
            target_bytes=target.target_file_bytes,
        )
        leftovers.begin(self._store, target.table, plan.token, location)
        return plan

    @property
    def version(self) -> StoredVersion:
        """The snapshot that holds the rows, once they are published."""
        if self._holder is None:
            name = self._target.table
            raise PublishError(f"the rows for table '{name}' are not published yet")
        table, snapshot = self._holder
        return self._version(table, snapshot)

    def find_published(self) -> IcebergVersion | None:
        """Return the snapshot that has made the table what the commit would make of it.

        Raises:
            PublishError: The table does not take such rows; nothing need be written.
            StorageError: The catalog or its storage does not answer.
        """
        table = self._opened(create=False)
        if table is None:
            return None
        self._check_fits(table)
        found = self._find(table)
        if found is None:
            if self._target.mode == "replace_partition":
                self._removed(table)  # a file that cannot be removed as a whole is told now
            return None
        self._holder = table, found
        return self._version(table, found)

    def add(self, written: Iterable[Mapping[str, Any]]) -> None:
        """Take files that tasks wrote by `plan`, as they described them."""
        self._reported += written
        rows = dict.fromkeys(self._published.rows, 0)
        for values in self._reported:
            rows[values["partition_key"]] += values["num_rows"]
        self._published = replace(self._published, rows=rows)

    def publish(self) -> int:
        """Commit the files by one snapshot and return its id.

        Raises:
            PublishError: The table does not take them; then they are discarded.
            StorageError: The catalog or its storage failed; may be called again.
        """
        plan = self.plan
        if self._holder is None:
            try:
                self._publish()
            except PublishError:
                self.discard()
                raise
        _, snapshot = self._held()
        ours = publication_of(snapshot)
        if ours is None or ours.token != plan.token:
            log.info("table %s: another writer has published the same rows", plan.table)
            self.reused = True
            self.discard()
        else:
            self._end()
        return int(snapshot.snapshot_id)

    def discard(self) -> None:
        """Remove the files; gc would find them too."""
        self._reported = []
        self._end()

    def _end(self) -> None:
        """Remove files of attempts that failed; the commit is over."""
        plan = self.plan
        kept = {str(values["path"]).rsplit("/", 1)[1] for values in self._reported}
        leftovers.remove_others(plan.data_store(self._store), kept)
        leftovers.end(self._store, plan.table, plan.token)

    def part_of(self, version: StoredVersion) -> PublishedPart:
        """Return what a snapshot holds of these rows."""
        table, snapshot = self._held()
        if version.number != snapshot.snapshot_id:
            raise TypeError(f"not the snapshot that was published: {version!r}")
        ours = publication_of(snapshot)
        rows = {} if ours is None else ours.rows
        keys = self._target.partition_keys or (None,)
        with translated(self._source.place):
            files = _added(table, snapshot)
        return PublishedPart(files=files, partition_rows={k: rows[k] for k in keys if k in rows})

    def _publish(self) -> None:
        wait = _FIRST_WAIT_SECONDS
        for _ in range(MAX_COMMIT_TRIES):
            table = self._opened(create=True)
            # First of all: the files of a commit that was made after all must not be discarded.
            if (found := self._find(table)) is not None:
                self._holder = table, found
                return
            self._check_fits(table)
            if self._try(table):
                snapshot = self._find(table)
                if snapshot is None:
                    raise StorageError(f"the snapshot of table '{self._target.table}' is gone")
                self._holder = table, snapshot
                return
            time.sleep(wait * random.uniform(0.5, 1.0))
            wait = min(2 * wait, _LONGEST_WAIT_SECONDS)
        raise StorageError(
            f"table '{self._target.table}': other writers were first {MAX_COMMIT_TRIES} times; "
            "run it again when they are done"
        )

    def _try(self, table: Table) -> bool:
        """Commit on the current snapshot; whether nobody was first."""
        from pyiceberg.exceptions import CommitFailedException

        types = {field.name: field.dtype for field in iceberg_columns(self._columns)}
        names = self._partition_by(table)
        if names != self.plan.partition_by or table_columns(table.schema()) != self.plan.trees:
            raise PublishError(
                f"table '{self._target.table}' has got other columns or partitions since its files "
                "were written; run it again"
            )
        with translated(self._source.place):
            added: list[DataFile] = data_files(
                table, self._reported, [types[name] if name else None for name in names]
            )
            try:
                comments = dict(self._target.comments)
                commit(table, added, self._removed(table), self._published, comments)
            except CommitFailedException as error:
                log.info("table %s: another writer was first: %s", self._target.table, error)
                return False
        return True

    def _removed(self, table: Table) -> list[DataFile] | None:
        """The files that the commit removes; None for one that only adds."""
        target = self._target
        with translated(self._source.place):
            if target.mode == "replace":
                return list(live_files(table))
            if target.mode == "replace_partition" and self._row_keys is not None:
                column = iceberg_columns(self._columns)[self._row_keys.column]
                return files_of_partitions(table, target.table, column, self._row_keys)
        return None

    def _find(self, table: Table) -> Snapshot | None:
        ours, mode = self._published, self._target.mode
        return find_publication(table, mode, ours.fingerprint, tuple(ours.rows), ours.token)

    def _opened(self, *, create: bool) -> Any:
        """The table as it is now; None if there is none and it is not to be created."""
        table = find_table(self._source, self._options, self._kept)
        if table is None and create:
            target = self._target
            # Before the table, so that one that has rows is always known by its name.
            write_place(self._store, FOLDER, target.table, target.place)
            schema = new_schema(self._columns, dict(target.comments))
            spec = new_spec(schema, target.partition_by)
            table = create_table(self._source, self._options, self._kept, schema, spec)
        elif table is not None:
            write_place(self._store, FOLDER, self._target.table, self._target.place)
        return table

    def _partition_by(self, table: Table) -> tuple[str, ...]:
        target = self._target
        return spec_columns(target.table, table.schema(), table.spec(), target.partition_by)

    def _check_fits(self, table: Table) -> None:
        """Look whether the table takes the rows.

        Raises:
            PublishError: It does not.
        """
        check_writable(self._target.table, table)
        check_schema(self._target.table, table.schema(), self._columns)
        self._partition_by(table)

    def _check_columns(self) -> None:
        target = self._target
        try:
            if not self._columns:
                raise PublishError("the result has no columns; select at least one")
            check_iceberg_columns(self._columns, target.partition_by)
        except PublishError as error:
            raise PublishError(f"table '{target.table}': {error}") from None
        if target.mode == "replace_partition" and target.partition_column is None:
            raise PublishError(
                f"table '{target.table}': mode replace_partition needs the column of the result "
                "that tells a row's partition (partitions.column); name it"
            )

    def _version(self, table: Table, snapshot: Snapshot) -> IcebergVersion:
        return version_of(self._target.table, snapshot, iceberg_columns(self._columns))

    def _held(self) -> tuple[Table, Snapshot]:
        if self._holder is None:
            raise PublishError(f"the rows for table '{self._target.table}' are not published yet")
        return self._holder


def _added(table: Table, snapshot: Snapshot) -> tuple[AddedFile, ...]:
    """The data files that came with a snapshot."""
    from pyiceberg.manifest import ManifestEntryStatus

    found = [
        entry.data_file
        for manifest in snapshot.manifests(table.io)
        if manifest.added_snapshot_id == snapshot.snapshot_id
        for entry in manifest.fetch_manifest_entry(table.io)
        if entry.status == ManifestEntryStatus.ADDED and entry.data_file.content == 0
    ]
    files = (AddedFile(f.file_path, f.record_count, f.file_size_in_bytes) for f in found)
    return tuple(sorted(files, key=lambda file: file.path))
