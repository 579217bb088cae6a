"""Runs one stage of a run and commits its output.

Any process can do it: all it needs is the graph, the run, the parameters and the storage root.

    snapshot, upstream manifests ─▶ fingerprint ─▶ committed already? ─▶ done
                                                     │ no: claim it, or wait
                        tasks ─▶ one Spark job ─▶ manifest (the commit) ─▶ pointer of the run

When DuckDB refuses a fragment or raises on its data, Spark runs it over the same inputs. When Spark
raises too, the stage is *deferred*: its consumers are deferred as well, without a job, and the head
stage has Spark run the whole query, so that the user gets Spark's own answer or error.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from stagecoach.infra.engines.spark.errors import SPARK_ERRORS, explain_error
from stagecoach.infra.errors import QueryError, QueryFailedError, ShuffleReadError
from stagecoach.infra.integrity.errors import DamagedFileError
from stagecoach.infra.runtime.planning.fingerprint import digest
from stagecoach.infra.runtime.records.pointers import StagePointer, read_pointer, write_pointer
from stagecoach.infra.runtime.stages.ancestry import check_ancestry, merged_ancestry
from stagecoach.infra.runtime.stages.attempt import (
    Attempt,
    Output,
    run_in_tasks,
    run_query,
    run_spark,
)
from stagecoach.infra.runtime.stages.claims import sole_computation
from stagecoach.infra.runtime.stages.commits import (
    forget_if_damaged,
    input_pointer,
    pinned_manifest,
    usable_manifest,
)
from stagecoach.infra.runtime.stages.damaged_inputs import located
from stagecoach.infra.runtime.stages.recovery import is_recovering, recovering
from stagecoach.infra.runtime.stages.reuse import (
    pin_result,
    pinned_result,
    result_pointer,
    reusable,
)
from stagecoach.infra.runtime.stages.run import Run as Run
from stagecoach.infra.runtime.stages.run import StageResult as StageResult
from stagecoach.infra.runtime.stages.schema_check import SchemaCheck, start_schema_check
from stagecoach.infra.runtime.stages.taken_over import note_commit
from stagecoach.infra.runtime.stages.todays_times import earlier_day
from stagecoach.infra.shuffle.commit import commit_manifest
from stagecoach.infra.shuffle.manifest import Manifest, ManifestError
from stagecoach.infra.shuffle.reader import read_table
from stagecoach.infra.spark.lost import lost_spark
from stagecoach.infra.storage import layout
from stagecoach.planner.engines.registry import SPARK, planner_engine
from stagecoach.planner.errors import StagecoachError
from stagecoach.planner.plan.stages import Stage

if TYPE_CHECKING:
    import pyarrow as pa

log = logging.getLogger(__name__)


def run_stage(stage_id: int, run: Run) -> StageResult:
    """Run a stage, or find that its output is there.

    Args:
        stage_id: Number of the stage; those that it reads have been run.
        run: The run.

    Returns:
        The result, whose manifest is committed and pinned for the run (unless it is deferred).

    Raises:
        QueryFailedError: Spark itself refuses the query (raised by the head stage only).
        ShuffleReadError: An upstream stage's output is lost, and the run does not recover (or not
            any more): says which one to run again.
        DamagedFileError: A table file is damaged.
        InputLostError: A table file of the run's snapshot is gone or has changed.
        StagecoachError: Anything else; `retryable` says whether a retry can help.
    """
    started = time.perf_counter()
    graph = run.graph
    stage = graph.stages[stage_id]
    log.debug("%s/stage_%d of run %s starts", graph.query, stage_id, run.run_id)
    check = start_schema_check(run)

    def attempt() -> StageResult:
        inputs = {i: input_pointer(run, i) for i in stage.inputs}
        check_ancestry(run, inputs, thorough=is_recovering())
        if stage is graph.head:
            return _HeadStage(run=run, stage=stage, inputs=inputs, check=check).result()
        return _run_inner(run, stage, inputs)

    try:
        result = recovering(run, stage, attempt, lambda i: run_stage(i, run))
    except DamagedFileError as error:
        raise located(error, run.snapshot, run.store) from error
    except StagecoachError:
        raise
    except Exception as error:
        if (lost := lost_spark(error, run.settings)) is not None:
            raise lost from error
        if isinstance(error, SPARK_ERRORS):  # between two jobs
            raise explain_error(error, graph.query, run.stage_name(stage_id)) from error
        raise
    result = replace(result, seconds=time.perf_counter() - started)
    log.info(
        "%s/stage_%d of run %s: %s in %.2f s",
        graph.query,
        stage_id,
        run.run_id,
        _outcome_text(result),
        result.seconds,
    )
    return result


def read_result(run: Run) -> pa.Table:
    """The result of a run whose head stage has ended, with Spark's names, in its order.

    A result that is lost is made again where the run recovers what is lost.

    Raises:
        ManifestError: The head stage has not run, or its output is lost.
        ShuffleReadError: Part of the output is lost; the next run makes it again.
    """
    head = run.graph.head.stage_id
    try:
        return _read_result(run)
    except ShuffleReadError as error:
        pointer = read_pointer(run.store, run.root_run_id, head)
        if pointer is None:
            raise
        with suppress(ManifestError):  # where it is the manifest that is lost, no mark is needed
            forget_if_damaged(run.store, pinned_manifest(run, head, pointer))
        if not run.recovers:
            raise
        log.warning("%s is made again: %s", run.stage_name(head), error)
    run_stage(head, run)
    return _read_result(run)


def _read_result(run: Run) -> pa.Table:
    graph, store = run.graph, run.store
    name = run.stage_name(graph.head.stage_id)
    pointer = read_pointer(store, run.root_run_id, graph.head.stage_id)
    if pointer is None:
        uri = store.uri(layout.run_prefix(run.root_run_id))
        raise ManifestError(name, uri, "the run has no result yet")
    manifest = pinned_manifest(run, graph.head.stage_id, pointer)
    return read_table(store, manifest).rename_columns([field.name for field in pointer.fields])


def _run_inner(run: Run, stage: Stage, inputs: Mapping[int, StagePointer]) -> StageResult:
    fingerprint = run.fingerprints[stage.stage_id]
    if reason := _deferred_input(inputs):
        return _defer(run, stage, fingerprint, reason)
    look = partial(reusable, run, stage, fingerprint, inputs)
    with sole_computation(run, stage, fingerprint, look, among_steps=is_recovering()) as found:
        if found is not None:
            return _finish(run, stage, found, reused=True)
        try:
            output = _run_fragment(run, stage, inputs, fingerprint)
        except QueryFailedError as error:
            first_line = str(error).splitlines()[0]
            reason = f"stage_{stage.stage_id} fails by itself, on Spark too: {first_line}"
            return _defer(run, stage, fingerprint, reason)
        return _commit(run, stage, fingerprint, output, inputs=inputs)


@dataclass(frozen=True, kw_only=True)
class _HeadStage:
    """The head stage: it makes the result, or Spark does from the query's text.

    Args:
        run: The run.
        stage: The stage.
        inputs: What the stages that it reads have come to.
        check: Whether Spark gives the query the columns that are planned; it runs meanwhile.
    """

    run: Run
    stage: Stage
    inputs: Mapping[int, StagePointer]
    check: Future[SchemaCheck]

    @property
    def _fingerprint(self) -> str:
        return self.run.fingerprints[self.stage.stage_id]

    def result(self) -> StageResult:
        if reason := _deferred_input(self.inputs):
            return self._run_whole_query(reason)
        # If the check has ended with bad news, the stage need not start.
        if self.check.done() and (mismatch := self.check.result().mismatch):
            return self._run_whole_query(mismatch)
        look = partial(reusable, self.run, self.stage, self._fingerprint, self.inputs)
        with sole_computation(self.run, self.stage, self._fingerprint, look) as found:
            if found is None:
                return self._compute()
        if mismatch := self.check.result().mismatch:
            return self._run_whole_query(mismatch)
        return _finish(self.run, self.stage, found, reused=True, check=self.check.result())

    def _compute(self) -> StageResult:
        run, stage, fingerprint = self.run, self.stage, self._fingerprint
        if stage.sql is not None:
            fields = self.check.result().fields
            output = run_query(Attempt(run=run, stage=stage, fingerprint=fingerprint), fields)
            return _commit(run, stage, fingerprint, output, self.check.result())
        try:
            output = _run_fragment(run, stage, self.inputs, fingerprint)
        except QueryFailedError as error:
            return self._run_whole_query(str(error).splitlines()[0])
        if (mismatch := self.check.result().mismatch) is None:
            check = self.check.result()
            return _commit(run, stage, fingerprint, output, check, inputs=self.inputs)
        return self._run_whole_query(mismatch)

    def _run_whole_query(self, reason: str) -> StageResult:
        """Have Spark run the query's text; only this run (and its re-executions) may reuse it."""
        run, stage, check = self.run, self.stage, self.check.result()
        log.warning("query '%s': Spark runs the whole query: %s", run.graph.query, reason)
        fingerprint = digest([self._fingerprint, "whole query", run.root_run_id])
        found = usable_manifest(run, stage, fingerprint)
        if found is not None:
            return _finish(run, stage, found, reused=True, check=check, reason=reason)
        output = run_query(Attempt(run=run, stage=stage, fingerprint=fingerprint), check.fields)
        output = replace(output, fallback_reason=reason)
        return _commit(run, stage, fingerprint, output, check)


