"""The whole way with the real runtime: queries → assets → Spark tasks → results in the store."""

import re
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from stagecoach.assets import EngineResource, StageMetadata, build_definitions
from stagecoach.assets.execution.executor import execute_in_process
from stagecoach.infra.config.settings import EngineSettings
from stagecoach.infra.shuffle.commit import load_manifest
from stagecoach.infra.shuffle.reader import read_table
from stagecoach.infra.storage.stores import open_store
from stagecoach.planner.options import PlannerOptions

SALES = """/*
description: Sales by shop
parameters: {since: 2024-01-02, shop: {type: int}}
*/
SELECT s.shop, p.name, sum(s.amount) AS total
FROM sales s JOIN products p ON s.product = p.product
WHERE s.day >= :since AND s.shop <> :shop
GROUP BY s.shop, p.name
ORDER BY s.shop, p.name
"""
QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Two tables of two files each, and two queries over them."""
    days = pa.array([19723, 19724, 19725, 19725] * 25, pa.date32())
    for part in range(2):
        for folder in ("sales", "products"):
            (tmp_path / folder).mkdir(exist_ok=True)
        shops = pa.array([part, part + 1, 1, 2] * 25, pa.int32())
        products = pa.array([1, 2, 3, 4] * 25, pa.int32())
        sales = pa.table({"shop": shops, "product": products, "day": days, "amount": [1] * 100})
        pq.write_table(sales, tmp_path / "sales" / f"{part}.parquet")
        numbers = pa.array([2 * part + 1, 2 * part + 2], pa.int32())
        names = pa.table({"product": numbers, "name": [f"p{2 * part + 1}", f"p{2 * part + 2}"]})
        pq.write_table(names, tmp_path / "products" / f"{part}.parquet")
    (tmp_path / "queries").mkdir()
    (tmp_path / "queries" / "by_shop.sql").write_text(SALES)
    (tmp_path / "queries" / "how_many.sql").write_text("SELECT count(*) AS n FROM sales")
    (tmp_path / "catalog.yaml").write_text(
        "tables: {sales: {location: sales}, products: {location: products}}"
    )
    return tmp_path


@pytest.fixture
def definitions(
    project: Path, spark: SparkSession, spark_settings: EngineSettings
) -> dg.Definitions:
    return define(
        project, spark_settings, PlannerOptions(force_distribution=True, num_partitions=3)
    )


def define(
    project: Path, spark_settings: EngineSettings, options: PlannerOptions
) -> dg.Definitions:
    names = ("master", "parallelism", "memory_bytes", "writer_memory_bytes", "spill_dir")
    engine = EngineResource(
        catalog=str(project / "catalog.yaml"),
        storage_root=str(project / "store"),
        settings={name: str(getattr(spark_settings, name)) for name in names},
    )
    return build_definitions(
        queries=project / "queries",
        catalog=project / "catalog.yaml",
        engine=engine,
        options=options,
    )


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as made:
        yield made


def metadata_of(result: dg.ExecuteInProcessResult, step: str) -> StageMetadata:
    (event,) = result.asset_materializations_for_node(step)
    return StageMetadata.from_dagster(event.metadata)


def rows_of(project: Path, metadata: StageMetadata) -> list[list[object]]:
    assert metadata.fingerprint is not None
    store = open_store(project / "store")
    manifest = load_manifest(store, metadata.fingerprint, stage="head")
    assert manifest is not None
    columns = read_table(store, manifest).columns
    return [list(row) for row in zip(*(c.to_pylist() for c in columns), strict=True)]


def page_of(project: Path, result: dg.ExecuteInProcessResult) -> str:
    return (project / "store" / "runs" / result.run_id / "page.html").read_text()


@pytest.mark.slow
@pytest.mark.spark
def test_a_query_runs_and_runs_again_by_reuse(
    definitions: dg.Definitions, project: Path, instance: dg.DagsterInstance
) -> None:
    job = definitions.resolve_job_def("run_by_shop")
    steps = [node.name for node in job.nodes]
    assert len(steps) > 2
    tags = {"stagecoach/parameter/shop": "0"}
    first = execute_in_process(job, instance=instance, run_config=QUIET, tags=tags)
    assert first.success
    head = metadata_of(first, "by_shop")
    assert head.engine == "duckdb"
    # Shop 0 is left out, and so is the first of the three days.
    expected = [[1, "p2", 25], [1, "p3", 50], [2, "p2", 25], [2, "p4", 50]]
    assert rows_of(project, head) == expected
    assert not any(metadata_of(first, step).reused for step in steps)

    page = page_of(project, first)
    assert page.count("<svg") == 3
    tasks = sum(metadata_of(first, step).tasks or 0 for step in steps)
    assert page.count("peak memory") == 2 * tasks
    assert "4 rows in the result" in re.sub(r"<[^>]*>", " ", page).replace("  ", " ")
    assert ", reused</span>" not in page

    second = execute_in_process(job, instance=instance, run_config=QUIET, tags=tags)
    assert second.success
    assert all(metadata_of(second, step).reused for step in steps)
    page = page_of(project, second)
    assert page.count(", reused</span>") == len(steps)
    assert "No task ran" in page

    tags = {"stagecoach/parameter/shop": "0", "stagecoach/parameter/since": "2024-01-03"}
    third = execute_in_process(job, instance=instance, run_config=QUIET, tags=tags)
    assert rows_of(project, metadata_of(third, "by_shop")) == [[1, "p3", 50], [2, "p4", 50]]


@pytest.mark.slow
@pytest.mark.spark
def test_a_run_may_span_queries(
    definitions: dg.Definitions, project: Path, instance: dg.DagsterInstance
) -> None:
    job = definitions.resolve_implicit_global_asset_job_def()
    tags = {"stagecoach/parameter/shop": "0"}
    result = execute_in_process(job, instance=instance, run_config=QUIET, tags=tags)
    assert result.success
    assert rows_of(project, metadata_of(result, "how_many")) == [[200]]
    assert len(rows_of(project, metadata_of(result, "by_shop"))) == 4
    runs = {path.name for path in (project / "store" / "runs").iterdir()}
    assert runs == {f"{result.run_id}.by_shop", f"{result.run_id}.how_many"}


@pytest.mark.slow
@pytest.mark.spark
def test_a_missing_parameter_fails_every_leaf_once(
    definitions: dg.Definitions, instance: dg.DagsterInstance
) -> None:
    job = definitions.resolve_job_def("run_by_shop")
    result = execute_in_process(job, instance=instance, run_config=QUIET)
    assert not result.success
    failures = [e for e in result.all_events if e.is_step_failure]
    assert failures
    assert "parameter 'shop' has no value" in str(failures[0].step_failure_data.error)
    assert not any(e.is_step_up_for_retry for e in result.all_events)


DAILY = """/*
partitions: {by: daily, start: 2024-01-01, end: 2024-01-04, column: day}
backfill: %s
*/
"""
BY_DAY = """SELECT day, sum(amount) AS total FROM sales
WHERE day >= :partition_start AND day < :partition_end GROUP BY day
"""
SHARES = """SELECT b.day, s.shop, s.amount, b.total FROM by_day b JOIN sales s ON b.day = s.day
WHERE b.day >= :partition_start AND b.day < :partition_end
  AND s.day >= :partition_start AND s.day < :partition_end
