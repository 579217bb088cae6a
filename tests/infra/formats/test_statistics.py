"""Footers → types, statistics and errors, with files that pyarrow writes."""

from __future__ import annotations

import datetime as dt
import decimal
import json
import math
import os
import random
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stagecoach.infra.formats import parquet_footers as statistics
from stagecoach.infra.formats.parquet_footers import FooterCache, read_footers, table_info
from stagecoach.infra.reading.column_summary import (
    ColumnSummary,
    column_stats,
    merge_summaries,
)
from stagecoach.infra.reading.footers import FileFooter, read_footer
from stagecoach.infra.storage.table_files import FileEntry, list_files
from stagecoach.planner.catalog import ColumnStats, TableInfo
from stagecoach.planner.errors import CatalogError
from stagecoach.planner.types import BIGINT, INT, STRING

SPARK_SCHEMA = b"org.apache.spark.sql.parquet.row.metadata"


def table_at(path: Path) -> TableInfo:
    return table_info("t", read_footers(list_files(str(path))))


def written(tmp_path: Path, *tables: pa.Table, **options: object) -> TableInfo:
    folder = tmp_path / "t"
    folder.mkdir(exist_ok=True)
    for number, table in enumerate(tables):
        pq.write_table(table, folder / f"{number}.parquet", **options)
    return table_at(folder)


def stats_of(tmp_path: Path, *arrays: pa.Array, **options: object) -> ColumnStats:
    tables = [pa.table({"x": array}) for array in arrays]
    table = written(tmp_path, *tables, **options)
    assert table.stats is not None
    return table.stats.columns["x"]


@pytest.mark.parametrize(
    ("array", "spark_type"),
    [
        (pa.array([True]), "boolean"),
        (pa.array([1], pa.int8()), "tinyint"),
        (pa.array([1], pa.int16()), "smallint"),
        (pa.array([1], pa.int32()), "int"),
        (pa.array([1], pa.int64()), "bigint"),
        (pa.array([1], pa.uint8()), "smallint"),
        (pa.array([1], pa.uint16()), "int"),
        (pa.array([1], pa.uint32()), "bigint"),
        (pa.array([1], pa.uint64()), "decimal(20,0)"),
        (pa.array([1], pa.float32()), "float"),
        (pa.array([1], pa.float64()), "double"),
        (pa.array(["a"]), "string"),
        (pa.array(["a"], pa.large_string()), "string"),
        (pa.array(["a"]).dictionary_encode(), "string"),
        (pa.array([b"a"]), "binary"),
        (pa.array([b"ab"], pa.binary(2)), "binary"),
        (pa.array([1], pa.date32()), "date"),
        (pa.array([0], pa.date64()), "date"),
        (pa.array([1], pa.timestamp("us")), "timestamp_ntz"),
        (pa.array([1], pa.timestamp("s")), "timestamp_ntz"),
        (pa.array([1], pa.timestamp("ms", tz="Europe/Berlin")), "timestamp"),
        (pa.array([decimal.Decimal("1.25")], pa.decimal128(12, 2)), "decimal(12,2)"),
        (pa.array([None], pa.null()), "int"),
        (pa.array([[1]], pa.list_(pa.int32())), "array<int>"),
        (pa.array([[1, 2]], pa.list_(pa.int32(), 2)), "array<int>"),
        (pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int64())), "map<string,bigint>"),
        (pa.array([{"a": 1, "b": [{"c": "x"}]}]), "struct<a:bigint,b:array<struct<c:string>>>"),
    ],
    ids=lambda value: value if isinstance(value, str) else str(value.type),
)
def test_types_are_spark_s(tmp_path: Path, array: pa.Array, spark_type: str):
    table = written(tmp_path, pa.table({"x": array, "after": [1]}))
    assert [str(field.dtype) for field in table.columns] == [spark_type, "bigint"]
    assert table.native_reason is None


