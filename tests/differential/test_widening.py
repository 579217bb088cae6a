"""Tables whose files have different columns, against what Spark reads of the same files."""

from __future__ import annotations

import math
import random
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from stagecoach.infra.catalog.catalog import load_catalog
from stagecoach.infra.engines.duckdb.engine import parquet_select
from stagecoach.infra.engines.spark.engine import _parquet_frame
from stagecoach.infra.engines.spark.errors import SPARK_ERRORS
from stagecoach.infra.formats.snapshot import take_snapshot
from stagecoach.infra.reading.data_file import DataFile
from stagecoach.infra.reading.inputs import LeafColumn, ParquetInput
from stagecoach.infra.reading.parquet import read_parquet_batches
from stagecoach.infra.reading.widening import readers
from stagecoach.planner.errors import CatalogError
from stagecoach.planner.text.type_names import ddl_type
from stagecoach.planner.types import DataType, Field, arrow_schema, parse_type
from tests.differential.inprocess import collect, rows_of
from tests.infra.formats.evolving import answers

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.slow, pytest.mark.spark]

STORED = [
    "boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "decimal(5,2)", "decimal(9,0)", "decimal(12,2)",
    "decimal(20,3)", "string", "binary", "date", "timestamp", "timestamp_ntz",
]  # fmt: skip
WANTED = [
    *STORED, "decimal(9,2)", "decimal(10,0)", "decimal(11,2)", "decimal(12,3)", "decimal(18,4)", "decimal(20,0)", "decimal(19,0)",
    "decimal(38,5)", "array<int>", "struct<a:int>",
]  # fmt: skip


def values_of(dtype: DataType) -> list[Any]:
    """Values at the ends of a type and between, and NULL."""
    match dtype.kind:
        case "boolean":
            return [True, False, None]
        case "tinyint" | "smallint" | "int" | "bigint":
            bits = {"tinyint": 7, "smallint": 15, "int": 31, "bigint": 63}[dtype.kind]
            return [-(1 << bits), (1 << bits) - 1, 0, -1, None]
        case "float" | "double":
            return [math.nan, math.inf, -math.inf, -0.0, 0.5, 1.1754943508222875e-38, None]
        case "decimal":
            most = Decimal("9" * dtype.precision).scaleb(-dtype.scale)
            return [most, -most, Decimal(0), None]
        case "string":
            return ["", "a", "ß", None]
        case "binary":
            return [b"", b"a", None]
        case "date":
            return [date(1, 1, 1), date(1582, 10, 4), date(1970, 1, 1), date(9999, 12, 31), None]
        case "timestamp":
            return [datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, tzinfo=UTC), None]
    return [datetime(1, 1, 1), datetime(2024, 2, 29, 12, 1, 2, 3), None]


@dataclass(frozen=True)
class Reading:
    """What Spark gives for a file with declared columns."""

    session: SparkSession

    def rows(self, path: str, columns: tuple[Field, ...]) -> list[Any] | None:
        ddl = ", ".join(f"`{f.name}` {ddl_type(f.dtype)}" for f in columns)
        try:
            return rows_of(collect(self.session.read.schema(ddl).parquet(path)))
        except SPARK_ERRORS:
            return None


def our_rows(path: str, columns: tuple[Field, ...], stored: DataType) -> tuple[list[Any], ...]:
    """Rows of one file, by DuckDB and by Arrow."""
    leaf = ParquetInput(
        tuple(LeafColumn(f.name, f.name, f.dtype) for f in columns),
        (
            DataFile(
                path,
                pq.read_metadata(path).num_rows,
                stored_types=tuple((f.name, str(stored)) for f in columns),
            ),
        ),
    )
    schema = arrow_schema(columns)
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        cursor = connection.cursor()
        found = cursor.sql(parquet_select(cursor, leaf)).to_arrow_table().cast(schema)
    return rows_of(found), rows_of(pa.Table.from_batches(read_parquet_batches(leaf), schema))


