"""Build PIVOT and UNPIVOT.

PIVOT becomes one aggregate with a filter per value, UNPIVOT copies of the rows. Source of the
rules: Spark's `ResolvePivot` and `ResolveUnpivot`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from sqlglot import exp

from stagecoach.planner.analysis.names import column_name
from stagecoach.planner.analysis.queries.context import BuildContext, Ctes
from stagecoach.planner.analysis.queries.replacing import exchanged
from stagecoach.planner.analysis.scalars import build_scalar
from stagecoach.planner.analysis.scope import Relation, Scope
from stagecoach.planner.errors import AnalysisError, UnsupportedSqlError
from stagecoach.planner.functions import make_call
from stagecoach.planner.plan.coercion import cast_literal
from stagecoach.planner.plan.expressions import (
    AggregateCall,
    Cast,
    Column,
    ColumnRef,
    Expression,
    Literal,
    WindowCall,
    cast,
    conjoin,
    contains,
)
from stagecoach.planner.plan.logical import (
    Aggregate,
    Expand,
    Filter,
    LogicalPlan,
    NamedExpression,
    Project,
)
from stagecoach.planner.syntax.places import located
from stagecoach.planner.tree import transform_up, walk
from stagecoach.planner.types import BIGINT, BINARY, BOOLEAN, NULL, STRING, DataType, common_type

Rows = tuple[LogicalPlan, Scope]

# Aggregates that are NULL for no rows, as a value of PIVOT without rows is.
_NULL_FOR_NOTHING = frozenset(("sum", "min", "max", "avg", "bool_and", "bool_or"))
# Aggregates that pass over rows of NULLs, so that a filter is as good.
_SKIPPING = _NULL_FOR_NOTHING | {
    "count", "collect_list", "collect_set", "max_by", "min_by", "listagg", "median", "percentile",
    "stddev_samp", "stddev_pop", "var_samp", "var_pop", "mode",
}  # fmt: skip


def plan_pivot(
    context: BuildContext, rows: Rows, node: exp.Pivot, outer: Scope | None, ctes: Ctes
) -> Rows:
    """The rows of PIVOT or UNPIVOT over given rows, and their names.

    Raises:
        AnalysisError: For aggregates and columns that do not fit the clause.
        UnsupportedSqlError: For forms that Spark's SQL does not have.
    """
    plan, scope = rows
    with located(node):
        if len(node.args.get("fields") or []) != 1 or node.args.get("group"):
            raise UnsupportedSqlError("PIVOT over several columns, or with GROUP BY")
        if node.args.get("unpivot"):
            plan, kept, made = _unpivoted(context, plan, scope, node)
        else:
            plan, kept, made = _pivoted(context, plan, scope, node)
        with located(node.args.get("alias")):
            relations = _relations(scope, kept, made, node)
    return plan, context.scope(relations, outer, ctes)


def _relations(
    scope: Scope, kept: tuple[Column, ...], made: tuple[Column, ...], node: exp.Pivot
) -> tuple[Relation, ...]:
    """What the rows are called: by the alias of the clause, or as before it."""
    alias = node.args.get("alias")
    if alias is not None and alias.args.get("columns"):
        names = [c.name for c in alias.args["columns"]]
        if len(names) != len(kept) + len(made):
            raise AnalysisError(
                f"alias '{node.alias}' names {len(names)} of {len(kept) + len(made)} columns"
            )
        pairs = zip((*kept, *made), names, strict=True)
        return (Relation(node.alias, tuple(replace(c, name=n) for c, n in pairs)),)
    if node.alias:
        return (Relation(node.alias, (*kept, *made)),)
    ids = {c.id for c in kept}
    before = (
        replace(r, columns=tuple(c for c in r.columns if c.id in ids)) for r in scope.relations
    )
    return (*(r for r in before if r.columns), Relation("", made))


def _shown(scope: Scope) -> list[Column]:
    if scope.merged:
        raise UnsupportedSqlError("PIVOT or UNPIVOT of a join with USING")
    return [column for relation in scope.relations for column in relation.columns]


# ---------------------------------------------------------------- PIVOT


def _pivoted(
    context: BuildContext, plan: LogicalPlan, scope: Scope, node: exp.Pivot
) -> tuple[LogicalPlan, tuple[Column, ...], tuple[Column, ...]]:
    (field,) = node.args["fields"]
    if not isinstance(field, exp.In) or field.args.get("query"):
        raise UnsupportedSqlError("PIVOT without a list of values")
    target = field.this
    columns = [
        _column(c, scope)
        for c in (target.expressions if isinstance(target, exp.Tuple) else [target])
    ]
    aggregates = [_aggregate(item, scope) for item in node.expressions]
    read = frozenset().union(*(e.column_ids for e in (*columns, *(e for _, e in aggregates))))
    kept = tuple(c for c in _shown(scope) if c.id not in read)
    outputs: list[NamedExpression] = []
    spread = all(_fits_pivot_first(e.dtype) for _, e in aggregates)
    rows_of = _where if spread else _only_filtered
    for item in field.expressions:
        with located(item):
            label, values = _value(item, columns, scope)
            if spread and len(columns) == 1:
                _refuse_unfindable(columns[0].dtype, values[0])
            condition = _equal(columns, values)
        for name, expr in aggregates:
            full = label if len(aggregates) == 1 else f"{label}_{name}"
            outputs.append((context.column(full, expr.dtype), rows_of(expr, condition)))
    calls = _calls(context, [e for _, e in outputs])
    groups = tuple((context.column(c.name, c.dtype), c.ref) for c in kept)
    grouped = Aggregate(plan, groups, tuple((c, call) for call, c in calls.items()))
    replaced: dict[Expression, Expression] = {call: c.ref for call, c in calls.items()}
    items = tuple((c, exchanged(e, replaced)) for c, e in outputs)
    renumbered = [column for column, _ in groups]
    # The kept columns keep their numbers, by which the names before the clause find them.
    back = tuple((old, new.ref) for old, new in zip(kept, renumbered, strict=True))
    return Project(grouped, (*back, *items)), kept, tuple(c for c, _ in items)


def _column(node: exp.Expr, scope: Scope) -> Expression:
    with located(node):
        if not isinstance(node, exp.Column):
            raise AnalysisError(f"PIVOT and UNPIVOT take columns, not '{node.sql()}'")
        return scope.column(node)


def _aggregate(item: exp.Expr, scope: Scope) -> tuple[str, Expression]:
    with located(item):
        return _checked_aggregate(item, scope)


def _checked_aggregate(item: exp.Expr, scope: Scope) -> tuple[str, Expression]:
    expr = build_scalar(item, scope)
    outside = transform_up(
        expr, lambda e: Literal(e.dtype, None) if isinstance(e, AggregateCall) else e
    )
    if outside.column_ids or not contains(expr, AggregateCall):
        raise AnalysisError(f"PIVOT needs an aggregate, found '{item.sql()}'")
    if contains(expr, WindowCall):
        raise AnalysisError("window functions are not allowed in PIVOT")
    return column_name(item), expr


def _value(item: exp.Expr, columns: list[Expression], scope: Scope) -> tuple[str, list[Expression]]:
    """The name of a value of the list, and its parts."""
    alias = item.alias if isinstance(item, exp.PivotAlias | exp.Alias) else ""
    inner = item.this if isinstance(item, exp.PivotAlias | exp.Alias) else item
    parts = inner.expressions if isinstance(inner, exp.Tuple) else [inner]
    if len(parts) != len(columns):
        raise AnalysisError(f"a value of PIVOT has {len(parts)} parts, not {len(columns)}")
    values = [build_scalar(part, scope) for part in parts]
    if any(value.column_ids for value in values):
        raise AnalysisError(f"'{inner.sql()}' in PIVOT is not a constant")
    if alias:
        return str(alias), values
    texts = [_text(value) for value in values]
    return (f"{{{', '.join(texts)}}}" if len(columns) > 1 else texts[0]), values


def _equal(columns: list[Expression], values: list[Expression]) -> Expression:
    """The condition of a value's rows."""
    return conjoin(
        [
            make_call("eq_null_safe", column, cast_literal(value, column.dtype))
            for column, value in zip(columns, values, strict=True)
        ]
    )


