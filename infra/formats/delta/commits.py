"""The commits of a Delta table as its log has them, each read once in a process."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from stagecoach.infra.formats.delta.log_files import LogFile, commits, read_actions
from stagecoach.infra.formats.lake_tables.publications import PastCommit, Publication
from stagecoach.infra.host.recent_cache import RecentCache
from stagecoach.infra.storage.object_store import StorageOptions

_THREADS = 8
_BATCH = 16


@dataclass(frozen=True, kw_only=True)
class DeltaCommit:
    """One commit.

    Attributes:
        version: The version that it made.
        info: What it says of itself (`commitInfo`).
        added: Files that it added: paths as the log has them, rows or None, and bytes.
        removed: Paths of the files that it removed.
        changes_rows: Whether an action says that it changes data.
    """

    version: int
    info: Mapping[str, Any]
    added: Mapping[str, tuple[int | None, int]]
    removed: frozenset[str]
    changes_rows: bool

    @property
    def ours(self) -> Publication | None:
        """What it has published; None for one of another writer."""
        return Publication.of(self.info)

    @property
    def restored(self) -> int | None:
        """The version that it went back to."""
        if self.info.get("operation") != "RESTORE":
            return None
        text = str((self.info.get("operationParameters") or {}).get("version", ""))
        return int(text) if text.isdigit() else None

    def is_of(self, token: str, folder: str) -> bool:
        """Whether it is the commit with a token, or names a file of its folder in the table."""
        if self.ours is not None and self.ours.token == token:
            return True
        return any(path.startswith(folder) for path in (*self.added, *self.removed))


_COMMITS: RecentCache[DeltaCommit] = RecentCache(max_entries=10_000, max_cost=200_000)


def read_commit(version: int, file: LogFile, options: StorageOptions) -> DeltaCommit:
    """Return a commit.

    Raises:
        CatalogError: It is damaged, or gone.
        StorageError: The storage refused.
    """
    return _COMMITS.get(
        (file.uri, file.modified_ms),
        lambda: _read(version, file, options),
        lambda made: 1 + len(made.added) + len(made.removed),
    )


def newest_first(
    files: Sequence[LogFile], version: int, options: StorageOptions
) -> Iterator[DeltaCommit]:
    """Yield the commits of a log from a version down, as far as they are kept.

    Args:
        files: The files of the log.
        version: The version.
        options: How to reach storage.
    """
    known = {number: file for number, file in commits(files).items() if number <= version}
    wanted = sorted(known, reverse=True)
    size = 1  # the newest often suffices
    with ThreadPoolExecutor(_THREADS) as pool:
        while wanted:
            batch, wanted = wanted[:size], wanted[size:]
            yield from pool.map(lambda n: read_commit(n, known[n], options), batch)
            size = _BATCH


def past_commits(
    found: Iterator[DeltaCommit], live: frozenset[str]
) -> Iterator[PastCommit[DeltaCommit]]:
    """Yield commits with what each has published and left, newest first.

    A version that was restored follows the commit that went back to it: those between are undone.

    Args:
        found: The commits, newest first.
        live: Paths of the live files of the newest.
    """
    skipped_above: int | None = None
    for commit in found:
        if skipped_above is not None and commit.version > skipped_above:
            continue
        restored = commit.restored
        if restored is not None:
            skipped_above = restored
            continue  # the files are those of the version that follows
        yield PastCommit(
            commit=commit,
            ours=commit.ours,
            keeps_rows=not commit.changes_rows,
            leaves_nothing=not live,
        )
        # Files that are only described anew, with statistics, were live before, too.
        is_new = commit.changes_rows or commit.removed
        live = (live - frozenset(commit.added if is_new else ())) | commit.removed


def _read(version: int, file: LogFile, options: StorageOptions) -> DeltaCommit:
    info: Mapping[str, Any] = {}
    added: dict[str, tuple[int | None, int]] = {}
    removed = set()
    changes_rows = False
    for action in read_actions(file, options):
        info = action.get("commitInfo") or info
        if (add := action.get("add")) is not None:
            added[add["path"]] = (_num_records(add), int(add["size"]))
            changes_rows = changes_rows or bool(add["dataChange"])
        if (gone := action.get("remove")) is not None:
            removed.add(gone["path"])
            changes_rows = changes_rows or bool(gone["dataChange"])
    return DeltaCommit(
        version=version,
        info=info,
        added=added,
        removed=frozenset(removed),
        changes_rows=changes_rows,
    )


def _num_records(add: Mapping[str, Any]) -> int | None:
    found = json.loads(add.get("stats") or "{}").get("numRecords")
    return None if found is None else int(found)
