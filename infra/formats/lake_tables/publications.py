"""What Stagecoach has published in a table of a lake, as the table's own commits tell.

    commit 7   by Spark
    commit 6   stagecoach.fingerprint = 3fa4…, stagecoach.mode = replace_partition, …
    commit 5   a compaction: the same rows
    commit 4   stagecoach.fingerprint = 91be…, …

A commit has its properties and its files at once, so a retry that finds them adds nothing twice.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from stagecoach.infra.formats.publishing import PublishMode
from stagecoach.planner.types import Field

CLEAR = "clear"
_PREFIX = "stagecoach."
_FINGERPRINT, _MODE, _TOKEN, _RUN, _ROWS = (
    f"{_PREFIX}{name}" for name in ("fingerprint", "mode", "token", "run-id", "rows")
)

C = TypeVar("C")


@dataclass(frozen=True, kw_only=True)
class Publication:
    """What one of our commits says of itself.

    Attributes:
        fingerprint: Identity of the rows; empty for one that only removed rows.
        mode: What became of the rows that were there.
        token: Identity of the commit.
        run_id: The run.
        rows: Rows by partition key; the one key is None without partitions.
    """

    fingerprint: str
    mode: str
    token: str
    run_id: str = ""
    rows: Mapping[str | None, int] = field(default_factory=dict)

    def properties(self) -> dict[str, str]:
        """Return the properties of the commit."""
        return {
            _FINGERPRINT: self.fingerprint,
            _MODE: self.mode,
            _TOKEN: self.token,
            _RUN: self.run_id,
            _ROWS: json.dumps([[key, rows] for key, rows in self.rows.items()]),
        }

    @classmethod
    def of(cls, properties: Mapping[str, Any]) -> Publication | None:
        """Return what a commit with such properties published; None for one of another writer."""
        if _FINGERPRINT not in properties:
            return None
        return cls(
            fingerprint=properties[_FINGERPRINT],
            mode=properties.get(_MODE, ""),
            token=properties.get(_TOKEN, ""),
            run_id=properties.get(_RUN, ""),
            rows=dict(json.loads(properties.get(_ROWS, "[]"))),
        )

    @property
    def partition_keys(self) -> tuple[str, ...]:
        """Dagster's partitions that it has published, sorted."""
        return tuple(sorted(key for key in self.rows if key is not None))


@dataclass(frozen=True, kw_only=True)
class LakeVersion:
    """A version of a table as catalogs, commands and Dagster show it; a `StoredVersion`.

    Attributes:
        table: Name of the table.
        number: The number that the format has for it.
        committed_at: When it was made, ISO 8601 in UTC.
        mode: How it changed the table: our mode, or the operation of another writer.
        run_id: The run that made it; empty for another writer.
        columns: Columns as readers see them.
        has_data: Whether there is something to read; not after `clear`.
        num_rows: Rows of the data files.
        num_bytes: Size of all files in bytes.
        num_files: Number of data files.
        partition_keys: Partitions that this commit has published.
    """

    table: str
    number: int
    committed_at: str
    mode: str
    run_id: str
    columns: tuple[Field, ...]
    has_data: bool
    num_rows: int
    num_bytes: int
    num_files: int
    partition_keys: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class PastCommit(Generic[C]):
    """A commit in the history of a table.

    Attributes:
        commit: It, as the format has it.
        ours: What it says of itself; None for one of another writer.
        keeps_rows: Whether another writer has changed no row, as a compaction does.
        leaves_nothing: Whether the table had no rows after it.
    """

    commit: C
    ours: Publication | None
    keeps_rows: bool = False
    leaves_nothing: bool = False


def find_publication(
    history: Iterable[PastCommit[C]],
    mode: PublishMode,
    fingerprint: str,
    keys: tuple[str | None, ...],
) -> C | None:
    """Return the commit that makes the table what another would make of it, if there is one.

    A commit that replaces or merges rows may be repeated, so it only counts as done if no other
    writer has changed rows since. One that appends must not be: it counts unless all rows are gone
    since.

    Args:
        history: The commits that made the table what it is, newest first.
        mode: Of the commit.
        fingerprint: Identity of its rows.
        keys: Its partition keys; None without.
    """
    for past in history:
        if past.ours is not None and _is_same(past.ours, mode, fingerprint, keys):
            return past.commit
        if past.ours is None and past.keeps_rows:
            continue
        if _undoes(past, mode, keys):
            return None
    return None


def find_commit(history: Iterable[PastCommit[C]], token: str) -> C | None:
    """Return the commit with a token, whatever has followed."""
    return next((p.commit for p in history if p.ours is not None and p.ours.token == token), None)


def find_merge(history: Iterable[PastCommit[C]], ours: Publication) -> C | None:
    """Return the commit by which the same run has merged the same rows, whatever has followed.

    A run that is repeated must not put its rows above those of later ones.
    """
    for past in history:
        found = past.ours
        if (
            found is not None
            and found.run_id == ours.run_id != ""
            and (found.mode, found.fingerprint) == (ours.mode, ours.fingerprint)
        ):
            return past.commit
    return None


def _undoes(past: PastCommit[Any], mode: PublishMode, keys: tuple[str | None, ...]) -> bool:
    """Whether what was published before a commit may be gone or mixed with other rows."""
    ours = past.ours
    if mode == "append":
        return past.leaves_nothing or (ours is not None and ours.mode in ("replace", CLEAR))
    return (
        ours is None
        or mode not in ("replace_partition", "merge")
        or ours.mode != mode
        or bool(set(keys) & set(ours.rows))
    )


def _is_same(
    ours: Publication, mode: PublishMode, fingerprint: str, keys: tuple[str | None, ...]
) -> bool:
    if ours.fingerprint != fingerprint or not (mode == "append" or ours.mode == mode):
        return False
    return mode == "replace" or set(keys) <= set(ours.rows)
