"""Estimate which share of the rows a predicate lets through.

Conjuncts count as independent, except for ranges of one column.
"""

from __future__ import annotations

import math
from dataclasses import replace
from statistics import NormalDist

from stagecoach.planner.estimates.estimate import Estimate, value_estimate
from stagecoach.planner.plan.comparisons import column_range
from stagecoach.planner.plan.expressions import (
    Call,
    ColumnRef,
    Expression,
    Literal,
    conjuncts,
)

EQUALITIES = ("eq", "eq_null_safe")
_EQ, _RANGE, _LIKE, _OTHER, _LEAST = 0.1, 0.3, 0.1, 0.3, 0.0005
_TAIL = 0.01


def filtered(below: Estimate, predicate: Expression) -> Estimate:
    """The rows of `below` for which the predicate holds."""
    share = _all_selectivity(predicate, below)
    return _narrowed(below.scaled(below.rows * share), predicate)


def selectivity(part: Expression, below: Estimate) -> float:
    """The share of the rows of `below` for which one conjunct holds, from 0 to 1."""
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
            return max(1.0 - selectivity(part.args[0], below), 0.05)
        case "in":
            column = value_estimate(part.args[0], below)
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
            result *= selectivity(part, below)
            continue
        column, low, high = bound
        known = ranges.get(column, (0.0, 1.0))
        ranges[column] = (max(known[0], low), min(known[1], high))
    for low, high in ranges.values():
        result *= min(max(high - low, _LEAST), 1.0)
    return result


def _compared(part: Call, below: Estimate) -> float:
    left, right = part.args
    if isinstance(left, Literal):
        left, right = right, left
    bound = _range_share(part, below)
    if bound is not None:
        return min(max(bound[2] - bound[1], _LEAST), 1.0)
    if part.function not in EQUALITIES:
        return _RANGE
    column = value_estimate(left, below)
    if not isinstance(right, Literal) and right.column_ids:
        return 1.0 / max(column.distinct, value_estimate(right, below).distinct, 1.0)
    return max(1.0 / column.distinct, 1e-9) if left.column_ids else _EQ


def _range_share(part: Expression, below: Estimate) -> tuple[int, float, float] | None:
    """A column, and the part of its value range (from 0 to 1) that a comparison lets through."""
    bounds = column_range(part)
    known = below.columns.get(bounds[0]) if bounds is not None else None
    if bounds is None or known is None:
        return None
    column, low, high = bounds
    if known.bell is not None:
        return column, _below(known.bell, low), _below(known.bell, high)
    if known.low is None or known.high is None:
        return None
    width = known.high - known.low  # infinite where the bounds are the largest doubles
    if width <= 0 or math.isinf(width) or math.isnan(low) or math.isnan(high):
        return None
    low, high = (min(max((value - known.low) / width, 0.0), 1.0) for value in (low, high))
    return column, low, high


def _below(bell: NormalDist, value: float) -> float:
    """The share of values below one of them; the tails of real data are longer than a bell's."""
    if math.isinf(value):
        return 0.0 if value < 0 else 1.0
    share = bell.cdf(value) if bell.stdev > 0 else float(bell.mean <= value)
    return min(max(share, _TAIL), 1.0 - _TAIL)


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
