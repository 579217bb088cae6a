"""A project whose query merges its result into a table, and a query that reads the table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import dagster as dg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stagecoach.assets.execution.executor import execute_in_process
from stagecoach.infra.formats.published.log import read_current
from stagecoach.infra.storage.stores import open_store
from tests.assets.execution.test_iceberg_project import QUIET, definitions_of
from tests.infra.formats.published.outputs import read_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from stagecoach.infra.config.settings import EngineSettings

ORDERS = """/*
output: {mode: merge, key: [id], delete_column: gone}
checks:
  - unique: [id]
  - accepted_values: {column: state, values: [new, paid]}
*/
SELECT id, state, op = 'D' AS gone FROM raw
"""
TOTAL = "SELECT count(*) AS n, max(state) AS last FROM orders"
COLUMNS = ["id", "state"]


def write_raw(folder: Path, *rows: tuple[int, str, str]) -> None:
    names = ("id", "state", "op")
    pq.write_table(
        pa.table(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))),
        folder / "raw.parquet",
    )


@pytest.mark.slow
@pytest.mark.spark
def test_changes_are_merged_and_read_downstream(
    tmp_path: Path, spark: SparkSession, spark_settings: EngineSettings
) -> None:
    write_raw(tmp_path, (1, "new", "I"), (2, "new", "I"), (3, "new", "I"))
    (tmp_path / "catalog.yaml").write_text("tables: {raw: {location: raw.parquet}}\n")
    queries = tmp_path / "queries"
    queries.mkdir()
    (queries / "orders.sql").write_text(ORDERS)
    (queries / "total.sql").write_text(TOTAL)
    definitions = definitions_of(tmp_path, spark_settings)
    key = dg.AssetKey("orders")
    planned = definitions.resolve_asset_graph().get(key).metadata
    assert [column.name for column in planned["dagster/column_schema"].columns] == COLUMNS
    assert list(planned["dagster/column_lineage"].deps_by_column) == COLUMNS
    with dg.DagsterInstance.ephemeral() as instance:
        job = definitions.resolve_job_def("run_orders")
        assert execute_in_process(job, instance=instance, run_config=QUIET).success
        write_raw(tmp_path, (1, "paid", "U"), (2, "", "D"), (4, "new", "I"))
        result = execute_in_process(job, instance=instance, run_config=QUIET)
        assert result.success
        assert all(done.passed for done in result.get_asset_check_evaluations())
        (made,) = result.asset_materializations_for_node("orders")
        write_raw(tmp_path, (3, "lost", "U"))
        refused = execute_in_process(job, instance=instance, run_config=QUIET)
        outcomes = {c.check_name: c.passed for c in refused.get_asset_check_evaluations()}
        assert outcomes == {"unique_id": True, "accepted_values_state": False}
        downstream = definitions.resolve_job_def("run_total")
        assert execute_in_process(downstream, instance=instance, run_config=QUIET).success
    store = open_store(str(tmp_path / "store"))
    version = read_current(store, "orders")
    assert sorted(tuple(row.values()) for row in read_rows(store, version)) == [
        (1, "paid"),
        (3, "new"),
        (4, "new"),
    ]
    assert version.mode == "merge"
    (staged,) = version.staged
    assert (staged.mode, len(staged.rewritten)) == ("merge", 1)
    metadata = made.metadata
    assert metadata["stagecoach/table_rows"].value == 3
    if "dagster/column_schema" in metadata:
        schema = metadata["dagster/column_schema"].value
        assert [column.name for column in schema.columns] == COLUMNS
    assert read_rows(store, read_current(store, "total")) == [{"n": 3, "last": "paid"}]
