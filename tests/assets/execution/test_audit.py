"""Results are audited: staged, checked, and published only if they pass; the stages pretend."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import dagster as dg
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from stagecoach.assets import build_definitions
from stagecoach.assets.execution.engine import StageRequest
from stagecoach.assets.execution.executor import execute_in_process
from stagecoach.assets.project.queries import Query
from stagecoach.assets.report.metadata import StageMetadata
from stagecoach.infra.formats.protocol import Access
from stagecoach.infra.formats.publishing import PublishTarget, StagedGoneError
from stagecoach.infra.formats.registry import stored_format
from stagecoach.infra.formats.stored import StoredTable
from stagecoach.infra.publishing.accepted import accept, is_accepted
from stagecoach.infra.publishing.publish import Published, Staged, publish, stage
from stagecoach.infra.storage.local_store import LocalStore
from stagecoach.planner.catalog import Catalog
from stagecoach.planner.plan.stages import StageGraph
from tests.assets.definitions.test_location import fake_plan
from tests.assets.execution.test_run_page import QUIET
from tests.assets.fakes import SCHEMA, FakeRunner, make_stage, scan
from tests.infra.formats.published.outputs import SETTINGS, fields_of, head_output, no_spark

LAYOUTS = pytest.mark.parametrize("stages", ["assets", "ops"])
FRONT = """/*
checks:
  - not_null: [v]
  - {row_count: {max: 1}, severity: warn}
%s*/
SELECT k, v FROM t
"""
SALES = dg.AssetKey("sales")


def rows(*values: int | None) -> pa.Table:
    keys = pa.array(range(len(values)), pa.int64())
    return pa.table({"k": keys, "v": pa.array(values, pa.int64())})


class Runner(FakeRunner):
    """Whose results are given, and published in a real table; its checks read what is there."""

    def __init__(self, root: Path, format_name: str = "published", table: str = "sales") -> None:
        super().__init__()
        self.name = table
        self.disk = LocalStore(str(root / "store"))
        self.format = stored_format(format_name)
        self.result = rows()
        self.checked: list[str] = []
        self.gone = 0

    @property
    def table(self) -> StoredTable:
        return self.format.stored(self.disk, self.name, Access())

    def run_stage(self, request: StageRequest) -> StageMetadata:
        told = super().run_stage(request)
        return replace(told, fingerprint=self._output().fingerprint)

    def publish(self, request: StageRequest, target: PublishTarget) -> Published:
        return publish(*self._told(target), **self._how(request))

    def stage(self, request: StageRequest, target: PublishTarget) -> Staged | Published:
        return stage(*self._told(target), **self._how(request))

    def publish_staged(self, staged: Staged) -> Published:
        if self.gone:
            self.gone -= 1
            raise StagedGoneError("it was discarded")
        return staged.publish()

    def is_accepted(self, table: str, fingerprint: str) -> bool:
        return is_accepted(self.disk, table, fingerprint)

    def table_uri(self, table: str) -> str:
        return self.table.uri

    def first_rows(self, request: StageRequest, limit: int) -> pa.Table:
        staged = request.staged.get(self.name)
        state = self.table.staged_state(staged) if staged else self.table.state()
        found = pa.concat_tables(pq.ParquetFile(f.uri).read() for f in state.snapshot.files)
        self.checked.append(f"{request.graph.query} {'staged' if staged else 'published'}")
        if "row_count" in request.graph.query:
            return pa.table({"n": [found.num_rows] if found.num_rows > 1 else []})
        return found.filter(pc.is_null(found["v"]))

    def seen(self) -> list[int | None]:
        """What a reader of the table sees."""
        version = self.table.current()
        if version is None or not version.has_data:
            return []
        files = self.table.state().snapshot.files
        return [v for f in files for v in pq.ParquetFile(f.uri).read()["v"].to_pylist()]

    def _output(self) -> Any:
        return head_output(self.disk, [self.result])

    def _told(self, target: PublishTarget) -> tuple[Any, Any, PublishTarget]:
        return self._output(), fields_of(self.result), target

    def _how(self, request: StageRequest) -> dict[str, Any]:
        return {
            "store": self.disk,
            "settings": SETTINGS,
            "spark": no_spark,
            "run_id": request.run_id,
        }


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as made:
        yield made


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    return Runner(tmp_path)


def plan(query: Query, catalog: Catalog) -> StageGraph:
    """Plans that pretend; `below` reads what `sales` publishes."""
    graph = fake_plan(query, catalog)
    if query.name != "below":
        return graph
    leaves = (make_stage(0, scan("sales")), make_stage(1, scan("sales")))
    return replace(graph, stages=(*leaves, *graph.stages[2:]), tables=(("sales", SCHEMA),))


def build(root: Path, runner: Runner, stages: str, front: str = "", **options: Any) -> Any:
    (root / "queries").mkdir(exist_ok=True)
    (root / "queries" / "sales.sql").write_text(FRONT % front)
    if runner.name == "sales":
        (root / "queries" / "below.sql").write_text("SELECT k FROM sales")
    (root / "catalog.yaml").write_text("tables: {t: {location: t}, u: {location: u}}")
    return build_definitions(
        queries=root / "queries",
        catalog=root / "catalog.yaml",
        engine=dg.ResourceDefinition.hardcoded_resource(runner),
        plan=plan,
        stages=stages,  # type: ignore[arg-type]
        **options,
    )


def run(
    definitions: dg.Definitions, instance: dg.DagsterInstance, job: str = "run_sales"
) -> dg.ExecuteInProcessResult:
    resolved = definitions.resolve_job_def(job)
    return execute_in_process(resolved, instance=instance, run_config=QUIET)


def outcomes(result: dg.ExecuteInProcessResult) -> dict[str, bool]:
    return {e.check_name: e.passed for e in result.get_asset_check_evaluations()}


def failure_of(result: dg.ExecuteInProcessResult) -> str:
    (failed,) = [e for e in result.all_events if e.is_step_failure]
    data = failed.step_failure_data
    assert data.user_failure_data is not None
    return data.user_failure_data.description or ""


def made(result: dg.ExecuteInProcessResult) -> bool:
    return any(e.is_step_materialization and e.asset_key == SALES for e in result.all_events)


@LAYOUTS
def test_a_result_that_passes_is_published(
    tmp_path: Path, runner: Runner, instance: dg.DagsterInstance, stages: str
) -> None:
    definitions = build(tmp_path, runner, stages)
    dg.Definitions.validate_loadable(definitions)
    runner.result = rows(1, 2)
    result = run(definitions, instance)
    assert result.success
    assert outcomes(result) == {"not_null_v": True, "row_count": False}, "a warning blocks nothing"
    assert runner.checked == ["sales.not_null_v staged", "sales.row_count staged"]
    assert (runner.seen(), made(result)) == ([1, 2], True)
    event = instance.get_latest_materialization_event(SALES)
    assert event is not None
    assert event.asset_materialization is not None
    assert event.asset_materialization.metadata["stagecoach/table_rows"].value == 2
    assert not runner.table.staged()


@LAYOUTS
def test_a_result_that_fails_stays_staged(
    tmp_path: Path, runner: Runner, instance: dg.DagsterInstance, stages: str
) -> None:
    definitions = build(tmp_path, runner, stages)
    runner.result = rows(1)
    assert run(definitions, instance).success
    runner.result = rows(2, None, None)
    result = run(definitions, instance)
    assert not result.success
    assert outcomes(result) == {"not_null_v": False, "row_count": False}
    assert (runner.seen(), made(result)) == ([1], False)
    (staged,) = runner.table.staged()
    text = failure_of(result)
    assert "query 'sales': 1 blocking check failed; the result is not published" in text
    assert "not_null_v: 2 rows fail the check" in text
    assert "row_count" not in text
    assert f"stagecoach tables publish sales {staged.id}" in text
    assert f"stagecoach tables discard sales {staged.id}" in text
    assert f"echo 'SELECT * FROM `sales@staged-{staged.id}`' | stagecoach query -" in text
    assert f"stagecoach replay {result.run_id} --check not_null_v" in text
    # The next run has better data.
    runner.result = rows(3)
    assert run(definitions, instance).success
    assert (runner.seen(), list(runner.table.staged())) == ([3], [])


def test_a_repeated_run_checks_what_is_staged(
    tmp_path: Path, runner: Runner, instance: dg.DagsterInstance
) -> None:
    definitions = build(tmp_path, runner, "assets")
    runner.result = rows(None)
    files = []
    for _ in range(2):
        assert not run(definitions, instance).success
        (staged,) = runner.table.staged()
        files.append(sorted(runner.disk.list("results/sales/files")))
    assert files[0] == files[1]
    # Published by hand, it is accepted as it is.
    accept(runner.disk, "sales", staged.fingerprint, "2026-01-01T00:00:00Z")
    runner.table.publish_staged(staged.id)
    result = run(definitions, instance)
    assert result.success
    assert made(result)
    (bad,) = [e for e in result.get_asset_check_evaluations() if e.check_name == "not_null_v"]
    assert (bad.passed, bad.severity) == (False, dg.AssetCheckSeverity.WARN)


def test_what_was_published_before_it_was_checked_fails_its_step(
    tmp_path: Path, runner: Runner, instance: dg.DagsterInstance
) -> None:
    runner.result = rows(None)
    assert run(build(tmp_path, runner, "ops", "output: {audit: false}\nstages: ops\n"), instance)
    assert runner.seen() == [None]
    result = run(build(tmp_path, runner, "ops"), instance)
    assert not result.success
    assert "an earlier run has published the same result" in failure_of(result)


@LAYOUTS
@pytest.mark.parametrize("way", ["query", "project"])
def test_without_an_audit_the_result_is_published_first(
    tmp_path: Path, runner: Runner, instance: dg.DagsterInstance, stages: str, way: str
) -> None:
    front, options = ("output: {audit: false}\n", {}) if way == "query" else ("", {"audit": False})
    definitions = build(tmp_path, runner, stages, front, **options)
    runner.result = rows(None)
    result = run(definitions, instance)
    assert outcomes(result)["not_null_v"] is False
    assert runner.checked[0] == "sales.not_null_v published"
    assert (runner.seen(), made(result)) == ([None], True)


@LAYOUTS
def test_checks_alone_read_what_is_published(
    tmp_path: Path, runner: Runner, instance: dg.DagsterInstance, stages: str
) -> None:
    definitions = build(tmp_path, runner, stages)
    runner.result = rows(1)
    assert run(definitions, instance).success
    runner.result = rows(None)
    assert not run(definitions, instance).success
    runner.checked.clear()
    runner.requests.clear()
    wanted = dg.AssetCheckKey(SALES, "not_null_v")
    job = definitions.resolve_job_def("run_sales").get_subset(
        asset_selection=set(), asset_check_selection={wanted}
    )
    result = execute_in_process(job, instance=instance, run_config=QUIET)
    assert outcomes(result) == {"not_null_v": True}
    assert runner.checked == ["sales.not_null_v published"]
    assert (runner.requests, made(result)) == ([], False)


@LAYOUTS
def test_what_reads_the_table_does_not_start(
    tmp_path: Path, runner: Runner, instance: dg.DagsterInstance, stages: str
) -> None:
    definitions = build(tmp_path, runner, stages)
    job = definitions.resolve_implicit_global_asset_job_def()
    runner.result = rows(None)
    result = execute_in_process(job, instance=instance, run_config=QUIET)
    assert not result.success
    assert {r.graph.query for r in runner.requests} == {"sales"}
    runner.requests.clear()
    runner.result = rows(1)
    assert execute_in_process(job, instance=instance, run_config=QUIET).success
    assert {r.graph.query for r in runner.requests} == {"sales", "below"}
    assert not made(result)


def test_what_was_discarded_meanwhile_is_staged_again(
    tmp_path: Path, runner: Runner, instance: dg.DagsterInstance
) -> None:
    definitions = build(tmp_path, runner, "assets", "retries: {max: 2, delay_seconds: 0}\n")
    runner.result, runner.gone = rows(1), 1
    result = run(definitions, instance)
    assert result.success
    assert runner.seen() == [1]
    assert re.fullmatch(r"(sales\.\w+ staged ?)+", " ".join(runner.checked) + " ")


LAKES = {
    "iceberg": "catalog: {name: lake, type: sql, uri: 'sqlite:///lake.db', warehouse: lake}",
    "delta": "location: lake/sales",
    "published": "keep_versions: 3",
}


@pytest.mark.parametrize("mode", ["replace", "merge"])
@pytest.mark.parametrize("format_name", LAKES)
def test_results_are_audited_in_tables_of_each_format(
    tmp_path: Path, instance: dg.DagsterInstance, format_name: str, mode: str
) -> None:
    table = "shop.sales" if format_name == "iceberg" else "sales"
    runner = Runner(tmp_path, format_name, table)
    how = f"mode: {mode}, key: [k]" if mode == "merge" else f"mode: {mode}"
    front = f"output: {{format: {format_name}, {LAKES[format_name]}, table: {table}, {how}}}\n"
    definitions = build(tmp_path, runner, "assets", front)
    runner.result = rows(1)
    first = run(definitions, instance)
    assert first.success, failure_of(first)
    assert runner.seen() == [1]
    runner.result = rows(2, None)
    result = run(definitions, instance)
    assert outcomes(result) == {"not_null_v": False, "row_count": False}
    assert (result.success, runner.seen(), made(result)) == (False, [1], False)
    (staged,) = runner.table.staged()
    assert f"stagecoach tables publish {table} {staged.id}" in failure_of(result)
    # What is published by hand is accepted by the run that follows.
    accept(runner.disk, table, staged.fingerprint, "2026-01-01T00:00:00Z")
    runner.table.publish_staged(staged.id)
    result = run(definitions, instance)
    assert (result.success, made(result)) == (True, True)
    assert sorted(runner.seen(), key=str) == [2, None]
    assert not runner.table.staged()
