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

from stagecoach.planner.distribution.key_sources import column_source
from stagecoach.planner.distribution.merge_plans import merge
from stagecoach.planner.lowering.sizes import PlanSizes
from stagecoach.planner.optimizer.proofs import is_total
from stagecoach.planner.plan.expressions import TRUE, ColumnRef
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

Numbers = tuple[int, ...]


def share_semi_joins(
    plan: PhysicalPlan, is_worth: Callable[[PhysicalPlan], bool], sizes: PlanSizes
) -> PhysicalPlan:
    """The plan in which joins read what semi joins leave of their inputs.

    Args:
        plan: Without exchanges.
        is_worth: Whether computing a part once saves more than keeping its rows costs.
        sizes: Knows the sizes of operators, and remembers those of new ones.
    """
    nodes = dict.fromkeys(walk(plan))
    semis = [n for n in nodes if isinstance(n, HashJoinExec) and _leaves_few(n, sizes)]
    for semi in filter(is_worth, semis[:_MOST_SEMI_JOINS]):
        plan = _Sharing(semi, sizes).visit(plan)
    return plan


def _leaves_few(join: HashJoinExec, sizes: PlanSizes) -> bool:
    return (
        join.kind == "semi"
        and join.residual == TRUE
        and bool(join.left_keys)
        and _numbers(join.left_keys) is not None
        and _numbers(join.right_keys) is not None
        and sizes.size(join)[0] <= _MAX_SHARE * sizes.size(join.left)[0]
    )


def _numbers(keys: tuple[object, ...]) -> Numbers | None:
    """The numbers of keys that are columns; None if one is not."""
    found = tuple(key.id for key in keys if isinstance(key, ColumnRef))
    return found if len(found) == len(keys) else None


class _Sharing:
    def __init__(self, semi: HashJoinExec, sizes: PlanSizes) -> None:
        self._semi = semi
        self._sizes = sizes
        self._left_keys = _numbers(semi.left_keys) or ()
        self._right_keys = _numbers(semi.right_keys) or ()

    def visit(self, plan: PhysicalPlan) -> PhysicalPlan:
        if plan == self._semi:
            return plan
        found = self._with_children(plan, tuple(map(self.visit, plan.children)))
        if not isinstance(found, HashJoinExec) or found.kind != "inner":
            return found
        for side, other in ((0, 1), (1, 0)):
            for mine, theirs in self._pairings(found, side):
                if not self._has_keys(found.children[other], theirs):
                    continue
                new = self._reduced(found.children[side], mine)
                if new is not None:
                    left, right = (new, found.right) if side == 0 else (found.left, new)
                    return self._with_children(found, (left, right))
        return found

    def _with_children(
        self, plan: PhysicalPlan, children: tuple[PhysicalPlan, ...]
    ) -> PhysicalPlan:
        new = plan.with_children(children)
        return plan if new is plan else self._sizes.note_size(new, plan)

    def _pairings(self, join: HashJoinExec, side: int) -> list[tuple[Numbers, Numbers]]:
        """Columns of a side that may be the keys of the semi join, and their partners."""
        wanted = [null_safe for _, _, null_safe in self._semi.key_pairs]
        pairs = [
            ((left.id, right.id)[:: 1 if side == 0 else -1], null_safe)
            for left, right, null_safe in join.key_pairs
            if isinstance(left, ColumnRef) and isinstance(right, ColumnRef)
        ]
        chosen = itertools.islice(itertools.permutations(pairs, len(wanted)), _MOST_PAIRINGS)
        return [
            (tuple(mine for (mine, _), _ in pairing), tuple(theirs for (_, theirs), _ in pairing))
            for pairing in chosen
            # NULL would find a partner that the semi join has left out.
            if all(here <= there for (_, here), there in zip(pairing, wanted, strict=True))
        ]

    def _has_keys(self, plan: PhysicalPlan, columns: Numbers) -> bool:
        """Whether all values of the columns are keys that the semi join finds a partner for."""
        below: tuple[PhysicalPlan, Numbers] | None = (plan, columns)
        while below is not None:
            node, columns = below
            if self._is(self._semi, self._left_keys, node, columns):
                return True
            if self._is(self._semi.right, self._right_keys, node, columns):
                return True
            below = _source(node, columns)
        return False

    def _reduced(self, plan: PhysicalPlan, columns: Numbers) -> PhysicalPlan | None:
        """A side of a join with the semi join at the input that its keys come from."""
        if self._is(self._semi.left, self._left_keys, plan, columns):
            refs = {column.id: column.ref for column in plan.columns}
            keys = tuple(refs[number] for number in columns)
            new = replace(self._semi, left=plan, left_keys=keys)
            return self._sizes.note_size(new, self._semi)
        if not _is_inner(plan) or not all(map(is_total, plan.expressions)):
            return None
        below = _source(plan, columns)
        child = self._reduced(*below) if below is not None else None
        if below is None or child is None:
            return None
        children = tuple(child if old is below[0] else old for old in plan.children)
        return self._with_children(plan, children)

    @staticmethod
    def _is(part: PhysicalPlan, keys: Numbers, plan: PhysicalPlan, columns: Numbers) -> bool:
        """Whether a plan has the rows of a part, and in the columns those of its keys."""
        found = merge(part, plan, lambda new, _: new)
        return found is not None and all(
            found.first[key] == found.second[column]
            for key, column in zip(keys, columns, strict=True)
        )


def _is_inner(plan: PhysicalPlan) -> bool:
    """Whether a plan has no row without a row of each of its inputs."""
    if isinstance(plan, HashJoinExec):
        return plan.kind == "inner"
    return isinstance(plan, FilterExec | ProjectionExec)


def _source(node: PhysicalPlan, columns: Numbers) -> tuple[PhysicalPlan, Numbers] | None:
    """The input of an operator that all values of the columns come from."""
    if isinstance(node, HashJoinExec) and node.kind == "inner":
        right = {column.id for column in node.right.columns}
        if right.issuperset(columns):
            return node.right, columns
    return column_source(node, columns)
