"""Bloom filters as runtime filters: fewer rows are shuffled, and the result is Spark's."""

from __future__ import annotations

import dataclasses
import datetime as dt
import random
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stagecoach.infra.catalog.catalog import FileCatalog, load_catalog
from stagecoach.infra.runtime.planning.bloom_steps import bloom_step
from stagecoach.planner.catalog import ColumnStats, MappingCatalog, TableInfo, TableStats
from stagecoach.planner.distribution import bloom
from stagecoach.planner.options import PlannerOptions
from stagecoach.planner.plan.physical import BloomBuildExec, BloomProbeExec
from stagecoach.planner.plan.serde import dump_graph, load_graph
from stagecoach.planner.plan.stages import StageGraph
from stagecoach.planner.planning import plan_query
from stagecoach.planner.render.fragment import render_fragment
from stagecoach.planner.types import BIGINT, Field
from tests.infra.spark_runs import make_views, rows_of, run, run_on_duckdb, run_tasks_here

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from stagecoach.infra.config.settings import EngineSettings

OPTIONS = PlannerOptions(
    force_distribution=True, num_partitions=3, inline_bytes=0, broadcast_bytes=200
)
KEYS = pa.schema([("i", pa.int32()), ("n", pa.int64()), ("p", pa.decimal128(20, 4)), ("s", pa.string()), ("x", pa.float64()), ("d", pa.date32()), ("t", pa.timestamp("us", "UTC")), ("w", pa.int32())])  # fmt: skip
FACT = pa.schema([("i", pa.int64()), ("n", pa.int32()), ("p", pa.decimal128(12, 2)), ("s", pa.string()), ("x", pa.float32()), ("d", pa.date32()), ("t", pa.timestamp("us", "UTC")), ("v", pa.int64())])  # fmt: skip
NUM_ROWS = 6000
FLOATS = [0.0, -0.0, float("nan"), float("inf"), 1.5]


def row(number: int) -> dict[str, Any]:
    """The values of a key in every type; a few are NULL, NaN or -0.0."""
    if number % 97 == 5:
        return dict.fromkeys(("i", "n", "p", "s", "x", "d", "t"))
    return {
        "i": number,
        "n": number - 500,
        "p": Decimal(number) / 4,
        "s": f"ß{number}\U0001f600" if number % 3 else "x" * (number % 50),
        "x": FLOATS[number % 50] if number % 50 < 5 else float(number),
        "d": dt.date(1960, 1, 1) + dt.timedelta(number * 11),
        "t": dt.datetime(1960, 1, 1, tzinfo=dt.UTC) + dt.timedelta(seconds=number * 10_001),
    }


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bloom")
    rng = random.Random(4)
    facts = [{**row(rng.randrange(2000)), "v": i} for i in range(NUM_ROWS)]
    keys = [{**row(i), "w": i % 20} for i in range(0, 2000, 2)]
    keys += [{**row(20), "w": 0}, {**row(5), "w": 0}]
    contents = {"fact": (facts, FACT), "keys": (keys, KEYS)}
    for name, (rows, schema) in contents.items():
        (folder / name).mkdir()
        table = pa.Table.from_pylist(rows, schema=schema)
        pq.write_table(table, folder / name / "a.parquet", row_group_size=1000)
    entries = "".join(f"  {name}:\n    location: {name}\n" for name in contents)
    (folder / "catalog.yaml").write_text(f"tables:\n{entries}")
    return folder


_SIDE = "(SELECT * FROM keys WHERE w = 0) q"
CASES = [
    *(
        f"SELECT f.v, q.w FROM fact f JOIN {_SIDE} ON f.{key} = q.{key}"
        for key in ("i", "p", "s", "x", "d", "t")
    ),
    f"SELECT f.v FROM fact f LEFT SEMI JOIN {_SIDE} ON f.n = q.n AND f.s = q.s",
    f"SELECT f.v, q.w FROM fact f JOIN {_SIDE} ON f.n <=> q.n",
    f"SELECT q.w, f.v FROM {_SIDE} LEFT JOIN fact f ON f.i = q.i",
    f"SELECT q.w, q.n FROM {_SIDE} LEFT ANTI JOIN fact f ON f.i = q.i",
    f"SELECT f.v % 7 AS g, count(*) AS n FROM fact f JOIN {_SIDE} ON f.i = q.i GROUP BY f.v % 7",
    "SELECT f.v FROM fact f JOIN (SELECT * FROM keys WHERE w = 1) q ON f.i = q.i",
]


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """A filter pays whatever it costs."""
    monkeypatch.setattr(bloom, "_WAIT_BYTES", -(1 << 40))
    monkeypatch.setattr(bloom, "MAX_SHARE", 1.0)


def probe_of(graph: StageGraph) -> int:
    """The number of the stage that a Bloom filter is applied to."""
    (found,) = (s.stage_id for s in graph.stages if isinstance(s.fragment, BloomProbeExec))
    return found