def _refuse_unfindable(column: DataType, value: Expression) -> None:
    """Spark finds the place of a value by Java's equality: it finds NaN nowhere, nor bytes.

    Raises:
        UnsupportedSqlError: For bytes, and for what may be NaN.
    """
    if column == BINARY:
        raise UnsupportedSqlError("PIVOT by bytes")
    while isinstance(value, Cast):
        value = value.arg
    known = isinstance(value, Literal) and (value.value is None or value.dtype.is_numeric)
    if column.is_floating and not known:
        raise UnsupportedSqlError(f"a value of PIVOT by {column} that is not a number as written")


def _text(value: Expression) -> str:
    """A literal as Spark casts it to a string."""
    if not isinstance(value, Literal) or value.dtype.is_floating:
        raise UnsupportedSqlError("a value of PIVOT that is computed and has no alias")
    if value.value is None:
        return "null"
    if isinstance(value.value, bool):
        return str(value.value).lower()
    if value.dtype.is_datetime and value.dtype.kind != "date":
        raise UnsupportedSqlError(f"a {value.dtype} in PIVOT without an alias")
    return str(value.value)


def _fits_pivot_first(dtype: DataType) -> bool:
    """Whether Spark groups by the pivot column too, and then spreads the values of this type."""
    return dtype.is_numeric or dtype == BOOLEAN


