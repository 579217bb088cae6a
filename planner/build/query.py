"""A query of any form: WITH, nested queries, dispatch by kind.

In: a query node. Out: its plan.
"""

from __future__ import annotations

from sqlglot import exp

from planner.build.context import BuildContext, Ctes
from planner.build.pipes import plan_pipe
from planner.build.select import plan_select
from planner.build.set_operations import plan_set_operation
from planner.build.sorting import order_and_limit
from planner.errors import AnalysisError, UnsupportedSqlError
from planner.logical import (
    LogicalPlan,
)
from planner.parse import position
from planner.scope import Scope
from planner.spark_syntax import PipeQuery


def plan_query(
    context: BuildContext, node: exp.Query, outer: Scope | None, ctes: Ctes
) -> LogicalPlan:
    """The plan of a query.

    Raises:
        UnsupportedSqlError: For a form that is not staged.
    """
    ctes = with_ctes(node, ctes, outer)
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
        raise UnsupportedSqlError("recursive CTEs are not staged")
    seen: set[str] = set()
    for cte in clause.expressions:
        name = cte.alias.lower()
        if name in seen:
            line, column = position(cte)
            raise AnalysisError(
                f"WITH defines '{cte.alias}' more than once", line=line, column=column
            )
        seen.add(name)
        ctes = {**ctes, name: (cte, ctes, outer)}
    return ctes
