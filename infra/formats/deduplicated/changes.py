"""Computes the next version of a deduplicated table from the newest one and a commit.

Pure: a loser of a race applies its change again, to the winner's version.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

from stagecoach.infra.formats.deduplicated.declaration import Declaration
from stagecoach.infra.formats.deduplicated.errors import AppendError, CompactionError
from stagecoach.infra.formats.deduplicated.schema import check_roles, merge_columns, with_markers
from stagecoach.infra.formats.deduplicated.version import (
    ChunkTableVersion,
    Operation,
    ReplacedChunk,
    StoredChunk,
)
from stagecoach.planner.errors import CatalogError
from stagecoach.planner.types import Field


@dataclass(frozen=True, kw_only=True)
class Commit:
    """Who commits what, and when.

    Attributes:
        table: Name of the table.
        declaration: Key and roles of columns, as the catalog file has them now.
        token: Identity of the commit.
        committed_at: ISO 8601 in UTC.
    """

    table: str
    declaration: Declaration
    token: str
    committed_at: str

    def after(
        self, base: ChunkTableVersion | None, operation: Operation, **changed: Any
    ) -> ChunkTableVersion:
        """The version that follows `base`."""
        if base is None:
            base = ChunkTableVersion(
                table=self.table,
                number=0,
                token="",
                committed_at="",
                operation=operation,
                declaration=self.declaration,
            )
        return replace(
            base,
            number=base.number + 1,
            token=self.token,
            committed_at=self.committed_at,
            operation=operation,
            declaration=self.declaration,
            **changed,
        )

    def check(self, base: ChunkTableVersion | None) -> None:
        """Check that the table is declared as it was created.

        Raises:
            CatalogError: It is not.
        """
        if base is not None:
            check_declaration(base, self.declaration)


def check_declaration(version: ChunkTableVersion, declaration: Declaration) -> None:
    """Check that the catalog file declares a table as it was created.

    Raises:
        CatalogError: It does not.
    """
    if (difference := version.declaration.difference(declaration)) is not None:
        raise CatalogError(
            f"table '{version.table}': {difference} (there: as it was created; here: in the "
            "catalog file); correct the catalog file, or make another table"
        )


def create(
    base: ChunkTableVersion | None, commit: Commit, columns: tuple[Field, ...]
) -> ChunkTableVersion:
    """The first version of a table, without rows.

    Raises:
        AppendError: The table is there already, or the columns do not fit its declaration.
    """
    if base is not None:
        raise AppendError(
            f"table '{commit.table}' is there already (version {base.number}, {base.num_rows} "
            "rows); append to it, or give another location"
        )
    columns = with_markers(columns, commit.declaration)
    check_roles(commit.table, "create", commit.declaration, columns)
    return commit.after(None, "create", columns=columns)


def append(
    base: ChunkTableVersion | None, commit: Commit, chunks: Sequence[StoredChunk], place: str
) -> ChunkTableVersion:
    """The version with new chunks, which are newer than all that there are.

    Raises:
        AppendError: Another writer has given the table columns that do not fit.
    """
    commit.check(base)
    columns: tuple[Field, ...] = () if base is None else base.columns
    for chunk in chunks:
        columns = merge_columns(
            columns, chunk.columns, declaration=commit.declaration, table=commit.table, place=place
        )
    sequence = 1 if base is None else base.next_sequence
    number = 1 if base is None else base.number + 1
    added = tuple(
        replace(chunk, sequence=sequence + i, version=number) for i, chunk in enumerate(chunks)
    )
    live = () if base is None else base.chunks
    return commit.after(
        base,
        "append",
        columns=columns,
        chunks=(*live, *added),
        next_sequence=sequence + len(added),
    )


def replace_chunks(
    base: ChunkTableVersion | None,
    commit: Commit,
    old: Collection[str],
    new: Sequence[StoredChunk],
) -> ChunkTableVersion:
    """The version in which a compaction's chunks stand for those that it has read.

    They are as new as the newest of these. Chunks that were appended since are newer.

    Args:
        base: The newest version.
        commit: Who commits.
        old: Names of the chunks that go; no other chunk that is not newer than all of them may
            have rows of their keys.
        new: Chunks with the latest row of each of their keys.

    Raises:
        CompactionError: Some of them are live no more.
    """
    commit.check(base)
    live = {} if base is None else {chunk.name: chunk for chunk in base.chunks}
    if base is None or not set(old) <= live.keys():
        raise CompactionError(
            f"table '{commit.table}': another compaction has replaced the same chunks; nothing "
            "was changed, compact again if chunks still overlap"
        )
    gone = [live[name] for name in sorted(old)]
    sequence = max(chunk.sequence for chunk in gone)
    number = base.number + 1
    added = [replace(chunk, sequence=sequence, version=number) for chunk in new]
    kept = [chunk for chunk in base.chunks if chunk.name not in set(old)]
    replaced = [
        ReplacedChunk(name=chunk.name, num_bytes=chunk.num_bytes, replaced_at=commit.committed_at)
        for chunk in gone
    ]
    return commit.after(
        base,
        "compact",
        chunks=tuple(sorted([*kept, *added], key=lambda chunk: chunk.sequence)),
        replaced=(*base.replaced, *replaced),
    )


def forget_replaced(
    base: ChunkTableVersion | None, commit: Commit, removed: Collection[str]
) -> ChunkTableVersion | None:
    """The version that no longer names replaced chunks whose files are gone; None if none does."""
    if base is None or not any(chunk.name in removed for chunk in base.replaced):
        return None
    left = tuple(chunk for chunk in base.replaced if chunk.name not in removed)
    return commit.after(base, "expire", replaced=left)
