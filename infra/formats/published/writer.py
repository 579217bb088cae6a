"""Writes published tables: writes Parquet files, then stages, publishes or discards them.

Files come in two ways. `stage` writes rows in this process. Tasks elsewhere write files by the
writer's `plan`, and `add_files` takes what they report. Neither is visible before `publish` commits
a version that names the files.
"""

from __future__ import annotations

import hashlib
import logging
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from stagecoach.infra.formats.parquet_footers import FooterCache
from stagecoach.infra.formats.published import paths
from stagecoach.infra.formats.published.changes import TableChange, apply_change, is_published
from stagecoach.infra.formats.published.file_plan import FilePlan, table_file
from stagecoach.infra.formats.published.log import read_current, table_log
from stagecoach.infra.formats.published.staging import (
    change_id,
    check_base,
    files_id,
    find_same,
    find_staged,
    shown_staged,
    stage_change,
    staged_change,
)
from stagecoach.infra.formats.published.state import version_state
from stagecoach.infra.formats.published.target import checked_columns, table_columns
from stagecoach.infra.formats.published.version import StagedChange, TableFile, TableVersion
from stagecoach.infra.formats.publishing import (
    PublishedPart,
    PublishError,
    PublishTarget,
    StagedGoneError,
    column_difference,
)
from stagecoach.infra.formats.row_keys import target_row_keys
from stagecoach.infra.formats.snapshot import TableSnapshot
from stagecoach.infra.formats.staged_version import StagedVersion
from stagecoach.infra.formats.stored_version import StoredVersion
from stagecoach.infra.formats.version_log import new_token, utc_now
from stagecoach.infra.storage.object_store import ObjectStore
from stagecoach.infra.storage.table_files import canonical_uri
from stagecoach.planner.types import Field, from_arrow

log = logging.getLogger(__name__)


