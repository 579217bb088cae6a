"""Plans that a session takes again, and what makes it plan anew."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stagecoach.api.plan_cache import PlanCache
from stagecoach.planner.catalog import Catalog, MappingCatalog, TableInfo, TableStats
from stagecoach.planner.errors import AnalysisError
from stagecoach.planner.plan.stages import StageGraph
from stagecoach.planner.planning import plan_query
from stagecoach.planner.types import BIGINT, Field

TABLE = TableInfo("t", (Field("k", BIGINT),), TableStats(10, 100))
OTHER = TableInfo("u", (Field("k", BIGINT),), TableStats(10, 100))
SQL = "SELECT sum(k) AS s FROM t"


class Planned:
    """Plans through a cache and counts how often the planner was needed."""

    def __init__(self, most: int = 8) -> None:
        self._cache = PlanCache(most)
        self.times = 0

    def plan(self, catalog: Catalog, sql: str = SQL, name: str = "q") -> StageGraph:
        def make(noting: Catalog) -> StageGraph:
            self.times += 1
            return plan_query(sql, noting, name=name)

        return self._cache.get((sql, name), catalog, make)


def test_a_query_is_planned_once_while_its_tables_are_the_same() -> None:
    planned = Planned()
    first = planned.plan(MappingCatalog([TABLE, OTHER]))
    # Another catalog that says the same, and another table that the query does not read.
    again = planned.plan(MappingCatalog([replace(TABLE), replace(OTHER, stats=None)]))
    assert planned.times == 1
    assert again is first


@pytest.mark.parametrize(
    "changed",
    [
        replace(TABLE, stats=TableStats(11, 100)),
        replace(TABLE, columns=(*TABLE.columns, Field("l", BIGINT))),
        replace(TABLE, native_reason="only Spark reads it"),
    ],
)
def test_a_table_that_changes_is_planned_with_as_it_is(changed: TableInfo) -> None:
    planned = Planned()
    planned.plan(MappingCatalog([TABLE]))
    found = planned.plan(MappingCatalog([changed]))
    assert planned.times == 2
    assert found == plan_query(SQL, MappingCatalog([changed]), name="q")
    assert planned.plan(MappingCatalog([changed])) is found


def test_a_table_that_is_gone_is_an_error() -> None:
    planned = Planned()
    planned.plan(MappingCatalog([TABLE]))
    with pytest.raises(AnalysisError, match="t"):
        planned.plan(MappingCatalog([OTHER]))
    planned.plan(MappingCatalog([TABLE]))
    assert planned.times == 2


def test_a_name_is_part_of_a_plan() -> None:
    planned = Planned()
    catalog = MappingCatalog([TABLE])
    assert [planned.plan(catalog, name=name).query for name in ("q", "r", "q")] == ["q", "r", "q"]
    assert planned.times == 2


def test_what_spark_is_asked_about_is_planned_each_time() -> None:
    planned = Planned()
    sql = "SELECT length(collate('a', 'UNICODE')) AS n FROM t"
    for _ in range(2):
        assert planned.plan(MappingCatalog([TABLE]), sql).fallback_reason is not None
    assert planned.times == 2


def test_the_plan_that_was_used_last_stays() -> None:
    planned = Planned(most=2)
    catalog = MappingCatalog([TABLE])
    for name in ("a", "b", "a", "c", "a"):
        planned.plan(catalog, name=name)
    assert planned.times == 3
    planned.plan(catalog, name="b")
    assert planned.times == 4
