"""A project whose query publishes to Iceberg, and a query that reads the table by its name."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import dagster as dg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from pyiceberg.catalog import load_catalog

import stagecoach
from stagecoach.assets import EngineResource, build_definitions
from stagecoach.assets.execution.executor import execute_in_process
from stagecoach.commands.main import cli

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from stagecoach.infra.config.settings import EngineSettings

QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
NAMES = ("master", "parallelism", "memory_bytes", "writer_memory_bytes", "spill_dir")
DAILY = """/*
partitions: {by: daily, start: 2024-01-01, end: 2024-01-04, column: day}
output:
  format: iceberg
  table: lake.daily
  catalog: {name: lake, type: sql, uri: "sqlite:///lake.db", warehouse: warehouse}
  partition_by: [day]
checks:
  - unique: [day]
  - no_rows: {name: none_is_large, sql: SELECT n FROM lake.daily WHERE n > 2}
*/
SELECT day, CAST(count(*) AS SMALLINT) AS n FROM raw
WHERE day >= :partition_start AND day < :partition_end GROUP BY day
"""
TOTAL = "SELECT sum(n) AS n, count(*) AS days FROM lake.daily"


def definitions_of(folder: Path, spark_settings: EngineSettings) -> dg.Definitions:
    engine = EngineResource(
        catalog=str(folder / "catalog.yaml"),
        storage_root=str(folder / "store"),
        settings={name: str(getattr(spark_settings, name)) for name in NAMES},
    )
    return build_definitions(
        queries=folder / "queries", catalog=folder / "catalog.yaml", engine=engine
    )


def read_what_is_staged(folder: Path, table: str, spark_settings: EngineSettings) -> None:
    """As a user does after a check has failed: look, and decide."""
    store = folder / "store"
    runner = CliRunner()
    options = ["--catalog", str(folder / "catalog.yaml"), "--storage", str(store)]
    shown = runner.invoke(cli, ["tables", "show", table, "--staged", *options])
    assert "replace_partition" in shown.output
    assert "2024-01-03" in shown.output
    settings = {name: str(getattr(spark_settings, name)) for name in NAMES}
    with stagecoach.connect(folder / "catalog.yaml", storage=store, settings=settings) as session:
        for name, days in ((f"`{table}@staged`", 3), (table, 2)):
            found = session.query(f"SELECT max(n), count(day) FROM {name}").to_arrow().to_pylist()
            assert [list(row.values()) for row in found] == [[days, days]]
    discarded = runner.invoke(cli, ["tables", "discard", table, *options])
    assert discarded.output.startswith("discarded ")
    shown = runner.invoke(cli, ["tables", "show", table, "--staged", *options])
    assert shown.output == "nothing is staged\n"


@pytest.mark.slow
@pytest.mark.spark
def test_partitions_are_published_to_iceberg_and_read_downstream(
    tmp_path: Path, spark: SparkSession, spark_settings: EngineSettings
) -> None:
    (tmp_path / "raw").mkdir()
    keys = ["2024-01-01", *["2024-01-02"] * 2, *["2024-01-03"] * 3]
    days = pa.array(keys).cast(pa.date32())
    pq.write_table(pa.table({"day": days}), tmp_path / "raw" / "a.parquet")
    (tmp_path / "catalog.yaml").write_text("tables: {raw: {location: raw}}\n")
    queries = tmp_path / "queries"
    queries.mkdir()
    (queries / "daily.sql").write_text(DAILY)
    (queries / "total.sql").write_text(TOTAL)
    definitions = definitions_of(tmp_path, spark_settings)
    graph = definitions.resolve_asset_graph()
    assert graph.get(dg.AssetKey("total")).parent_keys == {dg.AssetKey("daily")}
    assert "iceberg" in graph.get(dg.AssetKey("daily")).kinds
    made = {}
    with dg.DagsterInstance.ephemeral() as instance:
        job = definitions.resolve_job_def("run_daily")
        for key in ("2024-01-01", "2024-01-02", "2024-01-02"):
            result = execute_in_process(
                job,
                instance=instance,
                run_config=QUIET,
                tags={"dagster/partition": key},
            )
            assert result.success
            (made[key],) = result.asset_materializations_for_node("daily")
        bad = execute_in_process(
            job, instance=instance, run_config=QUIET, tags={"dagster/partition": "2024-01-03"}
        )
        outcomes = {c.check_name: c.passed for c in bad.get_asset_check_evaluations()}
        assert (bad.success, outcomes) == (False, {"unique_day": True, "none_is_large": False})
        job = definitions.resolve_job_def("run_total")
        assert execute_in_process(job, instance=instance, run_config=QUIET).success
    lake = load_catalog(
        "lake", type="sql", uri=f"sqlite:///{queries}/lake.db", warehouse=str(queries / "warehouse")
    )
    table = lake.load_table("lake.daily")
    rows = table.scan().to_arrow().to_pylist()
    assert sorted((str(row["day"]), row["n"]) for row in rows) == [
        ("2024-01-01", 1),
        ("2024-01-02", 2),
    ]
    assert len(table.snapshots()) == 2
    read_what_is_staged(tmp_path, "lake.daily", spark_settings)
    metadata = made["2024-01-02"].metadata
    assert metadata["dagster/uri"].value == table.location()
    assert metadata["stagecoach/table_version"].value == table.current_snapshot().snapshot_id
    assert metadata["stagecoach/published_again"].value is True
    files = sorted((tmp_path / "store" / "results" / "total" / "files").rglob("*.parquet"))
    assert [pq.read_table(file).to_pylist() for file in files] == [[{"n": 3, "days": 2}]]
