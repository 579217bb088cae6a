"""UNION and its kin.

In: a set operation. Out: a plan of its inputs, in their common types.
"""

from __future__ import annotations

from sqlglot import exp

from planner.build.context import BuildContext, Ctes
from planner.build.sorting import order_and_limit
from planner.coercion import widest
from planner.errors import AnalysisError, UnsupportedSqlError
from planner.expressions import (
    cast,
)
from planner.logical import (
    LogicalPlan,
    Project,
    Union,
    distinct,
)
from planner.scope import Scope
from planner.types import DataType


def plan_set_operation(
    context: BuildContext, node: exp.SetOperation, outer: Scope | None, ctes: Ctes
) -> LogicalPlan:
    """The plan of a set operation."""
    if not isinstance(node, exp.Union) or node.args.get("by_name"):
        raise UnsupportedSqlError(f"{node.key.upper()} is not staged yet")
    sides = [context.query(side, outer, ctes) for side in (node.this, node.expression)]
    plan: LogicalPlan = _union(context, sides)
    if node.args.get("distinct"):
        plan = distinct(plan)
    return order_and_limit(node, plan, context.output_scope(plan, outer, ctes))


def _union(context: BuildContext, sides: list[LogicalPlan]) -> LogicalPlan:
    left, right = sides
    if len(left.columns) != len(right.columns):
        raise AnalysisError(
            f"UNION of {len(left.columns)} columns with {len(right.columns)} columns"
        )
    types = tuple(
        widest((a.dtype, b.dtype), "UNION")
        for a, b in zip(left.columns, right.columns, strict=True)
    )
    outputs = tuple(context.column(c.name, t) for c, t in zip(left.columns, types, strict=True))
    inputs: list[LogicalPlan] = []
    for side in sides:
        cast_side = _retyped(context, side, types)
        mergeable = isinstance(cast_side, Union) and side is left
        inputs.extend(
            cast_side.inputs if mergeable and isinstance(cast_side, Union) else [cast_side]
        )
    return Union(tuple(inputs), outputs)


def _retyped(context: BuildContext, plan: LogicalPlan, types: tuple[DataType, ...]) -> LogicalPlan:
    if tuple(c.dtype for c in plan.columns) == types:
        return plan
    items = tuple(
        (context.column(c.name, t), cast(c.ref, t))
        for c, t in zip(plan.columns, types, strict=True)
    )
    return Project(plan, items)
