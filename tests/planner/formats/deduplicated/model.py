"""Chunk plans evaluated on rows in memory: what every rule must leave as it is.

Nothing here is fast, and nothing is shared with the rules.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stagecoach.planner.formats.deduplicated.chunk import Chunk, DedupTable
from stagecoach.planner.formats.deduplicated.context import ChunkContext
from stagecoach.planner.formats.deduplicated.plan import (
    ChunkPlan,
    DeduplicateExec,
    EmptyExec,
    FilterExec,
    ParquetExec,
    ProjectionExec,
    RecordBatchesExec,
    UnionExec,
)
from stagecoach.planner.plan.expressions import Call, ColumnRef, Expression, Literal

Values = dict[str, Any]


@dataclass(frozen=True)
class Row:
    """Values by column, and where the row is from."""

    values: Values
    sequence: int
    position: int


class Model:
    """Evaluates plans over one set of chunks.

    Args:
        table: The table.
        rows: Values of the rows of each chunk, by chunk id.
        prunes: Whether a Parquet scan leaves out all rows that its predicate lets it.
    """

    def __init__(
        self, table: DedupTable, rows: Mapping[str, Sequence[Values]], prunes: bool
    ) -> None:
        self._context = ChunkContext(table)
        self._table = table
        self._rows = rows
        self._prunes = prunes

    def rows_of(self, plan: ChunkPlan) -> list[str]:
        """The rows of a plan, as sorted texts of their values in the order of its columns."""
        found = self._run(plan)
        for row in found:
            assert set(row.values) == set(plan.columns)
        return sorted(repr([row.values[c] for c in plan.columns]) for row in found)

    def expected(
        self, chunks: Sequence[Chunk], predicate: Expression, columns: Sequence[str]
    ) -> list[str]:
        """The rows that a query sees, without any plan."""
        rows = [row for chunk in chunks for row in self.scan(chunk, self._table.column_names)]
        latest = self.undeleted(self.latest(rows, self._table.primary_key))
        kept = [row for row in latest if self._value(predicate, row.values) is True]
        return self.texts(kept, columns)

    def undeleted(self, rows: Sequence[Row]) -> list[Row]:
        """The rows that are not marked as deleted."""
        marker = self._table.delete_column
        return [row for row in rows if marker is None or row.values[marker] is not True]

    def texts(self, rows: Sequence[Row], columns: Sequence[str]) -> list[str]:
        """The rows as sorted texts of some of their values."""
        return sorted(repr([row.values[c] for c in columns]) for row in rows)

    def _run(self, plan: ChunkPlan) -> list[Row]:
        match plan:
            case EmptyExec():
                return []
            case UnionExec():
                assert len({child.columns for child in plan.inputs}) <= 1
                return [row for child in plan.inputs for row in self._run(child)]
            case FilterExec():
                assert self._context.names(plan.predicate) <= set(plan.child.columns)
                rows = self._run(plan.child)
                return [r for r in rows if self._value(plan.predicate, r.values) is True]
            case ProjectionExec():
                return [_projected(row, plan.keep) for row in self._run(plan.child)]
            case DeduplicateExec():
                return self.latest(self._run(plan.child), plan.key)
            case RecordBatchesExec():
                return [row for c in plan.batches for row in self.scan(c, plan.schema)]
            case ParquetExec():
                rows = [row for c in plan.chunks for row in self.scan(c, plan.schema)]
                if self._prunes:
                    rows = [r for r in rows if self._value(plan.predicate, r.values) is True]
                return [_projected(row, plan.columns) for row in rows]
        raise TypeError(type(plan).__name__)

    def scan(self, chunk: Chunk, columns: Sequence[str]) -> list[Row]:
        """The rows of a chunk."""
        return [
            Row({c: values.get(c) for c in columns}, chunk.sequence, position)
            for position, values in enumerate(self._rows[chunk.chunk_id])
        ]

    def latest(self, rows: Sequence[Row], key: Sequence[str]) -> list[Row]:
        """The latest row for each value of a key."""
        best: dict[tuple[object, ...], Row] = {}
        for row in rows:
            group = tuple(grouped(row.values[c]) for c in key)
            if group not in best or self._rank(row) > self._rank(best[group]):
                best[group] = row
        return list(best.values())

    def _rank(self, row: Row) -> tuple[float, int, int]:
        column = self._table.version_column
        version = None if column is None else row.values[column]
        return (-math.inf if version is None else version, row.sequence, row.position)

    def _value(self, expr: Expression, row: Values) -> Any:
        if isinstance(expr, Literal):
            return expr.value
        if isinstance(expr, ColumnRef):
            return row[self._table.columns[expr.id].name]
        assert isinstance(expr, Call)
        args = [self._value(arg, row) for arg in expr.args]
        return _called(expr.function, args)


def _projected(row: Row, columns: Sequence[str]) -> Row:
    return Row({c: row.values[c] for c in columns}, row.sequence, row.position)


def grouped(value: Any) -> object:
    """What is equal for values that GROUP BY puts together."""
    if isinstance(value, float) and math.isnan(value):
        return "NaN"
    return value


def _called(function: str, args: list[Any]) -> Any:
    match function:
        case "and":
            return False if False in args else None if None in args else True
        case "or":
            return True if True in args else None if None in args else False
        case "not":
            return None if args[0] is None else not args[0]
        case "is_null":
            return args[0] is None
        case "eq_null_safe":
            return grouped(args[0]) == grouped(args[1])
        case "in":
            found = [_called("eq", [args[0], item]) for item in args[1:]]
            return _called("or", found)
        case "half":
            return None if args[0] is None else args[0] // 2
        case "sign_text":
            return None if args[0] is None else math.copysign(1, args[0])
    if None in args:
        return None
    left, right = (_ordered(arg) for arg in args)
    compare = {
        "eq": left == right, "ne": left != right, "lt": left < right,
        "le": left <= right, "gt": left > right, "ge": left >= right,
    }  # fmt: skip
    return compare[function]


def _ordered(value: Any) -> tuple[bool, Any]:
    """NaN is above all other numbers."""
    is_nan = isinstance(value, float) and math.isnan(value)
    return is_nan, 0 if is_nan else value
