"""Versions of a Delta table as commands and Dagster show them."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stagecoach.infra.formats.delta.commits import DeltaCommit, newest_first
from stagecoach.infra.formats.delta.history import History
from stagecoach.infra.formats.delta.log_files import LogFile, list_log, oldest_version
from stagecoach.infra.formats.delta.opening import open_table
from stagecoach.infra.formats.delta.state import live_files, table_schema
from stagecoach.infra.formats.lake_tables.publications import CLEAR, LakeVersion
from stagecoach.infra.storage.object_store import StorageOptions
from stagecoach.planner.cached_property import cached_property

if TYPE_CHECKING:
    from deltalake import DeltaTable

Sizes = Mapping[str, tuple[int | None, int]]
"""Rows and bytes of live files by their paths; rows where the log tells them."""


@dataclass(frozen=True)
class DeltaVersions:
    """The versions of a table that is open.

    Args:
        name: Name of the table.
        table: It, as it is now.
        location: Its folder.
        options: How to reach storage.
    """

    name: str
    table: DeltaTable
    location: str
    options: StorageOptions

    def newest(self) -> LakeVersion:
        """Return the newest version."""
        number = self.table.version()
        commit = next(iter(self.commits()), None)
        if commit is not None and commit.version != number:
            commit = None  # the log no longer has it, which a checkpoint has
        return self._shown(number, commit, live_sizes(self.table))

    def at(self, commit: DeltaCommit) -> LakeVersion:
        """Return the version that a commit has made."""
        table = self.table
        if commit.version != table.version():
            table = open_table(self.location, self.options, commit.version)
        return self._shown(commit.version, commit, live_sizes(table))

    def oldest_first(self) -> Iterator[LakeVersion]:
        """Yield the versions that the log still tells whole."""
        oldest = oldest_version(self._files)
        sizes: dict[str, tuple[int | None, int]] = {}
        for commit in reversed(list(self.commits())):
            if commit.version < oldest:
                continue
            if commit.version == oldest:
                sizes = dict(live_sizes(open_table(self.location, self.options, oldest)))
            else:
                for path in commit.removed:
                    sizes.pop(path, None)
                sizes.update(commit.added)
            yield self._shown(commit.version, commit, sizes)

    def commits(self) -> Iterator[DeltaCommit]:
        """Yield the commits that the log still has, newest first."""
        return newest_first(self._files, self.table.version(), self.options)

    def _shown(self, number: int, commit: DeltaCommit | None, sizes: Sizes) -> LakeVersion:
        ours = None if commit is None else commit.ours
        operation = "" if commit is None else str(commit.info.get("operation", ""))
        return LakeVersion(
            table=self.name,
            number=number,
            committed_at="" if commit is None else self._moment(number),
            mode=operation if ours is None else ours.mode,
            run_id="" if ours is None else ours.run_id,
            columns=table_schema(self.table).fields,
            has_data=ours is None or ours.mode != CLEAR,
            num_rows=sum(rows or 0 for rows, _ in sizes.values()),
            num_bytes=sum(size for _, size in sizes.values()),
            num_files=len(sizes),
            partition_keys=() if ours is None else ours.partition_keys,
        )

    def _moment(self, number: int) -> str:
        moment = datetime.datetime.fromtimestamp(self._times.time_ms(number) / 1000, datetime.UTC)
        return moment.isoformat(timespec="milliseconds")

    @cached_property
    def _files(self) -> tuple[LogFile, ...]:
        return list_log(self.location, self.options)

    @cached_property
    def _times(self) -> History:
        return History(self._files, self.table.metadata().configuration, self.options)


def live_sizes(table: DeltaTable) -> Sizes:
    """Return rows and bytes of the live files of a table."""
    adds = live_files(table)
    names = ("path", "num_records", "size_bytes")
    paths, rows, sizes = (adds[name].to_pylist() for name in names)
    return {path: (n, size) for path, n, size in zip(paths, rows, sizes, strict=True)}
