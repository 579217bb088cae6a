"""The page of a Dagster run: written by the head's step, whoever ran the other stages."""

import itertools
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import dagster as dg
import pytest

from stagecoach.assets.definitions.factory import build_assets, build_job
from stagecoach.assets.definitions.specs import build_stage_specs, build_table_specs, read_tables
from stagecoach.assets.definitions.translator import StageTranslator
from stagecoach.assets.execution.executor import execute_in_process
from stagecoach.assets.plans.planned import PlannedQuery
from stagecoach.assets.project.queries import Query
from stagecoach.infra.errors import StorageError
from stagecoach.infra.runtime.records.pointers import StagePointer, write_pointer
from stagecoach.infra.storage import layout
from stagecoach.infra.storage.object_store import ObjectStore
from stagecoach.infra.storage.stores import open_store
from stagecoach.planner.errors import AnalysisError
from stagecoach.planner.plan.stages import StageGraph
from stagecoach.planner.planning import plan_query
from tests.assets.fakes import FakeRunner
from tests.planner.catalogs import SALES
from tests.planner.tpch import FORCED

QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
SQL = """
SELECT status, sum(price) AS spent, count(*) AS n
FROM orders JOIN lines ON order_id = id WHERE day > DATE'2024-01-01' GROUP BY status
"""


