"""How stages are run: pools, priorities, retries, time limits, parts of a query, and what a failure says."""

import itertools
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import dagster as dg
import pytest

from stagecoach.assets.definitions.factory import ENGINE_RESOURCE, build_assets, build_job
from stagecoach.assets.definitions.specs import build_stage_specs
from stagecoach.assets.definitions.translator import StageTranslator
from stagecoach.assets.execution.engine import EarlierRun, FailureLog, StageRequest
from stagecoach.assets.execution.executor import execute_in_process
from stagecoach.assets.execution.failures import MAX_LOG_LINES, failure_text
from stagecoach.assets.execution.policy import Backoff, ExecutionPolicy
from stagecoach.assets.plans.planned import PlannedQuery
from stagecoach.assets.project.queries import Query
from stagecoach.infra.errors import (
    CredentialsError,
    QueryFailedError,
    StorageError,
    TaskFailedError,
)
from stagecoach.infra.shuffle.manifest import ManifestError
from stagecoach.planner.errors import AnalysisError, OptionError
from stagecoach.planner.plan.stages import StageGraph
from tests.assets.fakes import FakeRunner, make_graph, meeting

QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.instance_for_test() as made:
        yield made


def definitions(
    runner: FakeRunner, policy: ExecutionPolicy | None = None, graph: StageGraph | None = None
) -> dg.Definitions:
    planned = PlannedQuery(query=Query(name="sales", sql="SELECT 1"), graph=graph or make_graph())
    assets = build_assets(planned, build_stage_specs(planned, StageTranslator()), policy)
    return dg.Definitions(
        assets=assets,
        jobs=[build_job(planned, assets)],
        resources={ENGINE_RESOURCE: dg.ResourceDefinition.hardcoded_resource(runner)},
    )


def run(
    runner: FakeRunner,
    instance: dg.DagsterInstance,
    policy: ExecutionPolicy | None = None,
    **more: object,
) -> dg.ExecuteInProcessResult:
    job = definitions(runner, policy).resolve_job_def("run_sales")
    return execute_in_process(job, instance=instance, run_config=QUIET, **more)


def failures(result: dg.ExecuteInProcessResult) -> dict[str, str]:
    found = {}
    for event in result.all_events:
        if event.is_step_failure:
            data = event.step_failure_data
            said = data.user_failure_data.description if data.user_failure_data else None
            found[str(event.step_key)] = said or str(data.error)
    return found


# ---------------------------------------------------------------- pools, priorities


def test_a_pool_of_one_slot_lets_one_stage_run_at_a_time(instance: dg.DagsterInstance) -> None:
    instance.event_log_storage.set_concurrency_slots("warehouse", 1)
    runner = FakeRunner(seconds=0.1)
    assert run(runner, instance, ExecutionPolicy(pool="warehouse")).success
    spans = sorted(runner.spans.values())
    assert len(spans) == 4
    assert all(one[1] <= other[0] for one, other in itertools.pairwise(spans))
    info = instance.event_log_storage.get_concurrency_info("warehouse")
    assert info.active_slot_count == 0
    assert info.pending_step_count == 0


def test_two_slots_let_the_leaves_overlap(instance: dg.DagsterInstance) -> None:
    instance.event_log_storage.set_concurrency_slots("warehouse", 2)
    runner = FakeRunner(work=meeting(0, 1))
    assert run(runner, instance, ExecutionPolicy(pool="warehouse")).success
    assert runner.overlap(0, 1) > 0


def leaves(priorities: Sequence[int], pool: str | None, log: list[str]) -> dg.JobDefinition:
    def make(priority: int) -> dg.AssetsDefinition:
        @dg.asset(name=f"p{priority}", op_tags={"dagster/priority": str(priority)}, pool=pool)
        def body() -> None:
            log.append(f"p{priority}")
            time.sleep(0.05)

        return body

    from stagecoach.assets.execution.executor import stagecoach_threads

    job = dg.define_asset_job("all_of_them", executor_def=stagecoach_threads)
    return dg.Definitions(assets=[make(p) for p in priorities], jobs=[job]).resolve_job_def(
        "all_of_them"
    )


