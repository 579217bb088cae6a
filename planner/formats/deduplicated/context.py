"""What the rules over chunks may look at.

Every rule is given the table and the limits.
"""

from __future__ import annotations

from dataclasses import dataclass

from stagecoach.planner.cached_property import cached_property
from stagecoach.planner.formats.deduplicated.chunk import DedupTable
from stagecoach.planner.plan.expressions import TRUE, ColumnRef, Expression, Literal, call
from stagecoach.planner.types import BOOLEAN

DEFAULT_TARGET_PARTITIONS = 8
DEFAULT_MAX_GROUPS = 256


@dataclass(frozen=True)
class ChunkContext:
    """The table whose chunks are read, and limits.

    Args:
        table: The table.
        target_partitions: File groups of a scan that are not to be exceeded.
        max_groups: Deduplications beyond which neighbours are fused.
    """

    table: DedupTable
    target_partitions: int = DEFAULT_TARGET_PARTITIONS
    max_groups: int = DEFAULT_MAX_GROUPS

    @cached_property
    def not_deleted(self) -> Expression:
        """What is true for rows that are not marked as deleted; TRUE where none is."""
        if self.table.delete_column is None:
            return TRUE
        marked = call("eq_null_safe", BOOLEAN, self.ref(self.table.delete_column), _MARKED)
        return call("not", BOOLEAN, marked)

    def ref(self, column: str) -> ColumnRef:
        """A reference to a column of the table in a predicate.

        Raises:
            KeyError: There is no such column.
        """
        position = self._positions[column]
        dtype = self.table.columns[position].dtype
        return ColumnRef(id=position, name=column, dtype=dtype)

    def names(self, predicate: Expression) -> frozenset[str]:
        """Names of the columns that a predicate reads."""
        return frozenset(self.table.columns[i].name for i in predicate.column_ids)

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {f.name: i for i, f in enumerate(self.table.columns)}


_MARKED = Literal(BOOLEAN, True)
