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

from stagecoach.planner.distribution.work import SECONDS
from stagecoach.planner.lowering.sizes import PlanSizes
from stagecoach.planner.optimizer.context import RuleContext
from stagecoach.planner.plan.expressions import TRUE
from stagecoach.planner.plan.physical import AggregateExec, HashJoinExec, PhysicalPlan

_KINDS = ("semi", "anti", "left")  # each row of the right side needs a partner to count
_MAX_SHARE = 0.5  # of the right rows that have a partner
_SAVED_SECONDS = 0.1  # of one core


def reduce_builds(plan: PhysicalPlan, sizes: PlanSizes, context: RuleContext) -> PhysicalPlan:
    """The plan with smaller build sides.

    Args:
        plan: Without exchanges.
        sizes: Knows the sizes of operators, and remembers those of new ones.
        context: Makes new columns.
    """
    children = tuple(reduce_builds(child, sizes, context) for child in plan.children)
    found = plan
    if any(new is not old for new, old in zip(children, plan.children, strict=True)):
        found = sizes.note_size(plan.with_children(children), plan)
    share = sizes.match_shares(plan)[1]
    if not isinstance(found, HashJoinExec) or not _pays(found, share, sizes):
        return found
    keys = tuple(
        (context.column(f"key_{place}", key.dtype), key)
        for place, key in enumerate(found.left_keys)
    )
    distinct = sizes.note_size(AggregateExec(found.left, "single", keys, ()), found.left)
    reduced = HashJoinExec(
        left=found.right,
        right=distinct,
        kind="semi",
        left_keys=found.right_keys,
        right_keys=tuple(column.ref for column, _ in keys),
        residual=TRUE,
        null_safe=found.null_safe,
    )
    rows, num_bytes = sizes.size(found.right)
    sizes.set_size(reduced, rows * share, num_bytes * share)
    return sizes.note_size(replace(found, right=reduced), plan)


def _pays(join: HashJoinExec, share: float, sizes: PlanSizes) -> bool:
    if join.kind not in _KINDS or not join.left_keys or share > _MAX_SHARE:
        return False
    few, many = sizes.size(join.left)[0], sizes.size(join.right)[0]
    saved = many * ((1 - share) * SECONDS["build row"] - SECONDS["probe row"])
    spent = few * (SECONDS["grouped row"] + SECONDS["group"] + SECONDS["build row"])
    return saved - spent >= _SAVED_SECONDS
