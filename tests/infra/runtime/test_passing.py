"""Partial aggregates that pass rows on: the row form of each state, when a task tries, what it does."""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
import random
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stagecoach.infra.catalog.catalog import FileCatalog, load_catalog
from stagecoach.infra.config.settings import EngineSettings
from stagecoach.infra.reading.data_file import DataFile
from stagecoach.infra.runtime.adaptive import passing
from stagecoach.infra.runtime.adaptive.passing import sample_files, streamed_leaf
from stagecoach.infra.shuffle.reader import read_table
from stagecoach.infra.storage.stores import open_store
from stagecoach.infra.worker.reports import TaskReport, TrialResult
from stagecoach.infra.worker.trial import expected_share, predicted_share
from stagecoach.planner.aggregates import AGGREGATES
from stagecoach.planner.options import PlannerOptions
from stagecoach.planner.plan.expressions import TRUE, AggregateCall, Column
from stagecoach.planner.plan.physical import AggregateExec, FilterExec
from stagecoach.planner.plan.stages import StageGraph
from stagecoach.planner.planning import plan_query
from stagecoach.planner.staging.row_states import passed_through
from stagecoach.planner.types import INT
from tests.infra.runtime.test_adaptive import aggregate, join, leaf, stage_of
from tests.infra.stage_runs import StageRun, run_here

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OPTIONS = PlannerOptions(
    force_distribution=True, num_partitions=3, inline_bytes=0, broadcast_bytes=0
)
NAN, INF = float("nan"), float("inf")


def settings_at(folder: Path, **changes: Any) -> EngineSettings:
    values: dict[str, Any] = {
        "storage_root": str(folder),
        "parallelism": 2,
        "min_task_bytes": 0,
    }
    return EngineSettings(**{**values, **changes})


def run(
    graph: StageGraph, catalog: FileCatalog, folder: Path, **changes: Any
) -> tuple[list[str], Sequence[StageRun]]:
    store = open_store(str(folder))
    runs = run_here(graph, catalog, settings_at(folder, **changes), store)
    table = read_table(store, runs[-1].manifest)
    return sorted(json.dumps(list(row.values()), default=repr) for row in table.to_pylist()), runs


# ---------------------------------------------------------------- the states of one row

_DECIMALS = [None, Decimal("0.00"), Decimal("-1.25"), Decimal("99999999.99")]
_ROWS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "i8": (pa.int8(), [None, 0, 127, -128]),
    "i32": (pa.int32(), [2**31 - 1, None, -(2**31), 5]),
    "i64": (pa.int64(), [2**62, -(2**62), None, 3]),
    "f32": (pa.float32(), [1.5, None, INF, -2.25]),
    "f64": (pa.float64(), [NAN, 1.5, None, -INF, 2.0]),
    "d": (pa.decimal128(10, 2), _DECIMALS),
    "big": (pa.decimal128(38, 4), [None, Decimal("7.5"), Decimal("-12345678901234567890.1234")]),
    "b": (pa.bool_(), [True, None, False]),
    "s": (pa.string(), ["ä", None, "", "b"]),
    "day": (pa.date32(), [0, None, -1, 20_000]),
    "at": (pa.timestamp("us", tz="UTC"), [0, None, -1, 1_700_000_000_000_001]),
    "y": (pa.binary(), [b"", None, b"\x00\xff"]),
}
_STATES = [
    "count(*)", "count(i8)", "count(i8, s)", "count(*) FILTER (WHERE b)",
    "count(f64) FILTER (WHERE i8 > 0)", "sum(i8)", "sum(i32)", "sum(i64)", "sum(f32)", "sum(f64)",
    "sum(d)", "sum(big)", "sum(d) FILTER (WHERE b)", "sum(i32) FILTER (WHERE NOT b OR i8 < 0)",
    "avg(i32)", "avg(f64)", "avg(d)", "avg(d) FILTER (WHERE s <> '')", "min(i8)", "max(i64)",
    "min(f64)", "max(f64)", "min(f32)", "max(d)", "min(big)", "min(s)", "max(s)", "min(day)",
    "max(at)", "min(y)", "max(b)", "max(s) FILTER (WHERE b)", "bool_and(b)", "bool_or(b)",
    "every(b) FILTER (WHERE i8 IS NOT NULL)", "bit_and(i32)", "bit_or(i8)", "bit_xor(i64)",
    "bit_xor(i32) FILTER (WHERE b)", "sum(100 % i8) FILTER (WHERE i8 <> 0)",
    "approx_count_distinct(i8)", "approx_count_distinct(s) FILTER (WHERE b)",
]  # fmt: skip
_KEYS = ["i8", "s", "zero", "day, b"]


