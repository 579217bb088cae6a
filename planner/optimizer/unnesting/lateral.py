"""Turn lateral joins, whose right side reads columns of the left one, into plain joins."""

from __future__ import annotations

from stagecoach.planner.errors import UnsupportedSqlError
from stagecoach.planner.functions import make_call
from stagecoach.planner.optimizer.context import RuleContext
from stagecoach.planner.optimizer.convert_outer_joins import null_rejected
from stagecoach.planner.optimizer.unnesting.domain import Domain
from stagecoach.planner.optimizer.unnesting.one_row import Chain, hoist, one_row, put_beside
from stagecoach.planner.optimizer.unnesting.pull_up import pull_up
from stagecoach.planner.optimizer.unnesting.push_down import push_down
from stagecoach.planner.plan.expressions import (
    TRUE,
    Call,
    Expression,
    Literal,
    conjoin,
    conjuncts,
    substitute,
)
from stagecoach.planner.plan.logical import (
    Filter,
    Generate,
    Join,
    LogicalPlan,
    NamedExpression,
    OneRow,
    Project,
    Sort,
)
from stagecoach.planner.plan.rewriting import with_columns
from stagecoach.planner.types import BOOLEAN


def is_lateral(plan: Join) -> bool:
    """Whether the right side reads columns of the left one."""
    return not plan.right.free_ids.isdisjoint(plan.left.column_ids)


def unnest_lateral(plan: Join, context: RuleContext) -> LogicalPlan:
    """The join without references from its right side to its left one.

    Raises:
        UnsupportedSqlError: For RIGHT and FULL joins, whose meaning would be open.
    """
    if plan.kind in ("right", "full"):
        raise UnsupportedSqlError(f"a {plan.kind.upper()} JOIN LATERAL")
    return with_columns(_unnested(plan, context), plan.columns)


def _unnested(plan: Join, context: RuleContext) -> LogicalPlan:
    if plan.kind in ("inner", "cross", "left"):
        chain = one_row(plan.right)
        if chain is not None:
            return _one_row(plan, chain, context)
        simple = _generated(plan) if plan.kind != "left" else None
        simple = simple or _pulled_up(plan, context)
        if simple is not None:
            return simple
    left, right = hoist(plan.left, plan.right, context)
    domain = Domain(left, right.free_ids & left.column_ids, context)
    pushed = push_down(right, domain, context)
    on = [*conjuncts(plan.condition), *pushed.matches(domain)]
    kind = "inner" if plan.kind == "cross" else plan.kind
    return Join(left, pushed.plan, kind, conjoin(on))


def _one_row(plan: Join, chain: Chain, context: RuleContext) -> LogicalPlan:
    """One row at the most: its columns are computed beside the left rows."""
    beside = put_beside(plan.left, chain, context)
    on = substitute(plan.condition, beside.values)
    keep = [*conjuncts(beside.keep), *conjuncts(on)]
    items: list[NamedExpression] = [(c, c.ref) for c in plan.left.columns]
    if plan.kind == "left":
        items += [(c, _if(keep, beside.values[c.id])) for c in plan.right.columns]
        return Project(beside.plan, tuple(items))
    items += [(c, beside.values[c.id]) for c in plan.right.columns]
    kept = Filter(beside.plan, conjoin(keep)) if keep else beside.plan
    return Project(kept, tuple(items))


def _if(keep: list[Expression], value: Expression) -> Expression:
    if not keep:
        return value
    return make_call("case", conjoin(keep), value, Literal(value.dtype, None))


def _generated(plan: Join) -> LogicalPlan | None:
    """Generators, projections and filters over no table: they work on the left rows directly."""
    steps: list[LogicalPlan] = []
    node = plan.right
    while isinstance(node, Project | Filter | Generate | Sort):
        steps.append(node)
        node = node.child
    if not isinstance(node, OneRow) or not any(isinstance(s, Generate) for s in steps):
        return None
    result = plan.left
    for step in reversed(steps):
        if isinstance(step, Sort):
            continue
        if isinstance(step, Project):
            items: dict[int, NamedExpression] = {c.id: (c, c.ref) for c in result.columns}
            items |= {c.id: (c, e) for c, e in step.items}
            result = Project(result, tuple(items.values()))
        else:
            result = step.with_children((result,))
    return Filter(result, plan.condition) if plan.condition != TRUE else result


def _pulled_up(plan: Join, context: RuleContext) -> LogicalPlan | None:
    """Correlated conjuncts become the join condition, computed columns are computed above it."""
    right = plan.right
    values: dict[int, Expression] = {c.id: c.ref for c in plan.right.columns}
    while isinstance(right, Project | Sort):
        if isinstance(right, Project):
            below = {c.id: e for c, e in right.items}
            values = {i: substitute(e, below) for i, e in values.items()}
        right = right.child
    pulled = pull_up(right, keep_rows=True)
    if pulled is None:
        return None
    right, parts = pulled
    on = conjoin([*conjuncts(substitute(plan.condition, values)), *parts])
    made: list[NamedExpression] = [(c, c.ref) for c in plan.left.columns]
    if plan.kind != "left":
        joined = Join(plan.left, right, "inner" if on != TRUE else "cross", on)
        made += [(c, values[c.id]) for c in plan.right.columns]
        return Project(joined, tuple(made))
    marker = context.column("matched", BOOLEAN)
    right = Project(right, (*((c, c.ref) for c in right.columns), (marker, TRUE)))
    matched = make_call("is_not_null", marker.ref)
    for column in plan.right.columns:
        value = values[column.id]
        tested = isinstance(value, Call) and value.function == "is_not_null"
        strict = not tested and null_rejected(value) & right.column_ids
        made.append((column, value if strict else _if([matched], value)))
    return Project(Join(plan.left, right, "left", on), tuple(made))
