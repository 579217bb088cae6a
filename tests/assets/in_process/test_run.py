"""Runs of a query inside this process, with a runner that only pretends."""

import json
import os
import signal
import time
from pathlib import Path

import dagster as dg
import pytest

from stagecoach.assets.execution.engine import StageRequest
from stagecoach.assets.execution.policy import ExecutionPolicy
from stagecoach.assets.in_process.outcome import RunOutcome
from stagecoach.assets.in_process.run import run_graph
from stagecoach.assets.report.metadata import StageMetadata
from stagecoach.infra.errors import StorageError
from stagecoach.infra.storage.stores import open_store
from stagecoach.planner.errors import AnalysisError
from stagecoach.planner.plan.stages import Stage
from tests.assets.fakes import FakeRunner, make_graph, meeting


class Listener:
    def __init__(self) -> None:
        self.heard: list[tuple[str, int]] = []

    def stage_started(self, stage: Stage) -> None:
        self.heard.append(("started", stage.stage_id))

    def task_progress(self, stage: Stage, finished: int, total: int) -> None:
        self.heard.append(("progress", stage.stage_id))

    def stage_finished(self, stage: Stage, metadata: StageMetadata) -> None:
        self.heard.append(("finished", stage.stage_id))

    def stage_failed(self, stage: Stage, error: BaseException) -> None:
        self.heard.append(("failed", stage.stage_id))


def test_independent_stages_overlap() -> None:
    runner = FakeRunner(work=meeting(0, 1))
    outcome = run_graph(make_graph(), runner=runner)
    assert outcome.success
    assert sorted(outcome.stages) == [0, 1, 2, 3]
    assert outcome.stages[3].rows == 7
    assert runner.overlap(0, 1) > 0
    assert runner.overlap(1, 2) <= 0
    assert runner.overlap(2, 3) <= 0


def test_max_concurrent_is_passed_on() -> None:
    runner = FakeRunner(seconds=0.1)
    assert run_graph(make_graph(), runner=runner, max_concurrent=1).success
    assert runner.overlap(0, 1) <= 0


def test_a_run_is_quiet_and_its_overhead_small(capfd: pytest.CaptureFixture[str]) -> None:
    run_graph(make_graph(), runner=FakeRunner())
    started = time.process_time()  # other processes do not count
    run_graph(make_graph(), runner=FakeRunner())
    assert time.process_time() - started < 1.5
    captured = capfd.readouterr()
    assert captured.out == ""
    assert captured.err == ""


def test_debug_shows_dagsters_lines(capfd: pytest.CaptureFixture[str]) -> None:
    run_graph(make_graph(), runner=FakeRunner(), debug=True)
    assert "STEP_START" in capfd.readouterr().err


def test_a_failure_keeps_its_error_and_the_siblings_result() -> None:
    error = AnalysisError("no such column", line=1)
    outcome = run_graph(make_graph(), runner=FakeRunner(errors={0: [error]}))
    assert not outcome.success
    assert outcome.failures == {0: error}
    assert sorted(outcome.stages) == [1]
    assert not outcome.cancelled
    assert outcome.problem is None


def test_a_fault_of_the_infrastructure_is_retried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "stagecoach.assets.definitions.factory.DEFAULT_POLICY",
        ExecutionPolicy(retry_delay_seconds=0.01),
    )
    runner = FakeRunner(errors={1: [StorageError("slow down"), StorageError("slow down")]})
    outcome = run_graph(make_graph(), runner=runner)
    assert outcome.success
    assert outcome.failures == {}
    assert [r.stage_id for r in runner.requests].count(1) == 3


def test_retries_end_with_the_last_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "stagecoach.assets.definitions.factory.DEFAULT_POLICY",
        ExecutionPolicy(retry_delay_seconds=0.01),
    )
    errors = [StorageError(f"slow down {i}") for i in range(5)]
    runner = FakeRunner(errors={1: errors})
    outcome = run_graph(make_graph(), runner=runner)
    assert not outcome.success
    assert outcome.failures == {1: errors[2]}


