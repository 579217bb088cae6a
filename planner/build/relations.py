"""FROM: tables, nested queries, joins.

In: the FROM clause. Out: a plan of its rows and the scope of its names.
"""

from __future__ import annotations

import difflib
from dataclasses import replace

from sqlglot import exp

from planner.build.conditions import condition_of
from planner.build.context import BuildContext, Ctes
from planner.coercion import comparable
from planner.errors import AnalysisError, CatalogError, UnsupportedSqlError
from planner.expressions import (
    TRUE,
    Expression,
    conjoin,
)
from planner.functions import make_call
from planner.logical import (
    Join,
    JoinKind,
    LogicalPlan,
    OneRow,
    Scan,
)
from planner.parse import position
from planner.scope import Relation, Scope


def plan_from(
    context: BuildContext, node: exp.Select, outer: Scope | None, ctes: Ctes
) -> tuple[LogicalPlan, Scope]:
    """The rows of FROM and the names that they have."""
    clause = node.args.get("from_")
    if clause is None:
        return OneRow(), context.scope((), outer, ctes)
    plan, relation = _relation(context, clause.this, ctes)
    scope = context.scope((relation,), outer, ctes)
    for join in [*(clause.this.args.get("joins") or []), *(node.args.get("joins") or [])]:
        plan, scope = _join(context, plan, scope, join, outer, ctes)
    return plan, scope


def _relation(context: BuildContext, node: exp.Expr, ctes: Ctes) -> tuple[LogicalPlan, Relation]:
    for part in ("laterals", "pivots", "sample", "when", "version"):
        if node.args.get(part):
            raise UnsupportedSqlError(f"{part.removesuffix('s').upper()} in FROM is not staged")
    if isinstance(node, exp.Subquery):
        plan = context.query(node, None, ctes)
        return _aliased(plan, node)
    if not isinstance(node, exp.Table):
        raise UnsupportedSqlError(f"{node.key.upper()} in FROM is not staged")
    if isinstance(node.this, exp.Func):
        raise UnsupportedSqlError(f"table function '{node.this.name}' is not staged")
    name = ".".join(part.name for part in node.parts)
    if name.lower() in ctes:
        cte, visible = ctes[name.lower()]
        plan = context.query(cte.this, None, visible)
        plan, relation = _aliased(plan, cte)
        return (plan, relation) if not node.alias else _aliased(plan, node)
    return _aliased(_scan(context, name, node, ctes), node)


def _aliased(plan: LogicalPlan, node: exp.Expr) -> tuple[LogicalPlan, Relation]:
    alias = node.args.get("alias")
    names = [c.name for c in alias.args.get("columns") or []] if alias is not None else []
    columns = plan.columns
    if names:
        if len(names) != len(columns):
            raise AnalysisError(
                f"alias '{node.alias}' names {len(names)} of {len(columns)} columns"
            )
        columns = tuple(replace(c, name=n) for c, n in zip(columns, names, strict=True))
    default = node.name if isinstance(node, exp.Table) else ""
    return plan, Relation(node.alias or default, columns)


def _scan(context: BuildContext, name: str, node: exp.Table, ctes: Ctes) -> LogicalPlan:
    info = context.catalog.table(name)
    if info is None:
        known = [*context.catalog.table_names(), *(c[0].alias for c in ctes.values())]
        near = difflib.get_close_matches(name.lower(), [k.lower() for k in known], n=3)
        hint = f"; did you mean {' or '.join(repr(n) for n in near)}?" if near else ""
        line, column = position(node)
        raise AnalysisError(
            f"table '{name}' is not in the catalog{hint} (tables: {', '.join(known) or 'none'})",
            line=line,
            column=column,
        )
    if not info.columns:
        raise CatalogError(f"table '{name}' has no columns")
    context.tables[info.name] = info
    outputs = tuple(context.column(f.name, f.dtype) for f in info.columns)
    return Scan(info.name, outputs, tuple(f.name for f in info.columns))


def _join(
    context: BuildContext,
    left: LogicalPlan,
    scope: Scope,
    node: exp.Join,
    outer: Scope | None,
    ctes: Ctes,
) -> tuple[LogicalPlan, Scope]:
    if isinstance(node.this, exp.Lateral):
        raise UnsupportedSqlError("LATERAL is not staged yet")
    right, relation = _relation(context, node.this, ctes)
    kind = _join_kind(node)
    shown = (relation,) if kind not in ("semi", "anti") else ()
    combined = context.scope((*scope.relations, relation), outer, ctes)
    combined.merged = scope.merged
    using = [c.name for c in node.args.get("using") or []]
    if str(node.args.get("method") or "").upper() == "NATURAL":
        names = {c.name.lower() for c in relation.columns}
        using = [c.name for r in scope.relations for c in r.columns if c.name.lower() in names]
    condition: Expression = TRUE
    merged = dict(scope.merged)
    if using:
        pairs = [_using(context, name, scope, relation, kind) for name in using]
        condition = conjoin([p[0] for p in pairs])
        merged |= {n.lower(): p[1] for n, p in zip(using, pairs, strict=True)}
    elif node.args.get("on") is not None:
        condition = condition_of(node.args["on"], combined, "ON")
    if kind == "cross" and condition != TRUE:
        kind = "inner"
    result = context.scope((*scope.relations, *shown), outer, ctes)
    result.merged = merged
    return Join(left, right, kind, condition), result


def _using(
    context: BuildContext, name: str, scope: Scope, relation: Relation, kind: JoinKind
) -> tuple[Expression, Expression]:
    reference = exp.column(name)
    left = scope.column(reference)
    right = context.scope((relation,), None, {}).column(reference)
    condition = make_call("eq", *comparable(left, right))
    if kind == "full":
        return condition, make_call("coalesce", left, right)
    return condition, right if kind == "right" else left


def _join_kind(node: exp.Join) -> JoinKind:
    side, kind = str(node.side or "").upper(), str(node.kind or "").upper()
    if kind in ("SEMI", "ANTI"):
        return "semi" if kind == "SEMI" else "anti"
    if side in ("LEFT", "RIGHT", "FULL"):
        return {"LEFT": "left", "RIGHT": "right", "FULL": "full"}[side]  # type: ignore[return-value]
    if node.args.get("on") is None and not node.args.get("using") and not node.args.get("method"):
        return "cross"
    if kind in ("", "INNER", "CROSS", "OUTER"):
        return "inner"
    raise UnsupportedSqlError(f"{kind} JOIN is not staged")