def _run_fragment(
    run: Run, stage: Stage, inputs: Mapping[int, StagePointer], fingerprint: str
) -> Output:
    """Run the fragment on its engine, else on Spark.

    Raises:
        QueryFailedError: Spark raises too.
    """
    manifests = {i: pinned_manifest(run, i, pointer) for i, pointer in inputs.items()}
    attempt = Attempt(run=run, stage=stage, fingerprint=fingerprint, manifests=manifests)
    reason: str | None = None
    if stage.engine != SPARK and (reason := _native_reason(run, stage)) is None:
        try:
            return run_in_tasks(attempt)
        except QueryError as error:
            reason = str(error).splitlines()[0]
    if reason is not None:
        name = run.stage_name(stage.stage_id)
        label = planner_engine(stage.engine).label
        log.warning("%s: %s cannot run it, Spark does: %s", name, label, reason)
    return replace(run_spark(attempt), fallback_reason=reason)


def _native_reason(run: Run, stage: Stage) -> str | None:
    """Why DuckDB must not read the files as they are now, or None where it may."""
    reasons = (run.snapshot.table(name).native_reason for name in stage.tables)
    return next((reason for reason in reasons if reason is not None), None)


def _deferred_input(inputs: Mapping[int, StagePointer]) -> str | None:
    return next((p.deferred for p in inputs.values() if p.deferred is not None), None)