def test_each_pair_of_types_is_read_as_by_spark(spark: SparkSession, tmp_path: Path) -> None:
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", "UTC")
    session.conf.set("spark.sql.codegen.wholeStage", "false")
    reading = Reading(session)
    refused: dict[tuple[str, str], Any] = {}
    wrong: list[str] = []
    with ThreadPoolExecutor(4) as pool:
        for text in STORED:
            stored = parse_type(text)
            columns = tuple(Field(f"c{i}", parse_type(name)) for i, name in enumerate(WANTED))
            schema = arrow_schema(tuple(replace(c, dtype=stored) for c in columns))
            path = str(tmp_path / f"{text}.parquet")
            values = values_of(stored)
            pq.write_table(pa.table([values] * len(columns), schema=schema), path)
            accepted = tuple(c for c in columns if readers(stored, c.dtype) != "none")
            if reading.rows(path, accepted) is None:
                for column in accepted:
                    if reading.rows(path, (column,)) is None:
                        wrong.append(f"{text} as {column.dtype}: Spark refuses it")
            native = tuple(c for c in accepted if readers(stored, c.dtype) == "any")
            expected = reading.rows(path, native)
            for how, found in zip(("DuckDB", "Arrow"), our_rows(path, native, stored), strict=True):
                if found != expected:
                    wrong.append(f"{text} by {how}: {found}\nSpark: {expected}")
            for column in columns:
                # Spark decides by how a column is stored: INT32 for the smaller ones, too.
                asked = WANTED if text in ("int", "bigint") else STORED[3:8]
                near = stored.is_decimal and column.dtype.is_decimal
                if column not in accepted and (near or str(column.dtype) in asked):
                    refused[text, str(column.dtype)] = pool.submit(reading.rows, path, (column,))
        for (text, wanted), answer in refused.items():
            if answer.result() is not None:
                wrong.append(f"{text} as {wanted}: Spark reads {answer.result()}")
    assert not wrong, "\n".join(wrong)


# ---------------------------------------------------------------- histories of tables

MERGED = {
    "a": ["int"],
    "b": ["string"],
    "c": ["int"] * 5 + ["bigint"],  # which Spark refuses if both occur
    "d": ["decimal(5,2)", "decimal(9,2)", "decimal(20,2)"],
    "f": ["double"],
    "l": ["array<struct<p:bigint>>", "array<struct<q:string,p:bigint>>"],
    "m": ["map<string,struct<u:int>>", "map<string,struct<u:int,v:date>>"],
    "n": ["date"],
    "s": ["struct<x:int>", "struct<y:string,X:int>", "struct<z:array<double>>"],
    "t": ["timestamp"],
}
# The last type of each is the declared one.
DECLARED = {
    "a": ["tinyint", "smallint", "int", "bigint"],
    "b": ["string"],
    "d": ["decimal(5,2)", "decimal(9,3)", "decimal(20,4)"],
    "e": ["smallint", "int", "decimal(5,1)", "decimal(12,2)"],
    "f": ["float", "double"],
    "l": ["array<int>", "array<bigint>"],
    "m": ["map<string,struct<u:int>>", "map<string,struct<u:bigint,v:date>>"],
    "n": ["date", "timestamp_ntz"],
    "s": ["struct<x:int>", "struct<y:float,X:bigint>", "struct<x:bigint,y:double,z:timestamp_ntz>"],
    "w": ["tinyint", "int", "double"],
}


@dataclass(frozen=True)
class WrittenFile:
    """A file of a history.

    Args:
        columns: Its columns in order.
        num_rows: Its rows.
        folder: Of a partition; None for a table without.
        seed: Chooses values.
    """

    columns: tuple[Field, ...]
    num_rows: int
    folder: str | None
    seed: int


@st.composite
def histories(draw: st.DrawFn, pool: dict[str, list[str]]) -> list[WrittenFile]:
    partitioned = draw(st.booleans())
    files = []
    for _ in range(draw(st.integers(2, 5))):
        names = draw(st.permutations(sorted(pool)))[: draw(st.integers(0, 7))]
        columns = [
            Field(
                draw(st.sampled_from([name, name.upper()])),
                parse_type(draw(st.sampled_from(pool[name]))),
            )
            for name in names
        ]
        columns.insert(draw(st.integers(0, len(columns))), Field("rid", parse_type("bigint")))
        folders = ["k=1", "k=2", "k=__HIVE_DEFAULT_PARTITION__"]
        files.append(
            WrittenFile(
                columns=tuple(columns),
                num_rows=draw(st.integers(0, 5)),
                folder=draw(st.sampled_from(folders)) if partitioned else None,
                seed=draw(st.integers(0, 1 << 16)),
            )
        )
    if partitioned:  # some value must tell the type
        files[0] = replace(files[0], folder="k=1")
    return files


