"""Leave rows out of the build side of a join that no row of the other side can match.

The build side of a semi, anti or left join is the right one, however large it is. Where the left
side has the keys of few of its rows, these are collected first, and only rows with one are built:

    Before:  anti join (small, large)
    After:   anti join (small, large semi join distinct keys of small)
    Never:   where most rows have a partner, or little is saved.

The left side is then there twice, and computed once (`share_parts`). Between stages, runtime
filters do the same (`joins`).
"""

from __future__ import annotations

from dataclasses import replace

from stagecoach.planner.distribution.key_sources import column_source
from stagecoach.planner.distribution.work import SECONDS
from stagecoach.planner.lowering.sizes import PlanSizes
from stagecoach.planner.optimizer.context import RuleContext
from stagecoach.planner.plan.expressions import TRUE, ColumnRef, Expression
from stagecoach.planner.plan.physical import AggregateExec, HashJoinExec, PhysicalPlan
from stagecoach.planner.tree import walk

_KINDS = ("semi", "anti", "left")  # each row of the right side needs a partner to count
_MAX_SHARE = 0.5  # of the right rows that have a partner
_SAVED_SECONDS = 0.1  # of one core
_MOST_WITHIN = 1  # reduced build sides within what the keys of another one come from


def reduce_builds(plan: PhysicalPlan, sizes: PlanSizes, context: RuleContext) -> PhysicalPlan:
    """The plan with smaller build sides.

    Args:
        plan: Without exchanges.
        sizes: Knows the sizes of operators, and remembers those of new ones.
        context: Makes new columns.
    """
    return _Reducer(sizes, context).visit(plan)


class _Reducer:
    def __init__(self, sizes: PlanSizes, context: RuleContext) -> None:
        self._sizes = sizes
        self._context = context
        self._made: set[PhysicalPlan] = set()

    def visit(self, plan: PhysicalPlan) -> PhysicalPlan:
        found = self._sizes.with_children(plan, tuple(map(self.visit, plan.children)))
        if not isinstance(found, HashJoinExec) or found.kind not in _KINDS or not found.left_keys:
            return found
        source = self._source(found.left, found.left_keys)
        if source is None:
            return found
        few, keys = source
        growth = self._sizes.size(few)[0] / max(self._sizes.size(found.left)[0], 1.0)
        share = self._sizes.match_shares(plan)[1] * max(growth, 1.0)
        if not self._pays(few, found.right, share):
            return found
        reduced = self._reduced(found, few, keys, share)
        return self._sizes.note_size(replace(found, right=reduced), plan)

    def _source(
        self, left: PhysicalPlan, keys: tuple[Expression, ...]
    ) -> tuple[PhysicalPlan, tuple[Expression, ...]] | None:
        """The part of a left side that its keys come from, with few build sides that were reduced.

        The side itself has the fewest keys. But with it, each of several joins in a row would
        double the plan.
        """
        node = left
        while len(self._made.intersection(walk(node))) > _MOST_WITHIN:
            ids = tuple(key.id for key in keys if isinstance(key, ColumnRef))
            below = column_source(node, ids) if len(ids) == len(keys) else None
            if below is None:
                return None
            node, numbers = below
            columns = {column.id: column.ref for column in node.columns}
            keys = tuple(columns[number] for number in numbers)
        return node, keys

    def _pays(self, few: PhysicalPlan, many: PhysicalPlan, share: float) -> bool:
        if share > _MAX_SHARE:
            return False
        keys, rows = self._sizes.size(few)[0], self._sizes.size(many)[0]
        saved = rows * ((1 - share) * SECONDS["build row"] - SECONDS["probe row"])
        spent = keys * (SECONDS["grouped row"] + SECONDS["group"] + SECONDS["build row"])
        return saved - spent >= _SAVED_SECONDS

    def _reduced(
        self,
        join: HashJoinExec,
        few: PhysicalPlan,
        keys: tuple[Expression, ...],
        share: float,
    ) -> PhysicalPlan:
        """The right side of a join without rows that have none of the keys."""
        groups = tuple(
            (self._context.column(f"key_{place}", key.dtype), key) for place, key in enumerate(keys)
        )
        distinct = self._sizes.note_size(AggregateExec(few, "single", groups, ()), few)
        reduced = HashJoinExec(
            left=join.right,
            right=distinct,
            kind="semi",
            left_keys=join.right_keys,
            right_keys=tuple(column.ref for column, _ in groups),
            residual=TRUE,
            null_safe=join.null_safe,
        )
        self._made.add(reduced)
        rows, num_bytes = self._sizes.size(join.right)
        return self._sizes.set_size(reduced, rows * share, num_bytes * share)
