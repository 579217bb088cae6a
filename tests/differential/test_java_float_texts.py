"""Doubles and floats as strings, and doubles as decimals, equal Spark's on many numbers of each."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stagecoach.infra.engines.duckdb.engine import DuckDbEngine
from stagecoach.infra.engines.protocol import Fragment, Resources
from stagecoach.infra.reading.inputs import ArrowInput, LeafColumn
from stagecoach.infra.spark.float_digits import float_variables
from stagecoach.planner.functions.casts import cast_template
from stagecoach.planner.text.type_names import duckdb_type
from stagecoach.planner.types import DOUBLE, DataType, parse_type, to_arrow
from tests.differential.inprocess import collect
from tests.share import EVERYTHING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

COUNT = 200_000 if EVERYTHING else 50_000
FLOAT = parse_type("float")
Numbers = npt.NDArray[np.float64]


def _borders() -> Numbers:
    """Powers of 2 and 10, and where the form changes."""
    twos = [2.0**n for n in range(-1074, 1024)]
    tens = [float(f"{digit}e{n}") for n in range(-324, 309) for digit in (1, 2, 5, 9)]
    odd = [0.0, -0.0, np.inf, np.nan, 2e-3, 1e23, 2e23, 8.41e21, 9.5e-3, 9999999.5, 2.0**53 + 2]
    return np.array([*twos, *tens, *odd])


def _doubles(random: np.random.Generator) -> Numbers:
    """Doubles of all sizes; subnormals, large whole numbers and neighbours of the borders."""
    part = COUNT // 8
    borders = _borders()
    finite = borders[np.isfinite(borders)]
    beside = random.choice(finite, part).view(np.int64) + random.integers(-3, 4, part)
    values = [
        random.integers(0, 2**64, 4 * part, dtype=np.uint64).view(np.float64),
        beside.view(np.float64),
        random.integers(1, 2**52, part // 2, dtype=np.int64).view(np.float64),
        random.integers(2**52, 2**63, part).astype(np.float64),
        random.integers(1, 1000, part // 2) * 10.0 ** random.integers(-30, 30, part // 2),
        10.0 ** random.uniform(18, 24, part),
        borders,
        -borders,
    ]
    return np.concatenate(values)


def _floats(random: np.random.Generator) -> npt.NDArray[np.float32]:
    part = COUNT // 8
    with np.errstate(all="ignore"):
        borders = _borders().astype(np.float32)
    beside = random.choice(borders, part).view(np.int32) + random.integers(-3, 4, part, np.int32)
    values = [
        random.integers(0, 2**32, 6 * part, dtype=np.uint32).view(np.float32),
        beside.view(np.float32),
        random.integers(2**20, 2**63, part).astype(np.float32),
        random.integers(1, 2**23, part, dtype=np.int32).view(np.float32),
        borders,
        -borders,
    ]
    return np.concatenate(values)


def _ours(
    numbers: pa.Array,
    source: DataType,
    target: DataType,
    folder: Path,
    variables: Mapping[str, int],
) -> pa.ChunkedArray:
    text = cast_template(source, target, safe=True).format("c0", type=duckdb_type(target))
    table = pa.table({"c0": numbers})
    leaf = ArrowInput((LeafColumn("c0", "", source),), lambda: iter(table.to_batches()))
    schema = pa.schema([("c0", to_arrow(target))])
    settings = Resources(time_zone="UTC", memory_bytes=1 << 30, spill_dir=str(folder / "spill"))
    fragment = Fragment.of(f"SELECT {text} AS c0 FROM in_0", [leaf], schema, variables)
    with DuckDbEngine().run(fragment, settings) as batches:
        return pa.Table.from_batches(batches, schema=schema)["c0"]


@pytest.mark.parametrize(
    ("source", "targets"),
    [(DOUBLE, ["string", "decimal(38,0)", "decimal(38,20)", "decimal(20,4)"]), (FLOAT, ["string"])],
)
def test_casts_of_floats_equal_sparks(
    spark: SparkSession, tmp_path: Path, source: DataType, targets: list[str]
) -> None:
    random = np.random.default_rng(18)
    numbers = pa.array(_doubles(random) if source == DOUBLE else _floats(random))
    assert len(numbers) >= COUNT
    path = str(tmp_path / "numbers.parquet")
    pq.write_table(pa.table({"id": np.arange(len(numbers)), "x": numbers}), path)
    spark.read.parquet(path).createOrReplaceTempView("numbers")
    for name in targets:
        target = parse_type(name)
        sql = f"SELECT id, x, TRY_CAST(x AS {name}) FROM numbers ORDER BY id"
        rows, variables = collect(spark.sql(sql)), float_variables(spark)
        found = _ours(rows["c1"].combine_chunks(), source, target, tmp_path, variables)
        pairs = zip(rows["c1"].to_pylist(), rows["c2"].to_pylist(), found.to_pylist(), strict=True)
        wrong = [(x, theirs, ours) for x, theirs, ours in pairs if theirs != ours]
        assert not wrong, f"{len(wrong)} of {name}: {wrong[:10]}"
