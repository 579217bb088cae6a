"""The thread executor: steps of a run are threads of its process, over one Spark session.

It emits the events that the multiprocess executor would, and independent steps overlap in time. It
needs `dagster._core` (`dagster>=1.13,<1.14`); `test_executor.py` is its conformance test.

    main thread                                    a thread for each step
      ActiveExecution says which steps may start ──▶ dagster_event_sequence_for_step
      queue ◀── its events ──────────────────────────┘
      handle_event, skips, retries, pool slots, interrupts

The main thread alone touches the state of the execution and never blocks for longer than
`POLL_SECONDS`, because only it sees signals.
"""

import os
import queue
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial

import dagster as dg
from dagster._core.definitions.job_base import InMemoryJob
from dagster._core.definitions.unresolved_asset_job_definition import (
    UnresolvedAssetJobDefinition as AssetJob,
)
from dagster._core.errors import DagsterExecutionInterruptedError
from dagster._core.events import DagsterEvent, EngineEventData, RunFailureReason
from dagster._core.execution.api import ExecuteRunWithPlanIterable
from dagster._core.execution.compute_logs import create_compute_log_file_key
from dagster._core.execution.context.system import (
    PlanExecutionContext,
    PlanOrchestrationContext,
    StepExecutionContext,
)
from dagster._core.execution.context_creation_job import PlanExecutionContextManager
from dagster._core.execution.execute_in_process import core_execute_in_process
from dagster._core.execution.plan.active import ActiveExecution
from dagster._core.execution.plan.execute_plan import (
    _trigger_hook,
    dagster_event_sequence_for_step,
)
from dagster._core.execution.plan.instance_concurrency_context import InstanceConcurrencyContext
from dagster._core.execution.plan.plan import ExecutionPlan
from dagster._core.execution.retries import RetryMode
from dagster._core.executor.base import Executor
from dagster._utils.error import serializable_error_info_from_exc_info

from stagecoach.assets.execution.cancellation import CANCEL_AGAIN_SECONDS, cancel_registry
from stagecoach.assets.execution.engine import HearsOfEnds
from stagecoach.assets.execution.hosted_runs import hosted_runs
from stagecoach.infra.host.daemon_threads import DaemonThreads

__all__ = [
    "AssetJob",
    "ThreadExecutor",
    "execute_in_process",
    "stagecoach_threads",
    "was_interrupted",
]

EXECUTOR_NAME = "stagecoach_threads"
DEFAULT_MAX_CONCURRENT = 8
POLL_SECONDS = 0.05
CANCEL_GRACE_SECONDS = 10.0

_Message = tuple[str, DagsterEvent | BaseException | None]

_threads = DaemonThreads(max_idle=2 * DEFAULT_MAX_CONCURRENT)


