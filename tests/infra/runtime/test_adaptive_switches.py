"""Each kind of decision has a switch: off it is not made, and the rows are Spark's as before."""

from __future__ import annotations

import dataclasses
import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stagecoach.infra.catalog.catalog import FileCatalog, load_catalog
from stagecoach.infra.config.settings import AdaptiveKind, EngineSettings, load_settings
from stagecoach.infra.runtime.adaptive import passing
from stagecoach.infra.runtime.adaptive.decision import Decision
from stagecoach.infra.runtime.planning.choices import MAX_DECISIONS, adaptive_choices
from stagecoach.infra.shuffle.reader import read_table
from stagecoach.infra.storage.stores import open_store
from stagecoach.planner.distribution import complete_groups
from stagecoach.planner.options import PlannerOptions
from stagecoach.planner.planning import plan_query
from tests.infra.spark_runs import make_views
from tests.infra.stage_runs import run_here

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KINDS: tuple[AdaptiveKind, ...] = get_args(AdaptiveKind)
MB = 1 << 20
_JOIN = "SELECT a.k, a.v, b.w FROM hot a JOIN facts b ON a.k = b.k"


@dataclass(frozen=True)
class Scenario:
    """A query about which something is decided."""

    sql: str
    settings: dict[str, Any] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)


SCENARIOS: dict[AdaptiveKind, Scenario] = {
    "coalesce": Scenario("SELECT k, count(*) AS n FROM hot GROUP BY k", {"min_task_bytes": MB}),
    "skew": Scenario(_JOIN, {"skew_bytes": 1, "skew_factor": 2.0, "adaptive_broadcast": False}),
    "broadcast": Scenario(_JOIN, {"target_task_bytes": 12_000, "adaptive_skew": False}),
    "prune": Scenario(
        "SELECT f.v FROM parts f JOIN few q ON f.k = q.k", {}, {"broadcast_bytes": 64 * MB}
    ),
    "passing": Scenario("SELECT v, count(*) AS n FROM hot GROUP BY v"),
    "empty": Scenario(
        "SELECT a.k, b.w FROM hot a JOIN none b ON a.k = b.k", {"adaptive_prune": False}
    ),
    "complete": Scenario("SELECT k, sum(v) AS s FROM parts GROUP BY k HAVING sum(v) > 2900"),
    "ranges": Scenario("SELECT k, v FROM hot ORDER BY v"),
    "rounds": Scenario(
        "SELECT f.v FROM parts f JOIN facts q ON f.k = q.k",
        {"target_task_bytes": 1000},
        {"broadcast_bytes": 64 * MB},
    ),
}


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("switches")
    rng = random.Random(3)
    keys = [7 if rng.random() < 0.8 else rng.choice([None, *range(40)]) for _ in range(4000)]
    rows: dict[str, tuple[str, list[tuple[int | None, int]]]] = {
        "hot": ("v", [(k, rng.getrandbits(40)) for k in keys]),  # not to be compressed
        "facts": ("w", [(k, k * 10 + i) for k in range(0, 50, 2) for i in range(2)] + [(7, 1)]),
        "none": ("w", []),
        "few": ("w", [(3, 1), (901, 2)]),
        "parts": ("v", [(k, k * 3) for k in range(1000)]),
    }
    for name, (value, content) in rows.items():
        (folder / name).mkdir()
        schema = pa.schema([("k", pa.int64()), (value, pa.int64())])
        columns = {"k": [k for k, _ in content], value: [v for _, v in content]}
        table = pa.table(columns, schema=schema)
        size = 250 if name == "parts" else 4000
        for start in range(0, max(table.num_rows, 1), size):
            part = table.slice(start, size)
            pq.write_table(part, folder / name / f"{start:05}.parquet", row_group_size=500)
    entries = "".join(f"  {name}:\n    location: {name}\n" for name in rows)
    (folder / "catalog.yaml").write_text(f"tables:\n{entries}")
    return folder


