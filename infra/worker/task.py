"""Runs one task: reads its inputs, has its engine run the fragment, writes the map file.

Worker code: runs on a Spark executor or in the driver alike. It streams: inputs into the engine,
its result into the shuffle writer.

    scan or shuffle ranges ─▶ fragment in an engine ─▶ shuffle writer ─▶ map file of this attempt
"""

from __future__ import annotations

import logging
import os
import resource
import socket
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import pyarrow as pa

from stagecoach.infra.engines.protocol import Fragment, Resources, TaskEngine
from stagecoach.infra.engines.registry import task_engine
from stagecoach.infra.errors import QueryError
from stagecoach.infra.integrity.errors import DamagedFileError
from stagecoach.infra.reading.format_input import EngineInput, FormatInput, SqlInput
from stagecoach.infra.reading.input_files import check_still_same
from stagecoach.infra.reading.inputs import (
    ArrowInput,
    ParquetInput,
    ScanInput,
    conform,
    watched,
)
from stagecoach.infra.reading.parquet import check_local_files, decode_local_files
from stagecoach.infra.shuffle.map_file import MapFile, OutputPartitioning
from stagecoach.infra.shuffle.row_order import RowOrder
from stagecoach.infra.shuffle.writer import ShuffleWriter
from stagecoach.infra.storage import layout
from stagecoach.infra.storage.object_store import ObjectStore, StorageOptions
from stagecoach.infra.storage.stores import store_from_dict
from stagecoach.infra.worker.bloom import BloomStep
from stagecoach.infra.worker.damage import raise_if_damaged
from stagecoach.infra.worker.first_rows import run_in_steps
from stagecoach.infra.worker.inputs import (
    TaskMeter,
    engine_input,
    known_rows,
    read_input,
    scan_input,
    task_resources,
)
from stagecoach.infra.worker.log_lines import captured_lines, error_lines
from stagecoach.infra.worker.reports import TaskFailure, TaskReport, TrialResult
from stagecoach.infra.worker.spec import ShuffleInput, TaskSettings, TaskSpec
from stagecoach.infra.worker.trial import MIN_TRIED_ROWS, count_groups, predicted_share
from stagecoach.planner.types import DataType, Field, arrow_schema

log = logging.getLogger(__name__)


def run_task(spec: TaskSpec, attempt: int = 0) -> TaskReport:
    """Run a task and write its map file.

    Args:
        spec: What to do.
        attempt: Number of the try; the file gets a name of its own whatever it is.

    Returns:
        The report. A failure is in the report and not raised, so that its class survives the way
        through Spark; nothing of a failed attempt is visible to readers.
    """
    token = layout.new_attempt(attempt)
    meter = TaskMeter(rows_in=[known_rows(i) for i in spec.inputs])
    file: MapFile | None = None
    failure: TaskFailure | None = None
    with captured_lines() as lines:
        try:
            try:
                file = _run(spec, token, meter)
            except (QueryError, DamagedFileError):
                _check_inputs(spec)  # a file that changes while it is read looks damaged
                raise
        except Exception as error:
            log.debug("%s, task %d failed", spec.stage_name, spec.task_index, exc_info=True)
            lines.extend(error_lines(error))
            failure = TaskFailure.of(error)
    return _report(spec, token, meter, file, failure, tuple(lines))


def _check_inputs(spec: TaskSpec) -> None:
    """Look whether the table files that were read are still those of the snapshot."""
    options = StorageOptions.from_dict(spec.settings.store.get("options", {}))
    for leaf in spec.inputs:
        if isinstance(leaf, ScanInput):
            check_still_same(leaf.files, options)
        elif isinstance(leaf, FormatInput):
            check_still_same(leaf.file_rows, options)