class ThreadExecutor(Executor):
    """Runs the steps of a run as threads of its process.

    Args:
        max_concurrent: How many steps run at a time, at least 1.
        retries: Whether a step that asks for a retry gets it.
        cancel_grace_seconds: How long an interrupted run waits for its steps to end; those that
            ignore the cancellation are left behind as daemon threads.
    """

    def __init__(
        self,
        *,
        max_concurrent: int = DEFAULT_MAX_CONCURRENT,
        retries: RetryMode = RetryMode.ENABLED,
        cancel_grace_seconds: float = CANCEL_GRACE_SECONDS,
    ) -> None:
        self._max_concurrent = max_concurrent
        self._retries = retries
        self._cancel_grace_seconds = cancel_grace_seconds

    @property
    def retries(self) -> RetryMode:
        """Whether a step that asks for a retry gets it."""
        return self._retries

    def execute(
        self, plan_context: PlanOrchestrationContext, execution_plan: ExecutionPlan
    ) -> Iterator[DagsterEvent]:
        """Run the plan and yield its events.

        Raises:
            DagsterExecutionInterruptedError: The run was interrupted; its jobs are cancelled.
        """
        marker = EngineEventData.in_process(os.getpid(), execution_plan.step_keys_to_execute)
        yield DagsterEvent.engine_event(
            plan_context, f"Executing steps as threads (pid: {os.getpid()})", marker
        )
        started = time.monotonic()
        yield from ExecuteRunWithPlanIterable(
            execution_plan=execution_plan,
            iterator=self._run_steps,
            execution_context_manager=PlanExecutionContextManager(
                job=plan_context.job,
                retry_mode=self._retries,
                execution_plan=execution_plan,
                run_config=plan_context.run_config,
                dagster_run=plan_context.dagster_run,
                instance=plan_context.instance,
                raise_on_error=plan_context.raise_on_error,
                output_capture=plan_context.output_capture,
                step_dependency_config=self.step_dependency_config,
            ),
        )
        seconds = time.monotonic() - started
        yield DagsterEvent.engine_event(
            plan_context, f"Finished steps as threads in {seconds:.2f} s", marker
        )

    def _run_steps(
        self, job_context: PlanExecutionContext, execution_plan: ExecutionPlan
    ) -> Iterator[DagsterEvent]:
        with (
            InstanceConcurrencyContext(job_context.instance, job_context.dagster_run) as slots,
            execution_plan.start(
                retry_mode=self._retries,
                max_concurrent=self._max_concurrent,
                instance_concurrency_context=slots,
                step_dependency_config=self.step_dependency_config,
            ) as active,
            ExitStack() as log_capture,
            hosted_runs.hosting(job_context.run_id),
        ):
            yield _start_log_capture(log_capture, job_context, execution_plan)
            steps = _StepThreads(job_context, active)
            try:
                # A step whose last event has been handled may not have ended: its thread says so.
                while not active.is_complete or steps.running:
                    if active.check_for_interrupts():
                        yield from self._interrupt(job_context, active, steps)
                    steps.start_ready()
                    yield from active.concurrency_event_iterator(job_context)
                    yield from steps.take_events(POLL_SECONDS)
                    yield from active.plan_events_iterator(job_context)
            finally:
                _clean_up(job_context, steps)

    def _interrupt(
        self, job_context: PlanExecutionContext, active: ActiveExecution, steps: "_StepThreads"
    ) -> Iterator[DagsterEvent]:
        yield DagsterEvent.engine_event(
            job_context,
            "Thread executor: received termination signal, cancelling the run's jobs",
            EngineEventData.interrupted(list(steps.running)),
        )
        active.mark_interrupted()
        deadline = time.monotonic() + self._cancel_grace_seconds
        while steps.running and time.monotonic() < deadline:
            # Again and again: a step may have been between two jobs when it was first told.
            cancel_registry.cancel(job_context.run_id)
            yield from steps.take_events(CANCEL_AGAIN_SECONDS)
        left = f"; still running: {', '.join(steps.running)}" if steps.running else ""
        raise DagsterExecutionInterruptedError(f"The run was interrupted{left}")


def _clean_up(job_context: PlanExecutionContext, steps: "_StepThreads") -> None:
    """Leave nothing behind: no Spark job of a step that outlives the run, no pool slot."""
    run_id = job_context.run_id
    if not steps.running:
        cancel_registry.forget(run_id)
        for resource in job_context.scoped_resources_builder.resource_instance_dict.values():
            if isinstance(resource, HearsOfEnds):
                resource.run_ended(run_id)
        return
    # The mark stays: a step that has not started its job yet finds it when it registers.
    cancel_registry.cancel(run_id)
    storage = job_context.instance.event_log_storage
    if storage.supports_global_concurrency_limits:
        storage.free_concurrency_slots_for_run(run_id)


