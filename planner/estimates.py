"""Cardinality estimates: how many rows and bytes an operator gives, from footer statistics.

In: logical plans and table statistics. Out: `Estimate` values, which choose between plans and never
decide whether one is right. Classical rules (Selinger et al., 1979); the distinct count of a column
is bounded by its value range and by the rows at hand.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cached_property
from typing import NamedTuple

from planner.catalog import StatValue, TableInfo
from planner.expressions import Call, Cast, Column, ColumnRef, Expression, Literal, conjuncts
from planner.logical import (
    Aggregate,
    Expand,
    Filter,
    Generate,
    Join,
    Limit,
    LogicalPlan,
    OneRow,
    Project,
    Range,
    Scan,
    Sort,
    Union,
    Values,
    Window,
)
from planner.types import DataType

DEFAULT_ROWS = 1_000_000
_KEY_SHARE = 0.9
_DENSE = 0.75
_GENERATED = 4.0  # rows that a generator is taken to make of one
_FEW = 1_000.0  # text of which there may well be as many values as rows
_EQ, _RANGE, _LIKE, _OTHER, _LEAST = 0.1, 0.3, 0.1, 0.3, 0.0005
_MIRRORED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}
_EQUALITIES = ("eq", "eq_null_safe")
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
    """

    distinct: float
    domain: float = 0.0
    table_rows: float = 0.0
    low: float | None = None
    high: float | None = None
    width: float = 8.0
    reduced: bool = False
    kept: float = 1.0

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
            case Window():
                below = self.estimate(plan.child)
                made = {c.id: _of(e, below) for c, e in plan.calls}
                return Estimate(below.rows, {**below.columns, **made})
            case Limit():
                below = self.estimate(plan.child)
                return below if plan.limit is None else below.scaled(min(below.rows, plan.limit))
            case Union():
                return self._union(plan)
            case Values():
                return _made(len(plan.rows), plan.outputs)
            case Range():
                return _made(max(-((plan.start - plan.stop) // plan.step), 0), plan.outputs)
            case Expand():
                below = self.estimate(plan.child)
                copies = below.scaled(below.rows * len(plan.projections))
                first = plan.projections[0]
                pairs = zip(plan.outputs, first, strict=True)
                return Estimate(copies.rows, {c.id: _of(e, copies) for c, e in pairs})
            case Generate():
                below = self.estimate(plan.child)
                rows = _made(_GENERATED * below.rows, plan.outputs)
                return Estimate(rows.rows, {**below.columns, **rows.columns})
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
                counted = float(known.distinct_count)
                # A dictionary's length is a guess from its bytes, the range that it fills is none.
                dense = column.dtype.is_integral and counted >= _DENSE * distinct
                distinct = distinct if dense else min(distinct, counted)
            width = default_width(column.dtype)
            if known and known.avg_bytes and column.dtype.kind in ("string", "binary"):
                width = max(known.avg_bytes, 4.0)
            distinct = max(distinct, 1.0)
            columns[column.id] = ColumnEstimate(distinct, distinct, rows, low, high, width)
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


def _made(rows: float, outputs: tuple[Column, ...]) -> Estimate:
    """Rows that an operator makes itself."""
    known = {c.id: ColumnEstimate(max(rows, 1.0), width=default_width(c.dtype)) for c in outputs}
    return Estimate(float(rows), known)


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
        return max(rows * 0.1, min(rows, _FEW), 1.0)
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
    selectivity = _all_selectivity(predicate, below)
    return _narrowed(below.scaled(below.rows * selectivity), predicate)


def _narrowed(estimate: Estimate, predicate: Expression) -> Estimate:
    """The estimate with fewer values of the columns that a predicate restricts by themselves."""
    columns = dict(estimate.columns)
    ranges: dict[int, tuple[float, float]] = {}
    for part in conjuncts(predicate):
        bound = _range_share(part, estimate)
        if bound is not None:
            low, high = ranges.get(bound[0], (0.0, 1.0))
            ranges[bound[0]] = (max(low, bound[1]), min(high, bound[2]))
        elif (
            isinstance(part, Call)
            and part.function in ("eq", "in")
            and isinstance(part.args[0], ColumnRef)
            and (known := columns.get(part.args[0].id)) is not None
            and all(isinstance(a, Literal) for a in part.args[1:])
        ):
            distinct = max(min(known.distinct, float(len(part.args) - 1)), 1.0)
            kept = known.kept * distinct / known.distinct
            columns[part.args[0].id] = replace(known, distinct=distinct, kept=kept)
    for column, (low, high) in ranges.items():
        known = columns[column]
        share = min(max(high - low, _LEAST), 1.0)
        distinct = max(known.distinct * share, 1.0)
        columns[column] = replace(known, distinct=distinct, kept=known.kept * share)
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
        case "eq" | "eq_null_safe" | "lt" | "le" | "gt" | "ge":
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
    """The share of rows that pass all conjuncts, independent but for ranges of one column."""
    result = 1.0
    ranges: dict[int, tuple[float, float]] = {}
    for part in conjuncts(predicate):
        bound = _range_share(part, below)
        if bound is None:
            result *= _selectivity(part, below)
            continue
        column, low, high = bound
        known = ranges.get(column, (0.0, 1.0))
        ranges[column] = (max(known[0], low), min(known[1], high))
    for low, high in ranges.values():
        result *= min(max(high - low, _LEAST), 1.0)
    return result


def _range_share(part: Expression, below: Estimate) -> tuple[int, float, float] | None:
    """A column, and the part of its value range (from 0 to 1) that a comparison lets through."""
    if not isinstance(part, Call) or part.function not in ("lt", "le", "gt", "ge"):
        return None
    left, right = part.args
    function = part.function
    if isinstance(left, Literal):
        left, right, function = right, left, _MIRRORED[function]
    value = _literal_number(right)
    known = below.columns.get(left.id) if isinstance(left, ColumnRef) else None
    if value is None or known is None or known.low is None or known.high is None:
        return None
    if not isinstance(left, ColumnRef) or known.high <= known.low:
        return None
    share = min(max((value - known.low) / (known.high - known.low), 0.0), 1.0)
    return (left.id, 0.0, share) if function in ("lt", "le") else (left.id, share, 1.0)


def _compared(part: Call, below: Estimate) -> float:
    left, right = part.args
    if isinstance(left, Literal):
        left, right = right, left
    bound = _range_share(part, below)
    if bound is not None:
        return min(max(bound[2] - bound[1], _LEAST), 1.0)
    if part.function not in _EQUALITIES:
        return _RANGE
    column = _of(left, below)
    if not isinstance(right, Literal) and right.column_ids:
        return 1.0 / max(column.distinct, _of(right, below).distinct, 1.0)
    return max(1.0 / column.distinct, 1e-9) if left.column_ids else _EQ


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


class _KeyPair(NamedTuple):
    """An equality between the sides of a join.

    Args:
        key: The left side's expression.
        left: What is believed of it.
        right: What is believed of the right side's one.
    """

    key: Expression
    left: ColumnEstimate
    right: ColumnEstimate


def joined(left: Estimate, right: Estimate, kind: str, condition: Expression) -> Estimate:
    """The output of a join of two estimates.

    Each pair of rows matches with one chance in the number of values that the keys range over.
    """
    pairs, others = _key_pairs(left, right, conjuncts(condition))
    product = Estimate(left.rows * right.rows, {**left.columns, **right.columns})
    rows = _matching_rows(left, right, pairs, others)
    match kind:
        case "semi":
            return _semi_joined(left, pairs, left.rows * max(_matched(left, right, pairs), 1e-6))
        case "anti":
            return left.scaled(left.rows * max(1.0 - _matched(left, right, pairs), 0.1))
        case "left":
            rows = max(rows, left.rows)
        case "right":
            rows = max(rows, right.rows)
        case "full":
            rows = max(rows, left.rows + right.rows)
    return product.scaled(rows)


def joined_rows(left: Estimate, right: Estimate, predicates: Iterable[Expression]) -> float:
    """The rows that an inner join of two estimates gives, as `joined` has them."""
    return _matching_rows(left, right, *_key_pairs(left, right, predicates))


def _key_pairs(
    left: Estimate, right: Estimate, predicates: Iterable[Expression]
) -> tuple[list[_KeyPair], list[Expression]]:
    """The equalities between both sides, and all other predicates."""
    pairs: list[_KeyPair] = []
    others: list[Expression] = []
    mine, theirs = left.columns, right.columns
    for part in predicates:
        if not isinstance(part, Call) or part.function not in _EQUALITIES:
            others.append(part)
            continue
        first, second = part.args
        if isinstance(first, ColumnRef) and isinstance(second, ColumnRef):
            # The usual case, without the sets of the general one: join orders ask very often.
            if first.id not in mine:
                first, second = second, first
            one, other = mine.get(first.id), theirs.get(second.id)
            if one is not None and other is not None:
                pairs.append(_KeyPair(first, one, other))
                continue
        if not _across(part, left, right):
            others.append(part)
            continue
        if not first.column_ids <= mine.keys():
            first, second = second, first
        pairs.append(_KeyPair(first, _of(first, left), _of(second, right)))
    return pairs, others


def _matching_rows(
    left: Estimate, right: Estimate, pairs: list[_KeyPair], others: list[Expression]
) -> float:
    rows = left.rows * right.rows
    if others:
        product = Estimate(rows, {**left.columns, **right.columns})
        for part in others:
            rows *= _selectivity(part, product)
    return rows / _shared_domain(pairs, max(left.rows, right.rows)) if pairs else rows


def _matched(left: Estimate, right: Estimate, pairs: list[_KeyPair]) -> float:
    """The share of left rows that find a partner by the equalities."""
    if not pairs:
        return 1.0
    distinct = min(math.prod(pair.right.distinct for pair in pairs), right.rows)
    return min(distinct / _shared_domain(pairs, max(left.rows, right.rows)), 1.0)


def _semi_joined(left: Estimate, pairs: list[_KeyPair], rows: float) -> Estimate:
    columns = dict(left.columns)
    for pair in pairs:
        if isinstance(pair.key, ColumnRef) and pair.key.id in columns:
            distinct = min(pair.left.distinct, pair.right.distinct)
            columns[pair.key.id] = replace(pair.left, distinct=distinct, reduced=True)
    return Estimate(left.rows, columns).scaled(rows)


def match_shares(left: Estimate, right: Estimate, condition: Expression) -> tuple[float, float]:
    """The expected shares of left and right rows that find a partner, each from 0 to 1."""
    kept_left = joined(left, right, "semi", condition).rows / max(left.rows, 1.0)
    kept_right = joined(right, left, "semi", condition).rows / max(right.rows, 1.0)
    return min(kept_left, 1.0), min(kept_right, 1.0)


def _shared_domain(pairs: list[_KeyPair], most_rows: float) -> float:
    """The number of values over which the keys of both sides range.

    That of the key's side where one side is a key of its table (a foreign key's own count is a
    guess), else the smaller one. Several columns together have no more values than a table rows.
    """
    total, cap = 1.0, math.inf
    for pair in pairs:
        first, second = pair.left, pair.right
        domains = (first.domain or first.distinct, second.domain or second.distinct)
        if first.reduced or second.reduced:
            total *= max(first.distinct, second.distinct)
            cap = min(cap, most_rows)
        elif first.is_key != second.is_key:
            total *= domains[0] if first.is_key else domains[1]
        else:
            total *= min(domains)
        # A predicate on the keys of both sides is the same one, derived for the other side.
        total *= max(first.kept, second.kept)
        cap = min(cap, first.table_rows or math.inf, second.table_rows or math.inf)
    return max(total if len(pairs) == 1 else min(total, cap), 1.0)


def _across(part: Call, left: Estimate, right: Estimate) -> bool:
    first, second = (a.column_ids for a in part.args)
    lids, rids = left.columns.keys(), right.columns.keys()
    if not first or not second:
        return False
    return (first <= lids and second <= rids) or (first <= rids and second <= lids)
