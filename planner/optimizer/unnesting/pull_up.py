"""Pull the correlated conjuncts out of a subquery's plan, into its join with the outer query.

If a correlated reference cannot be moved up, `push_down` does the work instead.
"""

from __future__ import annotations

from dataclasses import replace

from stagecoach.planner.plan.expressions import (
    Call,
    Column,
    ColumnRef,
    Expression,
    conjoin,
    conjuncts,
)
from stagecoach.planner.plan.logical import (
    Aggregate,
    Filter,
    Join,
    JoinKind,
    LogicalPlan,
    NamedExpression,
    Project,
    Sort,
)

PulledUp = tuple[LogicalPlan, list[Expression]]


def pull_up(plan: LogicalPlan, *, keep_rows: bool) -> PulledUp | None:
    """The plan without outer references, and what was taken out.

    The plan may give more columns than before: those that the conjuncts read.

    Args:
        plan: Plan of the subquery.
        keep_rows: Whether the number of rows matters (it does not for EXISTS and IN).
    """
    if not plan.free_ids:
        return plan, []
    match plan:
        case Filter():
            pulled = pull_up(plan.child, keep_rows=keep_rows)
            if pulled is None:
                return None
            child, taken = pulled
            kept, moved = _partition(plan.predicate, child)
            return (Filter(child, conjoin(kept)) if kept else child), [*taken, *moved]
        case Project():
            return _project(plan, keep_rows)
        case Sort():
            return pull_up(plan.child, keep_rows=keep_rows)
        case Join():
            return _join(plan, keep_rows)
        case Aggregate() if plan.groups and not keep_rows:
            return _aggregate(plan)
    return None


def _partition(
    predicate: Expression, child: LogicalPlan
) -> tuple[list[Expression], list[Expression]]:
    kept: list[Expression] = []
    pulled: list[Expression] = []
    for part in conjuncts(predicate):
        (kept if part.column_ids <= child.column_ids else pulled).append(part)
    return kept, pulled


def _project(plan: Project, keep_rows: bool) -> PulledUp | None:
    pulled = pull_up(plan.child, keep_rows=keep_rows)
    if pulled is None:
        return None
    child, taken = pulled
    if any(not expr.column_ids <= child.column_ids for _, expr in plan.items):
        return None
    items: list[NamedExpression] = list(plan.items)
    have = {c.id for c, _ in items}
    for column in child.columns:
        if column.id not in have and any(column.id in part.column_ids for part in taken):
            items.append((column, column.ref))
    return replace(plan, child=child, items=tuple(items)), taken


def _join(plan: Join, keep_rows: bool) -> PulledUp | None:
    pulled = pull_up(plan.left, keep_rows=keep_rows)
    if pulled is None:
        return None
    left, taken = pulled
    if plan.kind in ("inner", "cross"):
        pulled = pull_up(plan.right, keep_rows=keep_rows)
        if pulled is None:
            return None
        right, more = pulled
        bare = Join(left, right, plan.kind, plan.condition)
        kept, moved = _partition(plan.condition, bare)
        kind: JoinKind = "inner" if kept else "cross"
        return replace(bare, kind=kind, condition=conjoin(kept)), [*taken, *more, *moved]
    if plan.kind not in ("left", "semi", "anti") or plan.right.free_ids:
        return None
    if not plan.condition.column_ids <= left.column_ids | plan.right.column_ids:
        return None
    return replace(plan, left=left), taken


def _aggregate(plan: Aggregate) -> PulledUp | None:
    pulled = pull_up(plan.child, keep_rows=True)
    if pulled is None:
        return None
    child, taken = pulled
    groups = list(plan.groups)
    have = {e.id for _, e in groups if isinstance(e, ColumnRef)}
    for part in taken:
        column = _equated(part, child)
        if column is None:
            return None
        if column.id not in have:
            groups.append((column, column.ref))
            have.add(column.id)
    if any(not e.column_ids <= child.column_ids for e in plan.expressions):
        return None
    grouped = replace(plan, child=child, groups=tuple(groups))
    if any(not (p.column_ids & child.column_ids) <= grouped.column_ids for p in taken):
        return None
    return grouped, taken


def _equated(part: Expression, child: LogicalPlan) -> Column | None:
    """The subquery's column that a conjunct sets equal to something of the outer query."""
    if isinstance(part, Call) and part.function == "eq":
        for mine, theirs in (part.args, part.args[::-1]):
            if isinstance(mine, ColumnRef) and theirs.column_ids.isdisjoint(child.column_ids):
                return next((c for c in child.columns if c.id == mine.id), None)
    return None
