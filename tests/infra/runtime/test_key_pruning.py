"""Files and row groups without a key of a finished build side are not read; rows are Spark's."""

from __future__ import annotations

import dataclasses
import datetime as dt
import random
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stagecoach.infra.catalog.catalog import load_catalog
from stagecoach.infra.formats.snapshot import take_snapshot
from stagecoach.infra.pruning.key_sets import KeySet, key_domain
from stagecoach.infra.runtime.planning import build_keys, key_pruning
from stagecoach.infra.runtime.planning.row_group_bounds import bounds_of_groups
from stagecoach.infra.shuffle.manifest import Manifest
from stagecoach.infra.storage.object_store import StorageOptions
from stagecoach.planner.options import PlannerOptions
from stagecoach.planner.planning import plan_query
from stagecoach.planner.types import (
    BIGINT,
    DATE,
    DOUBLE,
    INT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    decimal,
)
from tests.infra.spark_runs import make_views, run, run_on_duckdb, run_tasks_here

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from stagecoach.infra.config.settings import EngineSettings

FORCED = PlannerOptions(force_distribution=True, num_partitions=2, inline_bytes=0)
DAY = dt.date(2024, 1, 1)

# ---------------------------------------------------------------- keys and bounds


def keys_of(
    values: list[Any], kind: pa.DataType, domain: Any, *, null_safe: bool = False
) -> KeySet:
    return KeySet.of(pa.chunked_array([pa.array(values, kind)]), domain, null_safe=null_safe)


def test_a_key_within_the_bounds_may_meet() -> None:
    rng = random.Random(5)
    for _ in range(500):
        values = [rng.choice([None, rng.randint(-20, 20)]) for _ in range(rng.randint(0, 6))]
        low = rng.randint(-25, 25)
        high = low + rng.randint(0, 10)
        nulls = rng.choice([None, 0, 3])
        for null_safe in (False, True):
            keys = keys_of(values, pa.int16(), "whole", null_safe=null_safe)
            assert list(keys.values) == sorted({v for v in values if v is not None})
            expected = any(v is not None and low <= v <= high for v in values)
            expected |= null_safe and None in values and nulls != 0
            assert keys.may_meet((nulls, low, high), 10) == expected
        cents = keys_of([v and Decimal(v) / 4 for v in values], pa.decimal128(9, 2), "decimal")
        near = any(v is not None and low <= v / 4 <= high for v in values)
        assert cents.may_meet((nulls, float(low), float(high)), 10) == near


def test_what_is_not_known_may_meet() -> None:
    keys = keys_of([3, 9], pa.int64(), "whole")
    assert keys.may_meet((None, None, None), 5)
    assert not keys.may_meet((5, None, None), 5)
    assert not keys_of([], pa.int64(), "whole").may_meet((None, None, None), 5)
    assert not keys_of([None], pa.int64(), "whole").may_meet((None, None, None), 5)
    texts = keys_of(["b", "ß"], pa.string(), "text")
    assert texts.may_meet((0, "c", None), 5)  # its end was too long to be kept
    assert not texts.may_meet((0, "ßa", None), 5)
    assert not texts.may_meet((0, "c", "d"), 5)
    assert not texts.may_meet((0, "B", "a" + "\U0010ffff"), 5)
    both = keys_of([None, 3], pa.int64(), "whole", null_safe=True)
    assert both.may_meet((5, None, None), 5)
    assert not both.may_meet((0, 4, 7), 5)


def test_many_texts_count_as_their_first_and_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stagecoach.infra.pruning.key_sets.MAX_TEXTS", 2)
    texts = keys_of(["b", "x", "m", None], pa.string(), "text")
    assert not texts.exact
    assert texts.may_meet((0, "n", "o"), 5)
    assert not texts.may_meet((0, "y", "z"), 5)
    assert not texts.may_meet((0, "A", "a"), 5)


def test_types_that_are_compared() -> None:
    assert key_domain(INT, BIGINT) == key_domain(DATE, DATE) == "whole"
    assert key_domain(TIMESTAMP, TIMESTAMP) == "whole"
    assert key_domain(decimal(9, 2), INT) == "decimal"
    assert key_domain(STRING, STRING) == "text"
    for pair in ((DOUBLE, DOUBLE), (DATE, TIMESTAMP), (TIMESTAMP, TIMESTAMP_NTZ), (STRING, INT)):
        assert key_domain(*pair) is None


