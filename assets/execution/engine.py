"""The protocol between the asset of a stage and what runs the stage.

A `StageRunner` takes a `StageRequest` and returns `StageMetadata`; a `RunListener` hears of the
progress. Tests and other runtimes put something else behind the same assets.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import pyarrow as pa

from stagecoach.assets.report.metadata import StageMetadata
from stagecoach.infra.formats.publishing import PublishTarget
from stagecoach.planner.plan.stages import Stage, StageGraph

# It imports pyspark, which loading a code location need not wait for.
if TYPE_CHECKING:
    from stagecoach.infra.publishing.publish import Published, Staged

ENGINE_RESOURCE = "engine"
"""Key of the resource, a `StageRunner`, that the assets and checks of a query need."""

Progress = Callable[[int, int], None]


def _ignore(finished: int, total: int) -> None:
    """Nobody listens."""


@dataclass(frozen=True)
class EarlierRun:
    """A run whose stages a run of only part of a query may read.

    Args:
        root_run_id: The first of the runs that it re-executes; itself if it is the first.
        fresh: Whether it reused nothing.
    """

    root_run_id: str
    fresh: bool = False


@dataclass(frozen=True, kw_only=True)
class StageRequest:
    """One stage of one run, in the terms of Dagster.

    A class beside `Run` because loading a code location must not import what runs a stage, and
    because runners of other engines take it: it is public, as `StageRunner` is.

    Args:
        graph: The planned query.
        stage_id: Which of its stages.
        run_id: The run.
        root_run_id: The first of the runs that this one re-executes; itself if it is the first.
        parameters: Parameter values as text, by name; the run's own before the query's defaults.
        fresh: Whether the run reuses nothing that other runs have computed.
        stages: The stages of the query that the run consists of; empty for all.
        outside: Stages that the run reads and does not run; empty for a run of the whole query.
        earlier: Runs that made those last, newest first. Where they are not there for the tables as
            they are now, the run reads the tables as one of these did.
        regroups: Whether the run makes what it lacks of the stages that are not part of it. Dagster
            may run one stage of a query for thirty days at once, and another day by day as what it
            reads is there: then no run has made the output for just these days.
        recover: Whether lost outputs of stages are computed again; None as the settings say.
        attempt: How many times the step has been tried before in this run.
        staged: Tables that are read as they would be if something staged were published: by name in
            lower case the identity of what is staged.
        progress: Told how many of how many tasks are done, now and then.
    """

    graph: StageGraph
    stage_id: int
    run_id: str
    root_run_id: str
    parameters: Mapping[str, str] = field(default_factory=dict)
    fresh: bool = False
    stages: tuple[int, ...] = ()
    outside: tuple[int, ...] = ()
    earlier: tuple[EarlierRun, ...] = ()
    regroups: bool = False
    recover: bool | None = None
    attempt: int = 0
    staged: Mapping[str, str] = field(default_factory=dict)
    progress: Progress = field(default=_ignore, compare=False, repr=False)

    @property
    def stage(self) -> Stage:
        """The stage."""
        return self.graph.stages[self.stage_id]

    @property
    def name(self) -> str:
        """The stage as messages name it."""
        return f"{self.graph.query}/stage_{self.stage_id}"


class StageRunner(Protocol):
    """What runs a stage; the resource `engine` of every asset."""

    def run_stage(self, request: StageRequest) -> StageMetadata:
        """Run the stage and return when its output is committed.

        Raises:
            StagecoachError: It failed; `retryable` says whether a retry can help.
        """
        ...

    def cancel_stage(self, request: StageRequest) -> None:
        """Interrupt the stage's jobs, from another thread; may be called again."""
        ...


@dataclass(frozen=True)
class FailureLog:
    """What the tasks of a failed stage said.

    Args:
        uri: Where all of it is.
        lines: Its lines, those of the first task that failed on top.
    """

    uri: str
    lines: tuple[str, ...]


@runtime_checkable
class HasFailureLog(Protocol):
    """A runner that keeps the logs of failed stages."""

    def failure_log(self, request: StageRequest) -> FailureLog | None:
        """The log of the stage's last failure, or None if its tasks left none."""
        ...