def value_of(dtype: DataType, rng: random.Random) -> Any:
    if rng.random() < 0.2:
        return None
    match dtype.kind:
        case "struct":
            return {f.name: value_of(f.dtype, rng) for f in dtype.fields}
        case "array":
            return [value_of(dtype.fields[0].dtype, rng) for _ in range(rng.randrange(3))]
        case "map":
            return [(key, value_of(dtype.fields[1].dtype, rng)) for key in "ab"[: rng.randrange(3)]]
    return rng.choice(values_of(dtype))


def write_history(folder: Path, files: list[WrittenFile], declared: dict[str, str]) -> None:
    for number, file in enumerate(files):
        place = folder / "t" / (file.folder or "")
        place.mkdir(parents=True, exist_ok=True)
        rng = random.Random(file.seed)
        rows = [
            {
                column.name: number * 100 + i
                if column.name == "rid"
                else value_of(column.dtype, rng)
                for column in file.columns
            }
            for i in range(file.num_rows)
        ]
        table = pa.Table.from_pylist(rows, arrow_schema(file.columns))
        pq.write_table(table, place / f"{number}.parquet", row_group_size=2)
    columns = "".join(f'      {name}: "{dtype}"\n' for name, dtype in declared.items())
    text = "tables:\n  t:\n    location: t\n" + (f"    columns:\n{columns}" if columns else "")
    (folder / "catalog.yaml").write_text(text)


def conditions_of(columns: tuple[Field, ...]) -> list[str]:
    found = []
    for column in columns:
        name = column.name
        found.append(f"{name} IS NULL")
        match column.dtype.kind:
            case "int" | "bigint":
                found += [f"{name} > 0", f"{name} = -1", f"{name} < -100000"]
            case "decimal":
                found += [f"{name} >= 99", f"{name} = 0"]
            case "double":
                found += [f"{name} > 1e300", f"{name} <= 0", f"{name} = 127"]
            case "string":
                found += [f"{name} >= 'a'", f"{name} LIKE 'a%'"]
            case "date":
                found.append(f"{name} < DATE'1582-10-15'")
            case "timestamp_ntz":
                found += [f"{name} = TIMESTAMP_NTZ'9999-12-31 00:00:00'", f"{name} < TIMESTAMP_NTZ'1500-01-01 00:00:00'"]  # fmt: skip
            case "timestamp":
                found.append(f"{name} > TIMESTAMP'2000-01-01 00:00:00'")
            case "struct" if "x" in {field.name.lower() for field in column.dtype.fields}:
                found.append(f"{name}.x > 0")
    return found


def check_history(
    spark: SparkSession, folder: Path, files: list[WrittenFile], declared: dict[str, str]
) -> None:
    """Compare each reader with Spark, for all rows and for some filters."""
    if declared and files[0].folder is not None:
        declared = {**declared, "k": "int"}
    write_history(folder, files, declared)
    catalog = load_catalog(folder / "catalog.yaml")
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", "UTC")
    try:
        if declared:
            ddl = ", ".join(f"`{n}` {ddl_type(parse_type(t))}" for n, t in declared.items())
            frame = session.read.schema(ddl).parquet(str(folder / "t"))
        else:
            frame = session.read.option("mergeSchema", "true").parquet(str(folder / "t"))
    except SPARK_ERRORS:
        with pytest.raises(CatalogError, match=r"files .*\.parquet and .*\.parquet differ: column"):
            catalog.table("t")
        return
    table = catalog.table("t")
    assert table is not None
    assert table.native_reason is None
    assert [f"{f.name}:{f.dtype}" for f in table.columns] == [
        f"{f.name}:{f.dataType.simpleString()}" for f in frame.schema.fields
    ]
    frame.createOrReplaceTempView("t")
    rng = random.Random(files[0].seed)
    asked = conditions_of(table.columns)
    asked = rng.sample(asked, min(4, len(asked)))
    names = ", ".join(field.name for field in table.columns)
    spelled = ", ".join([names, *asked])
    width = len(table.columns)
    place = [field.name for field in table.columns].index("rid")
    answer = rows_of(collect(session.sql(f"SELECT {spelled} FROM t")))
    expected = sorted(answer, key=lambda row: row[place])
    all_rows = [row[:width] for row in expected]
    spill = folder / "spill"
    for how, found in answers(catalog, f"SELECT {names} FROM t", spill).items():
        assert sorted(rows_of(found), key=lambda row: row[place]) == all_rows, how
    for number, condition in enumerate(asked):
        wanted = [row[place] for row in expected if row[width + number] is True]
        sql = f"SELECT rid FROM t WHERE {condition}"
        for how, found in answers(catalog, sql, spill).items():
            assert sorted(found.column(0).to_pylist()) == wanted, (how, condition)
    # A stage that runs on Spark reads the same files by itself.
    snapshot = take_snapshot(catalog, ["t"]).table("t")
    leaf = ParquetInput(
        tuple(LeafColumn(f"c{i}", f.name, f.dtype) for i, f in enumerate(table.columns)),
        tuple(
            file.for_task((0, file.num_rows), (("k", file.partition[0]),) if file.partition else ())
            for file in snapshot.files
        ),
    )
    by_spark = rows_of(collect(_parquet_frame(session, leaf, verify_pages=True)))
    assert sorted(by_spark, key=lambda row: row[place]) == all_rows


