"""Join subqueries of at most one row to each outer row.

These are chains of projections and filters over an aggregate without groups, or over no table. The
columns of the aggregate are joined to the outer plan, and the columns of the subquery become
expressions over them, with the condition under which the row exists. The number of outer rows does
not change.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from stagecoach.planner.functions import make_call
from stagecoach.planner.optimizer.context import RuleContext
from stagecoach.planner.optimizer.unnesting.domain import Domain
from stagecoach.planner.optimizer.unnesting.empty_groups import restored
from stagecoach.planner.optimizer.unnesting.pull_up import pull_up
from stagecoach.planner.optimizer.unnesting.push_down import push_down
from stagecoach.planner.plan.expressions import (
    TRUE,
    Call,
    Column,
    ColumnRef,
    Expression,
    conjoin,
    conjuncts,
    substitute,
    substitute_operands,
)
from stagecoach.planner.plan.logical import (
    Aggregate,
    Filter,
    Join,
    Limit,
    LogicalPlan,
    OneRow,
    Project,
    Sort,
)
from stagecoach.planner.plan.rewriting import map_expressions
from stagecoach.planner.tree import transform_up


@dataclass(frozen=True)
class Chain:
    """Projections and filters over one row.

    Args:
        base: The aggregate or the one row without columns.
        values: The subquery's columns as expressions over the base.
        keep: What must hold for the row to exist.
    """

    base: Aggregate | OneRow
    values: Mapping[int, Expression]
    keep: Expression


@dataclass(frozen=True)
class Beside:
    """An outer plan with a subquery's one row beside each of its rows."""

    plan: LogicalPlan
    values: Mapping[int, Expression]
    keep: Expression


def one_row(plan: LogicalPlan) -> Chain | None:
    """The plan as a chain over one row, or None."""
    values: dict[int, Expression] = {c.id: c.ref for c in plan.columns}
    keep: list[Expression] = []
    while True:
        match plan:
            case Project():
                below = {c.id: e for c, e in plan.items}
                values = {i: substitute(e, below) for i, e in values.items()}
                keep = [substitute(p, below) for p in keep]
                plan = plan.child
            case Filter():
                keep = [*conjuncts(plan.predicate), *keep]
                plan = plan.child
            case Sort():
                plan = plan.child
            case Limit() if not plan.offset and plan.limit != 0:
                plan = plan.child
            case Aggregate() if not plan.groups:
                return Chain(plan, values, conjoin(keep))
            case OneRow():
                return Chain(plan, values, conjoin(keep))
            case _:
                return None


def put_beside(outer: LogicalPlan, chain: Chain, context: RuleContext) -> Beside:
    """The outer plan with the chain's row beside each of its rows."""
    if isinstance(chain.base, OneRow):
        return Beside(outer, chain.values, chain.keep)
    plan, empty = _aggregated(outer, chain.base, context)
    values = {i: substitute(e, empty) for i, e in chain.values.items()}
    return Beside(plan, values, substitute(chain.keep, empty))


def crossed(outer: LogicalPlan, inner: LogicalPlan) -> LogicalPlan:
    """All pairs; the one row without columns adds nothing to the other side."""
    return inner if isinstance(outer, OneRow) else Join(outer, inner, "cross", TRUE)


def _aggregated(
    outer: LogicalPlan, inner: Aggregate, context: RuleContext
) -> tuple[LogicalPlan, dict[int, Expression]]:
    """The outer plan with an aggregate's columns, and how to read those that may be empty."""
    if inner.free_ids.isdisjoint(outer.column_ids):
        return crossed(outer, inner), {}
    empty = {c.id: restored(c, call) for c, call in inner.aggregates}
    empty = {i: e for i, e in empty.items() if not isinstance(e, ColumnRef)}
    simple = _by_equalities(outer, inner, context)
    if simple is not None:
        return simple, empty
    outer, hoisted = hoist(outer, inner, context)
    assert isinstance(hoisted, Aggregate)
    domain = Domain(outer, hoisted.free_ids & outer.column_ids, context)
    pushed = push_down(hoisted.child, domain, context, domain.ids)
    # Values that find no row have no group: the left join gives NULLs for them.
    groups = tuple((c, c.ref) for c in pushed.bound.values())
    calls = tuple((c, substitute_operands(e, pushed.refs)) for c, e in hoisted.aggregates)
    grouped = Aggregate(pushed.plan, groups, calls)
    return Join(outer, grouped, "left", conjoin(pushed.matches(domain))), empty


