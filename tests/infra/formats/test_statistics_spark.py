"""The types that footers give, against the types that Spark itself reads from the same files."""

from __future__ import annotations

import datetime as dt
import decimal
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException

from stagecoach.infra.formats.parquet_footers import read_footers, table_info
from stagecoach.infra.storage.table_files import list_files
from stagecoach.planner.errors import CatalogError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.slow, pytest.mark.spark]

ARRAYS = {
    "boolean": pa.array([True]),
    **{f"int{bits}": pa.array([1], getattr(pa, f"int{bits}")()) for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": pa.array([1], getattr(pa, f"uint{bits}")()) for bits in (8, 16, 32, 64)},
    "half": pa.array([1], pa.float16()),
    "float": pa.array([1], pa.float32()),
    "double": pa.array([1], pa.float64()),
    "string": pa.array(["a"]),
    "dictionary": pa.array(["a"]).dictionary_encode(),
    "binary": pa.array([b"a"]),
    "fixed": pa.array([b"ab"], pa.binary(2)),
    "date": pa.array([1], pa.date32()),
    "date64": pa.array([0], pa.date64()),
    "us": pa.array([1], pa.timestamp("us")),
    "ms": pa.array([1], pa.timestamp("ms", tz="UTC")),
    "ns": pa.array([1], pa.timestamp("ns")),
    "time32": pa.array([1], pa.time32("ms")),
    "time64": pa.array([1], pa.time64("us")),
    "duration": pa.array([1], pa.duration("us")),
    "null": pa.array([None], pa.null()),
    "decimal": pa.array([decimal.Decimal("1.25")], pa.decimal128(12, 2)),
    "decimal256": pa.array([decimal.Decimal(1)], pa.decimal256(50, 2)),
    "uuid": pa.array([b"0" * 16], pa.uuid()),
    "json": pa.array(["{}"], pa.json_()),
    "list": pa.array([[1]], pa.list_(pa.int32())),
    "map": pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int64())),
    "struct": pa.array([{"a": 1, "b": [{"c": "x"}]}]),
    "deep_ns": pa.array([{"at": 1}], pa.struct([("at", pa.timestamp("ns"))])),
}


def catalog_type(path: Path) -> str:
    columns = table_info("t", read_footers(list_files(str(path)))).columns
    return ",".join(f"{field.name}:{field.dtype}" for field in columns)


def spark_type(spark: SparkSession, path: Path) -> str:
    return spark.read.parquet(str(path)).schema.simpleString()[len("struct<") : -1]


@pytest.mark.parametrize("name", ARRAYS)
def test_types_of_pyarrow_s_files(spark: SparkSession, tmp_path: Path, name: str):
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"x": ARRAYS[name]}), path)
    try:
        expected = spark_type(spark, path)
    except PySparkException:
        with pytest.raises(CatalogError, match="column 'x'"):
            catalog_type(path)
        return
    assert catalog_type(path) == expected


def test_int96_of_pyarrow(spark: SparkSession, tmp_path: Path):
    path = tmp_path / "x.parquet"
    table = pa.table({"x": [dt.datetime(2020, 1, 1)]})
    pq.write_table(table, path, use_deprecated_int96_timestamps=True)
    assert catalog_type(path) == spark_type(spark, path) == "x:timestamp"


def test_types_of_spark_s_files(spark: SparkSession, tmp_path: Path):
    path = tmp_path / "t"
    spark.sql(
        "select 1 i, 2L l, 1.5 d, 'a' s, date'2020-01-01' day, timestamp'2020-01-01 00:00:00' at, "
        "timestamp_ntz'2020-01-01 00:00:00' ntz, array(named_struct('a b', 1)) st, map('k', 1) m"
    ).write.parquet(str(path))
    assert catalog_type(path) == spark_type(spark, path)


def test_intervals_of_spark_s_files_have_sparks_types(spark: SparkSession, tmp_path: Path):
    path = tmp_path / "t"
    spark.sql("select interval '1' day iv, parse_json('1') v").write.parquet(str(path))
    assert catalog_type(path) == spark_type(spark, path)
