"""Rule: compute only the groups of an aggregate that a join looks for."""

from __future__ import annotations

from dataclasses import dataclass, replace

from stagecoach.planner.estimates import Estimate, default_width, match_shares
from stagecoach.planner.functions import make_call
from stagecoach.planner.optimizer.context import RuleContext
from stagecoach.planner.optimizer.join_groups import EqualColumns, column_pair, flatten, is_inner
from stagecoach.planner.optimizer.proofs import is_repeatable, is_total
from stagecoach.planner.optimizer.renumber import renumber
from stagecoach.planner.plan.expressions import ColumnRef, Expression, conjoin
from stagecoach.planner.plan.logical import Aggregate, Filter, Join, LogicalPlan, Project, Scan
from stagecoach.planner.tree import transform_down, walk

MAX_SHARE = 0.5  # of the aggregate's input that may remain, for the reduction to pay
_MAX_COST = 0.5  # rows that the other side scans, as a share of what the aggregate's input scans

Pair = tuple[ColumnRef, ColumnRef]
"""A column of the relation with the aggregate, and the equal one of another relation."""


def reduce_aggregates(plan: LogicalPlan, context: RuleContext) -> LogicalPlan:
    """Push the keys of a join below an aggregate that it joins by group columns.

    Before:  Inner[key = p.k](Aggregate[gby l.k AS key] <- l, p)
    After:   Inner[key = p.k](Aggregate[gby l.k AS key] <- Semi[l.k = p'.k](l, p'), p)
    A decorrelated subquery becomes cheap by it: only groups that the outer query asks for are
    computed. `p'` is a copy; where both are sent the same way, they are one exchange in the end.
    Never:   for a side that is large, that a copy of might differ from (LIMIT), or that keeps most
    groups; nor where a group that is left out might have raised an error (sum of bigint).
    """

    def visit(node: LogicalPlan) -> LogicalPlan:
        if not isinstance(node, Join) or node.kind == "full":
            return node
        if not any(_holds_aggregate(side) for side in node.children):
            return node
        return _inner(node, context) if is_inner(node) else _outer(node, context)

    return transform_down(plan, visit)


def _holds_aggregate(plan: LogicalPlan) -> bool:
    return any(isinstance(node, Aggregate) for node in walk(plan))


def _inner(node: Join, context: RuleContext) -> LogicalPlan:
    relations, predicates = flatten(node)
    equal = EqualColumns(predicates)
    reduced: dict[LogicalPlan, LogicalPlan] = {}
    for relation in relations:
        target = _target(relation)
        if target is None:
            continue
        options = [
            (other, pairs)
            for other in relations
            if other is not relation and (pairs := _equal_pairs(relation, other, equal))
        ]
        new = _reduced(relation, target, options, context)
        if new is not None:
            reduced[relation] = new
    return _replaced(node, reduced) if reduced else node


def _outer(node: Join, context: RuleContext) -> LogicalPlan:
    """The side of which only matching rows count."""
    left, right = node.left, node.right
    if node.kind in ("right", "semi") and (target := _target(left)):
        new = _reduced(left, target, [(right, _conjunct_pairs(node, left))], context)
        if new is not None:
            return replace(node, left=new)
    if node.kind in ("left", "semi", "anti") and (target := _target(right)):
        new = _reduced(right, target, [(left, _conjunct_pairs(node, right))], context)
        if new is not None:
            return replace(node, right=new)
    return node


def _replaced(plan: LogicalPlan, new: dict[LogicalPlan, LogicalPlan]) -> LogicalPlan:
    """The group with some of its relations replaced."""
    if plan in new:
        return new[plan]
    if is_inner(plan) or (isinstance(plan, Filter) and is_inner(plan.child)):
        return plan.with_children(tuple(_replaced(c, new) for c in plan.children))
    return plan


@dataclass(frozen=True)
class _Target:
    """An aggregate below projections and filters.

    Args:
        aggregate: The aggregate.
        groups: Its group expressions by the column of the relation that holds them.
    """

    aggregate: Aggregate
    groups: dict[int, Expression]


