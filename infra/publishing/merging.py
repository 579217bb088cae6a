"""Merges a result into a table: rows with keys of the result are replaced, or removed.

    keys of the result ─▶ ranges ─▶ files of the table that may hold one ─▶ tasks rewrite them
                                              ▲                                     │
                                              └──── another writer was first ───── commit

Copy-on-write: a file that holds a key is replaced by files with its other rows, all other files
stay as they are. If the table changes before the commit, only its new files are looked at: what is
known of a file stays true, since files never change.
"""

from __future__ import annotations

import json
import logging
import random
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from stagecoach.infra.errors import InputLostError, StorageError
from stagecoach.infra.formats.merge_keys import key_positions
from stagecoach.infra.formats.partitions import canonical_value
from stagecoach.infra.formats.publishing import (
    MergeWriter,
    PublishTarget,
    TableChangedError,
    stored_columns,
)
from stagecoach.infra.formats.registry import table_format
from stagecoach.infra.formats.requests import ScanRequest
from stagecoach.infra.formats.snapshot import Snapshot, TableSnapshot
from stagecoach.infra.formats.units import ScanSlice
from stagecoach.infra.pruning.key_ranges import KeyRanges, folder_bounds, united
from stagecoach.infra.publishing.jobs import PublishJobs
from stagecoach.infra.publishing.merge_tasks import BaseFile, KeyColumn, KeyTask, RewriteTask
from stagecoach.infra.publishing.tasks import StageOutput
from stagecoach.infra.reading.data_file import DataFile
from stagecoach.infra.reading.file_bounds import StoredBounds
from stagecoach.infra.storage.forwarding import marked
from stagecoach.planner.plan.expressions import Column
from stagecoach.planner.plan.physical import ScanExec
from stagecoach.planner.types import Field

log = logging.getLogger(__name__)

MAX_MERGE_TRIES = 20
"""How often a merge looks at a table that others change all the time."""
TASK_BYTES = 64 << 20
"""Stored bytes of the files that one task looks at."""
KEY_TASK_BYTES = 256 << 20
"""Stored bytes of a result whose keys one task looks at."""
MAX_RANGES = 1024
"""Ranges of keys of one task."""

_WAIT_SECONDS = 0.05
_TIME_ZONE = "UTC"  # values are compared and written as they are stored

_Identity = tuple[str, str, str]
_Written = Sequence[Mapping[str, Any]]


