"""What a map task reports of its file, as plain data for a manifest.

`OutputPartitioning` says how a stage's rows are divided; `MapFile` says where each partition lies
in the file that one attempt of one task wrote.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal

from stagecoach.infra.shuffle.partition_ranges import PartitionRanges
from stagecoach.infra.shuffle.partitioner import MAX_PARTITIONS, PartitionKeyError
from stagecoach.infra.shuffle.sorted_blocks import SortedBlocks

PartitioningKind = Literal["shuffle", "broadcast", "gather"]
Codec = Literal["none", "lz4", "zstd"]


@dataclass(frozen=True, kw_only=True)
class OutputPartitioning:
    """How the rows of a stage's output are divided.

    Attributes:
        kind: `shuffle` by key hash, or row after row in turn if there are no keys; `broadcast` and
            `gather` have one partition in input order.
        keys: Positions of the key columns; empty unless `shuffle`.
        num_partitions: How many partitions; 1 unless `shuffle`.
    """

    kind: PartitioningKind = "gather"
    keys: tuple[int, ...] = ()
    num_partitions: int = 1

    def __post_init__(self) -> None:
        if not 1 <= self.num_partitions <= MAX_PARTITIONS:
            raise PartitionKeyError(
                f"num_partitions is {self.num_partitions}; "
                f"it must be between 1 and {MAX_PARTITIONS}"
            )
        if self.num_partitions > 1 and self.kind != "shuffle":
            raise PartitionKeyError(
                f"{self.num_partitions} partitions of kind {self.kind!r}: only a shuffle has more "
                "than one partition"
            )

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "kind": self.kind,
            "keys": list(self.keys),
            "num_partitions": self.num_partitions,
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> OutputPartitioning:
        """Return the partitioning that `to_dict` described."""
        return cls(
            kind=values["kind"],
            keys=tuple(values["keys"]),
            num_partitions=values["num_partitions"],
        )


@dataclass(frozen=True, kw_only=True)
class ManifestFile:
    """What a manifest says of a map file: its fields are stored, its ranges are in the index.

    Attributes:
        name: File name inside the stage's shuffle prefix.
        task_index: 0-based task that wrote it; also its position in `Manifest.files`.
        attempt: Token that makes the file unique (`layout.new_attempt`).
        num_bytes: Size of the whole file.
        num_rows: Rows of all partitions.
        checksum: CRC-32C of the whole file.
        content_checksum: Equal for two files of the same rows in place, whatever their names.
        task_fingerprint: Identity of the rows, by all that the task was told; empty where no other
            commit may take the file over.
        home: Output in whose folder the file lies, taken over from an earlier commit; empty for a
            file in the folder of the output itself.
    """

    name: str
    task_index: int
    attempt: str
    num_bytes: int
    num_rows: int
    checksum: int
    content_checksum: int
    task_fingerprint: str = ""
    home: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return plain data without what is empty, so that the text of older manifests stays."""
        return {name: getattr(self, name) for name in _STORED if getattr(self, name) != ""}


_STORED = [field.name for field in fields(ManifestFile)]


@dataclass(frozen=True, kw_only=True)
class MapFile(ManifestFile):
    """One finished Arrow IPC file of one attempt of one task.

    Attributes:
        schema_hash: Hash of the columns in it; a commit checks that all files agree.
        ranges: Where each partition lies.
        spilled_bytes: Bytes that the writer spilled to local disk on the way.
        blocks: Where which rows of a sorted file lie; None for any other.
    """

    schema_hash: str
    ranges: PartitionRanges
    spilled_bytes: int = 0
    blocks: SortedBlocks | None = None

    def for_manifest(self) -> ManifestFile:
        """Return what a manifest says of it."""
        return ManifestFile(**self._stored())

    def _stored(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in _STORED}

    def to_dict(self) -> dict[str, Any]:
        """Return plain data that JSON can hold."""
        return {
            **self._stored(),
            "schema_hash": self.schema_hash,
            "spilled_bytes": self.spilled_bytes,
            "ranges": self.ranges.to_dict(),
            "blocks": None if self.blocks is None else self.blocks.to_dict(),
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> MapFile:
        """Return the map file that `to_dict` described."""
        blocks = values.get("blocks")
        return cls(
            **{name: values[name] for name in _STORED if name in values},
            schema_hash=values["schema_hash"],
            spilled_bytes=values.get("spilled_bytes", 0),
            ranges=PartitionRanges.from_dict(values["ranges"]),
            blocks=None if blocks is None else SortedBlocks.from_dict(blocks),
        )
