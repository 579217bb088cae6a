"""One attempt at a stage's work: it leaves map files that nobody has committed yet.

run_in_tasks   the fragment in a task engine, one Spark task for each task of the stage
run_spark      the same fragment as Spark SQL over views of the same inputs
run_query      the text of the whole query as Spark SQL over views of its tables
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from stagecoach.infra.errors import (
    InputLostError,
    QueryError,
    QueryFailedError,
    StageCanceledError,
    TaskFailedError,
)
from stagecoach.infra.functions.function_set import FunctionSet
from stagecoach.infra.pruning.fixed_times import with_fixed_times
from stagecoach.infra.reading.format_input import FormatInput
from stagecoach.infra.reading.input_files import check_file
from stagecoach.infra.reading.inputs import ScanInput
from stagecoach.infra.reading.parquet import check_local_files
from stagecoach.infra.runtime.adaptive.decision import Decision
from stagecoach.infra.runtime.adaptive.passing import trial_decision
from stagecoach.infra.runtime.planning.bloom_steps import bloom_step, not_applied
from stagecoach.infra.runtime.planning.choices import adaptive_choices, input_choices, task_choices
from stagecoach.infra.runtime.planning.leaf_inputs import whole_tables
from stagecoach.infra.runtime.planning.plan_tasks import (
    StageReads,
    build_specs,
    output_partitioning,
    task_settings,
    whole_leaves,
)
from stagecoach.infra.runtime.records.stage_log import write_stage_log
from stagecoach.infra.runtime.stages.dispatch import check_inputs, run_sql, run_tasks
from stagecoach.infra.runtime.stages.fetched_files import within_reach
from stagecoach.infra.runtime.stages.run import Run
from stagecoach.infra.runtime.stages.taken_over import TakenOver, take_over
from stagecoach.infra.runtime.stages.todays_times import may_read_today, today
from stagecoach.infra.shuffle.manifest import Manifest
from stagecoach.infra.shuffle.map_file import MapFile, OutputPartitioning
from stagecoach.infra.shuffle.reader import verify_files
from stagecoach.infra.spark.float_digits import float_variables, reads_float_digits
from stagecoach.infra.spark.jobs import job_tag, tagged_job, was_canceled
from stagecoach.infra.spark.session import isolated_session, task_slots, task_threads
from stagecoach.infra.storage.object_store import StorageOptions
from stagecoach.infra.worker.inputs import scan_input
from stagecoach.infra.worker.reports import TaskReport
from stagecoach.infra.worker.spec import InputSpec, TaskSpec
from stagecoach.infra.worker.task import output_schema
from stagecoach.planner.cached_property import cached_property
from stagecoach.planner.engines.registry import SPARK
from stagecoach.planner.engines.spark.dialect import marker_values
from stagecoach.planner.errors import SqlError
from stagecoach.planner.plan.expressions import Literal
from stagecoach.planner.plan.physical import ScanExec, StageInputExec
from stagecoach.planner.plan.stages import Stage
from stagecoach.planner.render.fragment import render_fragment
from stagecoach.planner.staging.row_states import passed_through
from stagecoach.planner.syntax.parse import spark_text
from stagecoach.planner.syntax.text import SparkText
from stagecoach.planner.types import DataType, Field

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

log = logging.getLogger(__name__)

_FILE_CHECKS = 16
_DRIVER_BYTES = 64 << 20
"""Files up to this size are checked in the driver."""


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """One try at a stage of a run.

    Args:
        run: The run.
        stage: The stage.
        fingerprint: Where the output goes.
        manifests: Upstream manifests by stage number.
        started: When it began, by `time.perf_counter`.
    """

    run: Run
    stage: Stage
    fingerprint: str
    manifests: Mapping[int, Manifest] = field(default_factory=dict)
    started: float = field(default_factory=time.perf_counter)

    @cached_property
    def reads(self) -> StageReads:
        """What the stage reads."""
        run = self.run
        return StageReads(run.graph, self.stage, run.snapshot, self.manifests, run.values)

    @cached_property
    def known(self) -> Mapping[str, bytes]:
        """Objects that reading the inputs needs and that need not be asked for, by key."""
        return self.run.own.contents(self.manifests.values())

    @property
    def stage_name(self) -> str:
        """Name of the stage as messages show it."""
        return self.run.stage_name(self.stage.stage_id)


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
        choices: What was chosen for it; see `stagecoach.infra.runtime.planning.choices`.
        taken_over: What an incremental stage has from an earlier commit; None for any other stage.
        day: The only day on which it holds; empty if it always does.
    """

    engine: str
    schema: pa.Schema
    partitioning: OutputPartitioning
    reports: tuple[TaskReport, ...]
    fallback_reason: str | None = None
    seconds: float = 0.0
    choices: Mapping[str, Any] = field(default_factory=dict)
    taken_over: TakenOver | None = None
    day: str = ""

    @property
    def files(self) -> tuple[MapFile, ...]:
        """The map files, in task order."""
        written = tuple(r.file for r in self.reports if r.file is not None)
        return written if self.taken_over is None else self.taken_over.with_files(written)

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
        tasks: dict[int, Mapping[str, Any]] = {
            r.task_index: {name: getattr(r, name) for name in names}
            | ({} if r.trial is None else {"trial": vars(r.trial)})
            for r in self.reports
        }
        if self.taken_over is not None:
            tasks |= self.taken_over.metrics
        return {
            "fallback_reason": self.fallback_reason,
            "seconds": round(self.seconds, 3),
            **self.choices,
            "tasks": [tasks[index] for index in sorted(tasks)],
        }