class _StepThreads:
    """The running steps of one run; only the thread that made it calls its methods."""

    def __init__(self, job_context: PlanExecutionContext, active: ActiveExecution) -> None:
        self._job_context = job_context
        self._active = active
        # No SimpleQueue: a signal that is handled for longer than is left of its timeout makes its
        # `get` wait without end, and the run never learns that it was interrupted.
        self._messages: queue.Queue[_Message] = queue.Queue()
        self._history: dict[str, tuple[StepExecutionContext, list[DagsterEvent]]] = {}
        self._to_retry: set[str] = set()
        """Steps that are to run again, and whose threads have not ended yet."""

    @property
    def running(self) -> Sequence[str]:
        """Keys of the steps whose threads have not ended."""
        return tuple(self._history)

    def start_ready(self) -> None:
        """Start a thread for each step that may run now."""
        for step in self._active.get_steps_to_execute():
            context = self._job_context.for_step(step, self._active.get_known_state())
            self._history[step.key] = (context, [])
            # Daemons: a step that ignores cancellation must not keep the process alive.
            _threads.start(f"step-{step.key}", partial(self._work, step.key, context))

    def _work(self, step_key: str, context: StepExecutionContext) -> None:
        outcome: BaseException | None = None
        try:
            for event in dagster_event_sequence_for_step(context):
                self._messages.put((step_key, event))
        except BaseException as error:  # noqa: BLE001 - raised again in the main thread
            outcome = error
        self._messages.put((step_key, outcome))

    def take_events(self, seconds: float) -> Iterator[DagsterEvent]:
        """Wait for at most `seconds`, then yield and handle all events that are there."""
        try:
            message = self._messages.get(timeout=seconds)
            while True:
                yield from self._handle(*message)
                # The next attempt must not begin before the thread of this one has ended.
                message = self._messages.get(block=bool(self._to_retry))
        except queue.Empty:
            return

    def _handle(
        self, step_key: str, message: DagsterEvent | BaseException | None
    ) -> Iterator[DagsterEvent]:
        if isinstance(message, DagsterEvent):
            self._history[step_key][1].append(message)
            yield message
            self._active.handle_event(message)
            if message.is_step_up_for_retry:
                self._to_retry.add(step_key)
            return
        self._to_retry.discard(step_key)
        context, events = self._history.pop(step_key)
        self._active.verify_complete(self._job_context, step_key)
        yield from _trigger_hook(context, events)
        if message is not None:
            raise message


def _start_log_capture(
    stack: ExitStack, job_context: PlanExecutionContext, execution_plan: ExecutionPlan
) -> DagsterEvent:
    """Send standard output and error of the process to the run's compute log until `stack` closes.

    The threads share both, so there is one log a run. A log that cannot be had is an event of the
    run, not its end.
    """
    manager = job_context.instance.compute_log_manager
    file_key = create_compute_log_file_key()
    log_key = manager.build_log_key_for_run(job_context.run_id, file_key)
    try:
        log_context = stack.enter_context(manager.capture_logs(log_key))
    except Exception:  # noqa: BLE001 - reported in the run's events
        problem = serializable_error_info_from_exc_info(sys.exc_info())
        message = "Exception while setting up compute log capture"
        return DagsterEvent.engine_event(job_context, message, EngineEventData(error=problem))
    step_keys = list(execution_plan.step_keys_to_execute)
    return DagsterEvent.capture_logs(job_context, step_keys, log_key, log_context)


@dg.executor(
    name=EXECUTOR_NAME,
    config_schema={
        "max_concurrent": dg.Field(
            dg.Noneable(dg.Int),
            default_value=None,
            description=f"How many stages run at a time; {DEFAULT_MAX_CONCURRENT} if not given.",
        ),
    },
)
def stagecoach_threads(init_context: dg.InitExecutorContext) -> Executor:
    """Steps as threads of the run's process, over one Spark session."""
    max_concurrent = init_context.executor_config["max_concurrent"]
    return ThreadExecutor(max_concurrent=_checked(max_concurrent))


def _checked(max_concurrent: object) -> int:
    if max_concurrent is None:
        return DEFAULT_MAX_CONCURRENT
    if not isinstance(max_concurrent, int) or max_concurrent < 1:
        raise dg.DagsterInvalidConfigError(
            f"max_concurrent is {max_concurrent!r}; it must be at least 1", [], None
        )
    return max_concurrent


def execute_in_process(
    job: dg.JobDefinition,
    *,
    instance: dg.DagsterInstance,
    run_config: Mapping[str, object],
    run_id: str | None = None,
    tags: Mapping[str, str] | None = None,
) -> dg.ExecuteInProcessResult:
    """Run a job in this process *with its own executor*.

    `JobDefinition.execute_in_process` puts Dagster's sequential executor in its place. The result
    has the events; a failure of a step is an event, never an exception.
    """
    return core_execute_in_process(
        job=InMemoryJob(job),
        run_config=run_config,
        instance=instance,
        output_capturing_enabled=False,
        raise_on_error=False,
        run_tags=tags,
        run_id=run_id,
    )


def was_interrupted(result: dg.ExecuteInProcessResult) -> bool:
    """Whether the run ended because of a signal or a request to terminate it."""
    for event in result.all_events:
        if event.event_type is dg.DagsterEventType.RUN_CANCELED:
            return True
        if event.is_run_failure:
            return event.job_failure_data.failure_reason is RunFailureReason.UNEXPECTED_TERMINATION
    return False
