"""`StageEngine`, which runs the stages of runs in this process, or finds that all are there.

Spark starts with the first stage that has something to compute, once per process. Nothing here
needs Dagster: a run of which every stage is reused ends before Dagster is imported.
"""

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa

from stagecoach.assets.execution.engine import EarlierRun, FailureLog, StageRequest
from stagecoach.assets.execution.hosted_runs import hosted_runs
from stagecoach.assets.execution.observing import Observer
from stagecoach.assets.project.parameters import bind_parameters
from stagecoach.assets.report.metadata import StageMetadata
from stagecoach.infra.catalog.planned import PlannedTable, PublishedCatalog, TableCatalog
from stagecoach.infra.config.settings import EngineSettings
from stagecoach.infra.errors import ShuffleReadError, StorageError
from stagecoach.infra.formats.protocol import Access
from stagecoach.infra.formats.publishing import PublishTarget
from stagecoach.infra.formats.registry import find_stored
from stagecoach.infra.storage.at_once import at_once
from stagecoach.infra.storage.object_store import ObjectStore
from stagecoach.planner.errors import StagecoachError
from stagecoach.planner.plan.stages import StageGraph
from stagecoach.planner.versioned_names import split_name

# The runtime imports pyspark, which loading a code location need not wait for.
if TYPE_CHECKING:
    from stagecoach.infra.publishing.publish import Published, Staged
    from stagecoach.infra.runtime.stages.own_commits import KnownOutput
    from stagecoach.infra.runtime.stages.run import Run, StageResult
    from stagecoach.infra.spark.jobs import JobProgress

MAX_RUNS_KEPT = 8
T = TypeVar("T")

logger = logging.getLogger(__name__)