@pytest.mark.parametrize(
    ("array", "spark_type", "reason"),
    [
        (pa.array([1], pa.duration("us")), "bigint", "duration[us] values"),
        (pa.array(["{}"], pa.json_()), "string", "JSON values"),
    ],
)
def test_types_that_only_spark_reads(tmp_path: Path, array: pa.Array, spark_type: str, reason: str):
    table = written(tmp_path, pa.table({"x": array}))
    assert str(table.columns[0].dtype) == spark_type
    assert table.native_reason is not None and table.native_reason.startswith(reason)


@pytest.mark.parametrize("nested", [False, True])
def test_int96_is_a_timestamp_that_only_spark_reads_where_it_is_nested(
    tmp_path: Path, nested: bool
):
    columns = {"x": pa.array([1], pa.timestamp("us"))}
    if nested:
        columns["s"] = pa.array([{"at": dt.datetime(2020, 1, 1)}])
    table = written(tmp_path, pa.table(columns), use_deprecated_int96_timestamps=True)
    kinds = ["timestamp", "struct<at:timestamp>"][: len(columns)]
    assert [str(f.dtype) for f in table.columns] == kinds
    assert table.native_reason == ("nested INT96 timestamps" if nested else None)


@pytest.mark.parametrize(
    "array",
    [
        pa.array([1], pa.timestamp("ns")),
        pa.array([1], pa.time32("ms")),
        pa.array([1], pa.time64("us")),
        pa.array([1], pa.float16()),
        pa.array([b"0" * 16], pa.uuid()),
        pa.array([decimal.Decimal(1)], pa.decimal256(50, 2)),
        pa.array([{"at": 1}], pa.struct([("at", pa.timestamp("ns"))])),
    ],
    ids=lambda array: str(array.type),
)
def test_types_that_spark_refuses_name_column_and_file(tmp_path: Path, array: pa.Array):
    with pytest.raises(CatalogError, match=r"t/0\.parquet: column 'x': .*rewrite it"):
        written(tmp_path, pa.table({"x": array}))


def test_bounds_have_the_planner_s_units(tmp_path: Path):
    day = dt.date(1970, 1, 11)
    moment = dt.datetime(1970, 1, 1, 0, 0, 1)
    table = written(
        tmp_path,
        pa.table(
            {
                "i": pa.array([3, None, -5], pa.int32()),
                "u": pa.array([1, 2, 2**32 - 1], pa.uint32()),
                "f": [0.5, 2.5, -1.0],
                "s": ["b", "añ", None],
                "d": [day, day, dt.date(1969, 12, 31)],
                "ms": pa.array([moment] * 3, pa.timestamp("ms")),
                "us": pa.array([moment] * 3, pa.timestamp("us", tz="UTC")),
                "m": pa.array([decimal.Decimal("1.25")] * 3, pa.decimal128(5, 2)),
                "b": [True, False, None],
                "raw": [b"\xff", b"a", b""],
                "l": [[1], [], None],
            }
        ),
    )
    assert table.stats is not None
    columns = table.stats.columns
    bounds = {n: (c.min_value, c.max_value, c.null_count) for n, c in columns.items()}
    assert bounds == {
        "i": (-5, 3, 1),
        "u": (1, 2**32 - 1, 0),
        "f": (-1.0, 2.5, 0),
        "s": ("añ", "b", 1),
        "d": (-1, 10, 0),
        "ms": (1_000_000, 1_000_000, 0),
        "us": (1_000_000, 1_000_000, 0),
        "m": (1.25, 1.25, 0),
        "b": (0, 1, 1),
        "raw": (None, None, 0),
        "l": (None, None, None),
    }
    assert all(column.avg_bytes > 0 for column in columns.values())


def test_decimals_in_integers_have_scaled_bounds(tmp_path: Path):
    array = pa.array([decimal.Decimal("-1.25"), decimal.Decimal("7.50")], pa.decimal128(9, 2))
    stats = stats_of(tmp_path, array, store_decimal_as_integer=True)
    assert (stats.min_value, stats.max_value) == (-1.25, 7.5)


