"""Pulls the correlated conjuncts out of a subquery's plan.

In: the plan of a subquery that refers to columns of the outer query. Out: a plan without such
references, and the conjuncts that its join with the outer query must fulfil.
"""

from __future__ import annotations

from dataclasses import replace

from planner.errors import UnsupportedSqlError
from planner.expressions import Call, Expression, conjoin, conjuncts
from planner.logical import Aggregate, Filter, Join, JoinKind, LogicalPlan, Project, Sort


def decorrelate(plan: LogicalPlan, *, keep_rows: bool) -> tuple[LogicalPlan, list[Expression]]:
    """The plan without outer references, and what was taken out.

    Args:
        plan: Plan of the subquery.
        keep_rows: Whether the number of rows matters (it does not for EXISTS and IN).

    Raises:
        UnsupportedSqlError: Where a reference stands that cannot be moved up.
    """
    if not plan.free_ids:
        return plan, []
    match plan:
        case Filter():
            child, taken = decorrelate(plan.child, keep_rows=keep_rows)
            kept, pulled = _partition(plan.predicate, child)
            return (Filter(child, conjoin(kept)) if kept else child), [*taken, *pulled]
        case Project():
            return _project(plan, keep_rows)
        case Sort():
            return decorrelate(plan.child, keep_rows=keep_rows)
        case Join():
            return _join(plan, keep_rows)
        case Aggregate() if plan.groups and not keep_rows:
            return _aggregate(plan)
    raise UnsupportedSqlError(f"correlation below {type(plan).__name__.upper()}")


def _partition(
    predicate: Expression, child: LogicalPlan
) -> tuple[list[Expression], list[Expression]]:
    kept: list[Expression] = []
    pulled: list[Expression] = []
    for part in conjuncts(predicate):
        (kept if part.column_ids <= child.column_ids else pulled).append(part)
    return kept, pulled


def _project(plan: Project, keep_rows: bool) -> tuple[LogicalPlan, list[Expression]]:
    child, taken = decorrelate(plan.child, keep_rows=keep_rows)
    items = [item for item in plan.items if item[1].column_ids <= child.column_ids]
    if len(items) < len(plan.items):
        raise UnsupportedSqlError("a subquery selects a column of the outer query")
    have = {c.id for c, _ in items}
    for column in child.columns:
        if column.id not in have and any(column.id in part.column_ids for part in taken):
            items.append((column, column.ref))
    return replace(plan, child=child, items=tuple(items)), taken


def _join(plan: Join, keep_rows: bool) -> tuple[LogicalPlan, list[Expression]]:
    left, taken = decorrelate(plan.left, keep_rows=keep_rows)
    if plan.kind in ("inner", "cross"):
        right, more = decorrelate(plan.right, keep_rows=keep_rows)
        bare = Join(left, right, plan.kind, plan.condition)
        kept, pulled = _partition(plan.condition, bare)
        kind: JoinKind = "inner" if kept else "cross"
        return replace(bare, kind=kind, condition=conjoin(kept)), [*taken, *more, *pulled]
    both = left.column_ids | plan.right.column_ids
    if plan.right.free_ids or not plan.condition.column_ids <= both:
        raise UnsupportedSqlError(f"correlation inside a {plan.kind.upper()} join")
    if plan.kind not in ("left", "semi", "anti"):
        raise UnsupportedSqlError(f"correlation below a {plan.kind.upper()} join")
    return replace(plan, left=left), taken


def _aggregate(plan: Aggregate) -> tuple[LogicalPlan, list[Expression]]:
    child, taken = decorrelate(plan.child, keep_rows=True)
    groups = list(plan.groups)
    have = {e.column_ids for _, e in groups}
    for part in taken:
        if not (isinstance(part, Call) and part.function == "eq"):
            raise UnsupportedSqlError("correlation other than equality below GROUP BY")
        for column in child.columns:
            if column.id in part.column_ids and frozenset({column.id}) not in have:
                groups.append((column, column.ref))
                have.add(frozenset({column.id}))
    if any(not set(e.column_ids) <= child.column_ids for _, e in groups):
        raise UnsupportedSqlError("GROUP BY a column of the outer query")
    grouped = replace(plan, child=child, groups=tuple(groups))
    missing = [p for p in taken if not _visible(p, child, grouped)]
    if missing:
        raise UnsupportedSqlError("correlation over a grouped column")
    return grouped, taken


def _visible(part: Expression, child: LogicalPlan, grouped: Aggregate) -> bool:
    return (part.column_ids & child.column_ids) <= grouped.column_ids
