"""What a planned scan of chunks reads plainly, and which groups of chunks it compares.

`slices.py` and `layers.py` decide how the rows of a group are compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stagecoach.planner.formats.deduplicated.chunk import Chunk
from stagecoach.planner.formats.deduplicated.context import ChunkContext
from stagecoach.planner.formats.deduplicated.plan import ChunkPlan, DeduplicateExec


@dataclass(frozen=True)
class Group:
    """Chunks whose rows are compared with each other.

    Args:
        chunks: The chunks.
        key: Columns that tell rows apart.
        reason: Why they must be compared, for people.
    """

    chunks: tuple[Chunk, ...]
    key: tuple[str, ...]
    reason: str


@dataclass(frozen=True)
class Reading:
    """What a scan reads.

    Args:
        plain: Chunks without duplicates, of which no row hides another.
        groups: Groups that are deduplicated, each by itself.
    """

    plain: tuple[Chunk, ...]
    groups: tuple[Group, ...]

    @property
    def compared_rows(self) -> int:
        """Rows of all chunks that are in groups."""
        return sum(c.num_rows for group in self.groups for c in group.chunks)

    @property
    def num_rows(self) -> int:
        """Rows of all chunks that are read, hidden ones included."""
        return self.compared_rows + sum(c.num_rows for c in self.plain)


def reading_of(plan: ChunkPlan, context: ChunkContext) -> Reading:
    """What a plan reads plainly, and what it deduplicates."""
    plain: list[Chunk] = []
    groups: list[Group] = []
    stack = [plan]
    while stack:
        node = stack.pop()
        if isinstance(node, DeduplicateExec):
            groups.append(Group(node.chunks, node.key, _reason(node.chunks, context)))
        elif node.children:
            stack.extend(reversed(node.children))
        else:
            plain.extend(node.chunks)
    return Reading(tuple(plain), tuple(groups))


def _reason(chunks: Sequence[Chunk], context: ChunkContext) -> str:
    table = context.table
    if len(chunks) == 1:
        return "a key may occur twice within the chunk"
    if not table.splits_by_time:
        if table.time_column is None:
            return "the table has no time column"
        return f"the time '{table.time_column}' is not in the primary key"
    unknown = next((c.chunk_id for c in chunks if c.time_range is None), None)
    if unknown is not None:
        return f"the times of chunk {unknown} are not known"
    return "their times overlap"
