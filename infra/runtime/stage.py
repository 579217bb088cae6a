"""Running one stage: in, a stage and the identity of its run; out, a committed manifest.

Any process can do it: all it needs is the graph, the run, the parameters and the storage root.

    snapshot, upstream manifests ─▶ fingerprint ─▶ committed already? ─▶ done
                                                     │ no
                        tasks ─▶ one Spark job ─▶ manifest (the commit) ─▶ pointer of the run

When DuckDB refuses a fragment or raises on its data, Spark runs it over the same inputs. When Spark
raises too, the stage is *deferred*: its consumers are deferred as well, without a job, and the head
stage has Spark run the whole query, so that the user gets Spark's own answer or error.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from infra.catalog.snapshot import Snapshot, SnapshotSource, load_or_take
from infra.engines.errors import QueryError, QueryFailedError
from infra.errors import ShuffleReadError
from infra.runtime.execution import Attempt, Output, run_duckdb, run_query, run_spark
from infra.runtime.fingerprint import digest, stage_fingerprints
from infra.runtime.jobs import ProgressListener
from infra.runtime.parameters import bind_parameters
from infra.runtime.plan_tasks import check_tables
from infra.runtime.pointers import StagePointer, pin, read_pointer, write_pointer
from infra.runtime.schema_check import SchemaCheck, start_schema_check
from infra.runtime.spark_session import get_session
from infra.runtime.task_spec import TaskReport
from infra.settings import EngineSettings
from infra.shuffle.manifest import (
    Manifest,
    ManifestError,
    commit_manifest,
    invalidate_manifest,
    load_manifest,
)
from infra.shuffle.reader import read_table, verify_files
from infra.storage import layout
from infra.storage.object_store import ObjectMissingError, ObjectStore
from planner.errors import StagecoachError
from planner.expressions import Literal
from planner.stages import Stage, StageGraph
from planner.types import Field

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class StageContext:
    """What a stage is run for and with.

    Args:
        graph: The planned query.
        run_id: The run.
        root_run_id: The first of the runs that this one re-executes; itself if it is the first.
        settings: The knobs.
        store: The storage root.
        catalog: Where the run's first process looks the tables up.
        parameters: Values by name; defaults and the run's clock fill in what is missing.
        spark: Gives the Spark session, started when it is first needed.
        progress: Told of completed tasks, from another thread.
        fresh: Whether nothing that other runs have computed may be reused.
    """

    graph: StageGraph
    run_id: str
    root_run_id: str
    settings: EngineSettings
    store: ObjectStore
    catalog: SnapshotSource
    parameters: Mapping[str, Literal] = field(default_factory=dict)
    spark: Callable[[], SparkSession] | None = None
    progress: ProgressListener | None = None
    fresh: bool = False

    @cached_property
    def session(self) -> Callable[[], SparkSession]:
        """What gives the Spark session."""
        return self.spark or (lambda: get_session(self.settings))

    @cached_property
    def values(self) -> Mapping[str, Literal]:
        """A value for every parameter of the graph."""
        return bind_parameters(self.graph, self.parameters, self.store, self.root_run_id)

    @cached_property
    def snapshot(self) -> Snapshot:
        """The files that all stages of the run read."""
        names = {name for name, _ in self.graph.tables}
        for stage in self.graph.stages:
            names.update(stage.tables)
        snapshot = load_or_take(self.store, self.root_run_id, self.catalog, sorted(names))
        check_tables(self.graph, snapshot)
        return snapshot

    @cached_property
    def fingerprints(self) -> tuple[str, ...]:
        """The fingerprint of every stage."""
        return stage_fingerprints(
            self.graph,
            self.snapshot,
            self.values,
            root_run_id=self.root_run_id,
            fresh=self.fresh,
        )


@dataclass(frozen=True, kw_only=True)
class StageResult:
    """How a stage ended.

    Args:
        stage_id: Which stage.
        fingerprint: Identity of its output.
        manifest: Its commit; None where it was deferred.
        reused: Whether it was committed already.
        deferred: Why it left its work to the head stage, or None.
        engine: What ran it (or had run it): `duckdb` or `spark`.
        fallback_reason: Why that is not the engine of the plan, or None.
        columns: The result's columns with Spark's names; empty but for the head stage.
        reports: What its tasks reported; empty where it was reused or deferred.
        seconds: Time that it took.
    """

    stage_id: int
    fingerprint: str
    manifest: Manifest | None = None
    reused: bool = False
    deferred: str | None = None
    engine: str = ""
    fallback_reason: str | None = None
    columns: tuple[Field, ...] = ()
    reports: tuple[TaskReport, ...] = ()
    seconds: float = 0.0


def run_stage(stage_id: int, context: StageContext) -> StageResult:
    """Run a stage, or find that its output is there.

    Args:
        stage_id: Number of the stage; those that it reads have been run.
        context: The run.

    Returns:
        The result, whose manifest is committed and pinned for the run (unless it is deferred).

    Raises:
        QueryFailedError: Spark itself refuses the query (raised by the head stage only).
        ShuffleReadError: An upstream stage's output is lost; says which one to run again.
        InputLostError: A table file of the run's snapshot is gone or has changed.
        StagecoachError: Anything else; `retryable` says whether a retry can help.
    """
    started = time.perf_counter()
    graph = context.graph
    stage = graph.stages[stage_id]
    log.debug("%s/stage_%d of run %s starts", graph.query, stage_id, context.run_id)
    check = start_schema_check(graph, context.values, context.store, context.session)
    inputs = {i: _input_pointer(context, i) for i in stage.inputs}
    if stage is graph.head:
        result = _run_head(context, stage, inputs, check)
    else:
        result = _run_inner(context, stage, inputs)
    result = replace(result, seconds=time.perf_counter() - started)
    log.info(
        "%s/stage_%d of run %s: %s in %.2f s",
        graph.query,
        stage_id,
        context.run_id,
        _outcome_text(result),
        result.seconds,
    )
    return result


def read_result(context: StageContext) -> pa.Table:
    """The result of a run whose head stage has ended, with Spark's names, in its order.

    Raises:
        ManifestError: The head stage has not run, or its output is lost.
        ShuffleReadError: Part of the output is lost.
    """
    graph, store = context.graph, context.store
    name = _stage_name(context, graph.head)
    pointer = read_pointer(store, context.root_run_id, graph.head.stage_id)
    if pointer is None:
        uri = store.uri(layout.run_prefix(context.root_run_id))
        raise ManifestError(name, uri, "the run has no result yet")
    manifest = _pinned(context, graph.head.stage_id, pointer)
    return read_table(store, manifest).rename_columns([field.name for field in pointer.fields])


def _run_inner(
    context: StageContext, stage: Stage, inputs: Mapping[int, StagePointer]
) -> StageResult:
    fingerprint = context.fingerprints[stage.stage_id]
    if reason := _deferred_input(inputs):
        return _defer(context, stage, fingerprint, reason)
    if (found := _usable_manifest(context, stage, fingerprint)) is not None:
        return _finish(context, stage, found, reused=True)
    try:
        output = _run_fragment(context, stage, inputs, fingerprint)
    except QueryFailedError as error:
        first_line = str(error).splitlines()[0]
        reason = f"stage_{stage.stage_id} fails by itself, on Spark too: {first_line}"
        return _defer(context, stage, fingerprint, reason)
    return _commit(context, stage, fingerprint, output)


def _run_head(
    context: StageContext,
    stage: Stage,
    inputs: Mapping[int, StagePointer],
    check: Future[SchemaCheck],
) -> StageResult:
    fingerprint = context.fingerprints[stage.stage_id]
    if reason := _deferred_input(inputs):
        return _run_whole_query(context, stage, check.result(), reason)
    # The check runs beside the stage; if it has ended with bad news, the stage need not start.
    if check.done() and (mismatch := check.result().mismatch):
        return _run_whole_query(context, stage, check.result(), mismatch)
    found = _usable_manifest(context, stage, fingerprint)
    if found is None and stage.sql is not None:
        output = run_query(_attempt(context, stage, {}, fingerprint), check.result().fields)
        return _commit(context, stage, fingerprint, output, check.result())
    if found is None:
        try:
            output = _run_fragment(context, stage, inputs, fingerprint)
        except QueryFailedError as error:
            first_line = str(error).splitlines()[0]
            return _run_whole_query(context, stage, check.result(), first_line)
        if (mismatch := check.result().mismatch) is None:
            return _commit(context, stage, fingerprint, output, check.result())
        return _run_whole_query(context, stage, check.result(), mismatch)
    if mismatch := check.result().mismatch:
        return _run_whole_query(context, stage, check.result(), mismatch)
    return _finish(context, stage, found, reused=True, check=check.result())


def _run_whole_query(
    context: StageContext, stage: Stage, check: SchemaCheck, reason: str
) -> StageResult:
    """Have Spark run the query's text; only this run (and its re-executions) may reuse it."""
    log.warning("query '%s': Spark runs the whole query: %s", context.graph.query, reason)
    expected = context.fingerprints[stage.stage_id]
    fingerprint = digest([expected, "whole query", context.root_run_id])
    found = _usable_manifest(context, stage, fingerprint)
    if found is not None:
        return _finish(context, stage, found, reused=True, check=check, reason=reason)
    output = run_query(_attempt(context, stage, {}, fingerprint), check.fields)
    output = replace(output, fallback_reason=reason)
    return _commit(context, stage, fingerprint, output, check)


