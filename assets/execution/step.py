"""One step of a run: runs the stage and reports its result, or how it failed.

A step runs its stage; that of the head also publishes the result and writes the run's page.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Generic

import dagster as dg

from stagecoach.assets.execution.cancellation import TimeLimit, cancel_registry
from stagecoach.assets.execution.engine import (
    ENGINE_RESOURCE,
    HasFailureLog,
    HearsOfEnds,
    Publishes,
    StageRequest,
    StageRunner,
)
from stagecoach.assets.execution.failures import failure_text, missing_upstream
from stagecoach.assets.execution.policy import ExecutionPolicy
from stagecoach.assets.execution.publishing import (
    partition_metadata,
    publish_target,
    published_metadata,
)
from stagecoach.assets.execution.requests import build_request
from stagecoach.assets.execution.run_page import HasStore, PageMetadata, write_run_page
from stagecoach.assets.execution.stage_places import Report, StagePlaces
from stagecoach.assets.plans.comments import shown_comments
from stagecoach.assets.plans.planned import PlannedQuery
from stagecoach.assets.project.partitions import run_window
from stagecoach.assets.report.metadata import StageMetadata
from stagecoach.infra.errors import with_doctor
from stagecoach.infra.formats.publishing import PublishTarget
from stagecoach.planner.errors import StagecoachError
from stagecoach.planner.plan.stages import Stage

# It imports pyspark, which loading a code location need not wait for.
if TYPE_CHECKING:
    from stagecoach.infra.publishing.publish import Published

Metadata = Mapping[str, dg.MetadataValue[Any]]


@dataclass(frozen=True, kw_only=True)
class StageStep(Generic[Report]):
    """What a step of a query's run does, whichever run it is.

    Args:
        planned: The query.
        stage: Its stage.
        places: Where its stages are in Dagster.
        policy: Retries and the time limit.
    """

    planned: PlannedQuery
    stage: Stage
    places: StagePlaces[Report]
    policy: ExecutionPolicy

    @property
    def is_head(self) -> bool:
        """Whether the stage makes the query's result."""
        return self.stage is self.planned.graph.head

    def run(self, context: dg.AssetExecutionContext) -> Report:
        """Run the stage.

        Raises:
            dg.Failure: It failed, and a retry cannot help.
            dg.RetryRequested: It failed, and a retry may help.
        """
        request, runner = self.request(context)
        with self.watched(context, runner, request):
            metadata = runner.run_stage(request)
            published = self._publish(context, runner, request) if self.is_head else {}
        return self.report(context, runner, request, metadata, published)

    def request(self, context: dg.AssetExecutionContext) -> tuple[StageRequest, StageRunner]:
        """What the step asks for, and what runs it."""
        runner: StageRunner = getattr(context.resources, ENGINE_RESOURCE)
        return build_request(context, self.planned, self.stage, self.places), runner

    @contextmanager
    def watched(
        self, context: dg.AssetExecutionContext, runner: StageRunner, request: StageRequest
    ) -> Iterator[None]:
        """Cancel the stage with the run or after its time; turn errors into Dagster's."""
        cancel = partial(runner.cancel_stage, request)
        limit = TimeLimit(self.policy.timeout_seconds)
        try:
            with cancel_registry.on_cancel(context.run.run_id, cancel), limit.over(cancel):
                yield
        except StagecoachError as error:
            raise self._failure(
                error, context, runner, request, timed_out=limit.exceeded
            ) from error

    def report(
        self,
        context: dg.AssetExecutionContext,
        runner: StageRunner,
        request: StageRequest,
        metadata: StageMetadata,
        published: Metadata,
    ) -> Report:
        """Say how the stage went; what the step returns to Dagster.

        Args:
            context: Of the step.
            runner: What ran the stage.
            request: What it ran.
            metadata: What the stage tells.
            published: What publishing tells; empty for a stage that publishes nothing.
        """
        if metadata.plan_warning is not None:
            context.log.warning(metadata.plan_warning)
        if metadata.recovered is not None:
            context.log.warning(metadata.recovered)
        page = self.end(context, runner, request, metadata) if self.is_head else {}
        window = run_window(context, self.planned.query.front_matter.partitions)
        shown, comments = metadata, self.planned.comments if self.is_head else None
        if self.is_head and self.planned.publishes:
            comments = shown_comments(self.planned)
            output = self.planned.query.front_matter.output
            shown = replace(shown, columns=output.stored_columns(shown.columns))
        if window is not None and len(window.keys) > 1:
            shown = shown.over_partitions(len(window.keys))
        told = shown.to_dagster(comments)
        version = dg.DataVersion(metadata.fingerprint) if metadata.fingerprint else None
        return self.places.report(
            context, self.stage.stage_id, {**told, **published, **page}, version
        )

    def target(self, context: dg.AssetExecutionContext) -> PublishTarget:
        """Where the result of the run goes."""
        window = run_window(context, self.planned.query.front_matter.partitions)
        return publish_target(self.planned.query, window, self.planned.comments)

    def told(
        self, context: dg.AssetExecutionContext, runner: Publishes, published: "Published"
    ) -> Metadata:
        """What is told about a publication; that of each partition is told by itself."""
        window = run_window(context, self.planned.query.front_matter.partitions)
        for key in window.keys if window is not None else ():
            if (rows := published.partition_rows.get(key)) is not None:
                context.add_asset_metadata(partition_metadata(rows), partition_key=key)
        return published_metadata(published, runner.table_uri(published.version.table))

    def _publish(
        self, context: dg.AssetExecutionContext, runner: StageRunner, request: StageRequest
    ) -> Metadata:
        """Publish the result as the query's table; what it came to."""
        if not self.planned.publishes or not isinstance(runner, Publishes):
            return {}
        return self.told(context, runner, runner.publish(request, self.target(context)))

    def end(
        self,
        context: dg.AssetExecutionContext,
        runner: StageRunner,
        request: StageRequest,
        outcome: StageMetadata | str | None,
    ) -> PageMetadata:
        """Say that the query's run has ended; where its page is.

        Args:
            context: Of the step.
            runner: What ran the stage.
            request: What it ran.
            outcome: What the stage tells about itself, or its error; None for a cancelled run,
                which gets no page.
        """
        if isinstance(runner, HearsOfEnds):
            runner.query_ended(request)
        if outcome is None or not isinstance(runner, HasStore):
            return {}
        return write_run_page(context, runner.store(), request, self.places, outcome)

    def _failure(
        self,
        error: StagecoachError,
        context: dg.AssetExecutionContext,
        runner: StageRunner,
        request: StageRequest,
        *,
        timed_out: bool,
    ) -> Exception:
        """Tell the log about an error; what Dagster must do about it."""
        cancelled = cancel_registry.is_cancelled(context.run.run_id)
        if not cancelled and not timed_out:
            log = runner.failure_log(request) if isinstance(runner, HasFailureLog) else None
            context.log.error(failure_text(error, request, log))
        failure = to_dagster_error(
            error,
            request,
            self.policy,
            self.places,
            retries=context.retry_number,
            cancelled=cancelled,
            timed_out=timed_out,
        )
        if not isinstance(failure, dg.Failure):
            return failure
        text = failure.description or str(error)
        page = self.end(context, runner, request, None if cancelled else text)
        return dg.Failure(text, {**failure.metadata, **page}, allow_retries=False)


