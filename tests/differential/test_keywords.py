"""Keywords are names wherever they are names to Spark: every word, in many places of a query.

Spark reads a word as a name if the query means the same with the word in backticks. Then our plans
of both texts must be equal, too.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import PySparkException

from stagecoach.planner import plan_query
from stagecoach.planner.catalog import MappingCatalog
from stagecoach.planner.errors import SqlError
from stagecoach.planner.plan.serde import dump_graph
from tests.differential.keyword_places import PLACES
from tests.share import EVERYTHING, share

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# sqlglot reserves these; every one of them is tried in every place.
RESERVED = [
    "ALL",
    "ALTER",
    "AND",
    "ANY",
    "ARRAY",
    "AS",
    "ASOF",
    "BETWEEN",
    "BY",
    "CASE",
    "CREATE",
    "CROSS",
    "CURRENT_DATE",
    "CURRENT_TIMESTAMP",
    "CURRENT_USER",
    "DESCRIBE",
    "DISTINCT",
    "DROP",
    "ELSE",
    "END",
    "EXCEPT",
    "EXISTS",
    "FETCH",
    "FOR",
    "FROM",
    "GRANT",
    "HAVING",
    "IF",
    "ILIKE",
    "INNER",
    "INSERT",
    "INTERSECT",
    "INTERVAL",
    "INTO",
    "JOIN",
    "LATERAL",
    "LIKE",
    "LIST",
    "LOCK",
    "MAP",
    "MINUS",
    "NOT",
    "ON",
    "OR",
    "OUTER",
    "OVER",
    "QUALIFY",
    "RANGE",
    "REVOKE",
    "ROLLBACK",
    "SELECT",
    "SERDEPROPERTIES",
    "SESSION_USER",
    "SET",
    "STRUCT",
    "TABLESAMPLE",
    "THEN",
    "UNCACHE",
    "UNION",
    "USING",
    "VALUES",
    "WHEN",
    "WHERE",
    "WINDOW",
    "WITH",
]
OTHERS = 4  # other words that are tried in each place

# Read as keywords here, which is an error: the text could be read in two ways.
NOT_NAMES = {
    *(("y @ FROM", w) for w in ("DISTINCT", "EXCEPT", "INTERSECT", "MINUS", "UNION")),
    ("SELECT 1 @", "FROM"), ("(SELECT 1 AS y) @", "FROM"), ("(SELECT 1 AS k) @", "FROM"), ("@ r", "CASE"), ("@ + 1", "CASE"), ("@ + 1", "DISTINCT"), ("(@ + y)", "CASE"),
    ("(@ + y)", "DISTINCT"), ("@ BETWEEN @", "FROM"), ("THEN @", "CASE"), ("THEN @", "DISTINCT"),
    ("THEN @", "NOT"), ("CASE @ WHEN", "WHEN"), ("WHERE NOT @", "DISTINCT"), ("@ NULLS", "CASE"),
    ("@ NULLS", "DISTINCT"), ("@ NULLS", "FROM"), ("@ NULLS", "LATERAL"), ("@ NULLS", "NOT"),
    ("@ NULLS", "SELECT"), ("@ NULLS", "VALUES"), ("@ NULLS", "WITH"), ("@ ROWS", "CASE"),
    ("@ ROWS", "DISTINCT"), ("@ ROWS", "NOT"), (") @ WHERE", "AS"), ("AS @ WHERE", "AS"),
    ("AS @ WHERE", "HAVING"), ("AS @ WHERE", "WHERE"), ("ON @.y", "AS"), ("ON @.y", "HAVING"),
    ("ON @.y", "WHERE"), (") @ AS k", "AS"), ("(1 AS @)", "ANY"), ("@ -> @ + 1", "CASE"),
    ("@ -> @ + 1", "DISTINCT"), ("-> @ + y", "CASE"), ("-> @ + y", "DISTINCT"),
}  # fmt: skip


def _with_word(place: str, word: str) -> tuple[str, str]:
    """The text with the word as it is, and with the word in backticks."""
    bare = re.compile("(?<![`'])@(?![`'])")
    return tuple(bare.sub(w, place).replace("@", word) for w in (word, f"`{word}`"))  # type: ignore[return-value]


def _cases(words: list[str]) -> Iterator[tuple[str, str]]:
    rng = random.Random(18)
    for place in PLACES:
        for word in [*RESERVED, *rng.sample(words, OTHERS)]:
            if not any(part in place and word == w for part, w in NOT_NAMES):
                yield place, word


def _spark_reads_a_name(spark: SparkSession, texts: tuple[str, str]) -> bool:
    try:
        plain = spark.sql(texts[0])
    except PySparkException:
        return False
    quoted = spark.sql(texts[1])
    same = plain._jdf.sameSemantics(quoted._jdf)  # type: ignore[attr-defined]
    return bool(same) and plain.schema == quoted.schema


def _plan(sql: str) -> object:
    try:
        graph = json.loads(dump_graph(plan_query(sql, MappingCatalog([]))))["graph"]
    except SqlError as error:
        return str(error)
    del graph["sql"]
    for stage in graph["stages"]:
        stage["sql"] = stage["sql"] and "the whole query"
    return graph


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_keywords_are_names_where_they_are_to_spark(spark: SparkSession) -> None:
    session = spark.newSession()
    session.conf.set("spark.sql.ansi.enabled", "true")
    words = [row[0] for row in session.sql("SELECT keyword FROM sql_keywords()").collect()]
    assert set(RESERVED) - set(words) <= {"ASOF", "END", "IF", "LIST", "LOCK", "QUALIFY"}
    wrong, tried = [], 0
    for place, word in share(_cases(words), 40):
        texts = _with_word(place, word.lower())
        if _spark_reads_a_name(session, texts):
            tried += 1
            ours = [_plan(text) for text in texts]
            if ours[0] != ours[1]:
                wrong.append(
                    f"{texts[0]}: {ours[0] if isinstance(ours[0], str) else 'another plan'}"
                )
    assert not wrong, f"{len(wrong)} of {tried}:\n" + "\n".join(wrong)
    assert tried > (4000 if EVERYTHING else 100)