def test_dates_beyond_python_s_calendar(tmp_path: Path):
    stats = stats_of(tmp_path, pa.array([-1_000_000, 3_000_000], pa.date32()))
    assert (stats.min_value, stats.max_value) == (-1_000_000, 3_000_000)


@pytest.mark.parametrize("sign", [1, -1])
def test_the_last_moments_are_read_by_spark(tmp_path: Path, sign: int):
    # DuckDB takes them for infinity, which has no year.
    days = pa.array([0, None, sign * (2**31 - 1)], pa.int32()).cast(pa.date32())
    moments = pa.array([0, None, sign * (2**63 - 1)], pa.int64()).cast(pa.timestamp("us"))
    for array in (days, moments, moments.cast(pa.timestamp("us", "UTC"))):
        reason = written(tmp_path, pa.table({"i": [1, 2, 3], "x": array})).native_reason
        assert reason is not None and "infinity to DuckDB" in reason
        near = pa.table({"x": array[:2]})
        assert written(tmp_path, near).native_reason is None


def test_row_groups_and_files_add_up(tmp_path: Path):
    first = pa.table({"x": pa.array(range(10)), "s": ["a"] * 10})
    second = pa.table({"x": pa.array([100, None]), "s": ["b", None]})
    table = written(tmp_path, first, second, row_group_size=4)
    assert table.stats is not None
    sizes = sum(path.stat().st_size for path in (tmp_path / "t").iterdir())
    assert (table.stats.num_rows, table.stats.num_files, table.stats.num_bytes) == (12, 2, sizes)
    x = table.stats.columns["x"]
    assert (x.min_value, x.max_value, x.null_count, x.distinct_count) == (0, 100, 1, 11)
    footers = read_footers(list_files(str(tmp_path / "t")))
    assert [footer.row_groups for footer in footers] == [(4, 4, 2), (2,)]


def test_without_statistics_only_sizes_are_known(tmp_path: Path):
    stats = stats_of(tmp_path, pa.array([1, 2]), write_statistics=False, use_dictionary=False)
    assert (stats.min_value, stats.max_value, stats.null_count, stats.distinct_count) == (
        None,
        None,
        None,
        None,
    )
    assert stats.avg_bytes > 0


def test_one_file_without_statistics_hides_the_bounds(tmp_path: Path):
    folder = tmp_path / "t"
    folder.mkdir()
    pq.write_table(pa.table({"x": [1]}), folder / "a.parquet")
    pq.write_table(pa.table({"x": [9]}), folder / "b.parquet", write_statistics=False)
    table = table_at(folder)
    assert table.stats is not None
    x = table.stats.columns["x"]
    assert (x.min_value, x.max_value, x.null_count) == (None, None, None)


def test_nulls_only_have_no_values(tmp_path: Path):
    nulls = pa.array([None, None], pa.int64())
    stats = stats_of(tmp_path, nulls)
    assert (stats.min_value, stats.null_count, stats.distinct_count) == (None, 2, 0)
    stats = stats_of(tmp_path, nulls, pa.array([4, 5]))
    assert (stats.min_value, stats.max_value, stats.null_count) == (4, 5, 2)
    stats = stats_of(tmp_path, pa.nulls(3), pa.nulls(2))
    assert (stats.null_count, stats.distinct_count) == (5, 0)


def test_nan_never_becomes_a_bound(tmp_path: Path):
    stats = stats_of(tmp_path, pa.array([math.nan, 1.0]), pa.array([math.nan]))
    assert stats.min_value is None or not math.isnan(stats.min_value)  # type: ignore[arg-type]
    infinite = stats_of(tmp_path, pa.array([math.inf]), pa.array([-math.inf]))
    assert (infinite.min_value, infinite.max_value) == (-math.inf, math.inf)


def test_files_without_rows(tmp_path: Path):
    empty = pa.array([], pa.int32())
    stats = stats_of(tmp_path, empty)
    assert stats == ColumnStats(null_count=0, distinct_count=0)
    stats = stats_of(tmp_path, empty, pa.array([7], pa.int32()))
    assert (stats.min_value, stats.max_value, stats.distinct_count) == (7, 7, 1)


