"""What the footer of a written Parquet file says of its columns, for the table's own statistics.

Readers rule files out by such values, and whole files are dropped by them, so what is not certain
is left out: bounds of floating-point columns, since Parquet does not count NaN and some readers
take a missing count for none; and all but sizes of members of lists and maps.

Worker code.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stagecoach.infra.formats.mapped_files.columns import MappedColumn
from stagecoach.planner.types import DataType

if TYPE_CHECKING:
    import pyarrow.parquet as pq


@dataclass(frozen=True, kw_only=True)
class LeafStatistics:
    """A column of the file, or a member of one that Parquet stores by itself.

    Attributes:
        column: The column or member.
        path: Its name below those of the structs that it is in.
        is_repeated: Whether it is in a list or map, so that a row may have several values.
        num_bytes: Stored bytes.
        num_values: Values, with NULLs.
        null_count: NULLs; None if it is not known.
        low: Lowest value as Parquet has it, decimals as whole numbers; None for none or unknown.
        high: Highest value.
    """

    column: MappedColumn
    path: tuple[str, ...]
    is_repeated: bool
    num_bytes: int
    num_values: int
    null_count: int | None = None
    low: Any = None
    high: Any = None


def leaf_statistics(
    metadata: pq.FileMetaData, columns: Sequence[MappedColumn]
) -> list[LeafStatistics]:
    """Return what a footer says of each stored column.

    Args:
        metadata: The file's footer.
        columns: Its columns, in the order in which they are stored.
    """
    found = []
    for position, (column, path, is_repeated) in enumerate(_leaves(columns, (), False)):
        chunks = [
            metadata.row_group(group).column(position) for group in range(metadata.num_row_groups)
        ]
        nulls, low, high = (None, None, None) if is_repeated else _counts(chunks, column.dtype)
        found.append(
            LeafStatistics(
                column=column,
                path=path,
                is_repeated=is_repeated,
                num_bytes=sum(chunk.total_compressed_size for chunk in chunks),
                num_values=sum(chunk.num_values for chunk in chunks),
                null_count=nulls,
                low=low,
                high=high,
            )
        )
    return found


def short_texts(low: str, high: str, length: int) -> tuple[str, str | None]:
    """Return bounds of limited length: the lower one is cut, the upper one cut and rounded up.

    Args:
        low: Lowest value.
        high: Highest value.
        length: The most characters.

    Returns:
        The bounds; None where nothing so short is above the highest value.
    """
    upper: str | None = high
    if len(high) > length:
        upper = _next_text(high[:length])
    return low[:length], upper


def _next_text(text: str) -> str | None:
    """The least text that is above all that begin with `text`; None if there is none."""
    for end in range(len(text), 0, -1):
        point = ord(text[end - 1]) + 1
        if 0xD800 <= point <= 0xDFFF:
            point = 0xE000  # surrogates are no characters
        if point <= 0x10FFFF:
            return text[: end - 1] + chr(point)
    return None


def _leaves(
    columns: Sequence[MappedColumn], above: tuple[str, ...], is_repeated: bool
) -> Iterator[tuple[MappedColumn, tuple[str, ...], bool]]:
    """Columns that Parquet stores, in its order, and whether a row may have several values."""
    for column in columns:
        path = (*above, column.name)
        if column.members:
            inner = is_repeated or column.dtype.kind in ("array", "map")
            yield from _leaves(column.members, path, inner)
        else:
            yield column, path, is_repeated


def _counts(chunks: Sequence[Any], dtype: DataType) -> tuple[int | None, Any, Any]:
    """NULLs, lowest and highest value of a column."""
    nulls, lows, highs = 0, [], []
    has_bounds = not dtype.is_floating
    for chunk in chunks:
        found = chunk.statistics
        if found is None or not found.has_null_count:
            return None, None, None
        nulls += found.null_count
        if found.null_count == chunk.num_values:
            continue
        has_bounds = has_bounds and found.has_min_max
        if has_bounds:
            lows.append(_comparable(found.min_raw, dtype))
            highs.append(_comparable(found.max_raw, dtype))
    if not has_bounds or not lows:
        return nulls, None, None
    return nulls, min(lows), max(highs)


def _comparable(raw: Any, dtype: DataType) -> Any:
    """A stored value so that Python orders it as the formats do."""
    if dtype.is_decimal and isinstance(raw, bytes):
        return int.from_bytes(raw, "big", signed=True)
    return raw
