"""Parsed SQL + catalog → logical plan, with every name resolved and every type known.

In: a sqlglot query. Out: a `LogicalPlan` whose columns are numbered, and which may still hold
subquery expressions (the optimiser turns them into joins).
"""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Mapping
from dataclasses import dataclass, replace

from sqlglot import exp

from planner.catalog import Catalog, TableInfo
from planner.coercion import cast_literal, comparable, widest
from planner.errors import AnalysisError, CatalogError, UnsupportedSqlError
from planner.expressions import (
    TRUE,
    AggregateCall,
    Column,
    ColumnRef,
    Expression,
    Literal,
    SortKey,
    SubqueryExpression,
    cast,
    conjoin,
    contains,
)
from planner.functions import make_call
from planner.logical import (
    Aggregate,
    Filter,
    Join,
    JoinKind,
    Limit,
    LogicalPlan,
    NamedExpression,
    OneRow,
    Project,
    Scan,
    Sort,
    Union,
    distinct,
)
from planner.names import column_name
from planner.parse import position
from planner.scalars import build_scalar
from planner.scope import Relation, Scope
from planner.tree import walk
from planner.types import BOOLEAN, NULL, DataType

Ctes = Mapping[str, tuple[exp.CTE, "Ctes"]]
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


@dataclass(frozen=True)
class BuiltQuery:
    """A logical plan and what is known of it.

    Args:
        plan: The plan; its columns are the result's.
        tables: Catalog entries of all tables that it scans.
        ordered: Whether the outermost query asks for an order.
    """

    plan: LogicalPlan
    tables: tuple[TableInfo, ...]
    ordered: bool


def build_logical(
    query: exp.Query, catalog: Catalog, parameters: Mapping[str, DataType]
) -> BuiltQuery:
    """The logical plan of a query.

    Raises:
        AnalysisError: For unknown or ambiguous names and wrong types.
        UnsupportedSqlError: For SQL that cannot be planned in stages.
        CatalogError: For a table whose files cannot be used.
    """
    builder = _Builder(catalog, parameters)
    plan = builder.query(query, None, {})
    return BuiltQuery(plan, tuple(builder.tables.values()), query.args.get("order") is not None)


