"""Estimate the rows of a join, and which share of each side finds a partner.

An equality of two columns matches with a probability of one over the number of key values.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

from stagecoach.planner.estimates.estimate import ColumnEstimate, Estimate, value_estimate
from stagecoach.planner.estimates.selectivity import EQUALITIES, selectivity
from stagecoach.planner.plan.expressions import Call, ColumnRef, Expression, conjuncts

_MOST_ROWS = 1e100  # products of products are infinite, which is not a number to reckon with
# The least share of rows that an anti join is expected to keep. Its other conditions let rows
# through whose keys match, and queries seldom exclude most rows.
_LEAST_ANTI = 0.5


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
    every = min(left.rows * right.rows, _MOST_ROWS)
    product = Estimate(every, {**left.columns, **right.columns})
    rows = _matching_rows(left, right, pairs, others)
    match kind:
        case "semi":
            return _semi_joined(left, pairs, left.rows * max(_matched(left, right, pairs), 1e-6))
        case "anti":
            return left.scaled(left.rows * max(1.0 - _matched(left, right, pairs), _LEAST_ANTI))
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


def match_shares(left: Estimate, right: Estimate, condition: Expression) -> tuple[float, float]:
    """The expected shares of left and right rows that find a partner, each from 0 to 1."""
    kept_left = joined(left, right, "semi", condition).rows / max(left.rows, 1.0)
    kept_right = joined(right, left, "semi", condition).rows / max(right.rows, 1.0)
    return min(kept_left, 1.0), min(kept_right, 1.0)


def _key_pairs(
    left: Estimate, right: Estimate, predicates: Iterable[Expression]
) -> tuple[list[_KeyPair], list[Expression]]:
    """The equalities between both sides, and all other predicates."""
    pairs: list[_KeyPair] = []
    others: list[Expression] = []
    mine, theirs = left.columns, right.columns
    for part in predicates:
        if not isinstance(part, Call) or part.function not in EQUALITIES:
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
        pairs.append(_KeyPair(first, value_estimate(first, left), value_estimate(second, right)))
    return pairs, others


def _matching_rows(
    left: Estimate, right: Estimate, pairs: list[_KeyPair], others: list[Expression]
) -> float:
    rows = min(left.rows * right.rows, _MOST_ROWS)
    if others:
        product = Estimate(rows, {**left.columns, **right.columns})
        for part in others:
            rows *= selectivity(part, product)
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
