"""Times that a query spells out become constants where all engines agree, and nowhere else."""

from __future__ import annotations

import duckdb
import pytest

from stagecoach.infra.pruning.fixed_times import fixed_times, with_fixed_times
from stagecoach.planner import plan_query
from stagecoach.planner.catalog import MappingCatalog, TableInfo
from stagecoach.planner.plan.expressions import Cast, Expression, Literal
from stagecoach.planner.render.fragment import render_fragment, render_scalar
from stagecoach.planner.types import BIGINT, STRING, TIMESTAMP, TIMESTAMP_NTZ, DataType, Field
from tests.duckdb_functions import declared

CATALOG = MappingCatalog([TableInfo("t", (Field("ts", TIMESTAMP), Field("v", BIGINT)))])
PLAIN = (
    "2024-06-15",
    "2024-06-15 07:08:09",
    "2024-06-15T07:08:09.5",
    "1582-10-15 00:00:00",
    "1582-10-04 23:59:59.999999",
    "0001-01-01",
    "9999-12-31 23:59:59.999999",
)
ODD = (
    " 2024-06-15",
    "2024-6-15",
    "2024-06-15 07:08",
    "2024-06-15Z",
    "2024-02-30",
    "+2024-01-01",
    "",
)


def cast(text: str, dtype: DataType) -> Expression:
    return Cast(dtype=dtype, arg=Literal(STRING, text))


def value(expr: Expression) -> object:
    text = render_scalar(expr, "duckdb", {})
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        sql = declared(connection, f"SELECT epoch_us({text})")
        (found,) = connection.execute(sql).fetchall()
    return found


@pytest.mark.parametrize("dtype", [TIMESTAMP, TIMESTAMP_NTZ])
def test_a_constant_is_the_time_that_its_text_is_cast_to(dtype: DataType) -> None:
    for text in PLAIN:
        fixed = fixed_times(cast(text, dtype), "UTC")
        assert isinstance(fixed, Literal), text
        assert value(fixed) == value(cast(text, dtype)), text


def test_odd_texts_and_other_zones_are_left_to_the_engine() -> None:
    for text in ODD:
        assert fixed_times(cast(text, TIMESTAMP), "UTC") == cast(text, TIMESTAMP)
    plain = cast(PLAIN[1], TIMESTAMP)
    assert fixed_times(plain, "Europe/Berlin") == plain
    assert isinstance(fixed_times(cast(PLAIN[1], TIMESTAMP_NTZ), "Europe/Berlin"), Literal)


def test_a_stage_keeps_all_but_the_text_of_its_times() -> None:
    sql = "SELECT max(v) FROM t WHERE ts >= TIMESTAMP '2024-06-15' AND v IN (1, 2)"
    head = plan_query(sql, CATALOG).stages[0]
    fixed = with_fixed_times(head, "UTC")
    assert "2024-06-15 00:00:00.000000+00:00" in render_fragment(fixed, "duckdb", {})
    assert len(render_fragment(fixed, "duckdb", {})) < len(render_fragment(head, "duckdb", {})) / 5
    assert [leaf is other for leaf, other in zip(fixed.leaves, head.leaves, strict=True)] == [True]
    assert (fixed.schema, fixed.branches) == (head.schema, head.branches)
    assert with_fixed_times(fixed, "UTC") is fixed
