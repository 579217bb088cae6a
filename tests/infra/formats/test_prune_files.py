"""Files that their footers rule out are not read, and are no part of a stage's identity."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stagecoach.infra.catalog.catalog import FileCatalog, load_catalog
from stagecoach.infra.formats.file_pruning import pruned_files
from stagecoach.infra.formats.snapshot import Snapshot, take_snapshot
from stagecoach.infra.pruning.predicates import may_hold
from stagecoach.infra.reading.row_bounds import Bounds, column_bounds
from stagecoach.infra.runtime.planning.fingerprint import stage_fingerprints
from stagecoach.planner.options import PlannerOptions
from stagecoach.planner.plan.expressions import Literal
from stagecoach.planner.plan.physical import ScanExec
from stagecoach.planner.plan.stages import ParameterSpec, StageGraph
from stagecoach.planner.planning import plan_query
from stagecoach.planner.types import DATE, INT, decimal
from tests.infra.runtime.test_stage import Project

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from stagecoach.infra.config.settings import EngineSettings

START = dt.date(2024, 1, 1)
SCHEMA = pa.schema(
    [("id", pa.int64()), ("small", pa.int8()), ("day", pa.date32()), ("at", pa.timestamp("us", "UTC")), ("local", pa.timestamp("ms")), ("name", pa.string()), ("price", pa.decimal128(20, 2)), ("wide", pa.decimal128(38, 4)), ("ratio", pa.float64()), ("flag", pa.bool_()), ("gone", pa.int32())]
)  # fmt: skip


def rows_of_file(number: int) -> list[dict[str, Any]]:
    """Ten rows of a day; file 3 has NULLs beside values, file 4 nothing but NULLs."""
    rows = []
    for i in range(10):
        value = number * 10 + i
        moment = dt.datetime(2024, 1, 1 + number, i)
        row = {"id": value, "small": value, "day": START + dt.timedelta(number), "at": moment.replace(tzinfo=dt.UTC), "local": moment, "name": "abcdef"[number] + "ß" * i, "price": Decimal(value) / 4, "wide": Decimal("123456789012345678901234.5000") + number, "ratio": float("nan") if i == 9 else float(value), "flag": number % 2 == 0}  # fmt: skip
        rows.append({} if number == 4 or (number == 3 and i % 2) else row)
    return rows


def write(folder: Path, numbers: list[int]) -> FileCatalog:
    (folder / "t").mkdir(exist_ok=True)
    for number in numbers:
        table = pa.Table.from_pylist(rows_of_file(number), schema=SCHEMA)
        pq.write_table(table, folder / "t" / f"{number}.parquet", row_group_size=4)
    (folder / "catalog.yaml").write_text("tables:\n  t:\n    location: t\n")
    return load_catalog(folder / "catalog.yaml")


def names(graph: StageGraph, catalog: FileCatalog, **values: Literal) -> str:
    """The files that the first stage reads, by number."""
    stage = graph.stages[0]
    if not stage.leaves:  # the planner has found that no row passes
        return ""
    (leaf,) = stage.leaves
    assert isinstance(leaf, ScanExec)
    table = take_snapshot(catalog, ["t"]).table("t")
    return "".join(
        Path(f.uri).stem for f in pruned_files(stage.fragment, leaf, table, values, graph.time_zone)
    )


CASES = {
    "id = 25": "2", "id > 25": "235", "id >= 60": "", "25 >= id": "012", "id < 0": "", "id <= 9": "0", "id = 10 OR id = 51": "15",
    "id IN (5, 12, 99)": "01", "id IN (99, NULL)": "", "id NOT IN (5)": "01235", "id <> 5": "01235", "id + 1 = 3": "01235", "NOT (id = 5)": "01235",
    "id BETWEEN 8 AND 12": "01", "id > 8 AND id < 10": "0", "small = 25": "2", "small > 1000": "", "CAST(small AS BIGINT) = 25": "2",
    "day = DATE'2024-01-03'": "2", "day BETWEEN '2024-01-02' AND '2024-01-03'": "12", "day > '2024-02-01'": "", "day < DATE'1582-01-01'": "",
    "at >= TIMESTAMP'2024-01-06 00:00:00'": "5", "at < '2024-01-01 00:00:00.000001'": "0", "at = TIMESTAMP'2024-01-02 09:00:00'": "1",
    "local > TIMESTAMP_NTZ'2024-01-06 08:59:59.999'": "5", "local < TIMESTAMP_NTZ'2024-01-01 00:00:00'": "",
    "name = 'c'": "2", "name = 'cß'": "2", "name > 'e'": "5", "name LIKE 'b%'": "1", "name LIKE '%ß'": "01235", "name LIKE 'cß_'": "2", "startswith(name, 'cßß')": "2", "startswith(name, 'd')": "3", "name < ''": "", "name = 'A'": "",
    "price > 10.00BD": "5", "price > CAST('2.5' AS DECIMAL(4,2))": "1235", "price IN (2.5BD, 10.25BD)": "1", "price > -0.25BD - 4": "01235", "price < CAST(2.40 AS DECIMAL(9,1))": "0", "price > CAST('2.555' AS DECIMAL(4,2))": "01235",
    "id > 45S": "5", "small > CAST('30' AS TINYINT)": "35", "id > TRY_CAST('29' AS BIGINT)": "35", "id > CAST(39.0 AS INT)": "5", "id > CAST(39.5 AS INT)": "01235", "at > DATE'2024-01-04'": "35", "local < CAST(DATE'2024-01-02' AS TIMESTAMP_NTZ)": "0",
    "id > 25 AND TIMESTAMP'2024-01-01 00:00:00Z' = TIMESTAMP'2024-01-01 00:00:00'": "235", "id > 25 AND TIMESTAMP'2024-01-01 00:00:00Z' IN (TIMESTAMP'2024-01-01 00:00:00', NULL)": "235",
    "price = 2.25": "0", "price > 12.25": "5", "price > 14": "5", "price >= 15.00": "", "price = 100000000000000000.01": "",
    "wide > 123456789012345678901238.5": "01235", "wide < 100000000000000000000000": "", "wide < 1": "",
    "id IS NULL": "34", "id IS NOT NULL": "01235", "gone IS NULL": "012345", "gone IS NOT NULL": "", "gone = 1": "", "gone <=> 1": "012345", "id <=> 25": "012345",
    "ratio > 1000": "01235", "isnan(ratio)": "012345", "ratio = 25": "01235", "flag": "012345", "id = small": "01235", "coalesce(id, 1) = 25": "012345"
}  # fmt: skip


def test_files_are_left_out_by_their_bounds(tmp_path: Path) -> None:
    """Only where they hold no row that passes: DuckDB looks for such rows in each file."""
    catalog = write(tmp_path, list(range(6)))
    found = {}
    for condition in CASES:
        graph = plan_query(f"SELECT id FROM t WHERE {condition}", catalog, PlannerOptions())
        found[condition] = names(graph, catalog)
    assert found == CASES


def test_no_file_with_a_matching_row_is_left_out(tmp_path: Path) -> None:
    catalog = write(tmp_path, list(range(6)))
    conditions = [
        f"{column} {operator} {value}"
        for column, values in {
            "id": ["0", "9", "10", "30", "38", "59"],
            "day": ["DATE'2024-01-01'", "DATE'2024-01-04'", "DATE'2024-01-06'"],
            "name": ["'a'", "'aß'", "'b'", "'fßßßßßßßßß'", "'ßa'"],
            "price": ["0.00", "2.25", "2.50", "7.50", "14.75"],
            "wide": ["CAST('123456789012345678901234.5' AS DECIMAL(38,4))"],
            "local": ["TIMESTAMP_NTZ'2024-01-01 09:00:00'", "TIMESTAMP_NTZ'2024-01-06 00:00:00'"],
        }.items()
        for value in values
        for operator in ("=", "<", "<=", ">", ">=", "<>")
    ]
    with duckdb.connect() as connection:
        for condition in conditions:
            graph = plan_query(f"SELECT id FROM t WHERE {condition}", catalog, PlannerOptions())
            kept = names(graph, catalog)
            text = condition.replace("TIMESTAMP_NTZ", "TIMESTAMP")
            for number in range(6):
                path = tmp_path / "t" / f"{number}.parquet"
                sql = f"SELECT count(*) FROM read_parquet('{path}') WHERE {text}"
                (count,) = connection.execute(sql).fetchone() or (0,)
                assert str(number) in kept or not count, (condition, number)


def test_parameters_leave_files_out(tmp_path: Path) -> None:
    catalog = write(tmp_path, list(range(6)))
    specs = (ParameterSpec("low", DATE), ParameterSpec("high", DATE))
    sql = "SELECT id FROM t WHERE day BETWEEN :low AND :high"
    graph = plan_query(sql, catalog, PlannerOptions(), parameters=specs)
    values = {"low": Literal(DATE, "2024-01-02"), "high": Literal(DATE, "2024-01-03")}
    assert names(graph, catalog, **values) == "12"
    assert names(graph, catalog) == "01235"  # NULL is between nothing
    nothing = {**values, "low": Literal(DATE, None)}
    assert names(graph, catalog, **nothing) == ""


def test_times_are_read_in_the_session_zone(tmp_path: Path) -> None:
    """Hours that a change of the clock doubles or skips leave no file out."""
    catalog = write(tmp_path, list(range(6)))
    for zone, text, kept in (
        ("America/New_York", "2024-01-05 18:59:59", "5"),
        ("America/New_York", "2024-11-03 01:30:00", "01235"),
        ("America/New_York", "2024-03-10 02:30:00", "01235"),
        ("America/New_York", "1883-11-18 12:00:00", "01235"),
        ("Asia/Tokyo", "2024-01-02T09:00:00", "1235"),
        ("UTC", "2024-01-06", "5"),
    ):
        sql = f"SELECT id FROM t WHERE at > TIMESTAMP'{text}'"
        graph = plan_query(sql, catalog, PlannerOptions(time_zone=zone))
        assert names(graph, catalog) == kept, (zone, text)


def test_fingerprints_ignore_files_without_rows_for_the_query(tmp_path: Path) -> None:
    catalog = write(tmp_path, [0, 1, 2])
    sql = "SELECT name, count(*) AS n FROM t WHERE day BETWEEN '2024-01-02' AND '2024-01-03' GROUP BY name"  # fmt: skip

    def fingerprints(text: str) -> Mapping[int, str]:
        catalog.refresh()
        graph = plan_query(text, catalog, PlannerOptions(force_distribution=True, num_partitions=2))
        return stage_fingerprints(graph, take_snapshot(catalog, ["t"]), {}, root_run_id="r")

    first, every = fingerprints(sql), fingerprints("SELECT id FROM t")
    write(tmp_path, [4, 5])
    assert fingerprints(sql) == first
    assert fingerprints("SELECT id FROM t") != every
    table = pa.Table.from_pylist(rows_of_file(2)[:5], schema=SCHEMA)
    pq.write_table(table, tmp_path / "t" / "9.parquet")
    assert fingerprints(sql) != first


def test_snapshots_keep_the_bounds_and_read_those_without(tmp_path: Path) -> None:
    catalog = write(tmp_path, [0, 3])
    snapshot = take_snapshot(catalog, ["t"])
    assert Snapshot.from_json(snapshot.to_json()) == snapshot
    assert snapshot.table("t").files[0].bounds[0] == (0, 0, 9)
    assert snapshot.table("t").files[1].bounds[0] == (5, 30, 38)
    body = json.loads(snapshot.to_json())
    body["format_version"] = 2
    del body["checksum"]
    for file in body["tables"]["t"]["files"]:
        del file["bounds"]
    old = Snapshot.from_json(json.dumps(body).encode())
    graph = plan_query("SELECT id FROM t WHERE id = 5", catalog, PlannerOptions())
    stage = graph.stages[0]
    (leaf,) = stage.leaves
    assert isinstance(leaf, ScanExec)
    assert len(pruned_files(stage.fragment, leaf, old.table("t"), {}, "UTC")) == 2
    assert len(pruned_files(stage.fragment, leaf, snapshot.table("t"), {}, "UTC")) == 1


def test_long_texts_are_bounded_by_their_start(tmp_path: Path) -> None:
    path = tmp_path / "t" / "0.parquet"
    path.parent.mkdir()
    pq.write_table(pa.table({"s": ["b" * 1000, "b" * 3000]}), path)
    (tmp_path / "catalog.yaml").write_text("tables:\n  t:\n    location: t\n")
    catalog = load_catalog(tmp_path / "catalog.yaml")
    assert take_snapshot(catalog, ["t"]).table("t").files[0].bounds == ((0, "b" * 64, None),)
    for condition, kept in {"s < 'b'": "", f"s = '{'b' * 1000}'": "0", "s > 'c'": "0"}.items():
        graph = plan_query(f"SELECT s FROM t WHERE {condition}", catalog, PlannerOptions())
        assert names(graph, catalog) == kept, condition


def test_a_decimal_s_bounds_are_wider_than_their_doubles() -> None:
    exact = Decimal("12345678901234567890.12")
    bounds = column_bounds(decimal(38, 2), 1, (0, float(exact), float(exact)))
    assert isinstance(bounds.low, Decimal) and isinstance(bounds.high, Decimal)
    assert bounds.low < exact < bounds.high


def test_what_is_unknown_rules_nothing_out() -> None:
    equal = plan_condition("a = 5")
    assert may_hold(equal, {})
    assert may_hold(equal, {0: Bounds()})
    assert may_hold(equal, {0: column_bounds(INT, 5, (None, None, None))})
    assert not may_hold(equal, {0: column_bounds(INT, 5, (5, None, None))})
    assert may_hold(equal, {0: column_bounds(INT, 5, (4, None, 5))})
    assert not may_hold(equal, {0: column_bounds(INT, 5, (4, 6, None))})


def plan_condition(text: str) -> Any:
    """A predicate on column 0, an int."""
    from stagecoach.planner.functions import make_call
    from stagecoach.planner.plan.expressions import Column

    del text
    return make_call("eq", Column(0, "a", INT).ref, Literal(INT, 5))


@pytest.mark.spark
def test_a_query_reads_the_files_of_its_days_only(
    tmp_path: Path, spark_settings: EngineSettings, spark: SparkSession
) -> None:
    write(tmp_path, list(range(6)))
    project = Project(tmp_path, spark_settings, spark)
    sql = "SELECT count(*) AS n, sum(id) AS s FROM t WHERE day >= DATE'{}'"
    for day, expected, read in (("2024-01-06", (10, 545), 10), ("2030-01-01", (0, None), 0)):
        graph = project.plan(sql.format(day))
        rows, results = project.run(graph)
        assert [tuple(row.values()) for row in rows.to_pylist()] == [expected]
        assert sum(sum(r.rows_in) for r in results[0].reports) == read
        assert results[0].engine == "duckdb"
    before = results[0].fingerprint
    pq.write_table(
        pa.Table.from_pylist(rows_of_file(0), schema=SCHEMA), tmp_path / "t" / "7.parquet"
    )
    _, results = project.run(graph)
    assert results[0].reused and results[0].fingerprint == before
