"""Random JSON that fits a schema, or nearly does, is read as Spark reads it."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.differential.edge_tables import EdgeTables
from tests.differential.test_functions import Proof, check, report

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

SCHEMAS = [
    "id BIGINT, name STRING, score DOUBLE, ok BOOLEAN",
    "tags ARRAY<STRING>, addr STRUCT<city: STRING, zip: INT>",
    "small TINYINT, deep ARRAY<STRUCT<x: SMALLINT, y: ARRAY<DOUBLE>>>",
    "ID BIGINT, nope INT",
    "counts MAP<STRING, INT>, tags ARRAY<STRING>",
    "day DATE, at TIMESTAMP, more MAP<STRING, ARRAY<TIMESTAMP_NTZ>>",
]
TEXTS = ["", "a", "ß", "it's", 'say "x"', "back\\slash", "tab\t", "日本\n", "null", "true", "7", "1.50", "{}", "\u0001", "a,b", "😀", "x]"]  # fmt: skip


def document(rng: random.Random) -> str:
    """An object of the members of all schemas, some of which are missing or of another type."""

    def maybe(value: Any) -> Any:
        odd = rng.random()
        return rng.choice([None, 1, "s", [], {}, 2.5, False]) if odd < 0.02 else None if odd < 0.1 else value  # fmt: skip

    def number(bits: int) -> int:
        top = 2 ** (bits - 1)
        return rng.choice([0, -1, top - 1, -top, rng.randint(-9, 9), rng.randint(-top, top - 1)])

    def double() -> float:
        return rng.choice([0.0, 1.0, -2.5, 1e300, 1e-7, 0.1, rng.uniform(-9, 9), rng.uniform(-1e12, 1e12)])  # fmt: skip

    def moment() -> str:
        fraction = rng.choice(["", ".5", ".123", ".123456"])
        day = f"{rng.choice([1, 1582, 1969, 2024]):04}-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}"
        return (
            f"{day}{rng.choice('T ')}{rng.randint(0, 23):02}:{rng.randint(0, 59):02}:07{fraction}"
        )

    deep = [maybe({"x": maybe(number(16)), "y": maybe([maybe(double()) for _ in range(rng.randint(0, 3))])}) for _ in range(rng.randint(0, 3))]  # fmt: skip
    members = {
        "id": maybe(number(64)), "name": maybe(rng.choice(TEXTS)), "score": maybe(double()), "ok": maybe(rng.random() < 0.5), "small": maybe(number(8)),
        "tags": maybe([maybe(rng.choice(TEXTS)) for _ in range(rng.randint(0, 3))]), "addr": maybe({"city": maybe(rng.choice(TEXTS)), "zip": maybe(number(32)), "more": double()}),
        "deep": maybe(deep), "ID": maybe(number(8)),
        "counts": maybe({rng.choice(TEXTS): maybe(number(32)) for _ in range(rng.randint(0, 3))}), "day": maybe(moment()[:10]), "at": maybe(moment()),
        "more": maybe({"a": maybe([maybe(moment()), moment()]), "b.c": maybe([])}),
    }  # fmt: skip
    kept = {k: v for k, v in members.items() if rng.random() < 0.85}
    separators = rng.choice([(",", ":"), (", ", ": "), (" ,\n", " :\t")])
    return json.dumps(kept, ensure_ascii=rng.random() < 0.5, separators=separators)


def test_random_documents(oracle: SparkSession, tmp_path: Path) -> None:
    rng = random.Random(17)
    count = 300
    docs = pa.table(
        {"id": pa.array(range(count), pa.int32()), "js": [document(rng) for _ in range(count)]}
    )
    (tmp_path / "docs").mkdir()
    path = str(tmp_path / "docs" / "a.parquet")
    pq.write_table(docs, path)
    tables = EdgeTables(tmp_path, {"docs": (path,)}, {"docs": docs.schema})
    session = oracle.newSession()
    session.conf.set("spark.sql.ansi.enabled", "true")
    session.read.parquet(path).createOrReplaceTempView("docs")
    calls = [f"from_json(js, '{schema}')" for schema in SCHEMAS]
    wrong, cases = check(Proof(tables, session, table="docs"), calls)
    wrong += [f"{c.expr}: is not native: {c.refusal}" for c in cases if not c.is_native]
    # Most texts are read by DuckDB.
    wrong += [f"{c.expr}: {c.bad_rows} raise" for c in cases if len(c.bad_rows) > count / 4]
    assert not wrong, report(wrong)
