"""Conformance of the thread executor: what every Dagster executor must do, with real runs."""

import itertools
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import dagster as dg
import pytest
from dagster._utils import interrupts

from stagecoach.assets.execution import executor as executors
from stagecoach.assets.execution.cancellation import cancel_registry
from stagecoach.assets.execution.executor import (
    ThreadExecutor,
    execute_in_process,
    stagecoach_threads,
    was_interrupted,
)
from tests.waiting import wait_for

QUIET: Mapping[str, object] = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
Body = Callable[[dg.AssetExecutionContext], None]


class Timeline:
    """When the steps of a run started and ended, and how often."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.spans: dict[str, list[tuple[float, float]]] = {}

    def record(self, name: str, body: Callable[[], None]) -> None:
        started = time.monotonic()
        try:
            body()
        finally:
            with self._lock:
                self.spans.setdefault(name, []).append((started, time.monotonic()))

    def overlap(self, one: str, other: str) -> float:
        (start_1, end_1), (start_2, end_2) = self.spans[one][-1], self.spans[other][-1]
        return min(end_1, end_2) - max(start_1, start_2)


@pytest.fixture
def timeline() -> Timeline:
    return Timeline()


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as ephemeral:
        yield ephemeral


def make_job(
    timeline: Timeline,
    graph: Mapping[str, Sequence[str]],
    bodies: Mapping[str, Body] | None = None,
    *,
    pool: str | None = None,
    hooks: frozenset[dg.HookDefinition] = frozenset(),
    executor: dg.ExecutorDefinition = stagecoach_threads,
) -> dg.JobDefinition:
    def make(name: str, deps: Sequence[str]) -> dg.AssetsDefinition:
        body = (bodies or {}).get(name, lambda context: time.sleep(0.2))

        @dg.asset(name=name, deps=list(deps), pool=pool)
        def run(context: dg.AssetExecutionContext) -> dg.MaterializeResult[None]:
            timeline.record(name, lambda: body(context))
            return dg.MaterializeResult()

        return run

    assets = [make(name, deps) for name, deps in graph.items()]
    job = dg.define_asset_job("run_it", executor_def=executor, hooks=hooks or None)
    return dg.Definitions(assets=assets, jobs=[job]).resolve_job_def("run_it")


def statuses(result: dg.ExecuteInProcessResult) -> dict[str, str]:
    ends = {
        dg.DagsterEventType.STEP_SUCCESS: "success",
        dg.DagsterEventType.STEP_FAILURE: "failure",
        dg.DagsterEventType.STEP_UP_FOR_RETRY: "retry",
    }
    return {str(e.step_key): ends[e.event_type] for e in result.all_events if e.event_type in ends}


def fail(error: Exception) -> Body:
    def body(context: dg.AssetExecutionContext) -> None:
        raise error

    return body


DIAMOND = {"left": [], "right": [], "join": ["left", "right"], "head": ["join"]}


def test_independent_steps_overlap_and_dependent_ones_wait(
    timeline: Timeline, instance: dg.DagsterInstance
) -> None:
    together = threading.Barrier(2, timeout=120)

    def meet(context: dg.AssetExecutionContext) -> None:
        together.wait()

    job = make_job(timeline, DIAMOND, {"left": meet, "right": meet})
    result = execute_in_process(job, instance=instance, run_config=QUIET, tags={"a": "b"})
    assert result.success
    assert statuses(result) == dict.fromkeys(DIAMOND, "success")
    assert timeline.overlap("left", "right") > 0
    assert timeline.overlap("left", "join") <= 0
    assert timeline.overlap("right", "join") <= 0
    assert result.dagster_run.tags["a"] == "b"


def test_max_concurrent_serialises(timeline: Timeline, instance: dg.DagsterInstance) -> None:
    config = {**QUIET, "execution": {"config": {"max_concurrent": 1}}}
    job = make_job(timeline, DIAMOND)
    assert execute_in_process(job, instance=instance, run_config=config).success
    assert timeline.overlap("left", "right") <= 0


def test_max_concurrent_must_be_positive(timeline: Timeline, instance: dg.DagsterInstance) -> None:
    config = {**QUIET, "execution": {"config": {"max_concurrent": 0}}}
    result = execute_in_process(make_job(timeline, DIAMOND), instance=instance, run_config=config)
    assert not result.success
    assert timeline.spans == {}


def test_siblings_of_a_failed_step_finish_and_consumers_do_not_run(
    timeline: Timeline, instance: dg.DagsterInstance
) -> None:
    job = make_job(timeline, DIAMOND, {"left": fail(ValueError("boom"))})
    result = execute_in_process(job, instance=instance, run_config=QUIET)
    assert not result.success
    assert statuses(result) == {"left": "failure", "right": "success"}
    assert "boom" in str(result.failure_data_for_node("left"))
    run = instance.get_run_by_id(result.run_id)
    assert run is not None
    assert run.status is dg.DagsterRunStatus.FAILURE


def test_a_step_that_asks_for_a_retry_gets_it(
    timeline: Timeline, instance: dg.DagsterInstance
) -> None:
    def flaky(context: dg.AssetExecutionContext) -> None:
        if context.retry_number < 2:
            raise dg.RetryRequested(max_retries=2, seconds_to_wait=0.05)

    result = execute_in_process(
        make_job(timeline, DIAMOND, {"left": flaky}), instance=instance, run_config=QUIET
    )
    assert result.success
    assert len(timeline.spans["left"]) == 3
    assert len(timeline.spans["right"]) == 1


def test_retries_end(timeline: Timeline, instance: dg.DagsterInstance) -> None:
    body = fail(dg.RetryRequested(max_retries=1))
    result = execute_in_process(
        make_job(timeline, DIAMOND, {"left": body}), instance=instance, run_config=QUIET
    )
    assert not result.success
    assert len(timeline.spans["left"]) == 2


def test_pool_limit(timeline: Timeline) -> None:
    with dg.instance_for_test() as instance:
        instance.event_log_storage.set_concurrency_slots("spark", 1)
        job = make_job(timeline, {"a": [], "b": [], "c": []}, pool="spark")
        assert execute_in_process(job, instance=instance, run_config=QUIET).success
        assert instance.event_log_storage.get_concurrency_info("spark").active_slot_count == 0
    spans = sorted(span for spans in timeline.spans.values() for span in spans)
    assert len(spans) == 3
    assert all(one[1] <= other[0] for one, other in itertools.pairwise(spans))


@pytest.fixture
def busy_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """A step's thread ends a while after its last event."""
    events_of = executors.dagster_event_sequence_for_step

    def late(context: Any) -> Iterator[dg.DagsterEvent]:
        yield from events_of(context)
        time.sleep(0.3)

    monkeypatch.setattr(executors, "dagster_event_sequence_for_step", late)


