"""Estimates of a relation and of its columns, as plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from statistics import NormalDist

from stagecoach.planner.cached_property import cached_property
from stagecoach.planner.plan.expressions import Call, Cast, ColumnRef, Expression, Literal
from stagecoach.planner.types import DataType

_KEY_SHARE = 0.9
_WIDTHS = {"boolean": 1, "tinyint": 1, "smallint": 2, "int": 4, "date": 4, "float": 4, "string": 24}


@dataclass(frozen=True)
class ColumnEstimate:
    """What is believed of one column.

    Args:
        distinct: Number of distinct values.
        domain: Number of distinct values before any filter: what a foreign key ranges over.
        table_rows: Rows of the base table that it comes from; 0 for a computed column.
        low: Smallest value as a number (dates as days), where known.
        high: Largest value, likewise.
        width: Mean bytes of a value.
        reduced: Whether a semi join has left only values that another relation has. A join on
            such a column is likely one with that relation, so the values of one side are taken
            to be among those of the other.
        kept: Share of the domain that predicates on the column itself let through.
        bell: How the values are distributed, for an aggregate of which that is known.
    """

    distinct: float
    domain: float = 0.0
    table_rows: float = 0.0
    low: float | None = None
    high: float | None = None
    width: float = 8.0
    reduced: bool = False
    kept: float = 1.0
    bell: NormalDist | None = None

    @cached_property
    def is_key(self) -> bool:
        """Whether each value seems to stand in one row of its base table."""
        return self.table_rows > 0 and self.domain >= _KEY_SHARE * self.table_rows


@dataclass(frozen=True)
class Estimate:
    """What is believed of an operator's output."""

    rows: float
    columns: Mapping[int, ColumnEstimate] = field(default_factory=dict)

    @cached_property
    def row_bytes(self) -> float:
        """Mean bytes of a row in memory."""
        return 1.0 + sum(c.width for c in self.columns.values())

    @cached_property
    def num_bytes(self) -> float:
        """Bytes of all rows in memory."""
        return self.rows * self.row_bytes

    def scaled(self, rows: float) -> Estimate:
        """The same columns over fewer (or more) rows."""
        rows = max(rows, 0.0)
        capped = {
            i: replace(c, distinct=max(min(c.distinct, rows), 1.0)) for i, c in self.columns.items()
        }
        return Estimate(rows, capped)


def default_width(dtype: DataType) -> float:
    """Assumed bytes of a value of that type in memory."""
    if dtype.is_decimal:
        return 16.0
    return float(_WIDTHS.get(dtype.kind, 8))


def value_estimate(expr: Expression, below: Estimate) -> ColumnEstimate:
    """What is believed of an expression's values over the rows of `below`."""
    if isinstance(expr, ColumnRef):
        return below.columns.get(expr.id) or ColumnEstimate(
            below.rows, width=default_width(expr.dtype)
        )
    if isinstance(expr, Literal):
        return ColumnEstimate(1.0, width=default_width(expr.dtype))
    distinct = max(below.rows, 1.0)
    if isinstance(expr, Call) and expr.function == "year":
        inner = value_estimate(expr.args[0], below)
        distinct = max(inner.distinct / 365.0, 1.0)
    elif isinstance(expr, Call | Cast) and len(expr.column_ids) == 1:
        (only,) = expr.column_ids
        if only in below.columns:
            distinct = below.columns[only].distinct
    return ColumnEstimate(distinct, width=default_width(expr.dtype))
