"""Build pipe operators: `FROM t |> WHERE … |> AGGREGATE … |> SELECT …`.

Each operator sees the rows and names of the one before it, so a table's alias stays visible until
an operator makes other columns. Source of the rules: Spark's `SQL Pipe Syntax` reference.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from stagecoach.planner.aggregates import is_aggregate
from stagecoach.planner.analysis.queries.conditions import condition_of
from stagecoach.planner.analysis.queries.context import BuildContext, Ctes
from stagecoach.planner.analysis.queries.pivot import plan_pivot
from stagecoach.planner.analysis.queries.relations import joined, plan_from
from stagecoach.planner.analysis.queries.select import select_from
from stagecoach.planner.analysis.queries.set_operations import combined
from stagecoach.planner.analysis.queries.sorting import is_ordinal, limited, ordinal, sort_keys
from stagecoach.planner.analysis.scope import Relation, Scope
from stagecoach.planner.errors import AnalysisError, UnsupportedSqlError
from stagecoach.planner.plan.expressions import (
    AggregateCall,
    Column,
    ColumnRef,
    WindowCall,
    contains,
)
from stagecoach.planner.plan.logical import Filter, LogicalPlan, Project, Sort
from stagecoach.planner.syntax.places import located
from stagecoach.planner.syntax.spark_syntax import PipeQuery, PipeStep

Rows = tuple[LogicalPlan, Scope]


def plan_pipe(
    context: BuildContext, node: PipeQuery, outer: Scope | None, ctes: Ctes
) -> LogicalPlan:
    """The plan of a query with pipe operators.

    Raises:
        AnalysisError: For operators that do not fit the rows before them.
        UnsupportedSqlError: For operators that are not staged.
    """
    pipe = _Pipe(context, outer, ctes)
    rows = pipe.source(node.this)
    for step in node.expressions:
        with located(step):
            rows = pipe.apply(rows, step)
    return pipe.select(rows, exp.Select(expressions=[exp.Star()]))


class _Pipe:
    def __init__(self, context: BuildContext, outer: Scope | None, ctes: Ctes) -> None:
        self._context = context
        self._outer = outer
        self._ctes = ctes

    def source(self, node: exp.Query) -> Rows:
        """The rows of the query before the first operator; `FROM t` keeps the names of t."""
        parts = {part for part, value in node.args.items() if value}
        is_from = isinstance(node, exp.Select) and parts <= {
            "expressions", "from_", "joins", "laterals",
        }  # fmt: skip
        if is_from and isinstance(node, exp.Select) and node.expressions == [exp.Star()]:
            return plan_from(self._context, node, self._outer, self._ctes)
        return self._unnamed(self._context.query(node, self._outer, self._ctes))

    def _scope(self, *relations: Relation) -> Scope:
        return self._context.scope(relations, self._outer, self._ctes)

    def _unnamed(self, plan: LogicalPlan) -> Rows:
        return plan, self._scope(Relation("", plan.columns))

    def select(self, rows: Rows, node: exp.Select) -> LogicalPlan:
        """A SELECT over the rows."""
        plan, scope = rows
        return select_from(self._context, node, plan, replace(scope, aliases={}))

    def apply(self, rows: Rows, step: PipeStep) -> Rows:
        """The rows after an operator."""
        plan, scope = rows
        match step.args["kind"]:
            case "where":
                return self._where(rows, step.this)
            case "select":
                return self._unnamed(self.select(rows, step.this))
            case "extend":
                return self._extended(rows, step)
            case "set":
                return self._set(rows, step)
            case "drop":
                return self._dropped(rows, step)
            case "as":
                shown = self.select(rows, exp.Select(expressions=[exp.Star()]))
                return shown, self._scope(Relation(step.this.name, shown.columns))
            case "order by":
                return self._ordered(rows, step.this)
            case "limit":
                return limited(step.this, plan, self._scope()), scope
            case "aggregate":
                return self._aggregated(rows, step)
            case "join":
                return joined(self._context, plan, scope, step.this, self._outer, self._ctes)
            case "pivot":
                return plan_pivot(self._context, rows, step.this, self._outer, self._ctes)
            case "set operation":
                return self._combined(rows, step.this)
        raise UnsupportedSqlError(f"|> {step.args['kind'].upper()} is not staged")

    def _where(self, rows: Rows, node: exp.Where) -> Rows:
        plan, scope = rows
        predicate = condition_of(node.this, scope, "WHERE")
        if contains(predicate, AggregateCall):
            with located(node.this):
                raise AnalysisError(
                    "aggregates are not allowed in |> WHERE; use |> AGGREGATE before it"
                )
        return Filter(plan, predicate), scope

    def _row_wise(self, rows: Rows, node: exp.Select, what: str) -> LogicalPlan:
        """A SELECT that keeps the number of rows: no aggregate may stand in it."""
        for call in node.find_all(exp.Anonymous):
            if call.find_ancestor(exp.Query, exp.Window) is not node:
                continue
            if is_aggregate(call.name):
                with located(call):
                    raise AnalysisError(
                        f"the aggregate '{call.name.lower()}' is not allowed in |> {what}; "
                        "use |> AGGREGATE"
                    )
        return self.select(rows, node)

    def _extended(self, rows: Rows, step: PipeStep) -> Rows:
        """The rows with more columns; the names of the old ones stay."""
        plan, scope = rows
        before = self._columns(rows)
        windows = step.this.args.get("windows") if step.this is not None else None
        node = exp.Select(expressions=[exp.Star(), *step.expressions], windows=windows)
        plan = self._row_wise(rows, node, "EXTEND")
        kept, made = plan.columns[: len(before)], plan.columns[len(before) :]
        relations = _renumbered(scope, before, kept)
        return plan, self._scope(*relations, Relation("", made))

    def _columns(self, rows: Rows) -> tuple[ColumnRef, ...]:
        """The columns that `*` shows."""
        _, scope = rows
        if scope.merged:
            raise UnsupportedSqlError("|> EXTEND, SET or DROP behind a JOIN with USING")
        return tuple(c.ref for relation in scope.relations for c in relation.columns)

    def _set(self, rows: Rows, step: PipeStep) -> Rows:
        """The rows with some columns replaced, each assignment over those before it."""
        for assignment in step.expressions:
            plan, scope = rows
            before = self._columns(rows)
            name = assignment.this.name.lower()
            hits = [i for i, c in enumerate(before) if c.name.lower() == name]
            if len(hits) != 1:
                what = "is ambiguous" if hits else "is not there"
                with located(assignment.this):
                    raise AnalysisError(f"column '{assignment.this.name}' of |> SET {what}")
            value = exp.alias_(assignment.expression.copy(), assignment.this.copy())
            node = exp.Select(expressions=[exp.Star(), value])
            plan = self._row_wise(rows, node, "SET")
            columns = list(plan.columns)
            new = columns.pop()
            kept = [*columns[: hits[0]], new, *columns[hits[0] + 1 :]]
            plan = Project(plan, tuple((c, c.ref) for c in kept))
            rows = plan, self._scope(*_renumbered(scope, before, tuple(kept)))
        return rows

    def _dropped(self, rows: Rows, step: PipeStep) -> Rows:
        plan, scope = rows
        before = self._columns(rows)
        gone: set[int] = set()
        for name in step.expressions:
            with located(name):
                found = scope.column(exp.column(name.copy()))
                if not isinstance(found, ColumnRef) or found.id not in {c.id for c in before}:
                    raise AnalysisError(f"column '{name.name}' of |> DROP not found")
                if found.id in gone:
                    raise AnalysisError(f"|> DROP names '{name.name}' twice")
            gone.add(found.id)
        relations = [
            replace(r, columns=tuple(c for c in r.columns if c.id not in gone))
            for r in scope.relations
        ]
        return plan, self._scope(*relations)

    def _ordered(self, rows: Rows, node: exp.Select) -> Rows:
        plan, scope = rows
        keys = sort_keys(node, scope, list(self._columns(rows)))
        if any(contains(k.expr, AggregateCall) or contains(k.expr, WindowCall) for k in keys):
            with located(node.args.get("order")):
                raise AnalysisError("aggregate and window functions are not allowed in |> ORDER BY")
        return Sort(plan, tuple(keys)), scope

    def _aggregated(self, rows: Rows, step: PipeStep) -> Rows:
        """The keys of GROUP BY, then the aggregates."""
        keys = []
        for key in step.this.expressions if step.this is not None else []:
            with located(key):
                if isinstance(key.unalias(), exp.Rollup | exp.Cube | exp.GroupingSets):
                    raise UnsupportedSqlError("|> AGGREGATE over grouping sets")
                keys.append(self._column_at(rows, key) if is_ordinal(key) else key)
        group = exp.Group(expressions=[key.unalias().copy() for key in keys])
        items = [*(key.copy() for key in keys), *(item.copy() for item in step.expressions)]
        if not items:
            raise AnalysisError("|> AGGREGATE needs an aggregate or GROUP BY")
        node = exp.Select(expressions=items, group=group if keys else None)
        if not keys and not any(is_aggregate(c.name) for c in node.find_all(exp.Anonymous)):
            raise AnalysisError("|> AGGREGATE must contain an aggregate")
        return self._unnamed(self.select(rows, node))

    def _column_at(self, rows: Rows, key: exp.Expr) -> exp.Expr:
        """The input column at a position: keys stand before the items, so it cannot be an item."""
        before = self._columns(rows)
        column = ordinal(key, list(before), "GROUP BY")
        if not isinstance(column, ColumnRef) or [c.name for c in before].count(column.name) > 1:
            raise UnsupportedSqlError("|> AGGREGATE … GROUP BY the position of an ambiguous name")
        return exp.column(exp.to_identifier(column.name, quoted=True))

    def _combined(self, rows: Rows, node: exp.SetOperation) -> Rows:
        left = self.select(rows, exp.Select(expressions=[exp.Star()]))
        right = self._context.query(node.expression, self._outer, self._ctes)
        with located(node.expression):
            plan = combined(self._context, node.key, (left, right), bool(node.args.get("distinct")))
        return self._unnamed(plan)


def _renumbered(
    scope: Scope, before: tuple[ColumnRef, ...], after: tuple[Column, ...]
) -> tuple[Relation, ...]:
    """The relations of a scope over the same columns under other numbers."""
    left = list(after)
    relations = []
    for relation in scope.relations:
        mine, left = left[: len(relation.columns)], left[len(relation.columns) :]
        relations.append(replace(relation, columns=tuple(mine)))
    return tuple(relations)
