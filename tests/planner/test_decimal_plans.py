"""Decimals whose scale Spark cuts do not make a stage run on Spark."""

from __future__ import annotations

import pytest

from stagecoach.planner import plan_query
from stagecoach.planner.catalog import MappingCatalog, TableInfo, TableStats
from stagecoach.planner.plan.stages import StageGraph
from stagecoach.planner.types import Field, parse_type
from tests.planner.tpch import DEFAULT, FORCED, query_text, sf10_catalog

SALES = MappingCatalog(
    [
        TableInfo(
            "sales",
            tuple(
                Field(name, parse_type(dtype))
                for name, dtype in (
                    ("item", "int"),
                    ("class", "string"),
                    ("price", "decimal(7,2)"),
                    ("wide", "decimal(38,18)"),
                    ("whole", "decimal(38,0)"),
                    ("tiny", "decimal(38,38)"),
                )
            ),
            TableStats(1_000_000, 1 << 30, 8),
        )
    ]
)
# What TPC-DS computes from its prices, from queries 12, 49, 58, 61 and 83.
FROM_TPC_DS = [
    "SELECT class, sum(price) * 100 / sum(sum(price)) OVER (PARTITION BY class) AS a FROM sales GROUP BY class, item",
    "SELECT CAST(sum(coalesce(price, 0)) AS DECIMAL(15,4)) / CAST(sum(price) AS DECIMAL(15,4)) AS a FROM sales",
    "SELECT sum(price) / ((sum(price) + sum(price) + sum(price)) / 3) * 100 AS a FROM sales GROUP BY item",
    "SELECT CAST(sum(price) AS DECIMAL(15,4)) / CAST(max(price) AS DECIMAL(15,4)) * 100 AS a FROM sales",
    "SELECT sum(price) * 1.0000 / avg(price) / 3.0 * 100 AS a FROM sales GROUP BY item HAVING avg(price) > 1.2 * min(price)",
]  # fmt: skip
OTHERS = [
    "SELECT wide * wide AS a, wide + price AS b, wide / wide AS c, whole % wide AS d, whole + wide AS e FROM sales",
    "SELECT try_multiply(wide, wide) AS a, try_add(wide, wide) AS b, pmod(wide, price) AS c FROM sales",
    "SELECT item, sum(wide), avg(wide), avg(whole), try_sum(price) FROM sales GROUP BY item",
    "SELECT wide div price AS a, round(wide, 2) AS b, ceil(wide, 1) AS c, -wide AS d, abs(wide) AS e FROM sales",
    "SELECT item FROM sales WHERE wide * price > 1.5 AND wide < whole AND tiny <> 0",
]  # fmt: skip


def _on_spark(graph: StageGraph) -> list[str]:
    assert graph.fallback_reason is None
    return [stage.engine_reason for stage in graph.stages if stage.engine != "duckdb"]


@pytest.mark.parametrize("fraction", ["0.0001", "0.0001000000", "0.0000333333"])
def test_query_11_of_tpc_h_has_no_stage_on_spark(fraction: str) -> None:
    # The benchmark divides 0.0001 by the scale factor and writes ten digits.
    sql = query_text("q11").replace("0.0001", fraction)
    for options in (DEFAULT, FORCED):
        assert not _on_spark(plan_query(sql, sf10_catalog(), options))


@pytest.mark.parametrize("sql", [*FROM_TPC_DS, *OTHERS])
def test_operations_on_decimals_have_no_stage_on_spark(sql: str) -> None:
    assert not _on_spark(plan_query(sql, SALES))


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("whole + tiny", "add of decimal(38,0) and decimal(38,38) needs too many digits"),
        ("whole / tiny", "divide of decimal(38,0) and decimal(38,38) needs too many digits"),
        ("whole % tiny", "mod of decimal(38,0) and decimal(38,38) needs too many digits"),
        ("round(wide, -2)", "rounding decimal(38,18) left of the point is not proven"),
    ],
)
def test_what_needs_more_digits_runs_on_spark_with_a_reason(expression: str, reason: str) -> None:
    assert _on_spark(plan_query(f"SELECT {expression} AS a FROM sales", SALES)) == [reason]
