"""Versions of Delta tables, and the tables that tell of them."""

from __future__ import annotations

import datetime as dt
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from stagecoach.planner.errors import CatalogError
from stagecoach.planner.planning import plan_query
from tests.infra.formats.delta.handmade import START, HandmadeTable, catalog_of, field
from tests.infra.formats.iceberg.answers import rows


def made(folder: Path, configuration: dict[str, str] | None = None, times: list[int] | None = None) -> HandmadeTable:  # fmt: skip
    """Versions 0 to 2, a minute apart from 22:13:20 on; a column is added before the last."""
    table = HandmadeTable(folder / "t", configuration=configuration or {})
    table.schema(field("k", "long"))
    for number in range(3):
        if number == 2:
            table.schema(field("k", "long"), field("more", "long"))
        info: dict[str, Any] = {"operation": "WRITE", "operationParameters": {"mode": "Append"}}
        if times:
            info["inCommitTimestamp"] = times[number]
        table.commit(table.data(pa.table({"k": [number]})), info=info)
    return table


ALL = [{"k": 0, "more": None}, {"k": 1, "more": None}, {"k": 2, "more": None}]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("t", ALL),
        ("t VERSION AS OF 0", [{"k": 0}]),
        ("t FOR VERSION AS OF 1", [{"k": 0}, {"k": 1}]),
        ("t VERSION AS OF '2'", ALL),
        ("t TIMESTAMP AS OF '2023-11-14 22:13:20Z'", [{"k": 0}]),
        ("t TIMESTAMP AS OF '2023-11-14 22:14:19.999Z'", [{"k": 0}]),
        ("t FOR TIMESTAMP AS OF '2023-11-14 23:14:20+01:00'", [{"k": 0}, {"k": 1}]),
        ("t TIMESTAMP AS OF '2999-01-01 00:00:00Z'", ALL),
    ],
)
def test_versions_of_a_table(source: str, expected: list[Any], tmp_path: Path) -> None:
    catalog = catalog_of(tmp_path, t=made(tmp_path).folder)
    assert rows(catalog, f"SELECT * FROM {source} ORDER BY 1", tmp_path) == expected


def test_two_versions_in_a_query(tmp_path: Path) -> None:
    catalog = catalog_of(tmp_path, t=made(tmp_path).folder)
    sql = "SELECT t.k FROM t LEFT ANTI JOIN t VERSION AS OF 1 AS old ON t.k = old.k"
    assert rows(catalog, sql, tmp_path) == [{"k": 2}]


@pytest.mark.parametrize(
    ("clause", "problem"),
    [
        ("VERSION AS OF 3", "table 't' has no version 3; its newest one is 2"),
        ("VERSION AS OF 'main'", "the table's versions go by their numbers"),
        ("TIMESTAMP AS OF '2023-11-14 22:13:19.999Z'", "has no version for TIMESTAMP AS OF"),
        ("TIMESTAMP AS OF '2024-01-01'", "has no time zone; add its offset"),
    ],
)
def test_a_version_that_is_not_there_is_refused(clause: str, problem: str, tmp_path: Path) -> None:
    catalog = catalog_of(tmp_path, t=made(tmp_path).folder)
    with pytest.raises(CatalogError, match=problem):
        plan_query(f"SELECT * FROM t {clause}", catalog)


def test_times_in_commits_come_before_those_of_files(tmp_path: Path) -> None:
    times = [START + hours * 3_600_000 for hours in (10, 20, 30)]
    table = made(tmp_path, {"delta.enableInCommitTimestamps": "true"}, times)
    catalog = catalog_of(tmp_path, t=table.folder)

    def count(hours: float) -> int:
        moment = dt.datetime.fromtimestamp(START / 1000 + hours * 3600, dt.UTC)
        sql = f"SELECT count(*) AS n FROM t TIMESTAMP AS OF '{moment}'"
        return int(rows(catalog, sql, tmp_path)[0]["n"])

    assert [count(h) for h in (10, 19.99, 20, 29, 30, 31)] == [1, 1, 2, 2, 3, 3]
    with pytest.raises(CatalogError, match="has no version for"):
        count(9.99)


def test_times_of_files_that_go_backwards(tmp_path: Path) -> None:
    """Version 1 is then a millisecond younger than version 0, as in Delta's own reader."""
    table = made(tmp_path)
    moment = START / 1000 - 100
    os.utime(table.log / f"{1:020}.json", (moment, moment))
    catalog = catalog_of(tmp_path, t=table.folder)
    at = "SELECT count(*) AS n FROM t TIMESTAMP AS OF '2023-11-14 22:13:20{}Z'"
    assert rows(catalog, at.format(""), tmp_path) == [{"n": 1}]
    assert rows(catalog, at.format(".001"), tmp_path) == [{"n": 2}]


def test_metadata_tables(tmp_path: Path) -> None:
    table = HandmadeTable(tmp_path / "t", ["deletionVectors"])
    table.schema(field("k", "long"))
    add = table.data(pa.table({"k": [1, 2, 3]}), name="x.parquet")
    table.commit(add)
    table.delete(add, [1])
    catalog = catalog_of(tmp_path, t=table.folder)
    found = rows(catalog, "SELECT version, timestamp, operation FROM t.history ORDER BY 1", tmp_path)  # fmt: skip
    at = dt.datetime(2023, 11, 14, 22, 13, 20, tzinfo=dt.UTC)
    assert found == [
        {"version": 0, "timestamp": at, "operation": "WRITE"},
        {"version": 1, "timestamp": at + dt.timedelta(minutes=1), "operation": "WRITE"},
    ]
    found = rows(catalog, "SELECT path, num_records, deleted_records FROM t.files", tmp_path)
    assert found == [{"path": "x.parquet", "num_records": 3, "deleted_records": 1}]


def test_a_table_that_is_made_anew_is_another_one(tmp_path: Path) -> None:
    import shutil

    table = made(tmp_path)
    catalog = catalog_of(tmp_path, t=table.folder)
    assert len(rows(catalog, "SELECT * FROM t", tmp_path)) == 3
    shutil.rmtree(table.folder)
    other = HandmadeTable(tmp_path / "t")
    other.schema(field("k", "long"))
    for number in range(3):
        other.commit(other.data(pa.table({"k": [number * 100]})))
    catalog = catalog_of(tmp_path, t=table.folder)
    assert rows(catalog, "SELECT max(k) AS k FROM t", tmp_path) == [{"k": 200}]
