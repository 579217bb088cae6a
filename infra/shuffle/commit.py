"""Commits a stage: writes the manifest that makes its map files exist.

The index is written first, the manifest last. Commits may race: every attempt's files and every
index have names of their own, so whichever manifest is there is whole, and the later committer
adopts it. Here both are read back, too.

A commit that has lost a file is never removed, because what is there by the time of the removal
may be another, made meanwhile. A mark beside it names the commit that is lost; the next one takes
its place.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from stagecoach.infra.shuffle import index as index_file
from stagecoach.infra.shuffle.encoding import plain_schema, schema_hash
from stagecoach.infra.shuffle.manifest import (
    Manifest,
    ManifestError,
    ManifestVersionError,
)
from stagecoach.infra.shuffle.map_file import (
    Codec,
    ManifestFile,
    MapFile,
    OutputPartitioning,
)
from stagecoach.infra.shuffle.sorted_blocks import SortedBlocks, append_blocks
from stagecoach.infra.storage import layout
from stagecoach.infra.storage.at_once import both
from stagecoach.infra.storage.object_store import ObjectMissingError, ObjectStore
from stagecoach.infra.storage.rereads import reread
from stagecoach.planner.errors import StagecoachError

if TYPE_CHECKING:
    import pyarrow as pa


class CommitError(StagecoachError):
    """The files handed to a commit are not one finished attempt of every task: our bug."""


def commit_manifest(
    store: ObjectStore,
    fingerprint: str,
    files: Sequence[MapFile],
    *,
    plan_hash: str,
    query: str,
    stage_id: int,
    engine: str,
    schema: pa.Schema,
    partitioning: OutputPartitioning,
    codec: Codec,
    created_at: str,
    metrics: Mapping[str, Any] | None = None,
    ancestry: Mapping[str, str] | None = None,
    meanwhile: Callable[[Manifest, bytes], object] | None = None,
) -> Manifest:
    """Make the files of a stage exist and return its manifest, or the one committed before.

    The index is written first and the manifest last. If another process committed the same
    fingerprint in the meantime, its manifest is returned and ours is forgotten; one that is damaged
    or marked as lost is replaced. Where the store ignores put-if-absent the later of two racing
    commits wins; both are whole, and the manifest returned is the one that was there after the
    write. `meanwhile` is called with our manifest and the content of its index, once both are
    written and while the store is asked which commit counts.

    Raises:
        CommitError: `files` are not exactly one file of each task `0 .. n-1`.
        StorageError: The store refused a write.
    """
    schema = plain_schema(schema)
    ordered = _check_files(files, partitioning.num_partitions, schema)
    index = index_file.build_index([file.ranges for file in ordered])
    content, blocks = append_blocks(index.content, [file.blocks for file in ordered])
    manifest = Manifest(
        fingerprint=fingerprint,
        plan_hash=plan_hash,
        query=query,
        stage_id=stage_id,
        engine=engine,
        schema=schema,
        partitioning=partitioning,
        codec=codec,
        files=tuple(_placed(file.for_manifest(), fingerprint) for file in ordered),
        partition_rows=_totals("rows", ordered, partitioning),
        partition_bytes=_totals("length", ordered, partitioning),
        index_name=layout.index_name(_content_hash(content, ordered)),
        index_bytes=len(content),
        index_slices=index.slices,
        blocks=blocks,
        metrics=dict(metrics or {}),
        ancestry=dict(ancestry or {}),
        created_at=created_at,
    )
    _put(store, manifest, content)
    if meanwhile is None:
        return _counting(store, manifest)
    counting, told = partial(_counting, store, manifest), partial(meanwhile, manifest, content)
    return both(store, counting, told)[0]


def _put(store: ObjectStore, manifest: Manifest, index: bytes) -> None:
    """Write the index, then the manifest unless there is one."""
    key = layout.manifest(manifest.fingerprint)
    write_index = partial(store.write_bytes, manifest.index_key, index)
    _, is_there = both(store, write_index, partial(store.exists, key))
    if not is_there:
        store.put_if_absent(key, manifest.to_json(), looked=True)


def _counting(store: ObjectStore, manifest: Manifest) -> Manifest:
    """Return what is committed once ours is written; ours takes the place of what is damaged."""
    key, text = layout.manifest(manifest.fingerprint), manifest.to_json()
    existing = _usable(store, manifest)
    if existing is None:
        store.write_bytes(key, text)
        existing = _usable(store, manifest)
    if existing is None:
        raise ManifestError(manifest.stage_name, store.uri(key), "unreadable after its commit")
    return existing


def load_manifest(
    store: ObjectStore, fingerprint: str, *, stage: str | None = None, expected: bool = False
) -> Manifest | None:
    """Return the committed manifest, or `None` if the stage is not committed.

    What is damaged is read again a few times on an object store; see `infra.storage.rereads`.

    Args:
        store: Where to look.
        fingerprint: The stage's fingerprint.
        stage: Name of the stage for messages, also for those of what is read of it later. Without,
            the fingerprint, and later the name by which it was committed.
        expected: Whether it is known to be committed, so that a manifest that is missing is asked
            for again, too.

    Raises:
        ManifestError: There is a manifest, but it is damaged.
        ManifestVersionError: Another version wrote it.
    """
    key = layout.manifest(fingerprint)
    name = stage or f"the stage with fingerprint {fingerprint}"
    passing = (ManifestError, ManifestVersionError)
    try:
        manifest = reread(
            store,
            key,
            lambda: Manifest.from_json(store.read_bytes(key), stage=name, uri=store.uri(key)),
            (*passing, ObjectMissingError) if expected else passing,
        )
    except ObjectMissingError:
        return None
    if manifest.fingerprint != fingerprint:
        problem = f"the manifest of another stage (fingerprint {manifest.fingerprint})"
        raise ManifestError(name, store.uri(key), problem)
    return manifest if stage is None else replace(manifest, reader=stage)


def mark_lost(store: ObjectStore, fingerprint: str, manifest_hash: str) -> bool:
    """Say that a commit has lost files, so that the stage runs again; return whether it was there.

    Args:
        store: Where the manifest is.
        fingerprint: The stage's fingerprint.
        manifest_hash: The commit that was found to be broken. Another one, which a re-run made in
            the meantime, is not touched; a manifest that is damaged itself needs no mark.
    """
    if not manifest_hash:
        return False
    # Before the manifest is looked at: whoever commits later must not adopt it.
    store.put_if_absent(layout.lost_mark(fingerprint, manifest_hash), b"{}")
    try:
        found = load_manifest(store, fingerprint)
    except (ManifestError, ManifestVersionError):
        return False
    return found is not None and found.manifest_hash == manifest_hash


def is_lost(store: ObjectStore, manifest: Manifest) -> bool:
    """Whether a commit is marked as one that has lost files."""
    return store.exists(layout.lost_mark(manifest.fingerprint, manifest.manifest_hash))


def has_lost(store: ObjectStore, fingerprint: str) -> bool:
    """Whether any commit of an output was found lost that gc has not removed yet."""
    return any(map(layout.is_lost_mark, store.list(layout.shuffle_prefix(fingerprint))))


def _usable(store: ObjectStore, ours: Manifest) -> Manifest | None:
    """What is committed in our place, or None where it is damaged or lost."""
    try:
        found = load_manifest(store, ours.fingerprint, stage=ours.stage_name)
    except (ManifestError, ManifestVersionError):
        return None
    # Ours is new, so nobody can have found it lost.
    if found is None or found.manifest_hash == ours.manifest_hash or not is_lost(store, found):
        return found
    return None


def load_index(
    store: ObjectStore, manifest: Manifest, lo: int = 0, hi: int | None = None
) -> pa.RecordBatch:
    """Return the index rows of partitions `lo .. hi-1`, by partition, then by file.

    Columns: partition, file, offset, length, rows, checksum. Ranges without rows may be left out.

    Raises:
        ManifestError: The index is missing or damaged.
        StorageError: The store failed.
    """
    hi = manifest.num_partitions if hi is None else hi
    key = manifest.index_key
    try:
        return reread(
            store,
            key,
            lambda: _checked_index(store, manifest, lo, hi),
            (ObjectMissingError, index_file.IndexDamagedError),
        )
    except ObjectMissingError as error:
        raise ManifestError(manifest.stage_name, store.uri(key), "index not found") from error
    except index_file.IndexDamagedError as error:
        raise ManifestError(manifest.stage_name, store.uri(key), str(error)) from error


def _checked_index(store: ObjectStore, manifest: Manifest, lo: int, hi: int) -> pa.RecordBatch:
    found = index_file.read_index(store, manifest.index_key, manifest.index_slices, lo=lo, hi=hi)
    if index_file.rows_by_partition(found, lo, hi) != manifest.partition_rows[lo:hi]:
        problem = f"index of partitions {lo} to {hi - 1} lists other rows than the manifest"
        raise index_file.IndexDamagedError(problem)
    return found


def load_files(
    store: ObjectStore, manifest: Manifest, positions: Collection[int]
) -> dict[int, MapFile]:
    """Return some map files of a commit as their tasks reported them, by position.

    Another commit that takes them over finds them where they are now (`ManifestFile.home`).

    Raises:
        ManifestError: The index is missing or damaged.
        StorageError: The store failed.
    """
    if not positions:
        return {}
    ranges = index_file.ranges_by_file(load_index(store, manifest), manifest.num_partitions)
    schema = schema_hash(manifest.schema)
    return {
        position: MapFile(
            **{**vars(file), "home": file.home or manifest.fingerprint},
            schema_hash=schema,
            ranges=ranges(position),
        )
        for position, file in enumerate(manifest.files)
        if position in positions
    }


def load_blocks(store: ObjectStore, manifest: Manifest) -> SortedBlocks | None:
    """Return the blocks of a stage's sorted map files; None where they are not known.

    Raises:
        ManifestError: The index is missing or damaged.
        StorageError: The store failed.
    """
    if manifest.blocks is None:
        return None
    key = manifest.index_key
    try:
        blocks = manifest.blocks
        return reread(store, key, lambda: blocks.read(store, key), (ObjectMissingError, ValueError))
    except ObjectMissingError as error:
        raise ManifestError(manifest.stage_name, store.uri(key), "index not found") from error
    except ValueError as error:
        problem = f"the index of sorted rows is damaged ({error})"
        raise ManifestError(manifest.stage_name, store.uri(key), problem) from error


def _check_files(files: Sequence[MapFile], num_partitions: int, schema: pa.Schema) -> list[MapFile]:
    expected_hash = schema_hash(schema)
    ordered = sorted(files, key=lambda file: file.task_index)
    tasks = [file.task_index for file in ordered]
    if tasks != list(range(len(ordered))):
        raise CommitError(f"a commit needs one file of each task, got files of tasks {tasks}")
    for file in ordered:
        if file.ranges.num_partitions != num_partitions:
            raise CommitError(
                f"map file {file.name} has {file.ranges.num_partitions} partitions, "
                f"expected {num_partitions}"
            )
        if file.schema_hash != expected_hash:
            raise CommitError(
                f"map file {file.name} has other columns than the manifest: {schema.to_string()}"
            )
    return ordered


def _placed(file: ManifestFile, fingerprint: str) -> ManifestFile:
    """The file as the commit of an output names it: a file of its own folder has no other home."""
    return replace(file, home="") if file.home == fingerprint else file


def _totals(
    name: str, files: Sequence[MapFile], partitioning: OutputPartitioning
) -> tuple[int, ...]:
    totals = np.zeros(partitioning.num_partitions, dtype=np.int64)
    for file in files:
        totals[file.ranges.table["partition"]] += file.ranges.table[name]
    return tuple(totals.tolist())


def _content_hash(content: bytes, files: Sequence[MapFile]) -> str:
    digest = hashlib.sha256(content)
    for file in files:
        digest.update(f"{file.name}\n".encode())
    return digest.hexdigest()