class PublishedWriter:
    """One commit of a published table; implements `MergeWriter`.

    Args:
        store: The storage root.
        target: The table, and what becomes of the rows that are there.
        columns: The result's columns.
        fingerprint: Identity of the rows: they are published once only.
        token: Identity of the commit, if it may have been published before; a new one by default.
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
        token: str | None = None,
        run_id: str = "",
    ) -> None:
        fitting = checked_columns(columns, target)
        self._store = store
        self._log = table_log(store, target.table)
        self._may_be_there = token is not None
        self._stages = 0
        self._staged: str | None = None
        self._version: TableVersion | None = None
        self._base: TableVersion | None = None  # of a merge
        self._base_number, self._base_files = 0, files_id(None)
        self._footers = FooterCache()
        self._unused: set[str] = set()  # paths of files that a merge wrote and does not need
        self.reused = self.adopted = False
        self.plan = FilePlan(
            table=target.table,
            token=new_token(),  # another writer of the same commit has files of its own
            columns=fitting,
            partition_by=target.partition_by,
            partition_key=target.partition_keys[0] if target.partition_keys else None,
            row_keys=target_row_keys(fitting, target),
            target_bytes=target.target_file_bytes,
        )
        self.change = TableChange(
            table=target.table,
            mode=target.mode,
            token=self.plan.token if token is None else token,
            committed_at=utc_now(),
            fingerprint=fingerprint,
            rows=dict.fromkeys(target.partition_keys or (None,), 0),
            columns=table_columns(fitting, target.partition_by),
            partition_by=target.partition_by,
            keep_versions=target.keep_versions,
            run_id=run_id,
            comments=target.comments,
        )

    @property
    def fingerprint(self) -> str:
        """Identity of the rows."""
        return self.change.fingerprint

    @property
    def version(self) -> TableVersion:
        """The version that holds the rows, once they are published."""
        if self._version is None:
            raise PublishError(f"the rows for table '{self.change.table}' are not published yet")
        return self._version

    def find_published(self) -> TableVersion | None:
        """Return the newest version if the table is already what the commit would make of it.

        Raises:
            PublishError: The table does not take such rows; nothing need be written.
            StorageError: The store failed.
        """
        current = read_current(self._store, self.change.table)
        if is_published(current, self.change):
            return current
        apply_change(current, self.change)
        return None

    def stage(self, rows: Any) -> int:
        """Write rows and return how many there were.

        Args:
            rows: Anything with Arrow's C stream, such as a table or a reader of record batches.

        Raises:
            PublishError: They have other columns, or a row belongs to no partition.
            StorageError: The store failed.
        """
        reader = pa.RecordBatchReader.from_stream(rows)
        if problem := column_difference(self.plan.columns, _fields(reader.schema)):
            raise PublishError(f"table '{self.change.table}' does not take these rows: {problem}")
        files = self.plan.write(
            self._store, reader, task_index=self._stages, writes_empty=not self.change.files
        )
        self._stages += 1
        self.add_files(files)
        return sum(file.num_rows for file in files)

    def add_files(self, files: Sequence[TableFile]) -> None:
        """Take files that were written by `plan`."""
        rows: Counter[str | None] = Counter(dict(self.change.rows))
        for file in files:
            rows[file.partition_key] += file.num_rows
        marked = tuple(replace(file, fingerprint=self.change.fingerprint) for file in files)
        self.change = replace(self.change, files=self.change.files + marked, rows=dict(rows))

    def add(self, written: Iterable[Mapping[str, Any]]) -> None:
        """Take files that tasks wrote by `plan`, as they described them."""
        self.add_files([table_file(values) for values in written])

    @property
    def rewrite_plan(self) -> FilePlan:
        """How the rows are written that stay of files which are replaced; their parts are known."""
        return replace(self.plan, partition_key=None, row_keys=None)

    def merge_base(self) -> TableSnapshot | None:
        """Return the files of the newest version, on which a merge is committed.

        Raises:
            PublishError: The table does not take the rows; what was written is discarded, unless it
                is staged.
            StorageError: The store failed.
        """
        base = self._base = read_current(self._store, self.change.table)
        self._base_number = 0 if base is None else base.number
        self._base_files = files_id(base)
        try:
            apply_change(base, self.change)
        except PublishError:
            if self._staged is None:
                self.discard()
            raise
        if base is None or not base.has_data:
            return None
        return version_state(self._store, base, base.table, self._footers).snapshot

    def rewritten(self, files: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
        """Say by which files a merge replaces files of its base.

        They belong to the partition keys of the files that they replace.
        """
        self._unused |= {f.path for some in self.change.rewritten.values() for f in some}
        root = canonical_uri(self._store, paths.table_prefix(self.change.table))
        found: dict[str, tuple[TableFile, ...]] = {}
        for old in () if self._base is None else self._base.files:
            written = files.get(f"{root}/{old.path}")
            if written is not None:
                found[old.path] = tuple(
                    replace(
                        table_file(values),
                        partition_key=old.partition_key,
                        fingerprint=self.change.fingerprint,
                    )
                    for values in written
                )
        self._unused -= {f.path for some in found.values() for f in some}
        self.change = replace(self.change, rewritten=found)

    def part_of(self, version: StoredVersion) -> PublishedPart:
        """Return what a version of the table holds of these rows."""
        if not isinstance(version, TableVersion):
            raise TypeError(f"not a version of a published table: {version!r}")
        change = self.change
        files = tuple(
            file
            for file in version.files
            if file.fingerprint == change.fingerprint and file.partition_key in change.rows
        )
        rows = {
            part.partition_key: part.num_rows
            for part in version.parts
            if part.fingerprint == change.fingerprint and part.partition_key in change.rows
        }
        return PublishedPart(files=files, partition_rows=rows)

    def find_staged(self) -> StagedVersion | None:
        """Return what is staged of this result for this purpose; then `publish` publishes that."""
        current = read_current(self._store, self.change.table)
        found = find_same(current, self.change, current)
        if found is None:
            return None
        self.adopted = True
        return self._wait(found)

    def stage_commit(self) -> StagedVersion | None:
        """Write down the files in the newest version, where no reader sees them.

        Returns:
            What is staged; None if another writer has published the same rows meanwhile.

        Raises:
            StorageError: The store failed; may be called again.
        """
        if not self.change.files:
            raise self._nothing_written()
        change, read = self.change, self._base

        def step(base: TableVersion | None) -> TableVersion | None:
            done = is_published(base, change) or find_same(base, change, read) is not None
            return None if done else stage_change(base, change, read)

        committed, self.adopted = self._log.commit(change.token, step)
        if self.adopted:
            self.discard()
        found = find_staged(committed, change_id(change))
        return None if found is None else self._wait(found)

    def publish(self) -> int:
        """Commit the files and return the number of the version that holds the rows.

        Raises:
            StagedGoneError: They were staged and are no more.
            PublishError: There are none, or the table does not take them. Then they are discarded,
                unless they are staged.
            TableChangedError: A merge has another base; it may look at the table again.
            StorageError: The store failed; may be called again.
        """
        if self._version is not None:
            return self._version.number
        if not self.change.files and self._staged is None:
            raise self._nothing_written()
        holder: TableVersion | None = None

        def step(base: TableVersion | None) -> TableVersion | None:
            nonlocal holder
            holder = self._committed() or (base if is_published(base, self.change) else None)
            if holder is not None:
                return None
            if self._staged is not None:
                self._take(find_staged(base, self._staged))
            if self.change.mode == "merge":
                check_base(base, self._base_number, self._base_files)
            return apply_change(base, self.change)

        try:
            committed, self.reused = self._log.commit(self.change.token, step)
        except PublishError:
            if self._staged is None:
                self.discard()
            raise
        finally:
            self._may_be_there = True
        version = self._version = committed if holder is None else holder
        live = {file.path for file in version.files}
        if self.change.mode == "merge" or self._staged is not None:
            self.reused = version.token != self.change.token
        else:
            self.reused = not {file.path for file in self.change.files} <= live
        if self.reused:
            log.info("table %s: another writer has published the same rows", version.table)
            if self._staged is None:
                self.discard()
        elif self.change.mode == "merge":
            self._remove(self._written - live)
        return version.number

    def _wait(self, staged: StagedChange) -> StagedVersion:
        """Take over what is staged; a commit of its own will publish it."""
        self._staged = staged.id
        self._base_number, self._base_files = staged.base, staged.base_files
        token = new_token()
        self.change = staged_change(self.change.table, staged, token=token, committed_at=utc_now())
        return shown_staged(self.change.table, staged)

    def _take(self, staged: StagedChange | None) -> None:
        """What is staged now; somebody may have discarded and staged it again."""
        if staged is None:
            raise StagedGoneError(
                f"what was staged for table '{self.change.table}' ({self._staged}) is not staged "
                "any more: it was discarded, or a later result has replaced it; run the query again"
            )
        self.change = replace(self.change, files=staged.files, rows=dict(staged.rows))

    def _nothing_written(self) -> PublishError:
        return PublishError(f"nothing is staged for table '{self.change.table}'; stage rows first")

    def discard(self) -> None:
        """Remove the files; gc would find them too."""
        change = self.change
        self._remove(self._written)
        rows = dict.fromkeys(change.rows, 0)
        self.change = replace(change, files=(), rewritten={}, rows=rows)

    @property
    def _written(self) -> set[str]:
        """Paths of all files of this commit."""
        change = self.change
        new = (change.files, *change.rewritten.values())
        return {file.path for some in new for file in some} | self._unused

    def _remove(self, files: Collection[str]) -> None:
        self._store.delete([paths.table_file(self.change.table, path) for path in sorted(files)])

    def _committed(self) -> TableVersion | None:
        """The version that has the token of this commit, if it is kept."""
        if not self._may_be_there:
            return None
        return next((v for v in self._log.kept() if v.token == self.change.token), None)


class PublishedAppend:
    """Rows appended to a table by themselves, not as the result of a query.

    The first rows decide the columns of a table that has no data.

    Args:
        store: The storage root.
        table: Name of the table.
        token: Identity of the commit.
    """

    def __init__(self, store: ObjectStore, table: str, token: str) -> None:
        self._store = store
        self._table = table
        self._token = token
        self._writer: PublishedWriter | None = None

    def stage(self, rows: Any) -> int:
        """Write rows and return how many there were; see `PublishedWriter.stage`."""
        reader = pa.RecordBatchReader.from_stream(rows)
        if self._writer is None:
            self._writer = self._begin(_fields(reader.schema))
        return self._writer.stage(reader)

    def publish(self) -> int:
        """Commit the rows and return the number of the version that holds them."""
        if self._writer is None:
            raise PublishError(f"table '{self._table}': stage rows before publishing them")
        return self._writer.publish()

    def discard(self) -> None:
        """Remove what was staged."""
        if self._writer is not None:
            self._writer.discard()

    def _begin(self, columns: Sequence[Field]) -> PublishedWriter:
        target = PublishTarget(table=self._table, mode="append")
        current = read_current(self._store, self._table)
        if current is not None and current.has_data:
            kept = current.keep_versions
            target = replace(target, partition_by=current.partition_by, keep_versions=kept)
        writer = PublishedWriter(
            self._store,
            target,
            columns,
            fingerprint=hashlib.sha256(self._token.encode()).hexdigest(),
            token=self._token,
        )
        writer.find_published()  # refuses what does not fit before anything is written
        return writer


def _fields(schema: pa.Schema) -> tuple[Field, ...]:
    return tuple(Field(column.name, from_arrow(column.type)) for column in schema)