def test_a_bug_fails_the_run_once() -> None:
    runner = FakeRunner(errors={1: [KeyError("x"), KeyError("x")]})
    outcome = run_graph(make_graph(), runner=runner)
    assert not outcome.success
    assert [r.stage_id for r in runner.requests].count(1) == 1


def test_parameters_and_run_ids_reach_every_stage() -> None:
    runner = FakeRunner()
    outcome = run_graph(make_graph(), runner=runner, parameters={"day": "2024-01-31"})
    assert {r.run_id for r in runner.requests} == {outcome.run_id}
    assert {r.root_run_id for r in runner.requests} == {outcome.run_id}
    assert all(r.parameters == {"day": "2024-01-31"} for r in runner.requests)


def test_long_and_strange_parameter_values_arrive_unchanged() -> None:
    runner = FakeRunner()
    value = "it's 'ß' \n" * 50
    assert run_graph(make_graph(), runner=runner, parameters={"p": value}).success
    assert runner.requests[0].parameters == {"p": value}


def test_the_listener_hears_of_every_stage() -> None:
    listener = Listener()
    error = AnalysisError("no such column")
    run_graph(make_graph(), runner=FakeRunner(errors={2: [error]}), listener=listener)
    assert sorted(listener.heard) == [
        ("failed", 2),
        ("finished", 0),
        ("finished", 1),
        ("started", 0),
        ("started", 1),
        ("started", 2),
    ]


def test_progress_of_tasks_reaches_the_listener() -> None:
    listener = Listener()
    runner = FakeRunner(work=lambda request: request.progress(1, 2))
    run_graph(make_graph(), runner=runner, listener=listener)
    assert sorted(s for what, s in listener.heard if what == "progress") == [0, 1, 2, 3]


def test_events_are_kept_in_the_store(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    runner = FakeRunner(errors={2: [AnalysisError("no such column")]})
    outcome = run_graph(make_graph(), runner=runner, store=store)
    text = store.read_bytes(f"runs/{outcome.run_id}/events.jsonl").decode()
    events = [json.loads(line) for line in text.splitlines()]
    by_type: dict[str, list[dict[str, object]]] = {}
    for event in events:
        by_type.setdefault(event["type"], []).append(event)
    assert len(by_type["STEP_START"]) == 3
    assert len(by_type["ASSET_MATERIALIZATION"]) == 2
    metadata = by_type["ASSET_MATERIALIZATION"][0]["metadata"]
    assert isinstance(metadata, dict)
    assert metadata["stagecoach/rows"] == 7
    assert metadata["dagster/column_schema"][0] == {"name": "k", "type": "bigint"}
    assert "no such column" in str(by_type["STEP_FAILURE"][0]["error"])
    assert events[-1]["type"] in ("PIPELINE_FAILURE", "RUN_FAILURE")


def test_a_given_instance_records_the_run_under_the_querys_keys() -> None:
    with dg.DagsterInstance.ephemeral() as instance:
        outcome = run_graph(make_graph("sales"), runner=FakeRunner(), instance=instance)
        run = instance.get_run_by_id(outcome.run_id)
        assert run is not None
        assert run.is_success
        assert run.job_name == "run_sales"
        event = instance.get_latest_materialization_event(dg.AssetKey(["sales"]))
        assert event is not None
        assert event.asset_materialization is not None
        metadata = StageMetadata.from_dagster(event.asset_materialization.metadata)
        assert metadata.rows == 7
        assert metadata.uri == "memory://sales/3"


def test_a_query_may_have_any_name() -> None:
    assert run_graph(make_graph("my query: 1__2/3"), runner=FakeRunner()).success


def test_an_interrupt_gives_a_cancelled_outcome() -> None:
    def work(request: StageRequest) -> None:
        if request.stage_id == 0:
            os.kill(os.getpid(), signal.SIGINT)

    runner = FakeRunner(seconds=0.3, work=work)
    outcome = run_graph(make_graph(), runner=runner)
    assert {0, 1} <= runner.cancelled | set(outcome.stages)
    assert isinstance(outcome, RunOutcome)
    assert not outcome.success
    assert outcome.cancelled
    assert 3 not in outcome.stages
