"""What a task reads, as an engine takes it, counted on the way.

Worker code.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from stagecoach.infra.engines.protocol import Fragment, Resources
from stagecoach.infra.engines.registry import DEFAULT_ENGINE, task_engine
from stagecoach.infra.reading.format_input import EngineInput, FormatInput, RowsInput, SqlInput
from stagecoach.infra.reading.inputs import (
    ArrowInput,
    ParquetInput,
    ScanInput,
    conform,
    leaf_schema,
)
from stagecoach.infra.reading.parquet import read_parquet_batches
from stagecoach.infra.reading.primed import MOST_BYTES, primed
from stagecoach.infra.shuffle import broadcast_cache, host_inputs
from stagecoach.infra.shuffle.host_inputs import HostInput
from stagecoach.infra.shuffle.reader import read_blocks, read_partitions
from stagecoach.infra.storage.object_store import ObjectStore
from stagecoach.infra.worker.pinned_manifests import pinned_manifest
from stagecoach.infra.worker.reports import TrialResult
from stagecoach.infra.worker.spec import EXPANSION, InputSpec, ShuffleInput, TaskSettings, TaskSpec
from stagecoach.planner.text.quoting import duckdb_name

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass
class TaskMeter:
    """What one task counts while it runs.

    Args:
        rows_in: Rows of each input.
        read_seconds: Time in which it waited for shuffle files.
        write_seconds: Time in which it wrote its own.
        started: When it began, by `time.perf_counter`.
        started_at: The same, in seconds of the epoch.
        trial: What came of its trial, if it made one.
    """

    rows_in: list[int]
    read_seconds: float = 0.0
    write_seconds: float = 0.0
    started: float = field(default_factory=time.perf_counter)
    started_at: float = field(default_factory=time.time)
    trial: TrialResult | None = None

    def read_first(self, num_rows: int) -> None:
        """Note that only so many rows of the first input were needed."""
        self.rows_in[0] = num_rows


def known_rows(spec: InputSpec) -> int:
    """Rows of an input as far as they are known before it is read."""
    if isinstance(spec, ScanInput):
        return sum(file.read_rows for file in spec.files)
    return spec.num_rows if isinstance(spec, FormatInput) else 0


def engine_input(
    store: ObjectStore, spec: InputSpec, settings: TaskSettings, position: int, meter: TaskMeter
) -> EngineInput:
    """What an engine reads of an input; reading a stage's output is counted.

    Args:
        store: Where upstream output is.
        spec: The input.
        settings: How it is read.
        position: 0-based number of the input.
        meter: What counts it.
    """
    if isinstance(spec, ScanInput):
        return scan_input(spec, settings)
    if isinstance(spec, FormatInput):
        return format_input(spec, settings)
    if spec.low >= spec.high:
        return ParquetInput(spec.columns, ())
    read = functools.partial(read_shuffle, store, spec, spec.low, spec.high, settings)
    metered = functools.partial(_metered, read, position, meter)
    if not store.is_local and spec.num_bytes <= MOST_BYTES:
        rows = primed(metered())
        return ArrowInput(spec.columns, lambda: rows, spec.num_bytes * EXPANSION)
    return ArrowInput(spec.columns, metered, spec.num_bytes * EXPANSION)


def scan_input(spec: ScanInput, settings: TaskSettings) -> ParquetInput:
    """A scan as engines and readers take it."""
    return ParquetInput(
        spec.columns,
        spec.files,
        dict(settings.store.get("options", {})),
        test=spec.test,
        memory_bytes=settings.reader_memory_bytes,
        checks=settings.checks,
    )


def format_input(spec: FormatInput, settings: TaskSettings) -> EngineInput:
    """A scan that a table format reads by itself, as engines take it."""
    options = settings.store.get("options", {})
    found = spec.reached(options, settings.reader_memory_bytes, settings.checks)
    if isinstance(found, RowsInput):
        schema = leaf_schema(found.columns)
        read = functools.partial(_conformed, found.batches, schema)
        return ArrowInput(found.columns, read, found.num_bytes * EXPANSION)
    if isinstance(found, SqlInput):
        return found
    raise TypeError(f"{type(found).__name__} is neither a RowsInput nor a SqlInput")


def _conformed(
    read: Callable[[], Iterator[pa.RecordBatch]], schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    for batch in read():
        yield conform(batch.select(schema.names), schema)


def _metered(
    read: Callable[[], Iterator[pa.RecordBatch]], position: int, meter: TaskMeter
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


def read_input(spec: TaskSpec, part: int) -> Iterator[pa.RecordBatch]:
    """A part of the spec's only input, for an engine that is fed with batches.

    Args:
        spec: Its first input is read.
        part: 0-based number of the file of a scan, or of the partition of a stage input.

    Raises:
        StagecoachError: The input is lost or its storage failed.
    """
    store = spec.settings.open_store()
    leaf = spec.inputs[0]
    if isinstance(leaf, ScanInput):
        one = replace(leaf, files=leaf.files[part : part + 1])
        return read_parquet_batches(scan_input(one, spec.settings))
    if isinstance(leaf, FormatInput):
        return _format_rows(leaf.part(part), spec.settings)
    low = leaf.low + part
    return read_shuffle(store, leaf, low, min(low + 1, leaf.high), spec.settings)


def _format_rows(spec: FormatInput, settings: TaskSettings) -> Iterator[pa.RecordBatch]:
    """Rows of a scan for another engine; what is a relation of DuckDB is read through DuckDB."""
    leaf = format_input(spec, settings)
    if isinstance(leaf, ArrowInput):
        yield from leaf.batches()
        return
    columns = ", ".join(duckdb_name(c.name) for c in leaf.columns)
    sql = f"SELECT {columns or 'TRUE AS no_column'} FROM in_0"
    fragment = Fragment.of(sql, [leaf], leaf_schema(leaf.columns))
    with task_engine(DEFAULT_ENGINE).run(fragment, task_resources(settings)) as batches:
        yield from batches


def read_shuffle(
    store: ObjectStore, spec: ShuffleInput, low: int, high: int, settings: TaskSettings
) -> Iterator[pa.RecordBatch]:
    """Rows of a range of partitions with the leaf's names and types.

    A broadcast input, and one that other tasks read as well, is kept for the next tasks of this
    process, and shared with the other workers of the host where that pays.

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
    part = spec.files, spec.share, spec.sorted_range
    key = manifest.manifest_hash, low, high, part, spec.columns
    max_bytes = settings.broadcast_cache_bytes
    stored = sum(manifest.partition_bytes[low:high])
    if (
        settings.num_readers > 1
        and part == (None, (0, 1), None)  # a part is read by one task
        and host_inputs.pays(manifest, stored, max_bytes, is_local=store.is_local)
    ):
        named = manifest.manifest_hash, low, high, [c.to_list() for c in spec.columns]
        host = HostInput(settings.spill_dir, named, schema, max_bytes)
        read = functools.partial(host.batches, read)
    yield from broadcast_cache.SHARED.batches(key, read, max_bytes)


def _share_of(batch: pa.RecordBatch, index: int, shares: int) -> pa.RecordBatch:
    """Part `index` of `shares` of the rows; together the parts are the batch."""
    start = batch.num_rows * index // shares
    return batch.slice(start, batch.num_rows * (index + 1) // shares - start)


def task_resources(settings: TaskSettings) -> Resources:
    """What the engine of a task may use."""
    return Resources(
        time_zone=settings.time_zone,
        memory_bytes=settings.memory_bytes,
        spill_dir=settings.spill_dir,
        max_spill_bytes=settings.max_spill_bytes,
        directories=settings.directories,
        functions=settings.functions,
        threads=settings.threads,
        chooses_build_side=settings.chooses_build_side,
    )
