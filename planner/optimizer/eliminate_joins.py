"""Rule: drop joins that add no row, drop no row and provide no column."""

from __future__ import annotations

from stagecoach.planner.optimizer.context import RuleContext
from stagecoach.planner.optimizer.proofs import ignores_duplicates, is_unique, joined_columns
from stagecoach.planner.plan.logical import (
    Aggregate,
    Filter,
    Join,
    Limit,
    LogicalPlan,
    Project,
    Sort,
)


def eliminate_joins(plan: LogicalPlan, context: RuleContext) -> LogicalPlan:
    """Drop the right side of a left join where nothing reads it and it has one row a key at most.

    Before:  Project[l.a] <- Left[l.k = r.k](l, Aggregate[gby k] <- r)
    After:   Project[l.a] <- l
    Under an aggregate that is the same over repeated rows (DISTINCT, min, max), and on the right of
    a semi or anti join, it may have several. A right join likewise.
    Never:   because statistics let a column look like a key. An inner join stays: that each row has
    a partner is nothing that a plan can prove.
    """
    del context
    return _visit(plan, plan.column_ids, True)


def _visit(plan: LogicalPlan, needed: frozenset[int], counted: bool) -> LogicalPlan:
    """The plan without superfluous joins.

    Args:
        plan: A plan from which unread columns are pruned.
        needed: Numbers of the columns that something above reads.
        counted: Whether it matters how often a row stands in the plan's output.
    """
    read = frozenset().union(*(e.column_ids for e in plan.expressions))
    match plan:
        case Project():
            return plan.with_children((_visit(plan.child, read, counted),))
        case Aggregate():
            once = ignores_duplicates(plan)
            return plan.with_children((_visit(plan.child, read, not once),))
        case Filter() | Sort():
            return plan.with_children((_visit(plan.child, needed | read, counted),))
        case Limit():
            return plan.with_children((_visit(plan.child, needed, True),))
        case Join():
            return _join(plan, needed, read, counted)
    # What the operator reads of its inputs is not known here.
    return plan.with_children(tuple(_visit(c, c.column_ids, True) for c in plan.children))


def _join(plan: Join, needed: frozenset[int], read: frozenset[int], counted: bool) -> LogicalPlan:
    left, right = plan.left, plan.right
    if plan.kind == "left" and _is_superfluous(plan, right, needed, counted):
        return _visit(left, needed, counted)
    if plan.kind == "right" and _is_superfluous(plan, left, needed, counted):
        return _visit(right, needed, counted)
    below = needed | read
    beside = counted and plan.kind not in ("semi", "anti")
    return plan.with_children(
        (
            _visit(left, below & left.column_ids, counted),
            _visit(right, below & right.column_ids, beside),
        )
    )


def _is_superfluous(plan: Join, side: LogicalPlan, needed: frozenset[int], counted: bool) -> bool:
    if needed & side.column_ids:
        return False
    return not counted or is_unique(side, joined_columns(plan, side))
