"""Where the blocks of a sorted map file lie, by sort key.

A block is one message of the file, with the ranks of some of its rows (`row_order`), the first and
the last among them. So whoever wants a range of the sort key reads the blocks that overlap it and
cuts the outer ones, and the samples tell where a range must end to be worth so many bytes.

    block 0: ranks 3 … 17    block 1: 17 … 40    block 2: 40 … 58     range [20, 45): blocks 1, 2

The blocks of all files of a stage lie behind its index, as compressed JSON.
"""

from __future__ import annotations

import itertools
import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import google_crc32c

from stagecoach.infra.shuffle.row_order import RowOrder, has_ranks, ranks

if TYPE_CHECKING:
    import pyarrow as pa

    from stagecoach.infra.storage.object_store import ObjectStore

FORMAT_VERSION = 1
BLOCK_BYTES = 2 << 20
"""Target size of a batch of a sorted file before compression: what a range reads in vain."""

_SAMPLES = 8
"""Parts of a block, of about equal rows, whose borders are sampled."""


class Block(NamedTuple):
    """A message of a sorted map file.

    Attributes:
        file: Position of the file in the manifest.
        offset: Where it begins there.
        length: Its bytes.
        rows: Its rows.
        checksum: CRC-32C of its bytes.
    """

    file: int
    offset: int
    length: int
    rows: int
    checksum: int


@dataclass(frozen=True)
class SampledBlock:
    """A block and some of its rows.

    Args:
        block: The block.
        ranks: Of its first row, of some in between at about equal distances, of its last row.
    """

    block: Block
    ranks: tuple[int, ...]


