"""The manifest: the facts of a commit, and its text in storage.

`manifest.json` is small; the byte ranges lie beside it in a columnar index (Arrow IPC,
partition-major) of which a reader fetches only the slice that it needs. A map file that no manifest
names does not exist. `stagecoach.infra.shuffle.commit` writes manifests and finds them again.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import google_crc32c
import pyarrow as pa

from stagecoach.infra.errors import ShuffleReadError
from stagecoach.infra.shuffle.index import IndexSlice
from stagecoach.infra.shuffle.map_file import Codec, ManifestFile, OutputPartitioning
from stagecoach.infra.shuffle.partitioner import PARTITIONER_VERSION
from stagecoach.infra.shuffle.sorted_blocks import BlocksSlice
from stagecoach.infra.storage import layout
from stagecoach.planner.errors import StagecoachError

FORMAT_VERSION = 2


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
        ancestry: Contents of all stages upstream that it was computed from, by fingerprint: a
            `content_hash` each. Two inputs that disagree must not be joined.
        metrics: What the run measured; free-form plain data, of which no field may be counted on:
            a manifest of another version may have more of them or fewer.
        created_at: When the commit was made, as the caller says (ISO 8601).
        reader: Name of the stage as whoever reads the commit calls it; empty for the writer's. A
            commit is shared by all plans with an equal stage, in which it has other numbers.
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
    ancestry: Mapping[str, str] = field(default_factory=dict)
    partitioner_version: int = PARTITIONER_VERSION
    blocks: BlocksSlice | None = None
    reader: str = field(default="", compare=False)

    @property
    def stage_name(self) -> str:
        """Name of the stage as messages show it."""
        return self.reader or f"{self.query}/stage_{self.stage_id}"

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
        files = [(file.num_bytes, file.num_rows, file.content_checksum) for file in self.files]
        return hashlib.sha256(json.dumps(files).encode()).hexdigest()

    @property
    def index_key(self) -> str:
        """Key of the index file."""
        return layout.shuffle_file(self.fingerprint, self.index_name)

    def file_key(self, file: ManifestFile) -> str:
        """Return the key of one of the map files."""
        return layout.shuffle_file(file.home or self.fingerprint, file.name)

    def file_keys(self) -> list[str]:
        """Return the keys of everything that this commit needs, the manifest last.

        Other commits may need some of the map files, too.
        """
        keys = [self.file_key(file) for file in self.files]
        return [*keys, self.index_key, layout.manifest(self.fingerprint)]

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
            "files": [file.to_dict() for file in self.files],
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
            **({"lineage": dict(self.ancestry)} if self.ancestry else {}),
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
            ancestry=values.get("lineage", {}),
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
            # A damaged number of a format looks like that of another one.
            if (known or checksum is not None) and checksum != _json_checksum(values):
                raise ValueError("checksum mismatch")
            return cls.from_dict(values)
        except (ValueError, KeyError, TypeError, AttributeError, pa.ArrowException) as error:
            raise ManifestError(stage, uri, f"damaged manifest ({error})") from error


def _dump(values: Mapping[str, Any]) -> bytes:
    return json.dumps(values, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


def _json_checksum(values: Mapping[str, Any]) -> int:
    return int(google_crc32c.value(_dump(values)))
