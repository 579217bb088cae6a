"""Let a join read the rows that a semi join elsewhere in the plan has left of its input.

A decorrelated subquery groups only what the outer query looks for: its input has a semi join with
the outer query's keys (`reduce_aggregates`). The outer query joins the same input with the same
keys, so the rows that the semi join leaves are all that it needs:

    Before:  t join (aggregate of (t semi join u)) join u
    After:   (t semi join u) join (aggregate of (t semi join u)) join u
    Never:   where the semi join leaves many rows, or a row that is left out might raise an error.

The semi join is then there twice, and computed once (`share_parts`): `t` is read once instead of
twice. Source of the idea: Zuzarte et al., "WinMagic: Subquery Elimination Using Window
Aggregation", SIGMOD 2003, which needs unique keys of `u` and a window instead.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from stagecoach.planner.distribution.key_sources import column_source
from stagecoach.planner.distribution.merge_plans import merge
from stagecoach.planner.lowering.sizes import PlanSizes
from stagecoach.planner.optimizer.proofs import is_total
from stagecoach.planner.plan.expressions import TRUE, ColumnRef, Expression
from stagecoach.planner.plan.physical import (
    FilterExec,
    HashJoinExec,
    PhysicalPlan,
    ProjectionExec,
)
from stagecoach.planner.tree import walk

_MAX_SHARE = 0.2  # of its input that a semi join may leave, for keeping the rows to pay
_MOST_SEMI_JOINS = 8
_MOST_PAIRINGS = 16  # of the keys of a semi join with those of a join

_Numbers = tuple[int, ...]
"""Of columns."""


class _KeyPair(NamedTuple):
    """An equality of a join: the column of the side that is looked at, and the other side's."""

    mine: int
    theirs: int
    null_safe: bool


def share_semi_joins(
    plan: PhysicalPlan, is_worth: Callable[[PhysicalPlan], bool], sizes: PlanSizes
) -> PhysicalPlan:
    """The plan in which joins read what semi joins leave of their inputs.

    Args:
        plan: Without exchanges.
        is_worth: Whether computing a part once saves more than keeping its rows costs.
        sizes: Knows the sizes of operators, and remembers those of new ones.
    """
    semis = [node for node in _semi_joins(plan) if _leaves_few(node, sizes) and is_worth(node)]
    for semi in semis[:_MOST_SEMI_JOINS]:
        if semi in _semi_joins(plan):  # else an earlier one has changed it
            plan = _Sharing(semi, is_worth, sizes).visit(plan)
    return plan


def _semi_joins(plan: PhysicalPlan) -> dict[HashJoinExec, None]:
    nodes = dict.fromkeys(walk(plan))
    return {n: None for n in nodes if isinstance(n, HashJoinExec) and n.kind == "semi"}


def _leaves_few(semi: HashJoinExec, sizes: PlanSizes) -> bool:
    keys = (*semi.left_keys, *semi.right_keys)
    if semi.residual != TRUE or not keys or len(_numbers(keys)) < len(keys):
        return False
    return sizes.size(semi)[0] <= _MAX_SHARE * sizes.size(semi.left)[0]


def _numbers(keys: tuple[Expression, ...]) -> _Numbers:
    """The numbers of the keys that are columns."""
    return tuple(key.id for key in keys if isinstance(key, ColumnRef))