def check_task(spec: TaskSpec, index: int) -> TaskReport:
    """Check the only input of a spec, or read all of it where it is checked as it is read.

    Args:
        spec: Its first input is checked.
        index: Number of the report.

    Returns:
        The report; damage is its failure.
    """
    meter = TaskMeter(rows_in=[])
    failure: TaskFailure | None = None
    leaf = spec.inputs[0]
    try:
        if isinstance(leaf, ScanInput) and all(f.local_path is not None for f in leaf.files):
            scan = scan_input(leaf, spec.settings)
            check_local_files(scan)
            decode_local_files(scan)
        else:
            for _ in read_input(spec, 0):
                pass
    except Exception as error:
        log.debug("%s, input %d failed", spec.stage_name, index, exc_info=True)
        failure = TaskFailure.of(error)
    report = _report(spec, "", meter, None, failure)
    return replace(report, task_index=index)


def write_batches(
    spec: TaskSpec, batches: Iterator[pa.RecordBatch], attempt: int = 0
) -> TaskReport:
    """Write rows that Spark produced, as `run_task` writes those of a task engine.

    Args:
        spec: Where they go; its SQL and inputs are not looked at.
        batches: The rows, columns by position.
        attempt: Number of the try.

    Raises:
        Exception: What reading `batches` raised, as it is: it is not this task's failure.
    """
    token = layout.new_attempt(attempt)
    meter = TaskMeter(rows_in=[])
    schema = output_schema(spec.types)
    file: MapFile | None = None
    failure: TaskFailure | None = None
    upstream: list[BaseException] = []
    lines: tuple[str, ...] = ()
    try:
        store = store_from_dict(spec.settings.store)
        with open_writer(
            store, spec.fingerprint, spec.task_index, token, schema, spec.output, spec.settings
        ) as writer:
            pinned = output_schema(spec.fragment_types)
            rows = (_pinned(batch, pinned) for batch in watched(batches, upstream))
            for batch in rows if spec.bloom is None else spec.bloom.apply(rows):
                started = time.perf_counter()
                writer.write(batch)
                meter.write_seconds += time.perf_counter() - started
            file = writer.close()
    except Exception as error:
        if upstream:
            raise
        lines = tuple(error_lines(error))
        failure = TaskFailure.of(error)
    return _report(spec, token, meter, file, failure, lines)


