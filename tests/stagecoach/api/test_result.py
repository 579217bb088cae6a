"""Results in Python: as Arrow, data frames, rows, and as a notebook shows them."""

from __future__ import annotations

import datetime
import subprocess
import sys
from pathlib import Path

import duckdb
import polars as pl
import pyarrow as pa
import pytest

from stagecoach.api.result import Result
from stagecoach.assets.report.metadata import StageMetadata
from stagecoach.errors import ConfigError, OptionError, SessionClosedError
from stagecoach.infra.storage.local_store import LocalStore
from stagecoach.planner.plan.stages import StageGraph
from tests.in_memory_session import InMemorySession, open_in_memory
from tests.stage_outputs import commit_files, write_map_file

EVENTS = pa.table(
    {
        "id": pa.array(range(2500), pa.int64()),
        "kind": [f"<b>{i % 3}" for i in range(2500)],
        "seen": pa.array([datetime.datetime(2024, 7, 1, 12)] * 2500, pa.timestamp("us", "UTC")),
    }
)


@pytest.fixture
def session(tmp_path: Path) -> InMemorySession:
    return open_in_memory(tmp_path, {"events": EVENTS})


def test_rows_are_iterated_in_the_session_time_zone(tmp_path: Path) -> None:
    session = open_in_memory(tmp_path, {"events": EVENTS})
    session.options = session.options.updated({"time_zone": "Europe/Berlin"})
    rows = iter(session.query("SELECT id, seen FROM events WHERE id < 2 ORDER BY id"))
    number, seen = next(rows)
    assert (number, seen.isoformat()) == (0, "2024-07-01T14:00:00+02:00")
    assert next(rows)[0] == 1
    assert next(rows, None) is None


def test_batches_have_at_most_so_many_rows(session: InMemorySession) -> None:
    result = session.query("SELECT id FROM events ORDER BY id")
    sizes = [batch.num_rows for batch in result.to_batches(max_rows=400)]
    assert sum(sizes) == 2500
    assert max(sizes) == 400
    found = [n for batch in result.to_batches(7) for n in batch.column(0).to_pylist()]
    assert found == list(range(2500))
    with pytest.raises(ValueError, match="max_rows is 0"):
        next(result.to_batches(0))


def test_batches_of_a_large_result_take_little_memory(
    session: InMemorySession, tmp_path: Path
) -> None:
    graph = session.plan("SELECT id FROM events").graph
    result = large_result(graph, LocalStore(str(tmp_path / "large")), batches=160)
    before = pa.total_allocated_bytes()
    most = rows = 0
    for batch in result.to_batches(memory_bytes=1 << 20):
        rows += batch.num_rows
        most = max(most, pa.total_allocated_bytes() - before)
    assert rows == 160 * 65_536
    assert most < 16 << 20 < 160 * 65_536 * 8


def large_result(graph: StageGraph, store: LocalStore, batches: int) -> Result:
    """Rows of 84 MB in one file."""
    schema = pa.schema([("c0", pa.int64())])
    one = pa.record_batch([pa.array(range(65_536), pa.int64())], schema=schema)
    written = write_map_file(store, "ab" * 32, (one for _ in range(batches)), schema, codec="none")
    commit_files(store, "ab" * 32, [written], schema, codec="none")
    return Result(
        graph=graph, run_id="run", stages=(StageMetadata(fingerprint="ab" * 32),), store=store
    )


def test_other_libraries_read_a_result_without_a_copy_of_all(session: InMemorySession) -> None:
    result = session.query("SELECT id, kind FROM events")
    assert result.to_reader().read_all().num_rows == 2500
    duckdb_connection = duckdb.connect()
    duckdb_connection.register("rows", pa.RecordBatchReader.from_stream(result))
    assert duckdb_connection.execute("SELECT max(id) FROM rows").fetchone() == (2499,)
    assert pl.DataFrame(result).height == 2500