def run_in_tasks(attempt: Attempt) -> Output:
    """Run the fragment in the task engine that the plan names, one Spark task for each task.

    Raises:
        QueryError: The engine refuses the fragment or raises on its data; Spark may not.
        StagecoachError: Anything else that failed.
    """
    stage, settings = attempt.stage, attempt.run.settings
    try:
        rendered = with_fixed_times(stage, attempt.run.graph.time_zone)
        sql = render_fragment(rendered, stage.engine, attempt.run.values)
        rows = passed_through(rendered)
        row_sql = None if rows is None else render_fragment(rows, stage.engine, attempt.run.values)
    except SqlError as error:
        raise QueryError(str(error)) from error
    slots = task_slots(settings)
    divided = partial(
        build_specs,
        attempt.reads,
        settings,
        attempt.run.store,
        sql=sql,
        fingerprint=attempt.fingerprint,
        parallelism=slots,
        row_sql=row_sql,
        functions=attempt.run.code_of(stage.functions),
        threads=1 if stage.cores == 1 else min(stage.cores, task_threads(settings)),
        known=attempt.known,
    )
    planned, taken = divided(in_groups=stage.incremental), None
    decisions = planned.decisions
    if stage.incremental:
        taken = take_over(attempt.run, stage, attempt.fingerprint, planned.specs, attempt.manifests)
        if taken.has_other_inputs:
            planned = divided(in_groups=False)
            taken = taken.undivided(stage, planned.specs, attempt.manifests)
        decisions = (*planned.decisions, taken.decision())
    _log_decisions(attempt, decisions)
    specs = planned.specs if taken is None else taken.remaining(planned.specs)
    reports = _run_job(attempt, specs) if specs else []
    if (tried := trial_decision(reports)) is not None:
        _log_decisions(attempt, [tried])
        decisions += (tried,)
    return Output(
        engine=stage.engine,
        schema=output_schema(planned.specs[0].types),
        partitioning=planned.specs[0].output,
        reports=tuple(reports),
        taken_over=taken,
        seconds=time.perf_counter() - attempt.started,
        choices={
            "inputs": input_choices(
                attempt.run.snapshot,
                (
                    (_table_of(leaf), [spec.inputs[position] for spec in specs])
                    for leaf, position in stage.leaf_positions.items()
                ),
            ),
            **task_choices(settings, slots),
            **adaptive_choices(decisions),
            **({} if taken is None else taken.choices()),
        },
    )


def _run_job(attempt: Attempt, specs: Sequence[TaskSpec]) -> list[TaskReport]:
    spark = attempt.run.session()
    if reads_float_digits(specs[0].sql):
        written = float_variables(spark)
        specs = [replace(spec, variables={**spec.variables, **written}) for spec in specs]
    with _job(attempt, spark):
        reports = run_tasks(spark, specs)
    _raise_failure(attempt, reports)
    return reports


def run_spark(attempt: Attempt) -> Output:
    """Run the fragment in Spark SQL.

    Raises:
        QueryFailedError: Spark refuses it or raises on its data.
        StagecoachError: Anything else that failed.
    """
    stage = attempt.stage
    try:
        sql = render_fragment(stage, SPARK, attempt.run.values)
    except SqlError as error:
        raise QueryFailedError(attempt.run.graph.query, type(error).__name__, str(error)) from error
    run = attempt.run
    leaves, decisions = whole_leaves(attempt.reads, run.settings, run.store)
    for leaf in leaves:
        if isinstance(leaf, FormatInput) and (reason := leaf.whole_query_reason) is not None:
            raise QueryFailedError(run.graph.query, "WHOLE_QUERY", reason)
    decisions = (*decisions, *not_applied(stage))
    _log_decisions(attempt, decisions)
    views = {f"in_{position}": leaves[position] for position in stage.leaf_positions.values()}
    types = tuple(f.dtype for f in stage.schema)
    tables = {f"in_{position}": _table_of(leaf) for leaf, position in stage.leaf_positions.items()}
    values = marker_values(attempt.run.values)
    functions = run.code_of(stage.functions)
    output = _run_sql(attempt, SparkText(sql), views, types, values, tables, functions)
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
    views = whole_tables(attempt.run.graph, attempt.run.snapshot)
    types = tuple(field.dtype for field in columns)
    tables = {name: name for name in views}
    text = spark_text(attempt.run.graph.sql)
    functions = attempt.run.code_of(attempt.run.graph.functions)
    return _run_sql(attempt, text, views, types, attempt.run.values, tables, functions)


