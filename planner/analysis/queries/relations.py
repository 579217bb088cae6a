"""Build FROM: tables, nested queries and joins, with the scope of their names."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import replace

from sqlglot import exp

from stagecoach.planner.analysis.queries.conditions import condition_of
from stagecoach.planner.analysis.queries.context import BuildContext, Ctes
from stagecoach.planner.analysis.queries.generators import (
    build_generator,
    generate,
    generated_where,
    is_generator,
    lateral_view,
)
from stagecoach.planner.analysis.queries.pivot import plan_pivot
from stagecoach.planner.analysis.queries.values import plan_range, plan_values
from stagecoach.planner.analysis.scope import Relation, Scope
from stagecoach.planner.errors import (
    AnalysisError,
    CatalogError,
    UnknownTableError,
    UnsupportedSqlError,
)
from stagecoach.planner.functions import make_call
from stagecoach.planner.functions.nested_rules import has_kind
from stagecoach.planner.plan.coercion import comparable
from stagecoach.planner.plan.expressions import (
    TRUE,
    AggregateCall,
    Column,
    ColumnRef,
    Expression,
    conjoin,
    contains,
)
from stagecoach.planner.plan.logical import (
    DedupScan,
    Filter,
    Join,
    JoinKind,
    LogicalPlan,
    OneRow,
    Project,
    Scan,
    SharedScan,
)
from stagecoach.planner.plan.shared import SharedPlan
from stagecoach.planner.syntax.parsed_query import cte_number, full_name, table_version
from stagecoach.planner.syntax.places import located
from stagecoach.planner.tree import walk


def plan_from(
    context: BuildContext, node: exp.Select, outer: Scope | None, ctes: Ctes
) -> tuple[LogicalPlan, Scope]:
    """The rows of FROM and the names that they have."""
    clause = node.args.get("from_")
    if clause is None:
        return OneRow(), context.scope((), outer, ctes)
    plan, scope = _item(context, clause.this, outer, ctes)
    for join in node.args.get("joins") or []:
        plan, scope = joined(context, plan, scope, join, outer, ctes)
    for view in node.args.get("laterals") or []:
        plan, scope = viewed(context, plan, scope, view, outer, ctes)
    return plan, scope


def viewed(
    context: BuildContext,
    plan: LogicalPlan,
    scope: Scope,
    node: exp.Lateral,
    outer: Scope | None,
    ctes: Ctes,
) -> tuple[LogicalPlan, Scope]:
    """The rows with those of LATERAL VIEW, or of a table function behind LATERAL."""
    plan, relation = lateral_view(context, plan, scope, node)
    result = context.scope((*scope.relations, relation), outer, ctes)
    result.merged, result.hidden = scope.merged, scope.hidden
    return plan, result


def _item(
    context: BuildContext, node: exp.Expr, outer: Scope | None, ctes: Ctes
) -> tuple[LogicalPlan, Scope]:
    """An item of FROM with the joins that stand in its parentheses."""
    with located(node):
        return _planned_item(context, node, outer, ctes)


def _planned_item(
    context: BuildContext, node: exp.Expr, outer: Scope | None, ctes: Ctes
) -> tuple[LogicalPlan, Scope]:
    if isinstance(node, exp.Subquery) and not isinstance(node.this, exp.Query):
        plan, scope = _item(context, node.this, outer, ctes)
        if node.alias:
            plan, relation = _aliased(_visible(context, plan, scope), node)
            scope = context.scope((relation,), outer, ctes)
    else:
        plan, relation = _relation(context, node, outer, ctes)
        scope = context.scope((relation,), outer, ctes)
    for pivot in node.args.get("pivots") or []:
        plan, scope = plan_pivot(context, (plan, scope), pivot, outer, ctes)
    for join in node.args.get("joins") or []:
        plan, scope = joined(context, plan, scope, join, outer, ctes)
    return plan, scope


def _visible(context: BuildContext, plan: LogicalPlan, scope: Scope) -> LogicalPlan:
    """The columns that `*` shows of a join."""
    merged = [(c.name, e) for c, e in merged_columns(scope)]
    others = [
        (c.name, c.ref)
        for relation in scope.relations
        for c in relation.columns
        if c.id not in scope.hidden
    ]
    items = tuple((context.column(n, e.dtype), e) for n, e in [*merged, *others])
    return Project(plan, items)


def merged_columns(scope: Scope) -> list[tuple[Column, Expression]]:
    """The columns of USING and NATURAL: as the first relation spells them, and their values."""
    columns = [c for r in scope.relations for c in r.columns]
    return [
        (next(c for c in columns if c.name.lower() == key), value)
        for key, value in scope.merged.items()
    ]


def _relation(
    context: BuildContext, node: exp.Expr, outer: Scope | None, ctes: Ctes
) -> tuple[LogicalPlan, Relation]:
    if node.args.get("sample"):
        raise UnsupportedSqlError("TABLESAMPLE: which rows it takes is up to Spark")
    for part in ("laterals", "when", "version"):
        if node.args.get(part) and not (part == "version" and _has_version(node)):
            raise UnsupportedSqlError(f"{part.removesuffix('s').upper()} in FROM is not staged")
    if isinstance(node, exp.Lateral) and isinstance(node.this, exp.Subquery):
        if _is_pivoted(node):
            raise UnsupportedSqlError("PIVOT or UNPIVOT of LATERAL")
        return _aliased(context.query(node.this, outer, ctes), node)
    if isinstance(node, exp.Subquery):
        plan = context.query(node, outer, ctes)
        return _aliased(plan, node)
    if isinstance(node, exp.Values):
        return _aliased(plan_values(context, node, ctes), node)
    if not isinstance(node, exp.Table):
        raise UnsupportedSqlError(f"{node.key.upper()} in FROM is not staged")
    if isinstance(node.this, exp.Func):
        return _aliased(_table_function(context, node.this, outer, ctes), node)
    name = full_name(node)
    if name.lower() in ctes:
        cte, visible, around = ctes[name.lower()]
        plan = _cte(context, cte, visible, around)
        plan, relation = _aliased(plan, cte)
        return (plan, relation) if not node.alias else _aliased(plan, node)
    return _aliased(_scan(context, name, node, ctes), node)


def _has_version(node: exp.Expr) -> bool:
    """Whether a constant tells the version of a table."""
    return isinstance(node, exp.Table) and table_version(node) is not None


def _is_pivoted(node: exp.Expr) -> bool:
    inner = node.this if isinstance(node, exp.Lateral) else node
    return bool(node.args.get("pivots") or inner.args.get("pivots"))


def _cte(context: BuildContext, cte: exp.CTE, visible: Ctes, around: Scope | None) -> LogicalPlan:
    """A copy of a CTE, or a scan of its one result if it is shared.

    One that reads columns of an outer query has a result for each of its rows, so it is copied.
    """
    context.named_ctes.add(number := cte_number(cte))
    known = context.shared.get(number)
    if known is not None:
        return _shared_scan(context, known)
    plan = context.query(cte.this, around, visible)
    if not context.is_shared(cte) or plan.free_ids:
        return plan
    name = f"cte:{cte.alias}"
    taken = sum(shared.name.startswith(name) for shared in context.shared.values())
    shared = SharedPlan(f"{name}#{taken + 1}" if taken else name, plan, plan.columns)
    context.shared[number] = shared
    return _shared_scan(context, shared)


def _shared_scan(context: BuildContext, shared: SharedPlan) -> LogicalPlan:
    """A scan of a shared subplan, under column numbers of its own."""
    outputs = tuple(context.column(c.name, c.dtype) for c in shared.outputs)
    origins: dict[int, int] = {}
    for new, old in zip(outputs, shared.outputs, strict=True):
        if old.id in context.sources:  # columns that are one column still are
            context.sources[new.id] = origins.setdefault(context.sources[old.id], new.id)
        if old.id in context.time_windows:
            context.time_windows.add(new.id)
    return SharedScan(shared.name, outputs, tuple(shared.columns))


def _table_function(
    context: BuildContext, node: exp.Func, outer: Scope | None, ctes: Ctes
) -> LogicalPlan:
    if isinstance(node, exp.Anonymous) and node.name.lower() == "range":
        return plan_range(context, node, ctes)
    if is_generator(node) and isinstance(node, exp.Anonymous):
        generator, is_outer = build_generator(node, context.scope((), outer, ctes))
        return generate(context, OneRow(), generator, is_outer)[0]
    raise UnsupportedSqlError(f"table function '{node.name}' is not staged")


# The only words of Spark that are not names in one place: aliases of relations.
_STRICT = frozenset(
    (
        "ANTI", "CROSS", "EXCEPT", "FULL", "INNER", "INTERSECT", "JOIN", "LATERAL", "LEFT",
        "MINUS", "NATURAL", "ON", "RIGHT", "SEMI", "UNION", "USING",
    )
)  # fmt: skip


def _refuse_word(node: exp.Expr, alias: exp.Expr | None) -> None:
    if not isinstance(alias, exp.Identifier) or alias.quoted or isinstance(node, exp.CTE):
        return
    if alias.name.upper() in _STRICT:
        with located(alias):
            raise AnalysisError(
                f"'{alias.name}' names a relation only in backticks (`{alias.name}`)"
            )


def _aliased(plan: LogicalPlan, node: exp.Expr) -> tuple[LogicalPlan, Relation]:
    alias = node.args.get("alias")
    names = [c.name for c in alias.args.get("columns") or []] if alias is not None else []
    columns = plan.columns
    if names:
        if len(names) != len(columns):
            with located(alias):
                raise AnalysisError(
                    f"alias '{node.alias}' names {len(names)} of {len(columns)} columns"
                )
        columns = tuple(replace(c, name=n) for c, n in zip(columns, names, strict=True))
    _refuse_word(node, alias.this if alias is not None else None)
    if node.alias or not isinstance(node, exp.Table) or isinstance(node.this, exp.Func):
        return plan, Relation(node.alias or "", columns, is_renamed=bool(names))
    *path, name = (part.name for part in node.parts)
    return plan, Relation(name, columns, tuple(path))


def _scan(context: BuildContext, name: str, node: exp.Table, ctes: Ctes) -> LogicalPlan:
    info = context.catalog.table(name)
    if info is None:
        known = [*context.catalog.table_names(), *(c[0].alias for c in ctes.values())]
        near = difflib.get_close_matches(name.lower(), [k.lower() for k in known], n=3)
        hint = f"; did you mean {' or '.join(repr(n) for n in near)}?" if near else ""
        is_nested = len(node.parts) > (3 if node.catalog.lower() == "spark_catalog" else 2)
        raise UnknownTableError(
            f"table '{name}' is not in the catalog{hint} (tables: {', '.join(known) or 'none'})",
            # Spark's own catalog has no nested schemas.
            condition="REQUIRES_SINGLE_PART_NAMESPACE" if is_nested else "",
        )
    if not info.columns:
        raise CatalogError(f"table '{name}' has no columns")
    context.tables[info.name] = info
    outputs = tuple(context.column(f.name, f.dtype) for f in info.columns)
    names = tuple(f.name for f in info.columns)
    if info.unique_key:
        return DedupScan(info.name, outputs, names, info.unique_key)
    return Scan(info.name, outputs, names)


def joined(
    context: BuildContext,
    left: LogicalPlan,
    scope: Scope,
    node: exp.Join,
    outer: Scope | None,
    ctes: Ctes,
) -> tuple[LogicalPlan, Scope]:
    """The rows of a join, and the names of both sides.

    Raises:
        AnalysisError: For names and conditions that do not fit, with line and column.
        UnsupportedSqlError: For joins that are not staged.
    """
    with located(node):
        return _joined(context, left, scope, node, outer, ctes)


def _joined(
    context: BuildContext,
    left: LogicalPlan,
    scope: Scope,
    node: exp.Join,
    outer: Scope | None,
    ctes: Ctes,
) -> tuple[LogicalPlan, Scope]:
    kind = _join_kind(node)
    if _is_pivoted(node.this):
        raise UnsupportedSqlError("PIVOT or UNPIVOT of a join")  # of all of it, in Spark
    if isinstance(node.this, exp.Lateral) and is_generator(node.this.this):
        return _generated_join(context, (left, scope), node, kind, outer, ctes)
    right, theirs = _right_side(context, scope, node, kind, outer, ctes)
    shown = theirs.relations if kind not in ("semi", "anti") else ()
    combined = context.scope((*scope.relations, *theirs.relations), outer, ctes)
    combined.merged = {**theirs.merged, **scope.merged}
    combined.hidden = scope.hidden | theirs.hidden
    using = list(node.args.get("using") or [])
    if str(node.args.get("method") or "").upper() == "NATURAL":
        names = {c.name.lower() for c in _shown(theirs)}
        common = {c.name.lower(): c.name for c in reversed(_shown(scope))}
        order = dict.fromkeys(c.name.lower() for c in _shown(scope))
        using = [exp.to_identifier(common[name], quoted=True) for name in order if name in names]
    condition: Expression = TRUE
    merged = {**(theirs.merged if shown else {}), **scope.merged}
    hidden = combined.hidden if shown else scope.hidden
    if using:
        pairs = [_using(name, scope, theirs, kind) for name in using]
        condition = conjoin([p[0] for p in pairs])
        keys = {n.name.lower(): p[1] for n, p in zip(using, pairs, strict=True)}
        merged = {**keys, **{name: e for name, e in merged.items() if name not in keys}}
        hidden |= condition.column_ids
    elif node.args.get("on") is not None:
        condition = condition_of(node.args["on"], combined, "ON")
        if contains(condition, AggregateCall):
            with located(node.args["on"]):
                raise AnalysisError("aggregates are not allowed in ON; compute it in a subquery")
    if kind == "cross" and condition != TRUE:
        kind = "inner"
    result = context.scope((*scope.relations, *shown), outer, ctes)
    result.merged, result.hidden = merged, hidden
    return Join(left, right, kind, condition), result


def _generated_join(
    context: BuildContext,
    left: tuple[LogicalPlan, Scope],
    node: exp.Join,
    kind: JoinKind,
    outer: Scope | None,
    ctes: Ctes,
) -> tuple[LogicalPlan, Scope]:
    """A join with `LATERAL explode(…)`, which works on each left row by itself."""
    view = node.this
    on = node.args.get("on")
    is_true = on is None or (isinstance(on, exp.Boolean) and on.this is True)
    if kind not in ("inner", "cross", "left") or node.args.get("using") or view.args.get("view"):
        raise UnsupportedSqlError(f"a {kind.upper()} JOIN with LATERAL of a table function")
    if kind == "left" and is_true:
        view = view.copy()
        view.set("outer", True)
    plan, scope = viewed(context, *left, view, outer, ctes)
    read = (part for e in plan.expressions for part in walk(e))
    if not is_true and any(
        isinstance(part, ColumnRef) and has_kind(part.dtype, "map") for part in read
    ):
        raise UnsupportedSqlError("LATERAL over a column of maps with ON, which Spark refuses")
    if kind == "left" and on is not None and not is_true:
        with located(on):
            return generated_where(plan, condition_of(on, scope, "ON")), scope
    if on is not None and not is_true:
        plan = Filter(plan, condition_of(on, scope, "ON"))
    return plan, scope


def _right_side(
    context: BuildContext,
    scope: Scope,
    node: exp.Join,
    kind: JoinKind,
    outer: Scope | None,
    ctes: Ctes,
) -> tuple[LogicalPlan, Scope]:
    """The right side of a join; that of LATERAL sees the columns of the left one."""
    if not isinstance(node.this, exp.Lateral):
        return _item(context, node.this, outer, ctes)
    if kind not in ("inner", "cross", "left"):
        raise AnalysisError(
            f"{kind.upper()} JOIN does not support LATERAL; use INNER JOIN or LEFT JOIN"
        )
    if node.args.get("using") or node.args.get("method"):
        raise AnalysisError("LATERAL cannot be joined with USING or NATURAL; use ON")
    left = context.scope(scope.relations, outer, ctes)
    left.merged, left.hidden = scope.merged, scope.hidden
    plan, relation = _relation(context, node.this, left, ctes)
    return plan, context.scope((relation,), outer, ctes)


def _shown(scope: Scope) -> list[Column]:
    """The columns that `*` shows, as they are spelled; those of USING first."""
    others = (c for r in scope.relations for c in r.columns if c.id not in scope.hidden)
    return [*(c for c, _ in merged_columns(scope)), *others]


def _first(name: exp.Identifier, scope: Scope) -> Expression:
    """The first column of a name that `*` shows: Spark asks for no more of USING and NATURAL."""
    key = name.name.lower()
    if key in scope.merged:
        return scope.merged[key]
    found = next((c.ref for c in _shown(scope) if c.name.lower() == key), None)
    return scope.column(exp.column(name.name)) if found is None else found


def _using(
    name: exp.Identifier, scope: Scope, theirs: Scope, kind: JoinKind
) -> tuple[Expression, Expression]:
    with located(name):
        left, right = _first(name, scope), _first(name, theirs)
        condition = make_call("eq", *comparable(left, right))
    if kind == "full":
        return condition, make_call("coalesce", left, right)
    return condition, right if kind == "right" else left


_SIDES: Mapping[str, JoinKind] = {"LEFT": "left", "RIGHT": "right", "FULL": "full"}


def _join_kind(node: exp.Join) -> JoinKind:
    side, kind = str(node.side or "").upper(), str(node.kind or "").upper()
    if kind in ("SEMI", "ANTI"):
        return "semi" if kind == "SEMI" else "anti"
    if side in _SIDES:
        return _SIDES[side]
    if node.args.get("on") is None and not node.args.get("using") and not node.args.get("method"):
        return "cross"
    if kind in ("", "INNER", "CROSS", "OUTER"):
        return "inner"
    raise UnsupportedSqlError(f"{kind} JOIN is not staged")
