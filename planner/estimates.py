"""Cardinality estimates: how many rows and bytes an operator gives, from footer statistics.

In: logical plans and table statistics. Out: `Estimate` values, which choose between plans and never
decide whether one is right. Classical rules (Selinger et al., 1979); the distinct count of a column
is bounded by its value range and by the rows at hand.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal

from planner.catalog import StatValue, TableInfo
from planner.expressions import Call, Cast, ColumnRef, Expression, Literal, conjuncts
from planner.logical import (
    Aggregate,
    Filter,
    Join,
    Limit,
    LogicalPlan,
    OneRow,
    Project,
    Scan,
    Sort,
    Union,
)
from planner.types import DataType

DEFAULT_ROWS = 1_000_000
_EQ, _RANGE, _LIKE, _OTHER = 0.1, 0.3, 0.1, 0.3
_WIDTHS = {"boolean": 1, "tinyint": 1, "smallint": 2, "int": 4, "date": 4, "float": 4, "string": 24}


@dataclass(frozen=True)
class ColumnEstimate:
    """What is believed of one column.

    Args:
        distinct: Number of distinct values.
        domain: Number of distinct values before any filter: what a foreign key ranges over.
        low: Smallest value as a number (dates as days), where known.
        high: Largest value, likewise.
        width: Mean bytes of a value.
    """

    distinct: float
    domain: float = 0.0
    low: float | None = None
    high: float | None = None
    width: float = 8.0


@dataclass(frozen=True)
class Estimate:
    """What is believed of an operator's output."""

    rows: float
    columns: Mapping[int, ColumnEstimate] = field(default_factory=dict)

    @property
    def row_bytes(self) -> float:
        """Mean bytes of a row in memory."""
        return 1.0 + sum(c.width for c in self.columns.values())

    @property
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


class Estimator:
    """Estimates plans over one catalog; remembers what it estimated.

    Args:
        tables: Catalog entries by name.
    """

    def __init__(self, tables: Mapping[str, TableInfo]) -> None:
        self._tables = tables
        self._memo: dict[int, tuple[LogicalPlan, Estimate]] = {}

    def estimate(self, plan: LogicalPlan) -> Estimate:
        """The estimate of one operator and all below it."""
        known = self._memo.get(id(plan))
        if known is not None and known[0] is plan:
            return known[1]
        result = self._estimate(plan)
        self._memo[id(plan)] = (plan, result)
        return result

    def stored_bytes(self, table: str) -> int:
        """Bytes of a table's files; unknown counts as large."""
        stats = self._tables[table].stats if table in self._tables else None
        return stats.num_bytes if stats is not None else 1 << 60

    def _estimate(self, plan: LogicalPlan) -> Estimate:
        match plan:
            case Scan():
                return self._scan(plan)
            case OneRow():
                return Estimate(1.0)
            case Filter():
                return filtered(self.estimate(plan.child), plan.predicate)
            case Project():
                below = self.estimate(plan.child)
                return Estimate(below.rows, {c.id: _of(e, below) for c, e in plan.items})
            case Aggregate():
                return self._aggregate(plan)
            case Sort():
                return self.estimate(plan.child)
            case Limit():
                below = self.estimate(plan.child)
                return below if plan.limit is None else below.scaled(min(below.rows, plan.limit))
            case Union():
                return self._union(plan)
            case Join():
                left, right = self.estimate(plan.left), self.estimate(plan.right)
                return joined(left, right, plan.kind, plan.condition)
        raise TypeError(type(plan).__name__)

    def _scan(self, plan: Scan) -> Estimate:
        stats = self._tables[plan.table].stats if plan.table in self._tables else None
        rows = float(stats.num_rows) if stats is not None else DEFAULT_ROWS
        columns: dict[int, ColumnEstimate] = {}
        for column, name in zip(plan.outputs, plan.source, strict=True):
            known = stats.columns.get(name) if stats is not None else None
            low = _number(known.min_value) if known else None
            high = _number(known.max_value) if known else None
            distinct = _distinct(rows, low, high, column.dtype)
            if known and known.distinct_count is not None:
                distinct = min(distinct, float(known.distinct_count))
            width = default_width(column.dtype)
            if known and known.avg_bytes and column.dtype.kind in ("string", "binary"):
                width = max(known.avg_bytes, 4.0)
            distinct = max(distinct, 1.0)
            columns[column.id] = ColumnEstimate(distinct, distinct, low, high, width)
        return Estimate(rows, columns)

    def _aggregate(self, plan: Aggregate) -> Estimate:
        below = self.estimate(plan.child)
        groups = {c.id: _of(e, below) for c, e in plan.groups}
        rows = 1.0
        for column in groups.values():
            rows *= column.distinct
        rows = min(rows, max(below.rows, 1.0)) if plan.groups else 1.0
        columns = dict(groups)
        for made, _ in plan.aggregates:
            columns[made.id] = ColumnEstimate(rows, width=default_width(made.dtype))
        return Estimate(below.rows, columns).scaled(rows)

    def _union(self, plan: Union) -> Estimate:
        parts = [self.estimate(child) for child in plan.inputs]
        rows = sum(p.rows for p in parts)
        columns = {
            c.id: ColumnEstimate(max(rows / 2, 1.0), width=default_width(c.dtype))
            for c in plan.outputs
        }
        return Estimate(rows, columns)