# ---------------------------------------------------------------- beside Spark

FACT = pa.schema([("k", pa.int32()), ("n", pa.int64()), ("small", pa.int8()), ("at", pa.timestamp("us", "UTC")), ("d", pa.date32()), ("price", pa.decimal128(12, 2)), ("name", pa.string()), ("x", pa.float64()), ("f", pa.float32()), ("v", pa.int64())])  # fmt: skip
KEYS = pa.schema([("id", pa.int64()), ("i", pa.int32()), ("day", pa.date32()), ("zone", pa.string()), ("at", pa.timestamp("us", "UTC")), ("price", pa.decimal128(20, 4)), ("name", pa.string()), ("x", pa.float64())])  # fmt: skip


def fact_row(number: int, i: int) -> dict[str, Any]:
    """Row i of file `number`: columns grow with it; some values are NULL, NaN or -0.0."""
    value = number * 10 + i
    at = dt.datetime(2024, 1, 1, tzinfo=dt.UTC) + dt.timedelta(hours=value)
    x = {0: -0.0, 13: float("nan"), 57: float("nan")}.get(value, float(value))
    return {"k": None if i == 3 else value, "n": value * 10**12, "small": value, "at": at, "d": at.date(), "price": Decimal(value) / 4, "name": "abcdefgh"[number] + "ß" * i, "x": x, "f": x, "v": value}  # fmt: skip


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pruning")
    for number in range(8):
        day = "__HIVE_DEFAULT_PARTITION__" if number == 7 else str(DAY + dt.timedelta(number))
        place = folder / "fact" / f"day={day}" / f"p={number % 3}" / f"zone=z{number}"
        place.mkdir(parents=True)
        table = pa.Table.from_pylist([fact_row(number, i) for i in range(10)], schema=FACT)
        pq.write_table(table, place / "a.parquet", row_group_size=2)
    rows = [
        {"id": 25, "i": 1, "day": DAY + dt.timedelta(2), "zone": "z2", "at": dt.datetime(2024, 1, 2, 3, tzinfo=dt.UTC), "price": Decimal("6.2500"), "name": "cßß", "x": 0.0},
        {"id": 25, "i": 1, "day": DAY + dt.timedelta(2), "zone": "z2", "at": dt.datetime(2024, 1, 2, 3, tzinfo=dt.UTC), "price": Decimal("6.2500"), "name": "cßß", "x": float("nan")},
        {"id": 61, "i": None, "day": DAY + dt.timedelta(6), "zone": "Z", "at": dt.datetime(2024, 1, 3, tzinfo=dt.UTC), "price": Decimal("-1.0001"), "name": "", "x": 57.0},
        {},
    ]  # fmt: skip
    (folder / "keys").mkdir()
    pq.write_table(pa.Table.from_pylist(rows, schema=KEYS), folder / "keys" / "a.parquet")
    (folder / "none").mkdir()
    pq.write_table(pa.Table.from_pylist([], schema=KEYS), folder / "none" / "a.parquet")
    names = ("fact", "keys", "none")
    entries = "".join(f"  {name}:\n    location: {name}\n" for name in names)
    (folder / "catalog.yaml").write_text(f"tables:\n{entries}")
    return folder