class _Sharing:
    """Adds a semi join to inputs of joins whose rows it does not change."""

    def __init__(
        self, semi: HashJoinExec, is_worth: Callable[[PhysicalPlan], bool], sizes: PlanSizes
    ) -> None:
        self._semi = semi
        self._is_worth = is_worth
        self._sizes = sizes
        self._left_keys = _numbers(semi.left_keys)
        self._right_keys = _numbers(semi.right_keys)

    def visit(self, plan: PhysicalPlan) -> PhysicalPlan:
        if plan == self._semi:
            return plan
        join = self._sizes.with_children(plan, tuple(map(self.visit, plan.children)))
        if not isinstance(join, HashJoinExec) or join.kind != "inner":
            return join
        # Keys are computed for rows without a partner, too.
        if not all(map(is_total, (*join.left_keys, *join.right_keys))):
            return join
        pairs = [
            _KeyPair(left.id, right.id, null_safe)
            for left, right, null_safe in join.key_pairs
            if isinstance(left, ColumnRef) and isinstance(right, ColumnRef)
        ]
        if (left_side := self._reduced_side(join.left, join.right, pairs)) is not None:
            return self._sizes.with_children(join, (left_side, join.right))
        pairs = [_KeyPair(pair.theirs, pair.mine, pair.null_safe) for pair in pairs]
        if (right_side := self._reduced_side(join.right, join.left, pairs)) is not None:
            return self._sizes.with_children(join, (join.left, right_side))
        return join

    def _reduced_side(
        self, side: PhysicalPlan, other: PhysicalPlan, pairs: list[_KeyPair]
    ) -> PhysicalPlan | None:
        """A side of a join below the semi join; None if that might leave out a row that counts."""
        wanted = [null_safe for _, _, null_safe in self._semi.key_pairs]
        pairings = itertools.permutations(pairs, len(wanted))
        for pairing in itertools.islice(pairings, _MOST_PAIRINGS):
            # NULL would find a partner that the semi join has left out.
            if any(pair.null_safe > kept for pair, kept in zip(pairing, wanted, strict=True)):
                continue
            if self._has_keys(other, tuple(pair.theirs for pair in pairing)):
                new = self._reduced(side, tuple(pair.mine for pair in pairing))
                if new is not None:
                    return new
        return None

    def _has_keys(self, plan: PhysicalPlan, columns: _Numbers) -> bool:
        """Whether all values of the columns are keys that the semi join finds a partner for."""
        below: tuple[PhysicalPlan, _Numbers] | None = (plan, columns)
        while below is not None:
            node, columns = below
            if _has_rows_of(self._semi, self._left_keys, node, columns):
                return True
            if _has_rows_of(self._semi.right, self._right_keys, node, columns):
                return True
            below = _source(node, columns)
        return False

    def _reduced(self, plan: PhysicalPlan, columns: _Numbers) -> PhysicalPlan | None:
        """A side of a join with the semi join at the input that its keys come from."""
        if _has_rows_of(self._semi.left, self._left_keys, plan, columns):
            return self._over(plan, columns)
        if not _is_inner(plan) or not all(map(is_total, plan.expressions)):
            return None
        below = _source(plan, columns)
        child = self._reduced(*below) if below is not None else None
        if below is None or child is None:
            return None
        children = tuple(child if old is below[0] else old for old in plan.children)
        return self._sizes.with_children(plan, children)

    def _over(self, plan: PhysicalPlan, columns: _Numbers) -> PhysicalPlan | None:
        """The semi join over a plan of the same rows; None if keeping them does not pay."""
        refs = {column.id: column.ref for column in plan.columns}
        new = replace(self._semi, left=plan, left_keys=tuple(refs[number] for number in columns))
        if not self._is_worth(self._sizes.note_shared(new, self._semi, plan)):
            return None
        self._sizes.note_size(self._semi, new)
        return new


def _has_rows_of(part: PhysicalPlan, keys: _Numbers, plan: PhysicalPlan, columns: _Numbers) -> bool:
    """Whether a plan has the rows of a part, and in the columns those of its keys."""
    found = merge(part, plan, lambda new, _: new)
    return found is not None and all(
        found.first[key] == found.second[column] for key, column in zip(keys, columns, strict=True)
    )


def _is_inner(plan: PhysicalPlan) -> bool:
    """Whether a plan has no row without a row of each of its inputs."""
    if isinstance(plan, HashJoinExec):
        return plan.kind == "inner"
    return isinstance(plan, FilterExec | ProjectionExec)


def _source(node: PhysicalPlan, columns: _Numbers) -> tuple[PhysicalPlan, _Numbers] | None:
    """The input of an operator that all values of the columns come from."""
    if isinstance(node, HashJoinExec) and node.kind == "inner":
        right = {column.id for column in node.right.columns}
        if right.issuperset(columns):
            return node.right, columns
    return column_source(node, columns)