def _run_sql(
    attempt: Attempt,
    text: SparkText,
    views: Mapping[str, InputSpec],
    types: tuple[DataType, ...],
    parameters: Mapping[str, Literal],
    tables: Mapping[str, str],
    functions: FunctionSet,
) -> Output:
    step = bloom_step(attempt.stage)
    run = attempt.run
    is_of_a_day = may_read_today(attempt.stage, run.graph, run.snapshot)
    day = today(run.graph.time_zone) if is_of_a_day else ""
    spec = TaskSpec(
        query=attempt.run.graph.query,
        stage_id=attempt.stage.stage_id,
        fingerprint=attempt.fingerprint,
        task_index=0,
        sql=text.text,
        inputs=(),
        types=types,
        output=output_partitioning(attempt.stage),
        settings=task_settings(
            attempt.run.settings,
            attempt.run.store,
            attempt.run.snapshot,
            attempt.run.graph.time_zone,
            functions,
            attempt.known,
        ),
        bloom=None if step is None or step.kind == "probe" else step,
    )
    try:
        with (
            isolated_session(attempt.run.session(), attempt.run.graph.time_zone) as session,
            _job(attempt, session),
        ):
            _check_scans(session, spec, views)
            try:
                with within_reach(views, attempt.run.settings, spec.settings.store) as reached:
                    reports = run_sql(session, spec, text, views=reached, parameters=parameters)
            except TaskFailedError:
                # Spark passes on the text of an error in a reading task, not its class.
                if not was_canceled(job_tag(attempt.run.run_id, attempt.stage.stage_id)):
                    _raise_lost_input(attempt, views)
                    check_inputs(session, spec, list(views.values()))
                raise
        _raise_failure(attempt, reports)
        # Spark reads whatever is there by that name; afterwards, so that it was the same till then.
        _check_files(attempt, views)
    except InputLostError as error:
        raise _with_table(attempt, error) from error
    except QueryError as error:
        raise QueryFailedError(attempt.run.graph.query, type(error).__name__, str(error)) from error
    return Output(
        engine=SPARK,
        schema=output_schema(types),
        partitioning=spec.output,
        reports=tuple(_renumbered(reports)),
        day=day,
        seconds=time.perf_counter() - attempt.started,
        choices={
            "inputs": input_choices(
                attempt.run.snapshot,
                ((tables[name], [view]) for name, view in views.items()),
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
    tag = job_tag(attempt.run.run_id, attempt.stage.stage_id)
    description = f"{attempt.stage_name}: {attempt.stage.title}"
    settings, listener = attempt.run.settings, attempt.run.progress
    seconds = (settings.progress_seconds, settings.executor_seconds)
    try:
        with tagged_job(spark, tag, description, listener, *seconds):
            yield
    except TaskFailedError as error:
        if was_canceled(tag):
            raise StageCanceledError(f"{attempt.stage_name} was canceled") from error
        write_stage_log(attempt.run.store, attempt.run.run_id, attempt.stage.stage_id, error)
        raise


def _raise_failure(attempt: Attempt, reports: Sequence[TaskReport]) -> None:
    """Raise the failure of a task, one that no other engine can mend before one that it may."""
    failed = [r for r in reports if r.failure is not None]
    for report in sorted(failed, key=lambda r: r.failure is not None and r.failure.kind == "query"):
        if report.failure is not None:
            error = report.failure.to_error(attempt.stage_name, report.task_index)
            if isinstance(error, InputLostError):
                error = _with_table(attempt, error)
            write_stage_log(
                attempt.run.store, attempt.run.run_id, attempt.stage.stage_id, error, reports
            )
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
        verify_files(attempt.run.store, manifest)
    _check_files(attempt, views)


def _check_files(attempt: Attempt, views: Mapping[str, InputSpec]) -> None:
    """Raise `InputLostError` if a table file is not the one of the snapshot any more."""
    options = StorageOptions.of(attempt.run.store)
    read = (
        view.files if isinstance(view, ScanInput) else view.file_rows
        for view in views.values()
        if isinstance(view, ScanInput | FormatInput)
    )
    files = {file.uri: file for part in read for file in part}  # a file may be read in parts
    try:
        with ThreadPoolExecutor(_FILE_CHECKS) as threads:
            for _ in threads.map(lambda file: check_file(file, options), files.values()):
                pass
    except InputLostError as error:
        raise _with_table(attempt, error) from error


def _with_table(attempt: Attempt, error: InputLostError) -> InputLostError:
    """The error with the name of the table whose file it is about."""
    for table in attempt.run.snapshot.tables.values():
        if any(file.uri == error.uri for file in table.files):
            return error.of_table(table.table)
    return error


def _renumbered(reports: Sequence[TaskReport]) -> Iterator[TaskReport]:
    """Reports with tasks numbered without gaps: Spark may run nothing for an empty partition."""
    for index, report in enumerate(reports):
        file = None if report.file is None else replace(report.file, task_index=index)
        yield replace(report, task_index=index, file=file)
