"""Build GROUP BY: an aggregate operator, and the select list over its columns."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace

from sqlglot import exp

from stagecoach.planner.aggregates import make_aggregate
from stagecoach.planner.analysis.queries.canonical import SameExpressions
from stagecoach.planner.analysis.queries.context import BuildContext
from stagecoach.planner.analysis.queries.generators import generated_columns
from stagecoach.planner.analysis.queries.grouping_sets import (
    GroupingSets,
    expand_sets,
    grouping_sets,
    refuse_grouping,
)
from stagecoach.planner.analysis.queries.sorting import is_ordinal, ordinal
from stagecoach.planner.analysis.queries.time_windows import merge_sessions, session_of
from stagecoach.planner.analysis.scalars import build_scalar
from stagecoach.planner.analysis.scope import Scope
from stagecoach.planner.errors import AnalysisError, UnsupportedSqlError
from stagecoach.planner.plan.expressions import (
    AggregateCall,
    Column,
    ColumnRef,
    Expression,
    Literal,
    WindowCall,
    contains,
)
from stagecoach.planner.plan.logical import (
    Aggregate,
    Filter,
    LogicalPlan,
    NamedExpression,
)
from stagecoach.planner.plan.rewriting import map_expressions
from stagecoach.planner.plan.subqueries import SubqueryExpression
from stagecoach.planner.syntax.places import located
from stagecoach.planner.tree import transform_up, walk


def plan_aggregate(
    context: BuildContext,
    plan: LogicalPlan,
    node: exp.Select,
    scope: Scope,
    items: list[tuple[str, Expression]],
    expressions: list[Expression],
) -> tuple[LogicalPlan, list[Expression]]:
    """The aggregate below a SELECT, and its expressions rewritten over the aggregate."""
    group = node.args.get("group")
    with located(group) if group is not None else nullcontext():
        keys = _grouping(context, plan, group, scope, items)
    calls: dict[AggregateCall, Column] = {}
    for expr in expressions:
        for part in (*walk(expr), *outer_aggregates(expr, plan)):
            if isinstance(part, AggregateCall) and part not in calls:
                calls[part] = context.column(part.function, part.dtype)
    replaced = keys.replaced | {e: c.ref for e, c in calls.items()}
    for call in calls:
        if keys.session is not None and keys.session.id in call.column_ids:
            raise UnsupportedSqlError("an aggregate of the session that it groups by")
    aggregates = (*((c, e) for e, c in calls.items()), *keys.aggregates)
    if not keys.groups and not aggregates:  # one row, though nothing is read of it
        count = make_aggregate("count", ())
        aggregates = ((context.column(count.function, count.dtype), count),)
    aggregate = Aggregate(keys.plan, keys.groups, aggregates)
    same = SameExpressions(replaced)
    rewritten = [_replace(e, same, replaced) for e in expressions]
    place = calling(node, ("grouping", "grouping_id"))
    for after in rewritten:
        with located(place):
            refuse_grouping(after, keys.sets)
        stray = (after.column_ids & plan.column_ids) - aggregate.column_ids
        if stray:
            name = next(c.name for c in plan.columns if c.id in stray)
            with located(_named(node, name)):
                if contains(after, SubqueryExpression):
                    raise UnsupportedSqlError(f"a subquery over '{name}', which is not in GROUP BY")
                raise AnalysisError(f"column '{name}' is neither aggregated nor in GROUP BY")
    return aggregate, rewritten


def outer_aggregates(expr: Expression, plan: LogicalPlan) -> list[AggregateCall]:
    """Aggregates of the plan's columns that stand in the conditions of its subqueries."""
    nodes = [n for s in walk(expr) if isinstance(s, SubqueryExpression) for n in walk(s.plan)]
    return [
        part
        for node in nodes
        if isinstance(node, Filter)
        for part in walk(node.predicate)
        if isinstance(part, AggregateCall)
        and part.column_ids
        and part.column_ids <= plan.column_ids
    ]


def _named(node: exp.Select, name: str) -> exp.Expr:
    """Where a SELECT reads a column, for messages."""
    parts = [*node.expressions, *(node.args.get(k) for k in ("having", "order", "qualify"))]
    columns = (c for part in parts if part is not None for c in part.find_all(exp.Column))
    return next((c for c in columns if c.name.lower() == name.lower()), node)


def calling(node: exp.Select, names: tuple[str, ...]) -> exp.Expr:
    """Where a SELECT calls one of these functions, for messages."""
    calls = (c for c in node.find_all(exp.Anonymous) if c.name.lower() in names)
    return next(calls, node)


