"""A table whose files have different columns: the merged columns, and what is read of each file."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stagecoach.infra.formats.file_pruning import pruned_files
from stagecoach.infra.formats.snapshot import Snapshot, take_snapshot
from stagecoach.planner.errors import CatalogError
from stagecoach.planner.options import PlannerOptions
from stagecoach.planner.plan.physical import ScanExec
from stagecoach.planner.planning import plan_query
from tests.infra.formats.evolving import answers, write_files

DEEP = pa.struct([("a", pa.int32()), ("l", pa.list_(pa.struct([("x", pa.string())])))])
DEEPER = pa.struct(
    [
        ("l", pa.list_(pa.struct([("x", pa.string()), ("y", pa.float64())]))),
        ("A", pa.int32()),
        ("m", pa.map_(pa.string(), pa.int64())),
    ]
)


def columns(catalog_table: Any) -> list[str]:
    return [f"{field.name} {field.dtype}" for field in catalog_table.columns]


def test_columns_are_those_of_all_files_in_the_order_of_the_files(tmp_path: Path) -> None:
    catalog = write_files(
        tmp_path,
        pa.table({"id": pa.array([1, 2], pa.int32()), "name": ["a", None]}),
        pa.table({"day": pa.array([5], pa.date32()), "ID": pa.array([3], pa.int32())}),
        pa.table({"p": pa.array([Decimal("1.5")], pa.decimal128(4, 1)), "name": ["c"]}),
        pa.table({"p": pa.array([Decimal("22.5")], pa.decimal128(12, 1))}),
    )
    found = catalog.table("t")
    assert found is not None and found.native_reason is None
    assert columns(found) == ["id int", "name string", "day date", "p decimal(12,1)"]
    assert found.stats is not None
    stats = found.stats.columns
    assert (stats["id"].min_value, stats["id"].max_value, stats["id"].null_count) == (1, 3, 2)
    assert (stats["p"].min_value, stats["p"].max_value) == (1.5, 22.5)
    assert stats["day"].null_count == 4
    sql = "SELECT id, name, CAST(day AS STRING) AS day, p FROM t"
    expected = [
        (1, "a", None, None),
        (2, None, None, None),
        (3, None, "1970-01-06", None),
        (None, "c", None, Decimal("1.5")),
        (None, None, None, Decimal("22.5")),
    ]
    for how, rows in answers(catalog, sql, tmp_path / "spill").items():
        assert [tuple(row.values()) for row in rows.to_pylist()] == expected, how


def test_members_of_structs_come_and_go(tmp_path: Path) -> None:
    catalog = write_files(
        tmp_path,
        pa.table({"s": pa.array([{"a": 1, "l": [{"x": "p"}, None]}, None, {"a": None}], DEEP)}),
        pa.table({"s": pa.array([{"A": 2, "l": [{"x": "q", "y": 0.5}], "m": [("k", 7)]}], DEEPER)}),
    )
    found = catalog.table("t")
    assert found is not None
    struct = "struct<a:int,l:array<struct<x:string,y:double>>,m:map<string,bigint>>"
    assert columns(found) == [f"s {struct}"]
    expected = [
        {"a": 1, "l": [{"x": "p", "y": None}, None], "m": None},
        None,
        {"a": None, "l": None, "m": None},
        {"a": 2, "l": [{"x": "q", "y": 0.5}], "m": [("k", 7)]},
    ]
    for how, rows in answers(catalog, "SELECT s FROM t", tmp_path / "spill").items():
        assert rows.column(0).to_pylist() == expected, how


@pytest.mark.parametrize(
    ("first", "second", "difference"),
    [
        (pa.int32(), pa.int64(), "column 'x' is int in the former and bigint in the latter"),
        (pa.float32(), pa.float64(), "column 'x' is float in the former and double in the latter"),
        (pa.decimal128(9, 2), pa.decimal128(9, 3), r"column 'x' is decimal\(9,2\) in the former"),
        (pa.date32(), pa.timestamp("us"), "column 'x' is date in the former and timestamp_ntz in"),
        (
            pa.struct([("a", pa.list_(pa.int32()))]),
            pa.struct([("A", pa.list_(pa.string()))]),
            "column 'x.a.element' is int in the former and string in the latter",
        ),
        (
            pa.map_(pa.string(), pa.int32()),
            pa.map_(pa.string(), pa.binary()),
            "column 'x.value' is int in the former and binary in the latter",
        ),
    ],
)
def test_what_spark_does_not_merge_is_refused_with_both_files(
    tmp_path: Path, first: pa.DataType, second: pa.DataType, difference: str
) -> None:
    with pytest.raises(
        CatalogError, match=rf"table 't': files .*1\.parquet and .*3\.parquet differ: {difference}"
    ):
        write_files(
            tmp_path,
            pa.table({"y": [1]}),
            pa.table({"x": pa.nulls(1, first)}),
            pa.table({"X": pa.nulls(1, first)}),
            pa.table({"x": pa.nulls(1, second)}),
        ).table("t")


def test_types_that_files_store_in_different_ways(tmp_path: Path) -> None:
    at = dt.datetime(2024, 1, 1, 12, tzinfo=dt.UTC)
    price = Decimal("-1.25")
    rows = [
        {"x": pa.array([1, None], pa.uint8()), "at": pa.array([at, None], pa.timestamp("us", "UTC")), "p": pa.array([price, None], pa.decimal128(7, 2)), "b": pa.array([b"ab", None], pa.binary(2))},
        {"y": pa.array([1])},
        {"x": pa.array([-1], pa.int16()), "at": pa.array([at], pa.timestamp("ms", "UTC")), "p": pa.array([price], pa.decimal128(7, 2)), "b": pa.array([b"abc"])},
        {"x": pa.array([2], pa.uint8()), "at": pa.array([at], pa.timestamp("us", "UTC")), "p": pa.array([price], pa.decimal128(7, 2)), "b": pa.array([b"cd"], pa.binary(2))},
    ]  # fmt: skip
    catalog = write_files(tmp_path, *map(pa.table, rows))
    for number, options in {
        2: {"store_decimal_as_integer": True},
        3: {"use_deprecated_int96_timestamps": True},
    }.items():
        path = tmp_path / "t" / f"{number}.parquet"
        pq.write_table(pa.table(rows[number]), path, **options)
    found = catalog.table("t")
    assert found is not None and found.native_reason is None
    assert columns(found)[:3] == ["x smallint", "at timestamp", "p decimal(7,2)"]
    files = take_snapshot(catalog, ["t"]).table("t").files
    assert [len(file.stored_types) for file in files] == [1, 4, 5, 2]
    expected = [
        (1, at, price, b"ab"),
        (None, None, None, None),
        (None, None, None, None),
        (-1, at, price, b"abc"),
        (2, at, price, b"cd"),
    ]
    spill = tmp_path / "spill"
    for how, table in answers(catalog, "SELECT x, at, p, b FROM t", spill).items():
        assert [tuple(row.values()) for row in table.to_pylist()] == expected, how
    sql = "SELECT x FROM t WHERE at = TIMESTAMP'2024-01-01 12:00:00Z' AND p < -1 AND b > X'6162'"
    for how, table in answers(catalog, sql, spill).items():
        assert table.column(0).to_pylist() == [-1, 2], how


@pytest.mark.parametrize(
    ("condition", "kept", "ids"),
    [
        ("added = 7", "1", [4]),
        ("added IS NULL", "0", [0, 1, 2]),
        ("added IS NOT NULL AND id > 3", "1", [4, 5]),
        ("coalesce(added, 0) = 0", "01", [0, 1, 2]),
        ("id < 2", "0", [0, 1]),
        ("gone = 'b'", "0", [1]),
        ("gone <=> NULL", "01", [2, 3, 4, 5]),
        ("nan > 5", "1", [5]),
    ],
)
def test_filters_on_columns_that_some_files_lack(
    tmp_path: Path, condition: str, kept: str, ids: list[int]
) -> None:
    catalog = write_files(
        tmp_path,
        pa.table({"id": [0, 1, 2], "gone": ["a", "b", None]}),
        pa.table({"nan": [None, 1.0, math.nan], "added": [6, 7, 8], "id": [3, 4, 5]}),
        rows=1,
    )
    found = answers(catalog, f"SELECT id FROM t WHERE {condition}", tmp_path / "spill")
    for how, rows in found.items():
        assert sorted(rows.column(0).to_pylist()) == ids, how
    table = take_snapshot(catalog, ["t"]).table("t")
    assert Snapshot({"t": table}).to_json().count(b"stored_types") == 2
    (stage,) = plan_query(f"SELECT id FROM t WHERE {condition}", catalog, PlannerOptions()).stages
    (leaf,) = stage.leaves
    assert isinstance(leaf, ScanExec)
    files = pruned_files(stage.fragment, leaf, table, {}, "UTC")
    assert "".join(Path(file.uri).stem for file in files) == kept


def test_files_with_equal_columns_say_nothing_of_them(tmp_path: Path) -> None:
    same = pa.table({"a": [1]})
    table = take_snapshot(write_files(tmp_path, same, same), ["t"]).table("t")
    assert all(file.stored_types == () for file in table.files)
    assert b"stored_types" not in Snapshot({"t": table}).to_json()


@pytest.mark.parametrize("is_first", [True, False])
def test_members_of_one_name_are_refused_as_by_spark(tmp_path: Path, is_first: bool) -> None:
    twice = pa.table({"s": pa.array([{"a": 1, "A": 2}]), "i": pa.array([1])})
    once = pa.table({"i": pa.array([1])})
    tables = (twice, once) if is_first else (once, twice)
    expected = r"\.parquet: members 's.a' and 's.A' have the same name"
    with pytest.raises(CatalogError, match=expected):
        write_files(tmp_path, *tables).table("t")
    # With declared columns, Spark does not look at what is not read.
    catalog = write_files(tmp_path, *tables, columns="i: BIGINT")
    for rows in answers(catalog, "SELECT i FROM t", tmp_path / "spill").values():
        assert rows.column(0).to_pylist() == [1, 1]
    # Where it is read, Spark raises.
    catalog = write_files(tmp_path, *tables, columns="i: BIGINT\ns: 'STRUCT<a: BIGINT>'")
    found = catalog.table("t")
    assert found is not None and "column 's' is struct<a:bigint,A:bigint>" in str(
        found.native_reason
    )
