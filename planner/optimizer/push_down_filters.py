"""Rule: move filters towards the tables."""

from __future__ import annotations

import itertools
from dataclasses import replace

from stagecoach.planner.functions import make_call
from stagecoach.planner.optimizer.context import RuleContext
from stagecoach.planner.plan.expressions import (
    Call,
    ColumnRef,
    Expression,
    conjoin,
    conjuncts,
    substitute,
)
from stagecoach.planner.plan.logical import (
    Aggregate,
    Filter,
    Generate,
    Join,
    LogicalPlan,
    Project,
    Repartition,
    Sort,
    Union,
    Window,
)
from stagecoach.planner.plan.rewriting import filtered
from stagecoach.planner.tree import walk

_MOST_NODES = 500


def push_down_filters(plan: LogicalPlan, context: RuleContext) -> LogicalPlan:
    """Push filter conjuncts below joins, projections and aggregates, towards their columns.

    Before:  Filter[o.total > 5 AND o.k = l.k] <- CrossJoin(o, l)
    After:   InnerJoin[o.k = l.k](Filter[o.total > 5] <- o, l)
    An OR over both sides of a join also leaves each side what its branches imply of it.
    Never:   below the NULL-supplying side of an outer join, below LIMIT, or below an aggregate
    for other than its group columns, or below a window for other than its partition keys; below a
    projection with which the condition becomes very large.
    """
    del context
    return _push(plan, [])


def _push(plan: LogicalPlan, parts: list[Expression]) -> LogicalPlan:
    match plan:
        case Filter():
            return _push(plan.child, [*conjuncts(plan.predicate), *parts])
        case Project():
            return _project(plan, parts)
        case Sort() | Repartition():
            return _child(plan, _push(plan.child, parts))
        case Aggregate():
            return _aggregate(plan, parts)
        case Window():
            return _window(plan, parts)
        case Union():
            return _union(plan, parts)
        case Join():
            return _join(plan, parts)
        case Generate():
            below = [p for p in parts if p.column_ids <= plan.child.column_ids]
            child = _push(plan.child, below)
            return filtered(_child(plan, child), [p for p in parts if p not in below])
    new = plan.with_children(tuple(_push(child, []) for child in plan.children))
    return filtered(new, parts)


def _child(plan: LogicalPlan, child: LogicalPlan) -> LogicalPlan:
    return plan.with_children((child,))


def _project(plan: Project, parts: list[Expression]) -> LogicalPlan:
    mapping = {c.id: e for c, e in plan.items}
    below: list[Expression] = []
    above: list[Expression] = []
    for part in parts:
        pushed = substitute(part, mapping)
        if _is_large(pushed) and not _is_large(part):  # a column that is used twice doubles it
            above.append(part)
        else:
            below.append(pushed)
    return filtered(_child(plan, _push(plan.child, below)), above)


def _is_large(expr: Expression) -> bool:
    return next(itertools.islice(walk(expr), _MOST_NODES, None), None) is not None


def _aggregate(plan: Aggregate, parts: list[Expression]) -> LogicalPlan:
    mapping = {c.id: e for c, e in plan.groups}
    below = [p for p in parts if plan.groups and p.column_ids and p.column_ids <= mapping.keys()]
    above = [p for p in parts if p not in below]
    child = _push(plan.child, [substitute(p, mapping) for p in below])
    return filtered(_child(plan, child), above)


def _window(plan: Window, parts: list[Expression]) -> LogicalPlan:
    """A condition on the partition keys keeps or drops whole partitions."""
    # NOTE: zeros of both signs are one key, which a condition on them might tell apart.
    keys = {k.id for k in plan.partition if isinstance(k, ColumnRef) and not k.dtype.is_floating}
    below = [p for p in parts if p.column_ids and p.column_ids <= keys]
    above = [p for p in parts if p not in below]
    return filtered(_child(plan, _push(plan.child, below)), above)


def _union(plan: Union, parts: list[Expression]) -> LogicalPlan:
    inputs = []
    for child in plan.inputs:
        pairs = zip(plan.outputs, child.columns, strict=True)
        mapping: dict[int, Expression] = {out.id: column.ref for out, column in pairs}
        inputs.append(_push(child, [substitute(p, mapping) for p in parts]))
    return plan.with_children(tuple(inputs))


def _join(plan: Join, parts: list[Expression]) -> LogicalPlan:
    left_ids, right_ids = plan.left.column_ids, plan.right.column_ids
    on = list(conjuncts(plan.condition))
    to_left: list[Expression] = []
    to_right: list[Expression] = []
    kept: list[Expression] = []
    above: list[Expression] = []
    if plan.kind in ("inner", "cross"):
        for part in [*on, *parts]:
            _place(part, left_ids, right_ids, to_left, to_right, kept)
        for part in kept:
            to_left += _implied(part, left_ids)
            to_right += _implied(part, right_ids)
    else:
        keeps_left = plan.kind in ("left", "semi", "anti")
        keeps_right = plan.kind == "right"
        for part in parts:
            if keeps_left and part.column_ids <= left_ids:
                to_left.append(part)
            elif keeps_right and part.column_ids <= right_ids:
                to_right.append(part)
            else:
                above.append(part)
        for part in on:
            if (
                plan.kind in ("left", "semi", "anti")
                and part.column_ids
                and part.column_ids <= right_ids
            ):
                to_right.append(part)
            elif plan.kind in ("right", "semi") and part.column_ids and part.column_ids <= left_ids:
                to_left.append(part)
            else:
                kept.append(part)
    left, right = _push(plan.left, to_left), _push(plan.right, to_right)
    kind = plan.kind
    if kind in ("inner", "cross"):
        kind = "inner" if kept else "cross"
    return filtered(
        replace(plan, left=left, right=right, kind=kind, condition=conjoin(kept)), above
    )


def _place(
    part: Expression,
    left_ids: frozenset[int],
    right_ids: frozenset[int],
    to_left: list[Expression],
    to_right: list[Expression],
    kept: list[Expression],
) -> None:
    if part.column_ids <= left_ids:
        to_left.append(part)
        if not part.column_ids:
            to_right.append(part)
    elif part.column_ids <= right_ids:
        to_right.append(part)
    else:
        kept.append(part)


def _implied(part: Expression, ids: frozenset[int]) -> list[Expression]:
    """What an OR over several relations says of one of them alone."""
    if not isinstance(part, Call) or part.function != "or":
        return []
    branches = [
        [p for p in conjuncts(arg) if p.column_ids and p.column_ids <= ids] for arg in part.args
    ]
    if not all(branches):
        return []
    return [make_call("or", *(conjoin(branch) for branch in branches))]
