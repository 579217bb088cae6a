"""docs/contributor-guide/engines.md, followed: a new engine, through a scan, a shuffle and a refusal."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stagecoach.infra.catalog.catalog import FileCatalog, load_catalog
from stagecoach.infra.config.settings import EngineSettings
from stagecoach.infra.engines import registry
from stagecoach.infra.engines.registry import register_engine, task_engine
from stagecoach.infra.errors import ConfigError, QueryError
from stagecoach.infra.reading.data_file import DataFile
from stagecoach.infra.reading.inputs import LeafColumn, ScanInput
from stagecoach.infra.shuffle.map_file import OutputPartitioning
from stagecoach.infra.shuffle.reader import read_table
from stagecoach.infra.storage.object_store import ObjectStore
from stagecoach.infra.storage.stores import open_store
from stagecoach.infra.worker.reports import TaskFailure, TaskReport
from stagecoach.infra.worker.spec import InputSpec, ShuffleInput, TaskSettings, TaskSpec
from stagecoach.infra.worker.task import output_schema, run_task
from stagecoach.planner.engines.registry import PLANNER_ENGINES
from stagecoach.planner.errors import GraphFormatError, OptionError, UnsupportedSqlError
from stagecoach.planner.explain.display import render_graph
from stagecoach.planner.options import PlannerOptions
from stagecoach.planner.plan.serde import dump_graph, load_graph
from stagecoach.planner.planning import plan_query
from stagecoach.planner.render.fragment import render_fragment
from stagecoach.planner.types import BIGINT, STRING, DataType
from tests.infra.stage_runs import run_here
from tests.stage_outputs import commit_files

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "contributor-guide" / "engines.md"
NAMES = [f"n{i % 7}" for i in range(1000)]


@pytest.fixture(params=["sqlite", "duckdb"])
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The new engine, and as a reference the one that is there."""
    monkeypatch.setattr(registry, "_ENGINES", dict(registry._ENGINES))
    register_engine("sqlite", "tests.infra.engines.sqlite_engine:SqliteEngine")
    for part in ("_paths", "_found"):
        monkeypatch.setattr(PLANNER_ENGINES, part, dict(getattr(PLANNER_ENGINES, part)))
    PLANNER_ENGINES.register("sqlite", "tests.infra.engines.sqlite_planner:ENGINE")
    yield request.param
    task_engine.cache_clear()


@pytest.fixture
def store(tmp_path: Path) -> ObjectStore:
    return open_store(tmp_path / "store")


def make_spec(
    store: ObjectStore,
    folder: Path,
    engine: str,
    sql: str,
    leaf: InputSpec,
    types: tuple[DataType, ...],
    stage_id: int = 0,
) -> TaskSpec:
    return TaskSpec(
        query="q",
        stage_id=stage_id,
        fingerprint="ab"[stage_id] * 64,
        task_index=0,
        sql=sql,
        inputs=(leaf,),
        types=types,
        output=OutputPartitioning(kind="shuffle", keys=(0,), num_partitions=4),
        settings=TaskSettings(
            store=store.to_dict(),
            time_zone="UTC",
            memory_bytes=256 << 20,
            writer_memory_bytes=64 << 20,
            max_spill_bytes=0,
            spill_dir=str(folder / "spill"),
            codec="lz4",
            directories=(str(folder),),
        ),
        engine=engine,
    )


def counted(store: ObjectStore, folder: Path, engine: str, sql: str) -> tuple[TaskSpec, TaskReport]:
    pq.write_table(pa.table({"name": NAMES}), folder / "a.parquet")
    leaf = ScanInput(
        columns=(LeafColumn("c6", "name", STRING),),
        files=(DataFile(str(folder / "a.parquet"), 1000, rows=(0, 700)),),
    )
    spec = make_spec(store, folder, engine, sql, leaf, (STRING, BIGINT))
    return spec, run_task(TaskSpec.from_dict(spec.to_dict()))


def test_a_scan_and_the_stage_above_it(tmp_path: Path, store: ObjectStore, engine: str) -> None:
    sql = "SELECT c6 AS c0, count(*) AS c1 FROM in_0 GROUP BY c6"
    spec, report = counted(store, tmp_path, engine, sql)
    assert report.failure is None, report.failure
    assert report.file is not None
    assert report.rows_in == (700,)
    manifest = commit_files(
        store, spec.fingerprint, [report.file], output_schema(spec.types), spec.output
    )

    leaf = ShuffleInput(
        columns=(LeafColumn("c1", "", STRING), LeafColumn("c2", "", BIGINT)),
        fingerprint=manifest.fingerprint,
        manifest_hash=manifest.manifest_hash,
        stage="q/stage_0",
        low=0,
        high=4,
    )
    sql = "SELECT c1 AS c0, c2 * 2 AS c1 FROM in_0 WHERE c1 <> 'n0'"
    above = make_spec(store, tmp_path, engine, sql, leaf, (STRING, BIGINT), stage_id=1)
    done = run_task(above)
    assert done.file is not None, done.failure
    found = read_table(
        store,
        commit_files(
            store, above.fingerprint, [done.file], output_schema(above.types), above.output
        ),
    )
    rows = sorted(zip(*found.to_pydict().values(), strict=True))
    assert rows == [(f"n{i}", 200) for i in range(1, 7)]


