"""Metrics of a written Parquet file as a manifest has them.

    footer ─▶ per column: size, values, NULLs, lowest and highest value ─▶ manifest entry

Values are written as Iceberg's single-value serialisation asks for.

Worker code. Source: https://iceberg.apache.org/spec/#binary-single-value-serialization
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from stagecoach.infra.formats.lake_tables.leaf_statistics import (
    LeafStatistics,
    leaf_statistics,
    short_texts,
)
from stagecoach.infra.formats.mapped_files.columns import MappedColumn
from stagecoach.planner.types import DataType

if TYPE_CHECKING:
    import pyarrow.parquet as pq

MAX_BOUND_LENGTH = 16
"""Characters of texts and bytes of binary values that bounds keep, as in Iceberg's writers."""

_PACKED = {
    "boolean": "<?",
    "int": "<i",
    "date": "<i",
    "bigint": "<q",
    "timestamp": "<q",
    "timestamp_ntz": "<q",
}


def file_metrics(
    metadata: pq.FileMetaData, columns: Sequence[MappedColumn], exact: Collection[int] = ()
) -> dict[str, Any]:
    """Return the metrics of a file as plain data.

    Args:
        metadata: The file's footer.
        columns: Its columns, in the order in which they are stored.
        exact: Ids of columns whose bounds are kept whole, however long they are.

    Returns:
        `columns`: for each leaf its id, stored bytes, values, NULLs or None, and its bounds in hex
        or None; `offsets`: where row groups begin.
    """
    found: list[list[Any]] = []
    for leaf in leaf_statistics(metadata, columns):
        number = leaf.column.field_id
        lower, upper = _bounds(leaf, is_exact=number in exact)
        found.append([number, leaf.num_bytes, leaf.num_values, leaf.null_count, lower, upper])
    return {"columns": found, "offsets": sorted(_offsets(metadata))}


def _bounds(leaf: LeafStatistics, *, is_exact: bool) -> tuple[str | None, str | None]:
    """Lowest and highest value in hex."""
    if leaf.low is None:
        return None, None
    dtype = leaf.column.dtype
    lower = _encoded(leaf.low, dtype)
    upper: bytes | None = _encoded(leaf.high, dtype)
    if not is_exact and dtype.kind in ("string", "binary"):
        lower, upper = _shortened(lower, upper or b"", dtype)
    return lower.hex(), None if upper is None else upper.hex()


def _encoded(value: Any, dtype: DataType) -> bytes:
    if dtype.kind in _PACKED:
        return struct.pack(_PACKED[dtype.kind], value)
    if dtype.is_decimal:
        # The fewest bytes that hold the number and its sign.
        length = ((value if value >= 0 else ~value).bit_length() // 8) + 1
        return int(value).to_bytes(length, "big", signed=True)
    if isinstance(value, bytes):
        return value
    raise TypeError(f"no bounds of {dtype}")


def _shortened(lower: bytes, upper: bytes, dtype: DataType) -> tuple[bytes, bytes | None]:
    """Bounds of limited length: the lower one is cut, the upper one cut and rounded up."""
    if dtype.kind == "string":
        first, last = short_texts(lower.decode(), upper.decode(), MAX_BOUND_LENGTH)
        return first.encode(), None if last is None else last.encode()
    end = upper if len(upper) <= MAX_BOUND_LENGTH else _next_bytes(upper[:MAX_BOUND_LENGTH])
    return lower[:MAX_BOUND_LENGTH], end


def _next_bytes(value: bytes) -> bytes | None:
    kept = value.rstrip(b"\xff")
    return kept[:-1] + bytes([kept[-1] + 1]) if kept else None


def _offsets(metadata: pq.FileMetaData) -> Iterator[int]:
    for group in range(metadata.num_row_groups):
        first = metadata.row_group(group).column(0)
        offset = first.data_page_offset
        if first.dictionary_page_offset is not None:
            offset = min(offset, first.dictionary_page_offset)
        yield offset
