"""Rows of Iceberg tables that are deleted: by position, by deletion vectors, and by values."""

from __future__ import annotations

import datetime as dt
import math
import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyiceberg.table import StaticTable

from stagecoach.infra.formats.mapped_files.delete_files import decode_bitmap
from stagecoach.infra.formats.registry import table_format
from stagecoach.planner.errors import CatalogError
from tests.infra.formats.iceberg.answers import FORCED, as_set, catalog_of, rows, run
from tests.infra.formats.iceberg.handmade import HandmadeTable, vector_blob
from tests.s3_server import S3Server
from tests.s3_server import s3_server as s3_server


def column(number: int, name: str, kind: Any, **more: Any) -> dict[str, Any]:
    return {"id": number, "name": name, "type": kind, **more}


def numbers(*values: int | None, s: str | None = None) -> pa.Table:
    return pa.table({"k": pa.array(values, pa.int64()), "s": pa.array([s] * len(values), pa.string())})  # fmt: skip


def new_table(folder: Path, version: int = 2) -> HandmadeTable:
    table = HandmadeTable(folder / "t", version)
    table.schema(column(1, "k", "long"), column(2, "s", "string"))
    return table


def keys(folder: Path, table: HandmadeTable, where: str = "TRUE", **settings: Any) -> list[Any]:
    catalog = catalog_of(folder, t=table.save())
    found = rows(catalog, f"SELECT k FROM t WHERE {where} ORDER BY k", folder, **settings)
    return [row["k"] for row in found]


