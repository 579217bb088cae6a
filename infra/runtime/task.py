"""Running one task: in, a `TaskSpec`; out, its map file and a report.

Worker code: runs on a Spark executor or in the driver alike. It streams: inputs into DuckDB, its
result into the shuffle writer.

    scan or shuffle ranges ─▶ DuckDB fragment ─▶ shuffle writer ─▶ map file of this attempt
"""

from __future__ import annotations

import functools
import logging
import os
import resource
import socket
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from infra.engines.bloom import BloomStep
from infra.engines.chunk_inputs import ChunkInput
from infra.engines.chunk_steps import run_in_steps
from infra.engines.duckdb import DuckDbSettings, run_fragment
from infra.engines.errors import QueryError
from infra.engines.inputs import (
    ArrowInput,
    EngineInput,
    ParquetInput,
    conform,
    leaf_schema,
    watched,
)
from infra.engines.parquet import read_parquet_batches
from infra.engines.trial import MIN_TRIED_ROWS, count_groups, predicted_share
from infra.runtime.stage_log import captured_lines, error_lines
from infra.runtime.task_spec import (
    EXPANSION,
    InputSpec,
    ScanInput,
    ShuffleInput,
    TaskFailure,
    TaskReport,
    TaskSettings,
    TaskSpec,
    TrialResult,
)
from infra.shuffle import broadcast_cache
from infra.shuffle.manifest import Manifest, ManifestError, load_manifest
from infra.shuffle.map_file import MapFile, OutputPartitioning
from infra.shuffle.reader import read_blocks, read_partitions
from infra.shuffle.row_order import RowOrder
from infra.shuffle.writer import ShuffleWriter
from infra.storage import layout
from infra.storage.object_store import ObjectStore, store_from_dict
from planner.types import DataType, Field, arrow_schema

log = logging.getLogger(__name__)


@dataclass
class _Meter:
    """What one task counts while it runs."""

    rows_in: list[int]
    read_seconds: float = 0.0
    write_seconds: float = 0.0
    started: float = field(default_factory=time.perf_counter)
    started_at: float = field(default_factory=time.time)
    trial: TrialResult | None = None

    def read_first(self, num_rows: int) -> None:
        """Note that only so many rows of the first input were needed."""
        self.rows_in[0] = num_rows


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
    meter = _Meter(rows_in=[_known_rows(i) for i in spec.inputs])
    file: MapFile | None = None
    failure: TaskFailure | None = None
    with captured_lines() as lines:
        try:
            file = _run(spec, token, meter)
        except Exception as error:
            log.debug("%s, task %d failed", spec.stage_name, spec.task_index, exc_info=True)
            lines.extend(error_lines(error))
            failure = TaskFailure.of(error)
    return _report(spec, token, meter, file, failure, tuple(lines))


def write_batches(
    spec: TaskSpec, batches: Iterator[pa.RecordBatch], attempt: int = 0
) -> TaskReport:
    """Write rows that another engine produced, as `run_task` writes DuckDB's.

    Args:
        spec: Where they go; its SQL and inputs are not looked at.
        batches: The rows, columns by position.
        attempt: Number of the try.

    Raises:
        Exception: What reading `batches` raised, as it is: it is not this task's failure.
    """
    token = layout.new_attempt(attempt)
    meter = _Meter(rows_in=[])
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


def read_input(spec: TaskSpec, part: int) -> Iterator[pa.RecordBatch]:
    """A part of the spec's only input, for an engine that is fed with batches.

    Args:
        spec: Its first input is read.
        part: 0-based number of the file of a scan, or of the partition of a stage input.

    Raises:
        StagecoachError: The input is lost or its storage failed.
    """
    store = store_from_dict(spec.settings.store)
    leaf = spec.inputs[0]
    if isinstance(leaf, ScanInput):
        options = dict(spec.settings.store.get("options", {}))
        return read_parquet_batches(
            ParquetInput(leaf.columns, leaf.files[part : part + 1], options)
        )
    if isinstance(leaf, ChunkInput):
        return _chunk_rows(leaf.part(part), spec.settings)
    low = leaf.low + part
    return read_shuffle(store, leaf, low, min(low + 1, leaf.high), spec.settings)


def _chunk_rows(leaf: ChunkInput, settings: TaskSettings) -> Iterator[pa.RecordBatch]:
    """Rows of a deduplicated table for another engine; DuckDB deduplicates them here, too."""
    options = dict(settings.store.get("options", {}))
    columns = ", ".join('"' + c.name.replace('"', '""') + '"' for c in leaf.columns)
    sql = f"SELECT {columns or 'TRUE AS no_column'} FROM in_0"
    inputs = [replace(leaf, storage_options=options)]
    schema = leaf_schema(leaf.columns)
    with run_fragment(sql, inputs, schema, _database_settings(settings)) as batches:
        yield from batches


