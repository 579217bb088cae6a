"""Stages end to end: real plans, DuckDB and Spark, manifests in a folder."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stagecoach.infra.catalog.catalog import FileCatalog, load_catalog
from stagecoach.infra.config.settings import EngineSettings
from stagecoach.infra.errors import InputLostError, QueryError, QueryFailedError, ShuffleReadError
from stagecoach.infra.runtime.stages import attempt as execution
from stagecoach.infra.runtime.stages import run_stage as stage
from stagecoach.infra.runtime.stages.run_stage import (
    Run,
    StageResult,
    read_result,
    run_stage,
)
from stagecoach.infra.shuffle.commit import load_manifest
from stagecoach.infra.shuffle.manifest import ManifestError
from stagecoach.infra.storage import layout
from stagecoach.infra.upkeep.gc import collect_garbage
from stagecoach.planner.errors import CatalogError
from stagecoach.planner.options import PlannerOptions
from stagecoach.planner.plan.expressions import Literal
from stagecoach.planner.plan.stages import ParameterSpec, StageGraph
from stagecoach.planner.planning import plan_query
from stagecoach.planner.types import INT, STRING, TIMESTAMP, Field
from tests.contexts import new_context, run_stages

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

FORCED = PlannerOptions(force_distribution=True, num_partitions=3, inline_bytes=0)
COUNTS = "SELECT name, count(*) AS n, sum(k) AS s FROM t GROUP BY name ORDER BY name"


class Project:
    """A catalog, a storage root and a session to run queries with."""

    def __init__(self, folder: Path, settings: EngineSettings, spark: SparkSession) -> None:
        self.folder = folder
        self.settings = dataclasses.replace(
            settings, storage_root=str(folder / "store"), min_task_bytes=0
        )
        self.store = self.settings.open_store()
        self.spark: Callable[[], SparkSession] = lambda: spark

    @property
    def catalog(self) -> FileCatalog:
        return load_catalog(self.folder / "catalog.yaml")

    def table(self, name: str, rows: pa.Table, **options: Any) -> Path:
        path = self.folder / name / "a.parquet"
        path.parent.mkdir(exist_ok=True)
        pq.write_table(rows, path, **options)
        names = sorted(p.name for p in self.folder.iterdir() if p.is_dir() and p.name != "store")
        entries = "".join(f"  {n}:\n    location: {n}\n" for n in names)
        (self.folder / "catalog.yaml").write_text(f"tables:\n{entries}")
        return path

    def plan(self, sql: str, options: PlannerOptions = FORCED, **more: Any) -> StageGraph:
        return plan_query(sql, self.catalog, options, name="q", **more)

    def context(self, graph: StageGraph, **changes: Any) -> Run:
        return new_context(
            graph, self.settings, self.catalog, self.spark, **{"store": self.store, **changes}
        )

    def run(self, graph: StageGraph, **changes: Any) -> tuple[pa.Table, list[StageResult]]:
        return run_stages(self.context(graph, **changes))


@pytest.fixture
def project(
    tmp_path: Path, spark_settings: EngineSettings, spark: SparkSession
) -> Iterator[Project]:
    made = Project(tmp_path, spark_settings, spark)
    rows = {"k": list(range(1000)), "name": [f"n{i % 7}" for i in range(1000)]}
    made.table("t", pa.table(rows), row_group_size=100)
    yield made


def no_spark() -> SparkSession:
    raise AssertionError("a Spark session was asked for")


def broken_on(*engines: str) -> Callable[..., str]:
    """A renderer whose SQL raises at run time on these engines."""
    real = execution.render_fragment

    def render(stage_: Any, engine: Any, parameters: Any) -> str:
        sql = real(stage_, engine, parameters)
        if engine not in engines:
            return sql
        raising = {"duckdb": "error('boom')", "spark": "raise_error('boom')"}[engine]
        return f"SELECT * FROM ({sql}) AS broken WHERE CAST({raising} AS BOOLEAN)"

    return render


def expected_counts() -> list[dict[str, Any]]:
    groups: dict[str, list[int]] = {}
    for i in range(1000):
        groups.setdefault(f"n{i % 7}", []).append(i)
    return [{"name": k, "n": len(v), "s": sum(v)} for k, v in sorted(groups.items())]


def test_an_aggregate_goes_through_its_stages(project: Project) -> None:
    graph = project.plan(COUNTS)
    table, results = project.run(graph)
    assert table.to_pylist() == expected_counts()
    assert len(results) == len(graph.stages) > 1
    assert {r.engine for r in results} == {"duckdb"}
    assert not any(r.reused or r.deferred or r.fallback_reason for r in results)
    assert len(results[0].reports) == 2
    assert sum(r.rows_in[0] for r in results[0].reports) == 1000
    assert results[-1].columns == graph.result


def test_a_second_run_reuses_everything_without_spark(project: Project) -> None:
    graph = project.plan(COUNTS)
    first, _ = project.run(graph)
    second, results = project.run(graph, spark=no_spark)
    assert second == first
    assert all(r.reused for r in results)


def test_gc_keeps_the_analysis_of_a_plan_that_a_run_has_pinned(project: Project) -> None:
    graph = project.plan(COUNTS)
    project.run(graph)
    (kept,) = project.store.list("analysis")
    found = json.loads(project.store.read_bytes(kept))
    assert (found["plan"], found["query"]) == (graph.plan_hash, "q")
    other = layout.analysis("ab" * 32)
    project.store.write_bytes(other, json.dumps({**found, "plan": "0" * 64}).encode())
    for key in project.store.list(""):
        os.utime(project.store.uri(key), (0.0, 0.0))
    newest = layout.analysis("cd" * 32)
    project.store.write_bytes(newest, project.store.read_bytes(other))
    project.run(graph)
    report = collect_garbage(project.store, older_than=timedelta(days=7))
    assert [analysis.stored.key for analysis in report.analyses] == [other]
    assert set(project.store.list("analysis")) == {kept, newest}


def test_fresh_reuses_nothing_of_other_runs(project: Project) -> None:
    graph = project.plan(COUNTS)
    project.run(graph)
    _, results = project.run(graph, fresh=True)
    assert not any(r.reused for r in results)


def test_changed_data_is_not_the_same_stage(project: Project) -> None:
    graph = project.plan("SELECT count(*) AS n FROM t")
    project.run(graph)
    project.table("t", pa.table({"k": [1, 2], "name": ["a", "b"]}))
    table, results = project.run(graph)
    assert table.to_pylist() == [{"n": 2}]
    assert not any(r.reused for r in results)


def test_a_run_keeps_its_snapshot(project: Project) -> None:
    graph = project.plan("SELECT count(*) AS n FROM t")
    context = project.context(graph)
    assert context.snapshot.table("t").num_rows == 1000
    project.table("t", pa.table({"k": [1, 2], "name": ["a", "b"]}))
    with pytest.raises(InputLostError, match=r"a\.parquet.*bytes instead of"):
        for planned in graph.stages:
            run_stage(planned.stage_id, dataclasses.replace(context))


def test_spark_keeps_the_snapshot_too(project: Project) -> None:
    graph = project.plan("SELECT length(collate(name, 'UNICODE')) AS h FROM t")
    assert graph.head.sql is not None
    context = project.context(graph)
    assert context.snapshot.table("t").num_rows == 1000
    project.table("t", pa.table({"k": [1, 2], "name": ["a", "b"]}))
    with pytest.raises(InputLostError, match=r"a\.parquet.*bytes instead of"):
        run_stage(graph.head.stage_id, context)


def test_a_table_that_lost_a_column_asks_for_a_new_plan(project: Project) -> None:
    graph = project.plan("SELECT name FROM t")
    project.table("t", pa.table({"k": [1, 2]}))
    with pytest.raises(CatalogError, match="compile the query again"):
        project.run(graph)


def test_duckdb_failing_means_spark_runs_the_stage(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(execution, "render_fragment", broken_on("duckdb"))
    table, results = project.run(project.plan(COUNTS))
    assert table.to_pylist() == expected_counts()
    assert {r.engine for r in results} == {"spark"}
    assert all("boom" in (r.fallback_reason or "") for r in results)


def test_spark_stages_and_duckdb_stages_read_each_other(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    sql = "SELECT a.name, count(*) AS n FROM t a JOIN t b ON a.k = b.k + 1 GROUP BY 1 ORDER BY 1"
    graph = project.plan(sql, dataclasses.replace(FORCED, broadcast_bytes=0))
    expected, _ = project.run(graph)
    render, real = broken_on("duckdb"), execution.render_fragment

    def every_second(stage_: Any, engine: Any, parameters: Any) -> str:
        return (render if stage_.stage_id % 2 else real)(stage_, engine, parameters)

    monkeypatch.setattr(execution, "render_fragment", every_second)
    table, results = project.run(graph, fresh=True)
    assert {r.engine for r in results} == {"duckdb", "spark"}
    assert table == expected


def test_failing_on_both_is_deferred_and_the_head_asks_spark(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(execution, "render_fragment", broken_on("duckdb", "spark"))
    graph = project.plan(COUNTS)
    table, results = project.run(graph)
    assert table.to_pylist() == expected_counts()
    assert all(r.deferred and r.manifest is None for r in results[:-1])
    assert results[-1].engine == "spark"
    assert "boom" in (results[-1].fallback_reason or "")
    monkeypatch.undo()
    _, again = project.run(graph)
    assert not any(r.reused or r.deferred for r in again), "what was deferred must not be reused"


def test_a_mistake_in_the_data_is_sparks_own_error(project: Project) -> None:
    graph = project.plan("SELECT sum(k * 9223372036854775807) AS s FROM t")
    context = project.context(graph)
    deferred = [run_stage(s.stage_id, context).deferred for s in graph.stages[:-1]]
    assert all(deferred)
    with pytest.raises(QueryFailedError) as caught:
        run_stage(graph.head.stage_id, context)
    assert caught.value.condition == "ARITHMETIC_OVERFLOW"
    assert str(caught.value).startswith("[ARITHMETIC_OVERFLOW]")
    assert "\tat " not in str(caught.value), "no JVM stack for users"


def test_a_query_that_cannot_be_staged_runs_as_it_stands(project: Project) -> None:
    graph = project.plan(
        "SELECT length(collate(name, 'UNICODE')) AS h, k AS h FROM t ORDER BY k DESC LIMIT 3"
    )
    assert graph.head.sql is not None
    table, results = project.run(graph)
    assert table.schema.names == ["h", "h"]
    assert table.column(1).to_pylist() == [999, 998, 997]
    assert [f.name for f in results[-1].columns] == ["h", "h"]
    again, reused = project.run(graph, spark=no_spark)
    assert again == table
    assert reused[-1].reused


def test_duplicate_names_come_back(project: Project) -> None:
    sql = "SELECT k, name, k FROM t WHERE k < 3 ORDER BY 1"
    table, _ = project.run(project.plan(sql))
    assert table.schema.names == ["k", "name", "k"]
    assert [c.to_pylist() for c in table.columns] == [[0, 1, 2], ["n0", "n1", "n2"], [0, 1, 2]]


def test_a_sorted_result_of_spark_keeps_its_order(project: Project) -> None:
    graph = project.plan(
        "SELECT aes_encrypt(CAST(k AS STRING), '0123456789abcdef', 'CBC', 'DEFAULT', '0123456789abcdef') AS h, k FROM t ORDER BY k DESC"
    )
    table, _ = project.run(graph)
    assert table["k"].to_pylist() == list(range(999, -1, -1))


def test_tasks_write_floats_as_sparks_java_does(project: Project) -> None:
    graph = project.plan("SELECT CAST(1E17D * (k + 3) AS STRING) AS x FROM t ORDER BY k")
    table, results = project.run(graph)
    assert {r.engine for r in results} == {"duckdb"}
    expected = project.spark().sql("SELECT CAST(1E17D * (id + 3) AS STRING) AS x FROM range(1000)")
    assert sorted(table["x"].to_pylist()) == sorted(row.x for row in expected.collect())


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT count(*) AS n, max(k) AS m FROM e", [{"n": 0, "m": None}]),
        ("SELECT name, count(*) AS n FROM e GROUP BY name", []),
        ("SELECT t.k FROM t JOIN e ON t.k = e.k", []),
        ("SELECT count(*) AS n FROM t LEFT ANTI JOIN e ON t.k = e.k", [{"n": 1000}]),
        (
            "SELECT aes_encrypt(CAST(k AS STRING), '0123456789abcdef', 'CBC', 'DEFAULT', '0123456789abcdef') AS h FROM e",
            [],
        ),
    ],
)
def test_empty_tables(project: Project, sql: str, expected: list[dict[str, Any]]) -> None:
    schema = pa.schema([("k", pa.int64()), ("name", pa.string())])
    project.table("e", schema.empty_table())
    table, _ = project.run(project.plan(sql, dataclasses.replace(FORCED, broadcast_bytes=0)))
    assert table.to_pylist() == expected


def test_a_crash_before_the_commit_leaves_nothing_to_be_seen(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = project.plan(COUNTS)
    context = project.context(graph)

    def crash(*args: Any, **options: Any) -> None:
        raise SystemExit("killed")

    with monkeypatch.context() as patch:
        patch.setattr(stage, "commit_manifest", crash)
        with pytest.raises(SystemExit):
            run_stage(0, context)
    fingerprint = context.fingerprints[0]
    assert any(project.store.list(layout.shuffle_prefix(fingerprint)))
    assert load_manifest(project.store, fingerprint) is None
    with pytest.raises(ManifestError, match="run q/stage_0 again"):
        run_stage(1, context)
    results = [run_stage(s.stage_id, context) for s in graph.stages]
    assert not results[0].reused
    assert read_result(context).to_pylist() == expected_counts()


@pytest.mark.parametrize("damage", ["missing", "short", "corrupt"])
def test_lost_output_names_its_stage_which_then_runs_again(project: Project, damage: str) -> None:
    graph = project.plan(COUNTS)
    context = project.context(graph, recover=False)
    first = run_stage(0, context)
    assert first.manifest is not None
    path = Path(
        project.store.uri(layout.shuffle_file(first.fingerprint, first.manifest.files[0].name))
    )
    content = bytearray(path.read_bytes())
    if damage == "missing":
        path.unlink()
    elif damage == "short":
        path.write_bytes(content[:-100])
    else:
        content[len(content) // 2] ^= 0xFF
        path.write_bytes(content)
    with pytest.raises(ShuffleReadError, match="run q/stage_0 again"):
        for planned in graph.stages[1:]:
            run_stage(planned.stage_id, context)
    # As a user (or a retry) would: the whole run again, under the same root.
    again = dataclasses.replace(context, run_id="again")
    results = [run_stage(s.stage_id, again) for s in graph.stages]
    assert not results[0].reused
    assert read_result(again).to_pylist() == expected_counts()


def test_a_re_execution_starts_where_the_run_failed(project: Project) -> None:
    graph = project.plan(COUNTS)
    context = project.context(graph)
    run_stage(0, context)
    again = dataclasses.replace(context, run_id="again")
    results = [run_stage(s.stage_id, again) for s in graph.stages[1:]]
    assert not any(r.reused for r in results)
    assert read_result(again).to_pylist() == expected_counts()


def test_another_run_can_start_from_a_committed_stage(project: Project) -> None:
    graph = project.plan(COUNTS)
    run_stage(0, project.context(graph))
    other = project.context(graph)
    for planned in graph.stages[1:]:
        run_stage(planned.stage_id, other)
    assert read_result(other).to_pylist() == expected_counts()


def test_a_wrong_type_in_the_plan_hands_the_query_to_spark(
    project: Project, caplog: pytest.LogCaptureFixture
) -> None:
    graph = project.plan("SELECT count(*) AS n FROM t")
    graph = dataclasses.replace(graph, result=(Field("n", INT),))
    table, results = project.run(graph)
    assert table.schema.field("n").type == pa.int64()
    assert results[-1].engine == "spark"
    assert "bigint in Spark, int in the plan" in (results[-1].fallback_reason or "")
    assert "bigint in Spark" in caplog.text


def test_parameters_are_part_of_the_fingerprint(project: Project) -> None:
    parameter = ParameterSpec("who", STRING, "n1")
    sql = "SELECT count(*) AS n, :who AS who FROM t WHERE name = :who"
    graph = project.plan(sql, parameters=(parameter,))
    default, _ = project.run(graph)
    assert default.to_pylist() == [{"n": 143, "who": "n1"}]
    value = Literal(STRING, "it's; -- n1")
    other, results = project.run(graph, parameters={"who": value})
    assert other.to_pylist() == [{"n": 0, "who": "it's; -- n1"}]
    assert not results[-1].reused


def test_parameters_reach_a_whole_query(project: Project) -> None:
    parameters = (ParameterSpec("n", INT, "3"), ParameterSpec("since", TIMESTAMP))
    sql = "SELECT length(collate('a', 'UNICODE')) AS h, k, :since AS since FROM t WHERE k = :n"
    graph = project.plan(sql, parameters=parameters)
    assert graph.head.sql is not None
    since = Literal(TIMESTAMP, "2024-01-31 10:00:00.000000")
    table, _ = project.run(graph, parameters={"since": since})
    assert table["k"].to_pylist() == [3]
    assert str(table["since"][0].as_py()) == "2024-01-31 10:00:00+00:00"


def test_all_stages_of_a_run_see_one_clock(project: Project) -> None:
    sql = "SELECT count(DISTINCT current_timestamp()) AS n FROM t"
    table, _ = project.run(project.plan(sql))
    assert table.to_pylist() == [{"n": 1}]


def test_progress_is_told(project: Project) -> None:
    seen: list[tuple[int, int]] = []
    settings = dataclasses.replace(project.settings, progress_seconds=0.005)
    project.run(
        project.plan("SELECT count(*) AS n FROM t"),
        settings=settings,
        progress=lambda p: seen.append((p.completed, p.total)),
    )
    assert seen
    assert all(0 <= completed <= total for completed, total in seen)


def test_an_output_of_the_wrong_width_is_an_error_not_a_result(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(execution, "render_fragment", lambda *_: "SELECT 1 AS c0, 2 AS c1")
    graph = project.plan("SELECT count(*) AS n FROM t")
    run = project.context(graph)
    attempt = execution.Attempt(run=run, stage=graph.stages[0], fingerprint="a" * 64)
    with pytest.raises(QueryError, match="2 columns"):
        execution.run_in_tasks(attempt)