class _Builder:
    def __init__(self, catalog: Catalog, parameters: Mapping[str, DataType]) -> None:
        self.catalog = catalog
        self.parameters = parameters
        self.tables: dict[str, TableInfo] = {}
        self._ids = itertools.count()

    def column(self, name: str, dtype: DataType) -> Column:
        return Column(next(self._ids), name, dtype)

    # ------------------------------------------------------------ queries

    def query(self, node: exp.Query, outer: Scope | None, ctes: Ctes) -> LogicalPlan:
        ctes = self._with(node, ctes)
        if isinstance(node, exp.Subquery):
            if node.args.get("order") or node.args.get("limit") or node.args.get("offset"):
                plan = self.query(node.this, outer, ctes)
                return self._order_and_limit(node, plan, self._output_scope(plan, outer, ctes))
            return self.query(node.this, outer, ctes)
        if isinstance(node, exp.SetOperation):
            return self._set_operation(node, outer, ctes)
        if isinstance(node, exp.Select):
            return self._select(node, outer, ctes)
        raise UnsupportedSqlError(f"{node.key.upper()} is not staged")

    def _with(self, node: exp.Query, ctes: Ctes) -> Ctes:
        clause = node.args.get("with_")
        if clause is None:
            return ctes
        if clause.args.get("recursive"):
            raise UnsupportedSqlError("recursive CTEs are not staged")
        for cte in clause.expressions:
            ctes = {**ctes, cte.alias.lower(): (cte, ctes)}
        return ctes

    def _set_operation(
        self, node: exp.SetOperation, outer: Scope | None, ctes: Ctes
    ) -> LogicalPlan:
        if not isinstance(node, exp.Union) or node.args.get("by_name"):
            raise UnsupportedSqlError(f"{node.key.upper()} is not staged yet")
        sides = [self.query(side, outer, ctes) for side in (node.this, node.expression)]
        plan: LogicalPlan = self._union(sides)
        if node.args.get("distinct"):
            plan = distinct(plan)
        return self._order_and_limit(node, plan, self._output_scope(plan, outer, ctes))

    def _union(self, sides: list[LogicalPlan]) -> LogicalPlan:
        left, right = sides
        if len(left.columns) != len(right.columns):
            raise AnalysisError(
                f"UNION of {len(left.columns)} columns with {len(right.columns)} columns"
            )
        types = tuple(
            widest((a.dtype, b.dtype), "UNION")
            for a, b in zip(left.columns, right.columns, strict=True)
        )
        outputs = tuple(self.column(c.name, t) for c, t in zip(left.columns, types, strict=True))
        inputs: list[LogicalPlan] = []
        for side in sides:
            cast_side = self._retyped(side, types)
            mergeable = isinstance(cast_side, Union) and side is left
            inputs.extend(
                cast_side.inputs if mergeable and isinstance(cast_side, Union) else [cast_side]
            )
        return Union(tuple(inputs), outputs)

    def _retyped(self, plan: LogicalPlan, types: tuple[DataType, ...]) -> LogicalPlan:
        if tuple(c.dtype for c in plan.columns) == types:
            return plan
        items = tuple(
            (self.column(c.name, t), cast(c.ref, t))
            for c, t in zip(plan.columns, types, strict=True)
        )
        return Project(plan, items)

    def _output_scope(self, plan: LogicalPlan, outer: Scope | None, ctes: Ctes) -> Scope:
        return self._scope((Relation("", plan.columns),), outer, ctes)

    def _scope(self, relations: tuple[Relation, ...], outer: Scope | None, ctes: Ctes) -> Scope:
        return Scope(
            relations=relations,
            plan_subquery=lambda query, scope: self.query(query, scope, ctes),
            parameters=self.parameters,
            parent=outer,
        )

    # ------------------------------------------------------------ FROM

    def _from(self, node: exp.Select, outer: Scope | None, ctes: Ctes) -> tuple[LogicalPlan, Scope]:
        clause = node.args.get("from_")
        if clause is None:
            return OneRow(), self._scope((), outer, ctes)
        plan, relation = self._relation(clause.this, outer, ctes)
        scope = self._scope((relation,), outer, ctes)
        for join in [*(clause.this.args.get("joins") or []), *(node.args.get("joins") or [])]:
            plan, scope = self._join(plan, scope, join, outer, ctes)
        return plan, scope

    def _relation(
        self, node: exp.Expr, outer: Scope | None, ctes: Ctes
    ) -> tuple[LogicalPlan, Relation]:
        for part in ("laterals", "pivots", "sample", "when", "version"):
            if node.args.get(part):
                raise UnsupportedSqlError(f"{part.removesuffix('s').upper()} in FROM is not staged")
        if isinstance(node, exp.Subquery):
            plan = self.query(node, None, ctes)
            return self._aliased(plan, node)
        if not isinstance(node, exp.Table):
            raise UnsupportedSqlError(f"{node.key.upper()} in FROM is not staged")
        if isinstance(node.this, exp.Func):
            raise UnsupportedSqlError(f"table function '{node.this.name}' is not staged")
        name = ".".join(part.name for part in node.parts)
        if name.lower() in ctes:
            cte, visible = ctes[name.lower()]
            plan = self.query(cte.this, None, visible)
            plan, relation = self._aliased(plan, cte)
            return (plan, relation) if not node.alias else self._aliased(plan, node)
        return self._aliased(self._scan(name, node, ctes), node)

    def _aliased(self, plan: LogicalPlan, node: exp.Expr) -> tuple[LogicalPlan, Relation]:
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

    def _scan(self, name: str, node: exp.Table, ctes: Ctes) -> LogicalPlan:
        info = self.catalog.table(name)
        if info is None:
            known = [*self.catalog.table_names(), *(c[0].alias for c in ctes.values())]
            near = difflib.get_close_matches(name.lower(), [k.lower() for k in known], n=3)
            hint = f"; did you mean {' or '.join(repr(n) for n in near)}?" if near else ""
            line, column = position(node)
            raise AnalysisError(
                f"table '{name}' is not in the catalog{hint} "
                f"(tables: {', '.join(known) or 'none'})",
                line=line,
                column=column,
            )
        if not info.columns:
            raise CatalogError(f"table '{name}' has no columns")
        self.tables[info.name] = info
        outputs = tuple(self.column(f.name, f.dtype) for f in info.columns)
        return Scan(info.name, outputs, tuple(f.name for f in info.columns))

    def _join(
        self, left: LogicalPlan, scope: Scope, node: exp.Join, outer: Scope | None, ctes: Ctes
    ) -> tuple[LogicalPlan, Scope]:
        if isinstance(node.this, exp.Lateral):
            raise UnsupportedSqlError("LATERAL is not staged yet")
        right, relation = self._relation(node.this, outer, ctes)
        kind = _join_kind(node)
        shown = (relation,) if kind not in ("semi", "anti") else ()
        combined = self._scope((*scope.relations, relation), outer, ctes)
        combined.merged = scope.merged
        using = [c.name for c in node.args.get("using") or []]
        if str(node.args.get("method") or "").upper() == "NATURAL":
            names = {c.name.lower() for c in relation.columns}
            using = [c.name for r in scope.relations for c in r.columns if c.name.lower() in names]
        condition: Expression = TRUE
        merged = dict(scope.merged)
        if using:
            pairs = [self._using(name, scope, relation, kind) for name in using]
            condition = conjoin([p[0] for p in pairs])
            merged |= {n.lower(): p[1] for n, p in zip(using, pairs, strict=True)}
        elif node.args.get("on") is not None:
            condition = self._predicate(node.args["on"], combined, "ON")
        if kind == "cross" and condition != TRUE:
            kind = "inner"
        result = self._scope((*scope.relations, *shown), outer, ctes)
        result.merged = merged
        return Join(left, right, kind, condition), result

    def _using(
        self, name: str, scope: Scope, relation: Relation, kind: JoinKind
    ) -> tuple[Expression, Expression]:
        reference = exp.column(name)
        left = scope.column(reference)
        right = self._scope((relation,), None, {}).column(reference)
        condition = make_call("eq", *comparable(left, right))
        if kind == "full":
            return condition, make_call("coalesce", left, right)
        return condition, right if kind == "right" else left

    def _predicate(self, node: exp.Expr, scope: Scope, where: str) -> Expression:
        predicate = build_scalar(node, scope)
        if predicate.dtype not in (BOOLEAN, NULL):
            raise AnalysisError(f"{where} needs a boolean, found {predicate.dtype}")
        return cast_literal(predicate, BOOLEAN)

    # ------------------------------------------------------------ SELECT

    def _select(self, node: exp.Select, outer: Scope | None, ctes: Ctes) -> LogicalPlan:
        for part, value in node.args.items():
            if value and part not in _SELECT_PARTS:
                raise UnsupportedSqlError(f"{part.strip('_').upper()} is not staged yet")
        plan, scope = self._from(node, outer, ctes)
        if (where := node.args.get("where")) is not None:
            predicate = self._predicate(where.this, scope, "WHERE")
            if contains(predicate, AggregateCall):
                raise AnalysisError("an aggregate in WHERE; use HAVING")
            plan = Filter(plan, predicate)
        items = self._items(node, scope)
        having, keys = self._having_and_keys(node, scope, items)
        group = node.args.get("group")
        expressions = [*(e for _, e in items), *having, *(k.expr for k in keys)]
        if group is not None or having or any(contains(e, AggregateCall) for e in expressions):
            plan, rewritten = self._aggregate(plan, group, scope, items, expressions)
            items = [(n, e) for (n, _), e in zip(items, rewritten, strict=False)]
            having = rewritten[len(items) : len(items) + len(having)]
            sort_exprs = rewritten[len(items) + len(having) :]
            keys = [replace(k, expr=e) for k, e in zip(keys, sort_exprs, strict=True)]
        for predicate in having:
            plan = Filter(plan, predicate)
        return self._finish_select(node, plan, items, keys)

    def _items(self, node: exp.Select, scope: Scope) -> list[tuple[str, Expression]]:
        items: list[tuple[str, Expression]] = []
        for item in node.expressions:
            star = item.this if isinstance(item, exp.Column) else item
            if isinstance(star, exp.Star):
                qualifier = item.table if isinstance(item, exp.Column) else ""
                items.extend(self._star(star, qualifier, scope))
                continue
            if isinstance(item, exp.Aliases):
                raise UnsupportedSqlError("several aliases for one expression")
            expr = build_scalar(item, scope)
            name = column_name(item)
            items.append((name, expr))
            if isinstance(item, exp.Alias):
                scope.aliases.setdefault(name.lower(), expr)
        return items

    def _star(self, star: exp.Star, qualifier: str, scope: Scope) -> list[tuple[str, Expression]]:
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
        self, node: exp.Select, scope: Scope, items: list[tuple[str, Expression]]
    ) -> tuple[list[Expression], list[SortKey]]:
        outputs = {name.lower(): expr for name, expr in reversed(items)}
        late = replace(scope, aliases=outputs, aliases_first=True)
        having: list[Expression] = []
        if (clause := node.args.get("having")) is not None:
            having = [self._predicate(clause.this, late, "HAVING")]
        return having, self._sort_keys(node, late, [e for _, e in items])

    def _sort_keys(self, node: exp.Query, scope: Scope, outputs: list[Expression]) -> list[SortKey]:
        order = node.args.get("order")
        keys: list[SortKey] = []
        for item in order.expressions if order is not None else []:
            target = item.this if isinstance(item, exp.Ordered) else item
            if isinstance(target, exp.Literal) and not target.is_string:
                expr = _ordinal(target, outputs, "ORDER BY")
            elif (
                isinstance(target, exp.Column) and target.name.lower() == "all" and not target.table
            ):
                raise UnsupportedSqlError("ORDER BY ALL is not staged yet")
            else:
                expr = build_scalar(target, scope)
            ascending = not item.args.get("desc")
            nulls_first = item.args.get("nulls_first")
            keys.append(
                SortKey(expr, ascending, ascending if nulls_first is None else bool(nulls_first))
            )
        return keys

    def _finish_select(
        self,
        node: exp.Select,
        plan: LogicalPlan,
        items: list[tuple[str, Expression]],
        keys: list[SortKey],
    ) -> LogicalPlan:
        outputs: list[NamedExpression] = [(self.column(n, e.dtype), e) for n, e in items]
        by_expr = {e: c for c, e in reversed(outputs)}
        hidden: list[NamedExpression] = []
        resolved: list[SortKey] = []
        for key in keys:
            column = by_expr.get(key.expr)
            if column is None and not isinstance(key.expr, Literal):
                column = self.column("sort_key", key.expr.dtype)
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
        plan = self._limit(node, plan)
        if hidden:
            plan = Project(plan, tuple((c, c.ref) for c, _ in outputs))
        return plan

    def _order_and_limit(self, node: exp.Query, plan: LogicalPlan, scope: Scope) -> LogicalPlan:
        keys = self._sort_keys(node, scope, [c.ref for c in plan.columns])
        if any(not isinstance(k.expr, ColumnRef) for k in keys):
            raise UnsupportedSqlError("ORDER BY of a set operation by an expression")
        if keys:
            plan = Sort(plan, tuple(keys))
        return self._limit(node, plan)

    def _limit(self, node: exp.Query, plan: LogicalPlan) -> LogicalPlan:
        limit, offset = node.args.get("limit"), node.args.get("offset")
        if limit is None and offset is None:
            return plan
        if limit is not None and not isinstance(limit, exp.Limit):
            raise UnsupportedSqlError(f"{limit.key.upper()} is not staged")
        count = None if limit is None else _whole(limit.expression, "LIMIT")
        skip = 0 if offset is None else _whole(offset.expression, "OFFSET")
        return Limit(plan, count, skip or 0)

    # ------------------------------------------------------------ GROUP BY

    def _aggregate(
        self,
        plan: LogicalPlan,
        group: exp.Group | None,
        scope: Scope,
        items: list[tuple[str, Expression]],
        expressions: list[Expression],
    ) -> tuple[LogicalPlan, list[Expression]]:
        keys = self._group_keys(group, scope, items)
        groups = tuple((self.column(_label(e), e.dtype), e) for e in keys)
        calls: dict[AggregateCall, Column] = {}
        for expr in expressions:
            for part in walk(expr):
                if isinstance(part, AggregateCall) and part not in calls:
                    calls[part] = self.column(part.function, part.dtype)
        replaced: dict[Expression, Expression] = {e: c.ref for c, e in groups}
        replaced |= {e: c.ref for e, c in calls.items()}
        aggregate = Aggregate(plan, groups, tuple((c, e) for e, c in calls.items()))
        rewritten = [_replace(e, replaced) for e in expressions]
        for after in rewritten:
            stray = (after.column_ids & plan.column_ids) - aggregate.column_ids
            if stray:
                name = next(c.name for c in plan.columns if c.id in stray)
                raise AnalysisError(f"column '{name}' is neither aggregated nor in GROUP BY")
        return aggregate, rewritten

    def _group_keys(
        self, group: exp.Group | None, scope: Scope, items: list[tuple[str, Expression]]
    ) -> list[Expression]:
        if group is None:
            return []
        for part in ("rollup", "cube", "grouping_sets", "totals"):
            if group.args.get(part):
                raise UnsupportedSqlError(f"{part.upper().replace('_', ' ')} is not staged yet")
        if group.args.get("all"):
            plain = [e for _, e in items if not contains(e, AggregateCall)]
            return list(dict.fromkeys(plain))
        keys: list[Expression] = []
        for item in group.expressions:
            if isinstance(item, exp.Literal) and not item.is_string:
                keys.append(_ordinal(item, [e for _, e in items], "GROUP BY"))
            elif isinstance(item, exp.Tuple):
                raise UnsupportedSqlError("GROUP BY a tuple")
            else:
                keys.append(build_scalar(item, scope))
        for key in keys:
            if contains(key, AggregateCall):
                raise AnalysisError("an aggregate in GROUP BY")
        return [k for k in dict.fromkeys(keys) if not isinstance(k, Literal)] or keys[:1]


