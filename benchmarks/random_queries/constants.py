"""Find constants that raise, such as `1 % 0`.

Whether such a constant raises where no row needs it is up to an engine, and to Spark's optimiser.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from stagecoach.planner.plan.expressions import AggregateCall, Call, Cast, Expression
from stagecoach.planner.plan.stages import StageGraph
from stagecoach.planner.render.fragment import render_scalar
from stagecoach.planner.tree import walk
from tests.differential.inprocess import CLOCK
from tests.differential.query_check import SPARK_ERRORS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def has_raising_constant(spark: SparkSession, graph: StageGraph) -> bool:
    """Whether Spark raises for a constant in a plan."""
    texts = {render_scalar(expr, "spark", CLOCK) for expr in _constants(graph)}
    return any(_raises(spark, text) for text in texts)


def _raises(spark: SparkSession, text: str) -> bool:
    try:
        # `collect` would convert rows to Python objects, whose years end at 9999.
        spark.sql(f"SELECT {text}").write.format("noop").mode("overwrite").save()
    except SPARK_ERRORS:
        return True
    return False


def _constants(graph: StageGraph) -> Iterator[Expression]:
    """The largest parts of expressions that read no column."""
    for stage in graph.stages:
        stack = [expr for node in walk(stage.fragment) for expr in node.expressions]
        while stack:
            expr = stack.pop()
            is_scalar = not any(isinstance(part, AggregateCall) for part in walk(expr))
            if isinstance(expr, Call | Cast) and is_scalar and not expr.column_ids:
                yield expr
            else:
                stack.extend(expr.children)
