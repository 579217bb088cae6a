"""Reads the rows of a result, with Spark's names and types."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from stagecoach.infra.errors import ShuffleReadError, StorageError
from stagecoach.infra.runtime.records.pointers import read_pointer
from stagecoach.infra.runtime.stages.commits import forget_if_damaged
from stagecoach.infra.shuffle.commit import load_manifest
from stagecoach.infra.shuffle.fetch import DEFAULT_MEMORY_BYTES
from stagecoach.infra.shuffle.manifest import Manifest
from stagecoach.infra.shuffle.reader import read_partitions, read_stored
from stagecoach.infra.shuffle.stored_batch import StoredBatch
from stagecoach.infra.storage.object_store import ObjectStore
from stagecoach.planner.plan.stages import StageGraph
from stagecoach.planner.types import Field, arrow_schema


def result_batches(
    store: ObjectStore,
    manifest: Manifest,
    columns: Sequence[Field],
    *,
    files: range | None = None,
    memory_bytes: int = DEFAULT_MEMORY_BYTES,
) -> Iterator[pa.RecordBatch]:
    """Yield the rows in the result's order.

    Args:
        store: Where the stage's output is.
        manifest: Its commit.
        columns: Names and types of the result; not the plan's where Spark ran the whole query,
            because Spark alone knew them then.
        files: Positions of the wanted map files, which are in the result's order; all if left out.
        memory_bytes: Bound of the stored bytes that are read ahead.

    Raises:
        ShuffleReadError: A file is missing or damaged; the next run makes the result again.
    """
    schema = arrow_schema(tuple(columns))
    try:
        _, batches = read_partitions(
            store, manifest, 0, manifest.num_partitions, files=files, memory_bytes=memory_bytes
        )
        for batch in batches:
            arrays = [
                column if column.type == wanted.type else column.cast(wanted.type)
                for column, wanted in zip(batch.columns, schema, strict=True)
            ]
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)
    except ShuffleReadError:
        forget_if_damaged(store, manifest)
        raise


def stored_batches(
    store: ObjectStore,
    manifest: Manifest,
    columns: Sequence[Field],
    *,
    files: range | None = None,
    memory_bytes: int = DEFAULT_MEMORY_BYTES,
) -> Iterator[StoredBatch | pa.RecordBatch]:
    """Yield the rows like `result_batches`; those that are stored with these types not decoded.

    Args:
        store: Where the stage's output is.
        manifest: Its commit.
        columns: Names and types of the result; the stored names do not count.
        files: Positions of the wanted map files; all if left out.
        memory_bytes: Bound of the stored bytes that are read ahead.

    Raises:
        ShuffleReadError: A file is missing or damaged; the next run makes the result again.
    """
    if arrow_schema(tuple(columns)).types != manifest.schema.types:
        yield from result_batches(store, manifest, columns, files=files, memory_bytes=memory_bytes)
        return
    wanted = range(len(manifest.files)) if files is None else files
    try:
        yield from read_stored(store, manifest, wanted, memory_bytes=memory_bytes)
    except ShuffleReadError:
        forget_if_damaged(store, manifest)
        raise


def first_rows(store: ObjectStore, graph: StageGraph, run_id: str, limit: int) -> pa.Table:
    """Return the first rows of the result of a run, `limit` at most.

    Args:
        store: Where the run's outputs are.
        graph: The query.
        run_id: The run, or the one that it re-executes.
        limit: Most rows.

    Raises:
        StorageError: The run has no result, or gc has removed it.
    """
    pointer = read_pointer(store, run_id, graph.head.stage_id)
    stage = f"{graph.query}/stage_{graph.head.stage_id}"
    manifest = (
        load_manifest(store, pointer.fingerprint, stage=stage, expected=True) if pointer else None
    )
    if pointer is None or manifest is None:
        raise StorageError(f"the result of '{graph.query}' is not in storage; run it again")
    columns = pointer.fields or graph.result
    found: list[pa.RecordBatch] = []
    missing = limit
    for batch in result_batches(store, manifest, columns):
        found.append(batch.slice(0, missing))
        missing -= found[-1].num_rows
        if missing <= 0:
            break
    return pa.Table.from_batches(found, schema=arrow_schema(tuple(columns)))
