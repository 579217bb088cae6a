"""What a trace leaves out does not change the chosen rows: the rest gives them again."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from stagecoach.assets.query_tests.compare import canonical_rows
from stagecoach.infra.engines.protocol import Relation, Resources
from stagecoach.infra.errors import QueryError
from stagecoach.infra.reading.inputs import LeafColumn
from stagecoach.infra.replay.row_tracing import LeafTracer, TracedLeaf
from stagecoach.infra.runtime.in_memory.graph_run import MemoryRun, SparkNeededError, _relation
from stagecoach.planner import plan_query
from stagecoach.planner.catalog import MappingCatalog, TableInfo, TableStats
from stagecoach.planner.errors import SqlError
from stagecoach.planner.lineage.row_trace import trace_rows
from stagecoach.planner.options import PlannerOptions
from stagecoach.planner.plan.physical import ScanExec
from stagecoach.planner.plan.stages import Stage, StageGraph
from stagecoach.planner.types import BIGINT, STRING, Field
from tests.differential import corpus_files
from tests.differential.corpus_files import NATIVE
from tests.differential.edge_tables import EdgeTables, write_edge_tables
from tests.differential.inprocess import CLOCK
from tests.differential.relation_tables import write_relation_tables
from tests.differential.shop_tables import write_shop_tables
from tests.share import share
from tests.tpch import NAMES, Tpch, query_text
from tests.tpch import tpch as tpch

if TYPE_CHECKING:
    from collections.abc import Mapping

FORCED = PlannerOptions(force_distribution=True, num_partitions=4, broadcast_bytes=0)
SINGLE = PlannerOptions(single_task_bytes=1 << 60)
ALL = [query for subject in corpus_files.subjects() for query in corpus_files.queries(subject)]
CASES = share([query for query in ALL if query.engine == NATIVE and not query.rounded], 60)
TPCH = share([(name, options) for name in NAMES for options in (FORCED, SINGLE)], 6)


@dataclass(frozen=True, kw_only=True)
class OverLeaves(MemoryRun):
    """A run whose stages may read other rows of their leaves than those that there are."""

    instead: dict[int, pa.Table] = field(default_factory=dict)

    def rows(self, stage: Stage) -> pa.Table:
        return self._in_tasks(stage)

    def leaf(self, stage: Stage, position: int) -> tuple[tuple[LeafColumn, ...], pa.Table]:
        return super()._leaf(stage, position)

    def _leaf(self, stage: Stage, position: int) -> tuple[tuple[LeafColumn, ...], pa.Table]:
        columns, rows = super()._leaf(stage, position)
        found = self.instead.get(position)
        return columns, rows if found is None else found.rename_columns(rows.schema.names)

    def keep(self, stage: Stage) -> pa.Table:
        self._done[stage.stage_id] = rows = self._run(stage)
        return rows


def resources(folder: Path) -> Resources:
    return Resources(time_zone="UTC", memory_bytes=256 << 20, spill_dir=str(folder / "spill"))


def traced_leaves(run: OverLeaves, stage: Stage, chosen: pa.Table) -> list[TracedLeaf]:
    def relation(position: int) -> Relation:
        return _relation(*run.leaf(stage, position))

    tracer = LeafTracer(stage=stage, values=run.values, resources=run.resources, relation=relation)
    return tracer.trace(chosen)


def wrong_of(run: OverLeaves, stage: Stage, found: pa.Table, *, every: bool) -> list[str]:
    """What is wrong with the traces of some or all rows of a stage, each traced by itself."""
    rows = canonical_rows(found)
    counted = Counter(rows)
    wrong: list[str] = []
    numbers = range(len(rows)) if every else {0, len(rows) // 2, len(rows) - 1}
    for number in sorted(set(numbers) & set(range(len(rows)))):
        chosen = found.slice(number, 1)
        leaves = traced_leaves(run, stage, chosen)
        run.instead.clear()
        run.instead.update({t.trace.position: t.rows for t in leaves if t.num_rows is not None})
        assert all(t.is_whole for t in leaves if t.num_rows is not None)
        again = Counter(canonical_rows(run.rows(stage)))
        run.instead.clear()
        before, now = counted[rows[number]], again[rows[number]]
        if now < 1 or (trace_rows(stage).is_exact and now != before):
            told = [(t.trace.position, t.num_rows, t.by) for t in leaves]
            wrong.append(f"stage {stage.stage_id}: {rows[number]}: {now}, not {before}: {told}")
    return wrong


def check(
    graph: StageGraph, tables: Mapping[str, pa.Table], folder: Path, *, every: bool = False
) -> None:
    run = OverLeaves(graph=graph, tables=tables, values=CLOCK, resources=resources(folder))
    wrong: list[str] = []
    for stage in graph.stages:
        try:
            found = run.keep(stage)
        except SparkNeededError:
            return
        if " OFFSET " not in graph.sql.upper().replace("\n", " "):
            wrong += wrong_of(run, stage, found, every=every)
    assert not wrong, "\n".join(wrong)


# ---------------------------------------------------------------- one operator at a time


T = TableInfo("t", (Field("k", BIGINT), Field("g", STRING), Field("x", BIGINT)), TableStats(8, 200))
U = TableInfo("u", (Field("k", BIGINT), Field("y", BIGINT)), TableStats(6, 100))
ROWS = {
    "t": pa.table(
        {
            "k": pa.array([1, 1, 2, 3, 3, None, 5, 6], pa.int64()),
            "g": ["a", "b", "a", "b", "b", "a", None, "c"],
            "x": pa.array([10, 20, 30, 40, 40, 50, 60, None], pa.int64()),
        }
    ),
    "u": pa.table(
        {
            "k": pa.array([1, 1, 2, 4, None, 6], pa.int64()),
            "y": pa.array([7, 8, None, 9, 5, None], pa.int64()),
        }
    ),
}
QUERIES = [
    "SELECT g, sum(x), count(*) FROM t GROUP BY g",
    "SELECT g, k + 1, max(x) FROM t WHERE x > 10 GROUP BY g, k + 1 HAVING g <> 'c'",
    "SELECT count(*), sum(x) FROM t",
    "SELECT DISTINCT g FROM t",
    "SELECT g, x, row_number() OVER (PARTITION BY g ORDER BY x, k) FROM t",
    "SELECT g, x, sum(x) OVER (ORDER BY x, k) FROM t",
    "SELECT g, x, sum(x) OVER (PARTITION BY g), rank() OVER (PARTITION BY k ORDER BY x) FROM t",
    "SELECT * FROM (SELECT g, x, rank() OVER (PARTITION BY g ORDER BY x) r FROM t) WHERE r <= 1",
    "SELECT t.g, u.y FROM t JOIN u ON t.k = u.k",
    "SELECT t.g, sum(u.y) FROM t JOIN u ON t.k = u.k GROUP BY t.g",
    "SELECT t.g, u.y FROM t LEFT JOIN u ON t.k = u.k",
    "SELECT t.k, count(u.y), count(*) FROM t LEFT JOIN u ON t.k = u.k GROUP BY t.k",
    "SELECT u.y, count(*) FROM t LEFT JOIN u ON t.k = u.k GROUP BY u.y",
    "SELECT y, count(*) FROM t LEFT JOIN u ON t.k = u.k AND u.y > 7 GROUP BY y",
    "SELECT t.g, u.k, u.y FROM t RIGHT JOIN u ON t.k = u.k AND t.x > 10",
    "SELECT t.x, count(*) FROM t RIGHT JOIN u ON t.k = u.k AND t.x > 10 GROUP BY t.x",
    "SELECT k, x, y FROM t FULL JOIN u USING (k)",
    "SELECT k, count(x), count(y) FROM t FULL JOIN u USING (k) GROUP BY k",
    "SELECT t.k, u.k, count(*) FROM t FULL JOIN u ON t.k = u.k AND x > 10 GROUP BY t.k, u.k",
    "SELECT t.x, u.y FROM t FULL JOIN u ON t.k <=> u.k",
    "SELECT t.g, u.y FROM t JOIN u ON t.k <=> u.k",
    "SELECT a.x, b.x FROM t a LEFT JOIN u ON a.k = u.k JOIN t b ON b.k <=> u.k",
    "SELECT a.x, count(*) FROM t a LEFT JOIN u ON a.k = u.k JOIN t b ON b.k <=> u.k GROUP BY a.x",
    "SELECT a.y, b.y FROM t LEFT JOIN u a ON t.k = a.k LEFT JOIN u b ON coalesce(a.k, 4) = b.k",
    "SELECT g, x FROM t WHERE k IN (SELECT k FROM u)",
    "SELECT g, count(*) FROM t WHERE k IN (SELECT k FROM u WHERE y > 7) GROUP BY g",
    "SELECT g, count(*) FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.k = t.k) GROUP BY g",
    "SELECT g, x FROM t WHERE k NOT IN (SELECT k FROM u WHERE k IS NOT NULL)",
    "SELECT g, x FROM t WHERE x > (SELECT avg(x) FROM t)",
    "SELECT g, x FROM t o WHERE x >= (SELECT max(x) FROM t i WHERE i.g = o.g)",
    "SELECT g, k, sum(x) FROM t GROUP BY g, k WITH ROLLUP",
    "SELECT g, k, grouping(g), count(*) FROM t GROUP BY GROUPING SETS ((g), (k), ())",
    "SELECT g, k FROM t UNION ALL SELECT 'u', k FROM u",
    "SELECT k, count(*) FROM (SELECT k FROM t UNION ALL SELECT k FROM u) GROUP BY k",
    "SELECT k FROM t UNION SELECT k FROM u",
    "SELECT k FROM t INTERSECT SELECT k FROM u",
    "SELECT k FROM t EXCEPT ALL SELECT k FROM u",
    "SELECT g, x FROM t ORDER BY x DESC LIMIT 3",
    "SELECT g, sum(x) FROM (SELECT * FROM t ORDER BY x, k LIMIT 4) GROUP BY g",
    "SELECT g, sum(x) s FROM t GROUP BY g ORDER BY s DESC, g LIMIT 2",
    "SELECT g, n FROM t LATERAL VIEW explode(array(k, x)) AS n",
    "SELECT n, count(*) FROM t LATERAL VIEW explode(array(k, x)) AS n GROUP BY n",
    "SELECT a.g, count(*) FROM t a JOIN t b ON a.k = b.k AND a.x < b.x GROUP BY a.g",
    "SELECT a.g, b.y FROM t a, u b WHERE a.x > b.y",
    "WITH s AS (SELECT g, sum(x) AS x FROM t GROUP BY g) SELECT a.g, b.x FROM s a, s b",
    "SELECT g, percentile(x, 0.5), count(DISTINCT k) FROM t GROUP BY g",
    "SELECT u.k, m FROM u JOIN (SELECT k, max(x) m FROM t GROUP BY k) s ON s.k = u.k",
    "SELECT u.k, m FROM u LEFT JOIN (SELECT k, max(x) m FROM t GROUP BY k) s ON s.k = u.k",
]


@pytest.mark.parametrize("options", [FORCED, SINGLE], ids=["stages", "single"])
@pytest.mark.parametrize("sql", QUERIES)
def test_every_row_comes_from_its_traced_rows(
    sql: str, options: PlannerOptions, tmp_path: Path
) -> None:
    graph = plan_query(sql, MappingCatalog([T, U]), options)
    assert graph.fallback_reason is None
    check(graph, ROWS, tmp_path, every=True)


def traced(sql: str, tmp_path: Path, column: str, value: object) -> dict[str, list[object]]:
    """The values of `x` and `y` of the rows that rows of the result of one stage come from."""
    graph = plan_query(sql, MappingCatalog([T, U]), SINGLE)
    run = OverLeaves(graph=graph, tables=ROWS, values=CLOCK, resources=resources(tmp_path))
    found = run.keep(graph.head).rename_columns([f.name for f in graph.result])
    chosen = found.filter(pc.equal(found.column(column), value))
    traced: dict[str, list[object]] = {}
    for leaf in traced_leaves(run, graph.head, chosen):
        scan = leaf.trace.leaf
        assert isinstance(scan, ScanExec)
        (place,) = (i for i, name in enumerate(scan.source) if name in ("x", "y"))
        traced[scan.table] = sorted(leaf.rows.column(place).to_pylist(), key=str)
    return traced


def test_rows_are_narrowed_by_keys_of_groups_and_joins(tmp_path: Path) -> None:
    sql = "SELECT t.g, sum(x) + sum(y) AS s FROM t JOIN u ON t.k = u.k GROUP BY t.g"
    assert traced(sql, tmp_path, "g", "b") == {"t": [20, 40, 40], "u": [7, 8]}
    sql = "SELECT g, x, row_number() OVER (PARTITION BY g ORDER BY x, k) AS n FROM t"
    assert traced(sql, tmp_path, "x", 30) == {"t": [10, 30, 50]}
    sql = "SELECT k, sum(x) AS x, sum(y) AS y FROM t FULL JOIN u USING (k) GROUP BY k"
    assert traced(sql, tmp_path, "k", 2) == {"t": [30], "u": [None]}


# ---------------------------------------------------------------- many queries


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


@pytest.mark.parametrize("options", [FORCED, SINGLE], ids=["stages", "single"])
@pytest.mark.parametrize("query", CASES, ids=lambda q: q.name)
@pytest.mark.slow
def test_the_corpus(
    query: corpus_files.CorpusQuery,
    options: PlannerOptions,
    edge_tables: EdgeTables,
    tmp_path: Path,
) -> None:
    try:
        graph = plan_query(query.sql, edge_tables.catalog, options)
    except SqlError:
        return  # as the corpus wants it
    tables = {
        name.lower(): pa.concat_tables([pq.read_table(file) for file in files])
        for name, files in edge_tables.files.items()
        if name in {table for table, _ in graph.tables}
    }
    try:
        check(graph, tables, tmp_path)
    except QueryError:
        pytest.skip("DuckDB raises for its rows")


@pytest.mark.parametrize(("name", "options"), TPCH)
@pytest.mark.slow
def test_tpch(name: str, options: PlannerOptions, tpch: Tpch, tmp_path: Path) -> None:
    graph = plan_query(query_text(name), tpch.catalog, options)
    tables = {table: pq.read_table(tpch.folder / table) for table, _ in graph.tables}
    check(graph, tables, tmp_path)
