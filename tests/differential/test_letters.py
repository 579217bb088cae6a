"""Large and small letters equal Spark's for every letter: alone, in words, and beside a sigma."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from stagecoach.planner import plan_query
from tests.differential.edge_tables import EdgeTables
from tests.differential.inprocess import InProcessRunner
from tests.differential.query_check import SINGLE
from tests.differential.relation_tables import write_halves
from tests.differential.spark_answers import plain_session
from tests.share import EVERYTHING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

# Letters of one case, private ones and halves of characters.
UNCASED = (range(0x3400, 0xA000), range(0xAC00, 0xD7A4), range(0xD800, 0xF900), range(0x20000, 0x110000))  # fmt: skip
HALVES = range(0xD800, 0xE000)
SIGMAS = ["Σ", "ΑΣ", "ΑΣ ΑΣΑ", "Α.Σ", "ΑΣ.Α", "ΑΣ\u0301", "Σ Σ", "ΣΣ", "ʰΣ", "1Σ", "İΣ", "ΑΣİ"]


def texts() -> list[str]:
    points = set(range(1, 0x110000)) - set(HALVES)
    if not EVERYTHING:
        points -= {point for part in UNCASED for point in part}
    letters = list(map(chr, sorted(points)))
    return [*SIGMAS, *letters, *(f"a{c}A" for c in letters), *(f"x {c}a {c}" for c in letters)]


def test_letters_equal_sparks(spark: SparkSession, tmp_path: Path) -> None:
    schema = pa.schema([("n", pa.int32()), ("s", pa.string())])
    rows = [{"n": n, "s": text} for n, text in enumerate(texts())]
    tables = EdgeTables(tmp_path, {"p": write_halves(tmp_path, "p", schema, rows)}, {"p": schema})
    session = plain_session(spark, tables)
    runner = InProcessRunner(tables, session)
    for name in ("upper", "lower", "initcap"):
        sql = f"SELECT n, s, {name}(s) AS r FROM p ORDER BY n"
        graph = plan_query(sql, tables.catalog, SINGLE)
        assert {stage.engine for stage in graph.stages} == {"duckdb"}
        theirs, ours = session.sql(sql).toArrow(), runner.run(graph)
        pairs = zip(*(t.column(i).to_pylist() for t, i in ((theirs, 1), (theirs, 2), (ours, 2))), strict=True)  # fmt: skip
        wrong = [(text, right, own) for text, right, own in pairs if right != own]
        assert not wrong, f"{len(wrong)} of {name}: {wrong[:10]}"