def _by_equalities(
    outer: LogicalPlan, inner: Aggregate, context: RuleContext
) -> LogicalPlan | None:
    """The usual case: correlated by equalities alone, so that their columns are the groups."""
    pulled = pull_up(inner.child, keep_rows=True)
    if pulled is None or not pulled[1]:
        return None
    below, correlation = pulled
    if any(not e.column_ids <= below.column_ids for e in inner.expressions):
        return None
    groups: list[tuple[Column, Expression]] = []
    matches: list[Expression] = []
    for part in correlation:
        sides = _sides(part, below)
        if sides is None:
            return None
        mine, theirs = sides
        column = context.column("key", mine.dtype)
        groups.append((column, mine))
        matches.append(make_call("eq", theirs, column.ref))
    return Join(outer, Aggregate(below, tuple(groups), inner.aggregates), "left", conjoin(matches))


def _sides(part: Expression, inner: LogicalPlan) -> tuple[Expression, Expression] | None:
    """The operands of a correlated equality: the subquery's own, the outer query's."""
    if isinstance(part, Call) and part.function == "eq":
        for mine, theirs in (part.args, part.args[::-1]):
            if mine.column_ids <= inner.column_ids and theirs.column_ids.isdisjoint(
                inner.column_ids
            ):
                return mine, theirs
    return None


def hoist(
    outer: LogicalPlan, inner: LogicalPlan, context: RuleContext
) -> tuple[LogicalPlan, LogicalPlan]:
    """Compute outer operands of the subquery's equalities in the outer plan.

    `CAST(o.k AS BIGINT) = t.k` binds nothing as it stands; with the cast as a column of the outer
    plan it does. Join keys are computed for each outer row in any case.
    """
    made: dict[Expression, Column] = {}

    def operand(mine: Expression, other: Expression) -> Expression:
        ids = mine.column_ids
        computed = ids and ids <= outer.column_ids and not isinstance(mine, ColumnRef)
        if not computed or not other.column_ids.isdisjoint(outer.column_ids):
            return mine
        if mine not in made:
            made[mine] = context.column("key", mine.dtype)
        return made[mine].ref

    def conjunct(part: Expression) -> Expression:
        if not (isinstance(part, Call) and part.function in ("eq", "eq_null_safe")):
            return part
        first, second = part.args
        return part.with_children((operand(first, second), operand(second, first)))

    def predicate(expr: Expression) -> Expression:
        parts = list(conjuncts(expr))
        new = [conjunct(p) for p in parts]
        changed = any(a is not b for a, b in zip(parts, new, strict=True))
        return conjoin(new) if changed else expr

    def visit(node: LogicalPlan) -> LogicalPlan:
        if isinstance(node, Filter) or (isinstance(node, Join) and node.kind == "inner"):
            return map_expressions(node, predicate)
        return node

    inner = transform_up(inner, visit)
    if made:
        known = {e: c.ref for e, c in made.items()}  # wherever else they stand

        def everywhere(expr: Expression) -> Expression:
            return transform_up(expr, lambda e: known.get(e, e))

        inner = transform_up(inner, lambda node: map_expressions(node, everywhere))
        items = tuple((c, c.ref) for c in outer.columns)
        outer = Project(outer, (*items, *((c, e) for e, c in made.items())))
    return outer, inner
