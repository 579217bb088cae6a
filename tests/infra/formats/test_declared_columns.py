"""Tables whose columns are declared in the catalog file: with files, and before there are any."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stagecoach.infra.catalog.catalog import load_catalog
from stagecoach.infra.formats.file_pruning import pruned_files
from stagecoach.infra.formats.snapshot import take_snapshot
from stagecoach.planner.catalog import ColumnNotes, TableInfo
from stagecoach.planner.errors import CatalogError
from stagecoach.planner.options import PlannerOptions
from stagecoach.planner.plan.physical import ScanExec
from stagecoach.planner.planning import plan_query
from tests.infra.formats.evolving import answers, write_files

WIDE = """\
l: bigint
x: double
whole: {type: double}
d: "DECIMAL(14,3)"
n: decimal(12,1)
at: timestamp_ntz
s: "struct<b: array<bigint>, a: double>"
more: string"""
NARROW = pa.schema(
    [
        ("x", pa.float32()),
        ("L", pa.int32()),
        ("unread", pa.string()),
        ("whole", pa.int16()),
        ("d", pa.decimal128(9, 2)),
        ("n", pa.int32()),
        ("at", pa.date32()),
        ("s", pa.struct([("A", pa.float32()), ("b", pa.list_(pa.int32()))])),
    ]
)
FULL = pa.schema(
    [
        ("l", pa.int64()),
        ("x", pa.float64()),
        ("whole", pa.float64()),
        ("d", pa.decimal128(14, 3)),
        ("n", pa.decimal128(12, 1)),
        ("at", pa.timestamp("us")),
        ("s", pa.struct([("b", pa.list_(pa.int64())), ("a", pa.float64())])),
        ("more", pa.string()),
    ]
)
NARROW_ROWS = [
    (0.5, -(1 << 31), "-", -32768, Decimal("-9999999.99"), (1 << 31) - 1, dt.date(1, 1, 1), {"A": 1.5, "b": [1, None]}),
    (None,) * 8,
    (float("nan"), 7, "-", 3, Decimal("0.01"), -7, dt.date(9999, 12, 31), {"A": None, "b": None}),
]  # fmt: skip
FULL_ROWS = [
    (1 << 40, 1e300, 0.25, Decimal("12345678901.125"), Decimal("12345678901.5"), dt.datetime(2024, 1, 1, 1), {"b": [1 << 40], "a": 0.5}, "m"),
]  # fmt: skip
EXPECTED = [
    (-(1 << 31), 0.5, -32768.0, Decimal("-9999999.990"), Decimal("2147483647.0"), dt.datetime(1, 1, 1), {"b": [1, None], "a": 1.5}, None),
    (None,) * 8,
    (7, float("nan"), 3.0, Decimal("0.010"), Decimal("-7.0"), dt.datetime(9999, 12, 31), {"b": None, "a": None}, None),
    *FULL_ROWS,
]  # fmt: skip


def table_of(schema: pa.Schema, rows: list[tuple[object, ...]]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema)


def catalog_text(folder: Path, columns: str) -> TableInfo | None:
    lines = "".join(f"      {line}\n" for line in columns.splitlines())
    text = f"tables:\n  t:\n    location: t\n    columns:\n{lines}"
    (folder / "catalog.yaml").write_text(text)
    return load_catalog(folder / "catalog.yaml").table("t")


def test_narrower_columns_are_read_as_the_declared_ones(tmp_path: Path) -> None:
    catalog = write_files(
        tmp_path, table_of(NARROW, NARROW_ROWS), table_of(FULL, FULL_ROWS), columns=WIDE
    )
    table = catalog.table("t")
    assert table is not None and table.native_reason is None and table.stats is not None
    assert [field.name for field in table.columns] == ["l", "x", "whole", "d", "n", "at", "s", "more"]  # fmt: skip
    assert table.stats.columns["l"].min_value == -(1 << 31)
    assert table.stats.columns["at"].max_value == 253402214400000000
    assert table.stats.columns["more"].null_count == 3
    sql = "SELECT l, x, whole, d, n, at, s, more FROM t"
    for how, rows in answers(catalog, sql, tmp_path / "spill").items():
        found = [tuple(row.values()) for row in rows.to_pylist()]
        assert repr(found) == repr(EXPECTED), how


@pytest.mark.parametrize(
    ("condition", "kept", "count"),
    [
        ("l > 100", "1", 1),
        ("l = 7", "0", 1),
        ("x > 1e308", "01", 1),  # NaN, which no bound tells of
        ("d >= 1000", "1", 1),
        ("n < 0", "0", 1),
        ("at < TIMESTAMP_NTZ'0001-01-01 00:00:01'", "0", 1),
        ("at = TIMESTAMP_NTZ'2024-01-01 01:00:00'", "01", 1),
        ("at = TIMESTAMP_NTZ'9999-12-31 00:00:00'", "0", 1),
        ("more IS NOT NULL", "1", 1),
    ],
)
def test_bounds_are_those_of_the_declared_types(
    tmp_path: Path, condition: str, kept: str, count: int
) -> None:
    catalog = write_files(
        tmp_path, table_of(NARROW, NARROW_ROWS), table_of(FULL, FULL_ROWS), columns=WIDE, rows=1
    )
    sql = f"SELECT l FROM t WHERE {condition}"
    for how, rows in answers(catalog, sql, tmp_path / "spill").items():
        assert rows.num_rows == count, how
    (stage,) = plan_query(sql, catalog, PlannerOptions()).stages
    (leaf,) = stage.leaves
    assert isinstance(leaf, ScanExec)
    table = take_snapshot(catalog, ["t"]).table("t")
    files = pruned_files(stage.fragment, leaf, table, {}, "UTC")
    assert "".join(Path(file.uri).stem for file in files) == kept


def test_queries_are_planned_before_there_is_a_file(tmp_path: Path) -> None:
    columns = "id: bigint not null\nname: {type: string, comment: ' of whom '}"
    for state in ("no folder", "empty folder"):
        if state == "empty folder":
            (tmp_path / "t").mkdir()
        table = catalog_text(tmp_path, columns)
        assert table is not None and table.is_declared and table.stats is None
        assert table.notes == {
            "id": ColumnNotes("", nullable=False),
            "name": ColumnNotes("of whom"),
        }
        catalog = load_catalog(tmp_path / "catalog.yaml")
        graph = plan_query("SELECT name, count(*) AS n FROM t GROUP BY name", catalog, PlannerOptions())  # fmt: skip
        assert [(f.name, str(f.dtype)) for f in graph.result] == [("name", "string"), ("n", "bigint")]  # fmt: skip
        with pytest.raises(CatalogError, match=r"table 't': .*/t (does not exist|has no data)"):
            take_snapshot(catalog, ["t"])


def test_an_undeclared_table_without_files_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "catalog.yaml").write_text("tables: {t: {location: t}}\n")
    with pytest.raises(CatalogError, match=r"table 't': .*/t does not exist"):
        load_catalog(tmp_path / "catalog.yaml").table("t")


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ("[id]", r"'columns' must map names of columns to their types, .* not \['id'\]"),
        ("{}", "'columns' must map names"),
        ("{id: 5}", "column 'id': 'type' must name a type of Spark, such as BIGINT, not 5"),
        ("{id: nonsense}", "column 'id': 'nonsense' is not a type of a column"),
        ("{id: void}", "column 'id': files cannot be read as columns of type void"),
        ("{id: {typ: int}}", r"column 'id': unknown key 'typ' \(known keys: type, nullable, co"),
        ("{id: {type: int, nullable: 1}}", "'nullable' must be true or false, not 1"),
        ("{id: {type: int not null, nullable: true}}", "says NOT NULL and 'nullable' is true"),
        ("{id: {type: int, comment: 1}}", "'comment' must be text, not 1"),
        ("{id: int, ID: int}", "columns 'id' and 'ID' have the same name"),
        ("{1: int}", "column name 1 is not text"),
    ],
)
def test_a_declaration_that_is_wrong(tmp_path: Path, columns: str, message: str) -> None:
    (tmp_path / "catalog.yaml").write_text(f"tables: {{t: {{location: t, columns: {columns}}}}}\n")
    with pytest.raises(CatalogError, match=rf"table 't'.*{message}"):
        load_catalog(tmp_path / "catalog.yaml")


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        ("x: string", r"0\.parquet: column 'x' is int in the file and string in the table"),
        ("x: float", r"0\.parquet: column 'x' is int in the file and float in the table"),
        ("x: decimal(10,2)", "as which Spark does not read it"),
        ("x: int not null", r"column 'x' is declared NOT NULL and has NULLs in .*0\.parquet"),
        ("y: int not null", r"column 'y' is declared NOT NULL and is missing in .*0\.parquet"),
    ],
)
def test_files_that_do_not_fit_the_declaration(tmp_path: Path, declared: str, message: str) -> None:
    table = pa.table({"x": pa.array([1, None], pa.int32())})
    with pytest.raises(CatalogError, match=f"table 't': .*{message}"):
        write_files(tmp_path, table, columns=declared).table("t")


@pytest.mark.parametrize("declared", ["int", "bigint", "double", "date"])
def test_a_decimal_is_not_read_as_its_digits(tmp_path: Path, declared: str) -> None:
    write_files(tmp_path, pa.table({"x": [1]}), columns=f"x: {declared}")
    table = pa.table({"x": pa.array([Decimal("1.00")], pa.decimal128(5, 2))})
    pq.write_table(table, tmp_path / "t" / "0.parquet", store_decimal_as_integer=True)
    with pytest.raises(CatalogError, match=rf"column 'x' is decimal\(5,2\) .* and {declared} in"):
        load_catalog(tmp_path / "catalog.yaml").table("t")


def test_what_only_spark_converts_is_read_by_spark(tmp_path: Path) -> None:
    table = pa.table({"x": pa.array([300], pa.int32())})
    found = write_files(tmp_path, table, columns="x: tinyint").table("t")
    assert found is not None
    assert found.native_reason == "column 'x' is int in a file, which Spark reads as tinyint"


def partitioned(folder: Path, *values: str) -> None:
    for number, value in enumerate(values):
        path = folder / "t" / f"k={value}"
        path.mkdir(parents=True)
        pq.write_table(pa.table({"v": [number]}), path / "a.parquet")


@pytest.mark.parametrize(
    ("dtype", "values", "expected"),
    [
        ("string", ["01", "x"], ["01", "x"]),
        ("bigint", ["01", "2"], [1, 2]),
        ("double", ["1", "2.5"], [1.0, 2.5]),
        ("timestamp_ntz", ["2024-01-01"], "partition column 'K' is declared as timestamp_ntz"),
        ("int", ["3000000000"], "'3000000000' of partition column 'K' is not a valid int"),
        ("date", ["2024-02-30"], "'2024-02-30' of partition column 'K' is not a valid date"),
        ("date", ["__HIVE_DEFAULT_PARTITION__"], [None]),
    ],
)
def test_partition_columns_have_the_declared_type(
    tmp_path: Path, dtype: str, values: list[str], expected: list[object] | str
) -> None:
    partitioned(tmp_path, *values)
    columns = f"v: bigint\nK: {dtype}"
    if isinstance(expected, str):
        with pytest.raises(CatalogError, match=expected):
            catalog_text(tmp_path, columns)
        return
    table = catalog_text(tmp_path, columns)
    assert table is not None and [f.name for f in table.columns] == ["v", "K"]
    catalog = load_catalog(tmp_path / "catalog.yaml")
    for how, rows in answers(catalog, "SELECT K FROM t ORDER BY v", tmp_path / "spill").items():
        assert rows.column(0).to_pylist() == expected, how


def test_partition_columns_stand_last(tmp_path: Path) -> None:
    partitioned(tmp_path, "1")
    with pytest.raises(CatalogError, match=r"partition columns are \(k\); declare them last"):
        catalog_text(tmp_path, "k: int\nv: bigint")
