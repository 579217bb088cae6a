"""DuckDB's `java_…` functions give what Spark gives, bit for bit, on 100,000 pairs of doubles."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stagecoach.infra.engines.duckdb.engine import _database
from stagecoach.infra.engines.protocol import Resources
from stagecoach.planner.functions.spell_numbers import APPROXIMATE, FORMULAS
from tests.differential.inprocess import collect

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

EXACT = {name: text for name, text in FORMULAS.items() if name not in APPROXIMATE}
TWO = {"atan2", "hypot", "log", "power"}
# Where fdlibm branches, and where numbers begin and end.
BORDERS = (
    0.0, 5e-324, 2.2250738585072014e-308, 1e-300, 2.0**-60, 2.0**-54, 2.0**-29, 2.0**-28, 2.0**-27,
    0.1, 0.2929, 1 / 3, 0.34657359, 0.41422, 0.4375, 0.5, 0.6875, 0.70710678, 0.975, 1 - 2.0**-53,
    1 - 2.0**-21, 1.0, 1 + 2.0**-52, 1 + 2.0**-20, 1.03972077, 1.1875, 1.22474487, 1.41421356, 1.5,
    1.73205081, 2.0, 2.4375, 2.718281828459045, 3.0, 3.141592653589793, 10.0, 22.0, 38.816242,
    709.782712893384, 710.4758600739439, 745.1332191019411, 1000.0, 1023.0, 1024.0, 1074.0, 1075.0,
    2.0**28, 2.0**31, 2.0**32 + 1, 2.0**53 - 1, 2.0**53, 2.0**64, 2.0**66, 1e22, 1e23, 2.0**500,
    2.0**-500, 1.7976931348623157e308, float("inf"), float("nan"),
)  # fmt: skip
Doubles = npt.NDArray[np.float64]


def _values(random: np.random.Generator, count: int) -> Doubles:
    """Doubles of all sizes, most of them where the functions are not constant."""
    part = count // 8
    borders = np.array(BORDERS[:-2])
    beside = random.choice(borders, part).view(np.int64) + random.integers(0, 2000, part)
    values = [
        random.integers(0, 2**64, 2 * part, dtype=np.uint64).view(np.float64),
        random.uniform(-1, 1, part),
        random.normal(0, 30, part),
        random.uniform(-750, 750, part),
        np.copysign(beside.view(np.float64), random.choice([-1.0, 1.0], part)),
        np.exp(random.uniform(-40, 40, part)),
        random.integers(-1000, 1000, part).astype(np.float64),
    ]
    return random.permutation(np.concatenate(values))


def _pairs() -> pa.Table:
    random = np.random.default_rng(4)
    x, y = _values(random, 100_000), _values(random, 100_000)
    # Powers that are neither 0 nor infinite, and sides of like length.
    x[:12_500] = np.abs(x[:12_500])
    y[:12_500] = random.uniform(-5, 5, 12_500)
    y[12_500:25_000] = 0.75 * np.exp(random.uniform(-40, 40, 12_500))
    x[12_500:25_000] = y[12_500:25_000] * random.uniform(-3, 3, 12_500)
    signed = np.array([*BORDERS, *(-b for b in BORDERS)])
    grid = np.array(np.meshgrid(signed, signed)).reshape(2, -1)
    x, y = np.append(x, grid[0]), np.append(y, grid[1])
    mask = random.random(len(y)) < 0.01
    return pa.table({"id": np.arange(len(x)), "x": x, "y": pa.array(y, mask=mask)})


def test_functions_of_doubles_equal_sparks(spark: SparkSession, tmp_path: Path) -> None:
    pairs = _pairs()
    path = str(tmp_path / "pairs.parquet")
    pq.write_table(pairs, path)
    names = sorted(EXACT)
    calls = ", ".join(f"{n}({'x, y' if n in TWO else 'y'})" for n in names)
    spark.read.parquet(path).createOrReplaceTempView("pairs")
    expected = collect(spark.sql(f"SELECT id, {calls} FROM pairs")).sort_by("c0")
    database = _database(
        Resources(
            time_zone="UTC",
            memory_bytes=1 << 30,
            spill_dir=str(tmp_path / "spill"),
            directories=(str(tmp_path),),
        ),
        0,
    )
    texts = ", ".join(EXACT[n].format(*(("x", "y") if n in TWO else ("y",))) for n in names)
    found = (
        database.cursor(texts).sql(f"SELECT id, {texts} FROM '{path}' ORDER BY id").to_arrow_table()
    )
    wrong = {n: _different(expected[i], found[i]) for i, n in enumerate(names, 1)}
    assert {n: rows for n, rows in wrong.items() if rows} == {}


def _different(left: pa.ChunkedArray, right: pa.ChunkedArray) -> list[int]:
    """Rows whose values are not the same bits; all NaN are one value."""
    nulls = left.is_null().to_numpy() != right.is_null().to_numpy()
    a, b = left.to_numpy(), right.to_numpy()
    bits = a.view(np.int64) != b.view(np.int64)
    return np.flatnonzero(nulls | (bits & ~(np.isnan(a) & np.isnan(b))))[:5].tolist()
