"""Queries over rows in memory give what the same plans give over files."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stagecoach.infra.engines.protocol import Resources
from stagecoach.infra.errors import QueryError
from stagecoach.infra.runtime.in_memory.graph_run import MemoryRun, SparkNeededError
from stagecoach.planner import plan_query
from stagecoach.planner.catalog import MappingCatalog, TableInfo, TableStats
from stagecoach.planner.distribution import bloom
from stagecoach.planner.errors import CatalogError, SqlError
from stagecoach.planner.options import PlannerOptions
from stagecoach.planner.plan.physical import BloomBuildExec
from stagecoach.planner.plan.stages import StageGraph
from stagecoach.planner.types import BIGINT, STRING, Field
from tests.differential import corpus_files
from tests.differential.corpus_files import NATIVE
from tests.differential.edge_tables import EdgeTables, write_edge_tables
from tests.differential.inprocess import CLOCK, InProcessRunner, multiset
from tests.differential.relation_tables import write_relation_tables
from tests.differential.shop_tables import write_shop_tables
from tests.share import share

FORCED = PlannerOptions(force_distribution=True, num_partitions=4, broadcast_bytes=0)
ALL = [query for subject in corpus_files.subjects() for query in corpus_files.queries(subject)]
CASES = share([query for query in ALL if query.engine == NATIVE and not query.rounded], 24)


@pytest.fixture(scope="module")
def edge_tables(tmp_path_factory: pytest.TempPathFactory) -> EdgeTables:
    folder = tmp_path_factory.mktemp("edge")
    found = (
        write_edge_tables(folder),
        write_relation_tables(folder, {"n": "tree"}),
        write_shop_tables(folder),
    )
    files = {name: paths for part in found for name, paths in part.files.items()}
    return EdgeTables(folder, files, {n: s for part in found for n, s in part.schemas.items()})


def memory_run(graph: StageGraph, tables: dict[str, pa.Table], folder: Path) -> MemoryRun:
    resources = Resources(time_zone="UTC", memory_bytes=256 << 20, spill_dir=str(folder / "spill"))
    return MemoryRun(graph=graph, tables=tables, values=CLOCK, resources=resources)


@pytest.mark.parametrize("query", CASES, ids=lambda q: q.name)
@pytest.mark.slow
def test_the_corpus(
    query: corpus_files.CorpusQuery, edge_tables: EdgeTables, tmp_path: Path
) -> None:
    try:
        graph = plan_query(query.sql, edge_tables.catalog, FORCED)
    except SqlError:
        return  # as the corpus wants it
    tables = {
        name.lower(): pa.concat_tables([pq.read_table(file) for file in files])
        for name, files in edge_tables.files.items()
        if name in {table for table, _ in graph.tables}
    }
    try:
        expected = InProcessRunner(edge_tables).run(graph)
    except QueryError:
        with pytest.raises(SparkNeededError):
            memory_run(graph, tables, tmp_path).result()
        return
    found = memory_run(graph, tables, tmp_path).result()
    if query.sql.upper().count("LIMIT"):
        assert found.num_rows == expected.num_rows
    else:
        assert multiset(found) == multiset(expected)


ORDERS = TableInfo("orders", (Field("k", BIGINT), Field("v", BIGINT)), TableStats(1 << 20, 1 << 30))
NAMES = TableInfo("names", (Field("k", BIGINT), Field("n", STRING)), TableStats(100, 1 << 20))
CATALOG = MappingCatalog([ORDERS, NAMES])


def rows_of(sql: str, folder: Path, options: PlannerOptions = FORCED, **tables: pa.Table) -> list:
    graph = plan_query(sql, CATALOG, options)
    return sorted(map(tuple, (row.values() for row in memory_run(graph, tables, folder).result().to_pylist())))  # fmt: skip


def test_a_bloom_filter_is_built_and_applied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bloom, "_WAIT_BYTES", -(1 << 40))
    monkeypatch.setattr(bloom, "MAX_SHARE", 1.0)
    options = PlannerOptions(
        force_distribution=True, num_partitions=3, inline_bytes=0, broadcast_bytes=200
    )
    sql = "SELECT o.v, n.n FROM orders o JOIN names n ON o.k = n.k"
    graph = plan_query(sql, CATALOG, options)
    assert any(isinstance(stage.fragment, BloomBuildExec) for stage in graph.stages)
    orders = pa.table({"k": [1, 2, None, 3, 1], "v": [10, 20, 30, 40, 50]})
    names = pa.table({"k": [1, 2, None, 4], "n": ["x", "y", "x", "x"]})
    found = rows_of(sql, tmp_path, options, orders=orders, names=names)
    assert found == [(10, "x"), (20, "y"), (50, "x")]


@pytest.mark.parametrize("options", [FORCED, PlannerOptions(single_task_bytes=1 << 60)])
def test_scans_without_columns_and_branches(options: PlannerOptions, tmp_path: Path) -> None:
    orders = pa.table({"k": [1, 2, 2], "v": pa.array([1, None, 3], pa.int64())})
    names = pa.table({"k": pa.array([], pa.int64()), "n": pa.array([], pa.string())})
    sql = "SELECT count(*) FROM orders"
    assert rows_of(sql, tmp_path, options, orders=orders) == [(3,)]
    union = "SELECT k, v FROM orders UNION ALL SELECT k, k FROM names UNION ALL SELECT k, 7 FROM orders WHERE k = 1"
    found = rows_of(f"SELECT count(v) AS n, count(*) AS c FROM ({union})", tmp_path, options, orders=orders, names=names)  # fmt: skip
    assert found == [(3, 4)]


def test_a_stage_of_spark_is_refused_by_name(tmp_path: Path) -> None:
    graph = plan_query("SELECT sin(v) AS s FROM orders", CATALOG, name="q")
    orders = pa.table({"k": [1], "v": [1]})
    with pytest.raises(SparkNeededError, match=r"q/stage_0 needs Spark: .*sin"):
        memory_run(graph, {"orders": orders}, tmp_path).result()


def test_what_duckdb_raises_needs_spark(tmp_path: Path) -> None:
    graph = plan_query("SELECT 1 DIV v AS s FROM orders", CATALOG, name="q")
    orders = pa.table({"k": [1], "v": [0]})
    with pytest.raises(SparkNeededError, match="DuckDB cannot run it over these rows"):
        memory_run(graph, {"orders": orders}, tmp_path).result()


def test_a_table_without_rows_is_told(tmp_path: Path) -> None:
    graph = plan_query("SELECT v FROM orders", CATALOG)
    with pytest.raises(CatalogError, match="no rows of table 'orders'"):
        memory_run(graph, {}, tmp_path).result()
