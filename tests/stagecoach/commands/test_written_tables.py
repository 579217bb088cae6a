"""`stagecoach tables create|append|compact|chunks`, `stagecoach.append`, and gc of their chunks."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner, Result

import stagecoach
from stagecoach.api.appending import as_items, parse_columns
from stagecoach.commands.main import cli
from stagecoach.planner.errors import CatalogError

CATALOG = """
tables:
  metrics:
    kind: deduplicated
    location: metrics
    primary_key: [device, at]
    time_column: at
    partition_by: [region]
    delete_column: gone
"""
COLUMNS = "device string, at timestamp, region string, usage decimal(5,2), gone boolean"
CSV = "device,at,region,usage,gone\na,2024-01-31T12:00:00Z,eu,0.50,\nb,2024-01-31T13:00:00Z,eu,0.70,\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pipelines").mkdir()
    (tmp_path / "pipelines" / "catalog.yaml").write_text(CATALOG)
    return tmp_path


def run(*args: str) -> Result:
    return CliRunner().invoke(cli, args)


def test_a_table_from_beginning_to_end(folder: Path) -> None:
    assert run("tables", "compact").stdout == "metrics: no data yet\n"
    result = run("tables", "create", "metrics", "--columns", COLUMNS)
    assert result.stdout == "created metrics with 5 columns\n"
    assert run("tables", "create", "metrics", "--columns", COLUMNS).exit_code == 2
    Path("a.csv").write_text(CSV)
    result = run("tables", "append", "metrics", "a.csv")
    assert result.stdout == "appended 2 rows in 1 chunk to metrics, version 2\n"
    Path("b.csv").write_text(CSV.replace("gone", "note").replace(",\n", ",x\n"))
    result = run("tables", "append", "metrics", "b.csv", "--sort")
    assert result.stdout.splitlines() == [
        "appended 2 rows in 1 chunk to metrics, version 3",
        "new columns: note string",
    ]
    text = run("tables", "chunks", "metrics").stdout
    assert "metrics: version 3, 2 chunks, 4 rows" in text
    assert "100.0% to deduplicate" in text
    assert "2024-01-31 12:00:00+00:00 … 2024-01-31 13:00:00+00:00  region=eu  sorted" in text
    shown = json.loads(run("tables", "chunks", "metrics", "--format", "json").stdout)
    assert [c["kind"] for g in shown["groups"] for c in g["chunks"]] == ["arrow", "parquet"]
    lines = run("tables", "compact", "metrics").stdout.splitlines()
    assert lines[0].startswith("metrics: 2 chunks, 4 rows")
    assert lines[1].strip().startswith("1 chunk, 2 rows")
    assert "nothing to do" in run("tables", "compact").stdout
    assert "2 rows" in run("tables", "--storage", "st").stdout
    assert "2 rows" in run("tables", "show", "metrics", "--storage", "st").stdout
    result = run("gc", "--storage", "st", "--older-than", "0s")
    assert "of table metrics: 2 replaced chunks, 0 uncommitted files" in result.stdout
    assert len(list((folder / "pipelines" / "metrics" / "chunks").iterdir())) == 1


def test_mistakes_have_exit_code_2() -> None:
    Path("a.csv").write_text(CSV)
    assert run("tables", "append", "metrics", "a.csv").exit_code == 0
    Path("b.csv").write_text("device,at,usage\na,2024-01-31T12:00:00Z,x\n")
    for args, message in (
        (("append", "metrics", "b.csv"), "error: b.csv: "),
        (("append", "metrics", "c.csv"), "it does not exist"),
        (("append", "metricks", "a.csv"), "did you mean 'metrics'?"),
        (("create", "metrics"), "give the columns, with --columns or with --like"),
        (("create", "metrics", "--columns", "a"), "is not a name and a type"),
        (("chunks", "nothing"), "table 'nothing' not found"),
    ):
        result = run("tables", *args)
        assert result.exit_code == 2, args
        assert message in result.stderr.replace("\n", " "), args


def test_a_table_like_a_file() -> None:
    import pyarrow.parquet as pq

    rows = pa.table({"device": ["a"], "at": pa.array([1], pa.timestamp("ms", "UTC")), "n": [1]})
    extra = {"region": pa.array(["x"]), "gone": pa.array([True])}
    for name, column in extra.items():
        rows = rows.append_column(name, column)
    pq.write_table(rows, "a.parquet")
    assert run("tables", "create", "metrics", "--like", "a.parquet").exit_code == 0
    shown = json.loads(run("tables", "metrics", "--format", "json", "--storage", "st").stdout)
    columns = [f"{c['name']} {c['type']}" for c in shown["tables"][0]["columns"]]
    assert columns == ["device string", "at timestamp", "n bigint", "region string", "gone boolean"]
    assert shown["tables"][0]["rows"] == 0


def test_append_from_python(folder: Path) -> None:
    rows = pa.table(
        {
            "device": ["a"],
            "at": pa.array([1], pa.timestamp("us", "UTC")),
            "region": ["x"],
            "gone": [False],
        }
    )
    stagecoach.append("metrics", rows)
    catalog = folder / "pipelines" / "catalog.yaml"
    done = stagecoach.append("metrics", [rows, rows.to_pandas(), rows.to_pylist()], catalog=catalog)
    assert (done.version.number, done.num_rows, len(done.chunks)) == (2, 3, 3)
    with pytest.raises(CatalogError, match="not found"):
        stagecoach.append("nothing", rows)
    assert as_items([{"a": 1}, {"a": 2}]) == [[{"a": 1}, {"a": 2}]]
    assert as_items(("a", "b")) == ["a", "b"]


def test_columns_are_written_as_in_sql() -> None:
    fields = parse_columns("a int, `b` decimal(5, 2), c struct<x: int, y: array<string>>")
    assert [f"{f.name} {f.dtype}" for f in fields] == [
        "a int",
        "b decimal(5,2)",
        "c struct<x:int,y:array<string>>",
    ]
