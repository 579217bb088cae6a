"""Where the partitions of one map file lie.

Only partitions with rows are listed. A file of a shuffle in two levels has rows of few of all the
partitions, and a stage of many map files would otherwise list mostly nothing. A partition cannot
get lost that way: a manifest counts the rows of each.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

RANGE = np.dtype(
    [
        ("partition", "<i4"),
        ("offset", "<i8"),
        ("length", "<i8"),
        ("rows", "<i8"),
        ("checksum", "<u4"),
    ]
)
"""One range: its partition, its byte position and bytes in the file, its rows, their CRC-32C."""


@dataclass(frozen=True)
class PartitionRanges:
    """Byte range, rows and checksum of each partition of one map file that has rows.

    Args:
        num_partitions: Partitions of the file, those without rows included.
        packed: An array of `RANGE`, by ascending partition. As bytes it takes 32 bytes a range;
            a driver holds those of all files of a stage.
    """

    num_partitions: int
    packed: bytes

    @classmethod
    def of(
        cls,
        offsets: Sequence[int],
        lengths: Sequence[int],
        rows: Sequence[int],
        checksums: Sequence[int],
    ) -> PartitionRanges:
        """Return the ranges of a file whose columns list every partition."""
        dense = np.empty(len(rows), dtype=RANGE)
        dense["partition"] = np.arange(len(rows))
        for name, column in zip(
            ("offset", "length", "rows", "checksum"),
            (offsets, lengths, rows, checksums),
            strict=True,
        ):
            dense[name] = column
        return cls(len(rows), dense[dense["length"] > 0].tobytes())

    @property
    def table(self) -> npt.NDArray[np.void]:
        """The ranges, an array of `RANGE`."""
        return np.frombuffer(self.packed, dtype=RANGE)

    def column(self, name: str) -> tuple[int, ...]:
        """Return a field of `RANGE` for every partition, 0 where there are no rows."""
        dense = np.zeros(self.num_partitions, dtype=np.int64)
        dense[self.table["partition"]] = self.table[name]
        return tuple(dense.tolist())

    def to_dict(self) -> dict[str, Any]:
        """Return plain data that JSON can hold."""
        return {
            "num_partitions": self.num_partitions,
            "packed": base64.b64encode(self.packed).decode(),
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> PartitionRanges:
        """Return the ranges that `to_dict` described."""
        return cls(values["num_partitions"], base64.b64decode(values["packed"]))