def _target(relation: LogicalPlan) -> _Target | None:
    """The aggregate of a relation, if rows of other groups may be left out."""
    names: dict[int, int] = {i: i for i in relation.column_ids}
    node = relation
    while isinstance(node, Filter | Project):
        if not all(is_total(e) for e in node.expressions):
            return None
        if isinstance(node, Project):
            below = {c.id: e.id for c, e in node.items if isinstance(e, ColumnRef)}
            names = {top: below[i] for top, i in names.items() if i in below}
        node = node.child
    if not isinstance(node, Aggregate) or not node.groups:
        return None
    if not all(is_total(e) for e in node.expressions):
        return None
    groups = {c.id: e for c, e in node.groups}
    return _Target(node, {top: groups[i] for top, i in names.items() if i in groups})


def _equal_pairs(
    relation: LogicalPlan, other: LogicalPlan, equal: EqualColumns
) -> tuple[Pair, ...]:
    return tuple(
        (mine.ref, theirs.ref)
        for mine in relation.columns
        for theirs in other.columns
        if mine.dtype == theirs.dtype and equal.same(mine.id, theirs.id)
    )


def _conjunct_pairs(node: Join, side: LogicalPlan) -> tuple[Pair, ...]:
    pairs = []
    for part in flatten(Join(node.left, node.right, "inner", node.condition))[1]:
        pair = column_pair(part)
        if pair is None or pair[0].dtype != pair[1].dtype:
            continue
        mine, theirs = pair if pair[0].id in side.column_ids else pair[::-1]
        if mine.id in side.column_ids and theirs.id not in side.column_ids:
            pairs.append((mine, theirs))
    return tuple(pairs)


def _reduced(
    relation: LogicalPlan,
    target: _Target,
    options: list[tuple[LogicalPlan, tuple[Pair, ...]]],
    context: RuleContext,
) -> LogicalPlan | None:
    """The relation over an aggregate of fewer groups, by the other side that leaves the fewest."""
    child = target.aggregate.child
    found: list[tuple[float, Join]] = []
    for other, pairs in options:
        matches = [(target.groups[m.id], t) for m, t in pairs if m.id in target.groups]
        if not matches or not _affordable(other, child, context) or _is_reduced(child, matches):
            continue
        condition = conjoin([make_call("eq", mine, theirs) for mine, theirs in matches])
        below, beside = (context.estimator.estimate(p) for p in (child, other))
        share = match_shares(below, beside, condition)[0]
        if share <= MAX_SHARE and _key_bytes(matches, beside) <= context.options.broadcast_bytes:
            found.append((share, _semi(child, other, matches, context)))
    if not found:
        return None
    semi = min(found, key=lambda option: option[0])[1]
    return _with_child(relation, target.aggregate, semi)


def _semi(
    child: LogicalPlan,
    other: LogicalPlan,
    matches: list[tuple[Expression, ColumnRef]],
    context: RuleContext,
) -> Join:
    copy = renumber(other, context)
    names = {old.id: new.ref for old, new in zip(other.columns, copy.columns, strict=True)}
    return Join(child, copy, "semi", conjoin([make_call("eq", m, names[t.id]) for m, t in matches]))


def _key_bytes(matches: list[tuple[Expression, ColumnRef]], beside: Estimate) -> float:
    return beside.rows * (1.0 + sum(default_width(theirs.dtype) for _, theirs in matches))


def _affordable(other: LogicalPlan, child: LogicalPlan, context: RuleContext) -> bool:
    """Whether a copy of the other side is right, and cheap beside the aggregate's input."""

    def scanned(plan: LogicalPlan) -> float:
        return sum(context.estimator.estimate(n).rows for n in walk(plan) if isinstance(n, Scan))

    return is_repeatable(other) and scanned(other) <= _MAX_COST * scanned(child)


def _is_reduced(child: LogicalPlan, matches: list[tuple[Expression, ColumnRef]]) -> bool:
    """Whether a semi join on the same columns stands below already."""
    wanted = frozenset().union(*(mine.column_ids for mine, _ in matches))
    return any(
        isinstance(node, Join) and node.kind == "semi" and wanted & node.condition.column_ids
        for node in walk(child)
    )


def _with_child(relation: LogicalPlan, aggregate: Aggregate, child: LogicalPlan) -> LogicalPlan:
    if relation is aggregate:
        return replace(aggregate, child=child)
    return relation.with_children((_with_child(relation.children[0], aggregate, child),))
