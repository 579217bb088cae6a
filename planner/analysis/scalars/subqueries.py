"""Build scalar subqueries, EXISTS and IN, which the optimiser turns into joins."""

from __future__ import annotations

from sqlglot import exp

from stagecoach.planner.analysis.scalars.handlers import Names, handles
from stagecoach.planner.errors import AnalysisError, UnsupportedSqlError
from stagecoach.planner.plan.coercion import (
    comparable,
)
from stagecoach.planner.plan.expressions import Expression
from stagecoach.planner.plan.logical import LogicalPlan
from stagecoach.planner.plan.subqueries import Exists, InSubquery, ScalarSubquery
from stagecoach.planner.syntax.spark_syntax import PipeQuery
from stagecoach.planner.types import (
    BOOLEAN,
)


def in_subquery(args: tuple[Expression, ...], plan: LogicalPlan) -> Expression:
    """`args IN (plan)`."""
    if len(args) != len(plan.columns):
        raise AnalysisError(f"IN compares {len(args)} values with {len(plan.columns)} columns")
    # The columns are cast, where they must be, with the equality that the optimiser makes of IN.
    pairs = [comparable(a, c.ref) for a, c in zip(args, plan.columns, strict=True)]
    return InSubquery(BOOLEAN, plan, tuple(left for left, _ in pairs))


def query_of(node: exp.Expr) -> exp.Query:
    """The query in a node, without its parentheses."""
    query = node.unnest() if isinstance(node, exp.Subquery) else node
    if not isinstance(query, exp.Query):
        raise UnsupportedSqlError("a subquery that is not a SELECT")
    return query


@handles(exp.Exists)
def _exists(node: exp.Exists, names: Names) -> Expression:
    return Exists(BOOLEAN, names.subquery(query_of(node.this)))


@handles(exp.Subquery, PipeQuery)
def _scalar_subquery(node: exp.Subquery, names: Names) -> Expression:
    plan = names.subquery(query_of(node))
    if len(plan.columns) != 1:
        raise AnalysisError(f"a scalar subquery must have one column, not {len(plan.columns)}")
    return ScalarSubquery(plan.columns[0].dtype, plan)
