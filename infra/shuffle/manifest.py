"""The manifest: in, the map files of a stage; out, its commit, which makes them exist.

`manifest.json` is small and written last; the byte ranges lie beside it in a columnar index
(Arrow IPC, partition-major) of which a reader fetches only the slice that it needs. A map file
that no manifest names does not exist. Commits may race: every attempt's files and every index have
names of their own, so whichever manifest is there is whole, and the later committer adopts it.

A commit that has lost a file is never removed, because what is there by the time of the removal
may be another, made meanwhile. A mark beside it names the commit that is lost; the next one takes
its place.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import google_crc32c
import pyarrow as pa

from infra.errors import ShuffleReadError
from infra.shuffle import index as index_file
from infra.shuffle.encoding import plain_schema, schema_hash
from infra.shuffle.index import IndexSlice
from infra.shuffle.map_file import Codec, MapFile, OutputPartitioning
from infra.shuffle.partitioner import PARTITIONER_VERSION
from infra.shuffle.sorted_blocks import BlocksSlice, SortedBlocks, append_blocks
from infra.storage import layout
from infra.storage.object_store import ObjectMissingError, ObjectStore
from planner.errors import StagecoachError

FORMAT_VERSION = 1


class ManifestError(ShuffleReadError):
    """The manifest of a stage is missing or damaged, so all of its output is lost."""

    def __init__(self, stage: str, uri: str, problem: str) -> None:
        super().__init__(stage, -1, None, uri, problem)

    def __reduce__(self) -> tuple[type[ManifestError], tuple[str, str, str]]:
        return ManifestError, (self.stage, self.uri, self.problem)

    def __str__(self) -> str:
        return f"lost output of {self.stage}: {self.uri}: {self.problem}; run {self.stage} again"


class ManifestVersionError(StagecoachError):
    """A manifest was written by another version of Stagecoach."""


class CommitError(StagecoachError):
    """The files handed to a commit are not one finished attempt of every task: our bug."""


@dataclass(frozen=True, kw_only=True)
class ManifestFile:
    """One map file of a committed stage; its ranges are in the index.

    Attributes:
        name: File name inside the shuffle prefix.
        task_index: 0-based task that wrote it; also its position in `Manifest.files`.
        attempt: Token of the attempt.
        num_bytes: Size of the file.
        num_rows: Rows in it.
        checksum: CRC-32C of the whole file.
    """

    name: str
    task_index: int
    attempt: str
    num_bytes: int
    num_rows: int
    checksum: int


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """The commit of one stage.

    Attributes:
        fingerprint: Identity of the output, and its place in the store.
        plan_hash: Hash of the stage's plan.
        query: Name of the query.
        stage_id: Stage of the query.
        engine: Engine that ran the fragment.
        schema: Columns of every file.
        partitioning: How rows are divided.
        partitioner_version: Version of the hash.
        codec: Compression of the files.
        files: The map files, in task order.
        partition_rows: Rows of each partition over all files.
        partition_bytes: Bytes of each partition over all files.
        index_name: Name of the index file inside the shuffle prefix.
        index_bytes: Size of the index file.
        index_slices: Where the index of which partitions lies, with checksums.
        blocks: Where the blocks of sorted map files lie in the index file; None without.
        lineage: Contents of all stages upstream that it was computed from, by fingerprint: a
            `content_hash` each. Two inputs that disagree must not be joined.
        metrics: What the run measured; free-form plain data, of which no field may be counted on:
            a manifest of another version may have more of them or fewer.
        created_at: When the commit was made, as the caller says (ISO 8601).
    """

    fingerprint: str
    plan_hash: str
    query: str
    stage_id: int
    engine: str
    schema: pa.Schema
    partitioning: OutputPartitioning
    codec: Codec
    files: tuple[ManifestFile, ...]
    partition_rows: tuple[int, ...]
    partition_bytes: tuple[int, ...]
    index_name: str
    index_bytes: int
    index_slices: tuple[IndexSlice, ...]
    created_at: str
    metrics: Mapping[str, Any] = field(default_factory=dict)
    lineage: Mapping[str, str] = field(default_factory=dict)
    partitioner_version: int = PARTITIONER_VERSION
    blocks: BlocksSlice | None = None

    @property
    def stage_name(self) -> str:
        """Name of the stage as messages show it."""
        return f"{self.query}/stage_{self.stage_id}"

    @property
    def num_rows(self) -> int:
        """Rows of the stage's output."""
        return sum(self.partition_rows)

    @property
    def num_bytes(self) -> int:
        """Bytes of the map files."""
        return sum(file.num_bytes for file in self.files)

    @property
    def num_partitions(self) -> int:
        """Number of partitions."""
        return self.partitioning.num_partitions

    @property
    def manifest_hash(self) -> str:
        """SHA-256 of the manifest's text: what a run pins."""
        return hashlib.sha256(self.to_json()).hexdigest()

    @property
    def content_hash(self) -> str:
        """SHA-256 of what the files hold: equal for two commits with the same rows in place."""
        files = [(file.num_bytes, file.num_rows, file.checksum) for file in self.files]
        return hashlib.sha256(json.dumps(files).encode()).hexdigest()

    def file_keys(self) -> list[str]:
        """Return the keys of everything that this commit owns, the manifest last."""
        names = [file.name for file in self.files] + [self.index_name]
        keys = [layout.shuffle_file(self.fingerprint, name) for name in names]
        return [*keys, layout.manifest(self.fingerprint)]

    def to_dict(self) -> dict[str, Any]:
        """Return plain data; see `FORMAT_VERSION`."""
        return {
            "format_version": FORMAT_VERSION,
            "fingerprint": self.fingerprint,
            "plan_hash": self.plan_hash,
            "query": self.query,
            "stage_id": self.stage_id,
            "engine": self.engine,
            "schema": base64.b64encode(self.schema.serialize().to_pybytes()).decode(),
            "partitioning": self.partitioning.to_dict(),
            "partitioner_version": self.partitioner_version,
            "codec": self.codec,
            "files": [vars(file) for file in self.files],
            "partition_rows": list(self.partition_rows),
            "partition_bytes": list(self.partition_bytes),
            "index": {
                "name": self.index_name,
                "num_bytes": self.index_bytes,
                "slices": [vars(part) for part in self.index_slices],
                **({} if self.blocks is None else {"blocks": vars(self.blocks)}),
            },
            "metrics": dict(self.metrics),
            # Left out where there is none: the hash of an older manifest stays what it was.
            **({"lineage": dict(self.lineage)} if self.lineage else {}),
            "created_at": self.created_at,
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Manifest:
        """Return the manifest that `to_dict` described.

        Raises:
            ManifestVersionError: Another version wrote it.
        """
        version = values.get("format_version")
        if version != FORMAT_VERSION:
            raise ManifestVersionError(
                f"manifest {values.get('fingerprint')!r} has format version {version!r}, "
                f"this Stagecoach reads {FORMAT_VERSION}; "
                "use a newer Stagecoach, or another storage root"
            )
        return cls(
            fingerprint=values["fingerprint"],
            plan_hash=values["plan_hash"],
            query=values["query"],
            stage_id=values["stage_id"],
            engine=values["engine"],
            schema=pa.ipc.read_schema(pa.py_buffer(base64.b64decode(values["schema"]))),
            partitioning=OutputPartitioning.from_dict(values["partitioning"]),
            partitioner_version=values["partitioner_version"],
            codec=values["codec"],
            files=tuple(ManifestFile(**file) for file in values["files"]),
            partition_rows=tuple(values["partition_rows"]),
            partition_bytes=tuple(values["partition_bytes"]),
            index_name=values["index"]["name"],
            index_bytes=values["index"]["num_bytes"],
            index_slices=tuple(IndexSlice(**part) for part in values["index"]["slices"]),
            blocks=BlocksSlice.from_dict(values["index"].get("blocks")),
            metrics=values["metrics"],
            lineage=values.get("lineage", {}),
            created_at=values["created_at"],
        )

    def to_json(self) -> bytes:
        """Return the manifest's text: keys sorted, its own CRC-32C among them."""
        values = self.to_dict()
        values["checksum"] = _json_checksum(values)
        return _dump(values)

    @classmethod
    def from_json(cls, text: bytes, *, stage: str, uri: str) -> Manifest:
        """Return the manifest whose text this is.

        Args:
            text: What `to_json` returned.
            stage: Name of the stage, for the message where the text does not give it.
            uri: Where the text was found, for the message.

        Raises:
            ManifestError: The text is damaged.
            ManifestVersionError: Another version wrote it.
        """
        try:
            values = json.loads(text)
            checksum = values.pop("checksum", None)
            known = values.get("format_version") == FORMAT_VERSION
            if known and checksum != _json_checksum(values):
                raise ValueError("its checksum does not fit")
            return cls.from_dict(values)
        except (ValueError, KeyError, TypeError, AttributeError, pa.ArrowException) as error:
            raise ManifestError(stage, uri, f"damaged manifest ({error})") from error


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
    lineage: Mapping[str, str] | None = None,
) -> Manifest:
    """Make the files of a stage exist and return its manifest, or the one committed before.

    The index is written first and the manifest last. If another process committed the same
    fingerprint in the meantime, its manifest is returned and ours is forgotten; one that is damaged
    or marked as lost is replaced. Where the store ignores put-if-absent the later of two racing
    commits wins; both are whole, and the manifest returned is the one that was there after the
    write.

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
        files=tuple(
            ManifestFile(
                name=file.name,
                task_index=file.task_index,
                attempt=file.attempt,
                num_bytes=file.num_bytes,
                num_rows=file.num_rows,
                checksum=file.checksum,
            )
            for file in ordered
        ),
        partition_rows=_totals([file.ranges.rows for file in ordered], partitioning),
        partition_bytes=_totals([file.ranges.lengths for file in ordered], partitioning),
        index_name=layout.index_name(_content_hash(content, ordered)),
        index_bytes=len(content),
        index_slices=index.slices,
        blocks=blocks,
        metrics=dict(metrics or {}),
        lineage=dict(lineage or {}),
        created_at=created_at,
    )
    store.write_bytes(layout.shuffle_file(fingerprint, manifest.index_name), content)
    key, text = layout.manifest(fingerprint), manifest.to_json()
    store.put_if_absent(key, text)
    existing = _usable(store, manifest)
    if existing is None:
        store.write_bytes(key, text)
        existing = _usable(store, manifest)
    if existing is None:
        raise ManifestError(manifest.stage_name, store.uri(key), "unreadable after its commit")
    return existing


def load_manifest(
    store: ObjectStore, fingerprint: str, *, stage: str | None = None
) -> Manifest | None:
    """Return the committed manifest, or `None` if the stage is not committed.

    Args:
        store: Where to look.
        fingerprint: The stage's fingerprint.
        stage: Name of the stage for error messages; the fingerprint if left out.

    Raises:
        ManifestError: There is a manifest, but it is damaged.
        ManifestVersionError: Another version wrote it.
    """
    key = layout.manifest(fingerprint)
    try:
        text = store.read_bytes(key)
    except ObjectMissingError:
        return None
    name = stage or f"the stage with fingerprint {fingerprint}"
    manifest = Manifest.from_json(text, stage=name, uri=store.uri(key))
    if manifest.fingerprint != fingerprint:
        problem = f"the manifest of another stage (fingerprint {manifest.fingerprint})"
        raise ManifestError(name, store.uri(key), problem)
    return manifest


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
    """Return the index rows of partitions `lo .. hi-1`, partition-major, every file listed.

    Columns: partition, file, offset, length, rows, checksum.

    Raises:
        ManifestError: The index is missing or damaged.
        StorageError: The store failed.
    """
    hi = manifest.num_partitions if hi is None else hi
    key = layout.shuffle_file(manifest.fingerprint, manifest.index_name)
    try:
        return index_file.read_index(
            store, key, manifest.index_slices, num_files=len(manifest.files), lo=lo, hi=hi
        )
    except ObjectMissingError as error:
        raise ManifestError(manifest.stage_name, store.uri(key), "index not found") from error
    except index_file.IndexDamagedError as error:
        raise ManifestError(manifest.stage_name, store.uri(key), str(error)) from error


def load_blocks(store: ObjectStore, manifest: Manifest) -> SortedBlocks | None:
    """Return the blocks of a stage's sorted map files; None where they are not known.

    Raises:
        ManifestError: The index is missing or damaged.
        StorageError: The store failed.
    """
    if manifest.blocks is None:
        return None
    key = layout.shuffle_file(manifest.fingerprint, manifest.index_name)
    try:
        return manifest.blocks.read(store, key)
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
        if len(file.ranges) != num_partitions:
            raise CommitError(
                f"map file {file.name} has {len(file.ranges)} partitions, expected {num_partitions}"
            )
        if file.schema_hash != expected_hash:
            raise CommitError(
                f"map file {file.name} has other columns than the manifest: {schema.to_string()}"
            )
    return ordered


def _totals(
    columns: Sequence[tuple[int, ...]], partitioning: OutputPartitioning
) -> tuple[int, ...]:
    if not columns:
        return (0,) * partitioning.num_partitions
    return tuple(sum(values) for values in zip(*columns, strict=True))


def _content_hash(content: bytes, files: Sequence[MapFile]) -> str:
    digest = hashlib.sha256(content)
    for file in files:
        digest.update(f"{file.name}\n".encode())
    return digest.hexdigest()


def _dump(values: Mapping[str, Any]) -> bytes:
    return json.dumps(values, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


def _json_checksum(values: Mapping[str, Any]) -> int:
    return int(google_crc32c.value(_dump(values)))