def test_a_polars_frame(session: InMemorySession) -> None:
    frame = session.query("SELECT kind, count(*) AS n FROM events GROUP BY kind").to_polars()
    assert frame.schema == {"kind": pl.String, "n": pl.Int64}
    assert frame["n"].sum() == 2500
    with pytest.raises(OptionError, match="two columns are called 'id'"):
        session.query("SELECT id, id FROM events").to_polars()


def test_polars_is_an_extra(session: InMemorySession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"pip install 'stagecoach\[polars\]'"):
        session.query("SELECT id FROM events").to_polars()


def test_short_texts(session: InMemorySession) -> None:
    result = session.query("SELECT kind, max(seen) AS `last` FROM events GROUP BY kind")
    assert repr(result) == "<Result of query: 3 rows of kind string, last timestamp>"
    wide = session.query("SELECT " + ", ".join(f"id AS c{i}" for i in range(40)) + " FROM events")
    assert repr(wide).endswith("c7 bigint, … 32 more>")
    assert len(repr(wide)) < 200
    assert repr(session.query("EXPLAIN SELECT 1")) == "<Result of query: plan string>"
    assert repr(session) == "<Session over 1 table of the catalog>"


def test_a_notebook_shows_the_first_rows(session: InMemorySession) -> None:
    text = session.query("SELECT kind, id FROM events ORDER BY id")._repr_html_()
    assert text.count("<tr>") == 21
    assert "&lt;b&gt;0" in text
    assert "<b>" not in text
    assert '<th style="text-align: right" title="bigint">id</th>' in text
    assert "2,500 rows, the first 20 shown" in text


def test_intervals_are_shown_as_spark_does(
    session: InMemorySession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sql = """
        SELECT INTERVAL '1 02:03:04.5' DAY TO SECOND AS a, INTERVAL '-5' MINUTE AS b,
          array(INTERVAL '3' HOUR) AS c, DATE '2024-03-01' - DATE '2024-02-01' AS d
    """
    result = session.query(sql)
    texts = ("INTERVAL '1 02:03:04.5' DAY TO SECOND", "INTERVAL '-05' MINUTE")
    result.show()
    shown = capsys.readouterr().out
    assert all(text in shown for text in (*texts, "[INTERVAL '03' HOUR]", "INTERVAL '29' DAY"))
    result.write(tmp_path / "x.csv")
    line = f"{','.join(texts)},[INTERVAL '03' HOUR],INTERVAL '29' DAY"
    assert (tmp_path / "x.csv").read_text().splitlines() == ["a,b,c,d", line]
    assert texts[0] in result._repr_html_().replace("&#x27;", "'")
    # Programs get durations.
    assert result.to_arrow()["b"].to_pylist() == [datetime.timedelta(minutes=-5)]
    assert next(iter(result))[1] == datetime.timedelta(minutes=-5)


def test_a_closed_session_says_so(session: InMemorySession) -> None:
    result = session.query("SELECT id FROM events")
    session.close()
    session.close()
    assert repr(session) == "<closed Session over 1 table of the catalog>"
    calls = (
        lambda: session.query("SELECT 1"),
        lambda: session.explain("SELECT 1"),
        lambda: session.plan("SELECT 1"),
        lambda: session.analyze("SELECT 1"),
        lambda: session.load("plan.json"),
        session.spark,
        session.__enter__,
    )
    for call in calls:
        with pytest.raises(SessionClosedError, match=r"open another one with stagecoach\.connect"):
            call()
    assert result.to_arrow().num_rows == 2500  # what is there can be read


def test_public_errors_are_one_family_and_load_quickly() -> None:
    script = (
        "import sys, stagecoach.errors as e\n"
        "found = [v for v in vars(e).values() if isinstance(v, type)]\n"
        "assert len(found) > 30 and all(issubclass(v, e.StagecoachError) for v in found)\n"
        "assert not {'pyspark', 'dagster', 'duckdb'} & set(sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_public_errors_are_documented() -> None:
    import stagecoach.errors

    page = (Path(stagecoach.__file__).parents[1] / "docs/reference/exceptions.md").read_text()
    names = [name for name in vars(stagecoach.errors) if name.endswith("Error")]
    missing = [name for name in names if f"`{name}`" not in page]
    assert not missing
