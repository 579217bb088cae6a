"""What a trace leaves out does not change the chosen rows: the rest gives them again."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stagecoach.assets.query_tests.compare import canonical_rows
from stagecoach.infra.engines.protocol import Relation, Resources
from stagecoach.infra.errors import QueryError
from stagecoach.infra.reading.inputs import LeafColumn
from stagecoach.infra.replay.row_tracing import LeafTracer, TracedLeaf
from stagecoach.infra.runtime.in_memory.graph_run import MemoryRun, SparkNeededError, _relation
from stagecoach.planner import plan_query
from stagecoach.planner.errors import SqlError
from stagecoach.planner.lineage.row_trace import trace_rows
from stagecoach.planner.options import PlannerOptions
from stagecoach.planner.plan.stages import Stage, StageGraph
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
CASES = share([query for query in ALL if query.engine == NATIVE and not query.rounded], 30)
TPCH = share([(name, options) for name in NAMES for options in (FORCED, SINGLE)], 3)


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


def wrong_of(run: OverLeaves, stage: Stage, found: pa.Table) -> list[str]:
    """What is wrong with the traces of some rows of a stage, each traced by itself."""
    rows = canonical_rows(found)
    counted = Counter(rows)
    wrong: list[str] = []
    for number in sorted({0, len(rows) // 2, len(rows) - 1} & set(range(len(rows)))):
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


def check(graph: StageGraph, tables: Mapping[str, pa.Table], folder: Path) -> None:
    run = OverLeaves(graph=graph, tables=tables, values=CLOCK, resources=resources(folder))
    wrong: list[str] = []
    for stage in graph.stages:
        try:
            found = run.keep(stage)
        except SparkNeededError:
            return
        if " OFFSET " not in graph.sql.upper().replace("\n", " "):
            wrong += wrong_of(run, stage, found)
    assert not wrong, "\n".join(wrong)


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
