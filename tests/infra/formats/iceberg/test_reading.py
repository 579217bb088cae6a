"""Schema evolution, partitions and metrics of Iceberg tables, from hand-made tables."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.transforms import BucketTransform
from pyiceberg.types import LongType

from stagecoach.infra.catalog.catalog import FileCatalog
from stagecoach.infra.formats.snapshot import Snapshot, take_snapshot
from stagecoach.planner.errors import CatalogError
from stagecoach.planner.planning import plan_query
from tests.infra.formats.iceberg.answers import FORCED, as_set, catalog_of, files_read, rows, run
from tests.infra.formats.iceberg.handmade import HandmadeTable
from tests.s3_server import S3Server
from tests.s3_server import s3_server as s3_server

VERSIONS = pytest.mark.parametrize("version", [1, 2, 3])


def column(number: int, name: str, kind: Any, **more: Any) -> dict[str, Any]:
    return {"id": number, "name": name, "type": kind, **more}


def struct(*fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "struct", "fields": [{"required": False, **f} for f in fields]}


@VERSIONS
def test_columns_go_by_their_ids(version: int, tmp_path: Path) -> None:
    table = HandmadeTable(tmp_path / "t", version)
    table.schema(
        column(1, "k", "int"),
        column(2, "x", "float"),
        column(3, "a", "string"),
        column(4, "gone", "int"),
        column(5, "d", "decimal(9,2)"),
    )
    table.commit(table.data(pa.table({
        "k": pa.array([1, 2, None], pa.int32()), "x": pa.array([0.5, float("nan"), None], pa.float32()),
        "a": ["p", None, "q"], "gone": pa.array([7, 8, 9], pa.int32()),
        "d": pa.array([Decimal("1.25"), None, Decimal("-2.50")], pa.decimal128(9, 2)),
    })))  # fmt: skip
    # Reordered, promoted, `a` renamed to `b`, and a new column with the old name of another.
    table.schema(
        column(3, "b", "string"),
        column(1, "k", "long"),
        column(2, "x", "double"),
        column(5, "d", "decimal(20,2)"),
        column(6, "a", "long"),
        column(7, "gone", "string"),
    )
    table.commit(table.data(pa.table({
        "b": ["r"], "k": pa.array([1 << 40]), "x": [1e300], "d": pa.array([Decimal("123456789012.75")], pa.decimal128(20, 2)),
        "a": [5], "gone": ["new"],
    })))  # fmt: skip
    catalog = catalog_of(tmp_path, t=table.save())
    found = rows(catalog, "SELECT * FROM t", tmp_path)
    assert as_set(found) == as_set([
        {"b": "p", "k": 1, "x": 0.5, "d": Decimal("1.25"), "a": None, "gone": None},
        {"b": None, "k": 2, "x": float("nan"), "d": None, "a": None, "gone": None},
        {"b": "q", "k": None, "x": None, "d": Decimal("-2.50"), "a": None, "gone": None},
        {"b": "r", "k": 1 << 40, "x": 1e300, "d": Decimal("123456789012.75"), "a": 5, "gone": "new"},
    ])  # fmt: skip
    # What is pruned by bounds of the wrong column would be lost here.
    assert rows(catalog, "SELECT k FROM t WHERE b = 'p'", tmp_path) == [{"k": 1}]
    assert rows(catalog, "SELECT k FROM t WHERE a = 5", tmp_path) == [{"k": 1 << 40}]
    found, stages = run(catalog, "SELECT x FROM t WHERE k > 100", tmp_path)
    assert (found, files_read(stages)) == ([{"x": 1e300}], 1)
    found, stages = run(catalog, "SELECT k FROM t WHERE d < 0", tmp_path)
    assert (found, files_read(stages)) == ([{"k": None}], 1)


def test_members_go_by_their_ids(tmp_path: Path) -> None:
    table = HandmadeTable(tmp_path / "t")
    inner = [column(10, "x", "int"), column(11, "y", "string")]
    table.schema(
        column(1, "k", "int"),
        column(2, "s", struct(*inner)),
        column(3, "l", {"type": "list", "element-id": 20, "element": struct(column(21, "p", "int")), "element-required": False}),
        column(4, "m", {"type": "map", "key-id": 30, "key": "string", "value-id": 31, "value": struct(column(32, "v", "float"), column(33, "w", "int")), "value-required": False}),
    )  # fmt: skip
    kind = pa.schema([
        ("k", pa.int32()),
        ("s", pa.struct([("x", pa.int32()), ("y", pa.string())])),
        ("l", pa.list_(pa.field("element", pa.struct([("p", pa.int32())])))),
        ("m", pa.map_(pa.string(), pa.struct([("v", pa.float32()), ("w", pa.int32())]))),
    ])  # fmt: skip
    ids = {"k": 1, "s": 2, "s.x": 10, "s.y": 11, "l": 3, "l.element": 20, "l.element.p": 21,
           "m": 4, "m.key": 30, "m.value": 31, "m.value.v": 32, "m.value.w": 33}  # fmt: skip
    given = [
        {"k": 1, "s": {"x": 1, "y": "a"}, "l": [{"p": 1}, None, {"p": None}], "m": [("a", {"v": 0.5, "w": 1}), ("b", None)]},
        {"k": 2, "s": None, "l": None, "m": None},
        {"k": 3, "s": {"x": None, "y": None}, "l": [], "m": []},
    ]  # fmt: skip
    old = table.data(pa.Table.from_pylist(given, kind), ids=ids, metrics=False)
    before = catalog_of(tmp_path, t=_saved(table, old))
    assert as_set(rows(before, "SELECT * FROM t", tmp_path)) == as_set(given)
    # `x` and `y` change places and names, `p` is promoted, `w` is gone, and members are new.
    table.schema(
        column(1, "k", "int"),
        column(2, "s", struct(column(11, "x", "string"), column(10, "y", "long"), column(12, "z", "int"))),
        column(3, "l", {"type": "list", "element-id": 20, "element": struct(column(22, "q", "string"), column(21, "p", "long")), "element-required": False}),
        column(4, "m", {"type": "map", "key-id": 30, "key": "string", "value-id": 31, "value": struct(column(32, "n", "double"), column(34, "o", "int")), "value-required": False}),
    )  # fmt: skip
    after = catalog_of(tmp_path, t=table.save())
    assert as_set(rows(after, "SELECT * FROM t", tmp_path)) == as_set([
        {"k": 1, "s": {"x": "a", "y": 1, "z": None}, "l": [{"q": None, "p": 1}, None, {"q": None, "p": None}], "m": [("a", {"n": 0.5, "o": None}), ("b", None)]},
        {"k": 2, "s": None, "l": None, "m": None},
        {"k": 3, "s": {"x": None, "y": None, "z": None}, "l": [], "m": []},
    ])  # fmt: skip
    assert rows(after, "SELECT k FROM t WHERE s.x = 'a' AND s.y = 1", tmp_path) == [{"k": 1}]


def _saved(table: HandmadeTable, *entries: Any) -> str:
    table.commit(*entries)
    return table.save()


def table_with_names_by_case(folder: Path, url: str = "") -> tuple[HandmadeTable, str]:
    """A table whose columns once differed in case only, and the path of its file."""
    table = HandmadeTable(folder, url=url)
    inner = struct(column(4, "x", "long"), column(5, "X", "long"))
    table.schema(column(1, "a", "long"), column(2, "A", "long"), column(3, "s", inner))
    pair = pa.StructArray.from_arrays([pa.array([3, 4]), pa.array([30, 40])], names=["x", "X"])
    written = pa.table([pa.array([1, 2]), pa.array([10, 20]), pair], names=["a", "A", "s"])
    ids = {"a": 1, "A": 2, "s": 3, "s.x": 4, "s.X": 5}
    one = table.data(written, ids=ids, metrics=False, group_rows=1)
    table.commit(one)
    # Spark reads the table since they were renamed.
    inner = struct(column(4, "x", "long"), column(5, "y", "long"))
    table.schema(column(1, "a", "long"), column(2, "b", "long"), column(3, "s", inner))
    return table, one.path


def check_names_by_case(catalog: FileCatalog, folder: Path, **settings: Any) -> None:
    def answer(sql: str) -> list[dict[str, Any]]:
        return rows(catalog, sql, folder, **settings)

    assert answer("SELECT b, a, s FROM t ORDER BY a") == [
        {"b": 10, "a": 1, "s": {"x": 3, "y": 30}},
        {"b": 20, "a": 2, "s": {"x": 4, "y": 40}},
    ]
    assert answer("SELECT b FROM t WHERE b > 10") == [{"b": 20}]
    assert answer("SELECT s.y AS y, a FROM t WHERE s.y > 30") == [{"y": 40, "a": 2}]


def test_names_in_files_may_differ_in_case_only(tmp_path: Path) -> None:
    table, path = table_with_names_by_case(tmp_path / "t")
    check_names_by_case(catalog_of(tmp_path, t=table.save()), tmp_path)
    table.commit(table.position_deletes({path: [0]}))
    catalog = catalog_of(tmp_path, t=table.save())
    assert rows(catalog, "SELECT b, a FROM t", tmp_path) == [{"b": 20, "a": 2}]


@pytest.mark.s3
def test_names_in_files_on_s3_may_differ_in_case_only(s3_server: S3Server, tmp_path: Path) -> None:
    root = s3_server.new_root()
    folder = s3_server.folder / root.removeprefix("s3://") / "t"
    table, _ = table_with_names_by_case(folder, f"{root}/t")
    catalog = catalog_of(tmp_path, s3_server.options, t=table.save())
    check_names_by_case(catalog, tmp_path, storage_options=s3_server.options)


def test_new_columns_have_their_initial_defaults(tmp_path: Path) -> None:
    table = HandmadeTable(tmp_path / "t", 3)
    table.schema(column(1, "k", "int"), column(2, "s", struct(column(3, "x", "int"))))
    first = pa.table({"k": pa.array([1, 2], pa.int32()), "s": pa.array([{"x": 1}, None], pa.struct([("x", pa.int32())]))})  # fmt: skip
    table.commit(table.data(first, ids={"k": 1, "s": 2, "s.x": 3}))
    defaults = {
        "a": ("int", 7, 7), "b": ("string", "it's", "it's"), "c": ("date", "2024-02-29", dt.date(2024, 2, 29)),
        "d": ("decimal(9,2)", "14.20", Decimal("14.20")), "e": ("boolean", True, True),
        "f": ("timestamp", "2024-01-01T01:02:03.000004", dt.datetime(2024, 1, 1, 1, 2, 3, 4)),
        "g": ("timestamptz", "2024-01-01T01:02:03.000004+00:00", dt.datetime(2024, 1, 1, 1, 2, 3, 4, dt.UTC)),
        "h": ("binary", "00ff", b"\x00\xff"), "i": ("double", 0.5, 0.5), "j": ("long", 1 << 40, 1 << 40),
        "u": ("uuid", "f79c3e09-677c-4bbd-a479-3f349cb785e7", "f79c3e09-677c-4bbd-a479-3f349cb785e7"),
    }  # fmt: skip
    added = [
        column(10 + i, name, kind, **{"initial-default": text, "write-default": text})
        for i, (name, (kind, text, _)) in enumerate(defaults.items())
    ]
    member = column(4, "y", "int", **{"initial-default": 9})
    table.schema(column(1, "k", "int"), column(2, "s", struct(column(3, "x", "int"), member)), *added)  # fmt: skip
    catalog = catalog_of(tmp_path, t=table.save())
    expected = {name: value for name, (_, _, value) in defaults.items()}
    found = rows(catalog, "SELECT * FROM t ORDER BY k", tmp_path)
    assert found == [
        {"k": 1, "s": {"x": 1, "y": 9}, **expected},
        {"k": 2, "s": None, **expected},
    ]
    assert rows(catalog, "SELECT k FROM t WHERE b = 'it''s' AND k = 1", tmp_path) == [{"k": 1}]


@VERSIONS
def test_partition_evolution_is_pruned_by_transforms(version: int, tmp_path: Path) -> None:
    """Without metrics, so that only the values of partitions tell."""
    table = HandmadeTable(tmp_path / "t", version)
    table.schema(column(1, "k", "long"), column(2, "at", "timestamp"), column(3, "s", "string"))

    def file(k: int, at: str, s: str | None, *partition: Any) -> Any:
        moment = pa.array([dt.datetime.fromisoformat(at)], pa.timestamp("us"))
        given = pa.table({"k": [k], "at": moment, "s": pa.array([s], pa.string())})
        return table.data(given, partition, metrics=False)

    table.commit(file(1, "2020-05-05", "abc"))  # not partitioned: is always read
    table.spec({"source-id": 2, "name": "y", "transform": "year"}, {"source-id": 3, "name": "p", "transform": "truncate[2]"})  # fmt: skip
    table.commit(file(2, "2022-12-31 23:59:59.999999", "abd", 52, "ab"), file(3, "2023-01-01", None, 53, None))  # fmt: skip
    table.spec({"source-id": 2, "name": "m", "transform": "month"}, {"source-id": 1, "name": "w", "transform": "truncate[10]"})  # fmt: skip
    table.commit(file(14, "2024-02-29 12:00", "x", 649, 10), file(25, "2024-03-01", "y", 650, 20))
    table.spec({"source-id": 2, "name": "d", "transform": "day"}, {"source-id": 3, "name": "i", "transform": "identity"})  # fmt: skip
    table.commit(file(36, "2024-04-01 23:00", "z", 19814, "z"), file(37, "1969-12-31 23:00", "zz", 0, "zz"))  # fmt: skip
    table.spec({"source-id": 2, "name": "h", "transform": "hour"}, {"source-id": 1, "name": "b", "transform": "bucket[16]"})  # fmt: skip
    bucket_of = BucketTransform(16).transform(LongType())
    assert (bucket_of(34), bucket_of(35)) == (3, 5)  # the former is in the specification
    table.commit(file(34, "2024-05-01 05:59", "q", 476261, 3), file(35, "2024-05-01 06:00", "q", 476262, bucket_of(35)))  # fmt: skip
    catalog = catalog_of(tmp_path, t=table.save())
    assert len(rows(catalog, "SELECT * FROM t", tmp_path)) == 9
    for where, keys, read in (
        ("at >= TIMESTAMP_NTZ'2023-01-01' AND at < TIMESTAMP_NTZ'2024-01-01'", [3], 2),
        ("at = TIMESTAMP_NTZ'2022-12-31 23:59:59.999999'", [2], 2),
        ("at < TIMESTAMP_NTZ'1970-01-01'", [37], 2),
        ("at BETWEEN TIMESTAMP_NTZ'2024-02-01' AND TIMESTAMP_NTZ'2024-02-29 23:00'", [14], 2),
        ("at >= TIMESTAMP_NTZ'2024-05-01 06:00'", [35], 2),
        ("s IS NULL", [3], 6),  # the unpartitioned one and four partitions without s
        ("s = 'z'", [36], 6),
        ("s LIKE 'ab%'", [1, 2], 6),
        ("k = 14", [14], 6),
        ("k = 34", [34], 6),  # its bucket; files without k in their partitions cannot tell
        ("k IN (34, 35) AND at >= TIMESTAMP_NTZ'2024-05-01'", [34, 35], 3),
        ("k = 34 AND at >= TIMESTAMP_NTZ'2024-05-01'", [34], 2),
    ):
        found, stages = run(catalog, f"SELECT k FROM t WHERE {where} ORDER BY k", tmp_path)
        assert ([row["k"] for row in found], files_read(stages)) == (keys, read), where


def test_identity_partitions_give_columns_that_files_lack(tmp_path: Path) -> None:
    table = HandmadeTable(tmp_path / "t")
    table.schema(column(1, "k", "int"), column(2, "day", "date"), column(3, "c", "string"))
    table.spec({"source-id": 2, "name": "day", "transform": "identity"}, {"source-id": 3, "name": "c", "transform": "identity"})  # fmt: skip
    one = pa.table({"k": pa.array([1], pa.int32())})
    table.commit(table.data(one, (19723, "x'y")), table.data(one, (None, None)))
    catalog = catalog_of(tmp_path, t=table.save())
    found = rows(catalog, "SELECT * FROM t ORDER BY day", tmp_path)
    assert found == [
        {"k": 1, "day": None, "c": None},
        {"k": 1, "day": dt.date(2024, 1, 1), "c": "x'y"},
    ]
    found, stages = run(catalog, "SELECT k FROM t WHERE day = DATE'2024-01-01'", tmp_path)
    assert (found, files_read(stages)) == ([{"k": 1}], 1)


def test_files_without_ids_are_read_by_the_name_mapping(tmp_path: Path) -> None:
    table = HandmadeTable(tmp_path / "t")
    table.schema(column(1, "key", "int"), column(2, "place", struct(column(3, "city", "string"))))
    rows_given = pa.table({"k": pa.array([1], pa.int32()), "p": [{"town": "Ulm", "more": 1}]})
    entry = table.data(rows_given, ids={}, metrics=False)
    without = catalog_of(tmp_path, t=_saved(table, entry))
    with pytest.raises(AssertionError, match="no field ids"):
        rows(without, "SELECT * FROM t", tmp_path)
    mapping = [
        {"field-id": 1, "names": ["key", "k"]},
        {"field-id": 2, "names": ["p"], "fields": [{"field-id": 3, "names": ["town"]}]},
    ]
    table.properties["schema.name-mapping.default"] = json.dumps(mapping)
    catalog = catalog_of(tmp_path, t=table.save())
    assert rows(catalog, "SELECT * FROM t", tmp_path) == [{"key": 1, "place": {"city": "Ulm"}}]


def test_a_table_without_snapshots_is_empty(tmp_path: Path) -> None:
    table = HandmadeTable(tmp_path / "t")
    table.schema(column(1, "k", "int"), column(2, "s", "string", required=True, doc="what it is"))
    catalog = catalog_of(tmp_path, t=table.save())
    assert rows(catalog, "SELECT * FROM t", tmp_path) == []
    assert rows(catalog, "SELECT count(*) AS n FROM t", tmp_path) == [{"n": 0}]
    note = catalog.notes("t")["s"]
    assert (note.comment, note.nullable) == ("what it is", False)


@pytest.mark.parametrize(
    ("kind", "problem"),
    [("time", "type time"), ("timestamp_ns", "timestamp_ns"), ("unknown", "unknown")],
)
def test_types_that_spark_does_not_read_are_refused(
    kind: str, problem: str, tmp_path: Path
) -> None:
    table = HandmadeTable(tmp_path / "t", 3)
    table.schema(column(1, "k", "int"), column(2, "odd", kind))
    catalog = catalog_of(tmp_path, t=table.save())
    with pytest.raises(CatalogError, match=f"table 't': column 'odd'.*{problem}"):
        catalog.table("t")


def test_a_snapshot_is_kept_as_it_was(tmp_path: Path) -> None:
    table = HandmadeTable(tmp_path / "t")
    table.schema(column(1, "k", "int"))
    table.commit(table.data(pa.table({"k": pa.array([1], pa.int32())})))
    catalog = catalog_of(tmp_path, t=table.save())
    taken = take_snapshot(catalog, ["t"])
    assert Snapshot.from_json(taken.to_json()) == taken


def test_a_large_file_is_shared_out_by_its_row_groups(tmp_path: Path) -> None:
    table = HandmadeTable(tmp_path / "t")
    table.schema(column(1, "k", "long"))
    table.commit(table.data(pa.table({"k": list(range(10_000))}), group_rows=1000))
    catalog = catalog_of(tmp_path, t=table.save())
    (file,) = catalog.state("t").snapshot.files
    assert len(file.row_groups) == 10
    assert sum(file.row_groups) == 10_000
    found, stages = run(
        catalog,
        "SELECT count(*) AS n, sum(k) AS s, count(DISTINCT k) AS d FROM t",
        tmp_path,
        FORCED,
        min_task_bytes=1 << 12,
        target_task_bytes=1 << 13,
    )
    assert found == [{"n": 10_000, "s": 49_995_000, "d": 10_000}]
    assert len(stages[0].specs) > 1


def test_planning_opens_no_data_file(tmp_path: Path) -> None:
    table = HandmadeTable(tmp_path / "t")
    table.schema(column(1, "k", "long"))
    entry = table.data(pa.table({"k": [1, 2, 3]}))
    table.commit(entry)
    table.commit(table.position_deletes({entry.path: [0]}))
    catalog = catalog_of(tmp_path, t=table.save())
    for folder in ("data", "deletes"):
        for path in (tmp_path / "t" / folder).iterdir():
            path.rename(path.with_suffix(".away"))
    info = catalog.table("t")
    assert info is not None
    assert info.stats is not None
    assert (info.stats.num_rows, info.stats.columns["k"].max_value) == (3, 3)
    assert info.stats.is_estimate  # it counts the deleted row
    assert plan_query("SELECT sum(k) AS s FROM t", catalog).stages
    with pytest.raises(AssertionError, match="'there is no such file', False"):
        rows(catalog, "SELECT k FROM t", tmp_path)
    # A filter that rules the file out does not need it.
    assert rows(catalog, "SELECT k FROM t WHERE k > 3", tmp_path) == []