def to_dagster_error(
    error: StagecoachError,
    request: StageRequest,
    policy: ExecutionPolicy,
    places: StagePlaces[Any],
    *,
    retries: int,
    cancelled: bool,
    timed_out: bool = False,
) -> Exception:
    """What Dagster must do about a failed stage.

    A retry is asked for only where the error says that it can help (a storage or machine fault):
    a mistake in the SQL fails the same way again, and a stage over its time limit is over it again.
    """
    stage, description = request.stage, with_doctor(str(error), error)
    if timed_out:
        description = (
            f"{request.graph.query}/stage_{stage.stage_id} took longer than its time limit of "
            f"{policy.timeout_seconds:g} s and was cancelled; raise `timeout` in the query's front "
            "matter, or remove it"
        )
    elif error.retryable and not cancelled and retries < policy.max_retries:
        wait = policy.wait_seconds(retries)
        return dg.RetryRequested(max_retries=policy.max_retries, seconds_to_wait=wait)
    elif missing := missing_upstream(error, request, places):
        description = missing
    metadata: Mapping[str, dg.MetadataValue[str]] = {
        "stagecoach/error": dg.MetadataValue.text(type(error).__name__),
        "stagecoach/stage": dg.MetadataValue.text(stage.title),
    }
    return dg.Failure(description=description, metadata=metadata, allow_retries=False)
