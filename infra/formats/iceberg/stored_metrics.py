"""Metrics of a written Parquet file as a manifest has them, from the file's own statistics.

    footer ─▶ per column: size, values, NULLs, lowest and highest value ─▶ manifest entry

Values are written as Iceberg's single-value serialisation asks for. Readers rule files out by them,
and whole files are dropped by them, so what is not certain is left out: bounds of floating-point
columns, since Parquet does not count NaN and some readers take a missing count for none; and all
but sizes of members of lists and maps.

Worker code. Source: https://iceberg.apache.org/spec/#binary-single-value-serialization
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any

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
    for position, (column, is_repeated) in enumerate(_leaves(columns, False)):
        chunks = [
            metadata.row_group(group).column(position) for group in range(metadata.num_row_groups)
        ]
        size = sum(chunk.total_compressed_size for chunk in chunks)
        values = sum(chunk.num_values for chunk in chunks)
        counts: list[Any] = [None, None, None]
        if not is_repeated:
            counts = _counts(chunks, column, is_exact=column.field_id in exact)
        found.append([column.field_id, size, values, *counts])
    return {"columns": found, "offsets": sorted(_offsets(metadata))}


def _leaves(
    columns: Sequence[MappedColumn], is_repeated: bool
) -> Iterator[tuple[MappedColumn, bool]]:
    """Columns that Parquet stores, in its order, and whether a row may have several values."""
    for column in columns:
        if column.members:
            inner = is_repeated or column.dtype.kind in ("array", "map")
            yield from _leaves(column.members, inner)
        else:
            yield column, is_repeated


def _counts(chunks: Sequence[Any], column: MappedColumn, *, is_exact: bool) -> list[Any]:
    """NULLs, lowest and highest value of a column."""
    nulls = 0
    low: Any = None
    high: Any = None
    for chunk in chunks:
        found = chunk.statistics
        if found is None or not found.has_null_count:
            return [None, None, None]
        nulls += found.null_count
        if found.null_count == chunk.num_values:
            continue
        if not found.has_min_max:
            low = high = _UNKNOWN
        if low is _UNKNOWN:
            continue
        first, last = (_comparable(v, column.dtype) for v in (found.min_raw, found.max_raw))
        low = first if low is None else min(low, first)
        high = last if high is None else max(high, last)
    if low is None or low is _UNKNOWN or column.dtype.is_floating:
        return [nulls, None, None]
    lower = _encoded(low, column.dtype)
    upper: bytes | None = _encoded(high, column.dtype)
    if not is_exact and column.dtype.kind in ("string", "binary"):
        lower, upper = _shortened(lower, upper, column.dtype)
    return [nulls, lower.hex(), None if upper is None else upper.hex()]


_UNKNOWN = object()


def _comparable(raw: Any, dtype: DataType) -> Any:
    """A stored value so that Python orders it as Iceberg does."""
    if dtype.is_decimal and isinstance(raw, bytes):
        return int.from_bytes(raw, "big", signed=True)
    return raw


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


def _shortened(lower: bytes, upper: bytes | None, dtype: DataType) -> tuple[bytes, bytes | None]:
    """Bounds of limited length: the lower one is cut, the upper one cut and rounded up."""
    if dtype.kind == "string":
        first, last = lower.decode(), (upper or b"").decode()
        if len(last) > MAX_BOUND_LENGTH:
            rounded = _next_text(last[:MAX_BOUND_LENGTH])
            upper = None if rounded is None else rounded.encode()
        return first[:MAX_BOUND_LENGTH].encode(), upper
    if upper is not None and len(upper) > MAX_BOUND_LENGTH:
        upper = _next_bytes(upper[:MAX_BOUND_LENGTH])
    return lower[:MAX_BOUND_LENGTH], upper


def _next_text(text: str) -> str | None:
    """The least text that is above all that begin with `text`; None if there is none."""
    for end in range(len(text), 0, -1):
        point = ord(text[end - 1]) + 1
        if 0xD800 <= point <= 0xDFFF:
            point = 0xE000  # surrogates are no characters
        if point <= 0x10FFFF:
            return text[: end - 1] + chr(point)
    return None


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
