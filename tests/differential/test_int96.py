"""INT96 timestamps: both engines read the same instants, from Spark's files and from pyarrow's."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stagecoach.infra.engines.duckdb.engine import DuckDbEngine
from stagecoach.infra.engines.protocol import Fragment, Resources
from stagecoach.infra.reading.data_file import DataFile
from stagecoach.infra.reading.inputs import LeafColumn, ParquetInput
from stagecoach.infra.reading.parquet import read_parquet_batches
from stagecoach.planner.types import TIMESTAMP, to_arrow
from tests.differential.inprocess import collect
from tests.differential.moments import write_moments

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_int96_is_the_same_instant_to_all_readers(
    oracle: SparkSession, tmp_path: Path, zone: str
) -> None:
    (source,) = write_moments(tmp_path).files["e"]
    session = oracle.newSession()
    session.conf.set("spark.sql.session.timeZone", zone)
    session.conf.set("spark.sql.parquet.outputTimestampType", "INT96")
    folder = tmp_path / "spark"
    session.read.parquet(source).select("ts").coalesce(1).write.parquet(str(folder))
    (written,) = folder.glob("*.parquet")
    by_arrow = tmp_path / "e" / "arrow.parquet"
    pq.write_table(pq.read_table(source, columns=["ts"]), by_arrow, use_deprecated_int96_timestamps=True)  # fmt: skip
    for path in (written, by_arrow):
        assert pq.read_metadata(path).schema.column(0).physical_type == "INT96"
        expected = collect(session.read.parquet(str(path)))["c0"].cast(pa.int64()).to_pylist()
        count = len(expected)
        leaf = ParquetInput((LeafColumn("c0", "ts", TIMESTAMP),), (DataFile(str(path), count),))  # fmt: skip
        settings = Resources(time_zone=zone, memory_bytes=1 << 28, spill_dir=str(tmp_path / "spill"), directories=(str(path.parent),))  # fmt: skip
        schema = pa.schema([("c0", to_arrow(TIMESTAMP))])
        with DuckDbEngine().run(
            Fragment.of("SELECT c0 FROM in_0", [leaf], schema), settings
        ) as batches:
            native = pa.Table.from_batches(batches, schema)["c0"].cast(pa.int64()).to_pylist()
        assert native == expected
        remote = pa.Table.from_batches(read_parquet_batches(leaf), schema)
        assert remote["c0"].cast(pa.int64()).to_pylist() == expected
    original = pq.read_table(source)["ts"].cast(pa.int64()).to_pylist()
    assert native == original
