"""The Python API in a process of its own: one Spark session, several queries."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import stagecoach
from stagecoach.infra.storage.local_store import LocalStore
from stagecoach.planner.errors import (
    AnalysisError,
    CatalogError,
    OptionError,
    ParameterError,
    UnsupportedSqlError,
)
from tests.infra.formats.published.outputs import publish_rows

SCRIPT = """
import datetime, decimal, json, sys
import stagecoach
from stagecoach.infra.errors import QueryFailedError

found = {}
settings = {"master": "local[2]", "memory_bytes": 512 << 20}
options = {"force_distribution": True, "num_partitions": 2}
with stagecoach.connect("catalog.yaml", "storage", settings=settings, options=options) as session:
    sql = "SELECT kind, count(*), count(*) FROM pets WHERE born < :day GROUP BY kind ORDER BY kind"
    first = session.query(sql, {"day": datetime.date(2024, 1, 3)}, name="kinds")
    table = first.to_arrow()
    found["names"] = table.schema.names
    found["types"] = [str(t) for t in table.schema.types]
    found["rows"] = [list(c.to_pylist()) for c in table.columns]
    found["pandas"] = [list(first.to_pandas().columns), len(first.to_pandas())]
    found["reused"] = [s.reused for s in first.stages]
    again = session.query(sql, {"day": datetime.date(2024, 1, 3)}, name="other_name")
    found["again"] = [s.reused for s in again.stages]
    fresh = session.query(sql, {"day": datetime.date(2024, 1, 3)}, fresh=True)
    found["fresh"] = [s.reused for s in fresh.stages]
    other = session.query(sql, {"day": datetime.date(2024, 1, 1)})
    found["other"] = other.num_rows
    found["table"] = session.query("SELECT count(*) AS n FROM pets", name="pets").num_rows
    published = session.query("SELECT sum(n) AS n FROM DAILY", name="daily")
    found["published"] = published.to_arrow().to_pylist()
    whole = session.query("SELECT length(collate(kind, 'UNICODE')) AS n, 1 AS a, 2 AS a FROM pets")
    found["whole"] = [whole.schema.names, [s.engine for s in whole.stages]]
    values = session.query(
        "SELECT :a AS a, :b AS b, :c AS c, :t AS t",
        {"a": "it's", "b": decimal.Decimal("1.50"), "c": True,
         "t": datetime.datetime(2024, 1, 1, 10)},
    )
    found["values"] = [str(v) for v in values.to_arrow().to_pylist()[0].values()]
    values.show()
    try:
        session.query("SELECT 1 / (id - id) FROM pets")
    except QueryFailedError as error:
        found["error"] = str(error)
print(json.dumps(found))
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pets").mkdir()
    for part in range(2):
        table = pa.table(
            {
                "id": pa.array([1, 2, 3], pa.int32()),
                "kind": ["cat", "dog", "cat"],
                "born": pa.array([19722, 19723, 19724 + part], pa.date32()),
            }
        )
        pq.write_table(table, tmp_path / "pets" / f"{part}.parquet")
    (tmp_path / "catalog.yaml").write_text("tables:\n  pets: {location: pets}\n")
    return tmp_path


@pytest.mark.slow
@pytest.mark.spark
def test_queries_of_one_session(project: Path) -> None:
    publish_rows(LocalStore(str(project / "storage")), pa.table({"n": [1, 2, 3]}), "daily")
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    *shown, last = done.stdout.splitlines()
    found = json.loads(last)
    assert found["names"] == ["kind", "count(1)", "count(1)"]
    assert found["types"] == ["string", "int64", "int64"]
    assert found["rows"] == [["cat", "dog"], [3, 2], [3, 2]]
    assert found["pandas"] == [["kind", "count(1)", "count(1)"], 2]
    assert len(found["reused"]) >= 2
    assert not any(found["reused"])
    assert all(found["again"])
    assert not any(found["fresh"])
    assert found["other"] == 1
    assert found["table"] == 1
    assert found["published"] == [{"n": 6}]
    assert found["whole"] == [["n", "a", "a"], ["spark"]]
    assert found["values"] == ["it's", "1.50", "True", "2024-01-01 10:00:00+00:00"]
    assert "it's │ 1.50 │ true │ 2024-01-01 10:00:00" in shown
    assert "DIVIDE_BY_ZERO" in found["error"]


