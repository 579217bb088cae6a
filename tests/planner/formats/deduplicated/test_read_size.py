"""A query for a little of a deduplicated table is planned as a small query."""

from __future__ import annotations

import dataclasses

import pytest

from stagecoach.planner.catalog import ColumnStats, MappingCatalog, TableInfo, TableStats
from stagecoach.planner.formats.deduplicated.chunk import Chunk, DedupState, DedupTable
from stagecoach.planner.options import PlannerOptions
from stagecoach.planner.planning import plan_query
from stagecoach.planner.types import BIGINT, DOUBLE, STRING, TIMESTAMP, Field

_DAY = 86_400_000_000
_FIRST = 19_723 * _DAY  # 2024-01-01
_FIELDS = (
    Field("device", STRING), Field("ts", TIMESTAMP), Field("value", DOUBLE), Field("n", BIGINT)
)  # fmt: skip
_TABLE = DedupTable(name="m", columns=_FIELDS, primary_key=("device", "ts"), time_column="ts")
_GROUPED = "SELECT device, avg(value) AS a FROM m {where} GROUP BY device ORDER BY device"
_DAY_5 = "WHERE ts >= TIMESTAMP '2024-01-05 00:00:00' AND ts < TIMESTAMP '2024-01-06 00:00:00'"


def _info(table: DedupTable) -> TableInfo:
    days = tuple(
        Chunk(
            chunk_id=f"day{day}",
            num_rows=100_000,
            num_bytes=900_000,
            sequence=day,
            columns=_FIELDS,
            time_min=_FIRST + day * _DAY,
            time_max=_FIRST + (day + 1) * _DAY - 1,
        )
        for day in range(30)
    )
    times = ColumnStats(min_value=_FIRST, max_value=_FIRST + 30 * _DAY, avg_bytes=8.0)
    others = ColumnStats(avg_bytes=8.0)
    stats = TableStats(
        num_rows=3_000_000,
        num_bytes=27_000_000,
        num_files=30,
        columns={f.name: times if f.name == "ts" else others for f in _FIELDS},
    )
    return TableInfo(
        "m",
        _FIELDS,
        stats,
        unique_key=table.primary_key,
        format="deduplicated",
        detail=DedupState(table, days),
    )


@pytest.mark.parametrize(
    ("where", "stages"),
    [
        ("", 3),
        (_DAY_5, 1),
        (f"{_DAY_5} AND value > 3", 1),
        ("WHERE ts >= TIMESTAMP '2024-01-05 00:00:00'", 3),
        ("WHERE ts < TIMESTAMP '2023-01-05 00:00:00'", 1),
        ("WHERE value > 3", 3),
        (_DAY_5.replace("AND", "OR"), 3),
    ],
)
def test_a_day_of_a_month_is_read_by_one_task(where: str, stages: int) -> None:
    catalog = MappingCatalog([_info(_TABLE)])
    graph = plan_query(_GROUPED.format(where=where), catalog, PlannerOptions())
    assert len(graph.stages) == stages


def test_times_outside_of_the_key_leave_no_chunk_out() -> None:
    table = dataclasses.replace(_TABLE, primary_key=("device",))
    catalog = MappingCatalog([_info(table)])
    graph = plan_query(_GROUPED.format(where=_DAY_5), catalog, PlannerOptions())
    assert len(graph.stages) == 3