class StageEngine:
    """Runs stages with `stagecoach.infra.runtime.stages.run_stage.run_stage`; a `StageRunner`.

    Args:
        settings: The knobs of a run.
        catalog: The tables.
        fresh: Whether a stage runs even where its output is there already.
    """

    def __init__(
        self,
        settings: EngineSettings,
        catalog: TableCatalog,
        *,
        fresh: bool = False,
    ) -> None:
        self._settings = settings
        self._catalog = catalog
        self._fresh = fresh
        self._store = settings.open_store()
        self._observer = Observer(settings)
        self._access = Access()
        self._lock = threading.Lock()
        self._runs: OrderedDict[tuple[str, str], _Run] = OrderedDict()
        self._begun: set[tuple[str, str]] = set()

    def run_stage(self, request: StageRequest) -> StageMetadata:
        """Run the stage and return when its output is committed.

        Raises:
            StagecoachError: It failed; `retryable` says whether a retry can help.
        """
        from stagecoach.assets.report.stage_metadata import stage_metadata
        from stagecoach.infra.runtime.stages.run_stage import run_stage

        with self._observer.stage(request) as observed:
            run = self._run_of(request)
            with run.told(request):
                for missing in _missing(request, run.context):
                    logger.info("%s: stage_%d first, for these partitions", request.name, missing)
                    run_stage(missing, run.context)
                result = run_stage(request.stage_id, run.context)
            told = stage_metadata(result, request.graph, run.context.snapshot, self._store)
            if told.plan_warning is not None:
                logger.warning("%s: %s", request.name, told.plan_warning)
            observed.append(told)
        return told

    def reuse(self, head: StageRequest) -> tuple[StageMetadata, ...] | None:
        """Pin the outputs of all stages of a query where they are there; nothing is started.

        Args:
            head: The head stage of a run of the whole query, which none of its stages has begun.

        Returns:
            What each stage tells, by number; None where one has to be computed, or where only the
            run itself can tell what is wrong.
        """
        from stagecoach.assets.report.stage_metadata import stage_metadata
        from stagecoach.infra.runtime.stages.reuse import reused_stages

        try:
            context = self._run_of(head).context
            results = reused_stages(context)
        except StagecoachError as error:
            logger.debug("%s: not reused as it is: %s", head.name, error)
            return None
        if results is None:
            return None
        told: list[StageMetadata] = []
        for result in results:
            with self._observer.stage(replace(head, stage_id=result.stage_id)) as observed:
                told.append(stage_metadata(result, head.graph, context.snapshot, self._store))
                observed.append(told[-1])
                name = context.stage_name(result.stage_id)
                rows, seconds = told[-1].rows or 0, result.seconds
                logger.info(
                    "%s of run %s: %d rows, reused in %.2f s", name, head.run_id, rows, seconds
                )
                if (warning := told[-1].plan_warning) is not None:
                    logger.warning("%s: %s", name, warning)
        self.query_ended(head)
        return tuple(told)

    def query_ended(self, request: StageRequest) -> None:
        """Push the run's metrics, if the settings say where to; see `HearsOfEnds`."""
        self._observer.query_ended(request)

    def run_ended(self, run_id: str) -> None:
        """Say in storage that the run has ended, so that gc need not guess; see `HearsOfEnds`."""
        from stagecoach.infra.runtime.records.run_marks import mark_ended

        with self._lock:
            over = {(root, run) for root, run in self._begun if _dagster_run(run) == run_id}
            self._begun -= over
        for root, run in sorted(over):
            try:
                mark_ended(self._store, root, run)
            except StorageError:
                # How the run ended is known; gc takes it for alive while this process lives.
                logger.warning("run %s: its end could not be marked", run, exc_info=True)

    def cancel_stage(self, request: StageRequest) -> None:
        """Interrupt the stage's Spark jobs, from another thread; may be called again."""
        from stagecoach.infra.spark.jobs import cancel_stage

        for stage_id in (request.stage_id, *_left_out(request)):
            cancel_stage(request.run_id, stage_id)

    def first_rows(self, request: StageRequest, limit: int) -> pa.Table:
        """Run all stages of a query, one after the other; see `HasRows`."""
        from stagecoach.infra.runtime.stages.result_rows import first_rows

        for stage in request.graph.stages:
            self.run_stage(replace(request, stage_id=stage.stage_id))
        return first_rows(self._store, request.graph, request.root_run_id, limit)

    def publish(self, request: StageRequest, target: PublishTarget) -> "Published":
        """Publish what the head stage came to; see `Publishes`."""
        from stagecoach.infra.publishing.publish import publish_stage

        published = self._with_result(
            request, lambda run, result: publish_stage(run, result, target)
        )
        self._observer.published(published)
        return published

    def stage(self, request: StageRequest, target: PublishTarget) -> "Staged | Published":
        """Stage what the head stage came to; see `Stages`."""
        from stagecoach.infra.publishing.publish import stage_result

        return self._with_result(request, lambda run, result: stage_result(run, result, target))

    def publish_staged(self, staged: "Staged") -> "Published":
        """Make visible what was staged; see `Stages`."""
        published = staged.publish()
        self._observer.published(published)
        return published

    def is_accepted(self, table: str, fingerprint: str) -> bool:
        """Whether somebody has published the result by hand; see `Stages`."""
        from stagecoach.infra.publishing.accepted import is_accepted

        return is_accepted(self._store, table, fingerprint)

    def _with_result(
        self, request: StageRequest, publish: Callable[["Run", "StageResult"], T]
    ) -> T:
        """Do something with the output of the head stage, computed again where it is lost."""
        from stagecoach.infra.runtime.stages.commits import committed_result
        from stagecoach.infra.runtime.stages.run_stage import run_stage

        context = self._run_of(request).context
        try:
            return publish(context, committed_result(context))
        except ShuffleReadError as error:
            if not context.recovers:
                raise
            logger.warning("%s: the result is lost (%s) and is recomputed", request.name, error)
            return publish(context, run_stage(request.stage_id, context))

    def table_uri(self, table: str) -> str:
        """Where a published table is."""
        return find_stored(self._store, table, self._access).uri

    def known_output(self, request: StageRequest) -> "KnownOutput | None":
        """The output of a stage of one of the last runs, if it is known without a look at it."""
        with self._lock:
            run = self._runs.get((request.run_id, request.graph.plan_hash))
        return None if run is None else run.context.own.output(request.stage_id)

    def store(self) -> ObjectStore:
        """The storage root."""
        return self._store

    def failure_log(self, request: StageRequest) -> FailureLog | None:
        """What the tasks of the stage said when it last failed in this run."""
        from stagecoach.infra.runtime.records.stage_log import read_stage_log

        found = read_stage_log(self._store, request.run_id, request.stage_id)
        return None if found is None else FailureLog(found.uri, found.lines)

    def _catalog_of(self, graph: StageGraph, staged: Mapping[str, str]) -> TableCatalog:
        """The base tables and, as published tables, all others that the query reads."""
        base = {name.lower() for name in self._catalog.table_names()}
        planned: dict[str, PlannedTable] = {}
        for name, columns in graph.tables:
            own, version = split_name(name)
            key = own.lower()
            if key in base or (version is not None and key in planned):
                continue
            # At a version a table may have other columns, which are read with it.
            planned[key] = PlannedTable(name=own, columns=columns if version is None else None)
        if not planned:
            return self._catalog
        tables = list(planned.values())
        return PublishedCatalog(
            self._catalog, self._store, tables, access=self._access, staged=staged
        )

    def _run_of(self, request: StageRequest) -> "_Run":
        """One for all stages of a run: snapshot and fingerprints are computed once."""
        key = (request.run_id, request.graph.plan_hash)
        with self._lock:
            if key not in self._runs:
                self._runs[key] = self._start_run(request)
                while len(self._runs) > MAX_RUNS_KEPT:
                    self._runs.popitem(last=False)
            return self._runs[key]

    def _start_run(self, request: StageRequest) -> "_Run":
        from stagecoach.infra.runtime.records.run_marks import mark_begun
        from stagecoach.infra.runtime.records.run_plan import RunPlan, write_run_plan
        from stagecoach.infra.runtime.stages.commits import is_committed, look_ahead
        from stagecoach.infra.runtime.stages.run import Run

        run = _Run()
        is_hosted = _dagster_run(request.run_id) in hosted_runs
        roots = (EarlierRun(request.root_run_id, self._fresh or request.fresh), *request.earlier)
        contexts = (
            Run(
                graph=request.graph,
                run_id=request.run_id,
                root_run_id=root.root_run_id,
                settings=self._settings,
                store=self._store,
                catalog=self._catalog_of(request.graph, request.staged),
                parameters=bind_parameters(request.graph, request.parameters),
                progress=run.on_progress,
                fresh=root.fresh,
                alone=is_hosted and root.root_run_id == request.run_id,
                recover=request.recover,
                stages=request.stages,
                code_path=self._catalog.code_path if request.graph.functions else (),
            )
            for root in roots
        )
        run.context = first = next(contexts)
        if not all(is_committed(first, stage) for stage in request.outside):
            for context in contexts:
                if all(is_committed(context, stage) for stage in request.outside):
                    logger.info("run %s reads what %s read", request.run_id, context.root_run_id)
                    run.context = context
                    break
        root_run_id = run.context.root_run_id
        self._begun.add((root_run_id, request.run_id))
        plan = RunPlan(run.context.graph, run.context.parameters)
        mark = partial(mark_begun, self._store, root_run_id, request.run_id, is_hosted=is_hosted)
        # None of the three needs another of them, and all are needed before the first stage.
        needed: list[Callable[[], object]] = [
            mark,
            partial(write_run_plan, self._store, root_run_id, plan),
            partial(look_ahead, run.context, is_hosted=is_hosted),
        ]
        at_once(self._store, needed)
        return run


