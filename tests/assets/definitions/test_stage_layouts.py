"""Stages as ops of the query's asset: what Dagster shows of them, and how their runs go."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import dagster as dg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stagecoach.assets import EngineResource, StageProps, StageTranslator, build_definitions
from stagecoach.assets.definitions.factory import ENGINE_RESOURCE, build_job
from stagecoach.assets.definitions.stage_layouts import LAYOUTS
from stagecoach.assets.definitions.translator import STAGE_KIND
from stagecoach.assets.execution.executor import execute_in_process, stagecoach_threads
from stagecoach.assets.execution.policy import ExecutionPolicy
from stagecoach.assets.execution.stage_places import StageOps
from stagecoach.assets.plans.planned import PlannedQuery
from stagecoach.assets.project.queries import Query
from stagecoach.infra.errors import StorageError
from stagecoach.infra.storage import layout
from stagecoach.planner.errors import AnalysisError
from stagecoach.planner.options import PlannerOptions
from stagecoach.planner.plan.stages import StageGraph
from stagecoach.planner.planning import plan_query
from tests.assets.definitions.test_location import fake_plan, node
from tests.assets.execution.test_first_deployment import NAMES
from tests.assets.execution.test_run_page import QUIET, SQL, StoringRunner, how
from tests.assets.fakes import FakeRunner, make_graph, meeting, scan
from tests.planner.catalogs import SALES
from tests.planner.tpch import FORCED

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from stagecoach.infra.config.settings import EngineSettings

STEPS = [f"sales.stage_{i}" for i in range(4)]


class CheckingRunner(FakeRunner):
    """Whose checks find no row."""

    def first_rows(self, request: object, limit: int) -> pa.Table:
        return pa.table({"k": pa.array([], pa.int64())})


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as made:
        yield made


def build(
    root: Path,
    runner: FakeRunner,
    front: str = "",
    translator: StageTranslator | None = None,
    more: str = "",
) -> dg.Definitions:
    (root / "queries").mkdir()
    if more:
        (root / "queries" / "more.sql").write_text(more)
    (root / "queries" / "sales.sql").write_text(f"{front}SELECT k, v FROM t")
    (root / "catalog.yaml").write_text("tables: {t: {location: t}, u: {location: u}}")
    return build_definitions(
        queries=root / "queries",
        catalog=root / "catalog.yaml",
        engine=dg.ResourceDefinition.hardcoded_resource(runner),
        plan=fake_plan,
        translator=translator,
        stages="ops",
    )


def run(definitions: dg.Definitions, instance: dg.DagsterInstance) -> dg.ExecuteInProcessResult:
    job = definitions.resolve_job_def("run_sales")
    return execute_in_process(job, instance=instance, run_config=QUIET)


def ended(result: dg.ExecuteInProcessResult, kind: dg.DagsterEventType) -> list[str]:
    return [e.step_key or "" for e in result.all_events if e.event_type is kind]


def test_the_catalog_has_tables_alone(tmp_path: Path) -> None:
    definitions = build(tmp_path, FakeRunner())
    dg.Definitions.validate_loadable(definitions)
    keys = {spec.key.to_user_string() for spec in definitions.resolve_all_asset_specs()}
    assert keys == {"sales", "t", "u"}
    sales = node(definitions, "sales")
    assert {dep.asset_key.to_user_string() for dep in sales.deps} == {"t", "u"}
    assert STAGE_KIND not in sales.kinds
    assert sales.metadata["stagecoach/stages"] == 4
    assert (sales.description or "").startswith("4 stages.\n")


def test_several_queries_run_in_one_job(tmp_path: Path, instance: dg.DagsterInstance) -> None:
    definitions = build(tmp_path, FakeRunner(), more="SELECT k FROM sales")
    dg.Definitions.validate_loadable(definitions)
    job = dg.define_asset_job(
        "both", dg.AssetSelection.assets("sales", "more"), executor_def=stagecoach_threads
    )
    both = dg.Definitions.merge(definitions, dg.Definitions(jobs=[job])).resolve_job_def("both")
    result = execute_in_process(both, instance=instance, run_config=QUIET)
    assert result.success
    steps = {*STEPS, *(step.replace("sales", "more") for step in STEPS)}
    assert set(ended(result, dg.DagsterEventType.STEP_SUCCESS)) == steps


def test_front_matter_decides_for_one_query(tmp_path: Path) -> None:
    definitions = build(tmp_path, FakeRunner(), "-- stages: assets\n")
    keys = {spec.key.to_user_string() for spec in definitions.resolve_all_asset_specs()}
    assert keys == {"sales", "sales/stage_0", "sales/stage_1", "sales/stage_2", "t", "u"}


def test_every_stage_is_a_step_and_the_head_is_the_asset(
    tmp_path: Path, instance: dg.DagsterInstance
) -> None:
    runner = FakeRunner(work=meeting(0, 1))
    result = run(build(tmp_path, runner), instance)
    assert result.success
    done = ended(result, dg.DagsterEventType.STEP_SUCCESS)
    assert sorted(done[:2]) == STEPS[:2]
    assert done[2:] == STEPS[2:]
    (made,) = [e for e in result.all_events if e.is_step_materialization]
    assert made.step_key == "sales.stage_3"
    assert made.asset_key == dg.AssetKey("sales")
    metadata = made.step_materialization_data.materialization.metadata
    assert metadata["dagster/row_count"].value == 7
    fingerprint = f"{runner.requests[-1].stage.plan_hash[:16]}3"
    record = instance.get_latest_data_version_record(dg.AssetKey("sales"))
    assert record is not None
    assert record.asset_materialization is not None
    assert (record.asset_materialization.tags or {})["dagster/data_version"] == fingerprint
    assert all(request.stages == () and request.outside == () for request in runner.requests)


def test_checks_run_after_the_head_unless_it_is_audited(
    tmp_path: Path, instance: dg.DagsterInstance
) -> None:
    front = "-- checks: [{not_null: [k]}]\n-- output: {audit: false}\n"
    result = run(build(tmp_path, CheckingRunner(), front), instance)
    assert result.success
    assert ended(result, dg.DagsterEventType.STEP_SUCCESS)[-1] == "sales__checks"
    (check,) = result.get_asset_check_evaluations()
    assert check.passed


def test_a_fault_is_retried_and_a_mistake_is_not(
    tmp_path: Path, instance: dg.DagsterInstance
) -> None:
    runner = FakeRunner(errors={0: [StorageError("503")], 2: [AnalysisError("wrong")]})
    front = "-- retries: {max: 1, delay_seconds: 0}\n"
    result = run(build(tmp_path, runner, front), instance)
    assert ended(result, dg.DagsterEventType.STEP_UP_FOR_RETRY) == ["sales.stage_0"]
    assert ended(result, dg.DagsterEventType.STEP_FAILURE) == ["sales.stage_2"]
    assert [r.attempt for r in runner.requests if r.stage_id == 0] == [0, 1]
    assert not [e for e in result.all_events if e.is_step_materialization]


def planned(graph: StageGraph) -> PlannedQuery:
    return PlannedQuery(query=Query(name=graph.query, sql=graph.sql), graph=graph)


def job_of(item: PlannedQuery, runner: FakeRunner) -> dg.JobDefinition:
    ops = LAYOUTS["ops"]
    assets = ops.assets(item, ops.specs(item, StageTranslator()), ExecutionPolicy())
    definitions = dg.Definitions(
        assets=assets,
        jobs=[build_job(item, assets)],
        resources={ENGINE_RESOURCE: dg.ResourceDefinition.hardcoded_resource(runner)},
    )
    return definitions.resolve_job_def(item.query.job_name)


BROKEN_ONCE = FakeRunner(errors={2: [AnalysisError("wrong")]})


def make_broken_job() -> dg.JobDefinition:
    """A job whose third stage fails once in a process; importable by name."""
    return job_of(planned(make_graph()), BROKEN_ONCE)


def test_from_failure_resumes_at_the_failed_stage() -> None:
    job = dg.reconstructable(make_broken_job)
    with dg.instance_for_test() as instance:
        with dg.execute_job(job, instance=instance, run_config=QUIET) as first:
            assert not first.success
        BROKEN_ONCE.requests.clear()
        options = dg.ReexecutionOptions.from_failure(first.run_id, instance)
        with dg.execute_job(
            job, instance=instance, run_config=QUIET, reexecution_options=options
        ) as second:
            assert second.success
        assert [request.stage_id for request in BROKEN_ONCE.requests] == [2, 3]
        # It reads what the failed run has committed, and the tables as that run did.
        assert {request.root_run_id for request in BROKEN_ONCE.requests} == {first.run_id}


def test_the_page_of_a_run_tells_of_every_stage(
    tmp_path: Path, instance: dg.DagsterInstance
) -> None:
    runner = StoringRunner(tmp_path / "store")
    graph = plan_query(SQL, SALES, FORCED, name="spending")
    result = execute_in_process(job_of(planned(graph), runner), instance=instance, run_config=QUIET)
    assert result.success
    page = runner.storage.read_bytes(layout.run_page(result.run_id)).decode()
    assert how(page) == ["computed"] * len(graph.stages)
    places = StageOps(
        {s.stage_id: dg.AssetKey("spending") for s in graph.stages}, "spending", graph.head.stage_id
    )
    for stage in graph.stages:
        told = places.reported(instance, result.run_id, stage.stage_id)
        assert told is not None
        assert told[1].uri == f"memory://spending/{stage.stage_id}"
        assert places.reported(instance, "another run", stage.stage_id) is None


def test_lineage_leads_through_the_stages_to_the_tables() -> None:
    """Followed from asset to asset, the stages' own lineage comes to the same columns."""
    item = planned(plan_query(SQL, SALES, FORCED, name="spending"))
    (_, spec), *more = LAYOUTS["ops"].specs(item, StageTranslator())
    assert not more
    stages = {s.key: s for _, s in LAYOUTS["assets"].specs(item, StageTranslator())}

    def followed(dep: dg.TableColumnDep) -> set[dg.TableColumnDep]:
        if dep.asset_key not in stages:
            return {dep}
        lineage = stages[dep.asset_key].metadata["dagster/column_lineage"]
        deps = lineage.deps_by_column[dep.column_name]
        return {base for upstream in deps for base in followed(upstream)}

    found = spec.metadata["dagster/column_lineage"].deps_by_column
    head = stages[spec.key].metadata["dagster/column_lineage"].deps_by_column
    assert {name: set(deps) for name, deps in found.items()} == {
        name: {base for dep in deps for base in followed(dep)} for name, deps in head.items()
    }
    assert set(found["spent"]) == {dg.TableColumnDep(dg.AssetKey("lines"), "price")}