def test_positions_delete_rows_of_files_that_were_there(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    one, two = table.data(numbers(0, 1, 2, 3)), table.data(numbers(10, 11, 12))
    table.commit(one, two)
    table.commit(
        table.position_deletes({one.path: [0, 3], two.path: [1]}),
        table.position_deletes({one.path: [0, 1]}),
        table.data(numbers(20, 21)),
    )
    assert keys(tmp_path, table) == [2, 10, 12, 20, 21]
    assert keys(tmp_path, table, "k > 10") == [12, 20, 21]
    shown = StaticTable.from_metadata(table.save()).scan().to_arrow()
    assert sorted(shown["k"].to_pylist()) == [2, 10, 12, 20, 21]
    # A file that is added later under the number of a delete is not meant by it.
    again = table.data(numbers(30, 31))
    table.commit(again, removed=[two.path])
    assert keys(tmp_path, table) == [2, 20, 21, 30, 31]


def test_positions_of_a_later_file_do_not_count(tmp_path: Path) -> None:
    """A delete is older than a data file that was written after it."""
    table = new_table(tmp_path)
    one = table.data(numbers(0, 1, 2))
    early = table.position_deletes({one.path: [0]})
    table.commit(early)
    table.commit(one)
    assert keys(tmp_path, table) == [0, 1, 2]


def test_deletion_vectors_replace_positions(tmp_path: Path) -> None:
    table = new_table(tmp_path, 3)
    one, two = table.data(numbers(*range(10))), table.data(numbers(*range(10, 20)))
    table.commit(one, two)
    table.commit(table.position_deletes({one.path: [0], two.path: [0]}))
    # The vector of a file has its earlier positions, so these are not looked at.
    table.commit(*table.vectors({one.path: [1, 2, 9]}))
    assert keys(tmp_path, table) == [0, *range(3, 9), *range(11, 20)]
    table.commit(*table.vectors({two.path: [5]}), removed=[])
    assert keys(tmp_path, table) == [0, *range(3, 9), *range(10, 15), *range(16, 20)]


@pytest.mark.parametrize(
    "positions",
    [
        [],
        [0],
        [0, 1, 2, 65535, 65536, 1 << 20],
        list(range(0, 200_000, 2)),  # bitmaps
        [*range(5, 100_000), 300_000],  # runs
        [1, (1 << 33) + 7, (1 << 33) + 8, (1 << 40)],
        sorted(random.Random(5).sample(range(1 << 24), 20_000)),
    ],
    ids=["none", "one", "edges", "bitmaps", "runs", "long", "random"],
)
def test_bitmaps_are_decoded(positions: list[int]) -> None:
    blob = vector_blob(positions)
    found = decode_bitmap(memoryview(blob)[8:-4])
    assert found.tolist() == positions
    assert found.dtype == np.int64
    for cut in (0, 9, len(blob) // 2 - 8):
        if positions:
            with pytest.raises(ValueError, match="cut short"):
                decode_bitmap(memoryview(blob)[8 : 8 + cut])


def test_a_damaged_vector_is_named(tmp_path: Path) -> None:
    table = new_table(tmp_path, 3)
    one = table.data(numbers(*range(10)))
    table.commit(one)
    (vector,) = table.vectors({one.path: [1, 2, 9]})
    table.commit(vector)
    path = Path(vector.path.removeprefix("file://"))
    raw = bytearray(path.read_bytes())
    raw[20] ^= 1
    path.write_bytes(raw)
    with pytest.raises(AssertionError, match="checksum mismatch of the deletion vector at byte 4"):
        keys(tmp_path, table)


def test_values_delete_rows_that_were_there_before(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    table.commit(table.data(numbers(1, 2, 3, None, s="a")))
    same = table.data(numbers(1, 2, s="b"))
    table.commit(table.equality_deletes(pa.table({"k": pa.array([1, 99], pa.int64())})), same)
    # Rows of the same commit stay.
    assert keys(tmp_path, table) == [None, 1, 2, 2, 3]
    by_both = pa.table({"k": pa.array([None, 2], pa.int64()), "s": ["a", "b"]})
    table.commit(table.equality_deletes(by_both))
    assert keys(tmp_path, table) == [1, 2, 3]
    # NULL deletes NULL, in columns that the query does not read, too.
    table.commit(table.equality_deletes(pa.table({"s": pa.array([None], pa.string())})))
    assert keys(tmp_path, table) == [1, 2, 3]
    table.commit(table.data(numbers(5)))
    table.commit(table.equality_deletes(pa.table({"s": pa.array([None, "b"], pa.string())})))
    assert keys(tmp_path, table) == [2, 3]
    catalog = catalog_of(tmp_path, t=table.save())
    assert rows(catalog, "SELECT count(*) AS n FROM t", tmp_path) == [{"n": 2}]
    assert rows(catalog, "SELECT s FROM t WHERE k = 3", tmp_path) == [{"s": "a"}]


def test_values_delete_rows_of_their_partition(tmp_path: Path) -> None:
    table = HandmadeTable(tmp_path / "t")
    table.schema(column(1, "k", "long"), column(2, "s", "string"))
    table.spec()
    table.commit(table.data(numbers(1, s="a")))
    table.spec({"source-id": 2, "name": "s", "transform": "identity"})
    table.commit(table.data(numbers(1, 2, s="a"), ("a",)), table.data(numbers(1, 2, s="b"), ("b",)))
    one = pa.table({"k": pa.array([1], pa.int64())})
    table.commit(table.equality_deletes(one, ("a",)))
    assert keys(tmp_path, table) == [1, 1, 2, 2]
    # One without a partition is meant for all of them.
    table.commit(table.equality_deletes(pa.table({"k": pa.array([2], pa.int64())}), spec_id=0))
    assert keys(tmp_path, table) == [1, 1]
    # Positions are of files of their partition.
    entry = table.data(numbers(7, 8, s="c"), ("c",))
    table.commit(entry)
    table.commit(table.position_deletes({entry.path: [0]}, ("c",)))
    assert keys(tmp_path, table) == [1, 1, 8]


def test_values_are_those_of_columns_by_id(tmp_path: Path) -> None:
    """Columns that were renamed, promoted, added or dropped since."""
    table = HandmadeTable(tmp_path / "t")
    table.schema(column(1, "k", "int"), column(2, "s", "string"), column(3, "d", "date"))
    day = dt.date(2024, 1, 1)
    given = pa.table({"k": pa.array([1, 2, 3], pa.int32()), "s": ["a", "b", "c"], "d": [day, None, day]})  # fmt: skip
    table.commit(table.data(given))
    table.commit(table.equality_deletes(pa.table({"d": pa.array([None], pa.date32())})))
    table.schema(column(2, "k", "string"), column(1, "s", "long"), column(4, "new", "long"))
    assert_rows(tmp_path, table, [{"k": "a", "s": 1, "new": None}, {"k": "c", "s": 3, "new": None}])
    table.commit(table.equality_deletes(pa.table({"s": pa.array([3], pa.int64())})))
    assert_rows(tmp_path, table, [{"k": "a", "s": 1, "new": None}])
    table.commit(table.equality_deletes(pa.table({"new": pa.array([None], pa.int64())})))
    assert_rows(tmp_path, table, [])


def assert_rows(folder: Path, table: HandmadeTable, expected: list[dict[str, Any]]) -> None:
    catalog = catalog_of(folder, t=table.save())
    assert as_set(rows(catalog, "SELECT * FROM t", folder)) == as_set(expected)


def test_keys_of_many_types(tmp_path: Path) -> None:
    table = HandmadeTable(tmp_path / "t")
    kinds = {
        "b": ("boolean", pa.bool_(), [True, False, None]),
        "i": ("int", pa.int32(), [-1, 0, None]),
        "x": ("double", pa.float64(), [0.5, float("nan"), None]),
        "d": ("decimal(20,3)", pa.decimal128(20, 3), [Decimal("1.500"), Decimal("-2.000"), None]),
        "t": ("timestamptz", pa.timestamp("us", "UTC"), [dt.datetime(2024, 1, 1, tzinfo=dt.UTC), dt.datetime(1950, 1, 1, tzinfo=dt.UTC), None]),
        "n": ("timestamp", pa.timestamp("us"), [dt.datetime(2024, 1, 1), dt.datetime(1950, 1, 1), None]),
        "y": ("binary", pa.binary(), [b"\x00", b"", None]),
        "f": ("fixed[2]", pa.binary(2), [b"ab", b"cd", None]),
        "u": ("uuid", pa.binary(16), [bytes(range(16)), bytes(16), None]),
    }  # fmt: skip
    table.schema(column(1, "k", "int"), *(column(2 + i, n, kind) for i, (n, (kind, _, _)) in enumerate(kinds.items())))  # fmt: skip
    whole = {n: pa.array(values, kind) for n, (_, kind, values) in kinds.items()}
    table.commit(table.data(pa.table({"k": pa.array([0, 1, 2], pa.int32()), **whole}), metrics=False))  # fmt: skip
    path = table.save()
    shown = rows(catalog_of(tmp_path, t=path), "SELECT * FROM t ORDER BY k", tmp_path)
    assert shown[0]["u"] == "00010203-0405-0607-0809-0a0b0c0d0e0f"
    assert shown[0]["t"] == dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
    for name, array in whole.items():
        for place in range(3):
            other = HandmadeTable(tmp_path / f"{name}{place}")
            other.schema(*table.schemas[0]["fields"])
            other.commit(table.live[0])
            other.commit(other.equality_deletes(pa.table({name: array.slice(place, 1)})))
            assert keys(tmp_path, other) == [k for k in range(3) if k != place], name


def test_a_task_of_a_part_of_a_file_applies_deletes(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    one = table.data(numbers(*range(10_000), s="a"), group_rows=1000)
    table.commit(one)
    table.commit(
        table.position_deletes({one.path: [0, 999, 1000, 5500, 9999]}),
        table.equality_deletes(pa.table({"k": pa.array([7, 4321], pa.int64())})),
    )
    catalog = catalog_of(tmp_path, t=table.save())
    found, stages = run(
        catalog,
        "SELECT count(*) AS n, sum(k) AS s FROM t",
        tmp_path,
        FORCED,
        min_task_bytes=1 << 12,
        target_task_bytes=1 << 13,
    )
    gone = 0 + 999 + 1000 + 5500 + 9999 + 7 + 4321
    assert found == [{"n": 9993, "s": 49_995_000 - gone}]
    assert len(stages[0].specs) > 1


@pytest.mark.s3
def test_deletes_of_files_on_s3(s3_server: S3Server, tmp_path: Path) -> None:
    root = s3_server.new_root()
    folder = s3_server.folder / root.removeprefix("s3://") / "t"
    table = HandmadeTable(folder, 3, url=f"{root}/t")
    table.schema(column(1, "k", "int"), column(2, "s", "string"))
    given = {"k": pa.array(range(1000), pa.int32()), "s": [f"s{i % 7}" for i in range(1000)]}
    one, two, three = (table.data(pa.table(given), group_rows=100) for _ in range(3))
    table.commit(one, two, three)
    # Promoted and renamed; files are read by other names than the table's.
    table.schema(column(2, "k", "string"), column(1, "n", "long"))
    table.commit(
        table.position_deletes({one.path: [0, 550, 999]}),
        *table.vectors({two.path: [0, 551]}),
        table.equality_deletes(pa.table({"n": pa.array([77, 552], pa.int64())})),
    )
    catalog = catalog_of(tmp_path, s3_server.options, t=table.save())
    how: dict[str, Any] = {"storage_options": s3_server.options}
    found = rows(catalog, "SELECT count(*) AS c, sum(n) AS s FROM t", tmp_path, **how)
    total = 3 * (sum(range(1000)) - 77 - 552) - 550 - 999 - 551
    assert found == [{"c": 3000 - 6 - 3 - 2, "s": total}]
    sql = "SELECT n FROM t WHERE n BETWEEN 549 AND 553 AND k <> 's9' ORDER BY n"
    kept = [549] * 3 + [550] * 2 + [551] * 2 + [553] * 3
    assert rows(catalog, sql, tmp_path, **how) == [{"n": n} for n in kept]
    parts: dict[str, Any] = {"min_task_bytes": 1 << 10, "target_task_bytes": 1 << 11}
    found, stages = run(catalog, "SELECT sum(n) AS s FROM t", tmp_path, FORCED, **how, **parts)
    assert found == [{"s": total}]
    assert len(stages[0].specs) > 3


def test_odd_names_of_files_and_columns(tmp_path: Path) -> None:
    table = HandmadeTable(tmp_path / "a [x] *'%20 ü")
    names = ("filename", "it's", "ü.x", "SELECT")
    table.schema(*(column(1 + i, name, "long") for i, name in enumerate(names)))
    one = table.data(pa.table({name: [i, i + 10] for i, name in enumerate(names)}))
    table.commit(one)
    table.commit(table.position_deletes({one.path: [0]}))
    assert_rows(tmp_path, table, [{name: i + 10 for i, name in enumerate(names)}])
    table.commit(table.equality_deletes(pa.table({"it's": [11]})))
    assert_rows(tmp_path, table, [])


@pytest.mark.parametrize("name", ["file_row_number", "__file", "FILE_ROW_NUMBER"])
def test_columns_with_names_that_duckdb_adds(name: str, tmp_path: Path) -> None:
    table = HandmadeTable(tmp_path / "t")
    table.schema(column(1, "a", "long"), column(2, name, "long"))
    one = table.data(pa.table({"a": [1, 2, 3], name: [5, 6, 7]}))
    table.commit(one)
    table.commit(table.position_deletes({one.path: [0]}))
    assert_rows(tmp_path, table, [{"a": 2, name: 6}, {"a": 3, name: 7}])
    catalog = catalog_of(tmp_path, t=table.save())
    assert rows(catalog, f"SELECT {name} AS x, a FROM t WHERE a > 2", tmp_path) == [
        {"x": 7, "a": 3}
    ]
    table.commit(table.equality_deletes(pa.table({name: [6]})))
    assert_rows(tmp_path, table, [{"a": 3, name: 7}])


def test_nan_is_one_partition(tmp_path: Path) -> None:
    table = HandmadeTable(tmp_path / "t")
    table.schema(column(1, "d", "double"), column(2, "k", "long"))
    table.spec({"name": "d", "source-id": 1, "transform": "identity"})
    one = table.data(pa.table({"d": [math.nan] * 3, "k": [1, 2, 3]}), (math.nan,))
    table.commit(one)
    table.commit(
        table.position_deletes({one.path: [0]}, (math.nan,)),
        table.equality_deletes(pa.table({"k": [2]}), (math.nan,)),
    )
    assert keys(tmp_path, table) == [3]


def test_the_fingerprint_is_of_the_files_that_are_read(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    low, high = table.data(numbers(1, 2)), table.data(numbers(101, 102))
    table.commit(low, high)
    sql = "SELECT k FROM t WHERE k < 50"

    def scanned() -> object:
        from stagecoach.infra.formats.requests import scan_request
        from stagecoach.planner.options import PlannerOptions
        from stagecoach.planner.plan.physical import ScanExec
        from stagecoach.planner.planning import plan_query

        catalog = catalog_of(tmp_path, t=table.save())
        graph = plan_query(sql, catalog, PlannerOptions())
        (leaf,) = graph.stages[0].leaves
        assert isinstance(leaf, ScanExec)
        request = scan_request(graph.stages[0].fragment, leaf, "iceberg", {}, "UTC")
        return table_format("iceberg").scanned(request, catalog.state("t").snapshot)

    before = scanned()
    # Compaction of files that are not read, and deletes of their rows, change nothing.
    table.commit(table.data(numbers(101, 102)), removed=[high.path], operation="replace")
    assert scanned() == before
    table.commit(table.position_deletes({table.live[-1].path: [0]}))
    assert scanned() == before
    # Nor does expiry of snapshots.
    del table.snapshots[:-1]
    table.snapshots[-1].pop("parent-snapshot-id")
    assert scanned() == before
    table.commit(table.position_deletes({low.path: [0]}))
    after = scanned()
    assert after != before
    # Another name does not, another column does.
    table.schema(column(2, "k", "string"), column(1, "s", "long"))
    sql = "SELECT s FROM t WHERE s < 50"
    assert scanned() != before


def test_the_observed_version_is_that_of_the_rows(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    one, two = table.data(numbers(1)), table.data(numbers(2))
    table.commit(one, two)
    (before,) = catalog_of(tmp_path, t=table.save()).list_files("t")
    table.commit(table.data(numbers(1, 2)), removed=[one.path, two.path], operation="replace")
    (compacted,) = catalog_of(tmp_path, t=table.save()).list_files("t")
    assert compacted.version == before.version
    table.commit(table.data(numbers(3)))
    (after,) = catalog_of(tmp_path, t=table.save()).list_files("t")
    assert after.version != before.version


def test_files_of_other_formats_are_refused(tmp_path: Path) -> None:
    from dataclasses import replace

    table = new_table(tmp_path)
    table.commit(replace(table.data(numbers(1)), kind="AVRO"))
    with pytest.raises(CatalogError, match="is an AVRO file; only Parquet is read"):
        catalog_of(tmp_path, t=table.save()).table("t")
