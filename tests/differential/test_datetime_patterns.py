"""Texts are read and moments written by datetime patterns as in Spark: random patterns and texts.

Spark tells what it reads and refuses; a pattern that is not native is Spark's anyway. A longer run:
`STAGECOACH_PATTERNS=2000 pytest tests/differential/test_datetime_patterns.py`.
"""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from stagecoach.infra.errors import QueryError
from stagecoach.planner import plan_query
from tests.differential.edge_tables import EdgeTables
from tests.differential.inprocess import InProcessRunner, canonical
from tests.differential.query_check import SINGLE
from tests.differential.relation_tables import write_halves
from tests.differential.spark_answers import plain_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

PATTERNS = int(os.environ.get("STAGECOACH_PATTERNS", "40"))

FIELDS = {
    "y": ("2019", "0007"), "yy": ("19", "70"), "yyy": ("2019",), "yyyy": ("2019", "0001", "1583"),
    "M": ("7", "12"), "MM": ("07", "02"), "MMM": ("Jul", "jan"), "MMMM": ("July",), "L": ("7",),
    "d": ("9", "31"), "dd": ("09", "29"), "D": ("200",), "DDD": ("060",),
    "H": ("5", "23"), "HH": ("05", "24"), "h": ("5",), "hh": ("12",), "k": ("24",), "K": ("11",),
    "m": ("4", "59"), "mm": ("04", "60"), "s": ("3", "59"), "ss": ("03", "12"),
    "S": ("1",), "SSS": ("123", "1"), "SSSS": ("1232",), "SSSSSS": ("123456", "7"),
    "SSSSSSSSS": ("123456789",), "a": ("AM", "pm"), "E": ("Tue",), "EEEE": ("Tuesday",),
    "u": ("2",), "w": ("7",), "Q": ("3",), "X": ("Z", "+01"), "VV": ("Europe/Berlin",), "G": ("AD",),
}  # fmt: skip
COMMON = ["yyyy", "yyyy", "MM", "dd", "HH", "mm", "ss", "M", "d", "H", "m", "s", "SSS", "SSSS", "y"]
BETWEEN = ["", "", "-", "-", "/", ".", ":", " ", "'T'", "1", "'0'", "''", "_", "  "]


def random_pattern(rng: random.Random) -> tuple[str, list[str]]:
    """A pattern, and the pieces of a text that it may read."""
    letters, pattern, pieces = set[str](), "", list[str]()
    for _ in range(rng.randint(1, 5)):
        field = rng.choice(COMMON if rng.random() < 0.9 else list(FIELDS))
        if field[0] in letters and rng.random() < 0.9:
            continue
        if pattern and not (pattern[-1] == field[0] and rng.random() < 0.9):
            between = rng.choice(BETWEEN)
            pattern += between
            pieces.append(between.strip("'") if between != "''" else "'")
        letters.add(field[0])
        pattern += field
        pieces.append(rng.choice(FIELDS[field]))
    return pattern, pieces


def random_texts(rng: random.Random, pieces: list[str]) -> list[str]:
    """A text that the pattern should read, and some that it should not."""
    texts = ["".join(pieces)]
    for _ in range(5):
        changed = list(pieces)
        position = rng.randrange(len(changed))
        piece = changed[position]
        changed[position] = rng.choice(
            [
                piece + "1",
                piece[1:],
                piece[:-1],
                "0" + piece,
                "+" + piece,
                piece.upper(),
                "99",
                " ",
                "-1",
            ]
        )
        texts.append("".join(changed))
    return texts