def planned(sql: str, catalog: FileCatalog, **options: Any) -> StageGraph:
    return plan_query(sql, catalog, dataclasses.replace(OPTIONS, **options), name="q")


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.usefixtures("always")
def test_rows_are_sparks_and_fewer_are_shuffled(
    tables: Path,
    spark_settings: EngineSettings,
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run_tasks_here(monkeypatch)
    catalog = load_catalog(tables / "catalog.yaml")
    settings = dataclasses.replace(spark_settings, storage_root=str(tmp_path), min_task_bytes=0)
    make_views(spark, tables, "fact", "keys")
    for sql in CASES:
        graph = planned(sql, catalog)
        manifests = run_on_duckdb(sql, graph, catalog, settings, spark)
        shuffled = manifests[probe_of(graph)].num_rows
        assert shuffled < NUM_ROWS / 6, (sql, shuffled)


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("on_spark", ["build", "probe"])
def test_a_filter_may_be_made_on_spark_and_is_not_applied_there(
    tables: Path,
    spark_settings: EngineSettings,
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    on_spark: str,
) -> None:
    run_tasks_here(monkeypatch)
    catalog = load_catalog(tables / "catalog.yaml")
    settings = dataclasses.replace(spark_settings, storage_root=str(tmp_path), min_task_bytes=0)
    graph = planned(CASES[0], catalog)
    wanted = BloomBuildExec if on_spark == "build" else BloomProbeExec
    stages = tuple(
        dataclasses.replace(s, engine="spark") if isinstance(s.fragment, wanted) else s
        for s in graph.stages
    )
    found, manifests = run(dataclasses.replace(graph, stages=stages), catalog, settings, spark)
    make_views(spark, tables, "fact", "keys")
    assert found == rows_of(spark.sql(CASES[0]).toArrow())
    probe = manifests[probe_of(graph)]
    told = [d["text"] for d in probe.metrics.get("adaptive", ()) if d["kind"] == "bloom"]
    if on_spark == "build":
        assert probe.num_rows < NUM_ROWS / 6
        assert not told
    else:
        assert probe.num_rows == NUM_ROWS
        assert told == ["the Bloom filter of stage 2 is not applied: Spark runs this stage"]


@pytest.mark.usefixtures("always")
def test_the_filter_is_declared_in_the_graph(tables: Path) -> None:
    graph = planned(CASES[4], load_catalog(tables / "catalog.yaml"))
    assert load_graph(dump_graph(graph)) == graph
    source, build, merge, probe, head = graph.stages
    assert (build.inputs, merge.inputs, probe.inputs) == ((0,), (1,), (2,))
    assert head.inputs == (source.stage_id, probe.stage_id)
    assert [s.output.kind for s in (build, merge, probe)] == ["gather", "broadcast", "shuffle"]
    assert "runtime filter on d: " in merge.output.reason
    texts = [render_fragment(s, "duckdb", None).splitlines()[-1] for s in (build, merge, probe)]
    assert texts == [
        "/* then a Bloom filter of (c0) */",
        "/* then the union of these Bloom filters */",
        "/* then the rows whose (c0) may be in the Bloom filter in_1 */",
    ]
    steps = [bloom_step(s) for s in graph.stages]
    assert [s and s.kind for s in steps] == [None, "build", "merge", "probe", None]
    assert isinstance(build.fragment, BloomBuildExec)
    other = dataclasses.replace(build.fragment, num_words=99)
    assert dataclasses.replace(build, fragment=other).plan_hash != build.plan_hash


FIELDS = (Field("k", BIGINT), Field("v", BIGINT), Field("w", BIGINT))


def kinds(kept: int, **options: Any) -> list[str]:
    """Runtime filters of a join of 40 M facts with `kept` of 1,000 of the 20 M keys, by kind."""
    most = {"k": 20_000_000, "v": 1 << 40, "w": 1000}
    stats = {n: ColumnStats(0, m - 1, 0, m, 8.0) for n, m in most.items()}
    sizes = TableStats(40_000_000, 1 << 30, 9, stats), TableStats(20_000_000, 1 << 29, 9, stats)
    tables = [TableInfo(n, FIELDS, s) for n, s in zip(("fact", "keys"), sizes, strict=True)]
    sql = f"SELECT f.v, q.v AS u FROM fact f JOIN keys q ON f.k = q.k WHERE q.w < {kept}"
    graph = plan_query(sql, MappingCatalog(tables), PlannerOptions(**options))
    reasons = [stage.output.reason for stage in graph.stages]
    words = ("this list of keys is small", "a Bloom filter has")
    return [word for reason in reasons for word in words if word in reason]


def test_a_list_up_to_a_size_then_a_filter_up_to_a_size() -> None:
    assert kinds(75, broadcast_bytes=16 << 20) == ["this list of keys is small"]
    assert kinds(400) == ["a Bloom filter has"]
    assert kinds(200, key_list_bytes=1 << 20) == ["a Bloom filter has"]
    assert kinds(200, broadcast_bytes=60 << 20) == ["this list of keys is small"]
    assert kinds(400, bloom_bytes=1 << 20) == []
    assert kinds(400, runtime_filters=False) == []
    assert kinds(600) == []  # most rows have a partner