@pytest.mark.parametrize("pool", [None, "narrow"])
def test_the_highest_priority_runs_first(pool: str | None, instance: dg.DagsterInstance) -> None:
    log: list[str] = []
    config: dict[str, object] = dict(QUIET)
    if pool:
        instance.event_log_storage.set_concurrency_slots(pool, 1)
    else:
        config["execution"] = {"config": {"max_concurrent": 1}}
    job = leaves([1, 5, -3, 3], pool, log)
    assert execute_in_process(job, instance=instance, run_config=config).success
    assert log == ["p5", "p3", "p1", "p-3"]


def test_small_stages_have_the_higher_priority() -> None:
    graph = make_graph()
    stages = (replace(graph.stages[0], estimated_bytes=1 << 30), *graph.stages[1:])
    made = definitions(FakeRunner(), graph=replace(graph, stages=stages))
    job = made.resolve_job_def("run_sales")
    priority = {node.name: int(node.definition.tags["dagster/priority"]) for node in job.nodes}
    assert priority["sales__stage_0"] < priority["sales__stage_1"]


# ---------------------------------------------------------------- retries


@pytest.mark.parametrize(
    ("backoff", "waits"),
    [("exponential", [2.0, 4.0, 8.0]), ("linear", [2.0, 4.0, 6.0]), ("none", [2.0, 2.0, 2.0])],
)
def test_waits(backoff: Backoff, waits: list[float]) -> None:
    policy = ExecutionPolicy(retry_delay_seconds=2.0, backoff=backoff)
    assert [policy.wait_seconds(n) for n in range(3)] == waits


@pytest.mark.parametrize(
    "wrong", [{"max_retries": -1}, {"retry_delay_seconds": -1.0}, {"timeout_seconds": 0.0}]
)
def test_a_policy_of_wrong_numbers_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(OptionError, match=next(iter(wrong))):
        ExecutionPolicy(**wrong)


def test_a_fault_is_retried_as_often_as_the_policy_says(instance: dg.DagsterInstance) -> None:
    policy = ExecutionPolicy(max_retries=3, retry_delay_seconds=0.01, backoff="none")
    runner = FakeRunner(errors={0: [StorageError("slow down")] * 3})
    assert run(runner, instance, policy).success
    assert [r.stage_id for r in runner.requests].count(0) == 4


def test_no_retries_and_never_for_a_mistake(instance: dg.DagsterInstance) -> None:
    policy = ExecutionPolicy(max_retries=0, retry_delay_seconds=0.01)
    errors = {0: [StorageError("slow down")], 1: [AnalysisError("no such column")]}
    runner = FakeRunner(errors=errors)
    assert not run(runner, instance, policy).success
    assert sorted(r.stage_id for r in runner.requests) == [0, 1]


def test_a_fault_whose_cause_the_doctor_finds_names_it(instance: dg.DagsterInstance) -> None:
    policy = ExecutionPolicy(max_retries=0)
    errors = {0: [CredentialsError("expired")], 1: [AnalysisError("no such column")]}
    result = run(FakeRunner(errors=errors), instance, policy)
    told = failures(result)
    named = {step for step, text in told.items() if "`stagecoach doctor`" in text}
    assert len(told) == 2
    assert named == {step for step, text in told.items() if "expired" in text} != set()


# ---------------------------------------------------------------- time limits


class StoppableRunner(FakeRunner):
    """Its stage 0 works until it is cancelled."""

    def __init__(self) -> None:
        super().__init__(work=self._work_on)
        self._stop = threading.Event()

    def _work_on(self, request: StageRequest) -> None:
        if request.stage_id == 0:
            assert self._stop.wait(120)
            raise TaskFailedError("sales/stage_0", None, "the job was cancelled")

    def cancel_stage(self, request: StageRequest) -> None:
        super().cancel_stage(request)
        self._stop.set()


def test_a_stage_over_its_time_limit_is_cancelled_and_says_so(instance: dg.DagsterInstance) -> None:
    runner = StoppableRunner()
    started = time.monotonic()
    # Long enough for the other stages, which do nothing, on a machine that has much else to do.
    result = run(runner, instance, ExecutionPolicy(timeout_seconds=1.5))
    assert time.monotonic() - started < 60
    assert runner.cancelled == {0}
    told = failures(result)
    assert list(told) == ["sales__stage_0"]
    assert "sales/stage_0 took longer than its time limit of 1.5 s" in told["sales__stage_0"]
    # Not retried, though the error of the cancelled job says that a retry could help.
    assert [r.stage_id for r in runner.requests].count(0) == 1
    for thread in threading.enumerate():
        if thread.name == "time-limit":  # told to end, which takes it a moment
            thread.join(60)
            assert not thread.is_alive()