def _pinned(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    try:
        return conform(batch, schema)
    except pa.ArrowException as error:
        raise QueryError(f"a value cannot be converted to the pinned type: {error}") from error


def _run(spec: TaskSpec, attempt: str, meter: TaskMeter) -> MapFile:
    store = spec.settings.open_store()
    schema = output_schema(spec.types)
    inputs = [engine_input(store, i, spec.settings, p, meter) for p, i in enumerate(spec.inputs)]
    step = spec.bloom
    filter_rows = _take_filter(inputs, step)
    engine, resources = task_engine(spec.engine), task_resources(spec.settings)
    sql, chosen = _chosen_form(engine, resources, spec, inputs, meter)
    schema_of_rows = output_schema(spec.fragment_types)
    fragment = Fragment.of(sql, chosen, schema_of_rows, spec.variables)
    with (
        _damage_named(inputs),
        run_in_steps(engine, fragment, resources, read=meter.read_first) as batches,
        open_writer(
            store,
            spec.fingerprint,
            spec.task_index,
            attempt,
            schema,
            spec.output,
            spec.settings,
            spec.order,
        ) as writer,
    ):
        for batch in batches if step is None else step.apply(batches, filter_rows):
            started = time.perf_counter()
            writer.write(batch)
            meter.write_seconds += time.perf_counter() - started
        # An engine opens a file for each scan of it; here all of them are over.
        _check_inputs(spec)
        started = time.perf_counter()
        file = writer.close()
        meter.write_seconds += time.perf_counter() - started
    return file


@contextmanager
def _damage_named(inputs: Sequence[EngineInput]) -> Iterator[None]:
    """Turn an error of the engine into `DamagedFileError` where a damaged file is its cause."""
    try:
        yield
    except QueryError as error:
        raise_if_damaged(error, inputs)
        raise


def _take_filter(inputs: list[EngineInput], step: BloomStep | None) -> Iterator[pa.RecordBatch]:
    """The rows of the input that is a Bloom filter, which the engine does not get."""
    if step is None or step.source < 0:
        return iter(())
    found = inputs[step.source]
    if not isinstance(found, ArrowInput):
        return iter(())
    inputs[step.source] = ParquetInput(found.columns, ())
    return found.batches()


def _chosen_form(
    engine: TaskEngine,
    resources: Resources,
    spec: TaskSpec,
    inputs: Sequence[EngineInput],
    meter: TaskMeter,
) -> tuple[str, Sequence[EngineInput]]:
    """The SQL to run, after a trial if the task is to make one, and what it reads."""
    trial, started = spec.trial, time.perf_counter()
    plain = [one for one in inputs if not isinstance(one, SqlInput)]
    if trial is None or len(plain) < len(inputs):
        return spec.sql, inputs
    try:
        counted = count_groups(
            engine,
            trial.sql,
            trial.num_keys,
            plain,
            trial.leaf,
            trial.num_rows,
            trial.files,
            resources,
        )
    except QueryError:
        log.debug("%s, task %d: the trial failed", spec.stage_name, spec.task_index, exc_info=True)
        # What is wrong with the data, the fragment itself finds; it has not begun to read.
        return spec.sql, inputs
    of_rows = trial.of_rows * counted.rows / max(counted.input_rows, 1)
    share = predicted_share(counted.rows, counted.groups, of_rows)
    passed = counted.rows >= MIN_TRIED_ROWS and share >= trial.share
    meter.trial = TrialResult(
        rows=counted.rows,
        groups=counted.groups,
        share=round(share, 4),
        passed=passed,
        seconds=round(time.perf_counter() - started, 4),
    )
    return trial.sql if passed else spec.sql, counted.inputs


def open_writer(
    store: ObjectStore,
    fingerprint: str,
    task_index: int,
    attempt: str,
    schema: pa.Schema,
    output: OutputPartitioning,
    settings: TaskSettings,
    order: RowOrder | None = None,
) -> ShuffleWriter:
    """The writer of a task's map file, whichever engine produces the rows."""
    os.makedirs(settings.spill_dir, exist_ok=True)
    return ShuffleWriter(
        store,
        layout.map_file(fingerprint, task_index, attempt),
        schema,
        output,
        codec=settings.codec,
        memory_bytes=settings.writer_memory_bytes,
        spill_dir=settings.spill_dir,
        order=order,
    )


def output_schema(types: tuple[DataType, ...]) -> pa.Schema:
    """The Arrow schema of a stage's output: `c0`, `c1`, … with pinned types."""
    return arrow_schema(tuple(Field(f"c{i}", t) for i, t in enumerate(types)))


def peak_memory_bytes() -> int:
    """Highest resident memory of this process so far."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def _report(
    spec: TaskSpec,
    attempt: str,
    meter: TaskMeter,
    file: MapFile | None,
    failure: TaskFailure | None,
    lines: tuple[str, ...] = (),
) -> TaskReport:
    total = time.perf_counter() - meter.started
    return TaskReport(
        task_index=spec.task_index,
        attempt=attempt,
        file=file,
        failure=failure,
        rows_in=tuple(meter.rows_in),
        bytes_in=tuple(i.num_bytes if isinstance(i, ShuffleInput) else 0 for i in spec.inputs),
        engine_seconds=max(total - meter.read_seconds - meter.write_seconds, 0.0),
        read_seconds=meter.read_seconds,
        write_seconds=meter.write_seconds,
        total_seconds=total,
        started_at=meter.started_at,
        peak_memory_bytes=peak_memory_bytes(),
        host=socket.gethostname(),
        pid=os.getpid(),
        log=lines,
        trial=meter.trial,
    )
