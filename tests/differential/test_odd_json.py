"""Functions of JSON read hostile texts as Spark does, and DuckDB raises for hardly any of them."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stagecoach.infra.engines.duckdb.java_json import json_tuple_members
from stagecoach.infra.engines.duckdb.java_json_reader import UnclearJsonError
from stagecoach.planner import plan_query
from tests.differential.edge_tables import EdgeTables
from tests.differential.inprocess import InProcessRunner, canonical, collect
from tests.differential.odd_json import ODD_PATHS, PATHS, odd_texts
from tests.differential.query_check import SINGLE
from tests.differential.test_functions import Proof, check, report
from tests.share import EVERYTHING, share

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(1800)]

COUNT = 20_000 if EVERYTHING else 1_500
# Texts that raise: what only Spark knows of limits and of halves of characters.
FEW = 12 + COUNT // 500
NAMES = ["a", "b", "a b", "a"]


@pytest.fixture(scope="module")
def rows() -> list[str | None]:
    return odd_texts(random.Random(18), COUNT)


def write(folder: Path, texts: list[str | None]) -> EdgeTables:
    """The texts as table `docs`."""
    docs = pa.table(
        {"id": pa.array(range(len(texts)), pa.int32()), "js": pa.array(texts, pa.string())}
    )
    path = folder / "docs" / "a.parquet"
    path.parent.mkdir()
    pq.write_table(docs, path)
    return EdgeTables(folder, {"docs": (str(path),)}, {"docs": docs.schema})


def session_over(oracle: SparkSession, tables: EdgeTables) -> SparkSession:
    """A session of plain Spark with the table as a view."""
    session = oracle.newSession()
    session.read.parquet(*tables.files["docs"]).createOrReplaceTempView("docs")
    return session


@pytest.fixture(scope="module")
def proof(
    oracle: SparkSession, rows: list[str | None], tmp_path_factory: pytest.TempPathFactory
) -> Proof:
    tables = write(tmp_path_factory.mktemp("odd"), rows)
    return Proof(tables, session_over(oracle, tables), table="docs")


@pytest.mark.parametrize("paths", [PATHS, ODD_PATHS], ids=["plain", "odd"])
def test_paths(proof: Proof, paths: list[str]) -> None:
    expect_equal(proof, [call_of(path) for path in share(paths, 3)])


def call_of(path: str) -> str:
    escaped = path.replace("\\", "\\\\").replace("'", "\\'")
    return f"get_json_object(js, '{escaped}')"


def test_lengths_and_keys(proof: Proof) -> None:
    expect_equal(proof, ["json_array_length(js)", "json_object_keys(js)"])


def expect_equal(proof: Proof, calls: list[str]) -> None:
    wrong, cases = check(proof, calls)
    wrong += [f"{c.expr}: is not native: {c.refusal}" for c in cases if not c.is_native]
    wrong += [f"{c.expr}: {c.bad_rows} raise" for c in cases if len(c.bad_rows) > FEW]
    assert not wrong, report(wrong)


def test_tuples(oracle: SparkSession, rows: list[str | None], tmp_path: Path) -> None:
    clear = [text for text in rows if is_clear(text)]
    assert len(clear) > len(rows) - FEW
    tables = write(tmp_path, clear)
    session = session_over(oracle, tables)
    names = ", ".join(f"'{name}'" for name in NAMES)
    sql = f"SELECT id, t.* FROM docs LATERAL VIEW json_tuple(js, {names}) t AS p, q, r, s"
    graph = plan_query(sql, tables.catalog, SINGLE)
    assert [stage.engine for stage in graph.stages] == ["duckdb"]
    found = InProcessRunner(tables, session).run(graph).sort_by("c0")
    expected = collect(session.sql(sql)).sort_by("c0")
    for number in range(1, len(NAMES) + 1):
        pairs = zip(
            clear,
            canonical(expected.column(f"c{number}")),
            canonical(found.column(f"c{number}")),
            strict=True,
        )
        wrong = [
            f"{text!r:.99}: Spark {a!r:.99}, DuckDB {b!r:.99}" for text, a, b in pairs if a != b
        ]
        assert not wrong, report(wrong)


def is_clear(text: str | None) -> bool:
    """Whether the worker knows what Spark makes of a text."""
    given = (pa.chunked_array([pa.array([value])]) for value in (NAMES, 0, 0))
    try:
        json_tuple_members(pa.chunked_array([pa.array([text], pa.string())]), *given)
    except UnclearJsonError:
        return False
    return True