def _run_fragment(
    context: StageContext, stage: Stage, inputs: Mapping[int, StagePointer], fingerprint: str
) -> Output:
    """Run the fragment on its engine, else on Spark.

    Raises:
        QueryFailedError: Spark raises too.
    """
    manifests = {i: _pinned(context, i, pointer) for i, pointer in inputs.items()}
    attempt = _attempt(context, stage, manifests, fingerprint)
    reason: str | None = None
    try:
        if stage.engine == "duckdb" and (reason := _native_reason(context, stage)) is None:
            try:
                return run_duckdb(attempt)
            except QueryError as error:
                reason = str(error).splitlines()[0]
        if reason is not None:
            name = _stage_name(context, stage)
            log.warning("%s: DuckDB cannot run it, Spark does: %s", name, reason)
        return replace(run_spark(attempt), fallback_reason=reason)
    except ShuffleReadError:
        _forget_lost_inputs(context, manifests)
        raise


def _native_reason(context: StageContext, stage: Stage) -> str | None:
    """Why DuckDB must not read the files as they are now, or None where it may."""
    reasons = (context.snapshot.table(name).native_reason for name in stage.tables)
    return next((reason for reason in reasons if reason is not None), None)


def _attempt(
    context: StageContext, stage: Stage, manifests: Mapping[int, Manifest], fingerprint: str
) -> Attempt:
    return Attempt(
        graph=context.graph,
        stage=stage,
        run_id=context.run_id,
        fingerprint=fingerprint,
        snapshot=context.snapshot,
        manifests=manifests,
        parameters=context.values,
        settings=context.settings,
        store=context.store,
        spark=context.session,
        progress=context.progress,
    )