@dataclass(frozen=True)
class SortedBlocks:
    """All blocks of sorted map files.

    Args:
        order: How rows are sorted in each file.
        blocks: File by file, in the order of their rows.
    """

    order: RowOrder
    blocks: tuple[SampledBlock, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain data that JSON can hold."""
        rows = [[*b.block, [f"{rank:x}" for rank in b.ranks]] for b in self.blocks]
        return {"order": self.order.to_list(), "blocks": rows}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> SortedBlocks:
        """The blocks that `to_dict` described."""
        return cls(
            RowOrder.from_list(values["order"]),
            tuple(
                SampledBlock(Block(*row[:-1]), tuple(int(rank, 16) for rank in row[-1]))
                for row in values["blocks"]
            ),
        )


@dataclass(frozen=True)
class SortedRange:
    """The rows of sorted map files whose rank is `low` or more and below `high`.

    Args:
        order: How the files are sorted.
        low: None for all that come first.
        high: None for all that come last.
        blocks: Those that hold such rows, and maybe others.
    """

    order: RowOrder
    low: int | None
    high: int | None
    blocks: tuple[Block, ...]

    @property
    def num_bytes(self) -> int:
        """Stored bytes of the blocks."""
        return sum(block.length for block in self.blocks)

    def to_dict(self) -> dict[str, Any]:
        """Plain data that JSON can hold."""
        bounds = [None if bound is None else f"{bound:x}" for bound in (self.low, self.high)]
        blocks = [list(block) for block in self.blocks]
        return {"order": self.order.to_list(), "bounds": bounds, "blocks": blocks}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> SortedRange:
        """The range that `to_dict` described."""
        low, high = (None if bound is None else int(bound, 16) for bound in values["bounds"])
        blocks = tuple(Block(*block) for block in values["blocks"])
        return cls(RowOrder.from_list(values["order"]), low, high, blocks)

    def rows_of(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The rows of a sorted batch that are in the range, without a copy."""
        column = batch.column(self.order.column)
        start = 0 if self.low is None else _first_from(column, self.low, self.order)
        end = len(column) if self.high is None else _first_from(column, self.high, self.order)
        return batch.slice(start, max(end - start, 0))


@dataclass(frozen=True, kw_only=True)
class BlocksSlice:
    """Where the blocks of map files lie in an index file.

    Attributes:
        version: How they are written.
        offset: Byte position.
        length: Bytes.
        checksum: CRC-32C of these bytes.
    """

    version: int
    offset: int
    length: int
    checksum: int

    @classmethod
    def from_dict(cls, values: Mapping[str, Any] | None) -> BlocksSlice | None:
        """The slice that a manifest describes; None without one, or of another version."""
        if values is None or values["version"] != FORMAT_VERSION:
            return None
        return cls(**values)

    def read(self, store: ObjectStore, key: str) -> SortedBlocks:
        """The blocks that `append_blocks` put there.

        Raises:
            ValueError: The bytes are others.
            StorageError: The store failed, or the index is missing (`ObjectMissingError`).
        """
        content = store.read_bytes(key, self.offset, self.length)
        if google_crc32c.value(content) != self.checksum:
            raise ValueError("checksum mismatch")
        return SortedBlocks.from_dict(json.loads(zlib.decompress(content)))


class BlockSampler:
    """Takes note of the blocks of one map file while it is written."""

    def __init__(self, order: RowOrder) -> None:
        self._order = order
        self._blocks: list[SampledBlock] = []
        self._in_order = True

    def add(self, batch: pa.RecordBatch, offset: int, length: int, checksum: int) -> None:
        """Take the next message of the file.

        Args:
            batch: Its rows, at least one, in plain encodings.
            offset: Where it begins.
            length: Its bytes.
            checksum: CRC-32C of them.
        """
        column = batch.column(self._order.column)
        if not self._in_order or not has_ranks(column.type):
            self._in_order = False
            return
        last = batch.num_rows - 1
        found = ranks(column, [last * i // _SAMPLES for i in range(_SAMPLES + 1)], self._order)
        before = self._blocks[-1].ranks[-1:] if self._blocks else ()
        # Whoever says that rows are sorted may be wrong; a range would lose rows then.
        self._in_order = all(a <= b for a, b in itertools.pairwise((*before, *found)))
        block = Block(0, offset, length, batch.num_rows, checksum)
        self._blocks.append(SampledBlock(block, tuple(found)))

    def result(self) -> SortedBlocks | None:
        """The blocks of the file, numbered as file 0; None where the rows are not in order."""
        return SortedBlocks(self._order, tuple(self._blocks)) if self._in_order else None


def join_files(files: Sequence[SortedBlocks | None]) -> SortedBlocks | None:
    """The blocks of several files, by their position; None unless all are sorted alike."""
    orders = {None if file is None else file.order for file in files}
    order = next(iter(orders), None)
    if len(orders) != 1 or order is None:
        return None
    return SortedBlocks(
        order,
        tuple(
            SampledBlock(found.block._replace(file=position), found.ranks)
            for position, file in enumerate(files)
            if file is not None
            for found in file.blocks
        ),
    )


def append_blocks(
    index: bytes, files: Sequence[SortedBlocks | None]
) -> tuple[bytes, BlocksSlice | None]:
    """The content of an index file, and where in it the blocks of the map files lie, if they do.

    Args:
        index: What it holds besides.
        files: The blocks of each map file, by position.
    """
    found = join_files(files)
    if found is None:
        return index, None
    text = json.dumps(found.to_dict(), separators=(",", ":")).encode()
    content = zlib.compress(text, 1)
    place = BlocksSlice(
        version=FORMAT_VERSION,
        offset=len(index),
        length=len(content),
        checksum=google_crc32c.value(content),
    )
    return index + content, place


def overlapping(
    blocks: Iterable[SampledBlock], low: int | None, high: int | None
) -> tuple[Block, ...]:
    """The blocks that may hold a row of rank `low` or more and below `high`."""
    return tuple(
        found.block
        for found in blocks
        if (low is None or found.ranks[-1] >= low) and (high is None or found.ranks[0] < high)
    )


def _first_from(column: pa.Array, bound: int, order: RowOrder) -> int:
    """Position of the first row of a sorted column with a rank of `bound` or more."""
    low, high = 0, len(column)
    while low < high:
        middle = (low + high) // 2
        if ranks(column, [middle], order)[0] < bound:
            low = middle + 1
        else:
            high = middle
    return low