# Files and row groups of `fact` that are read, of 8 and 40.
CASES = {
    "SELECT f.v, q.id FROM fact f JOIN keys q ON f.day = q.day": (2, 10),
    "SELECT f.v FROM fact f LEFT SEMI JOIN keys q ON f.day = q.day AND f.v % 2 = 0": (2, 10),
    "SELECT f.v, q.id FROM fact f JOIN keys q ON f.day <=> q.day": (3, 15),
    "SELECT f.v, q.i FROM fact f JOIN keys q ON f.p = q.i": (3, 15),
    "SELECT f.v FROM fact f JOIN keys q ON f.zone = q.zone": (1, 5),
    "SELECT f.v FROM fact f JOIN keys q ON f.k = q.id": (2, 2),
    "SELECT f.v FROM fact f JOIN keys q ON f.small = q.id": (2, 2),
    "SELECT f.v FROM fact f JOIN keys q ON f.k <=> q.id": (8, 10),
    "SELECT f.v FROM fact f JOIN keys q ON f.at = q.at": (2, 2),
    "SELECT f.v FROM fact f JOIN keys q ON f.price = q.price": (1, 1),
    "SELECT f.v FROM fact f JOIN keys q ON f.small = q.price": (1, 1),
    "SELECT f.v FROM fact f JOIN keys q ON f.name = q.name": (1, 1),
    "SELECT f.v, q.x FROM fact f JOIN keys q ON f.x = q.x": (8, 40),
    "SELECT f.v, q.x FROM fact f JOIN keys q ON f.f = q.x": (8, 40),
    "SELECT f.v FROM fact f JOIN keys q ON f.day = q.day AND f.k = q.id": (2, 2),
    "SELECT f.v FROM fact f JOIN none q ON f.day = q.day": (0, 0),
    "SELECT CAST(f.day AS STRING) AS day, f.p, sum(f.v) AS s, count(*) AS n FROM fact f JOIN keys q ON f.day = q.day GROUP BY f.day, f.p": (2, 10),
    "SELECT x.n, q.id FROM (SELECT k AS c, count(*) AS n FROM fact GROUP BY k) x JOIN keys q ON x.c = q.id": (8, 40),
    "SELECT f.v, q.id FROM fact f LEFT JOIN keys q ON f.day = q.day": (8, 40),
    "SELECT f.v FROM fact f LEFT ANTI JOIN keys q ON f.day = q.day": (8, 40),
}  # fmt: skip