def test_what_an_engine_refuses_is_left_to_spark(
    tmp_path: Path, store: ObjectStore, engine: str
) -> None:
    _, report = counted(store, tmp_path, engine, "SELECT no_such_column FROM in_0")
    assert isinstance(report.failure, TaskFailure)
    error = report.failure.to_error("q/stage_0", 0)
    assert isinstance(error, QueryError)
    assert "no_such_column" in str(error)


def test_an_unknown_engine_names_those_that_are_known(engine: str) -> None:
    with pytest.raises(ConfigError, match="'none' is not a task engine; engines: duckdb, sqlite"):
        task_engine("none")


QUERY = """
SELECT name, count(*) AS n, count(k) AS known, sum(k) AS total, min(k) AS least FROM t
WHERE k > 10 AND name <> 'n3' OR name = 'n3' AND k >= 990 GROUP BY name ORDER BY total DESC
"""


def sales(folder: Path) -> FileCatalog:
    (folder / "t").mkdir()
    rows = pa.table({"k": [i if i % 9 else None for i in range(1000)], "name": NAMES})
    for part in range(2):
        pq.write_table(rows.slice(500 * part, 500), folder / "t" / f"{part}.parquet")
    (folder / "catalog.yaml").write_text("tables:\n  t:\n    location: t\n")
    return load_catalog(folder / "catalog.yaml")


def test_a_query_is_planned_for_the_engine_and_runs(tmp_path: Path, engine: str) -> None:
    catalog = sales(tmp_path)
    options = PlannerOptions(engine=engine, force_distribution=True, num_partitions=3)
    graph = load_graph(dump_graph(plan_query(QUERY, catalog, options)))
    assert [stage.engine for stage in graph.stages] == [engine] * 3
    assert f"engine={engine} ──" in render_graph(graph, "text")
    settings = EngineSettings(
        storage_root=str(tmp_path / "store"),
        spill_dir=str(tmp_path / "spill"),
        parallelism=2,
        min_task_bytes=0,
        memory_bytes=256 << 20,
    )
    store = open_store(settings.storage_root)
    runs = run_here(graph, catalog, settings, store)
    assert {spec.engine for run in runs for spec in run.specs} == {engine}
    groups: dict[str, list[int]] = {}
    for k, name in enumerate(NAMES):
        if k % 9 and (k >= 990 if name == "n3" else k > 10):
            groups.setdefault(name, []).append(k)
    expected = [(name, len(ks), len(ks), sum(ks), min(ks)) for name, ks in groups.items()]
    found = read_table(store, runs[-1].manifest)
    assert found.num_rows == 7
    assert list(zip(*found.to_pydict().values(), strict=True)) == sorted(
        expected, key=lambda row: -row[3]
    )


def test_what_the_engine_must_not_run_is_an_error_if_it_was_asked_for(
    tmp_path: Path, engine: str
) -> None:
    catalog = sales(tmp_path)
    sql = "SELECT to_char(k, '9999.') AS h FROM t"
    label = {"sqlite": "SQLite", "duckdb": "DuckDB"}[engine]
    with pytest.raises(UnsupportedSqlError, match=f"stage 0 cannot run on {label}: .*to_char"):
        plan_query(sql, catalog, PlannerOptions(engine=engine))


def test_engines_are_tried_in_turn_and_spark_runs_the_rest(tmp_path: Path, engine: str) -> None:
    catalog = sales(tmp_path)
    if engine == "sqlite":
        PLANNER_ENGINES.remove("duckdb")
    assert plan_query("SELECT k FROM t WHERE k > 5", catalog).head.engine == engine
    head = plan_query("SELECT to_char(k, '9999.') AS h FROM t", catalog).head
    assert head.engine == "spark"
    assert (
        head.engine_reason
        == {
            "sqlite": "function 'to_char' is not proven",
            "duckdb": "DuckDB: to_char by this format is not proven; "
            "SQLite: function 'to_char' is not proven",
        }[engine]
    )


def test_an_unknown_engine_is_refused_by_name(tmp_path: Path, engine: str) -> None:
    with pytest.raises(OptionError, match="'ray'; use auto, duckdb, spark or sqlite"):
        PlannerOptions(engine="ray")
    graph = plan_query("SELECT k FROM t", sales(tmp_path), PlannerOptions(engine=engine))
    strange = replace(graph.head, engine="ray")
    with pytest.raises(GraphFormatError, match=r"unknown engine 'ray' \(duckdb, spark, sqlite\)"):
        render_fragment(strange, strange.engine, {})


def test_the_page_names_files_that_exist() -> None:
    paths = re.findall(r"`((?:planner|infra|tests|docs)/[\w./]+)`", PAGE.read_text("utf-8"))
    assert len(paths) >= 6
    assert [path for path in paths if not (ROOT / path).exists()] == []