def default_width(dtype: DataType) -> float:
    """Assumed bytes of a value of that type in memory."""
    if dtype.is_decimal:
        return 16.0
    return float(_WIDTHS.get(dtype.kind, 8))


def _number(value: StatValue | None) -> float | None:
    return float(value) if isinstance(value, int | float) and value == value else None


def _distinct(rows: float, low: float | None, high: float | None, dtype: DataType) -> float:
    if dtype.kind == "boolean":
        return 2.0
    if low is not None and high is not None and (dtype.is_integral or dtype.kind == "date"):
        return min(rows, high - low + 1)
    if dtype.kind == "string":
        return max(rows * 0.1, 1.0)
    return max(rows, 1.0)


def _of(expr: Expression, below: Estimate) -> ColumnEstimate:
    if isinstance(expr, ColumnRef):
        return below.columns.get(expr.id) or ColumnEstimate(
            below.rows, width=default_width(expr.dtype)
        )
    if isinstance(expr, Literal):
        return ColumnEstimate(1.0, width=default_width(expr.dtype))
    distinct = max(below.rows, 1.0)
    if isinstance(expr, Call) and expr.function == "year":
        inner = _of(expr.args[0], below)
        distinct = max(inner.distinct / 365.0, 1.0)
    elif isinstance(expr, Call | Cast) and len(expr.column_ids) == 1:
        (only,) = expr.column_ids
        if only in below.columns:
            distinct = below.columns[only].distinct
    return ColumnEstimate(distinct, width=default_width(expr.dtype))


def filtered(below: Estimate, predicate: Expression) -> Estimate:
    """The rows of `below` for which the predicate holds."""
    selectivity = 1.0
    for part in conjuncts(predicate):
        selectivity *= _selectivity(part, below)
    return _narrowed(below.scaled(below.rows * selectivity), predicate)


def _narrowed(estimate: Estimate, predicate: Expression) -> Estimate:
    columns = dict(estimate.columns)
    for part in conjuncts(predicate):
        if (
            isinstance(part, Call)
            and part.function in ("eq", "in")
            and isinstance(part.args[0], ColumnRef)
        ):
            count = float(len(part.args) - 1)
            known = columns.get(part.args[0].id)
            if known is not None and all(isinstance(a, Literal) for a in part.args[1:]):
                columns[part.args[0].id] = replace(
                    known, distinct=max(min(known.distinct, count), 1.0)
                )
    return Estimate(estimate.rows, columns)