def _only_filtered(expr: Expression, condition: Expression) -> Expression:
    """An aggregate whose arguments Spark makes NULL in the rows of other values.

    Raises:
        UnsupportedSqlError: For an aggregate that does not pass over NULLs.
    """

    def visit(node: Expression) -> Expression:
        if not isinstance(node, AggregateCall):
            return node
        if node.function not in _SKIPPING:
            raise UnsupportedSqlError(f"'{node.function}' in PIVOT beside a {expr.dtype}")
        both = [condition, *([node.where] if node.where is not None else [])]
        return replace(node, where=conjoin(both))

    return transform_up(expr, visit)


def _where(expr: Expression, condition: Expression) -> Expression:
    """An aggregate over the rows of one value; NULL where there are none."""

    def visit(node: Expression) -> Expression:
        if not isinstance(node, AggregateCall):
            return node
        both = [condition, *([node.where] if node.where is not None else [])]
        return replace(node, where=conjoin(both))

    filtered = transform_up(expr, visit)
    if isinstance(expr, AggregateCall) and expr.function in _NULL_FOR_NOTHING:
        return filtered
    rows = AggregateCall(BIGINT, "count", (), where=condition)
    there = make_call("gt", rows, Literal(BIGINT, 0))
    return make_call("case", there, filtered, Literal(expr.dtype, None))


def _calls(context: BuildContext, exprs: Iterable[Expression]) -> dict[AggregateCall, Column]:
    calls: dict[AggregateCall, Column] = {}
    for expr in exprs:
        for part in walk(expr):
            if isinstance(part, AggregateCall) and part not in calls:
                calls[part] = context.column(part.function, part.dtype)
    return calls


# ---------------------------------------------------------------- UNPIVOT


def _unpivoted(
    context: BuildContext, plan: LogicalPlan, scope: Scope, node: exp.Pivot
) -> tuple[LogicalPlan, tuple[Column, ...], tuple[Column, ...]]:
    (field,) = node.args["fields"]
    (names,) = node.expressions
    value_names = [n.name for n in (names.expressions if isinstance(names, exp.Tuple) else [names])]
    labels: list[str] = []
    rows: list[list[Expression]] = []
    for item in field.expressions:
        inner = item.this if isinstance(item, exp.PivotAlias | exp.Alias) else item
        parts = inner.expressions if isinstance(inner, exp.Tuple) else [inner]
        if len(parts) != len(value_names):
            with located(item):
                raise AnalysisError(f"UNPIVOT of {len(parts)} columns into {len(value_names)}")
        rows.append([_column(part, scope) for part in parts])
        labels.append(item.alias if inner is not item else "_".join(p.name for p in parts))
    types = [_common([row[i].dtype for row in rows]) for i in range(len(value_names))]
    read = {e.id for row in rows for e in row if isinstance(e, ColumnRef)}
    kept = tuple(c for c in _shown(scope) if c.id not in read)
    label = context.column(field.this.name, STRING)
    values = tuple(context.column(n, t) for n, t in zip(value_names, types, strict=True))
    projections = tuple(
        (
            *(c.ref for c in kept),
            Literal(STRING, text),
            *(cast(e, t) for e, t in zip(row, types, strict=True)),
        )
        for text, row in zip(labels, rows, strict=True)
    )
    made = (label, *values)
    copies: LogicalPlan = Expand(plan, projections, (*kept, *made))
    if not node.args.get("include_nulls"):
        known = [make_call("is_not_null", c.ref) for c in values]
        copies = Filter(copies, known[0] if len(known) == 1 else make_call("or", *known))
    return copies, kept, made


def _common(types: list[DataType]) -> DataType:
    result = NULL
    for dtype in types:
        common = common_type(result, dtype)
        if common is None:
            raise AnalysisError(f"the columns of UNPIVOT mix {result} and {dtype}")
        result = common
    return result
