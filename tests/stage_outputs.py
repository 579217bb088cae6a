"""Outputs of stages without a run: map files of given rows, and the manifest that commits them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from stagecoach.infra.shuffle.commit import commit_manifest
from stagecoach.infra.shuffle.manifest import Manifest
from stagecoach.infra.shuffle.map_file import Codec, MapFile, OutputPartitioning
from stagecoach.infra.shuffle.writer import ShuffleWriter
from stagecoach.infra.storage import layout
from stagecoach.infra.storage.object_store import ObjectStore

if TYPE_CHECKING:
    import pyarrow as pa

ONE_PARTITION = OutputPartitioning()


def write_map_file(
    store: ObjectStore,
    fingerprint: str,
    batches: Iterable[pa.RecordBatch],
    schema: pa.Schema,
    partitioning: OutputPartitioning = ONE_PARTITION,
    *,
    task: int = 0,
    attempt: str = "",
    **options: Any,
) -> MapFile:
    """Write what a task of a stage puts out; `options` are those of the writer."""
    key = layout.map_file(fingerprint, task, attempt or layout.new_attempt())
    with ShuffleWriter(store, key, schema, partitioning, **options) as writer:
        for batch in batches:
            writer.write(batch)
        return writer.close()


def commit_files(
    store: ObjectStore,
    fingerprint: str,
    files: Sequence[MapFile],
    schema: pa.Schema,
    partitioning: OutputPartitioning = ONE_PARTITION,
    *,
    codec: Codec = "lz4",
    **named: Any,
) -> Manifest:
    """Commit map files as a stage; `named` is what the manifest is to say beside its rows."""
    said = {"plan_hash": "0" * 64, "query": "q", "stage_id": 0, "engine": "duckdb"}
    return commit_manifest(
        store,
        fingerprint,
        files,
        schema=schema,
        partitioning=partitioning,
        codec=codec,
        **{**said, "created_at": "", **named},
    )
