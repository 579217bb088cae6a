"""Tables in Hive-style partition folders: types, values and pruning, as Spark reads the same folder."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stagecoach.infra.catalog.catalog import FileCatalog, load_catalog
from stagecoach.infra.config.settings import EngineSettings
from stagecoach.infra.engines.duckdb.engine import parquet_select
from stagecoach.infra.engines.spark.engine import _parquet_frame
from stagecoach.infra.formats.file_pruning import pruned_files
from stagecoach.infra.formats.partitions import canonical_value
from stagecoach.infra.formats.snapshot import Snapshot, take_snapshot
from stagecoach.infra.reading.inputs import ParquetInput, ScanInput
from stagecoach.infra.reading.parquet import read_parquet_batches
from stagecoach.infra.runtime.planning.leaf_inputs import whole_tables
from stagecoach.planner.errors import CatalogError
from stagecoach.planner.options import PlannerOptions
from stagecoach.planner.plan.physical import ScanExec
from stagecoach.planner.planning import plan_query
from stagecoach.planner.types import TIMESTAMP
from tests.infra.runtime.test_stage import Project

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NULL = "k=__HIVE_DEFAULT_PARTITION__"
# What Spark makes of each is asked in test_types_and_values_are_those_of_spark.
FOLDERS = {
    "whole": ["k=1", "k=-2", "k=+3", "k=007"],
    "long": ["k=1", "k=3000000000", NULL],
    "double": ["k=1.5", "k=2", "k=-.5", "k=-0.0"],
    "long_and_double": ["k=3000000000", "k=1.5"],
    "date": ["k=2024-01-31", "k=2024-02-01", NULL],
    "no_day": ["k=2024-02-30", "k=2024-01-01"],
    "short_date": ["k=2024-1-3"],
    "timestamp": ["k=2024-01-31 10%3A00%3A00", "k=2024-07-31"],
    "fraction": ["k=2024-01-31 10%3A00%3A00.5", "k=2024-01-31 10%3A00%3A00"],
    "long_fraction": ["k=2024-01-31 10%3A00%3A00.123456"],
    "date_and_number": ["k=1", "k=2024-01-31"],
    "text": ["k=a b", "k=a%2Fb", "k=1", "k=+1", "k=%C3%A9", "k=é", "k=a=b", "k='", "k=[x]*"],
    "boolean": ["k=true", "k=false"],
    "two": ["year=2024/m%C3%A4=x", "year=2025/m%C3%A4=y"],
}
REFUSED = {
    "other names": (["a=1", "b=1"], "all files must lie in folders of the same columns"),
    "other depth": (["a=1", "a=2/b=1"], "all files must lie in folders of the same columns"),
    "files above": (["", "k=1"], "all files must lie in folders of the same columns"),
    "plain folder": (["k=1", "other"], "folder 'other' beside partition folders"),
    "below": (["k=1/sub"], "folder 'sub' beside partition folders"),
    "no value": (["k="], "is not <column>=<value>"),
    "only NULL": ([NULL], "all values of partition column 'k' are NULL"),
    "decimal": (["k=99999999999999999999"], "of a kind that is not supported"),
    "exponent": (["k=1e3"], "of a kind that is not supported"),
    "time": (["k=10%3A00%3A00"], "of a kind that is not supported"),
    "blank": (["k= 1"], "of a kind that is not supported"),
    "year 0": (["k=0000-01-01"], "of a kind that is not supported"),
    "in the files": (["v=1"], "column 'v' stands in the files and in the names"),
    "twice": (["k=1/K=2"], "stands twice"),
}


def write(folder: Path, folders: list[str]) -> FileCatalog:
    for number, name in enumerate(folders):
        path = folder / "t" / name
        path.mkdir(parents=True, exist_ok=True)
        pq.write_table(
            pa.table({"v": pa.array([number, number + 100])}), path / f"{number}.parquet"
        )
    (folder / "catalog.yaml").write_text("tables:\n  t:\n    location: t\n")
    return load_catalog(folder / "catalog.yaml")


@pytest.mark.parametrize(("folders", "message"), REFUSED.values(), ids=REFUSED)
def test_folders_of_which_the_types_are_unsure_are_refused(
    tmp_path: Path, folders: list[str], message: str
) -> None:
    with pytest.raises(CatalogError, match=f"table 't': .*{message}"):
        write(tmp_path, folders).table("t")


def test_statistics_and_the_snapshot_hold_the_partitions(tmp_path: Path) -> None:
    catalog = write(tmp_path, ["k=3", "k=7", NULL])
    table = catalog.table("t")
    assert table is not None and table.stats is not None
    stats = table.stats.columns["k"]
    assert (stats.min_value, stats.max_value, stats.null_count) == (3, 7, 2)
    snapshot = take_snapshot(catalog, ["t"])
    assert Snapshot.from_json(snapshot.to_json()) == snapshot
    assert {f.partition for f in snapshot.table("t").files} == {("3",), ("7",), (None,)}
    assert [f.name for f in snapshot.table("t").partition_columns] == ["k"]


@pytest.mark.parametrize(
    ("condition", "kept"),
    [
        ("k = 2", {"2"}),
        ("k IN (1, 3) AND v >= 0", {"1", "3"}),
        ("k > 1 AND 3 > k", {"2"}),
        ("k + 1 = 3", {"2"}),
        ("k IS NULL", {None}),
        ("k = 1 OR v = 7", {"1", "2", "3", None}),
        ("v = 1", {"1", "2"}),  # by the bounds of the files
        ("coalesce(k, 1) = 1", {"1", None}),
    ],
)
def test_files_that_a_filter_excludes_are_not_read(
    tmp_path: Path, condition: str, kept: set[str | None]
) -> None:
    catalog = write(tmp_path, ["k=1", "k=2", "k=3", NULL])
    graph = plan_query(f"SELECT v FROM t WHERE {condition}", catalog, PlannerOptions())
    stage = graph.stages[0]
    (leaf,) = stage.leaves
    assert isinstance(leaf, ScanExec)
    table = take_snapshot(catalog, ["t"]).table("t")
    files = pruned_files(stage.fragment, leaf, table, {}, "UTC")
    assert {f.partition[0] for f in files} == kept


def test_timestamps_are_read_in_the_session_zone() -> None:
    found = canonical_value("2024-07-01 00:00:00", TIMESTAMP, "Europe/Berlin")
    assert found == "2024-06-30 22:00:00.000000+00:00"
    assert canonical_value("2024-07-01", TIMESTAMP, "UTC") == "2024-07-01 00:00:00.000000+00:00"


@pytest.mark.spark
def test_types_and_values_are_those_of_spark(tmp_path: Path, spark: SparkSession) -> None:
    """Each folder by every reader that there is, and as Spark reads it by itself."""
    for name, folders in FOLDERS.items():
        folder = tmp_path / name
        folder.mkdir()
        catalog = write(folder, folders)
        frame = spark.read.parquet(str(folder / "t"))
        table = catalog.table("t")
        assert table is not None
        assert [(f.name, str(f.dtype)) for f in table.columns] == frame.dtypes, name
        wanted = sorted((tuple(row) for row in frame.collect()), key=repr)
        graph = plan_query("SELECT * FROM t", catalog, PlannerOptions())
        scan = whole_tables(graph, take_snapshot(catalog, ["t"]))["t"]
        assert isinstance(scan, ScanInput)
        leaf = ParquetInput(scan.columns, scan.files)
        with duckdb.connect() as connection:
            sql = parquet_select(connection.cursor(), leaf)
            found = connection.sql(sql).to_arrow_table()
        assert _rows(found) == wanted, name
        assert _rows(pa.Table.from_batches(read_parquet_batches(leaf))) == wanted, name
        rows = _parquet_frame(spark, leaf, verify_pages=True).collect()
        assert sorted((tuple(row) for row in rows), key=repr) == wanted, name


def _rows(table: pa.Table) -> list[tuple[object, ...]]:
    columns = [table.column(i).to_pylist() for i in range(table.num_columns)]
    return sorted(map(_plain, zip(*columns, strict=True)), key=repr)


def _plain(row: tuple[object, ...]) -> tuple[object, ...]:
    """As `collect` gives rows: timestamps without a zone, in that of the process."""
    return tuple(
        v.astimezone().replace(tzinfo=None) if isinstance(v, datetime.datetime) else v for v in row
    )


@pytest.mark.spark
def test_filters_and_groups_by_partition_columns(
    tmp_path: Path, spark_settings: EngineSettings, spark: SparkSession
) -> None:
    write(tmp_path, ["k=1/d=2024-01-01", "k=1/d=2024-01-02", "k=2/d=2024-01-02"])
    project = Project(tmp_path, spark_settings, spark)
    spark.read.parquet(str(tmp_path / "t")).createOrReplaceTempView("partitioned")
    sql = "SELECT d, k, count(*) AS n, sum(v) AS s FROM {} WHERE k < 2 AND d > DATE '2024-01-01' GROUP BY d, k"
    (wanted,) = spark.sql(sql.format("partitioned")).collect()
    rows, results = project.run(project.plan(sql.format("t")))
    assert [tuple(row.values()) for row in rows.to_pylist()] == [tuple(wanted)]
    # Only the folder that the filter leaves was read.
    assert results[0].engine == "duckdb"