@pytest.fixture(scope="module")
def edge(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table of edge values in many combinations, and an empty one."""
    folder = tmp_path_factory.mktemp("states")
    rng = random.Random(11)
    count = 400
    columns: dict[str, pa.Array] = {}
    for name, (kind, values) in _ROWS.items():
        filled = [rng.choice(values) for _ in range(count)]
        if name == "i64":  # sums that stay within 64 bits
            filled = [v if v is None else v // 256 for v in filled]
        columns[name] = pa.array(filled, pa.int32() if name == "day" else kind).cast(kind)
    columns["zero"] = pa.array([rng.choice([0.0, -0.0, NAN, None, 1.0]) for _ in range(count)])
    table = pa.table(columns)
    for name, content in (("edge", table), ("none", table.slice(0, 0))):
        (folder / name).mkdir()
        pq.write_table(content, folder / name / "a.parquet", row_group_size=100)
    entries = "".join(f"  {name}:\n    location: {name}\n" for name in ("edge", "none"))
    (folder / "catalog.yaml").write_text(f"tables:\n{entries}")
    return folder


def states_query(table: str, keys: str) -> str:
    calls = ", ".join(f"{call} AS a{i}" for i, call in enumerate(_STATES))
    # -0.0 and 0.0 are one group, of which Spark shows 0.0.
    return f"SELECT {keys}, {calls} FROM {table} GROUP BY {keys}"


def rows_only(graph: StageGraph) -> StageGraph:
    """The graph with every partial aggregate passing its rows on."""
    stages = tuple(passed_through(stage) or stage for stage in graph.stages)
    assert stages != graph.stages
    return dataclasses.replace(graph, stages=stages)


@pytest.mark.spark
def test_rows_passed_on_give_sparks_aggregates(
    edge: Path, spark: SparkSession, tmp_path: Path
) -> None:
    catalog = load_catalog(edge / "catalog.yaml")
    for name in ("edge", "none"):
        spark.read.parquet(str(edge / name)).createOrReplaceTempView(name)
    for number, (table, keys) in enumerate([*(("edge", k) for k in _KEYS), ("none", "i8")]):
        sql = states_query(table, keys)
        graph = rows_only(plan_query(sql, catalog, OPTIONS, name="q"))
        assert {stage.engine for stage in graph.stages} == {"duckdb"}
        found, runs = run(graph, catalog, tmp_path / str(number))
        assert runs[0].manifest.num_rows == (400 if table == "edge" else 0)
        expected = spark.sql(sql).toArrow().to_pylist()
        plain = sorted(json.dumps(list(row.values()), default=repr) for row in expected)
        assert found == plain, keys
        assert bool(found) == (table == "edge")


def test_every_aggregate_in_two_steps_has_a_form_for_one_row() -> None:
    value = Column(0, "v", INT)
    split = {
        name
        for name, function in AGGREGATES.items()
        if function.states(AggregateCall(INT, name, (value.ref,))) is not None
    }
    # An average is a sum and a count by then.
    ends = {"avg", "approx_count_distinct"}
    assert {name for name, f in AGGREGATES.items() if f.row is not None} == split - ends
    assert all(name in " ".join(_STATES) for name in split - {"hll_codes"})


def test_an_overflow_is_found_whichever_form_ran(edge: Path, tmp_path: Path) -> None:
    catalog = load_catalog(edge / "catalog.yaml")
    sql = "SELECT b, sum(i64 * 128) AS s FROM edge WHERE i64 > 3 GROUP BY b"
    graph = plan_query(sql, catalog, OPTIONS, name="q")
    for number, tried in enumerate((graph, rows_only(graph))):
        with pytest.raises(AssertionError, match=r"(?i)out of range|overflow|could not be cast"):
            run(tried, catalog, tmp_path / str(number))


def test_what_cannot_pass_its_rows_on(edge: Path) -> None:
    catalog = load_catalog(edge / "catalog.yaml")
    for sql in (
        "SELECT count(*), sum(i8) FROM edge",  # one group
        "SELECT i8, stddev_samp(f64) FROM edge GROUP BY i8",  # no partial aggregate
        "SELECT i8, s FROM edge",
    ):
        graph = plan_query(sql, catalog, OPTIONS, name="q")
        assert not any(passed_through(stage) for stage in graph.stages), sql
    distinct = plan_query("SELECT DISTINCT s, b FROM edge", catalog, OPTIONS, name="q")
    assert passed_through(distinct.stages[0]) is not None


# ---------------------------------------------------------------- when


def test_few_rows_tell_how_many_groups_all_rows_have() -> None:
    rng = random.Random(2)
    for rows, domain in itertools.product((20_000,), (2_000, 30_000, 500_000, 50_000_000)):
        sample = [rng.randrange(domain) for _ in range(rows)]
        for of_rows in (rows, 1_000_000, 20_000_000):
            predicted = predicted_share(rows, len(set(sample)), of_rows)
            expected = expected_share(domain, of_rows)
            assert math.isclose(predicted, expected, rel_tol=0.3, abs_tol=0.02), (domain, of_rows)
    assert predicted_share(10_000, 10_000, 10_000_000) == 1.0
    assert predicted_share(10_000, 1, 10_000_000) < 1e-6
    # A key that stands four times in neighbouring rows, such as an order's lines.
    assert predicted_share(100_000, 25_000, 10_000_000) < 0.3


def test_a_sample_is_taken_from_the_beginnings_of_row_groups() -> None:
    files = [DataFile(f"/{name}", 1_000_000) for name in "ab"]
    groups = {f.uri: [250_000] * 4 for f in files}
    (only,) = sample_files(files, groups, 2_000_000, 20_000)
    assert (only.uri, only.row_start, only.row_end) == ("/a", 0, 20_000)
    two = sample_files(files, groups, 5_000_000, 50_000)
    assert [(f.uri, f.row_start, f.row_end) for f in two] == [("/a", 0, 25_000), ("/b", 0, 25_000)]
    part = [DataFile("/a", 1_000_000, rows=(250_000, 1_000_000))]
    assert [f.row_start for f in sample_files(part, groups, 750_000, 7_500)] == [250_000]
    many = sample_files(files, groups, 50_000_000, 50_000)
    assert [f.row_start for f in many] == [0, 500_000] * 2
    # Elsewhere a row group is fetched whole, which is too much of eight.
    away = [dataclasses.replace(f, uri=f"s3:/{f.uri}") for f in files]
    far = {f.uri: [250_000] * 4 for f in away}
    assert sample_files(away, far, 5_000_000, 50_000) == ()
    fine = {f.uri: [10_000] * 100 for f in away}
    assert len(sample_files(away, fine, 5_000_000, 50_000)) == 2


def test_rows_must_come_one_by_one() -> None:
    probe = leaf()
    for below, expected in (
        (FilterExec(probe, TRUE), 0),
        (join(probe, leaf(), "left"), 0),
        (join(leaf(), leaf(), "right"), None),
        (aggregate(probe, "final"), None),
    ):
        assert streamed_leaf(stage_of(aggregate(below, "partial"))) == expected


@pytest.fixture(scope="module")
def keyed(tmp_path_factory: pytest.TempPathFactory) -> FileCatalog:
    """30,000 rows: a unique key as a number and as text, and one with 50 values."""
    folder = tmp_path_factory.mktemp("keyed")
    count = 30_000
    rng = random.Random(4)
    unique = list(range(count))
    rng.shuffle(unique)
    columns = {
        "u": unique,
        "few": [rng.randrange(50) for _ in range(count)],
        "text": [f"k{u}" for u in unique],
        "v": [rng.randrange(1000) for _ in range(count)],
    }
    (folder / "t").mkdir()
    pq.write_table(pa.table(columns), folder / "t" / "a.parquet", row_group_size=5_000)
    (folder / "catalog.yaml").write_text("tables:\n  t:\n    location: t\n")
    return load_catalog(folder / "catalog.yaml")


@pytest.fixture
def small_tasks_try(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passing, "MIN_ROWS", 1_000)
    monkeypatch.setattr(passing, "SAMPLE_SHARE", 0.2)
    monkeypatch.setattr(passing, "_CLEARLY_FEW", 0.0)


_BY = "SELECT {0}, count(*) AS n, sum(v) AS s FROM t GROUP BY {0}"
_JOINED = (
    "SELECT a.u + 0 AS k, count(*) AS n, max(b.v) AS m FROM t a JOIN t b ON a.u = b.u "
    "AND b.few = 7 AND b.v < 100 GROUP BY a.u + 0"
)


@pytest.mark.usefixtures("small_tasks_try")
@pytest.mark.parametrize(
    ("sql", "passes"),
    [
        (_BY.format("u"), True),
        (_BY.format("text"), True),
        (_BY.format("few"), False),
        ("SELECT u % 100 AS k, min(v) AS s FROM t WHERE v > 500 GROUP BY u % 100", False),
        ("SELECT DISTINCT text, v FROM t", True),
    ],
)
def test_a_task_tries_before_it_chooses(
    sql: str, passes: bool, keyed: FileCatalog, tmp_path: Path
) -> None:
    graph = plan_query(sql, keyed, OPTIONS, name="q")
    found, runs = run(graph, keyed, tmp_path / "on")
    off, _ = run(graph, keyed, tmp_path / "off", passing_share=1.5)
    assert found == off
    trials = [report.trial for report in runs[0].reports]
    assert trials
    assert all(trial is not None and trial.passed == passes for trial in trials)
    decision = passing.trial_decision(runs[0].reports)
    assert decision is not None
    assert decision.text.startswith("rows passed on" if passes else "partial aggregate kept")


def test_nothing_is_tried_where_it_cannot_pay(
    keyed: FileCatalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def tried(sql: str, **changes: Any) -> bool:
        graph = plan_query(sql, keyed, OPTIONS, name="q")
        runs = run(graph, keyed, tmp_path, **changes)[1]
        return any(report.trial is not None for report in runs[0].reports)

    assert not tried(_BY.format("u"))  # too few rows
    monkeypatch.setattr(passing, "MIN_ROWS", 1_000)
    assert tried(_BY.format("u"))
    assert not tried(_BY.format("few"))  # the planner knows that it reduces
    assert not tried(_BY.format("u"), adaptive=False)
    monkeypatch.setattr(passing, "SAMPLE_SHARE", 0.0)
    assert not tried(_BY.format("u"))


@pytest.mark.usefixtures("small_tasks_try")
def test_a_stream_is_tried_and_read_from_its_beginning(
    keyed: FileCatalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(passing, "_OTHERS_SHARE", 10.0)
    graph = plan_query(_JOINED, keyed, OPTIONS, name="q")
    found, runs = run(graph, keyed, tmp_path / "on")
    off, _ = run(graph, keyed, tmp_path / "off", passing_share=1.5)
    assert found == off
    stage = next(s for s in graph.stages if isinstance(s.fragment, AggregateExec) and s.inputs)
    reports = runs[stage.stage_id].reports
    assert any(report.trial is not None for report in reports)
    read = [sum(report.rows_in[0] for report in r.reports) for r in runs]
    inputs = [runs[leaf.stage_id].manifest.num_rows for leaf in stage.leaves]  # type: ignore[union-attr]  # stage inputs
    assert read[stage.stage_id] == inputs[0]


def test_what_a_trial_showed_travels_with_the_report() -> None:
    trial = TrialResult(rows=10_000, groups=9_990, share=0.97, passed=True, seconds=0.01)
    report = TaskReport(task_index=1, attempt="a", trial=trial)
    assert TaskReport.from_dict(json.loads(json.dumps(report.to_dict()))) == report
    kept = TaskReport(task_index=0, attempt="a")
    decision = passing.trial_decision([kept, report])
    assert decision is not None
    assert decision.text == (
        "rows passed on as they are by 1 of 2 tasks: 9,990 groups in 10,000 rows tried, "
        "97% of all rows expected"
    )
    assert passing.trial_decision([kept]) is None