@dataclass
class Merge:
    """One merge on its way.

    Args:
        jobs: Runs its tasks.
        writer: Its commit.
        target: The table.
        columns: The result's columns.
        first_task: Number of its first task, by which files are named.
    """

    jobs: PublishJobs
    writer: MergeWriter
    target: PublishTarget
    columns: Sequence[Field]
    first_task: int = 0
    _ranges: tuple[KeyRanges, ...] = ()
    _known: dict[_Identity, _Written | None] = field(default_factory=dict)
    """What took the place of files that were looked at; None for a file that stays."""

    def check_keys(self) -> None:
        """Look at the keys of the result, before anything is written.

        Raises:
            PublishError: A key occurs twice.
            ShuffleReadError: The stage's output is lost.
        """
        manifest, settings = self.jobs.manifest, self.jobs.settings
        count = -(-manifest.num_bytes // KEY_TASK_BYTES)
        if count > 1:
            from stagecoach.infra.spark.session import task_slots

            count = min(count, task_slots(settings))
        count = max(count, 1)
        tasks = [
            KeyTask(
                **self._shared(Snapshot({})),
                task_index=index,
                share=(index, count),
                range_keys=max(-(-manifest.num_rows // (count * MAX_RANGES)), 1),
            )
            for index in range(count)
        ]
        reports = self.jobs.run(tasks, manifest.num_bytes)
        found = [[KeyRanges.from_dict(values) for values in report.found] for report in reports]
        self._ranges = tuple(united(parts) for parts in zip(*found, strict=True))

    def publish(self) -> int:
        """Rewrite files and commit, and return the number of the version that holds the rows.

        The files of the result's rows have been added to the writer, or are staged.

        Raises:
            PublishError: The table does not take the rows.
            InputLostError: A file of the table is gone.
            StorageError: The store failed, or others were first `MAX_MERGE_TRIES` times.
        """
        if not self._ranges:
            self.check_keys()
        for _ in self._tries():
            if not self._prepare():
                continue
            try:
                return self.writer.publish()
            except TableChangedError as error:
                log.info("table %s: %s; its new files are looked at", self.target.table, error)
        raise self._too_many()

    def rewrite(self) -> None:
        """Rewrite files of the present version of the table, so that the commit can be staged.

        Raises:
            As `publish`.
        """
        if not any(self._prepare() for _ in self._tries()):
            raise self._too_many()

    def _tries(self) -> Iterator[None]:
        for attempt in range(MAX_MERGE_TRIES):
            if attempt:
                time.sleep(random.uniform(0, _WAIT_SECONDS) * min(attempt, 20))
            yield

    def _too_many(self) -> StorageError:
        return StorageError(
            f"table '{self.target.table}': other writers were first {MAX_MERGE_TRIES} times; run "
            "it again when they are done"
        )

    def _prepare(self) -> bool:
        """Tell the writer what takes the place of files of the table; False if it has changed."""
        base = self.writer.merge_base()
        files = () if base is None else base.files
        try:
            if base is not None:
                self._look_at(base)
        except InputLostError as error:
            newer = self.writer.merge_base()
            if newer is not None and any(file.uri == error.uri for file in newer.files):
                raise
            log.info("table %s: another writer has replaced a file: %s", self.target.table, error)
            return False
        known = {file.uri: self._known.get(_identity(file)) for file in files}
        replaced = {uri: written for uri, written in known.items() if written is not None}
        self.writer.rewritten(replaced)
        log.info("table %s: %d of %d files replaced", self.target.table, len(replaced), len(files))
        return True

    def _look_at(self, base: TableSnapshot) -> None:
        """Rewrite the files of a version that are not known yet and hold a key."""
        waiting = [
            file
            for file in base.files
            if file.num_rows and _identity(file) not in self._known and self._may_hold(base, file)
        ]
        if not waiting:
            return
        tasks = self._rewrite_tasks(base, waiting)
        self.first_task += len(tasks)
        num_bytes = sum(file.num_bytes for file in waiting)
        identities = {file.uri: _identity(file) for file in waiting}
        for report in self.jobs.run(tasks, num_bytes + self.jobs.manifest.num_bytes):
            for found in report.found:
                self._known[identities[found["uri"]]] = found["written"]

    def _rewrite_tasks(self, base: TableSnapshot, files: Sequence[DataFile]) -> list[RewriteTask]:
        names = [c.name for c in stored_columns(self.columns, self.target.delete_column)]
        by_name = {column.name.lower(): column for column in base.columns}
        columns = [by_name[name.lower()] for name in names]
        places = key_positions(columns, self.target.key)
        whole = table_format(base.format).plan_scan(_request(base, columns), base)
        narrow = table_format(base.format).plan_scan(_request(base, columns, places), base)
        units = {unit.uri: unit for unit in whole.units}
        groups: list[list[DataFile]] = []
        size = TASK_BYTES
        for file in files:
            if size >= TASK_BYTES:
                groups.append([])
                size = 0
            groups[-1].append(file)
            size += file.num_bytes
        shared = self._shared(Snapshot({base.table: base}))
        return [
            RewriteTask(
                **shared,
                task_index=self.first_task + index,
                files=tuple(
                    BaseFile(
                        uri=file.uri,
                        keys=narrow.bind(ScanSlice((units[file.uri],))),
                        rows=whole.bind(ScanSlice((units[file.uri],))),
                    )
                    for file in group
                ),
                places=places,
                plan=self.writer.rewrite_plan,
            )
            for index, group in enumerate(groups)
        ]

    def _may_hold(self, base: TableSnapshot, file: DataFile) -> bool:
        places = key_positions(base.columns, self.target.key)
        return all(
            ranges.may_meet(_bounds(base, file, place), file.num_rows)
            for ranges, place in zip(self._ranges, places, strict=True)
        )

    def _shared(self, snapshot: Snapshot) -> dict[str, Any]:
        """What all tasks have in common.

        Args:
            snapshot: The tables that they read.
        """
        from stagecoach.infra.runtime.planning.plan_tasks import task_settings

        jobs, manifest = self.jobs, self.jobs.manifest
        positions = key_positions(self.columns, self.target.key)
        return {
            "store": marked(jobs.store.to_dict(), jobs.settings.credentials),
            "output": StageOutput.of(manifest),
            "settings": task_settings(jobs.settings, jobs.store, snapshot, _TIME_ZONE),
            "key": tuple(
                KeyColumn(
                    name=self.columns[position].name,
                    position=position,
                    dtype=self.columns[position].dtype,
                )
                for position in positions
            ),
            "key_bytes": manifest.num_bytes * len(positions) // max(len(self.columns), 1),
        }


def _identity(file: DataFile) -> _Identity:
    """What decides the rows of a file."""
    deletes = "" if file.deletes is None else json.dumps(file.deletes.to_dict(), sort_keys=True)
    return file.uri, file.version, deletes


def _request(
    table: TableSnapshot, columns: Sequence[Field], places: Sequence[int] = ()
) -> ScanRequest:
    """A scan of these columns, or of those at some places, which are named `c<place>`."""
    chosen = places or range(len(columns))
    outputs = tuple(Column(place, columns[place].name, columns[place].dtype) for place in chosen)
    sources = tuple(columns[place].name for place in chosen)
    leaf = ScanExec(table.table, outputs, sources)
    return ScanRequest(leaf, leaf, time_zone=_TIME_ZONE)


def _bounds(table: TableSnapshot, file: DataFile, place: int) -> StoredBounds:
    """What is known of a column of a file."""
    in_file = len(table.columns) - len(file.partition)
    if place < in_file:
        return file.bounds[place] if place < len(file.bounds) else (None, None, None)
    column = table.columns[place]
    text = canonical_value(file.partition[place - in_file], column.dtype, _TIME_ZONE)
    return folder_bounds(text, column.dtype, file.num_rows)