def _replace(expr: Expression, replaced: Mapping[Expression, Expression]) -> Expression:
    """`expr` with whole subtrees exchanged, the largest first."""
    if expr in replaced:
        return replaced[expr]
    if isinstance(expr, SubqueryExpression) and expr.plan.free_ids:
        columns = {e.id: r for e, r in replaced.items() if isinstance(e, ColumnRef)}
        if not expr.plan.free_ids <= set(columns):
            return expr
        raise UnsupportedSqlError("a correlated subquery over grouped columns")
    return expr.with_children(tuple(_replace(c, replaced) for c in expr.children))


def _label(expr: Expression) -> str:
    return expr.name if isinstance(expr, ColumnRef) else "group"


def _merged_name(scope: Scope, key: str) -> str:
    return next(c.name for r in scope.relations for c in r.columns if c.name.lower() == key)


def _ordinal(node: exp.Literal, outputs: list[Expression], clause: str) -> Expression:
    position_ = int(node.this) if str(node.this).isdigit() else 0
    if not 1 <= position_ <= len(outputs):
        raise AnalysisError(f"{clause} position {node.this} is not in the select list")
    expr = outputs[position_ - 1]
    if clause == "GROUP BY" and contains(expr, AggregateCall):
        raise AnalysisError(f"GROUP BY position {position_} is an aggregate")
    return expr


def _whole(node: exp.Expr, clause: str) -> int | None:
    if isinstance(node, exp.Literal) and not node.is_string and str(node.this).isdigit():
        return int(node.this)
    if isinstance(node, exp.Column) and node.name.lower() == "all":
        return None
    raise UnsupportedSqlError(f"{clause} of an expression")


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
