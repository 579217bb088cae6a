"""Build a query of any form: resolve its WITH clause and dispatch by kind."""

from __future__ import annotations

from sqlglot import exp

from stagecoach.planner.analysis.queries.context import BuildContext, Ctes
from stagecoach.planner.analysis.queries.pipes import plan_pipe
from stagecoach.planner.analysis.queries.select import plan_select
from stagecoach.planner.analysis.queries.set_operations import plan_set_operation
from stagecoach.planner.analysis.queries.sorting import order_and_limit
from stagecoach.planner.analysis.scope import Scope
from stagecoach.planner.errors import AnalysisError, UnsupportedSqlError
from stagecoach.planner.plan.logical import (
    LogicalPlan,
)
from stagecoach.planner.syntax.parsed_query import cte_number
from stagecoach.planner.syntax.places import located
from stagecoach.planner.syntax.spark_syntax import PipeQuery


def plan_query(
    context: BuildContext, node: exp.Query, outer: Scope | None, ctes: Ctes
) -> LogicalPlan:
    """The plan of a query.

    Raises:
        AnalysisError: For a mistake in it, with line and column.
        UnsupportedSqlError: For a form that is not staged, with line and column.
    """
    with located(node):
        visible = with_ctes(node, ctes, outer)
        plan = _planned(context, node, outer, visible)
        _check_unused(context, node, visible)
        return plan


def _check_unused(context: BuildContext, node: exp.Query, ctes: Ctes) -> None:
    """Refuse mistakes in CTEs that nothing names, as Spark does; their plans are not used."""
    clause = node.args.get("with_")
    for definition in clause.expressions if clause is not None else ():
        name = definition.alias.lower()
        cte, visible, around = ctes[name]
        if cte is not definition or cte_number(cte) in context.named_ctes:
            continue
        if not isinstance(cte.this, exp.Query):
            raise UnsupportedSqlError("a CTE that is not a query")
        context.query(cte.this, around, visible)


def _planned(
    context: BuildContext, node: exp.Query, outer: Scope | None, ctes: Ctes
) -> LogicalPlan:
    if isinstance(node, exp.Subquery):
        if node.args.get("order") or node.args.get("limit") or node.args.get("offset"):
            plan = context.query(node.this, outer, ctes)
            return order_and_limit(context, node, plan, context.output_scope(plan, outer, ctes))
        return context.query(node.this, outer, ctes)
    if isinstance(node, exp.SetOperation):
        return plan_set_operation(context, node, outer, ctes)
    if isinstance(node, PipeQuery):
        return plan_pipe(context, node, outer, ctes)
    if isinstance(node, exp.Select):
        return plan_select(context, node, outer, ctes)
    raise UnsupportedSqlError(f"{node.key.upper()} is not staged")


def with_ctes(node: exp.Query, ctes: Ctes, outer: Scope | None) -> Ctes:
    """The CTEs that a query sees: its own over those around it."""
    clause = node.args.get("with_")
    if clause is None:
        return ctes
    if clause.args.get("recursive"):
        with located(clause):
            raise UnsupportedSqlError("recursive CTEs are not staged")
    seen: set[str] = set()
    for cte in clause.expressions:
        name = cte.alias.lower()
        if name in seen:
            with located(cte.args["alias"]):
                raise AnalysisError(f"WITH defines '{cte.alias}' more than once")
        seen.add(name)
        ctes = {**ctes, name: (cte, ctes, outer)}
    return ctes