def test_a_stage_within_its_limit_is_left_alone(instance: dg.DagsterInstance) -> None:
    runner = FakeRunner(seconds=0.05)
    assert run(runner, instance, ExecutionPolicy(timeout_seconds=30)).success
    assert runner.cancelled == set()


# ---------------------------------------------------------------- what a failure says


class LoggingRunner(FakeRunner):
    """A runner whose stages leave logs behind."""

    def failure_log(self, request: StageRequest) -> FailureLog | None:
        lines = tuple(f"line {n}" for n in range(500))
        return FailureLog(f"memory://{request.stage_id}.log", lines)


def test_the_steps_log_has_the_first_real_error_on_top(instance: dg.DagsterInstance) -> None:
    error = QueryFailedError("sales", "DIVIDE_BY_ZERO", "[DIVIDE_BY_ZERO] Division by zero.")
    result = run(LoggingRunner(errors={0: [error]}), instance)
    entries = [
        e
        for e in instance.all_logs(result.run_id)
        if e.dagster_event is None and e.step_key == "sales__stage_0" and e.level == 40
    ]
    assert len(entries) == 1
    lines = entries[0].user_message.splitlines()
    assert lines[0] == "[DIVIDE_BY_ZERO] Division by zero."
    assert lines[1] == "query sales, stage_0 (step 0 → hash(k))"
    assert lines[2] == "log of its tasks (the first 200 of 500 lines): memory://0.log"
    assert lines[3] == "  line 0"
    assert len(lines) == 3 + MAX_LOG_LINES


def test_the_class_and_the_task_are_named() -> None:
    request = StageRequest(graph=make_graph(), stage_id=2, run_id="r", root_run_id="r")
    text = failure_text(TaskFailedError("sales/stage_2", 4, "OutOfMemoryError: …"), request)
    assert text.splitlines() == [
        "TaskFailedError: sales/stage_2, task 4 failed: OutOfMemoryError: …",
        "query sales, stage_2 (step 2 → hash(k)), task 4",
    ]


# ---------------------------------------------------------------- fresh runs, parts of a query


def test_a_tag_turns_reuse_off(instance: dg.DagsterInstance) -> None:
    runner = FakeRunner()
    assert run(runner, instance, tags={"stagecoach/fresh": "true"}).success
    assert run(runner, instance).success
    assert [r.fresh for r in runner.requests] == [True] * 4 + [False] * 4


def part_of(runner: FakeRunner, *names: str) -> dg.JobDefinition:
    made = definitions(runner)
    keys = [dg.AssetKey(name.split("/")) for name in names]
    whole = made.resolve_job_def("run_sales")
    return whole.get_subset(asset_selection=set(keys))


def test_a_part_of_a_query_reads_what_the_latest_run_made(instance: dg.DagsterInstance) -> None:
    runner = FakeRunner()
    first = run(runner, instance, tags={"stagecoach/fresh": "true"})
    runner.requests.clear()
    job = part_of(runner, "sales/stage_2", "sales")
    assert execute_in_process(job, instance=instance, run_config=QUIET).success
    assert [r.stage_id for r in runner.requests] == [2, 3]
    assert {r.outside for r in runner.requests} == {(0, 1)}
    assert {r.earlier for r in runner.requests} == {(EarlierRun(first.run_id, fresh=True),)}


def test_a_whole_query_reads_nothing_of_others(instance: dg.DagsterInstance) -> None:
    runner = FakeRunner()
    run(runner, instance)
    run(runner, instance)
    assert {(r.outside, r.earlier) for r in runner.requests} == {((), ())}


def test_what_is_missing_is_named_by_its_asset(instance: dg.DagsterInstance) -> None:
    lost = ManifestError("sales/stage_1", "memory://1", "not found")
    runner = FakeRunner(errors={2: [lost]})
    result = execute_in_process(
        part_of(runner, "sales/stage_2"), instance=instance, run_config=QUIET
    )
    assert failures(result)["sales__stage_2"] == (
        "there is no output of the asset 'sales/stage_1' to read: it has not run for these "
        "parameters and tables, or its output is removed; materialise 'sales/stage_1' first, or "
        "select it together with 'sales/stage_2'"
    )
