"""Casts of constants: which are made when a query is planned, and that their values are Spark's."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stagecoach.planner.catalog import MappingCatalog
from stagecoach.planner.options import PlannerOptions
from stagecoach.planner.plan.expressions import Expression, Literal
from stagecoach.planner.plan.physical import ProjectionExec
from stagecoach.planner.planning import plan_query

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def planned(*expressions: str) -> list[Expression]:
    """The expressions of a query's only stage."""
    names = (f"{text} AS n{i}" for i, text in enumerate(expressions))
    graph = plan_query(f"SELECT {', '.join(names)}", MappingCatalog({}), PlannerOptions())
    fragment = graph.stages[0].fragment
    assert isinstance(fragment, ProjectionExec), graph.fallback_reason
    return list(fragment.expressions)


# What each is when it is planned; None where the engine computes it.
CASTS: dict[str, str | None] = {
    "0.01BD": "0.01", "-0.01BD": "-0.01", "-0.0BD": "0.0", "1e1BD": None, "2.5BD * 4": "10.0",
    "-123456789012345678901234567890.12": "-123456789012345678901234567890.12", "- 12345678901234567890123456789012345678BD": "-12345678901234567890123456789012345678",
    "CAST('2.5' AS DECIMAL(4,2))": "2.50", "CAST('-2.50' AS DECIMAL(4,1))": "-2.5", "CAST('002.5' AS DECIMAL(2,1))": "2.5", "CAST('-0' AS DECIMAL(4,2))": "0.00", "CAST('.5' AS DECIMAL(4,2))": None, "CAST(' 2.5' AS DECIMAL(4,2))": None,
    "CAST('2.555' AS DECIMAL(4,2))": None, "TRY_CAST('100' AS DECIMAL(4,2))": None, "TRY_CAST('99.99' AS DECIMAL(4,2))": "99.99", "TRY_CAST('2,5' AS DECIMAL(4,2))": None,
    "CAST('99999999999999999999999999999999999999' AS DECIMAL(38,0))": "99999999999999999999999999999999999999", "CAST('0.1' AS DECIMAL(38,38))": "0." + "1".ljust(38, "0"),
    "CAST(10.5 AS DECIMAL(20,2))": "10.50", "CAST(10.50 AS DECIMAL(3,1))": "10.5", "CAST(10.55 AS DECIMAL(3,1))": None, "TRY_CAST(1000.5 AS DECIMAL(5,1))": "1000.5", "TRY_CAST(1000.5 AS DECIMAL(4,1))": None, "CAST(7 AS DECIMAL(1,0))": "7", "TRY_CAST(17 AS DECIMAL(1,0))": None,
    "CAST(127 AS TINYINT)": "127", "TRY_CAST(128 AS TINYINT)": None, "CAST(-128 AS TINYINT)": "-128", "CAST('-32768' AS SMALLINT)": "-32768", "TRY_CAST('32768' AS SMALLINT)": None, "7Y": "7", "7S": "7", "-7S": "-7",
    "CAST(5L AS TINYINT)": "5", "CAST(5.0 AS INT)": "5", "CAST(5.5 AS INT)": None, "TRY_CAST(3000000000.0 AS INT)": None, "TRY_CAST('12' AS BIGINT)": "12", "TRY_CAST('1x' AS BIGINT)": None, "TRY_CAST(NULL AS BIGINT)": "None",
    "CAST(CAST('2.5' AS DECIMAL(4,2)) AS DECIMAL(20,4))": "2.5000", "CAST(DATE'2024-02-29' AS TIMESTAMP_NTZ)": "2024-02-29 00:00:00", "TRY_CAST('2024-02-29' AS DATE)": "2024-02-29", "TRY_CAST('2023-02-29' AS DATE)": None,
}  # fmt: skip


def folded(text: str) -> str | None:
    (found,) = planned(text)
    return str(found.value) if isinstance(found, Literal) else None


def test_exact_casts_are_made_when_a_query_is_planned() -> None:
    assert {text: folded(text) for text in CASTS} == CASTS


NUMBERS = st.from_regex(re.compile(r"[ +-]?[0-9]{1,40}(\.[0-9]{0,6})?(e[0-9])?", re.A), fullmatch=True)  # fmt: skip
SMALL = st.from_regex(re.compile(r"-?0{0,2}[0-9]{1,3}(\.[0-9]{1,3}0{0,3})?", re.A), fullmatch=True)
DATES = st.from_regex(re.compile(r"(0000|0001|1582|2024)-(0?2|10|13)-(04|15|29|30)", re.A), fullmatch=True)  # fmt: skip
TYPES = ("TINYINT", "SMALLINT", "INT", "BIGINT", "DECIMAL(3,1)", "DECIMAL(10,4)", "DECIMAL(38,0)", "DECIMAL(38,6)")  # fmt: skip


@st.composite
def casts(draw: st.DrawFn) -> str:
    """A cast that raises nothing, of a text, of a number, or of a cast."""
    if draw(st.integers(0, 9)) == 0:
        return f"CAST(TRY_CAST('{draw(DATES)}' AS DATE) AS TIMESTAMP_NTZ)"
    text = draw(st.one_of(NUMBERS, SMALL))
    if re.fullmatch(r"-?[0-9]{1,30}(\.[0-9]+)?", text) and draw(st.booleans()):
        source = text + ("BD" if draw(st.booleans()) else "")
    else:
        source = f"'{text}'"
    for kind in draw(st.lists(st.sampled_from(TYPES), min_size=1, max_size=2)):
        source = f"TRY_CAST({source} AS {kind})"
    return source


@pytest.mark.slow
@pytest.mark.spark
@settings(
    max_examples=2,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(st.lists(casts(), min_size=150, max_size=150))
def test_casts_of_constants_are_sparks(spark: SparkSession, random_casts: list[str]) -> None:
    cases = [*CASTS, *random_casts]
    shown = (f"CAST({text} AS STRING) AS n{i}" for i, text in enumerate(cases))
    types = (f"typeof({text}) AS t{i}" for i, text in enumerate(cases))
    (row,) = spark.sql(f"SELECT {', '.join((*shown, *types))}").collect()
    num_folded = 0
    for i, (text, expr) in enumerate(zip(cases, planned(*cases), strict=True)):
        assert str(expr.dtype) == row[f"t{i}"], text
        if isinstance(expr, Literal):
            num_folded += 1
            assert (None if expr.value is None else str(expr.value)) == row[f"n{i}"], text
    assert num_folded > len(CASTS) / 2