def _dagster_run(run_id: str) -> str:
    """Dagster's id of a run, whose name in storage may end with that of a query."""
    return run_id.partition(".")[0]


def _left_out(request: StageRequest) -> Sequence[int]:
    """What the stage needs of the stages that the run does not consist of, leaves first."""
    if not request.regroups or not request.stages:
        return ()
    found: set[int] = set()
    left = [i for i in request.stage.inputs if i not in request.stages]
    while left:
        if (stage_id := left.pop()) not in found:
            found.add(stage_id)
            left += request.graph.stages[stage_id].inputs
    return sorted(found)


def _missing(request: StageRequest, context: "Run") -> Iterator[int]:
    """Those of them that have no output for the run, as it comes to them."""
    from stagecoach.infra.runtime.stages.commits import is_committed

    needed = [i for i in request.stage.inputs if i not in request.stages]
    left_out = _left_out(request)
    if not left_out or all(is_committed(context, i) for i in needed):
        return
    yield from (i for i in left_out if not is_committed(context, i))


class _Run:
    """A run's context, and who hears of the progress of which of its stages."""

    context: "Run"

    def __init__(self) -> None:
        self._requests: dict[str, StageRequest] = {}

    @contextmanager
    def told(self, request: StageRequest) -> Iterator[None]:
        """Pass on the progress of this stage while the block runs."""
        from stagecoach.infra.spark.jobs import job_tag

        tag = job_tag(request.run_id, request.stage_id)
        self._requests[tag] = request
        try:
            yield
        finally:
            self._requests.pop(tag, None)

    def on_progress(self, progress: "JobProgress") -> None:
        """Called from a watching thread of the job."""
        if request := self._requests.get(progress.tag):
            request.progress(progress.completed, progress.total)