@pytest.mark.parametrize("compression", ["none", "snappy", "zstd"])
def test_dictionaries_tell_distinct_strings(tmp_path: Path, compression: str):
    words = [f"word {n:04d}" for n in range(300)]
    drawn = random.Random(1).choices(words, k=40_000)
    stats = stats_of(tmp_path, pa.array(drawn), compression=compression, row_group_size=20_000)
    assert stats.distinct_count is not None
    assert 270 <= stats.distinct_count <= 330


def test_distinct_values_of_disjoint_files_add_up(tmp_path: Path):
    parts = [pa.array([f"{part}-{n % 50:03d}" for n in range(2000)]) for part in "abcd"]
    stats = stats_of(tmp_path, *parts, compression="none")
    assert stats.distinct_count is not None and 190 <= stats.distinct_count <= 220


def test_a_dictionary_that_was_given_up_tells_nothing(tmp_path: Path):
    text = pa.array([f"{n:032d}" for n in range(100_000)])
    assert stats_of(tmp_path, text).distinct_count is None
    assert stats_of(tmp_path, text, use_dictionary=False).distinct_count is None


def test_distinct_integers_never_exceed_rows_or_range(tmp_path: Path):
    sparse = pa.array([0, 10**12])
    assert stats_of(tmp_path, sparse, use_dictionary=False).distinct_count == 2
    dense = pa.array([n % 7 for n in range(5000)])
    assert stats_of(tmp_path, dense, use_dictionary=False).distinct_count == 7


def test_overlapping_parts_are_samples_of_the_same_values():
    def part(low: int, high: int, rows: int, distinct: int) -> ColumnSummary:
        return ColumnSummary(
            num_rows=rows,
            num_bytes=1,
            null_count=0,
            min_value=low,
            max_value=high,
            distinct_count=distinct,
        )

    same = merge_summaries([part(0, 9, 1000, 10), part(0, 9, 1000, 10)])
    assert same.distinct_count == 10
    apart = merge_summaries([part(0, 9, 1000, 10), part(10, 19, 1000, 10)])
    assert apart.distinct_count == 20
    touching = merge_summaries([part(0, 9, 1000, 10), part(9, 19, 1000, 11)])
    assert touching.distinct_count == 21
    unique = merge_summaries([part(0, 9999, 1000, 1000), part(0, 9999, 1000, 990)])
    assert unique.distinct_count == 1990  # never above the sum
    assert column_stats(same, STRING).distinct_count == 10
    assert column_stats(ColumnSummary(num_rows=5, num_bytes=1), INT).distinct_count is None
    mixed = merge_summaries([part(0, 9, 10, 10), ColumnSummary(num_rows=1, num_bytes=1)])
    assert column_stats(mixed, BIGINT).distinct_count is None


def corrupt(path: Path, change: Callable[[bytes], bytes]) -> None:
    path.write_bytes(change(path.read_bytes()))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda b: b"", r"the file is empty \(0 bytes\)"),
        (lambda b: b[:-20], r"not a Parquet file, or cut short"),
        (lambda b: b"hello, world\n", r"not a Parquet file"),
        (lambda b: b"PAR1", r"not a Parquet file"),
        (lambda b: b[-200:], r"cut short: the footer says"),
        (lambda b: b[:-8] + b"\xff\xff\xff\x7fPAR1", r"cut short: the footer says"),
        (lambda b: b[:-60] + b"\xff" * 52 + b[-8:], r"footer cannot be read"),
        (lambda b: b[:-4] + b"PARE", r"encrypted"),
    ],
)
def test_damaged_files_are_named(tmp_path: Path, change: Callable[[bytes], bytes], message: str):
    written(tmp_path, pa.table({"x": [1]}), pa.table({"x": [2]}))
    corrupt(tmp_path / "t" / "1.parquet", change)
    with pytest.raises(CatalogError, match=rf"t/1\.parquet: .*{message}"):
        table_at(tmp_path / "t")