"""


@pytest.fixture
def days(project: Path) -> Path:
    """Two queries by day, of which the second reads the first and a base table."""
    (project / "queries" / "by_day.sql").write_text(DAILY % "run_per_partition" + BY_DAY)
    (project / "queries" / "shares.sql").write_text(DAILY % "single_run" + SHARES)
    (project / "queries" / "by_shop.sql").unlink()
    return project


@pytest.mark.slow
@pytest.mark.spark
def test_stages_of_a_query_run_for_other_ranges_each(
    days: Path,
    spark: SparkSession,
    spark_settings: EngineSettings,
    instance: dg.DagsterInstance,
) -> None:
    """As a backfill runs them: what reads base tables at once, the rest as tables are ready."""
    options = PlannerOptions(force_distribution=True, num_partitions=3, broadcast_bytes=0)
    definitions = define(days, spark_settings, options)
    graph = definitions.resolve_asset_graph()
    (leaf,) = (
        key
        for key in graph.executable_asset_keys
        if key.path[0] == "shares" and graph.get(key).parent_keys == {dg.AssetKey(["sales"])}
    )
    rest = [k for k in graph.executable_asset_keys if k.path[0] == "shares" and k != leaf]
    by_day = [k for k in graph.executable_asset_keys if k.path[0] == "by_day"]
    whole = definitions.resolve_implicit_global_asset_job_def()

    def run(keys: list[dg.AssetKey], first: str, last: str) -> dg.ExecuteInProcessResult:
        job = whole.get_subset(asset_selection=set(keys))
        tags = {
            "dagster/asset_partition_range_start": first,
            "dagster/asset_partition_range_end": last,
        }
        return execute_in_process(job, instance=instance, run_config=QUIET, tags=tags)

    # No day of the table that other stages read has been made yet.
    assert run([leaf], "2024-01-01", "2024-01-03").success
    assert run(by_day, "2024-01-01", "2024-01-02").success
    # Nobody has made the leaf for just these two days.
    result = run(rest, "2024-01-01", "2024-01-02")
    assert result.success
    first_day, _ = result.asset_materializations_for_node("shares")
    rows = rows_of(days, StageMetadata.from_dagster(first_day.metadata))
    assert {(str(day), total) for day, _, _, total in rows} == {
        ("2024-01-01", 50),
        ("2024-01-02", 50),
    }
    assert len(rows) == 100
    # Each run says that it has ended, wherever it worked.
    runs = days / "store" / "runs"
    begun = {path.name for path in runs.glob("*/begun/*")}
    assert len(begun) == 3
    assert begun == {path.name for path in runs.glob("*/ended/*")}
