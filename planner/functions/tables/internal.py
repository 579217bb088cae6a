"""Functions that only the planner itself puts into plans, typed by it."""

from __future__ import annotations

from stagecoach.planner.errors import TOO_MANY_ROWS
from stagecoach.planner.functions import duckdb as duck
from stagecoach.planner.functions import rules as rule
from stagecoach.planner.functions import spell_sketches
from stagecoach.planner.functions.function import Function
from stagecoach.planner.plan.task_values import COMPLETE_ABOVE, COMPLETE_BELOW
from stagecoach.planner.types import BIGINT, BOOLEAN, DOUBLE, INT

FUNCTIONS: tuple[Function, ...] = (
    Function("average", (2, 2), rule.unchanged, rule.fixed(DOUBLE), duck.spark_average, duck.average, proof="aggregates"),
    Function("complete_in_task", (1, 1), rule.unchanged, rule.fixed(BOOLEAN), "false", f"coalesce({{0}} > getvariable('{COMPLETE_ABOVE}') AND {{0}} < getvariable('{COMPLETE_BELOW}'), false)", proof="complete groups"),
    Function("hll_code", (2, 2), rule.unchanged, rule.fixed(INT), spell_sketches.code_of_spark, "java_hll_code({0}, {1})", proof="sketches"),
    Function("hll_estimate", (2, 2), rule.unchanged, rule.fixed(BIGINT), spell_sketches.estimate_of_spark, "java_hll_estimate({0}, {1})", proof="sketches"),
    Function("multiply_narrow", (2, 2), rule.unchanged, rule.first_type, "CAST({0} * {1} AS {type})", "CAST({0} * {1} AS {type})", proof="arithmetic"),
    Function("single_value", (2, 2), rule.unchanged, rule.first_type, f"CASE WHEN {{1}} > 1 THEN CAST(raise_error('{TOO_MANY_ROWS}') AS {{type}}) ELSE {{0}} END", "CASE WHEN {1} > 1 THEN CAST(error('SCALAR_SUBQUERY_TOO_MANY_ROWS') AS {type}) ELSE {0} END", proof="subqueries"),
)  # fmt: skip