@runtime_checkable
class HearsOfEnds(Protocol):
    """A runner that is told when queries and runs have ended."""

    def query_ended(self, request: StageRequest) -> None:
        """The head stage of a query has ended in a run, or a stage has failed for good."""
        ...

    def run_ended(self, run_id: str) -> None:
        """No step of a Dagster run runs any more, nor will; called once, by the executor."""
        ...


@runtime_checkable
class HasRows(Protocol):
    """A runner that runs a whole query and returns what it finds."""

    def first_rows(self, request: StageRequest, limit: int) -> pa.Table:
        """Run all stages of the query and return the first rows of its result.

        Args:
            request: Of its head stage.
            limit: Most rows.
        """
        ...


@runtime_checkable
class Publishes(Protocol):
    """A runner that publishes results as tables."""

    def publish(self, request: StageRequest, target: PublishTarget) -> "Published":
        """Publish what the head stage came to in the run.

        Args:
            request: Of the head stage, which has run.
            target: The table.

        Raises:
            PublishError: The result does not fit the target.
        """
        ...

    def table_uri(self, table: str) -> str:
        """Folder of a published table."""
        ...


@runtime_checkable
class Stages(Publishes, Protocol):
    """A runner that publishes results in two steps, so that they can be checked in between."""

    def stage(self, request: StageRequest, target: PublishTarget) -> "Staged | Published":
        """Write what the head stage came to in the run; no reader sees it yet.

        Args:
            request: Of the head stage, which has run.
            target: The table.

        Returns:
            What waits; what is published, if the table has this result already.

        Raises:
            PublishError: The result does not fit the target.
        """
        ...

    def publish_staged(self, staged: "Staged") -> "Published":
        """Make visible what `stage` has returned.

        Raises:
            StagedGoneError: It is not staged any more.
            PublishError: The table does not take it any more.
        """
        ...

    def is_accepted(self, table: str, fingerprint: str) -> bool:
        """Whether somebody has published a result by hand although it failed its checks."""
        ...


class RunListener(Protocol):
    """Who hears of a run while it goes on; called from the threads of its stages."""

    def stage_started(self, stage: Stage) -> None:
        """The stage began."""
        ...

    def task_progress(self, stage: Stage, finished: int, total: int) -> None:
        """So many of the stage's tasks are done."""
        ...

    def stage_finished(self, stage: Stage, metadata: StageMetadata) -> None:
        """The stage's output is there."""
        ...

    def stage_failed(self, stage: Stage, error: BaseException) -> None:
        """The stage failed, for now or for good."""
        ...


class SilentListener:
    """Hears everything and says nothing."""

    def stage_started(self, stage: Stage) -> None:
        """Ignored."""

    def task_progress(self, stage: Stage, finished: int, total: int) -> None:
        """Ignored."""

    def stage_finished(self, stage: Stage, metadata: StageMetadata) -> None:
        """Ignored."""

    def stage_failed(self, stage: Stage, error: BaseException) -> None:
        """Ignored."""


class ListeningRunner:
    """A runner that tells a listener when stages start, get on, end and fail."""

    def __init__(self, runner: StageRunner, listener: RunListener) -> None:
        self._runner = runner
        self._listener = listener

    def run_stage(self, request: StageRequest) -> StageMetadata:
        """Run the stage; see `StageRunner`."""
        self._listener.stage_started(request.stage)
        progress = partial(self._listener.task_progress, request.stage)
        try:
            metadata = self._runner.run_stage(replace(request, progress=progress))
        except BaseException as error:
            self._listener.stage_failed(request.stage, error)
            raise
        self._listener.stage_finished(request.stage, metadata)
        return metadata

    def cancel_stage(self, request: StageRequest) -> None:
        """Interrupt the stage's jobs; see `StageRunner`."""
        self._runner.cancel_stage(request)

    def query_ended(self, request: StageRequest) -> None:
        """Pass it on."""
        if isinstance(self._runner, HearsOfEnds):
            self._runner.query_ended(request)

    def run_ended(self, run_id: str) -> None:
        """Pass it on."""
        if isinstance(self._runner, HearsOfEnds):
            self._runner.run_ended(run_id)

    def failure_log(self, request: StageRequest) -> FailureLog | None:
        """The log of the stage's last failure, if the runner keeps it."""
        if isinstance(self._runner, HasFailureLog):
            return self._runner.failure_log(request)
        return None