def fact_reads(manifests: list[Manifest]) -> tuple[int, int]:
    """Files and row groups (of two rows) of `fact` that were read."""
    scans = [s for m in manifests for s in m.metrics["inputs"]["scans"] if s["table"] == "fact"]
    (scan,) = scans
    return scan["files"], scan["rows"] // 2


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("sample_rows", [build_keys.SAMPLE_ROWS, 1])
def test_only_what_may_have_a_key_is_read(
    sample_rows: int,
    tables: Path,
    spark_settings: EngineSettings,
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(key_pruning, "_GROUPS_BYTES", 0)
    monkeypatch.setattr(build_keys, "SAMPLE_ROWS", sample_rows)
    run_tasks_here(monkeypatch)
    catalog = load_catalog(tables / "catalog.yaml")
    settings = dataclasses.replace(spark_settings, storage_root=str(tmp_path), min_task_bytes=0)
    make_views(spark, tables, "fact", "keys", "none")
    read = {}
    for sql in CASES:
        graph = plan(sql, catalog)
        manifests = run_on_duckdb(sql, graph, catalog, settings, spark)
        read[sql] = fact_reads(manifests)
        told = [d for m in manifests for d in m.metrics.get("adaptive", ()) if d["kind"] == "prune"]
        assert bool(told) == (read[sql] != (8, 40)), sql
        if sql == next(iter(CASES)):
            assert "2 of 8 files of fact" in told[0]["text"]
            assert "one of the 2 keys of stage 0 in day" in told[0]["text"]
    assert {sql: found for sql, found in read.items() if found != CASES[sql]} == {}


def plan(sql: str, catalog: Any, **options: Any) -> Any:
    return plan_query(sql, catalog, dataclasses.replace(FORCED, **options), name="q")


@pytest.mark.slow
@pytest.mark.spark
def test_spark_stages_are_pruned_by_files_and_off_is_off(
    tables: Path,
    spark_settings: EngineSettings,
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(key_pruning, "_GROUPS_BYTES", 0)
    catalog = load_catalog(tables / "catalog.yaml")
    sql = "SELECT f.v FROM fact f JOIN keys q ON f.k = q.id"
    outcomes = []
    for number, (engine, adaptive, read) in enumerate(
        [("spark", True, (2, 10)), ("duckdb", False, (8, 40)), ("duckdb", True, (2, 2))]
    ):
        settings = dataclasses.replace(
            spark_settings, storage_root=str(tmp_path / str(number)), adaptive=adaptive
        )
        graph = plan(sql, catalog, engine=engine)
        found, manifests = run(graph, catalog, settings, spark)
        assert fact_reads(manifests) == read
        outcomes.append((found, [m.fingerprint for m in manifests]))
    assert outcomes[0][0] == outcomes[1][0] != []
    assert outcomes[1] == outcomes[2]  # what is read does not change where the output goes


def test_keys_are_read_within_a_bound_whatever_the_scan() -> None:
    mb = 1 << 20
    found = {size: key_pruning.most_key_bytes(size * mb) for size in (0, 80, 1 << 30)}
    assert found == {0: mb, 80: 10 * mb, 1 << 30: 64 * mb}


def test_row_groups_of_a_file_that_is_gone_are_not_known(tables: Path) -> None:
    table = take_snapshot(load_catalog(tables / "catalog.yaml"), ["fact"]).table("fact")
    first = table.files[0]
    options = StorageOptions()
    known = bounds_of_groups([first], ("v", "name"), options)[first.uri]
    assert known is not None
    assert known[1] == ((0, 2, 3), (0, "aßß", "aßßß"))
    gone = dataclasses.replace(first, uri=first.uri + ".gone")
    assert bounds_of_groups([gone], ("v",), options) == {gone.uri: None}
    other = dataclasses.replace(first, footer_checksum="other")
    assert bounds_of_groups([other], ("v",), options) == {other.uri: None}
    assert bounds_of_groups([], ("v",), options) == {}


@pytest.mark.slow
@pytest.mark.spark
def test_files_that_store_a_key_otherwise_are_pruned_by_its_bounds_in_the_table(
    spark_settings: EngineSettings,
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Files 0 and 2 have narrower types, file 3 has no `at`, file 4 no `k`."""
    monkeypatch.setattr(key_pruning, "_GROUPS_BYTES", 0)
    run_tasks_here(monkeypatch)
    for name in ("fact", "keys"):
        (tmp_path / name).mkdir()
    for number in range(5):
        values = range(number * 10, number * 10 + 10)
        days = [DAY + dt.timedelta(value) for value in values]
        narrow = number % 2 == 0
        columns = {
            "k": pa.array(values, pa.int16() if narrow else pa.int64()),
            "at": pa.array(days, pa.date32()).cast(pa.date32() if narrow else pa.timestamp("us")),
            "v": pa.array(values, pa.int64()),
        }
        columns.pop({3: "at", 4: "k"}.get(number, ""), None)
        pq.write_table(pa.table(columns), tmp_path / "fact" / f"{number}.parquet", row_group_size=2)
    noon = dt.datetime(DAY.year, DAY.month, DAY.day) + dt.timedelta(23)
    keys = pa.table({"id": [5, 33], "at": pa.array([noon, noon], pa.timestamp("us"))})
    pq.write_table(keys, tmp_path / "keys" / "a.parquet")
    (tmp_path / "catalog.yaml").write_text(
        "tables:\n"
        "  fact: {location: fact, columns: {k: bigint, at: timestamp_ntz, v: bigint}}\n"
        "  keys: {location: keys}\n"
    )
    catalog = load_catalog(tmp_path / "catalog.yaml")
    settings = dataclasses.replace(
        spark_settings, storage_root=str(tmp_path / "store"), min_task_bytes=0
    )
    make_views(spark, tmp_path, "keys")
    schema = "k bigint, at timestamp_ntz, v bigint"
    spark.read.schema(schema).parquet(str(tmp_path / "fact")).createOrReplaceTempView("fact")
    cases = {
        # All row groups of a file with another type, one of a file with the table's.
        "SELECT f.v, CAST(f.at AS STRING) AS at FROM fact f JOIN keys q ON f.k = q.id": (2, 6),
        "SELECT f.v, f.k FROM fact f JOIN keys q ON f.at = q.at": (1, 5),
    }
    found = {}
    for sql in cases:
        manifests = run_on_duckdb(sql, plan(sql, catalog), catalog, settings, spark)
        found[sql] = fact_reads(manifests)
    assert found == cases
