"""Decimal arithmetic equals Spark's on all pairs of types: ties, bounds, overflows, zeros, NULL."""

from __future__ import annotations

import itertools
import random
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stagecoach.planner import plan_query
from tests.decimal_values import exact, unscaled_values
from tests.differential.edge_tables import EdgeTables
from tests.differential.inprocess import InProcessRunner
from tests.differential.query_check import ALL_OPTIONS, SINGLE, ask_spark, differences
from tests.share import share

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

TYPES = [(1, 0), (1, 1), (5, 2), (9, 0), (12, 2), (18, 4), (18, 18), (19, 9), (20, 0), (30, 2), (38, 0), (38, 2), (38, 6), (38, 18), (38, 30), (38, 38)]  # fmt: skip
ROWS = 240
# Operations that give NULL for what does not fit, so that one row does not hide the others.
OPERATIONS = ("try_add", "try_subtract", "try_multiply", "try_divide", "try_mod")


def _values(chosen: random.Random, precision: int, scale: int) -> list[Decimal | None]:
    values = [exact(v, scale) for v in unscaled_values(chosen, precision, ROWS)]
    return [None if n % 41 == 7 else v for n, v in enumerate(values)]


def _name(precision: int, scale: int) -> str:
    return f"d{precision}_{scale}"


def _below(name: str, digits: int) -> str:
    """A condition that a number has so few digits before the point, for which no cast overflows."""
    return f"abs(CAST({name} AS DOUBLE)) < 0.9e{digits}D"


