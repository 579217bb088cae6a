"""ORDER BY merged by several tasks: which stages may, and that the rows are Spark's, in its order."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import json
import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stagecoach.assets.report.stage_metadata import decisions
from stagecoach.infra.catalog.catalog import FileCatalog, load_catalog
from stagecoach.infra.config.settings import EngineSettings
from stagecoach.infra.runtime.adaptive.ranges import merged_leaf, output_order
from stagecoach.infra.runtime.stages.run_stage import Run, read_result, run_stage
from stagecoach.infra.shuffle.reader import read_table
from stagecoach.infra.shuffle.row_order import RowOrder
from stagecoach.infra.storage.stores import open_store
from stagecoach.planner.options import PlannerOptions
from stagecoach.planner.plan.stages import Stage
from stagecoach.planner.planning import plan_query
from tests.infra.stage_runs import run_here

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OPTIONS = PlannerOptions(force_distribution=True, num_partitions=4)
NAN, INF = float("nan"), float("inf")
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)

KEYS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "i": (pa.int32(), [-(2**31), -1, 0, 1, 2**31 - 1]),
    "l": (pa.int64(), [-(2**63), -7, 0, 2**63 - 1]),
    "f": (pa.float32(), [-INF, -0.0, 0.0, 1.5, INF, NAN]),
    "d": (pa.float64(), [-INF, -1e300, -0.0, 0.0, 5e-324, INF, NAN]),
    "n": (pa.decimal128(20, 3), [decimal.Decimal(t) for t in ("-12.345", "0", "99999999999.999")]),
    "s": (pa.string(), ["", "A", "a", "ab", "\t", "é", "\uffff", "\U0001f600", "x" * 70 + "1"]),
    "y": (pa.binary(), [b"", b"\x00", b"\x7f", b"\x80", b"\xff\x00"]),
    "t": (pa.timestamp("us", "UTC"), [EPOCH - datetime.timedelta(days=9e5 * n) for n in (0.7, 0)]),
    "a": (pa.date32(), [datetime.date(1, 1, 1), datetime.date(9999, 12, 31)]),
    "o": (pa.bool_(), [True, False]),
    "hot": (pa.int32(), [5]),
}


def some(kind: pa.DataType, edge: list[Any], rng: random.Random) -> Any:
    """An edge value, NULL, or any value of the type."""
    if (roll := rng.random()) < 0.1:
        return None
    if roll < 0.3 or len(edge) == 1:
        return rng.choice(edge)
    if pa.types.is_integer(kind):
        return rng.randrange(-500, 500)
    if pa.types.is_floating(kind):
        return rng.randrange(-500, 500) / 8
    if pa.types.is_decimal(kind):
        return decimal.Decimal(rng.randrange(-(10**6), 10**6)).scaleb(-3)
    if pa.types.is_timestamp(kind):
        return EPOCH + datetime.timedelta(microseconds=rng.randrange(-(10**15), 10**15))
    if pa.types.is_date(kind):
        return datetime.date(1970, 1, 1) + datetime.timedelta(days=rng.randrange(-9999, 9999))
    text = "x" * rng.choice([0, 3, 66]) + "".join(rng.choices("abcé", k=rng.randrange(4)))
    return (
        rng.choice(edge) if kind == pa.bool_() else text if kind == pa.string() else text.encode()
    )


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ranges")
    rng = random.Random(11)
    schema = pa.schema([("id", pa.int64()), *((k, kind) for k, (kind, _) in KEYS.items())])
    for name, rows in {"t": 1500, "none": 0}.items():
        (folder / name).mkdir()
        for number in range(2):
            columns = [pa.array(range(number, 2 * rows, 2), pa.int64())]
            columns += [
                pa.array([some(kind, edge, rng) for _ in range(rows)], kind)
                for kind, edge in KEYS.values()
            ]
            pq.write_table(pa.table(columns, schema=schema), folder / name / f"{number}.parquet")
    (folder / "catalog.yaml").write_text(
        "tables:\n  t:\n    location: t\n  none:\n    location: none\n"
    )
    return folder


@pytest.fixture(scope="module")
def catalog(tables: Path) -> FileCatalog:
    return load_catalog(tables / "catalog.yaml")


def stages_of(sql: str, catalog: FileCatalog) -> tuple[Stage, ...]:
    return plan_query(sql, catalog, OPTIONS, name="q").stages


def test_which_merges_may_be_divided(catalog: FileCatalog) -> None:
    def merged(sql: str) -> tuple[RowOrder | None, RowOrder | None]:
        *_, below, head = stages_of(sql, catalog)
        found = merged_leaf(head)
        return output_order(below), None if found is None else found[1]

    for sql, order in {
        "SELECT id, i FROM t ORDER BY i, id": RowOrder(1),
        "SELECT id, i FROM t ORDER BY i DESC": RowOrder(1, False, False),
        "SELECT id, i FROM t ORDER BY i DESC NULLS FIRST": RowOrder(1, False, True),
        "SELECT id FROM t ORDER BY i % 7 NULLS LAST, id": RowOrder(1, True, False),
        "SELECT id + 1 FROM (SELECT * FROM t ORDER BY i)": RowOrder(1),
        "SELECT i, count(*) FROM t GROUP BY i ORDER BY 2, 1": RowOrder(1),
    }.items():
        assert merged(sql) == (order, order), sql
    for sql in (
        "SELECT id FROM t ORDER BY i LIMIT 5",
        "SELECT id FROM t ORDER BY i LIMIT 5 OFFSET 2",
        "SELECT id FROM t ORDER BY i OFFSET 2",
        "SELECT id, row_number() OVER (ORDER BY id) FROM (SELECT id FROM t ORDER BY i)",
        "SELECT collect_list(id) FROM (SELECT id FROM t ORDER BY i)",
    ):
        assert merged(sql)[1] is None, sql


# ---------------------------------------------------------------- beside Spark

SORTED = [
    *(f"SELECT {k}, id FROM t ORDER BY {k}, id DESC" for k in KEYS),
    "SELECT i, id FROM t ORDER BY i DESC NULLS FIRST, id",
    "SELECT d, id FROM t ORDER BY d DESC, id",
    "SELECT s, id FROM t ORDER BY s DESC NULLS FIRST, id",
    "SELECT n, id FROM t ORDER BY n ASC NULLS LAST, id",
    "SELECT id, upper(s) AS u FROM (SELECT * FROM t WHERE i IS NOT NULL ORDER BY i, id) "
    "WHERE id % 3 = 0",
    "SELECT i, count(*) AS n, max(s) AS m FROM t GROUP BY i ORDER BY i",
]
WHOLE = [
    "SELECT 1 AS one, id FROM t WHERE hot = 5 ORDER BY hot + 1, id",
    "SELECT id, i FROM none ORDER BY i, id",
    "SELECT id, row_number() OVER (ORDER BY id) AS r FROM (SELECT id, i FROM t ORDER BY i)",
    "SELECT id, i FROM t ORDER BY array(i), id",
]


def lines_of(table: pa.Table) -> list[str]:
    return [json.dumps(list(row.values()), default=str) for row in table.to_pylist()]


@pytest.mark.slow
@pytest.mark.spark
def test_rows_come_in_sparks_order(
    tables: Path,
    catalog: FileCatalog,
    spark_settings: EngineSettings,
    spark: SparkSession,
    tmp_path: Path,
) -> None:
    settings = dataclasses.replace(spark_settings, min_task_bytes=0, parallelism=4)
    for name in ("t", "none"):
        spark.read.parquet(str(tables / name)).createOrReplaceTempView(name)
    for number, sql in enumerate([*SORTED, *WHOLE]):
        graph = plan_query(sql, catalog, OPTIONS, name="q")
        store = open_store(tmp_path / str(number))
        done = run_here(graph, catalog, settings, store)
        files = done[-1].manifest.files
        assert lines_of(read_table(store, done[-1].manifest)) == lines_of(spark.sql(sql).toArrow())
        kinds = [d.kind for d in done[-1].decisions]
        if sql in WHOLE:
            assert len(files) == 1 and "ranges" not in kinds, sql
            continue
        assert kinds == ["ranges"], sql
        rows = [file.num_rows for file in files]
        few = next((n for key, n in (("hot", 2), (" o,", 3)) if key in sql), 4)
        assert len(rows) == few and min(rows) > 0, (sql, rows)
        assert few < 4 or max(rows) < 0.5 * sum(rows), (sql, rows)


@pytest.mark.slow
@pytest.mark.spark
def test_a_run_on_spark_divides_a_merge_and_tells_of_it(
    catalog: FileCatalog, spark_settings: EngineSettings, spark: SparkSession, tmp_path: Path
) -> None:
    sql = "SELECT s, id FROM t ORDER BY s DESC, id"
    graph = plan_query(sql, catalog, OPTIONS, name="q")
    settings = dataclasses.replace(spark_settings, storage_root=str(tmp_path), min_task_bytes=0)
    context = Run(
        graph=graph,
        run_id="run",
        root_run_id="run",
        settings=settings,
        store=settings.open_store(),
        catalog=catalog,
        spark=lambda: spark,
    )
    results = [run_stage(stage.stage_id, context) for stage in graph.stages]
    manifest = results[-1].manifest
    assert manifest is not None and manifest.engine == "duckdb"
    told = decisions(graph, graph.head, results[-1], manifest)
    assert "- **ranges** 2 sorted files of stage 0, " in told
    assert len(manifest.files) == 2
    one_task = dataclasses.replace(settings, adaptive=False)
    whole = run_here(graph, catalog, one_task, context.store)[-1]
    assert len(whole.manifest.files) == 1 and not whole.decisions
    assert lines_of(read_result(context)) == lines_of(read_table(context.store, whole.manifest))
