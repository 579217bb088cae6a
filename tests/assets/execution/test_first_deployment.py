"""The first run of a project: a Python asset makes a table, a query reads it, another follows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import dagster as dg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stagecoach.assets import EngineResource, StageTranslator, build_definitions
from stagecoach.assets.execution.executor import execute_in_process, stagecoach_threads
from stagecoach.planner.catalog import TableInfo
from stagecoach.planner.options import PlannerOptions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from stagecoach.infra.config.settings import EngineSettings

QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
CATALOG = """
tables:
  raw:
    location: raw
    columns: {id: BIGINT NOT NULL, name: {type: STRING, comment: of whom}}
"""
NAMES = ("master", "parallelism", "memory_bytes", "writer_memory_bytes", "spill_dir")


class MadeHere(StageTranslator):
    """Base tables are made by other assets of the code location."""

    def get_table_spec(self, table: TableInfo, spec: dg.AssetSpec) -> dg.AssetSpec | None:
        return None


def definitions_of(folder: Path, spark_settings: EngineSettings) -> dg.Definitions:
    """The code location, as each process that loads it makes it."""

    @dg.asset
    def raw() -> None:
        (folder / "raw").mkdir()
        rows = pa.table({"name": ["a", "b", "a"], "id": pa.array([1, 2, 3], pa.int32())})
        pq.write_table(rows, folder / "raw" / "a.parquet")

    @dg.asset(deps=[dg.AssetKey("daily")])
    def report() -> dg.MaterializeResult[Any]:
        files = sorted((folder / "store" / "results" / "daily" / "files").rglob("*.parquet"))
        rows = pa.concat_tables([pq.read_table(file) for file in files]).to_pylist()
        return dg.MaterializeResult(metadata={"rows": dg.MetadataValue.json(rows)})

    engine = EngineResource(
        catalog=str(folder / "catalog.yaml"),
        storage_root=str(folder / "store"),
        settings={name: str(getattr(spark_settings, name)) for name in NAMES},
    )
    made = build_definitions(
        queries=folder / "queries",
        catalog=folder / "catalog.yaml",
        engine=engine,
        options=PlannerOptions(force_distribution=True, num_partitions=2),
        translator=MadeHere(),
    )
    job = dg.define_asset_job(
        "everything", dg.AssetSelection.all(), executor_def=stagecoach_threads
    )
    return dg.Definitions.merge(made, dg.Definitions(assets=[raw, report], jobs=[job]))


@pytest.mark.slow
@pytest.mark.spark
def test_what_makes_a_table_what_reads_it_and_what_follows_run_in_order(
    tmp_path: Path, spark: SparkSession, spark_settings: EngineSettings
) -> None:
    (tmp_path / "catalog.yaml").write_text(CATALOG)
    (tmp_path / "queries").mkdir()
    (tmp_path / "queries" / "daily.sql").write_text(
        "SELECT name, count(*) AS n, max(id) AS last FROM raw GROUP BY name ORDER BY name"
    )
    definitions = definitions_of(tmp_path, spark_settings)
    job = definitions.resolve_job_def("everything")
    steps = {node.name for node in job.nodes}
    assert {"raw", "daily", "report"} < steps
    with dg.DagsterInstance.ephemeral() as instance:
        result = execute_in_process(job, instance=instance, run_config=QUIET)
        assert result.success
        order = [e.node_name for e in result.all_events if e.is_step_success]
        assert order[0] == "raw"
        assert order[-2:] == ["daily", "report"]
        (made,) = result.asset_materializations_for_node("report")
        assert made.metadata["rows"].value == [
            {"name": "a", "n": 2, "last": 3},
            {"name": "b", "n": 1, "last": 2},
        ]
        (head,) = result.asset_materializations_for_node("daily")
        columns = head.metadata["dagster/column_schema"].value.columns
        assert [(c.name, c.description) for c in columns] == [
            ("name", "of whom"),
            ("n", None),
            ("last", "from raw.id"),
        ]
    # A process that starts after the first asset has run sees the steps of the run.
    again = definitions_of(tmp_path, spark_settings).resolve_job_def("everything")
    assert {node.name for node in again.nodes} == steps


@pytest.mark.slow
@pytest.mark.spark
def test_a_run_without_the_data_says_where_it_must_be(
    tmp_path: Path, spark: SparkSession, spark_settings: EngineSettings
) -> None:
    (tmp_path / "catalog.yaml").write_text(CATALOG)
    (tmp_path / "queries").mkdir()
    (tmp_path / "queries" / "daily.sql").write_text("SELECT name FROM raw")
    job = definitions_of(tmp_path, spark_settings).resolve_job_def("run_daily")
    with dg.DagsterInstance.ephemeral() as instance:
        result = execute_in_process(job, instance=instance, run_config=QUIET)
    assert not result.success
    (failure, *_) = [e for e in result.all_events if e.is_step_failure]
    message = str(failure.step_failure_data.error)
    assert f"table 'raw': {tmp_path}/raw does not exist; write the table or correct" in message
