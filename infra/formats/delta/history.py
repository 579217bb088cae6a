"""The versions of a Delta table in time.

A version is as old as the file of its commit, unless the table keeps times in its commits
(`inCommitTimestamp`). Times of files may go backwards, those of versions do not, as in Delta's own
reader.
"""

from __future__ import annotations

import bisect
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

from stagecoach.infra.formats.delta.log_files import LogFile, commits, read_actions
from stagecoach.infra.storage.object_store import StorageOptions
from stagecoach.planner.cached_property import cached_property

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class History:
    """When the versions of a table were committed.

    Args:
        files: The files of its log.
        configuration: The table's properties.
        options: How to reach storage.
    """

    def __init__(
        self, files: Sequence[LogFile], configuration: Mapping[str, str], options: StorageOptions
    ) -> None:
        self._commits = commits(files)
        self._options = options
        kept = configuration.get("delta.enableInCommitTimestamps") == "true"
        start = configuration.get("delta.inCommitTimestampEnablementVersion") or "0"
        self._kept_from = int(start) if kept else None
        self._file_times: dict[int, int] = {}
        last: int | None = None
        for version, file in self._commits.items():
            last = file.modified_ms if last is None else max(file.modified_ms, last + 1)
            self._file_times[version] = last

    @cached_property
    def versions(self) -> tuple[int, ...]:
        """The versions whose commits are in the log, ascending."""
        return tuple(self._commits)

    def time_ms(self, version: int) -> int:
        """Return when a version was committed, in milliseconds since 1970."""
        if self._kept_from is not None and version >= self._kept_from:
            for action in read_actions(self._commits[version], self._options):
                found = action.get("commitInfo", {}).get("inCommitTimestamp")
                if found is not None:
                    return int(found)
        return self._file_times[version]

    def as_of(self, moment: datetime) -> int | None:
        """Return the version that was the newest at a moment; None before the first one."""
        wanted = (moment - _EPOCH) // timedelta(milliseconds=1)
        found = bisect.bisect_right(self.versions, wanted, key=self.time_ms)
        return self.versions[found - 1] if found else None
