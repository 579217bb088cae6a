"""Dagster's own events of a query 3 run: stages that do not need each other run side by side."""

from __future__ import annotations

import datetime
import json
import threading
from dataclasses import dataclass
from typing import Any

import pytest

from stagecoach.assets.execution.engine import StageRequest
from stagecoach.assets.execution.stage_engine import StageEngine
from stagecoach.assets.in_process.run import run_graph
from stagecoach.assets.report.metadata import StageMetadata
from stagecoach.infra.config.settings import EngineSettings
from stagecoach.infra.storage.layout import run_prefix
from stagecoach.infra.storage.object_store import ObjectStore
from stagecoach.planner.options import PlannerOptions
from stagecoach.planner.plan.stages import StageGraph
from stagecoach.planner.planning import plan_query
from tests.tpch import Tpch, query_text

pytestmark = [pytest.mark.spark]

FORCED = PlannerOptions(force_distribution=True, broadcast_bytes=0, num_partitions=3)


@dataclass(frozen=True)
class Interval:
    """When a step began and ended."""

    start: datetime.datetime
    end: datetime.datetime

    def overlap(self, other: Interval) -> datetime.timedelta:
        return min(self.end, other.end) - max(self.start, other.start)


def read_events(store: ObjectStore, run_id: str) -> list[dict[str, Any]]:
    text = store.read_bytes(f"{run_prefix(run_id)}/events.jsonl").decode()
    return [json.loads(line) for line in text.splitlines()]


def intervals(events: list[dict[str, Any]], graph: StageGraph) -> dict[int, Interval]:
    """The interval of each stage's step, by stage number."""
    steps: dict[int, str] = {}
    for event in events:
        if "asset" in event:
            *_, last = event["asset"]
            number = graph.head.stage_id if len(event["asset"]) == 1 else int(last.split("_")[1])
            steps[number] = event["step"]
    moments = {
        (e["type"], e.get("step")): datetime.datetime.fromisoformat(e["time"]) for e in events
    }
    return {
        number: Interval(moments["STEP_START", step], moments["STEP_SUCCESS", step])
        for number, step in steps.items()
    }


def test_leaf_stages_overlap(
    tpch: Tpch, settings: EngineSettings, spark: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = plan_query(query_text("q03"), tpch.catalog, FORCED, name="q03")
    leaves = [s.stage_id for s in graph.stages if not s.inputs]
    assert len(leaves) == 3
    # Each goes on once all have begun: one may be over before a busy machine starts the next.
    together, run_stage = threading.Barrier(3, timeout=120), StageEngine.run_stage

    def meet(engine: StageEngine, request: StageRequest) -> StageMetadata:
        if request.stage_id in leaves:
            together.wait()
        return run_stage(engine, request)

    monkeypatch.setattr(StageEngine, "run_stage", meet)
    store = settings.open_store()
    engine = StageEngine(settings, tpch.catalog, fresh=True)
    outcome = run_graph(graph, runner=engine, store=store)
    assert outcome.success
    assert not any(stage.reused for stage in outcome.stages.values())
    found = intervals(read_events(store, outcome.run_id), graph)
    assert sorted(found) == [s.stage_id for s in graph.stages]
    nothing = datetime.timedelta(0)
    for left in leaves:
        for right in leaves:
            assert found[left].overlap(found[right]) > nothing
    for stage in graph.stages:
        for upstream in stage.inputs:
            assert found[stage.stage_id].start >= found[upstream].end