def test_the_code_version_is_that_of_all_stages() -> None:
    item = planned(make_graph())
    first, *others = item.graph.stages
    moved = replace(first, fragment=scan("u"))
    other = planned(replace(item.graph, stages=(moved, *others)))
    versions = [
        LAYOUTS["ops"].specs(each, StageTranslator())[0][1].code_version for each in (item, other)
    ]
    assert versions[0] != versions[1]


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("layout", ["ops", "assets"])
def test_a_partitioned_table_is_published_from_both(
    tmp_path: Path, spark: SparkSession, spark_settings: EngineSettings, layout: str
) -> None:
    """Two days in one run: their rows, what is told of each, and that nothing runs twice."""
    days = [datetime.date(2026, 1, day) for day in (1, 1, 2, 2, 2, 3)]
    (tmp_path / "sales").mkdir()
    pq.write_table(pa.table({"day": days, "v": range(6)}), tmp_path / "sales" / "a.parquet")
    (tmp_path / "catalog.yaml").write_text("tables: {sales: {location: sales}}")
    (tmp_path / "queries").mkdir()
    (tmp_path / "queries" / "daily.sql").write_text(
        "-- partitions: {by: daily, start: 2026-01-01, column: day}\n-- backfill: single_run\n"
        f"-- stages: {layout}\n"
        "SELECT day, sum(v) AS v, v % 9 AS k FROM sales WHERE day >= :partition_start AND day < :partition_end GROUP BY "
        "day, k"
    )
    engine = EngineResource(
        catalog=str(tmp_path / "catalog.yaml"),
        storage_root=str(tmp_path / "store"),
        settings={name: str(getattr(spark_settings, name)) for name in NAMES},
    )
    job = build_definitions(
        queries=tmp_path / "queries",
        catalog=tmp_path / "catalog.yaml",
        engine=engine,
        options=PlannerOptions(force_distribution=True, num_partitions=2),
    ).resolve_job_def("run_daily")
    tags = {
        "dagster/asset_partition_range_start": "2026-01-01",
        "dagster/asset_partition_range_end": "2026-01-02",
    }
    with dg.DagsterInstance.ephemeral() as instance:
        for reused in (False, True):
            result = execute_in_process(job, instance=instance, run_config=QUIET, tags=tags)
            assert result.success, [e.message for e in result.all_events if e.is_failure]
            made = [
                e.step_materialization_data.materialization
                for e in result.all_events
                if e.is_step_materialization
            ]
            told = {m.partition: m.metadata for m in made if m.asset_key == dg.AssetKey("daily")}
            for name in ("dagster/partition_row_count", "dagster/row_count", "stagecoach/rows"):
                rows = {key: metadata[name].value for key, metadata in told.items()}
                assert rows == {"2026-01-01": 2, "2026-01-02": 3}, name
            others = [m for m in made if m.asset_key != dg.AssetKey("daily")]
            assert bool(others) == (layout == "assets")
            for m in others:
                assert not {"dagster/row_count", "stagecoach/rows"} & set(m.metadata)
            for m in made:
                assert m.metadata["stagecoach/run_rows"].value == 5
                assert m.metadata["stagecoach/run_partitions"].value == 2
            assert {m["stagecoach/reused"].value for m in told.values()} == {reused}
            assert {m["stagecoach/table_rows"].value for m in told.values()} == {5}
        assert instance.get_materialized_partitions(dg.AssetKey("daily")) == set(told)


def test_a_translator_may_put_the_assets_elsewhere(
    tmp_path: Path, instance: dg.DagsterInstance
) -> None:
    class Lake(StageTranslator):
        def get_asset_key(self, props: StageProps) -> dg.AssetKey:
            return super().get_asset_key(props).with_prefix("lake")

    runner = FakeRunner()
    result = run(build(tmp_path, runner, translator=Lake()), instance)
    assert result.success
    done = ended(result, dg.DagsterEventType.STEP_SUCCESS)
    assert sorted(done) == [f"lake__sales.stage_{i}" for i in range(4)]
