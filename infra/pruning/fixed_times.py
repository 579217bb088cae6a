"""Replaces times that a query spells out by constants before the SQL is rendered.

In a plan `TIMESTAMP '2024-06-15'` is a text that is cast, as it stands in the query. DuckDB spells
what Spark accepts in such a cast as three thousand characters of regular expressions, which it
parses and binds for longer than a small task takes, and such a predicate is not known to raise no
error. The identity of the stage and its plan stay those of the text.

In UTC alone, and for times without a zone: when clocks change elsewhere, engines know by tables of
their own, and Python may have an older one.
"""

from __future__ import annotations

from dataclasses import replace

from stagecoach.infra.pruning.predicates import timed
from stagecoach.planner.plan.expressions import Cast, Expression
from stagecoach.planner.plan.physical import PhysicalPlan
from stagecoach.planner.plan.stages import Stage
from stagecoach.planner.text.time_zones import UTC_NAMES
from stagecoach.planner.tree import same, transform_up


def with_fixed_times(stage: Stage, time_zone: str) -> Stage:
    """The stage with constants for texts that are cast to times.

    Args:
        stage: Any stage.
        time_zone: Session time zone.
    """

    def visit(node: PhysicalPlan) -> PhysicalPlan:
        new = tuple(fixed_times(expr, time_zone) for expr in node.expressions)
        return node if same(node.expressions, new) else node.with_expressions(new)

    fragment = transform_up(stage.fragment, visit)
    return stage if fragment is stage.fragment else replace(stage, fragment=fragment)


def fixed_times(expr: Expression, time_zone: str) -> Expression:
    """The expression with constants for texts that are cast to times.

    Args:
        expr: Any expression.
        time_zone: Session time zone.
    """
    is_utc = time_zone in UTC_NAMES

    def visit(node: Expression) -> Expression:
        if isinstance(node, Cast) and (is_utc or node.dtype.kind == "timestamp_ntz"):
            return timed(node, time_zone)
        return node

    return transform_up(expr, visit)