def test_a_footer_larger_than_one_read(tmp_path: Path):
    wide = pa.table({f"column_number_{n}": [n] for n in range(1500)})
    table = written(tmp_path, wide)
    assert len(table.columns) == 1500
    assert table.stats is not None and table.stats.columns["column_number_1499"].min_value == 1499


@pytest.mark.parametrize(
    ("other", "difference"),
    [
        (
            {"a": pa.array([1], pa.int64()), "b": ["x"]},
            r"column 'a' is int .* and bigint in the la",
        ),
        ({"a": pa.array([1], pa.int32())}, r"column 'b' is string in the former and missing in"),
        ({"a": pa.array([1], pa.int32()), "b": ["x"], "c": [1]}, r"column 'c' is missing in the"),
        ({"A": pa.array([1], pa.int32()), "b": ["x"]}, r"column 'a' is int .* missing"),
        ({"b": ["x"], "a": pa.array([1], pa.int32())}, r"the columns are in another order"),
    ],
)
def test_files_of_a_table_have_the_same_columns(
    tmp_path: Path, other: dict[str, object], difference: str
):
    first = {"a": pa.array([1], pa.int32()), "b": ["x"]}
    with pytest.raises(CatalogError, match=rf"0\.parquet and .*1\.parquet differ: {difference}"):
        written(tmp_path, pa.table(first), pa.table(other))


def test_same_types_stored_differently_are_read_by_spark(tmp_path: Path):
    small = pa.table({"x": pa.array([1], pa.uint8())})
    large = pa.table({"x": pa.array([1], pa.int16())})
    table = written(tmp_path, small, large)
    assert str(table.columns[0].dtype) == "smallint"
    assert table.native_reason == "files store column 'x' in different ways"


def test_names_that_differ_in_case_only(tmp_path: Path):
    with pytest.raises(CatalogError, match=r"columns 'a' and 'A' have the same name"):
        written(tmp_path, pa.table([[1], [2]], names=["a", "A"]))


def test_a_file_without_columns(tmp_path: Path):
    with pytest.raises(CatalogError, match=r"it has no columns"):
        written(tmp_path, pa.table({}))


@pytest.mark.parametrize(
    ("keys", "native"),
    [
        ({"org.apache.spark.legacyDateTime": ""}, False),
        ({"org.apache.spark.legacyINT96": ""}, False),
        ({"org.apache.spark.version": "2.4.8"}, False),
        ({"org.apache.spark.version": "3.5.1"}, True),
        ({"org.apache.spark.version": "odd"}, True),
        ({}, True),
    ],
)
def test_legacy_calendars_are_read_by_spark(tmp_path: Path, keys: dict[str, str], native: bool):
    dates = pa.table({"x": [dt.date(1500, 1, 1)]}).replace_schema_metadata(keys)
    assert (written(tmp_path, dates).native_reason is None) == native
    numbers = pa.table({"x": [1]}).replace_schema_metadata(keys)
    assert written(tmp_path, numbers).native_reason is None


def spark_schema(*fields: tuple[str, object], metadata: dict[str, object] | None = None) -> bytes:
    members = [
        {"name": name, "type": dtype, "nullable": True, "metadata": metadata or {}}
        for name, dtype in fields
    ]
    return json.dumps({"type": "struct", "fields": members}).encode()


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        (spark_schema(("x", "long")), None),
        (b"not json", None),
        (spark_schema(("x", {"type": "udt", "class": "c"})), r"type 'udt' is not supported"),
        (spark_schema(("x", "long"), metadata={"__COLLATIONS": "{}"}), r"collated strings"),
        (spark_schema(("x", "integer")), r"declares x int but the file stores x bigint"),
        (spark_schema(("y", "long")), r"declares y bigint but the file stores nothing of that"),
        (spark_schema(("x", "long"), ("y", "long")), r"declares y bigint"),
        (spark_schema(), r"declares nothing but the file stores x bigint"),
    ],
)
def test_the_schema_that_spark_wrote_must_agree(tmp_path: Path, schema: bytes, message: str | None):
    table = pa.table({"x": [1]}).replace_schema_metadata({SPARK_SCHEMA: schema})
    if message is None:
        assert str(written(tmp_path, table).columns[0].dtype) == "bigint"
        return
    with pytest.raises(CatalogError, match=message):
        written(tmp_path, table)