@pytest.fixture(scope="module")
def decimals(oracle: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> EdgeTables:
    """A table `dec` with a column of each type, and a group."""
    chosen = random.Random(11)
    columns = {_name(*t): pa.array(_values(chosen, *t), pa.decimal128(*t)) for t in TYPES}
    columns["id"] = pa.array(range(ROWS), pa.int32())
    columns["g"] = pa.array([n % 7 for n in range(ROWS)], pa.int32())
    table = pa.table(columns)
    folder = tmp_path_factory.mktemp("decimals")
    path = Path(folder / "dec" / "part-0.parquet")
    path.parent.mkdir()
    pq.write_table(table, path, store_schema=False)
    oracle.read.parquet(str(path)).createOrReplaceTempView("dec")
    return EdgeTables(folder, {"dec": (str(path),)}, {"dec": table.schema})


@pytest.fixture(scope="module")
def decimal_runner(oracle: SparkSession, decimals: EdgeTables) -> InProcessRunner:
    """Runs stage graphs over the table."""
    return InProcessRunner(decimals, oracle)


def _native(items: list[str], tables: EdgeTables) -> list[str]:
    """Those whose stage is not refused; every refusal has the reason that is expected."""
    kept = []
    for item in share(items, 8):
        graph = plan_query(f"SELECT id, {item} AS v FROM dec", tables.catalog, SINGLE)
        if graph.head.engine == "duckdb":
            kept.append(item)
        else:
            assert "needs too many digits" in graph.head.engine_reason, item
    return kept


def _check(
    items: list[str], oracle: SparkSession, tables: EdgeTables, runner: InProcessRunner
) -> None:
    wrong = []
    for start in range(0, len(items), 40):
        part = items[start : start + 40]
        listed = ", ".join(f"{item} AS v{n}" for n, item in enumerate(part))
        sql = f"SELECT id, {listed} FROM dec"
        expected = ask_spark(oracle, sql)
        assert expected.rows is not None, expected.error
        wrong += differences(sql, tables.catalog, runner, expected, SINGLE)
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("operation", OPERATIONS)
def test_operations_equal_spark_on_all_pairs_of_types(
    oracle: SparkSession, decimals: EdgeTables, decimal_runner: InProcessRunner, operation: str
) -> None:
    names = [_name(*t) for t in TYPES]
    items = [f"{operation}({a}, {b})" for a, b in itertools.product(names, names)]
    if operation == "try_mod":
        # A quotient of 40 digits is an error even here; Spark then answers for the stage.
        items = [f"IF({_below(f'try_divide({a}, {b})', 9)}, {operation}({a}, {b}), NULL)" for a, b in itertools.product(names, names)]  # fmt: skip
    native = _native(items, decimals)
    assert len(native) >= len(share(items, 8)) * 0.9
    _check(native, oracle, decimals, decimal_runner)


def test_operations_that_may_raise_equal_spark(
    oracle: SparkSession, decimals: EdgeTables, decimal_runner: InProcessRunner
) -> None:
    items = []
    for (left, one), (right, two) in itertools.product([(t, _name(*t)) for t in TYPES], repeat=2):
        # Smaller than what the result types have room for.
        digits = min(left[0] - left[1], right[0] - right[1], 17)
        small = f"{_below(one, digits)} AND {_below(two, digits)} AND {two} <> 0"
        small += f" AND {_below(f'try_divide({one}, {two})', 17)}"
        items += [f"IF({small}, {one} div {two}, NULL)", f"IF({small}, {one} % {two}, NULL)"]
        items += [f"IF({small} AND {two} > 0, pmod({one}, {two}), NULL)"]
    native = _native(items, decimals)
    assert len(native) >= len(share(items, 8)) * 0.9
    _check(native, oracle, decimals, decimal_runner)


def test_casts_and_roundings_equal_spark(
    oracle: SparkSession, decimals: EdgeTables, decimal_runner: InProcessRunner
) -> None:
    items = [f"TRY_CAST({_name(*t)} AS DECIMAL({p},{s}))" for t in TYPES for p, s in TYPES]
    for t in TYPES:
        name = f"IF({_below(_name(*t), t[0] - t[1] - 1)}, {_name(*t)}, NULL)"
        for digits in (0, 1, 3, 7, 17):
            items += [f"{f}({name}, {digits})" for f in ("round", "bround", "ceil", "floor")]
        items += [f"ceil({name})", f"floor({name})"]
    _check(_native(items, decimals), oracle, decimals, decimal_runner)


def test_common_types_equal_spark(
    oracle: SparkSession, decimals: EdgeTables, decimal_runner: InProcessRunner
) -> None:
    items = []
    for (left, one), (right, two) in itertools.combinations([(t, _name(*t)) for t in TYPES], 2):
        # The common type keeps the digits before the point; rounding may carry into one more.
        digits = min(max(left[0] - left[1], right[0] - right[1]), 37)
        first, second = (f"IF({_below(x, digits)}, {x}, NULL)" for x in (one, two))
        items += [f"coalesce({first}, {second})", f"{first} < {second}", f"{first} = {second}"]
        items += [f"greatest({first}, {second})", f"nullif({first}, {second})"]
    items += [f"{_name(*t)} <> 0" for t in TYPES] + [f"CAST({_name(*t)} AS DOUBLE)" for t in TYPES]
    _check(_native(items, decimals), oracle, decimals, decimal_runner)


@pytest.mark.parametrize("options", list(ALL_OPTIONS))
def test_sums_and_averages_equal_spark(
    oracle: SparkSession, decimals: EdgeTables, decimal_runner: InProcessRunner, options: str
) -> None:
    items, checked = [], []
    for precision, scale in TYPES:
        name = _name(precision, scale)
        # A thousandth of the type's room, so that no sum overflows.
        value = f"IF({_below(name, precision - scale - 3)}, {name}, NULL)"
        items.append(f"{value} AS {name}")
        checked += [f"sum({name}) AS s_{name}", f"avg({name}) AS a_{name}"]
        checked += [f"sum({name}) * 0.0001000000 AS p_{name}"] if scale < 30 else []
        checked += [f"try_sum({name}) AS t_{name}"] if precision <= 28 else []
    for keys in ("", "g, "):
        group = "GROUP BY g" if keys else ""
        sql = f"SELECT {keys}{', '.join(checked)} FROM (SELECT g, {', '.join(items)} FROM dec) {group}"  # fmt: skip
        expected = ask_spark(oracle, sql)
        assert expected.rows is not None, expected.error
        assert not differences(sql, decimals.catalog, decimal_runner, expected, ALL_OPTIONS[options])  # fmt: skip


def test_a_sum_that_overflows_is_an_error(
    oracle: SparkSession, decimals: EdgeTables, decimal_runner: InProcessRunner
) -> None:
    for sql in (
        "SELECT sum(d38_18) AS a FROM dec WHERE d38_18 > 0",
        "SELECT d38_18 * d38_18 AS a FROM dec",
        "SELECT avg(d38_38) / min(d38_38) AS a FROM dec WHERE id < 0",
    ):
        expected = ask_spark(oracle, sql)
        assert (expected.rows is None) == ("id < 0" not in sql)
        assert not differences(sql, decimals.catalog, decimal_runner, expected, SINGLE)
