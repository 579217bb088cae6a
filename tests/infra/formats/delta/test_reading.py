"""Columns, partitions, statistics and features of Delta tables."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from stagecoach.infra.formats.snapshot import Snapshot, take_snapshot
from stagecoach.planner.errors import CatalogError
from stagecoach.planner.planning import plan_query
from tests.infra.formats.delta.handmade import HandmadeTable, catalog_of, field, struct
from tests.infra.formats.iceberg.answers import FORCED, as_set, files_read, rows, run

UTC = ZoneInfo("UTC")


def assert_rows(folder: Path, table: HandmadeTable, expected: list[dict[str, Any]]) -> None:
    catalog = catalog_of(folder, t=table.folder)
    assert as_set(rows(catalog, "SELECT * FROM t", folder)) == as_set(expected)


def test_all_types_as_deltalake_writes_them(tmp_path: Path) -> None:
    start = dt.datetime(2024, 1, 1, 1, 2, 3, 4567)
    kinds = pa.schema([
        ("b", pa.bool_()), ("i1", pa.int8()), ("i2", pa.int16()), ("i4", pa.int32()), ("i8", pa.int64()),
        ("f", pa.float32()), ("x", pa.float64()), ("d", pa.decimal128(20, 3)), ("s", pa.string()), ("y", pa.binary()),
        ("day", pa.date32()), ("t", pa.timestamp("us", "UTC")), ("n", pa.timestamp("us")),
        ("st", pa.struct([("a", pa.int32()), ("l", pa.list_(pa.string()))])), ("m", pa.map_(pa.string(), pa.int32())),
    ])  # fmt: skip
    given: list[dict[str, Any]] = [
        {"b": True, "i1": -128, "i2": 3, "i4": 1 << 30, "i8": -(1 << 62), "f": 0.5, "x": float("nan"), "d": Decimal("-1.500"), "s": "it's ü", "y": b"\x00\xff",
         "day": dt.date(1, 1, 1), "t": start.replace(tzinfo=UTC), "n": start, "st": {"a": 1, "l": ["x", None]}, "m": [("k", 1), ("", None)]},
        {"b": False, "i1": 1, "i2": 3, "i4": 2, "i8": 2, "f": float("inf"), "x": -0.0, "d": Decimal("99999999999999999.999"), "s": "", "y": b"",
         "day": dt.date(9999, 12, 31), "t": dt.datetime(1500, 1, 1, tzinfo=UTC), "n": dt.datetime(1900, 1, 1), "st": {"a": None, "l": []}, "m": []},
        dict.fromkeys(kinds.names),
    ]  # fmt: skip
    write_deltalake(tmp_path / "t", pa.Table.from_pylist(given, kinds))
    catalog = catalog_of(tmp_path, t=tmp_path / "t")
    assert as_set(rows(catalog, "SELECT * FROM t", tmp_path)) == as_set(given)
    state = catalog.state("t")
    kinds_of = {f.name: str(f.dtype) for f in state.info.columns}
    assert (kinds_of["t"], kinds_of["n"], kinds_of["i1"], kinds_of["d"]) == ("timestamp", "timestamp_ntz", "tinyint", "decimal(20,3)")  # fmt: skip
    assert Snapshot.from_json(take_snapshot(catalog, ["t"]).to_json()).table("t") == state.snapshot


def test_values_of_partitions(tmp_path: Path) -> None:
    texts = ["a", "it's", "b/ %=ü#?&", "'; --", "__HIVE_DEFAULT_PARTITION__x", "ü\\", "\t\n", None]
    start = dt.datetime(2024, 1, 1, 1, 2, 3, 4567)
    given = [
        {
            "k": k, "s": text, "i": None if k == 3 else -k, "day": dt.date(2024, 1, 1 + k), "d": (Decimal(k) / 4).quantize(Decimal("0.01")),
            "t": (start + dt.timedelta(hours=k)).replace(tzinfo=UTC), "n": start, "b": k % 2 == 0, "x": [0.5, float("nan"), None][k % 3],
        }
        for k, text in enumerate(texts)
    ]  # fmt: skip
    kinds = pa.schema([("k", pa.int64()), ("s", pa.string()), ("i", pa.int32()), ("day", pa.date32()), ("d", pa.decimal128(10, 2)), ("t", pa.timestamp("us", "UTC")), ("n", pa.timestamp("us")), ("b", pa.bool_()), ("x", pa.float64())])  # fmt: skip
    write_deltalake(tmp_path / "t", pa.Table.from_pylist(given, kinds), partition_by=kinds.names[1:])  # fmt: skip
    catalog = catalog_of(tmp_path, t=tmp_path / "t")
    assert as_set(rows(catalog, "SELECT * FROM t", tmp_path)) == as_set(given)
    for where, passes in (
        ("s = 'b/ %=ü#?&'", [2]),
        ("s IS NULL", [7]),
        ("day BETWEEN DATE'2024-01-03' AND DATE'2024-01-04'", [2, 3]),
        ("i = -5", [5]),
        ("d >= 1.5", [6, 7]),
        ("t = TIMESTAMP'2024-01-01 03:02:03.004567Z'", [2]),
        ("NOT b AND x IS NOT NULL", [1, 3, 7]),
    ):
        found, stages = run(catalog, f"SELECT k FROM t WHERE {where} ORDER BY k", tmp_path)
        assert [row["k"] for row in found] == passes, where
        if "x" not in where:
            assert files_read(stages) == len(passes), where
    found, stages = run(catalog, "SELECT s, count(*) AS n FROM t GROUP BY s", tmp_path, FORCED)
    assert as_set(found) == as_set([{"s": text, "n": 1} for text in texts])


def test_an_empty_partition_value_is_null(tmp_path: Path) -> None:
    table = HandmadeTable(tmp_path / "t")
    table.schema(field("k", "long"), field("p", "string"), field("q", "integer"), partitioned=["p", "q"])  # fmt: skip
    one = pa.table({"k": [1]})
    table.commit(table.data(one, {"p": "", "q": ""}), table.data(one, {"p": None, "q": "07"}))
    assert_rows(tmp_path, table, [{"k": 1, "p": None, "q": None}, {"k": 1, "p": None, "q": 7}])


@pytest.mark.parametrize("mode", ["name", "id"])
def test_columns_go_by_their_mapping(mode: str, tmp_path: Path) -> None:
    table = HandmadeTable(tmp_path / "t", configuration={"delta.columnMapping.mode": mode})
    inner = [field("x", "integer", id_=4, physical="c-4"), field("y", "string", id_=5, physical="c-5")]  # fmt: skip
    array = {"type": "array", "elementType": struct(field("p", "integer", id_=7, physical="c-7")), "containsNull": True}  # fmt: skip
    mapped = {"type": "map", "keyType": "string", "valueType": struct(field("v", "float", id_=9, physical="c-9")), "valueContainsNull": True}  # fmt: skip
    table.schema(
        field("k", "integer", id_=1, physical="c-1"),
        field("a", "string", id_=2, physical="c-2"),
        field("s", struct(*inner), id_=3, physical="c-3"),
        field("l", array, id_=6, physical="c-6"),
        field("m", mapped, id_=8, physical="c-8"),
        field("day", "date", id_=10, physical="c-10"),
        partitioned=["day"],
    )

    def named(name: str, kind: pa.DataType, number: int) -> pa.Field:
        return pa.field(name, kind, metadata={"PARQUET:field_id": str(number)})

    # In id mode files may have other names, in name mode ids do not count.
    prefix, shift = ("c-", 100) if mode == "name" else ("other", 0)

    def column(number: int, kind: pa.DataType) -> pa.Field:
        return named(f"{prefix}{number}", kind, number + shift)

    kinds = pa.schema([
        column(1, pa.int32()), column(2, pa.string()),
        column(3, pa.struct([column(4, pa.int32()), column(5, pa.string())])),
        column(6, pa.list_(pa.field("element", pa.struct([column(7, pa.int32())])))),
        column(8, pa.map_(pa.string(), pa.struct([column(9, pa.float32())]))),
    ])  # fmt: skip
    p = prefix
    given = [
        {p + "1": 1, p + "2": "a", p + "3": {p + "4": 1, p + "5": "u"}, p + "6": [{p + "7": 1}, None], p + "8": [("k", {p + "9": 0.5})]},
        {p + "1": 2, p + "2": None, p + "3": None, p + "6": None, p + "8": None},
        {p + "1": 3, p + "2": "c", p + "3": {p + "4": None, p + "5": None}, p + "6": [], p + "8": []},
    ]  # fmt: skip
    add = table.data(pa.Table.from_pylist(given, kinds), {"c-10": "2024-02-29"}, stats=False)
    add["stats"] = '{"numRecords": 3, "minValues": {"c-1": 1, "c-2": "a"}, "maxValues": {"c-1": 3, "c-2": "c"}, "nullCount": {"c-1": 0, "c-2": 1}}'  # fmt: skip
    table.commit(add)
    day = dt.date(2024, 2, 29)
    assert_rows(tmp_path, table, [
        {"k": 1, "a": "a", "s": {"x": 1, "y": "u"}, "l": [{"p": 1}, None], "m": [("k", {"v": 0.5})], "day": day},
        {"k": 2, "a": None, "s": None, "l": None, "m": None, "day": day},
        {"k": 3, "a": "c", "s": {"x": None, "y": None}, "l": [], "m": [], "day": day},
    ])  # fmt: skip
    # Renamed, reordered, dropped and added; `x` and `y` change places.
    swapped = [field("x", "string", id_=5, physical="c-5"), field("y", "integer", id_=4, physical="c-4"), field("z", "long", id_=11, physical="c-11")]  # fmt: skip
    table.schema(
        field("a", "integer", id_=1, physical="c-1"),
        field("k", "string", id_=2, physical="c-2"),
        field("s", struct(*swapped), id_=3, physical="c-3"),
        field("date", "date", id_=10, physical="c-10"),
        field("new", "long", id_=12, physical="c-12"),
        partitioned=["date"],
    )
    table.commit()
    assert_rows(tmp_path, table, [
        {"a": 1, "k": "a", "s": {"x": "u", "y": 1, "z": None}, "date": day, "new": None},
        {"a": 2, "k": None, "s": None, "date": day, "new": None},
        {"a": 3, "k": "c", "s": {"x": None, "y": None, "z": None}, "date": day, "new": None},
    ])  # fmt: skip
    catalog = catalog_of(tmp_path, t=table.folder)
    found, stages = run(catalog, "SELECT a FROM t WHERE k > 'b'", tmp_path)
    assert (found, files_read(stages)) == ([{"a": 3}], 1)
    for where in ("k > 'd'", "a > 3", "date > DATE'2024-03-01'"):
        found, stages = run(catalog, f"SELECT a FROM t WHERE {where}", tmp_path)
        assert (found, files_read(stages)) == ([], 0)


def test_files_without_ids_are_refused_where_ids_count(tmp_path: Path) -> None:
    table = HandmadeTable(tmp_path / "t", configuration={"delta.columnMapping.mode": "id"})
    table.schema(field("k", "long", id_=1, physical="c-1"))
    table.commit(table.data(pa.table({"c-1": [1]})))
    with pytest.raises(AssertionError, match="no field ids"):
        rows(catalog_of(tmp_path, t=table.folder), "SELECT k FROM t", tmp_path)


def test_columns_that_are_added_are_null_in_older_files(tmp_path: Path) -> None:
    where = tmp_path / "t"
    write_deltalake(where, pa.table({"k": [1, 2], "s": [{"a": 1}, None]}))
    more = pa.table({"k": [3], "s": [{"a": 1, "b": "x"}], "new": ["y"]})
    write_deltalake(where, more, mode="append", schema_mode="merge")
    catalog = catalog_of(tmp_path, t=where)
    assert as_set(rows(catalog, "SELECT * FROM t", tmp_path)) == as_set([
        {"k": 1, "s": {"a": 1, "b": None}, "new": None},
        {"k": 2, "s": None, "new": None},
        {"k": 3, "s": {"a": 1, "b": "x"}, "new": "y"},
    ])  # fmt: skip
    assert rows(catalog, "SELECT k FROM t WHERE new IS NULL ORDER BY k", tmp_path) == [{"k": 1}, {"k": 2}]  # fmt: skip


def test_the_case_of_names_in_files_does_not_matter(tmp_path: Path) -> None:
    # CONVERT TO DELTA takes files as they are; Spark reads columns by names in any case.
    table = HandmadeTable(tmp_path / "t")
    table.schema(field("Id", "long"), field("s", struct(field("Aa", "long"), field("b", "long"))))
    table.commit(
        table.data(pa.table({"Id": [1], "s": [{"Aa": 10, "b": 100}]})),
        table.data(pa.table({"S": [{"B": 200, "aA": 20}], "ID": [2]})),
        table.data(pa.table({"id": [0], "Id": [3], "s": [{"aa": 0, "Aa": 30}]})),
    )
    assert_rows(tmp_path, table, [
        {"Id": 1, "s": {"Aa": 10, "b": 100}},
        {"Id": 2, "s": {"Aa": 20, "b": 200}},
        {"Id": 3, "s": {"Aa": 30, "b": None}},
    ])  # fmt: skip
    catalog = catalog_of(tmp_path, t=table.folder)
    assert rows(catalog, "SELECT id FROM t WHERE id = 2 AND s.aa > 10", tmp_path) == [{"id": 2}]


def test_types_that_were_widened(tmp_path: Path) -> None:
    table = HandmadeTable(tmp_path / "t", ["typeWidening", "timestampNtz"])
    kinds = {"a": ("integer", "long"), "b": ("float", "double"), "c": ("date", "timestamp_ntz"), "d": ("decimal(5,2)", "decimal(12,4)"), "e": ("byte", "double"), "f": ("short", "decimal(10,0)")}  # fmt: skip
    table.schema(*(field(name, old) for name, (old, _) in kinds.items()))
    old = pa.table({
        "a": pa.array([1, None], pa.int32()), "b": pa.array([0.1, None], pa.float32()), "c": pa.array([dt.date(2024, 1, 1), None]),
        "d": pa.array([Decimal("1.25"), None], pa.decimal128(5, 2)), "e": pa.array([-3, None], pa.int8()), "f": pa.array([7, None], pa.int16()),
    })  # fmt: skip
    table.commit(table.data(old))
    table.schema(*(field(name, new, **{"delta.typeChanges": [{"fromType": was, "toType": new}]}) for name, (was, new) in kinds.items()))  # fmt: skip
    moment = dt.datetime(2024, 5, 1, 12)
    new = {"a": 1 << 40, "b": 0.1, "c": moment, "d": Decimal("12345678.1234"), "e": 0.5, "f": Decimal(1 << 30)}  # fmt: skip
    schema = pa.schema([("a", pa.int64()), ("b", pa.float64()), ("c", pa.timestamp("us")), ("d", pa.decimal128(12, 4)), ("e", pa.float64()), ("f", pa.decimal128(10, 0))])  # fmt: skip
    table.commit(table.data(pa.Table.from_pylist([new], schema)))
    first = {"a": 1, "b": 0.10000000149011612, "c": dt.datetime(2024, 1, 1), "d": Decimal("1.2500"), "e": -3.0, "f": Decimal(7)}  # fmt: skip
    assert_rows(tmp_path, table, [first, dict.fromkeys(kinds), new])
    catalog = catalog_of(tmp_path, t=table.folder)
    for where, value in (("c < TIMESTAMP_NTZ'2024-02-01'", 1), ("f > 100", 1 << 40), ("d < 2", 1)):
        found, stages = run(catalog, f"SELECT a FROM t WHERE {where}", tmp_path)
        assert (found, files_read(stages)) == ([{"a": value}], 1), where


def test_bounds_of_times_are_cut_down_to_milliseconds(tmp_path: Path) -> None:
    moments = [dt.datetime(2024, 1, 1, 0, 0, 0, 999_999), dt.datetime(1960, 1, 1, 0, 0, 0, 999_999)]
    for name, zone in (("utc", UTC), ("plain", None)):
        table = HandmadeTable(tmp_path / name, ["timestampNtz"])
        table.schema(field("at", "timestamp" if zone else "timestamp_ntz"))
        kind = pa.timestamp("us", "UTC" if zone else None)
        for moment in moments:
            values = pa.array([moment.replace(tzinfo=zone)], kind)
            table.commit(table.data(pa.table({"at": values})))
        catalog = catalog_of(tmp_path, t=table.folder)
        literal = "TIMESTAMP'{}Z'" if zone else "TIMESTAMP_NTZ'{}'"
        for moment in moments:
            sql = f"SELECT count(*) AS n FROM t WHERE at >= {literal.format(moment)} AND at <= {literal.format(moment)}"  # fmt: skip
            found, stages = run(catalog, sql, tmp_path)
            assert (found, files_read(stages)) == ([{"n": 1}], 1)


def test_files_without_statistics_are_counted_by_their_footers(tmp_path: Path) -> None:
    table = HandmadeTable(tmp_path / "t")
    table.schema(field("k", "long"))
    table.commit(
        table.data(pa.table({"k": [1, 2, 3]}), stats=False), table.data(pa.table({"k": [9]}))
    )
    catalog = catalog_of(tmp_path, t=table.folder)
    assert catalog.state("t").info.stats.num_rows == 4
    assert rows(catalog, "SELECT k FROM t WHERE k > 2 ORDER BY k", tmp_path) == [{"k": 3}, {"k": 9}]


def test_planning_opens_no_data_file(tmp_path: Path) -> None:
    table = HandmadeTable(tmp_path / "t", ["deletionVectors"])
    table.schema(field("k", "long"), field("s", "string"))
    adds = [table.data(pa.table({"k": [i, i + 1], "s": ["a", None]})) for i in (1, 11)]
    table.commit(*adds)
    table.delete(adds[0], [0])
    for path in [*table.folder.glob("*.parquet"), *table.folder.glob("*.bin")]:
        path.unlink()
    catalog = catalog_of(tmp_path, t=table.folder)
    graph = plan_query("SELECT s, sum(k) FROM t WHERE k > 5 GROUP BY s", catalog)
    assert graph.stages
    stats = catalog.state("t").info.stats.columns["k"]
    assert (stats.min_value, stats.max_value, stats.null_count) == (1, 12, 0)


def test_files_at_odd_places(tmp_path: Path) -> None:
    names = ("filename", "it's", "SELECT", "Ü x")
    table = HandmadeTable(tmp_path / "a #'ü {x}")
    table.schema(*(field(name, "long") for name in names))
    one = table.data(pa.table({n: [i] for i, n in enumerate(names)}), name="x y%/p=a%2Fb/f#1 ?.parquet")  # fmt: skip
    other = HandmadeTable(tmp_path / "other")
    outside = other.data(pa.table({n: [i + 10] for i, n in enumerate(names)}), name="ü%.parquet")
    outside["path"] = f"{other.folder.as_uri()}/{outside['path']}"
    table.commit(one, outside)
    assert_rows(tmp_path, table, [{n: i + m for i, n in enumerate(names)} for m in (0, 10)])


@pytest.mark.parametrize(
    ("features", "fields", "problem"),
    [
        (["variantType"], [field("v", "variant")], r"table 't': .* needs the Delta reader feature 'variantType', which is not supported"),
        (["deletionVectors", "fromMars"], [field("k", "long")], "Delta reader feature 'fromMars', which is not supported"),
        (["catalogManaged"], [field("k", "long")], "Delta reader feature 'catalogManaged', which is not"),
        ([], [field("a", "long"), field("A", "long")], "Duplicate field name .case-insensitive.: 'A'$"),
        ([], [field("s", "string", __COLLATIONS={"s": "spark.UTF8_LCASE"})], "column 's' has a collation"),
        ([], [field("s", struct(field("v", "void")))], "column 's.v' is of Delta's type void"),
    ],
)  # fmt: skip
def test_what_is_not_read_is_refused_by_name(
    features: list[str], fields: list[Any], problem: str, tmp_path: Path
) -> None:
    table = HandmadeTable(tmp_path / "t", features)
    table.schema(*fields)
    table.commit()
    with pytest.raises(CatalogError, match=problem):
        plan_query("SELECT * FROM t", catalog_of(tmp_path, t=table.folder))


def test_places_that_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CatalogError, match=r"table 't': .*none has no Delta log"):
        plan_query("SELECT * FROM t", catalog_of(tmp_path, t=tmp_path / "none"))
    with pytest.raises(CatalogError, match=r"read from local folders and from s3://, not from gs"):
        plan_query("SELECT * FROM t", catalog_of(tmp_path, t="gs://bucket/t"))
    with pytest.raises(CatalogError, match=r"opens no table with '\^' in its path"):
        plan_query("SELECT * FROM t", catalog_of(tmp_path, t=tmp_path / "a^b"))
    with pytest.raises(CatalogError, match="opens no table with '%' in its path"):
        plan_query("SELECT * FROM t", catalog_of(tmp_path, t=tmp_path / "a%20b"))
    with pytest.raises(CatalogError, match="one folder of its own, not a pattern"):
        catalog_of(tmp_path, t=tmp_path / "a*")
    table = HandmadeTable(tmp_path / "t")
    table.schema(field("k", "long"), field("p", "binary"), partitioned=["p"])
    table.commit()
    with pytest.raises(CatalogError, match="partition column 'p' is of type binary"):
        plan_query("SELECT * FROM t", catalog_of(tmp_path, t=table.folder))


def test_the_legacy_calendar_is_refused(tmp_path: Path) -> None:
    for key, value in (("org.apache.spark.legacyDateTime", ""), ("org.apache.spark.version", "2.4.8")):  # fmt: skip
        table = HandmadeTable(tmp_path / key)
        table.schema(field("k", "long"), field("day", "date"))
        data = pa.table({"k": [1], "day": [dt.date(1500, 1, 1)]})
        table.commit(table.data(data.replace_schema_metadata({key: value})))
        catalog = catalog_of(tmp_path, t=table.folder)
        assert rows(catalog, "SELECT k FROM t", tmp_path) == [{"k": 1}]
        with pytest.raises(AssertionError, match=r"part-.*\(Julian\) calendar, which are not read"):
            rows(catalog, "SELECT day FROM t", tmp_path)


def test_comments_and_an_empty_table(tmp_path: Path) -> None:
    table = HandmadeTable(tmp_path / "t")
    table.schema(field("k", "long", nullable=False, comment="the key"), field("s", "string"))
    table.commit()
    catalog = catalog_of(tmp_path, t=table.folder)
    assert rows(catalog, "SELECT count(*) AS n, max(s) AS s FROM t", tmp_path) == [{"n": 0, "s": None}]  # fmt: skip
    notes = catalog.state("t").info.notes
    assert {n: (note.comment, note.nullable) for n, note in notes.items()} == {"k": ("the key", False)}  # fmt: skip


def test_a_large_file_is_shared_by_tasks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from stagecoach.infra.formats.delta import state

    monkeypatch.setattr(state, "_PIECE_BYTES", 1 << 12)
    table = HandmadeTable(tmp_path / "t", ["deletionVectors"])
    table.schema(field("k", "long"))
    add = table.data(pa.table({"k": list(range(10_000))}), group_rows=1000)
    table.commit(add)
    table.delete(add, [0, 999, 1000, 5500, 9999])
    catalog = catalog_of(tmp_path, t=table.folder)
    found, stages = run(catalog, "SELECT count(*) AS n, sum(k) AS s FROM t", tmp_path, FORCED, min_task_bytes=1 << 12, target_task_bytes=1 << 13)  # fmt: skip
    assert found == [{"n": 9995, "s": 49_995_000 - 999 - 1000 - 5500 - 9999}]
    assert len(stages[0].specs) > 1


def test_the_observed_version_is_that_of_the_rows(tmp_path: Path) -> None:
    where = tmp_path / "t"
    for i in range(3):
        write_deltalake(where, pa.table({"k": [i]}), mode="append")
    catalog = catalog_of(tmp_path, t=where)
    before = catalog.list_files("t")
    table = DeltaTable(where)
    table.optimize.compact()
    table.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
    assert DeltaTable(where).version() > 2
    assert catalog.list_files("t") == before
    table = DeltaTable(where)
    table.delete("k = 1")
    after = catalog.list_files("t")
    assert after != before
    assert rows(catalog, "SELECT k FROM t ORDER BY k", tmp_path) == [{"k": 0}, {"k": 2}]