def _selectivity(part: Expression, below: Estimate) -> float:
    if isinstance(part, Literal):
        return 1.0 if part.value is True else 0.0
    if not isinstance(part, Call):
        return _OTHER
    match part.function:
        case "or":
            missed = 1.0
            for arg in part.args:
                missed *= 1.0 - _all_selectivity(arg, below)
            return 1.0 - missed
        case "and":
            return _all_selectivity(part, below)
        case "not":
            return max(1.0 - _selectivity(part.args[0], below), 0.05)
        case "in":
            column = _of(part.args[0], below)
            return min((len(part.args) - 1) / column.distinct, 0.9)
        case "eq" | "lt" | "le" | "gt" | "ge":
            return _compared(part, below)
        case "ne":
            return 0.9
        case "like" | "startswith" | "contains":
            return _LIKE
        case "is_null":
            return 0.05
        case "is_not_null":
            return 0.95
    return _OTHER


def _all_selectivity(predicate: Expression, below: Estimate) -> float:
    result = 1.0
    for part in conjuncts(predicate):
        result *= _selectivity(part, below)
    return result


def _compared(part: Call, below: Estimate) -> float:
    left, right = part.args
    if isinstance(left, Literal):
        mirror = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq"}
        left, right, function = right, left, mirror[part.function]
    else:
        function = part.function
    column = _of(left, below)
    if function == "eq":
        if not isinstance(right, Literal) and right.column_ids:
            return 1.0 / max(column.distinct, _of(right, below).distinct, 1.0)
        return max(1.0 / column.distinct, 1e-9) if left.column_ids else _EQ
    value = _literal_number(right)
    if value is None or column.low is None or column.high is None or column.high <= column.low:
        return _RANGE
    share = (value - column.low) / (column.high - column.low)
    share = share if function in ("lt", "le") else 1.0 - share
    return min(max(share, 0.0005), 1.0)


def _literal_number(expr: Expression) -> float | None:
    if not isinstance(expr, Literal) or expr.value is None or isinstance(expr.value, bool):
        return None
    if expr.dtype.kind == "date":
        return float(
            (datetime.date.fromisoformat(str(expr.value)) - datetime.date(1970, 1, 1)).days
        )
    if expr.dtype.is_decimal:
        return float(Decimal(str(expr.value)))
    return float(expr.value) if isinstance(expr.value, int | float) else None


def joined(left: Estimate, right: Estimate, kind: str, condition: Expression) -> Estimate:
    """The output of a join of two estimates.

    A key's domain is taken as the smaller of both sides' domains, which is the referenced side's
    for foreign keys whose range overstates their distinct values.
    """
    both = {**left.columns, **right.columns}
    product = Estimate(left.rows * right.rows, both)
    rows = product.rows
    matched = 1.0
    for part in conjuncts(condition):
        if isinstance(part, Call) and part.function == "eq" and _across(part, left, right):
            first, second = (_of(a, product) for a in part.args)
            domain = max(min(_domain(first), _domain(second)), 1.0)
            rows /= domain
            inner = second if part.args[0].column_ids <= left.columns.keys() else first
            matched *= min(inner.distinct / domain, 1.0)
        else:
            rows *= _selectivity(part, product)
    match kind:
        case "semi":
            return left.scaled(left.rows * max(matched, 1e-6))
        case "anti":
            return left.scaled(left.rows * max(1.0 - matched, 0.1))
        case "left":
            rows = max(rows, left.rows)
        case "right":
            rows = max(rows, right.rows)
        case "full":
            rows = max(rows, left.rows + right.rows)
    return product.scaled(rows)


def match_shares(left: Estimate, right: Estimate, condition: Expression) -> tuple[float, float]:
    """The expected shares of left and right rows that find a partner, each from 0 to 1."""
    kept_left = joined(left, right, "semi", condition).rows / max(left.rows, 1.0)
    kept_right = joined(right, left, "semi", condition).rows / max(right.rows, 1.0)
    return min(kept_left, 1.0), min(kept_right, 1.0)


def _domain(column: ColumnEstimate) -> float:
    return column.domain or column.distinct


def _across(part: Call, left: Estimate, right: Estimate) -> bool:
    first, second = (a.column_ids for a in part.args)
    lids, rids = left.columns.keys(), right.columns.keys()
    if not first or not second:
        return False
    return (first <= lids and second <= rids) or (first <= rids and second <= lids)