def _pinned(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    try:
        return conform(batch, schema)
    except pa.ArrowException as error:
        raise QueryError(f"a value does not fit the pinned type: {error}") from error


def _run(spec: TaskSpec, attempt: str, meter: _Meter) -> MapFile:
    store = store_from_dict(spec.settings.store)
    schema = output_schema(spec.types)
    inputs = [_engine_input(store, i, spec.settings, p, meter) for p, i in enumerate(spec.inputs)]
    step = spec.bloom
    filter_rows = _take_filter(inputs, step)
    sql, chosen = _chosen_form(spec, inputs, meter)
    with (
        run_in_steps(
            sql,
            chosen,
            output_schema(spec.fragment_types),
            _database_settings(spec.settings),
            read=meter.read_first,
        ) as batches,
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
        started = time.perf_counter()
        file = writer.close()
        meter.write_seconds += time.perf_counter() - started
    return file


def _take_filter(
    inputs: list[EngineInput | ChunkInput], step: BloomStep | None
) -> Iterator[pa.RecordBatch]:
    """The rows of the input that is a Bloom filter, which the engine does not get."""
    if step is None or step.source < 0:
        return iter(())
    found = inputs[step.source]
    if not isinstance(found, ArrowInput):
        return iter(())
    inputs[step.source] = ParquetInput(found.columns, ())
    return found.batches()


def _chosen_form(
    spec: TaskSpec, inputs: Sequence[EngineInput | ChunkInput], meter: _Meter
) -> tuple[str, Sequence[EngineInput | ChunkInput]]:
    """The SQL to run, after a trial if the task is to make one, and what it reads."""
    trial, started = spec.trial, time.perf_counter()
    plain = [one for one in inputs if not isinstance(one, ChunkInput)]
    if trial is None or len(plain) < len(inputs):
        return spec.sql, inputs
    try:
        counted = count_groups(
            trial.sql,
            trial.num_keys,
            plain,
            trial.leaf,
            trial.num_rows,
            trial.files,
            _database_settings(spec.settings),
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


def read_shuffle(
    store: ObjectStore, spec: ShuffleInput, low: int, high: int, settings: TaskSettings
) -> Iterator[pa.RecordBatch]:
    """Rows of a range of partitions with the leaf's names and types.

    A broadcast input, and one that other tasks read as well, is kept for the next tasks of this
    process.

    Raises:
        ShuffleReadError: The upstream stage's output is lost.
        StorageError: The store failed.
    """
    manifest = pinned_manifest(store, spec)
    schema = leaf_schema(spec.columns)

    def read() -> Iterator[pa.RecordBatch]:
        memory = settings.reader_memory_bytes
        if (part := spec.sorted_range) is not None:
            for batch in read_blocks(store, manifest, part.blocks, memory_bytes=memory):
                yield conform(part.rows_of(batch), schema)
            return
        files = None if spec.files is None else range(*spec.files)
        _, batches = read_partitions(store, manifest, low, high, files=files, memory_bytes=memory)
        for batch in batches:
            yield conform(_share_of(batch, *spec.share), schema)

    if manifest.partitioning.kind != "broadcast" and not spec.shared:
        yield from read()
        return
    key = manifest.manifest_hash, low, high, spec.columns
    yield from broadcast_cache.SHARED.batches(key, read, settings.broadcast_cache_bytes)


def _share_of(batch: pa.RecordBatch, index: int, shares: int) -> pa.RecordBatch:
    """Part `index` of `shares` of the rows; together the parts are the batch."""
    start = batch.num_rows * index // shares
    return batch.slice(start, batch.num_rows * (index + 1) // shares - start)


def pinned_manifest(store: ObjectStore, spec: ShuffleInput) -> Manifest:
    """The manifest that the run pinned for an input.

    Raises:
        ManifestError: It is gone, or another commit took its place.
    """
    uri = store.uri(layout.manifest(spec.fingerprint))
    found = load_manifest(store, spec.fingerprint, stage=spec.stage)
    if found is None:
        raise ManifestError(spec.stage, uri, "not found")
    if found.manifest_hash != spec.manifest_hash:
        raise ManifestError(spec.stage, uri, "replaced by another commit since this run read it")
    return found


def peak_memory_bytes() -> int:
    """Highest resident memory of this process so far."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def _report(
    spec: TaskSpec,
    attempt: str,
    meter: _Meter,
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


def _known_rows(spec: InputSpec) -> int:
    if isinstance(spec, ScanInput):
        return sum(f.row_end - f.row_start for f in spec.files)
    return spec.num_rows if isinstance(spec, ChunkInput) else 0


def _engine_input(
    store: ObjectStore, spec: InputSpec, settings: TaskSettings, position: int, meter: _Meter
) -> EngineInput | ChunkInput:
    if isinstance(spec, ScanInput):
        options = settings.store.get("options", {})
        return ParquetInput(spec.columns, spec.files, dict(options))
    if isinstance(spec, ChunkInput):
        return replace(spec, storage_options=dict(settings.store.get("options", {})))
    if spec.low >= spec.high:
        return ParquetInput(spec.columns, ())
    read = functools.partial(read_shuffle, store, spec, spec.low, spec.high, settings)
    metered = functools.partial(_metered, read, position, meter)
    return ArrowInput(spec.columns, metered, spec.num_bytes * EXPANSION)


def _metered(
    read: Callable[[], Iterator[pa.RecordBatch]], position: int, meter: _Meter
) -> Iterator[pa.RecordBatch]:
    batches = read()
    while True:
        started = time.perf_counter()
        batch = next(batches, None)
        meter.read_seconds += time.perf_counter() - started
        if batch is None:
            return
        meter.rows_in[position] += batch.num_rows
        yield batch


def _database_settings(settings: TaskSettings) -> DuckDbSettings:
    return DuckDbSettings(
        time_zone=settings.time_zone,
        memory_bytes=settings.memory_bytes,
        spill_dir=settings.spill_dir,
        max_spill_bytes=settings.max_spill_bytes,
        directories=settings.directories,
    )
