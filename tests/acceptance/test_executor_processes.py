"""Runs in other processes over one warm Spark: multiprocess executor, one stage alone, re-execution.

The server is that of a `stagecoach ui`, and every process finds it through the environment.
"""

import datetime
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from dagster._grpc.client import DagsterGrpcClient
from dagster._grpc.types import ListRepositoriesResponse
from dagster_shared.serdes import deserialize_value

import stagecoach
from stagecoach.assets.execution.engine import StageRequest
from stagecoach.assets.execution.executor import execute_in_process
from stagecoach.assets.execution.stage_engine import StageEngine
from stagecoach.assets.report.metadata import StageMetadata
from stagecoach.infra.catalog.catalog import load_catalog
from stagecoach.infra.shuffle.commit import load_manifest
from stagecoach.infra.shuffle.reader import read_table
from stagecoach.infra.spark.connect_server import await_server
from stagecoach.infra.storage.stores import open_store
from stagecoach.infra.upkeep.gc import collect_garbage
from stagecoach.infra.upkeep.run_needs import LIVE_RUN
from stagecoach.planner import plan_query
from stagecoach.planner.errors import AnalysisError
from stagecoach.planner.plan.serde import dump_graph
from tests.acceptance.running_ui import REMOTE_VARIABLE, RunningUi
from tests.assets.warm_location import (
    BY_SHOP_SQL,
    LONG_SQL,
    OPTIONS,
    by_shop_job,
    long_process_job,
    make_definitions,
    process_job,
)
from tests.share import in_test_all

# A process that runs classic Spark cannot connect to a server, so these run in one of their own.
pytestmark = [
    pytest.mark.slow,
    pytest.mark.spark,
    pytest.mark.operations,
    pytest.mark.timeout(400),
]

QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
ROOT = Path(stagecoach.__path__[0]).parent
Rows = list[tuple[int, str, int]]


def write_sales(folder: Path, amount: int) -> None:
    (folder / "sales").mkdir(exist_ok=True)
    for part in range(2):
        shops = pa.array([part, part + 1, 1, 2] * 25, pa.int32())
        products = pa.array([1, 2, 3, 4] * 25, pa.int32())
        rows = pa.table({"shop": shops, "product": products, "amount": [amount] * 100})
        pq.write_table(rows, folder / "sales" / f"{part}.parquet")


def expected(amount: int) -> Rows:
    totals: dict[tuple[int, str], int] = {}
    for part in range(2):
        for shop, product in zip([part, part + 1, 1, 2], [1, 2, 3, 4], strict=True):
            key = (shop, f"p{product}")
            totals[key] = totals.get(key, 0) + 25 * amount
    return [(shop, name, totals[shop, name]) for shop, name in sorted(totals)]