def run(
    scenario: Scenario, catalog: FileCatalog, folder: Path, **changes: Any
) -> tuple[list[tuple[Any, ...]], set[str], list[int]]:
    """The rows, what was decided, and how many tasks each stage had."""
    options = PlannerOptions(
        **{
            "force_distribution": True,
            "num_partitions": 12,
            "inline_bytes": 0,
            "broadcast_bytes": 0,
            **scenario.options,
        }
    )
    settings = EngineSettings(
        **{
            "storage_root": str(folder),
            "parallelism": 2,
            "min_task_bytes": 0,
            **scenario.settings,
            **changes,
        }
    )
    store = open_store(str(folder))
    graph = plan_query(scenario.sql, catalog, options, name="q")
    runs = run_here(graph, catalog, settings, store)
    decided: set[str] = {decision.kind for stage in runs for decision in stage.decisions}
    trials = [passing.trial_decision(stage.reports) for stage in runs]
    decided |= {decision.kind for decision in trials if decision is not None}
    rows = rows_of(read_table(store, runs[-1].manifest), scenario)
    return rows, decided, [len(stage.specs) for stage in runs]


def rows_of(table: pa.Table, scenario: Scenario) -> list[tuple[Any, ...]]:
    """Rows, in an order of their own where the query gives them none."""
    rows = [tuple(row) for row in zip(*(c.to_pylist() for c in table.columns), strict=True)]
    return rows if "ORDER BY" in scenario.sql else sorted(rows, key=repr)


@pytest.mark.spark
@pytest.mark.parametrize("kind", KINDS)
def test_a_switch_switches_off_and_rows_stay(
    kind: AdaptiveKind,
    tables: Path,
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(passing, "MIN_ROWS", 1_000)
    monkeypatch.setattr(complete_groups, "MIN_BYTES", 0)
    scenario = SCENARIOS[kind]
    catalog = load_catalog(tables / "catalog.yaml")
    make_views(spark, tables, *catalog.table_names())
    expected = rows_of(spark.sql(scenario.sql).toArrow(), scenario)
    found, decided, _ = run(scenario, catalog, tmp_path / "on")
    assert found == expected
    assert kind in decided
    found, decided, _ = run(scenario, catalog, tmp_path / "off", **{f"adaptive_{kind}": False})
    assert found == expected
    assert kind not in decided
    found, decided, tasks = run(scenario, catalog, tmp_path / "none", adaptive=False)
    assert found == expected
    assert decided == set()
    if kind == "coalesce":
        assert 12 in tasks  # a task for each partition


def test_each_kind_has_a_switch() -> None:
    switches = {
        f.name.removeprefix("adaptive_")
        for f in dataclasses.fields(EngineSettings)
        if f.name.startswith("adaptive_")
    }
    assert switches == set(KINDS) == set(SCENARIOS)
    for kind in KINDS:
        assert EngineSettings().decides(kind)
        assert not EngineSettings(adaptive=False).decides(kind)
        variable = f"STAGECOACH_ADAPTIVE_{kind.upper()}"
        settings = load_settings(environment={variable: "false"})
        assert [k for k in KINDS if not settings.decides(k)] == [kind]


def test_decisions_that_are_not_told_one_by_one_are_counted() -> None:
    few = [Decision("skew", f"partition {i}") for i in range(MAX_DECISIONS)]
    assert adaptive_choices([]) == {}
    assert adaptive_choices(few) == {"adaptive": [d.to_dict() for d in few]}
    more = [*few, Decision("skew", "x"), Decision("coalesce", "y"), Decision("skew", "z")]
    told = adaptive_choices(more)["adaptive"]
    assert told[:-1] == [d.to_dict() for d in few]
    assert told[-1] == {"kind": "more", "text": "3 further decisions: 2 skew, 1 coalesce"}
    one = adaptive_choices(more[: MAX_DECISIONS + 1])["adaptive"][-1]
    assert one["text"] == "1 further decision: 1 skew"
