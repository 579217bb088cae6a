"""One attempt at a stage's work: in, bound inputs; out, map files that nobody has committed yet.

run_duckdb   one DuckDB task per Spark task
run_spark    the same fragment as Spark SQL over views of the same inputs
run_query    the text of the whole query as Spark SQL over views of its tables
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from infra.catalog.snapshot import Snapshot
from infra.engines.chunk_inputs import ChunkInput
from infra.engines.chunks import chunk_file
from infra.engines.errors import InputLostError, QueryError, QueryFailedError, StageCanceledError
from infra.engines.input_files import check_file
from infra.engines.parquet import check_local_files
from infra.engines.spark import check_inputs, run_sql, run_tasks
from infra.errors import TaskFailedError
from infra.runtime.adaptive.decision import Decision
from infra.runtime.adaptive.passing import trial_decision
from infra.runtime.bloom_steps import bloom_step, not_applied
from infra.runtime.choices import adaptive_choices, input_choices, task_choices
from infra.runtime.fixed_times import with_fixed_times
from infra.runtime.jobs import ProgressListener, job_tag, tagged_job, was_canceled
from infra.runtime.leaf_inputs import whole_tables
from infra.runtime.plan_tasks import (
    build_specs,
    output_partitioning,
    task_settings,
    whole_leaves,
)
from infra.runtime.stage_log import write_stage_log
from infra.runtime.task import output_schema
from infra.runtime.task_inputs import scan_input
from infra.runtime.task_spec import InputSpec, ScanInput, TaskReport, TaskSettings, TaskSpec
from infra.settings import EngineSettings
from infra.shuffle.manifest import Manifest
from infra.shuffle.map_file import MapFile, OutputPartitioning
from infra.shuffle.reader import verify_files
from infra.spark.session import isolated_session, task_slots
from infra.storage.object_store import ObjectStore, StorageOptions
from planner.errors import SqlError
from planner.expressions import Literal
from planner.parse import spark_text
from planner.physical import ScanExec, StageInputExec
from planner.row_states import passed_through
from planner.sql.fragment import marker_values, render_fragment
from planner.stages import Stage, StageGraph
from planner.syntax.text import SparkText
from planner.types import DataType, Field

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

log = logging.getLogger(__name__)

_FILE_CHECKS = 16
_DRIVER_BYTES = 64 << 20
"""Files up to this size are checked in the driver."""


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """A stage with everything that it needs to run.

    Args:
        graph: The query.
        stage: Its stage.
        run_id: The run, for the job's name.
        fingerprint: Where the output goes.
        snapshot: Files of the tables.
        manifests: Upstream manifests by stage number.
        parameters: A value for every parameter.
        settings: The knobs.
        store: The storage root.
        spark: Gives the Spark session.
        progress: Told of completed tasks.
        started: When it began, by `time.perf_counter`.
    """

    graph: StageGraph
    stage: Stage
    run_id: str
    fingerprint: str
    snapshot: Snapshot
    manifests: Mapping[int, Manifest]
    parameters: Mapping[str, Literal]
    settings: EngineSettings
    store: ObjectStore
    spark: Callable[[], SparkSession]
    progress: ProgressListener | None = None
    started: float = field(default_factory=time.perf_counter)

    @property
    def stage_name(self) -> str:
        """Name of the stage as messages show it."""
        return f"{self.graph.query}/stage_{self.stage.stage_id}"


@dataclass(frozen=True, kw_only=True)
class Output:
    """Finished map files of all tasks.

    Args:
        engine: What computed them.
        schema: Their columns.
        partitioning: How rows are divided in each.
        reports: What the tasks did, in task order.
        fallback_reason: Why the engine is not the plan's, or None.
        seconds: From the start of the attempt until all tasks were done.
        choices: What was chosen for it; see `infra.runtime.choices`.
    """

    engine: str
    schema: pa.Schema
    partitioning: OutputPartitioning
    reports: tuple[TaskReport, ...]
    fallback_reason: str | None = None
    seconds: float = 0.0
    choices: Mapping[str, Any] = field(default_factory=dict)

    @property
    def files(self) -> tuple[MapFile, ...]:
        """The map files, in task order."""
        return tuple(r.file for r in self.reports if r.file is not None)

    def metrics(self) -> dict[str, Any]:
        """What the manifest keeps of the reports, as plain data."""
        names = (
            "rows_in",
            "bytes_in",
            "engine_seconds",
            "read_seconds",
            "write_seconds",
            "total_seconds",
            "started_at",
            "peak_memory_bytes",
            "host",
            "pid",
        )
        tasks = [
            {name: getattr(r, name) for name in names}
            | ({} if r.trial is None else {"trial": vars(r.trial)})
            for r in self.reports
        ]
        return {
            "fallback_reason": self.fallback_reason,
            "seconds": round(self.seconds, 3),
            **self.choices,
            "tasks": tasks,
        }


def run_duckdb(attempt: Attempt) -> Output:
    """Run the fragment in DuckDB, one Spark task for each task.

    Raises:
        QueryError: DuckDB refuses the fragment or raises on its data; Spark may not.
        StagecoachError: Anything else that failed.
    """
    stage, settings = attempt.stage, attempt.settings
    try:
        rendered = with_fixed_times(stage, attempt.graph.time_zone)
        sql = render_fragment(rendered, "duckdb", attempt.parameters)
        rows = passed_through(rendered)
        row_sql = None if rows is None else render_fragment(rows, "duckdb", attempt.parameters)
    except SqlError as error:
        raise QueryError(str(error)) from error
    slots = task_slots(settings)
    planned = build_specs(
        attempt.graph,
        stage,
        sql=sql,
        fingerprint=attempt.fingerprint,
        snapshot=attempt.snapshot,
        manifests=attempt.manifests,
        parameters=attempt.parameters,
        settings=_task_settings(attempt),
        engine_settings=settings,
        parallelism=slots,
        row_sql=row_sql,
    )
    specs = planned.specs
    _log_decisions(attempt, planned.decisions)
    spark = attempt.spark()
    with _job(attempt, spark):
        reports = run_tasks(spark, specs)
    _raise_failure(attempt, reports)
    decisions = planned.decisions
    if (tried := trial_decision(reports)) is not None:
        _log_decisions(attempt, [tried])
        decisions += (tried,)
    return Output(
        engine="duckdb",
        schema=output_schema(specs[0].types),
        partitioning=specs[0].output,
        reports=tuple(reports),
        seconds=time.perf_counter() - attempt.started,
        choices={
            "inputs": input_choices(
                attempt.snapshot,
                (
                    (_table_of(leaf), [spec.inputs[position] for spec in specs])
                    for position, leaf in enumerate(stage.leaves)
                ),
            ),
            **task_choices(settings, slots),
            **adaptive_choices(decisions),
        },
    )


def run_spark(attempt: Attempt) -> Output:
    """Run the fragment in Spark SQL.

    Raises:
        QueryFailedError: Spark refuses it or raises on its data.
        StagecoachError: Anything else that failed.
    """
    stage = attempt.stage
    try:
        sql = render_fragment(stage, "spark", attempt.parameters)
    except SqlError as error:
        raise QueryFailedError(attempt.graph.query, type(error).__name__, str(error)) from error
    leaves, decisions = whole_leaves(
        attempt.graph,
        stage,
        attempt.snapshot,
        attempt.manifests,
        attempt.parameters,
        settings=attempt.settings,
        store=attempt.store,
    )
    decisions = (*decisions, *not_applied(stage))
    _log_decisions(attempt, decisions)
    views = {f"in_{position}": leaf for position, leaf in enumerate(leaves)}
    types = tuple(f.dtype for f in stage.schema)
    tables = {f"in_{position}": _table_of(leaf) for position, leaf in enumerate(stage.leaves)}
    values = marker_values(attempt.parameters)
    output = _run_sql(attempt, SparkText(sql), views, types, values, tables)
    return replace(output, choices={**output.choices, **adaptive_choices(decisions)})


def run_query(attempt: Attempt, columns: Sequence[Field]) -> Output:
    """Run the text of the whole query in Spark SQL.

    Args:
        attempt: Of the head stage.
        columns: The result's columns as Spark analyses them.

    Raises:
        QueryFailedError: Spark refuses it or raises on its data.
        StagecoachError: Anything else that failed.
    """
    views = whole_tables(attempt.graph, attempt.snapshot)
    types = tuple(field.dtype for field in columns)
    tables = {name: name for name in views}
    text = spark_text(attempt.graph.sql)
    return _run_sql(attempt, text, views, types, attempt.parameters, tables)


def _run_sql(
    attempt: Attempt,
    text: SparkText,
    views: Mapping[str, InputSpec],
    types: tuple[DataType, ...],
    parameters: Mapping[str, Literal],
    tables: Mapping[str, str],
) -> Output:
    step = bloom_step(attempt.stage)
    spec = TaskSpec(
        query=attempt.graph.query,
        stage_id=attempt.stage.stage_id,
        fingerprint=attempt.fingerprint,
        task_index=0,
        sql=text.text,
        inputs=(),
        types=types,
        output=output_partitioning(attempt.stage),
        settings=_task_settings(attempt),
        bloom=None if step is None or step.kind == "probe" else step,
    )
    try:
        with (
            isolated_session(attempt.spark(), attempt.graph.time_zone) as session,
            _job(attempt, session),
        ):
            _check_scans(session, spec, views)
            try:
                reports = run_sql(session, spec, text, views=views, parameters=parameters)
            except TaskFailedError:
                # Spark passes on the text of an error in a reading task, not its class.
                if not was_canceled(job_tag(attempt.run_id, attempt.stage.stage_id)):
                    _raise_lost_input(attempt, views)
                    check_inputs(session, spec, list(views.values()))
                raise
        _raise_failure(attempt, reports)
        # Spark reads whatever is there by that name; afterwards, so that it was the same till then.
        _check_files(attempt, views)
    except InputLostError as error:
        raise _with_table(attempt, error) from error
    except QueryError as error:
        raise QueryFailedError(attempt.graph.query, type(error).__name__, str(error)) from error
    return Output(
        engine="spark",
        schema=output_schema(types),
        partitioning=spec.output,
        reports=tuple(_renumbered(reports)),
        seconds=time.perf_counter() - attempt.started,
        choices={
            "inputs": input_choices(
                attempt.snapshot,
                ((tables.get(name, ""), [view]) for name, view in views.items()),
            )
        },
    )


def _log_decisions(attempt: Attempt, decisions: Sequence[Decision]) -> None:
    for decision in decisions:
        log.info("%s: %s: %s", attempt.stage_name, decision.kind, decision.text)


def _table_of(leaf: ScanExec | StageInputExec) -> str:
    """The table of a scan; empty for the output of a stage."""
    return leaf.table if isinstance(leaf, ScanExec) else ""


@contextmanager
def _job(attempt: Attempt, spark: SparkSession) -> Iterator[None]:
    tag = job_tag(attempt.run_id, attempt.stage.stage_id)
    description = f"{attempt.stage_name}: {attempt.stage.title}"
    interval = attempt.settings.progress_seconds
    try:
        with tagged_job(spark, tag, description, attempt.progress, interval):
            yield
    except TaskFailedError as error:
        if was_canceled(tag):
            raise StageCanceledError(f"{attempt.stage_name} was canceled") from error
        write_stage_log(attempt.store, attempt.run_id, attempt.stage.stage_id, error)
        raise


def _raise_failure(attempt: Attempt, reports: Sequence[TaskReport]) -> None:
    """Raise the failure of a task, one that no other engine can mend before one that it may."""
    failed = [r for r in reports if r.failure is not None]
    for report in sorted(failed, key=lambda r: r.failure is not None and r.failure.kind == "query"):
        if report.failure is not None:
            error = report.failure.to_error(attempt.stage_name, report.task_index)
            if isinstance(error, InputLostError):
                error = _with_table(attempt, error)
            write_stage_log(attempt.store, attempt.run_id, attempt.stage.stage_id, error, reports)
            raise error


def _check_scans(spark: SparkSession, spec: TaskSpec, views: Mapping[str, InputSpec]) -> None:
    """Check local files that have checksums before Spark reads them by itself."""
    scans = [
        replace(view, files=files)
        for view in views.values()
        if isinstance(view, ScanInput)
        and (files := tuple(f for f in view.files if f.checksums and f.local_path is not None))
    ]
    if sum(file.num_bytes for scan in scans for file in scan.files) > _DRIVER_BYTES:
        check_inputs(spark, spec, scans)
        return
    for scan in scans:  # a job of Spark's would take longer
        check_local_files(scan_input(scan, spec.settings))


def _raise_lost_input(attempt: Attempt, views: Mapping[str, InputSpec]) -> None:
    for manifest in attempt.manifests.values():
        verify_files(attempt.store, manifest)
    _check_files(attempt, views)


def _check_files(attempt: Attempt, views: Mapping[str, InputSpec]) -> None:
    """Raise `InputLostError` if a table file is not the one of the snapshot any more."""
    options = StorageOptions.from_dict(attempt.store.to_dict().get("options", {}))
    files = [file for view in views.values() if isinstance(view, ScanInput) for file in view.files]
    chunks = (v for v in views.values() if isinstance(v, ChunkInput))
    files += dict.fromkeys(chunk_file(file) for view in chunks for file in view.files)
    try:
        with ThreadPoolExecutor(_FILE_CHECKS) as threads:
            for _ in threads.map(lambda file: check_file(file, options), files):
                pass
    except InputLostError as error:
        raise _with_table(attempt, error) from error


def _with_table(attempt: Attempt, error: InputLostError) -> InputLostError:
    """The error with the name of the table whose file it is about."""
    for table in attempt.snapshot.tables.values():
        if any(file.uri == error.uri for file in table.files):
            return error.of_table(table.table)
    return error


def _renumbered(reports: Sequence[TaskReport]) -> Iterator[TaskReport]:
    """Reports with tasks numbered without gaps: Spark may run nothing for an empty partition."""
    for index, report in enumerate(reports):
        file = None if report.file is None else replace(report.file, task_index=index)
        yield replace(report, task_index=index, file=file)


def _task_settings(attempt: Attempt) -> TaskSettings:
    return task_settings(attempt.settings, attempt.store, attempt.snapshot, attempt.graph.time_zone)
