"""Random queries over a table of a random history, beside plain Spark over the rows it must have."""

from __future__ import annotations

import datetime as dt
import random
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from stagecoach.infra.catalog.catalog import FileCatalog
from stagecoach.infra.config.settings import EngineSettings
from stagecoach.infra.shuffle.reader import read_table
from stagecoach.planner.options import PlannerOptions
from stagecoach.planner.planning import plan_query
from tests.infra.formats.iceberg.answers import FORCED, as_set
from tests.infra.stage_runs import run_here

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

UTC = ZoneInfo("UTC")
VALUES: Mapping[str, Sequence[Any]] = {
    "int": [*range(-3, 9), 2**31 - 1],
    "bigint": [*range(-3, 9), 1 << 40],
    "string": ["", "a", "ab", "b", "it's", "ü%", "x/y =z", "#?"],
    "double": [0.0, -0.0, float("nan"), 1.5, -2.25, float("inf")],
    "decimal(12,2)": [Decimal("0.00"), Decimal("-1.50"), Decimal("99.99"), Decimal("3.00")],
    "date": [dt.date(1969, 12, 31), dt.date(2024, 2, 29), dt.date(2024, 3, 1)],
    "timestamp": [
        dt.datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC),
        dt.datetime(2024, 1, 1, tzinfo=UTC),
        dt.datetime(2024, 1, 1, 0, 0, 0, 1, UTC),
    ],
    "struct<a: int, b: string>": [{"a": 1, "b": None}, {"a": None, "b": "x"}],
}


@dataclass(frozen=True)
class State:
    """What a version of a table must be: columns with Spark's types, and rows."""

    columns: Mapping[str, str]
    rows: Sequence[Mapping[str, Any]]


def value(chance: random.Random, kind: str) -> Any:
    return None if chance.random() < 0.2 else chance.choice(VALUES[kind])


def literal(found: Any, kind: str) -> str:
    match kind:
        case "string":
            return "'" + found.replace("'", "\\'") + "'"
        case "double":
            return f"double('{found}')"
        case "date":
            return f"DATE'{found}'"
        case "timestamp":
            return f"TIMESTAMP'{found.strftime('%Y-%m-%d %H:%M:%S.%f')}Z'"
    return str(found)


def condition(chance: random.Random, columns: Mapping[str, str]) -> str:
    name, kind = chance.choice(list(columns.items()))
    if kind.startswith("struct"):
        name, kind = chance.choice([(f"{name}.a", "int"), (f"{name}.b", "string"), (name, "")])
    if not kind or chance.random() < 0.2:
        return f"{name} IS {chance.choice(['', 'NOT '])}NULL"
    first, second = (literal(chance.choice(VALUES[kind]), kind) for _ in range(2))
    return chance.choice(
        [f"{name} {chance.choice(['=', '<', '>=', '<>', '<=>'])} {first}", f"{name} IN ({first}, {second})", f"{name} BETWEEN {first} AND {second}"]
    )  # fmt: skip


def query(chance: random.Random, columns: Mapping[str, str], source: str) -> str:
    """A query of `{t}`, which stands for the table."""
    where = " AND ".join(condition(chance, columns) for _ in range(chance.randint(0, 2))) or "TRUE"
    flat = [name for name, kind in columns.items() if not kind.startswith("struct")]
    name, other = chance.choice(flat), chance.choice(flat)
    # Of 0.0 and -0.0 the first one is the smallest, and rows have no order.
    ordered = chance.choice([n for n in flat if columns[n] != "double"])
    return chance.choice(
        [
            f"SELECT * FROM {source} WHERE {where}",
            f"SELECT {name} AS c, count(*) AS n, count({other}) AS m, max({ordered}) AS h FROM {source} WHERE {where} GROUP BY {name}",
            f"SELECT count(*) AS n, min({ordered}) AS low, max({ordered}) AS high FROM {source} WHERE {where}",
            f"SELECT a.{name} AS c, count(*) AS n FROM {source} a JOIN {source} b ON a.{name} = b.{name} GROUP BY a.{name}",
        ]
    )  # fmt: skip


def answer(catalog: FileCatalog, sql: str, folder: Path, options: PlannerOptions) -> pa.Table:
    given = EngineSettings(
        storage_root=str(folder / "stores" / uuid.uuid4().hex),
        spill_dir=str(folder / "spill"),
        parallelism=2,
    )
    store = given.open_store()
    graph = plan_query(sql, catalog, options, name="q")
    assert {stage.engine for stage in graph.stages} == {"duckdb"}, sql
    stages = run_here(graph, catalog, given, store)
    found = read_table(store, stages[-1].manifest)
    return found.rename_columns([field.name for field in graph.stages[-1].schema])


def check(
    chance: random.Random,
    catalog: FileCatalog,
    current: State,
    versions: Mapping[int, State],
    spark: SparkSession,
    folder: Path,
    count: int = 2,
) -> None:
    """Compare the table, and queries of it and its versions, with Spark over the rows they have."""
    queries = [("t", current, "SELECT * FROM {t}")]
    for _ in range(count):
        source, state = "t", current
        if versions and chance.random() < 0.4:
            number = chance.choice(list(versions))
            source, state = f"t VERSION AS OF {number}", versions[number]
        queries.append((source, state, query(chance, state.columns, "{t}")))
    for source, state, text in queries:
        kinds = ", ".join(f"{name} {kind}" for name, kind in state.columns.items())
        spark.createDataFrame([tuple(r[n] for n in state.columns) for r in state.rows], kinds).createOrReplaceTempView("t")  # fmt: skip
        options = FORCED if chance.random() < 0.5 else PlannerOptions()
        sql = text.format(t=source)
        found = answer(catalog, sql, folder, options)
        expected = spark.sql(text.format(t="t")).toArrow()
        # deltalake moves partition columns behind the others when it adds a column.
        assert len(expected.schema) == len(found.schema)
        expected = expected.select(found.schema.names).cast(found.schema)
        assert as_set(found.to_pylist()) == as_set(expected.to_pylist()), sql
