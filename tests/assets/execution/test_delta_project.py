"""A project whose query publishes to Delta, and a query that reads the table by its name."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import dagster as dg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from stagecoach.assets.execution.executor import execute_in_process
from tests.assets.execution.test_iceberg_project import (
    QUIET,
    definitions_of,
    read_what_is_staged,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from stagecoach.infra.config.settings import EngineSettings

DAILY = """/*
partitions: {by: daily, start: 2024-01-01, end: 2024-01-04, column: day}
output: {format: delta, location: lake/daily, partition_by: [day]}
checks:
  - unique: [day]
  - no_rows: {name: none_is_large, sql: SELECT n FROM daily WHERE n > 2}
*/
SELECT day, CAST(count(*) AS SMALLINT) AS n FROM raw
WHERE day >= :partition_start AND day < :partition_end GROUP BY day
"""


@pytest.mark.slow
@pytest.mark.spark
def test_partitions_are_published_to_delta_and_read_downstream(
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
    (queries / "total.sql").write_text("SELECT sum(n) AS n, count(*) AS days FROM daily")
    definitions = definitions_of(tmp_path, spark_settings)
    graph = definitions.resolve_asset_graph()
    assert graph.get(dg.AssetKey("total")).parent_keys == {dg.AssetKey("daily")}
    assert "delta" in graph.get(dg.AssetKey("daily")).kinds
    made = {}
    with dg.DagsterInstance.ephemeral() as instance:
        job = definitions.resolve_job_def("run_daily")
        for key in ("2024-01-01", "2024-01-02", "2024-01-02"):
            result = execute_in_process(
                job, instance=instance, run_config=QUIET, tags={"dagster/partition": key}
            )
            assert result.success
            checks = result.get_asset_check_evaluations()
            assert [check.passed for check in checks] == [True, True]
            (made[key],) = result.asset_materializations_for_node("daily")
        bad = execute_in_process(
            job, instance=instance, run_config=QUIET, tags={"dagster/partition": "2024-01-03"}
        )
        outcomes = {c.check_name: c.passed for c in bad.get_asset_check_evaluations()}
        assert (bad.success, outcomes) == (False, {"unique_day": True, "none_is_large": False})
        job = definitions.resolve_job_def("run_total")
        assert execute_in_process(job, instance=instance, run_config=QUIET).success
    table = DeltaTable(queries / "lake" / "daily")
    rows = table.to_pyarrow_table().to_pylist()
    assert sorted((str(row["day"]), row["n"]) for row in rows) == [
        ("2024-01-01", 1),
        ("2024-01-02", 2),
    ]
    assert table.version() == 2
    read_what_is_staged(tmp_path, "daily", spark_settings)
    metadata = made["2024-01-02"].metadata
    assert metadata["dagster/uri"].value == str(queries / "lake" / "daily")
    assert metadata["stagecoach/table_version"].value == 2
    assert metadata["stagecoach/published_again"].value is True
    files = sorted((tmp_path / "store" / "results" / "total" / "files").rglob("*.parquet"))
    assert [pq.read_table(file).to_pylist() for file in files] == [[{"n": 3, "days": 2}]]
