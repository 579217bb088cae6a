"""SELECT: from the rows of FROM to the select list.

In: a SELECT. Out: its plan.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from planner.build.conditions import condition_of
from planner.build.context import BuildContext, Ctes
from planner.build.generators import generated_columns, generator_items, plan_generators
from planner.build.grouping import outer_aggregates, plan_aggregate
from planner.build.places import located
from planner.build.relations import plan_from
from planner.build.sorting import limited, sort_keys
from planner.build.stars import is_star, star_items
from planner.build.windows import check_place, misplaced, plan_windows, qualify_condition
from planner.errors import AnalysisError, UnsupportedSqlError
from planner.expressions import (
    AggregateCall,
    Expression,
    Literal,
    SortKey,
    WindowCall,
    contains,
)
from planner.logical import (
    Filter,
    LogicalPlan,
    NamedExpression,
    Project,
    Sort,
    distinct,
)
from planner.names import item_name
from planner.scalars import build_scalar
from planner.scalars.windows import named_windows
from planner.scope import Scope
from planner.tree import walk

_SELECT_PARTS = frozenset(
    (
        "expressions",
        "from_",
        "joins",
        "where",
        "group",
        "having",
        "order",
        "limit",
        "offset",
        "distinct",
        "with_",
        "hint",
        "kind",
        "windows",
        "qualify",
        "sort",
        "distribute",
        "cluster",
        "laterals",
    )
)


def plan_select(
    context: BuildContext, node: exp.Select, outer: Scope | None, ctes: Ctes
) -> LogicalPlan:
    """The plan of a SELECT."""
    for part, value in node.args.items():
        if value and part not in _SELECT_PARTS:
            raise UnsupportedSqlError(f"{part.strip('_').upper()} is not staged yet")
    plan, scope = plan_from(context, node, outer, ctes)
    return select_from(context, node, plan, scope)


def select_from(
    context: BuildContext, node: exp.Select, plan: LogicalPlan, scope: Scope
) -> LogicalPlan:
    """The plan of a SELECT over given rows, without its FROM."""
    if (where := node.args.get("where")) is not None:
        predicate = condition_of(where.this, scope, "WHERE")
        if outer_aggregates(predicate, plan) or any(
            isinstance(part, AggregateCall) and not part.column_ids - plan.column_ids
            for part in walk(predicate)
        ):
            with located(where.this):
                raise AnalysisError("an aggregate in WHERE; use HAVING")
        plan = Filter(plan, predicate)
    scope.windows = named_windows(node)
    items = _items(node, scope)
    scope.windows = None
    having, keys = _having_and_keys(node, scope, items)
    if any(contains(e, WindowCall) for e in having):
        raise misplaced(node.args["having"], "in HAVING; use QUALIFY or a subquery")
    qualify = qualify_condition(node, scope, items)
    group = node.args.get("group")
    expressions = [*(e for _, e in items), *having, *(k.expr for k in keys), *qualify]
    if group is not None or having or any(contains(e, AggregateCall) for e in expressions):
        plan, rewritten = plan_aggregate(context, plan, node, scope, items, expressions)
        items = [(n, e) for (n, _), e in zip(items, rewritten, strict=False)]
        having = rewritten[len(items) : len(items) + len(having)]
        sort_exprs = rewritten[len(items) + len(having) :]
        keys = [replace(k, expr=e) for k, e in zip(keys, sort_exprs, strict=False)]
        qualify = rewritten[len(rewritten) - len(qualify) :]
    for predicate in having:
        plan = Filter(plan, predicate)
    if any(contains(e, WindowCall) for e in expressions):
        over = [*(e for _, e in items), *(k.expr for k in keys), *qualify]
        plan, over = plan_windows(context, plan, over)
        items = [(n, e) for (n, _), e in zip(items, over, strict=False)]
        keys = [replace(k, expr=e) for k, e in zip(keys, over[len(items) :], strict=False)]
        qualify = over[len(over) - len(qualify) :]
    for predicate in qualify:
        plan = Filter(plan, predicate)
    if generated_columns(expressions):
        if any(contains(e, WindowCall) for e in expressions) or generated_columns(having):
            raise UnsupportedSqlError("a generator beside window functions or in HAVING")
        over = [*(e for _, e in items), *(k.expr for k in keys)]
        plan, over = plan_generators(context, plan, over)
        items = [(n, e) for (n, _), e in zip(items, over, strict=False)]
        keys = [replace(k, expr=e) for k, e in zip(keys, over[len(items) :], strict=True)]
    return _finish_select(context, node, plan, items, keys)


def _items(node: exp.Select, scope: Scope) -> list[tuple[str, Expression]]:
    items: list[tuple[str, Expression]] = []
    for item in node.expressions:
        if is_star(item):
            items.extend(star_items(item, scope))
            continue
        if (generated := generator_items(item, scope)) is not None:
            items.extend(generated)
            if isinstance(item, exp.Alias | exp.Aliases):
                scope.aliases = {**{n.lower(): e for n, e in generated}, **scope.aliases}
            continue
        expr = build_scalar(item, scope)
        check_place(expr, item)
        name = item_name(item)
        items.append((name, expr))
        if isinstance(item, exp.Alias):
            scope.aliases.setdefault(name.lower(), expr)
    return items


def _having_and_keys(
    node: exp.Select, scope: Scope, items: list[tuple[str, Expression]]
) -> tuple[list[Expression], list[SortKey]]:
    outputs = {name.lower(): expr for name, expr in reversed(items)}
    late = replace(scope, aliases=outputs, aliases_first=True)
    having: list[Expression] = []
    if (clause := node.args.get("having")) is not None:
        having = [condition_of(clause.this, late, "HAVING")]
    return having, sort_keys(node, late, [e for _, e in items])


def _finish_select(
    context: BuildContext,
    node: exp.Select,
    plan: LogicalPlan,
    items: list[tuple[str, Expression]],
    keys: list[SortKey],
) -> LogicalPlan:
    outputs: list[NamedExpression] = [(context.column(n, e.dtype), e) for n, e in items]
    by_expr = {e: c for c, e in reversed(outputs)}
    hidden: list[NamedExpression] = []
    resolved: list[SortKey] = []
    for key in keys:
        column = by_expr.get(key.expr)
        if column is None and not isinstance(key.expr, Literal):
            column = context.column("sort_key", key.expr.dtype)
            hidden.append((column, key.expr))
            by_expr[key.expr] = column
        if column is not None:
            resolved.append(replace(key, expr=column.ref))
    plan = Project(plan, (*outputs, *hidden))
    if node.args.get("distinct") is not None:
        if node.args["distinct"].args.get("on"):
            raise UnsupportedSqlError("DISTINCT ON")
        if hidden:
            raise AnalysisError("ORDER BY of a DISTINCT query must use its select items")
        plan = distinct(plan)
    if resolved:
        plan = Sort(plan, tuple(resolved))
    plan = limited(node, plan, context.scope((), None, {}))
    if hidden:
        plan = Project(plan, tuple((c, c.ref) for c, _ in outputs))
    return plan
