"""TPC-H for planner tests: the queries of `pipelines/` and a catalog of statistics without data."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

from stagecoach.planner.catalog import ColumnStats, MappingCatalog, TableInfo, TableStats
from stagecoach.planner.options import PlannerOptions
from stagecoach.planner.plan.stages import StageGraph
from stagecoach.planner.planning import plan_query
from stagecoach.planner.types import Field, parse_type

ROOT = Path(__file__).parents[2]
QUERIES = ROOT / "pipelines" / "queries"
FIXTURES = ROOT / "tests" / "fixtures"
NAMES = tuple(f"q{number:02d}" for number in range(1, 23))

DEFAULT = PlannerOptions()
FORCED = PlannerOptions(force_distribution=True, broadcast_bytes=0, num_partitions=4)


def query_text(name: str) -> str:
    return (QUERIES / f"{name}.sql").read_text(encoding="utf-8")


@functools.cache
def sf10_catalog() -> MappingCatalog:
    """The tables at scale 10, from injected statistics (see fixtures/make_tpch_catalog.py)."""
    data = json.loads((FIXTURES / "tpch_sf10_catalog.json").read_text(encoding="utf-8"))
    return MappingCatalog([_table(name, entry) for name, entry in data.items()])


def _table(name: str, entry: dict[str, Any]) -> TableInfo:
    columns = tuple(Field(c, parse_type(t)) for c, t in entry["columns"].items())
    stats = {
        c: ColumnStats(s["min"], s["max"], s["nulls"], s["distinct"], s["avg_bytes"])
        for c, s in entry["stats"].items()
    }
    sizes = TableStats(entry["num_rows"], entry["num_bytes"], entry["num_files"], stats)
    return TableInfo(name, columns, sizes)


@functools.cache
def tpch_graph(name: str, options: PlannerOptions = DEFAULT) -> StageGraph:
    return plan_query(query_text(name), sf10_catalog(), options, name=name)