def test_explain_starts_nothing(project: Path) -> None:
    session = stagecoach.connect("catalog.yaml")
    stages = json.loads(session.explain("SELECT kind FROM pets", format="json"))["stages"]
    assert stages[0]["engine"] in ("duckdb", "spark")
    assert "Scan" in session.explain("SELECT kind FROM pets", plan="logical")
    assert not (project / ".stagecoach").exists()
    logical = json.loads(session.explain("SELECT kind FROM pets", plan="logical", format="json"))
    assert list(logical) == ["Project"]
    with pytest.raises(OptionError, match="mermaid shows one plan at a time"):
        session.explain("SELECT kind FROM pets", plan="all", format="mermaid")


def test_explain_is_a_statement_too(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    session = stagecoach.connect("catalog.yaml")
    result = session.query(
        "-- why\nEXPLAIN FORMATTED SELECT kind FROM pets WHERE id > :x", {"x": 1}
    )
    table = result.to_arrow()
    assert (table.schema.names, table.num_rows, result.num_rows) == (["plan"], 1, 1)
    text = table.to_pylist()[0]["plan"]
    assert text.startswith("query query: 1 stage\n")
    assert "SQL:" in text
    assert list(result.to_pandas().columns) == ["plan"]
    result.show()
    assert capsys.readouterr().out.startswith("query query: 1 stage\n")
    assert "== Logical plan ==" in str(
        session.query("EXPLAIN EXTENDED SELECT kind FROM pets").to_arrow()[0][0]
    )
    assert session.explain("EXPLAIN SELECT kind FROM pets") == session.explain(
        "SELECT kind FROM pets"
    )
    with pytest.raises(AnalysisError, match="knd") as caught:
        session.query("EXPLAIN EXTENDED\nSELECT knd FROM pets")
    assert (caught.value.line, caught.value.column) == (2, 8)
    with pytest.raises(UnsupportedSqlError, match="EXPLAIN CODEGEN"):
        session.query("EXPLAIN CODEGEN SELECT 1")
    assert not (project / ".stagecoach").exists()


def test_mistakes_are_typed(project: Path) -> None:
    with pytest.raises(CatalogError, match="does not exist"):
        stagecoach.connect("nothing.yaml")
    with pytest.raises(OptionError, match=r"unknown option planner\.nothing"):
        stagecoach.connect("catalog.yaml", options={"nothing": 1})
    session = stagecoach.connect("catalog.yaml")
    with pytest.raises(AnalysisError, match="knd"):
        session.query("SELECT knd FROM pets")
    with pytest.raises(ParameterError, match="'day' has no value"):
        session.query("SELECT :day")


def test_storage_root_is_found(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("STAGECOACH_STORAGE", raising=False)
    monkeypatch.delenv("STAGECOACH_STORAGE_ROOT", raising=False)
    assert stagecoach.connect("catalog.yaml").settings.storage_root == ".stagecoach/storage"
    monkeypatch.setenv("STAGECOACH_STORAGE", "elsewhere")
    assert stagecoach.connect("catalog.yaml").settings.storage_root == "elsewhere"
    assert stagecoach.connect("catalog.yaml", "here").settings.storage_root == "here"


def test_time_zone_is_one_for_planner_and_engine(project: Path) -> None:
    session = stagecoach.connect("catalog.yaml", settings={"time_zone": "Europe/Berlin"})
    assert session.options.time_zone == "Europe/Berlin"


def test_planner_options_come_from_the_environment_too(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STAGECOACH_PLANNER__BROADCAST_BYTES", "2MB")
    monkeypatch.setenv("STAGECOACH_PLANNER__ENGINE", "spark")
    options = stagecoach.connect("catalog.yaml", options={"engine": "duckdb"}).options
    assert (options.broadcast_bytes, options.engine) == (2 << 20, "duckdb")