def _defer(run: Run, stage: Stage, fingerprint: str, reason: str) -> StageResult:
    log.warning("%s is deferred: %s", run.stage_name(stage.stage_id), reason)
    pointer = StagePointer(
        expected=fingerprint,
        fingerprint=fingerprint,
        deferred=reason,
        plan=run.graph.plan_hash,
    )
    write_pointer(run.store, run.root_run_id, stage.stage_id, pointer)
    run.own.note_pointer(stage.stage_id, pointer)
    return StageResult(stage_id=stage.stage_id, fingerprint=fingerprint, deferred=reason)


def _commit(
    run: Run,
    stage: Stage,
    fingerprint: str,
    output: Output,
    check: SchemaCheck | None = None,
    inputs: Mapping[int, StagePointer] | None = None,
) -> StageResult:
    pinned: list[StagePointer] = []

    def pin_ours(manifest: Manifest, index: bytes) -> None:
        run.own.note_index(manifest.index_key, index)
        pointer = result_pointer(run, stage, manifest, check, output.fallback_reason)
        pin_result(run, stage, manifest, pointer)
        pinned.append(pointer)

    manifest = commit_manifest(
        run.store,
        fingerprint,
        output.files,
        plan_hash=stage.plan_hash,
        query=run.graph.query,
        stage_id=stage.stage_id,
        engine=output.engine,
        schema=output.schema,
        partitioning=output.partitioning,
        codec=run.settings.codec,
        created_at=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        metrics=output.metrics(),
        ancestry=earlier_day(merged_ancestry(inputs or {}), output.day),
        meanwhile=pin_ours,
    )
    if output.taken_over is not None:
        note_commit(run, output.taken_over, manifest)
    result = _finish(
        run,
        stage,
        manifest,
        reused=False,
        check=check,
        reason=output.fallback_reason,
        pinned=pinned[0],
    )
    return replace(result, reports=output.reports)


def _finish(
    run: Run,
    stage: Stage,
    manifest: Manifest,
    *,
    reused: bool,
    check: SchemaCheck | None = None,
    reason: str | None = None,
    pinned: StagePointer | None = None,
) -> StageResult:
    """Pin the manifest for the run, unless it is."""
    result = pinned_result(
        run, stage, manifest, reused=reused, check=check, reason=reason, pinned=pinned
    )
    if result is None:
        log.warning("%s was removed just now and runs again", run.stage_name(stage.stage_id))
        return run_stage(stage.stage_id, run)
    return result


def _outcome_text(result: StageResult) -> str:
    if result.deferred is not None:
        return "deferred"
    rows = 0 if result.manifest is None else result.manifest.num_rows
    how = "reused" if result.reused else f"{len(result.reports)} tasks on {result.engine}"
    if not result.reused and result.manifest is not None:
        taken = result.manifest.metrics.get("incremental", {}).get("taken_over", 0)
        how += f", {taken} taken over" if taken else ""
    return f"{rows} rows, {how}"
