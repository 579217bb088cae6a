"""A run is opened from what it has left in storage, and says what is missing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stagecoach.infra.catalog.catalog import FileCatalog, load_catalog
from stagecoach.infra.config.settings import EngineSettings, load_settings
from stagecoach.infra.errors import ConfigError
from stagecoach.infra.replay.recorded_run import NotReplayableError, open_run
from stagecoach.infra.replay.row_tracing import trace_run
from stagecoach.infra.replay.stage_rows import StageRows, TooManyRowsError
from stagecoach.infra.runtime.records.run_plan import RunPlan, parse_run_plan, write_run_plan
from stagecoach.infra.storage import layout
from stagecoach.infra.storage.object_store import ObjectStore
from stagecoach.infra.upkeep.verify.verification import verify_storage
from stagecoach.planner import plan_query
from stagecoach.planner.options import PlannerOptions
from stagecoach.planner.plan.expressions import Literal
from stagecoach.planner.plan.stages import ParameterSpec, StageGraph
from stagecoach.planner.types import DATE, INT
from tests.infra.replay.recorded import record_run

RUN = "0f6a1c1e-9f6b-4f6e-8d62-1d5b8e2f7a10"
FORCED = PlannerOptions(force_distribution=True, num_partitions=3, broadcast_bytes=0)
SQL = """
SELECT name, sum(amount) AS total, count(*) AS sales
FROM sales JOIN shops ON sales.shop = shops.shop
WHERE amount > 1
GROUP BY name
ORDER BY name
"""


@pytest.fixture
def catalog(tmp_path: Path) -> FileCatalog:
    for part in range(3):
        rows = [(shop, 10 * part + i) for i in range(4) for shop in range(3)]
        table = pa.table({"shop": [s for s, _ in rows], "amount": [float(a) for _, a in rows]})
        (tmp_path / "sales").mkdir(exist_ok=True)
        pq.write_table(table, tmp_path / "sales" / f"{part}.parquet")
    (tmp_path / "shops").mkdir()
    shops = pa.table({"shop": [0, 1, 2], "name": ["a", "b", "a"]})
    pq.write_table(shops, tmp_path / "shops" / "0.parquet")
    file = tmp_path / "catalog.yaml"
    file.write_text("tables:\n  sales: {location: sales}\n  shops: {location: shops}\n")
    return load_catalog(file)


@pytest.fixture
def settings(tmp_path: Path) -> EngineSettings:
    return load_settings(
        overrides={
            "storage_root": str(tmp_path / "storage"),
            "spill_dir": str(tmp_path / "spill"),
            "parallelism": 3,
            "min_task_bytes": 0,
            "adaptive": False,
        }
    )


@pytest.fixture
def store(settings: EngineSettings) -> ObjectStore:
    return settings.open_store()


@pytest.fixture
def graph(catalog: FileCatalog) -> StageGraph:
    return plan_query(SQL, catalog, FORCED, name="totals")


def test_every_stage_gives_its_rows_again(
    graph: StageGraph, catalog: FileCatalog, settings: EngineSettings, store: ObjectStore
) -> None:
    manifests = record_run(graph, catalog, settings, store, RUN)
    assert any(len(manifest.files) > 1 for manifest in manifests)
    before = set(store.list(""))
    run = open_run(store, settings, RUN)
    assert run.graph == graph
    rows = StageRows(run=run)
    for stage in graph.stages:
        committed = rows.committed(stage)
        assert committed is not None
        assert committed.num_rows
        if "partial" not in stage.title:
            assert _sorted(rows.native(stage)) == _sorted(committed)
    assert rows.native(graph.head).to_pydict()["c1"] == [
        sum(10.0 * p + i for p in range(3) for i in range(4) if 10 * p + i > 1) * shops
        for shops in (2, 1)
    ]
    assert set(store.list("")) == before, "a replay writes nothing"


def _sorted(table: pa.Table) -> list[tuple[object, ...]]:
    return sorted(zip(*(column.to_pylist() for column in table.columns), strict=True))


def test_rows_are_traced_through_all_stages(
    graph: StageGraph, catalog: FileCatalog, settings: EngineSettings, store: ObjectStore
) -> None:
    record_run(graph, catalog, settings, store, RUN)
    run = open_run(store, settings, RUN)
    result = StageRows(run=run).committed(graph.head)
    assert result is not None
    chosen = result.slice(1, 1)
    assert chosen.column("c0").to_pylist() == ["b"]
    scans = {
        leaf.trace.leaf.table: leaf.rows
        for stage in trace_run(run, chosen)
        for leaf in stage.leaves
        if hasattr(leaf.trace.leaf, "table")
    }
    assert scans["shops"].to_pydict() == {"c0": [1], "c1": ["b"]}
    assert set(scans["sales"].column("c0").to_pylist()) == {1}
    assert scans["sales"].num_rows == 10  # amounts of 0 and 1 are filtered out


def test_a_run_is_found_by_its_first_characters(
    graph: StageGraph, catalog: FileCatalog, settings: EngineSettings, store: ObjectStore
) -> None:
    record_run(graph, catalog, settings, store, RUN)
    assert open_run(store, settings, RUN[:8]).run_id == RUN
    with pytest.raises(ConfigError, match=f"there is no run '0f6a1c1d'.*did you mean '{RUN}'"):
        open_run(store, settings, "0f6a1c1d")
    with pytest.raises(ConfigError, match=r"there is no run 'x/../y'|is not the id of a run"):
        open_run(store, settings, "x/../y")
    # A run of several queries has a folder for each, and others for their checks.
    whole = "1b52e1a4-0000-4000-8000-000000000000"
    for folder in (f"{whole}.totals", f"{whole}.totals.not_null_total.0"):
        write_run_plan(store, folder, RunPlan(graph))
    with pytest.raises(NotReplayableError, match=f"run '{whole}.totals' has no snapshot"):
        open_run(store, settings, whole)
    write_run_plan(store, f"{whole}.other", RunPlan(graph))
    with pytest.raises(ConfigError, match=rf"'{whole}' may be any of 2 runs: '{whole}\.other', "):
        open_run(store, settings, whole)


def test_what_is_gone_is_named(
    graph: StageGraph, catalog: FileCatalog, settings: EngineSettings, store: ObjectStore
) -> None:
    manifests = record_run(graph, catalog, settings, store, RUN)
    run = open_run(store, settings, RUN)
    store.delete([layout.manifest(manifests[0].fingerprint)])
    with pytest.raises(NotReplayableError, match=r"output of totals/stage_0 in run .* is gone: gc"):
        StageRows(run=run).committed(graph.stages[0])
    reader = next(stage for stage in graph.stages if 0 in stage.inputs)
    with pytest.raises(NotReplayableError, match="totals/stage_0"):
        StageRows(run=run).native(reader)
    store.delete([layout.run_snapshot(RUN)])
    with pytest.raises(NotReplayableError, match="has no snapshot of its tables"):
        open_run(store, settings, RUN)
    store.delete(list(store.list(layout.run_plans(RUN))))
    with pytest.raises(NotReplayableError, match="has not kept its plan"):
        open_run(store, settings, RUN)


def test_rows_beyond_the_limit_are_refused(
    graph: StageGraph, catalog: FileCatalog, settings: EngineSettings, store: ObjectStore
) -> None:
    record_run(graph, catalog, settings, store, RUN)
    rows = StageRows(run=open_run(store, settings, RUN), max_bytes=8)
    with pytest.raises(TooManyRowsError, match=r"stage_0 has more than 8 B of rows.*--max-bytes"):
        rows.native(graph.stages[0])


def test_a_clock_that_was_never_read_is_not_made_up(
    catalog: FileCatalog, settings: EngineSettings, store: ObjectStore
) -> None:
    graph = plan_query("SELECT current_date() AS day FROM shops", catalog, FORCED, name="day")
    write_run_plan(store, RUN, RunPlan(graph))
    store.write_bytes(layout.run_snapshot(RUN), b'{"format_version": 4, "tables": {}}')
    with pytest.raises(NotReplayableError, match="has no clock"):
        open_run(store, settings, RUN)
    assert not store.exists(layout.run_clock(RUN))


def test_the_plan_of_a_run_comes_back_and_is_verified(
    graph: StageGraph, store: ObjectStore
) -> None:
    given = {"least": Literal(INT, 3), "day": Literal(DATE, "2024-01-31")}
    specs = (ParameterSpec("least", INT), ParameterSpec("day", DATE))
    plan = RunPlan(replace(graph, parameters=specs), given)
    write_run_plan(store, RUN, plan)
    (key,) = store.list(layout.run_plans(RUN))
    text = store.read_bytes(key)
    assert parse_run_plan(text) == plan
    assert not verify_storage(store, []).damages
    store.write_bytes(key, text.replace(b"totals", b"totale"))
    (damage,) = verify_storage(store, []).damages
    assert damage.uri == store.uri(key)
    assert "stagecoach replay" in damage.remedy