def _spark_values(spark: SparkSession, sql: str) -> list[object] | str:
    """The values of the only column; why Spark raises."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    try:
        return canonical(spark.sql(sql).toArrow().column(0))
    except (PySparkException, Py4JJavaError) as error:
        return str(error).split("\n")[0][:120]


def _table(folder: Path, texts: list[str]) -> EdgeTables:
    schema = pa.schema([("n", pa.int32()), ("s", pa.string())])
    rows = [{"n": n, "s": text} for n, text in enumerate(texts)]
    return EdgeTables(folder, {"p": write_halves(folder, "p", schema, rows)}, {"p": schema})


def _literal(pattern: str) -> str:
    return "'" + pattern.replace("'", "\\'") + "'"


def _is_native(sql: str, tables: EdgeTables) -> bool:
    graph = plan_query(sql, tables.catalog, SINGLE)
    return {stage.engine for stage in graph.stages} == {"duckdb"}


def _own_value(sql: str, tables: EdgeTables, runner: InProcessRunner) -> tuple[object] | None:
    """The value; None where DuckDB raises, so that Spark runs the stage."""
    try:
        return (canonical(runner.run(plan_query(sql, tables.catalog, SINGLE)).column(0))[0],)
    except QueryError:
        return None


def test_texts_are_read_by_patterns_as_in_spark(spark: SparkSession, tmp_path: Path) -> None:
    rng = random.Random(20_261_123)
    pairs = {
        "ss.SSSSyyyy": ["12.1232019", "12.12019"],
        "d1": ["11", "31"],
        "yyyy0": ["20190", "2019"],
    }
    while len(pairs) < PATTERNS:
        pattern, pieces = random_pattern(rng)
        pairs.setdefault(pattern, random_texts(rng, pieces))
    tables = _table(tmp_path, [text for texts in pairs.values() for text in texts])
    session = plain_session(spark, tables)
    wrong, native, read, first = [], 0, 0, 0
    runner = InProcessRunner(tables, session)
    for pattern, texts in pairs.items():
        own = range(first, first := first + len(texts))
        for function in ("try_to_timestamp", "try_to_date"):
            value = f"{function}(s, {_literal(pattern)})"
            sql = f"SELECT {value} FROM p WHERE n BETWEEN {own[0]} AND {own[-1]} ORDER BY n"
            if not _is_native(sql, tables):
                continue
            native += 1
            theirs = _spark_values(session, sql)
            ours = [_own_value(f"SELECT {value} FROM p WHERE n = {n}", tables, runner) for n in own]
            if isinstance(theirs, str):
                wrong.append(f"{value}: Spark raises {theirs}, ours is native")
                continue
            read += sum(isinstance(v, tuple) and v != (None,) for v in ours)
            wrong += [
                f"{value} of {text!r}: Spark {right}, ours {value_}"
                for text, right, value_ in zip(texts, theirs, ours, strict=True)
                if isinstance(value_, tuple) and value_ != (right,)
            ]
    assert not wrong, f"{len(wrong)} of {read}:\n" + "\n".join(wrong)
    assert native > PATTERNS // 2
    assert read > PATTERNS // 2


def test_moments_are_written_by_patterns_as_in_spark(spark: SparkSession, tmp_path: Path) -> None:
    rng = random.Random(20_261_124)
    moments = ["1583-01-01 00:00:00", "1969-12-31 23:59:59.999999", "2024-02-29 12:34:56.7", "9999-12-31 13:00:01.000001", "0001-01-01 01:02:03"]  # fmt: skip
    tables = _table(tmp_path, moments)
    session = plain_session(spark, tables)
    runner = InProcessRunner(tables, session)
    wrong, native = [], 0
    for pattern in dict.fromkeys(random_pattern(rng)[0] for _ in range(PATTERNS)):
        sql = f"SELECT date_format(CAST(s AS TIMESTAMP_NTZ), {_literal(pattern)}) FROM p ORDER BY n"
        if not _is_native(sql, tables):
            continue
        native += 1
        theirs = _spark_values(session, sql)
        try:
            ours = canonical(runner.run(plan_query(sql, tables.catalog, SINGLE)).column(0))
        except QueryError:
            continue  # Spark runs the stage
        if ours != theirs:
            wrong.append(f"{pattern}: Spark {theirs}, ours {ours}")
    assert not wrong, f"{len(wrong)} of {native}:\n" + "\n".join(wrong)
    assert native > PATTERNS // 10