def _deferred_input(inputs: Mapping[int, StagePointer]) -> str | None:
    return next((p.deferred for p in inputs.values() if p.deferred is not None), None)


def _defer(context: StageContext, stage: Stage, fingerprint: str, reason: str) -> StageResult:
    log.warning("%s is deferred: %s", _stage_name(context, stage), reason)
    pointer = StagePointer(expected=fingerprint, fingerprint=fingerprint, deferred=reason)
    write_pointer(context.store, context.root_run_id, stage.stage_id, pointer)
    return StageResult(stage_id=stage.stage_id, fingerprint=fingerprint, deferred=reason)


def _commit(
    context: StageContext,
    stage: Stage,
    fingerprint: str,
    output: Output,
    check: SchemaCheck | None = None,
) -> StageResult:
    manifest = commit_manifest(
        context.store,
        fingerprint,
        output.files,
        plan_hash=stage.plan_hash,
        query=context.graph.query,
        stage_id=stage.stage_id,
        engine=output.engine,
        schema=output.schema,
        partitioning=output.partitioning,
        codec=context.settings.codec,
        created_at=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        metrics=output.metrics(),
    )
    result = _finish(
        context, stage, manifest, reused=False, check=check, reason=output.fallback_reason
    )
    return replace(result, reports=output.reports)