@pytest.mark.parametrize("dtype", ["variant", "interval month", "interval day", "time(6)"])
def test_a_column_that_only_spark_reads_has_sparks_type(tmp_path: Path, dtype: str) -> None:
    table = pa.table({"x": [1]}).replace_schema_metadata({SPARK_SCHEMA: spark_schema(("x", dtype))})
    footer = written(tmp_path, table)
    assert str(footer.columns[0].dtype) == dtype
    assert footer.columns[0].dtype.is_only_sparks
    assert footer.native_reason is None
    assert footer.stats is not None
    stats = footer.stats.columns["x"]
    assert (stats.min_value, stats.null_count) == (None, None)


def test_a_collated_column_is_a_string_with_a_collation(tmp_path: Path) -> None:
    schema = spark_schema(("x", "string"), metadata={"__COLLATIONS": {"x": "icu.UNICODE_CI"}})
    table = pa.table({"x": ["a"]}).replace_schema_metadata({SPARK_SCHEMA: schema})
    assert str(written(tmp_path, table).columns[0].dtype) == "string collate UNICODE_CI"


def count_reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    reads: list[str] = []

    def counting(entry: FileEntry, options: object = None) -> FileFooter:
        reads.append(entry.uri)
        return read_footer(entry)

    monkeypatch.setattr(statistics, "read_footer", counting)
    return reads


def test_footers_are_cached_by_identity(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    folder = tmp_path / "t"
    written(
        tmp_path,
        pa.table({"x": [math.inf], "s": [[{"a,b:c": "<"}]]}),
        pa.table({"x": [-1.5], "s": [[{"a,b:c": "<"}]]}),
    )
    reads = count_reads(monkeypatch)
    cache = FooterCache()
    first = read_footers(list_files(str(folder)), cache=cache)
    assert len(reads) == 2
    again = read_footers(list_files(str(folder)), cache=cache)
    assert again == first and len(reads) == 2

    changed = folder / "1.parquet"
    pq.write_table(pa.table({"x": [-2.5], "s": [[{"a,b:c": "<"}]]}), changed)
    os.utime(changed, ns=(1, 1))
    fresh = read_footers(list_files(str(folder)), cache=cache)
    assert reads[2:] == [str(changed)]
    assert fresh[1].summaries[0].min_value == -2.5
    assert cache.get(first[1].entry) is None  # the old version is dropped
    assert cache.get(first[0].entry) == first[0]


def test_a_file_that_vanishes_while_listed(tmp_path: Path):
    written(tmp_path, pa.table({"x": [1]}))
    files = list_files(str(tmp_path / "t"))
    (tmp_path / "t" / "0.parquet").unlink()
    with pytest.raises(CatalogError, match=r"0\.parquet: the file vanished"):
        read_footers(files)


@pytest.mark.parametrize(("step", "overlap"), [(1, 0.1), (37, 1.0)])
def test_row_groups_tell_whether_rows_are_in_the_order_of_a_column(
    tmp_path: Path, step: int, overlap: float
) -> None:
    numbers = [step * i % 1000 for i in range(1000)]
    halves = [pa.array(numbers[:500], pa.int64()), pa.array([*numbers[500:]], pa.int64())]
    found = stats_of(tmp_path, *halves, row_group_size=100)
    assert found.overlap == pytest.approx(overlap, abs=0.08)


def test_a_column_without_bounds_may_be_in_any_order(tmp_path: Path) -> None:
    column = pa.array([str(i) for i in range(1000)])
    assert stats_of(tmp_path, column, row_group_size=100).overlap == 1.0
    numbers = pa.array(range(1000), pa.int64())
    assert stats_of(tmp_path, numbers, write_statistics=False).overlap == 1.0