@pytest.fixture
def project(tmp_path: Path, ui: RunningUi, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_sales(tmp_path, 1)
    (tmp_path / "products").mkdir()
    for part in range(2):
        numbers = pa.array([2 * part + 1, 2 * part + 2], pa.int32())
        names = pa.table({"product": numbers, "name": [f"p{2 * part + 1}", f"p{2 * part + 2}"]})
        pq.write_table(names, tmp_path / "products" / f"{part}.parquet")
    (tmp_path / "queries").mkdir()
    (tmp_path / "queries" / "by_shop.sql").write_text(BY_SHOP_SQL)
    (tmp_path / "queries" / "long.sql").write_text(LONG_SQL)
    (tmp_path / "catalog.yaml").write_text(
        "tables: {sales: {location: sales}, products: {location: products}}"
    )
    await_server(ui.spark[REMOTE_VARIABLE], 200)
    for name, value in ui.spark.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("STAGECOACH_TEST_PROJECT", str(tmp_path))
    monkeypatch.setenv("STAGECOACH_PARALLELISM", "2")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    return tmp_path


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.instance_for_test() as made:
        yield made


def materialized(result: dg.JobExecutionResult, step: str) -> StageMetadata:
    (event,) = result.asset_materializations_for_node(step)
    return StageMetadata.from_dagster(event.metadata)


def errors(result: dg.JobExecutionResult) -> str:
    found = [e.step_failure_data for e in result.all_events if e.is_step_failure]
    return "\n".join(f"{d.user_failure_data} {d.error}" for d in found)


def rows_of(project: Path, fingerprint: str | None) -> Rows:
    assert fingerprint is not None
    store = open_store(project / "store")
    manifest = load_manifest(store, fingerprint, stage="head")
    assert manifest is not None
    columns = read_table(store, manifest).columns
    return list(zip(*(c.to_pylist() for c in columns), strict=True))


@in_test_all
def test_dagsters_multiprocess_executor(
    project: Path, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Processes take longer to start than such a leaf to run, and not the same time.
    (project / "together").mkdir()
    monkeypatch.setenv("STAGECOACH_TEST_TOGETHER", str(project / "together"))
    job = dg.reconstructable(process_job)
    with dg.execute_job(job, instance=instance, run_config=QUIET) as result:
        assert result.success, errors(result)
        head = materialized(result, "by_shop")
        assert head.engine == "duckdb"
        assert rows_of(project, head.fingerprint) == expected(1)
        stats = {s.step_key: s for s in instance.get_run_step_stats(result.run_id)}
    leaves = [stats["by_shop__stage_0"], stats["by_shop__stage_1"]]
    starts = [s.start_time or 0.0 for s in leaves]
    ends = [s.end_time or 0.0 for s in leaves]
    assert min(ends) - max(starts) > 0


def test_an_interrupt_ends_the_jobs_of_other_processes(
    project: Path, instance: dg.DagsterInstance, ui: RunningUi
) -> None:
    ended: list[float] = []
    # The workers that compute are to be those of this run alone. One that was killed may go on for
    # half a minute.
    ui.dagster.wait(lambda: ui.dagster.has_ended(ui.begun["backfill"]), "the backfill", 300)
    others = ui.busy_workers()

    def computes() -> bool:
        steps = [s for run in instance.get_runs() for s in instance.get_run_step_stats(run.run_id)]
        return bool(steps) and bool(ui.busy_workers() - others)

    def interrupt() -> None:
        deadline = time.monotonic() + 120
        while not computes() and time.monotonic() < deadline:
            time.sleep(0.2)
        os.kill(os.getpid(), signal.SIGINT)
        told = time.monotonic()
        while ui.busy_workers() - others and time.monotonic() - told < 60:
            time.sleep(0.1)
        ended.append(time.monotonic() - told)

    watcher = threading.Thread(target=interrupt)
    watcher.start()
    job = dg.reconstructable(long_process_job)
    with dg.execute_job(job, instance=instance, run_config=QUIET) as result:
        assert not result.success
    watcher.join(120)
    assert ended
    assert ended[0] < 20
    store = open_store(project / "store")
    # Dagster's executor tells nobody that a run is over, so a day must have passed.
    later = datetime.datetime.now(datetime.UTC) + 2 * LIVE_RUN
    collect_garbage(store, older_than=datetime.timedelta(0), now=later)
    left = [path for path in (project / "store" / "shuffle").rglob("*") if path.is_file()]
    committed = {path.parent for path in left if path.name == "manifest.json"}
    assert [path for path in left if path.parent not in committed] == []


def run_alone(project: Path, stage_id: int, run_id: str) -> subprocess.CompletedProcess[str]:
    root, catalog = str(project / "store"), str(project / "catalog.yaml")
    graph = str(project / "graph.json")
    return subprocess.run(
        [
            sys.executable,
            "-m",
            "tests.assets.run_one_stage",
            graph,
            str(stage_id),
            run_id,
            root,
            catalog,
        ],
        cwd=ROOT,
        env=dict(os.environ),
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
    )


def test_stages_run_alone_in_processes_that_share_only_the_storage(
    project: Path, instance: dg.DagsterInstance
) -> None:
    catalog = load_catalog(project / "catalog.yaml")
    graph = plan_query(BY_SHOP_SQL, catalog, OPTIONS, name="by_shop")
    (project / "graph.json").write_text(dump_graph(graph))
    last = len(graph.stages) - 1
    early = run_alone(project, last, "alone")
    assert early.returncode != 0
    assert f"run by_shop/stage_{graph.head.inputs[0]} again" in early.stderr
    for stage in graph.stages:
        done = run_alone(project, stage.stage_id, "alone")
        assert done.returncode == 0, done.stderr[-2000:]
    assert rows_of(project, done.stdout) == expected(1)


def test_reexecution_reads_the_tables_as_the_failed_run_did(
    project: Path, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = dg.reconstructable(by_shop_job)
    run_stage = StageEngine.run_stage

    def fail_the_head(engine: StageEngine, request: StageRequest) -> StageMetadata:
        if request.stage is request.graph.head:
            raise AnalysisError("not now")
        return run_stage(engine, request)

    with monkeypatch.context() as patch:
        patch.setattr(StageEngine, "run_stage", fail_the_head)
        with dg.execute_job(job, instance=instance, run_config=QUIET) as first:
            assert not first.success
    # The table is another one now.
    pq.write_table(pq.read_table(project / "sales" / "0.parquet"), project / "sales" / "9.parquet")
    options = dg.ReexecutionOptions.from_failure(first.run_id, instance)
    with dg.execute_job(
        job, instance=instance, run_config=QUIET, reexecution_options=options
    ) as second:
        assert second.success, errors(second)
        steps = {e.step_key for e in second.all_events if e.is_step_start}
        head = materialized(second, "by_shop")
    assert steps == {"by_shop"}
    assert rows_of(project, head.fingerprint) == expected(1)
    with dg.execute_job(job, instance=instance, run_config=QUIET) as third:
        assert rows_of(project, materialized(third, "by_shop").fingerprint) != expected(1)


def test_a_part_of_a_query_uses_the_latest_upstream_or_says_what_to_run(
    project: Path, instance: dg.DagsterInstance
) -> None:
    made = make_definitions()
    whole = made.resolve_job_def("run_by_shop")
    head = whole.get_subset(asset_selection={dg.AssetKey(["by_shop"])})
    missing = execute_in_process(head, instance=instance, run_config=QUIET)
    assert not missing.success
    told = str([e.step_failure_data for e in missing.all_events if e.is_step_failure])
    assert "materialise 'by_shop/stage_" in told
    assert execute_in_process(whole, instance=instance, run_config=QUIET).success
    # The table grows: the head alone goes on with what its upstream stages made.
    pq.write_table(pq.read_table(project / "sales" / "0.parquet"), project / "sales" / "9.parquet")
    again = execute_in_process(head, instance=instance, run_config=QUIET)
    assert again.success
    (event,) = again.asset_materializations_for_node("by_shop")
    metadata = StageMetadata.from_dagster(event.metadata)
    assert metadata.reused
    assert rows_of(project, metadata.fingerprint) == expected(1)


def test_a_code_location_behind_grpc(project: Path, tmp_path: Path) -> None:
    """What `dagster dev`, webserver and daemon do: the location is a server of its own."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    log = tmp_path / "grpc.log"
    module = ["--module-name", "tests.assets.warm_location"]
    with open(log, "wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "dagster", "api", "grpc", *module, "--port", str(port)],
            cwd=ROOT,
            env={**os.environ, "DAGSTER_HOME": str(tmp_path)},
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        client = DagsterGrpcClient(port=port, host="localhost")
        deadline = time.monotonic() + 120
        while client.health_check_query() != "SERVING":
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.2)
        listed = deserialize_value(client.list_repositories())
        assert isinstance(listed, ListRepositoriesResponse), listed
        assert [s.repository_name for s in listed.repository_symbols] == ["__repository__"]
    finally:
        # Where a shell has started the tests in the background, Dagster ignores a wish to end.
        process.kill()
        process.wait(30)
