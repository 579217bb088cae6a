"""SELECT: from the rows of FROM to the select list.

In: a SELECT. Out: its plan.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from planner.build.conditions import condition_of
from planner.build.context import BuildContext, Ctes
from planner.build.grouping import plan_aggregate
from planner.build.relations import plan_from
from planner.build.sorting import limited, sort_keys
from planner.errors import AnalysisError, UnsupportedSqlError
from planner.expressions import (
    AggregateCall,
    Expression,
    Literal,
    SortKey,
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
from planner.names import column_name
from planner.scalars import build_scalar
from planner.scope import Scope

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
    if (where := node.args.get("where")) is not None:
        predicate = condition_of(where.this, scope, "WHERE")
        if contains(predicate, AggregateCall):
            raise AnalysisError("an aggregate in WHERE; use HAVING")
        plan = Filter(plan, predicate)
    items = _items(node, scope)
    having, keys = _having_and_keys(node, scope, items)
    group = node.args.get("group")
    expressions = [*(e for _, e in items), *having, *(k.expr for k in keys)]
    if group is not None or having or any(contains(e, AggregateCall) for e in expressions):
        plan, rewritten = plan_aggregate(context, plan, group, scope, items, expressions)
        items = [(n, e) for (n, _), e in zip(items, rewritten, strict=False)]
        having = rewritten[len(items) : len(items) + len(having)]
        sort_exprs = rewritten[len(items) + len(having) :]
        keys = [replace(k, expr=e) for k, e in zip(keys, sort_exprs, strict=True)]
    for predicate in having:
        plan = Filter(plan, predicate)
    return _finish_select(context, node, plan, items, keys)


def _items(node: exp.Select, scope: Scope) -> list[tuple[str, Expression]]:
    items: list[tuple[str, Expression]] = []
    for item in node.expressions:
        star = item.this if isinstance(item, exp.Column) else item
        if isinstance(star, exp.Star):
            qualifier = item.table if isinstance(item, exp.Column) else ""
            items.extend(_star(star, qualifier, scope))
            continue
        if isinstance(item, exp.Aliases):
            raise UnsupportedSqlError("several aliases for one expression")
        expr = build_scalar(item, scope)
        name = column_name(item)
        items.append((name, expr))
        if isinstance(item, exp.Alias):
            scope.aliases.setdefault(name.lower(), expr)
    return items


def _star(star: exp.Star, qualifier: str, scope: Scope) -> list[tuple[str, Expression]]:
    if any(star.args.get(k) for k in ("except_", "replace", "rename", "except")):
        raise UnsupportedSqlError("* with EXCEPT is not staged yet")
    relations = [
        r for r in scope.relations if not qualifier or r.alias.lower() == qualifier.lower()
    ]
    if not relations:
        raise AnalysisError(
            f"table or alias '{qualifier}' not found" if qualifier else "* without FROM"
        )
    items: list[tuple[str, Expression]] = []
    if not qualifier:
        items = [(_merged_name(scope, key), e) for key, e in scope.merged.items()]
    for relation in relations:
        for column in relation.columns:
            if qualifier or column.name.lower() not in scope.merged:
                items.append((column.name, column.ref))
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
    plan = limited(node, plan)
    if hidden:
        plan = Project(plan, tuple((c, c.ref) for c, _ in outputs))
    return plan


def _merged_name(scope: Scope, key: str) -> str:
    return next(c.name for r in scope.relations for c in r.columns if c.name.lower() == key)
