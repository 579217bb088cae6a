"""A project whose results are audited, with real stages: partitions, its own SQL, a reader."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import dagster as dg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import stagecoach
from stagecoach.assets.execution.executor import execute_in_process
from stagecoach.commands.main import cli
from stagecoach.infra.formats.protocol import Access
from stagecoach.infra.formats.published.log import read_version
from stagecoach.infra.formats.published.table_format import FORMAT
from stagecoach.infra.publishing.publish import Staged
from stagecoach.infra.storage.stores import open_store
from tests.assets.execution.test_iceberg_project import NAMES, QUIET, definitions_of
from tests.infra.formats.published.outputs import publish_rows, read_rows, stage_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from stagecoach.infra.config.settings import EngineSettings

DAILY = """/*
partitions: {by: daily, start: 2024-01-01, end: 2024-01-04, column: day}
checks:
  - unique: [day]
  - no_rows: {name: none_is_negative, sql: SELECT n FROM daily WHERE n < 0}
  - row_count: {min: 1}
*/
SELECT day, sum(n) AS n FROM raw
WHERE day >= :partition_start AND day < :partition_end GROUP BY day
"""
KEYS = ("2024-01-01", "2024-01-02", "2024-01-03")


@pytest.mark.slow
@pytest.mark.spark
def test_every_partition_is_audited_by_itself(
    tmp_path: Path, spark: SparkSession, spark_settings: EngineSettings
) -> None:
    (tmp_path / "raw").mkdir()
    days = pa.array(KEYS).cast(pa.date32())
    pq.write_table(pa.table({"day": days, "n": [1, -2, 3]}), tmp_path / "raw" / "a.parquet")
    (tmp_path / "catalog.yaml").write_text("tables: {raw: {location: raw}}\n")
    (tmp_path / "queries").mkdir()
    (tmp_path / "queries" / "daily.sql").write_text(DAILY)
    definitions = definitions_of(tmp_path, spark_settings)
    with dg.DagsterInstance.ephemeral() as instance:
        job = definitions.resolve_job_def("run_daily")
        results = {
            key: execute_in_process(
                job, instance=instance, run_config=QUIET, tags={"dagster/partition": key}
            )
            for key in KEYS
        }
        made = instance.get_materialized_partitions(dg.AssetKey("daily"))
    assert {key: result.success for key, result in results.items()} == {
        KEYS[0]: True,
        KEYS[1]: False,
        KEYS[2]: True,
    }
    assert made == {KEYS[0], KEYS[2]}
    checks = results[KEYS[1]].get_asset_check_evaluations()
    assert {check.check_name: check.passed for check in checks} == {
        "unique_day": True,
        "none_is_negative": False,
        "row_count": True,
    }
    store = open_store(str(tmp_path / "store"))
    table = FORMAT.stored(store, "daily", Access())
    version = table.current()
    assert version is not None
    assert sorted(row["n"] for row in read_rows(store, version)) == [1, 3]
    (staged,) = table.staged()
    assert (staged.partition_keys, staged.mode) == ((KEYS[1],), "replace_partition")
    # The command that the failed check names shows where its row comes from.
    failed = next(check for check in checks if not check.passed)
    command = str(failed.metadata["stagecoach/replay"].value).split()[1:]
    options = ["--no-spark", "--json", "--storage", str(tmp_path / "store")]
    ran = CliRunner().invoke(cli, [*command, *options, "--project", str(tmp_path / "queries")])
    assert ran.exit_code == 0, ran.output
    told = json.loads(ran.stdout)
    assert told["chosen"]["rows"] == [{"day": KEYS[1], "n": -2}]
    (read,) = told["traced"][-1]["inputs"]
    assert (read["input"], read["rows"]) == ("table raw", [{"day": KEYS[1], "n": -2}])


@pytest.mark.slow
@pytest.mark.spark
def test_partitions_of_one_run_are_published_together_or_not_at_all(
    tmp_path: Path, spark: SparkSession, spark_settings: EngineSettings
) -> None:
    (tmp_path / "raw").mkdir()
    (tmp_path / "catalog.yaml").write_text("tables: {raw: {location: raw}}\n")
    (tmp_path / "queries").mkdir()
    front = DAILY.replace("checks:", "backfill: single_run\nchecks:")
    (tmp_path / "queries" / "daily.sql").write_text(front)
    key = dg.AssetKey("daily")
    tags = {
        "dagster/asset_partition_range_start": KEYS[0],
        "dagster/asset_partition_range_end": KEYS[2],
    }
    results = []
    with dg.DagsterInstance.ephemeral() as instance:
        for numbers in ([1, -2, 3], [1, 2, 3]):
            days = pa.array(KEYS).cast(pa.date32())
            rows = pa.table({"day": days, "n": numbers})
            pq.write_table(rows, tmp_path / "raw" / "a.parquet")
            definitions = definitions_of(tmp_path, spark_settings)
            job = definitions.resolve_job_def("run_daily")
            results.append(execute_in_process(job, instance=instance, run_config=QUIET, tags=tags))
            if len(results) == 1:
                assert not instance.get_materialized_partitions(key)
        assert instance.get_materialized_partitions(key) == set(KEYS)
        found = instance.fetch_materializations(key, limit=5).records
    refused, passed = results
    assert [result.success for result in results] == [False, True]
    for result, is_good in ((refused, False), (passed, True)):
        checks = {c.check_name: c.passed for c in result.get_asset_check_evaluations()}
        assert checks == {"unique_day": True, "none_is_negative": is_good, "row_count": True}
    told = {
        record.partition_key: record.asset_materialization.metadata["dagster/row_count"].value
        for record in found
        if record.asset_materialization is not None
    }
    assert told == dict.fromkeys(KEYS, 1)
    store = open_store(str(tmp_path / "store"))
    versions = FORMAT.stored(store, "daily", Access()).kept_versions()
    assert [(v.num_rows, v.partition_keys, v.staged) for v in versions] == [(3, KEYS, ())]
    waited = read_version(store, "daily", versions[0].number - 2)
    assert [dict(s.rows) for s in waited.staged] == [dict.fromkeys(KEYS, 1)]


@pytest.mark.slow
@pytest.mark.spark
def test_a_query_reads_what_is_staged_and_older_versions(
    tmp_path: Path, spark: SparkSession, spark_settings: EngineSettings
) -> None:
    store = open_store(str(tmp_path / "store"))
    for value in (1, 2):
        publish_rows(store, pa.table({"n": [value]}), "daily")
    staged = stage_rows(store, pa.table({"n": [3]}), "daily", mode="append")
    assert isinstance(staged, Staged)
    (tmp_path / "catalog.yaml").write_text("tables: {}\n")
    settings = {name: str(getattr(spark_settings, name)) for name in NAMES}
    with stagecoach.connect(
        tmp_path / "catalog.yaml", storage=tmp_path / "store", settings=settings
    ) as session:

        def read(table: str) -> list[int]:
            rows = session.query(f"SELECT n FROM {table} ORDER BY n").to_arrow()
            return list(rows.column(0).to_pylist())

        assert read("daily") == [2]
        assert read("`daily@staged`") == [2, 3]
        assert read(f"`daily@staged-{staged.version.id}`") == [2, 3]
        assert read("daily VERSION AS OF 1") == [1]
        both = "SELECT a.n, b.n FROM `daily@staged` a LEFT JOIN daily b ON a.n = b.n ORDER BY a.n"
        assert session.query(both).to_arrow().column(1).to_pylist() == [2, None]