@dataclass(frozen=True)
class _Grouping:
    """What an aggregate groups by.

    Args:
        plan: Its input.
        groups: Its groups.
        replaced: What stands for the keys above it.
        sets: The grouping sets, if there are several.
        session: The session window among the keys, before sessions that meet are one.
        aggregates: What the value of that session needs.
    """

    plan: LogicalPlan
    groups: tuple[NamedExpression, ...]
    replaced: dict[Expression, Expression]
    sets: GroupingSets | None = None
    session: ColumnRef | None = None
    aggregates: tuple[tuple[Column, AggregateCall], ...] = ()


def _grouping(
    context: BuildContext,
    plan: LogicalPlan,
    group: exp.Group | None,
    scope: Scope,
    items: list[tuple[str, Expression]],
) -> _Grouping:
    if group is None:
        return _Grouping(plan, (), {})
    if group.args.get("totals"):
        raise UnsupportedSqlError("TOTALS is not SQL of Spark")
    sets = grouping_sets(group, lambda item: _key(item, scope, items))
    if sets is not None:
        if session_of(scope, sets.keys) is not None:  # Spark merges those of one key only
            raise UnsupportedSqlError("sessions in GROUPING SETS")
        expanded, groups, replaced = expand_sets(context, plan, sets)
        return _Grouping(expanded, groups, replaced, sets)
    keys, hidden = _group_keys(group, scope, items)
    named = tuple((context.column(_label(e), e.dtype), e) for e in (*keys, *hidden))
    above: dict[Expression, Expression] = {e: c.ref for c, e in named[: len(keys)]}
    context.time_windows.update(
        c.id for c, e in named if isinstance(e, ColumnRef) and e.id in context.time_windows
    )
    session = session_of(scope, tuple(e for _, e in named))
    if session is None:
        return _Grouping(plan, named, above)
    merged, groups, end, value = merge_sessions(context, plan, named, session)
    context.sessions.add(value)
    return _Grouping(merged, groups, {**above, session: value}, None, session, (end,))


def _group_keys(
    group: exp.Group,
    scope: Scope,
    items: list[tuple[str, Expression]],
) -> tuple[list[Expression], list[Expression]]:
    """The keys, and those that only a row `(a, b)` groups by: nothing above may read them."""
    if group.args.get("all") or _is_all(group, scope):
        computed = (AggregateCall, WindowCall)
        plain = [e for _, e in items if not any(contains(e, kind) for kind in computed)]
        if generated_columns(plain):
            raise UnsupportedSqlError("GROUP BY ALL over a generator")
        return list(dict.fromkeys(plain)), []
    keys: list[Expression] = []
    hidden: list[Expression] = []
    for item in group.expressions:
        row = item.unnest()
        if isinstance(row, exp.Tuple):  # a number in it is a constant, not a position
            hidden.extend(_key(part, scope, None) for part in row.expressions)
        else:
            keys.append(_key(item, scope, items))
    unique = list(dict.fromkeys(keys))
    shown = [k for k in unique if not isinstance(k, Literal)] or unique[:1]
    return shown, [k for k in dict.fromkeys(hidden) if k not in shown]


def _is_all(group: exp.Group, scope: Scope) -> bool:
    """Whether the clause is GROUP BY ALL: a column of FROM by that name goes first."""
    (item, *more) = group.expressions or [None]
    if more or not isinstance(item, exp.Column) or item.table or item.name.lower() != "all":
        return False
    return replace(scope, aliases={}).find(["all"]) is None


def _key(item: exp.Expr, scope: Scope, items: list[tuple[str, Expression]] | None) -> Expression:
    """A key; without `items`, numbers are no positions among them."""
    with located(item):
        return _checked_key(item, scope, items)


def _checked_key(
    item: exp.Expr, scope: Scope, items: list[tuple[str, Expression]] | None
) -> Expression:
    if items is not None and is_ordinal(item):
        key = ordinal(item, [e for _, e in items], "GROUP BY")
    else:
        key = build_scalar(item, scope)
    if contains(key, AggregateCall):
        raise AnalysisError("aggregates are not allowed in GROUP BY")
    if contains(key, WindowCall):
        raise AnalysisError("window functions are not allowed in GROUP BY; use a subquery")
    if generated_columns([key]):
        raise AnalysisError("generators are not allowed in GROUP BY; use LATERAL VIEW")
    return key


def _replace(
    expr: Expression, same: SameExpressions, replaced: Mapping[Expression, Expression]
) -> Expression:
    """`expr` with whole subtrees exchanged, the largest first."""
    found = same.get(expr)
    if found is not None:
        return found
    if isinstance(expr, SubqueryExpression) and expr.plan.free_ids:
        outer = {e: r for e, r in replaced.items() if e.column_ids}  # count(*) is its own there
        below = SameExpressions(outer)
        plan = transform_up(
            expr.plan, lambda node: map_expressions(node, lambda e: _replace(e, below, outer))
        )
        expr = replace(expr, plan=plan)
    return expr.with_children(tuple(_replace(c, same, replaced) for c in expr.children))


def _label(expr: Expression) -> str:
    return expr.name if isinstance(expr, ColumnRef) else "group"