@pytest.mark.usefixtures("busy_machine")
def test_a_retry_waits_for_the_end_of_the_attempt_before(
    timeline: Timeline, instance: dg.DagsterInstance
) -> None:
    def flaky(context: dg.AssetExecutionContext) -> None:
        if context.retry_number < 2:
            raise dg.RetryRequested(max_retries=2)

    job = make_job(timeline, DIAMOND, {"left": flaky})
    assert execute_in_process(job, instance=instance, run_config=QUIET).success
    assert len(timeline.spans["left"]) == 3


@pytest.mark.usefixtures("busy_machine")
def test_a_run_waits_for_a_step_that_ends_after_its_last_event(
    timeline: Timeline, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The step's hooks run, and nothing of it is cancelled."""
    noted: list[str] = []

    @dg.success_hook
    def note(context: dg.HookContext) -> None:
        noted.append(context.op.name)

    canceled: list[str] = []
    monkeypatch.setattr(cancel_registry, "cancel", canceled.append)
    job = make_job(timeline, {"one": []}, hooks=frozenset({note}))
    assert execute_in_process(job, instance=instance, run_config=QUIET).success
    assert noted == ["one"]
    assert canceled == []


def test_hooks_run(timeline: Timeline, instance: dg.DagsterInstance) -> None:
    seen: list[str] = []

    @dg.success_hook
    def note(context: dg.HookContext) -> None:
        seen.append(context.op.name)

    job = make_job(timeline, DIAMOND, hooks=frozenset({note}))
    assert execute_in_process(job, instance=instance, run_config=QUIET).success
    assert sorted(seen) == sorted(DIAMOND)


def interrupt_this_process() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def test_an_interrupt_reaches_the_jobs_of_the_run(
    timeline: Timeline, instance: dg.DagsterInstance
) -> None:
    cancelled: list[str] = []
    both_run = threading.Barrier(2, action=interrupt_this_process)

    def spark_job(context: dg.AssetExecutionContext) -> None:
        stop = threading.Event()

        def cancel() -> None:
            cancelled.append(context.asset_key.to_user_string())
            stop.set()

        with cancel_registry.on_cancel(context.run.run_id, cancel):
            both_run.wait(120)
            assert stop.wait(120)
        raise dg.Failure("the job was cancelled", allow_retries=False)

    job = make_job(timeline, DIAMOND, {"left": spark_job, "right": spark_job})
    started = time.monotonic()
    result = execute_in_process(job, instance=instance, run_config=QUIET)
    assert time.monotonic() - started < 60
    assert not result.success
    assert sorted(set(cancelled)) == ["left", "right"]
    assert statuses(result) == {"left": "failure", "right": "failure"}
    assert not cancel_registry.is_cancelled(result.run_id)


class SlowFlag(dict[str, bool]):
    """Dagster's note of a signal, on a machine that is slow to handle it."""

    def __setitem__(self, key: str, value: bool) -> None:
        super().__setitem__(key, value)
        time.sleep(2 * executors.POLL_SECONDS)


def test_an_interrupt_is_noticed_when_its_handler_outlasts_the_wait_for_events(
    timeline: Timeline, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`SimpleQueue.get` of Python 3.11 waits without end where a signal outlasts its timeout."""
    monkeypatch.setattr(interrupts, "_received_interrupt", SlowFlag(received=False))
    waits = threading.Event()
    take_events = executors._StepThreads.take_events

    def noted(steps: executors._StepThreads, seconds: float) -> Iterator[dg.DagsterEvent]:
        waits.set()
        return take_events(steps, seconds)

    monkeypatch.setattr(executors._StepThreads, "take_events", noted)
    was_cancelled: list[bool] = []

    def spark_job(context: dg.AssetExecutionContext) -> None:
        stop = threading.Event()
        with cancel_registry.on_cancel(context.run.run_id, stop.set):
            # Only a signal that came while the executor waited for events was lost.
            waits.clear()
            assert waits.wait(20)
            interrupt_this_process()
            was_cancelled.append(stop.wait(20))
        raise dg.Failure("the job was cancelled", allow_retries=False)

    job = make_job(timeline, {"one": []}, {"one": spark_job})
    result = execute_in_process(job, instance=instance, run_config=QUIET)
    assert was_interrupted(result)
    assert was_cancelled == [True]


def test_a_step_that_ignores_the_interrupt_does_not_hold_the_run(timeline: Timeline) -> None:
    @dg.executor(name="impatient")
    def impatient(init_context: dg.InitExecutorContext) -> ThreadExecutor:
        return ThreadExecutor(cancel_grace_seconds=0.3)

    release = threading.Event()
    interrupted: list[float] = []

    with dg.instance_for_test() as instance:
        instance.event_log_storage.set_concurrency_slots("spark", 1)

        def stubborn(context: dg.AssetExecutionContext) -> None:
            interrupted.append(time.monotonic())
            interrupt_this_process()
            release.wait(120)

        job = make_job(timeline, {"left": []}, {"left": stubborn}, pool="spark", executor=impatient)
        result = execute_in_process(job, instance=instance, run_config=QUIET)
        assert time.monotonic() - interrupted[0] < 9  # the grace of other executors is 10 s
        assert not result.success
        assert cancel_registry.is_cancelled(result.run_id)
        assert instance.event_log_storage.get_concurrency_info("spark").active_slot_count == 0
        release.set()
        wait_for(lambda: all(t.name != "step-left" for t in threading.enumerate()), 20)


def test_a_late_callback_of_a_cancelled_run_is_called() -> None:
    called: list[int] = []
    cancel_registry.cancel("some-run")
    with cancel_registry.on_cancel("some-run", lambda: called.append(1)):
        assert called == [1]
    cancel_registry.forget("some-run")


def test_a_failing_callback_stops_no_other(caplog: pytest.LogCaptureFixture) -> None:
    called: list[int] = []

    def broken() -> None:
        raise OSError("gone")

    with (
        cancel_registry.on_cancel("run-2", broken),
        cancel_registry.on_cancel("run-2", lambda: called.append(1)),
    ):
        cancel_registry.cancel("run-2")
    cancel_registry.forget("run-2")
    assert called == [1]
    assert "cancel callback failed" in caplog.text


def make_reexecution_job() -> dg.JobDefinition:
    """A job whose step `left` fails while the environment says so; importable by name."""

    def left(context: dg.AssetExecutionContext) -> None:
        if os.environ.get("TEST_LEFT_FAILS"):
            raise ValueError("boom")

    return make_job(Timeline(), DIAMOND, {"left": left})


def test_reexecution_from_failure_runs_what_failed_and_what_follows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    job = dg.reconstructable(make_reexecution_job)
    with dg.instance_for_test() as instance:
        monkeypatch.setenv("TEST_LEFT_FAILS", "1")
        with dg.execute_job(job, instance=instance, run_config=QUIET) as first:
            assert not first.success
        monkeypatch.delenv("TEST_LEFT_FAILS")
        options = dg.ReexecutionOptions.from_failure(first.run_id, instance)
        with dg.execute_job(
            job, instance=instance, run_config=QUIET, reexecution_options=options
        ) as second:
            assert second.success
            steps = {e.step_key for e in second.all_events if e.is_step_start}
    assert steps == {"left", "join", "head"}
