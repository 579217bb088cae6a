"""Which scans a finished build side may prune: only where dropping rows of a key changes nothing."""

from __future__ import annotations

import dataclasses

import pytest

from stagecoach.planner.catalog import ColumnStats, MappingCatalog, TableInfo, TableStats
from stagecoach.planner.options import PlannerOptions
from stagecoach.planner.plan.physical import HashJoinExec, PhysicalPlan, ScanExec
from stagecoach.planner.plan.stages import StageGraph
from stagecoach.planner.planning import plan_query
from stagecoach.planner.pruning.key_filters import key_filters
from stagecoach.planner.tree import walk
from stagecoach.planner.types import BIGINT, DATE, DOUBLE, INT, STRING, Field, decimal

FACT = (Field("day", DATE), Field("k", INT), Field("v", BIGINT), Field("p", decimal(9, 2)), Field("x", DOUBLE), Field("s", STRING))  # fmt: skip
FORCED = PlannerOptions(force_distribution=True, num_partitions=2, inline_bytes=0)


def catalog(num_bytes: int = 10_000, *, spread: float = 1.0, distinct: int = 0) -> MappingCatalog:
    """Facts of so many bytes, and dates, of which each has a row."""
    rows = num_bytes // 10
    known = {
        f.name: ColumnStats(0, 999, 0, distinct or None, 8.0, spread if f.name == "day" else 1.0)
        for f in FACT
        if f.name != "s"
    }
    fact = TableInfo("fact", FACT, TableStats(rows, num_bytes, 100, known))
    days = {"d": ColumnStats(0, 999, 0, 1000, 4.0), "month": ColumnStats(0, 35, 0, 36, 4.0)}
    fields = (Field("d", DATE), Field("month", INT), Field("n", BIGINT), Field("x", DOUBLE), Field("s", STRING))  # fmt: skip
    return MappingCatalog([fact, TableInfo("days", fields, TableStats(1000, 9000, 1, days))])


def found(graph: StageGraph) -> list[str]:
    """For each filter the scan's table and column."""
    texts = []
    for stage in graph.stages:
        for known in key_filters(stage):
            leaf = stage.leaves[known.scan]
            assert isinstance(leaf, ScanExec)
            texts.append(f"{leaf.table}.{leaf.source[known.column]}{'?' * known.null_safe}")
    return texts


CASES = {
    "SELECT v FROM fact JOIN days ON day = d WHERE month = 3": ["fact.day"],
    "SELECT v FROM fact LEFT SEMI JOIN days ON day = d AND k > n": ["fact.day"],
    "SELECT v FROM fact JOIN days ON day <=> d": ["fact.day?"],
    "SELECT v FROM fact JOIN days ON k = n": ["fact.k"],
    "SELECT v FROM fact JOIN days ON p = n": ["fact.p"],
    "SELECT v FROM fact JOIN days ON fact.s = days.s": ["fact.s"],
    "SELECT v FROM fact JOIN days ON day = d AND k = n": ["fact.day", "fact.k"],
    "SELECT v FROM (SELECT date_add(day, 1) AS e, v FROM fact) JOIN days ON e = d": [],
    "SELECT v FROM (SELECT day AS e, v * 2 AS v FROM fact WHERE v > 1) JOIN days ON e = d": ["fact.day"],
    "SELECT a.v FROM fact a LEFT JOIN days ON day = d": [],
    "SELECT a.v FROM fact a LEFT ANTI JOIN days ON day = d": [],
    "SELECT * FROM fact FULL JOIN days ON day = d": [],
    # Rows of the fact table that a limit or a window over other keys looks at must all be there.
    "SELECT v FROM (SELECT * FROM fact LIMIT 100000) JOIN days ON day = d": [],
    "SELECT * FROM (SELECT day, v FROM fact UNION ALL SELECT day, k FROM fact) JOIN days ON day = d": ["fact.day", "fact.day"],
    "SELECT * FROM (SELECT day, y FROM fact LATERAL VIEW explode(array(k, v)) AS y) JOIN days ON day = d": ["fact.day"],
    "SELECT v FROM fact JOIN days ON fact.x = days.x": ["fact.x"],  # dropped later, by its type
    "SELECT rand(), v FROM fact JOIN days ON day = d": [],
}  # fmt: skip


@pytest.mark.parametrize("sql", CASES)
def test_which_scans_are_filtered(sql: str) -> None:
    assert found(plan_query(sql, catalog(1 << 20), FORCED)) == CASES[sql]


def test_a_scan_that_two_operators_read_is_not_filtered() -> None:
    graph = plan_query("SELECT v FROM fact JOIN days ON day = d", catalog(), FORCED)
    stage = next(s for s in graph.stages if s.tables == ("fact",))
    (known,) = key_filters(stage)
    scan = stage.leaves[known.scan]

    (join,) = (n for n in walk(stage.fragment) if isinstance(n, HashJoinExec))
    assert known.scan == 0
    twice: PhysicalPlan = dataclasses.replace(
        join, right=dataclasses.replace(join, left=scan, kind="semi")
    )
    again = dataclasses.replace(stage, fragment=twice)
    assert [id(leaf) for leaf in again.leaves].count(id(scan)) == 2
    assert not key_filters(again)


SQL = "SELECT sum(v) AS s FROM fact JOIN days ON day = d WHERE month = 3"


def stages(facts: MappingCatalog, sql: str = SQL) -> list[str]:
    graph = plan_query(sql, facts, PlannerOptions())
    return [stage.output.reason for stage in graph.stages]


def test_a_small_build_side_is_a_stage_where_its_keys_prune() -> None:
    """A tenth of 1 GB of facts is read, for the price of one stage."""
    large = 1 << 30
    pruned = stages(catalog(large, spread=1 / 1000, distinct=1000))
    assert pruned[0] == "join keys day = d: files of fact without these keys are not read"
    assert len(pruned) == 3
    # Each task scans the dates itself where files hold any day, where little is saved, or where
    # all facts are needed anyway.
    assert len(stages(catalog(large, distinct=1000))) == 2
    assert len(stages(catalog(16 << 20, spread=1 / 1000, distinct=1000))) == 2
    outer = "SELECT sum(v) AS s FROM fact LEFT JOIN (SELECT * FROM days WHERE month = 3) ON day = d"
    for kept in (SQL.replace(" WHERE month = 3", ""), outer):
        assert len(stages(catalog(large, spread=1 / 1000, distinct=1000), kept)) == 2
