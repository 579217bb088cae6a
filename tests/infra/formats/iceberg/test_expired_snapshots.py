"""Snapshots of Iceberg tables that expire while a run reads them: right rows, or a clear error."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from stagecoach.infra.errors import InputLostError
from stagecoach.planner.planning import plan_query
from tests.contexts import new_context, run_stages
from tests.infra.formats.iceberg.handmade import HandmadeTable
from tests.infra.formats.iceberg.lake import Lake, local_lake, stored_catalog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from stagecoach.infra.config.settings import EngineSettings

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return local_lake(tmp_path)


def rows(*keys: int) -> pa.Table:
    return pa.table({"k": pa.array(keys, pa.int64())})


def begun(lake: Lake, spark: SparkSession, settings: EngineSettings) -> Any:
    """A run that has taken its snapshot of the table and read nothing yet."""
    catalog: Any = stored_catalog(lake)
    graph = plan_query(f"SELECT sum(k) AS s FROM {lake.table}", catalog, name="q")
    context = new_context(graph, settings, catalog, lambda: spark, store=lake.store)
    assert context.snapshot.table(lake.table).num_rows
    return context


def expire(lake: Lake, *, removes_files: bool) -> None:
    """Expire all snapshots but the current one, as a tool that manages the lake does."""
    before = {f"{lake.opened.location()}/data/{key}" for key in lake.data_files()}
    current = lake.opened.current_snapshot().snapshot_id
    expired = lake.opened.maintenance.expire_snapshots()
    for snapshot in lake.opened.snapshots():
        if snapshot.snapshot_id != current:
            expired = expired.by_id(snapshot.snapshot_id)
    expired.commit()
    live = set(lake.opened.inspect.data_files()["file_path"].to_pylist())
    for path in before - live if removes_files else ():
        Path(path.removeprefix("file://")).unlink()


def test_a_run_ends_with_a_clear_error_or_right_rows(
    lake: Lake, spark: SparkSession, spark_settings: EngineSettings
) -> None:
    lake.publish(rows(1, 2))
    kept, lost = (begun(lake, spark, spark_settings) for _ in range(2))
    lake.publish(rows(30))
    expire(lake, removes_files=False)
    assert run_stages(kept)[0].to_pylist() == [{"s": 3}]
    lake.publish(rows(400), mode="append")
    expire(lake, removes_files=True)
    lake.store.delete(list(lake.store.list("shuffle")))
    text = (
        r"'tpch\.orders' of the run's snapshot cannot be read: there is no such file; start a new"
    )
    with pytest.raises(InputLostError, match=text):
        run_stages(lost)
    assert run_stages(begun(lake, spark, spark_settings))[0].to_pylist() == [{"s": 430}]


def test_delete_files_that_are_gone_bring_no_row_back(
    lake: Lake, tmp_path: Path, spark: SparkSession, spark_settings: EngineSettings
) -> None:
    table = HandmadeTable(tmp_path / "lake" / "t")
    table.schema({"id": 1, "name": "k", "type": "long"})
    data = table.data(rows(1, 2, 3))
    deletes = table.position_deletes({data.path: [0]})
    table.commit(data)
    table.commit(deletes)
    lake.catalog.create_namespace_if_not_exists("tpch")
    lake.catalog.register_table(lake.table, f"file://{table.save()}")
    lake.publish(rows(4), mode="append")
    context = begun(lake, spark, spark_settings)
    Path(deletes.path.removeprefix("file://")).unlink()
    with pytest.raises(InputLostError, match="cannot be read: there is no such file"):
        run_stages(context)