def _finish(
    context: StageContext,
    stage: Stage,
    manifest: Manifest,
    *,
    reused: bool,
    check: SchemaCheck | None = None,
    reason: str | None = None,
) -> StageResult:
    """Pin the manifest for the run."""
    reason = reason or manifest.metrics.get("fallback_reason")
    pointer = StagePointer(
        expected=context.fingerprints[stage.stage_id],
        fingerprint=manifest.fingerprint,
        manifest_hash=manifest.manifest_hash,
        columns=() if check is None else check.columns,
        engine=manifest.engine,
        fallback_reason=reason,
    )
    write_pointer(context.store, context.root_run_id, stage.stage_id, pointer)
    return StageResult(
        stage_id=stage.stage_id,
        fingerprint=manifest.fingerprint,
        manifest=manifest,
        reused=reused,
        engine=manifest.engine,
        fallback_reason=reason,
        columns=pointer.fields,
    )


def _input_pointer(context: StageContext, stage_id: int) -> StagePointer:
    """How an upstream stage ended in this run, or (if it was not run) in an earlier one."""
    expected = context.fingerprints[stage_id]
    found = read_pointer(context.store, context.root_run_id, stage_id)
    if found is not None and found.expected == expected:
        return found
    name = f"{context.graph.query}/stage_{stage_id}"
    manifest = load_manifest(context.store, expected, stage=name)
    if manifest is None:
        uri = context.store.uri(layout.manifest(expected))
        raise ManifestError(name, uri, "not found")
    pointer = StagePointer(
        expected=expected,
        fingerprint=expected,
        manifest_hash=manifest.manifest_hash,
        engine=manifest.engine,
    )
    return pin(context.store, context.root_run_id, stage_id, pointer)


def _pinned(context: StageContext, stage_id: int, pointer: StagePointer) -> Manifest:
    name = f"{context.graph.query}/stage_{stage_id}"
    manifest = load_manifest(context.store, pointer.fingerprint, stage=name)
    uri = context.store.uri(layout.manifest(pointer.fingerprint))
    if manifest is None:
        raise ManifestError(name, uri, "not found")
    if manifest.manifest_hash != pointer.manifest_hash:
        raise ManifestError(name, uri, "replaced by another commit since this run read it")
    return manifest


def _usable_manifest(context: StageContext, stage: Stage, fingerprint: str) -> Manifest | None:
    """The committed manifest if its files are there with their sizes; a broken one is undone."""
    store, name = context.store, _stage_name(context, stage)
    manifest: Manifest | None = None
    try:
        manifest = load_manifest(store, fingerprint, stage=name)
        if manifest is None:
            return None
        for file in manifest.files:
            key = layout.shuffle_file(fingerprint, file.name)
            if (size := store.size(key)) != file.num_bytes:
                problem = f"{size} bytes, expected {file.num_bytes}"
                raise ShuffleReadError(name, file.task_index, None, store.uri(key), problem)
    except (ShuffleReadError, ObjectMissingError) as error:
        log.warning("%s was committed but is lost, so it runs again: %s", name, error)
        invalidate_manifest(store, fingerprint, manifest.manifest_hash if manifest else "")
        return None
    return manifest


def _forget_lost_inputs(context: StageContext, manifests: Mapping[int, Manifest]) -> None:
    """Undo the commits of upstream stages whose files are damaged: run again, they recompute."""
    for manifest in manifests.values():
        try:
            verify_files(context.store, manifest)
        except ShuffleReadError:
            invalidate_manifest(context.store, manifest.fingerprint, manifest.manifest_hash)
        except StagecoachError as error:
            log.warning("cannot check %s: %s", manifest.stage_name, error)


def _stage_name(context: StageContext, stage: Stage) -> str:
    return f"{context.graph.query}/stage_{stage.stage_id}"


def _outcome_text(result: StageResult) -> str:
    if result.deferred is not None:
        return "deferred"
    rows = 0 if result.manifest is None else result.manifest.num_rows
    how = "reused" if result.reused else f"{len(result.reports)} tasks on {result.engine}"
    return f"{rows} rows, {how}"