_SETTINGS = settings(
    max_examples=12,
    deadline=None,
    phases=[Phase.generate],  # each example asks Spark, so that shrinking takes minutes
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@_SETTINGS
@given(files=histories(MERGED))
def test_files_are_merged_as_by_spark(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, files: list[WrittenFile]
) -> None:
    check_history(spark, tmp_path_factory.mktemp("merged"), files, {})


@_SETTINGS
@given(files=histories(DECLARED))
def test_files_are_read_as_by_spark_with_a_declared_schema(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, files: list[WrittenFile]
) -> None:
    declared = {"rid": "bigint", **{name: chain[-1] for name, chain in DECLARED.items()}}
    check_history(spark, tmp_path_factory.mktemp("declared"), files, declared)


def test_what_files_store_in_different_ways_is_read_as_by_spark(
    spark: SparkSession, tmp_path: Path
) -> None:
    moments = [datetime(1700, 1, 1, tzinfo=UTC), datetime(2200, 2, 3, 4, 5, 6, 7000, UTC), None]
    prices = [Decimal("-99999.99"), Decimal("0.01"), None]
    ways: list[tuple[dict[str, pa.Array], dict[str, bool]]] = [
        ({"n": pa.array([255, 0, None], pa.uint8()), "b": pa.array([b"ab", b"\x00\xff", None], pa.binary(2)), "unit": "us"}, {}),
        ({"n": pa.array([-32768, 32767, None], pa.int16()), "b": pa.array([b"", b"abc", None]), "unit": "ms"}, {"store_decimal_as_integer": True}),
        ({"n": pa.array([1, 2, None], pa.uint8()), "b": pa.array([b"", b"", None]), "unit": "us"}, {"use_deprecated_int96_timestamps": True}),
    ]  # fmt: skip
    (tmp_path / "t").mkdir()
    for number, (columns, options) in enumerate(ways):
        instants = pa.timestamp(columns.pop("unit"), "UTC")
        table = pa.table(
            {
                "rid": pa.array([number * 10 + i for i in range(3)]),
                "at": pa.array(moments, instants),
                "p": pa.array(prices, pa.decimal128(7, 2)),
                "l": pa.array([[{"at": moment}] for moment in moments], pa.list_(pa.struct([("at", instants)]))),
                **columns,
            }
        )  # fmt: skip
        if options.get("use_deprecated_int96_timestamps"):
            table = table.drop_columns(["l"])  # which only Spark reads then
        pq.write_table(table, tmp_path / "t" / f"{number}.parquet", row_group_size=2, **options)
    (tmp_path / "catalog.yaml").write_text("tables: {t: {location: t}}")
    catalog = load_catalog(tmp_path / "catalog.yaml")
    found = catalog.table("t")
    assert found is not None and found.native_reason is None
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", "UTC")
    reader = session.read.option("mergeSchema", "true")
    reader.parquet(str(tmp_path / "t")).createOrReplaceTempView("t")
    for sql in (
        "SELECT rid, at, p, l, n, b FROM t",
        "SELECT rid FROM t WHERE at > TIMESTAMP'2200-02-03 04:05:06'",
        "SELECT rid FROM t WHERE n < 2 AND b >= X'00'",
        "SELECT rid FROM t WHERE p = 0.01 AND at IS NOT NULL",
    ):
        expected = sorted(rows_of(collect(session.sql(sql))))
        for how, rows in answers(catalog, sql, tmp_path / "spill").items():
            assert sorted(rows_of(rows)) == expected, (how, sql)