class StoringRunner(FakeRunner):
    """Pretends to work, with a storage root that is real."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.storage = open_store(folder)

    def store(self) -> ObjectStore:
        return self.storage

    def fail(self, stage_id: int, error: Exception) -> None:
        self._errors[stage_id] = [error]


@pytest.fixture
def instance(tmp_path: Path) -> Iterator[dg.DagsterInstance]:
    """One that keeps logs on disk, as that of a webserver does."""
    (tmp_path / "home").mkdir()
    with dg.DagsterInstance.local_temp(str(tmp_path / "home")) as made:
        yield made


@pytest.fixture
def graph() -> StageGraph:
    return plan_query(SQL, SALES, FORCED, name="spending")


@pytest.fixture
def runner(tmp_path: Path) -> StoringRunner:
    return StoringRunner(tmp_path / "store")


def planned(graph: StageGraph) -> PlannedQuery:
    return PlannedQuery(query=Query(name=graph.query, sql=graph.sql), graph=graph)


def assets_of(graph: StageGraph) -> Sequence[dg.AssetsDefinition]:
    return build_assets(planned(graph), build_stage_specs(planned(graph), StageTranslator()))


def run(
    graph: StageGraph, runner: FakeRunner, instance: dg.DagsterInstance
) -> dg.ExecuteInProcessResult:
    assets = assets_of(graph)
    definitions = dg.Definitions(
        assets=assets,
        jobs=[build_job(planned(graph), assets)],
        resources={"engine": dg.ResourceDefinition.hardcoded_resource(runner)},
    )
    job = definitions.resolve_job_def(f"run_{graph.query}")
    return execute_in_process(job, instance=instance, run_config=QUIET)


def head_metadata(result: dg.ExecuteInProcessResult) -> dict[str, dg.MetadataValue]:
    (event,) = result.asset_materializations_for_node("spending")
    return dict(event.metadata)


def how(page: str) -> list[str]:
    """What the page says of each stage, the last one first."""
    return re.findall(r"<h3>Stage \d+</h3> <span [^>]*>[^<]*[ ,](\w+)</span>", page)


def test_the_page_is_in_storage_and_linked(
    graph: StageGraph, runner: StoringRunner, instance: dg.DagsterInstance
) -> None:
    result = run(graph, runner, instance)
    key = layout.run_page(result.run_id)
    page = runner.storage.read_bytes(key).decode()
    assert how(page) == ["computed"] * len(graph.stages)
    assert f"run {result.run_id}" in page
    assert page.count("<svg") == 2  # no task left a report, so there is no timeline
    assert "lines.price → spent</title>" in page
    metadata = head_metadata(result)
    assert metadata["stagecoach/page_file"] == dg.MetadataValue.path(runner.storage.uri(key))
    link = metadata["stagecoach/page"]
    assert isinstance(link, dg.UrlMetadataValue)
    # What the webserver does with that path.
    prefix, *log_key, extension = str(link.url).removeprefix("/").split("/")
    served = instance.compute_log_manager.get_captured_local_path(log_key, extension)  # type: ignore[attr-defined]  # a local one
    assert prefix == "logs"
    assert Path(served).read_text() == page


def test_the_page_is_linked_where_it_is_served(
    graph: StageGraph,
    runner: StoringRunner,
    instance: dg.DagsterInstance,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("STAGECOACH_PAGES", "http://host:3001")
    result = run(graph, runner, instance)
    link = head_metadata(result)["stagecoach/page"]
    assert link == dg.MetadataValue.url(f"http://host:3001/runs/{result.run_id}")


def test_a_run_of_the_head_alone_shows_what_earlier_runs_made(
    graph: StageGraph, runner: StoringRunner, instance: dg.DagsterInstance
) -> None:
    first = run(graph, runner, instance)
    for stage in graph.stages[:-1]:
        pointer = StagePointer(expected="0" * 64, fingerprint="0" * 64, engine="spark")
        write_pointer(runner.storage, first.run_id, stage.stage_id, pointer)
    alone = dg.materialize(
        assets_of(graph),
        instance=instance,
        selection=[dg.AssetKey(["spending"])],
        resources={"engine": dg.ResourceDefinition.hardcoded_resource(runner)},
        run_config=QUIET,
    )
    page = runner.storage.read_bytes(layout.run_page(f"{alone.run_id}.spending")).decode()
    assert how(page) == ["computed", *["reused"] * (len(graph.stages) - 1)]


def test_a_run_that_failed_has_a_page_too(
    graph: StageGraph, runner: StoringRunner, instance: dg.DagsterInstance
) -> None:
    failing = len(graph.stages) - 2
    runner.fail(failing, AnalysisError("no <such> column"))
    result = run(graph, runner, instance)
    assert not result.success
    page = runner.storage.read_bytes(layout.run_page(result.run_id)).decode()
    stages = how(page)
    assert stages[:2] == ["run", "failed"]  # the head was not run
    assert set(stages[2:]) <= {"computed", "run"}
    assert f"Stage {failing} failed</b>" in page
    assert "no &lt;such&gt; column" in page
    (event,) = [e for e in result.all_events if e.is_step_failure]
    data = event.step_failure_data.user_failure_data
    assert data is not None
    assert "stagecoach/page" in data.metadata
    assert "stagecoach/error" in data.metadata


class BrokenStore:
    """A storage root that refuses all writes."""

    is_local = True

    def write_bytes(self, key: str, content: bytes) -> None:
        raise StorageError(f"no space for {key}")


class BrokenRunner(FakeRunner):
    def store(self) -> BrokenStore:
        return BrokenStore()


def test_a_page_that_cannot_be_written_fails_no_stage(
    graph: StageGraph, instance: dg.DagsterInstance, caplog: pytest.LogCaptureFixture
) -> None:
    result = run(graph, BrokenRunner(), instance)
    assert result.success
    assert "stagecoach/page" not in head_metadata(result)
    assert "its page could not be written" in caplog.text


def test_a_runner_without_a_store_leaves_no_page(
    graph: StageGraph, instance: dg.DagsterInstance
) -> None:
    result = run(graph, FakeRunner(), instance)
    assert result.success
    assert "stagecoach/page" not in head_metadata(result)


def test_column_lineage_leads_from_asset_to_asset(graph: StageGraph) -> None:
    stages = [spec for _, spec in build_stage_specs(planned(graph), StageTranslator())]
    tables = build_table_specs(read_tables([planned(graph)]), StageTranslator())
    columns = {spec.key: schema_of(spec) for spec in (*stages, *tables)}
    read: set[dg.AssetKey] = set()
    for spec in stages:
        lineage = spec.metadata["dagster/column_lineage"]
        assert isinstance(lineage, dg.TableColumnLineage)
        assert lineage.deps_by_column.keys() == columns[spec.key]
        upstream = {dep.asset_key for dep in spec.deps}
        for dep in itertools.chain.from_iterable(lineage.deps_by_column.values()):
            read.add(dep.asset_key)
            assert dep.asset_key in upstream
            assert dep.column_name in columns[dep.asset_key]
    paths = [["orders"], ["lines"], ["spending", "stage_0"]]
    assert {dg.AssetKey(path) for path in paths} <= read
    table = table_of(stages[-1])
    assert "| spent  | lines.price      |" in table
    assert "orders.day (filter)" in table


def schema_of(spec: dg.AssetSpec) -> set[str]:
    schema = spec.metadata["dagster/column_schema"]
    assert isinstance(schema, dg.TableSchema)
    return {column.name for column in schema.columns}


def table_of(spec: dg.AssetSpec) -> str:
    value = spec.metadata["stagecoach/lineage"]
    assert isinstance(value, dg.MarkdownMetadataValue)
    return value.md_str or ""


def test_unknown_lineage_is_no_column_lineage() -> None:
    sql = (
        "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 3) "
        "SELECT n, status FROM r JOIN orders ON n = id"
    )
    graph = plan_query(sql, SALES, name="spending")
    ((_, spec),) = build_stage_specs(planned(graph), StageTranslator())
    assert "dagster/column_lineage" not in spec.metadata
    assert "any column of orders" in table_of(spec)
