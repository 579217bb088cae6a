"""One Parquet file's footer → schema, row counts and column summaries.

Only the last bytes of the file are read: one request on S3 unless the footer is larger than 64 KiB.

Worker code.
"""

from __future__ import annotations

import hashlib
import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from stagecoach.infra.reading.column_summary import ColumnSummary, merge_summaries
from stagecoach.infra.reading.data_file import StoredTypes
from stagecoach.infra.reading.file_bounds import StoredBounds, stored_bounds
from stagecoach.infra.reading.parquet_types import (
    StoredColumn,
    file_native_reason,
    logical_type,
    stored_columns,
)
from stagecoach.infra.storage.object_store import ObjectChangedError, StorageOptions
from stagecoach.infra.storage.table_files import FileEntry, read_tail
from stagecoach.planner.catalog import StatValue
from stagecoach.planner.errors import CatalogError
from stagecoach.planner.types import Field

log = logging.getLogger(__name__)

_MAGIC = b"PAR1"
_ENCRYPTED_MAGIC = b"PARE"
_TAIL_BYTES = 64 << 10
_TRAILER_BYTES = 8  # footer length and magic
_PAGE_HEADER_BYTES = 14  # a dictionary page's header, roughly
_CHUNK_HEADER_BYTES = 60  # the headers of a dictionary page and a data page, roughly
_PLAIN_WIDTHS = {"INT32": 4, "INT64": 8, "FLOAT": 4, "DOUBLE": 8}
_MICROS = {"milliseconds": 1000, "microseconds": 1}
_LAST = {"date": (1 << 31) - 1, "timestamp": (1 << 63) - 1, "timestamp_ntz": (1 << 63) - 1}


@dataclass(frozen=True, kw_only=True)
class FileFooter:
    """What a footer says: the schema and the statistics, of which a `DataFile` keeps only bounds.

    Attributes:
        entry: The file, as it was when its footer was read.
        checksum: SHA-256 of the footer, 32 hex digits.
        num_rows: Rows of the file.
        row_groups: Rows of each row group.
        columns: Top-level columns in file order.
        storage: How each column is stored, to compare files; None for a column in `stored_types`.
        summaries: Statistics of each column.
        native_reason: Why DuckDB must not read the file, or None where it may.
        column_checksums: Checksums of its column chunks, which a published table's version keeps;
            empty for any other file.
        stored_types: Where the columns are those of a table: how the file's differ, as `DataFile`
            has it.
    """

    entry: FileEntry
    checksum: str
    num_rows: int
    row_groups: tuple[int, ...]
    columns: tuple[Field, ...]
    storage: tuple[str | None, ...]
    summaries: tuple[ColumnSummary, ...]
    native_reason: str | None = None
    column_checksums: str = ""
    stored_types: StoredTypes = ()


def read_footer(entry: FileEntry, options: StorageOptions | None = None) -> FileFooter:
    """Return the footer of a file.

    Raises:
        CatalogError: The file is gone, is no Parquet file, is cut short or encrypted, or has a
            column that Spark refuses. The message names the file.
        StorageError: The storage refused.
    """
    try:
        entry, raw = _footer_bytes(entry, options)
        metadata = pq.read_metadata(pa.BufferReader(_MAGIC + raw + _trailer(raw)))
        columns = stored_columns(metadata)
        groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
        summaries = tuple(_summarize(metadata.schema, groups, column) for column in columns)
        return FileFooter(
            entry=entry,
            checksum=hashlib.sha256(raw).hexdigest()[:32],
            num_rows=metadata.num_rows,
            row_groups=tuple(group.num_rows for group in groups),
            columns=tuple(column.field for column in columns),
            storage=tuple(column.storage for column in columns),
            summaries=summaries,
            native_reason=file_native_reason(metadata, columns) or _endless(columns, summaries),
        )
    except FileNotFoundError:
        raise CatalogError(f"{entry.uri}: the file vanished; run again, or restore it") from None
    except ObjectChangedError:
        raise CatalogError(f"{entry.uri}: the file was replaced just now; run again") from None
    except CatalogError as error:
        raise CatalogError(f"{entry.uri}: {error}") from error
    except (pa.ArrowException, OSError, ValueError) as error:
        raise CatalogError(
            f"{entry.uri}: its Parquet footer cannot be read ({error}); write the file again"
        ) from error


def read_group_bounds(
    entry: FileEntry, names: Sequence[str], options: StorageOptions | None = None
) -> tuple[str, tuple[tuple[StoredBounds, ...], ...]]:
    """Return the checksum of a file's footer, and bounds of some columns in each row group.

    Args:
        entry: The file.
        names: The columns, as the file spells them.
        options: How to reach S3.

    Raises:
        CatalogError: The file is gone or is no Parquet file, or a column has another type now.
        StorageError: The storage refused.
    """
    try:
        _, raw = _footer_bytes(entry, options)
        metadata = pq.read_metadata(pa.BufferReader(_MAGIC + raw + _trailer(raw)))
        known = {column.field.name: column for column in stored_columns(metadata)}
        bounds = group_bounds(metadata, [known[name] for name in names])
        return hashlib.sha256(raw).hexdigest()[:32], bounds
    except (
        FileNotFoundError,
        ObjectChangedError,
        KeyError,
        pa.ArrowException,
        ValueError,
    ) as error:
        raise CatalogError(f"{entry.uri}: its footer cannot be read ({error})") from error


def group_bounds(
    metadata: pq.FileMetaData, columns: Sequence[StoredColumn]
) -> tuple[tuple[StoredBounds, ...], ...]:
    """Bounds of some columns of a file in each of its row groups."""
    fields = [column.field for column in columns]
    groups = (metadata.row_group(i) for i in range(metadata.num_row_groups))
    return tuple(
        stored_bounds(fields, [_summarize(metadata.schema, [group], c) for c in columns])
        for group in groups
    )


def _footer_bytes(entry: FileEntry, options: StorageOptions | None) -> tuple[FileEntry, bytes]:
    entry, tail = read_tail(entry, _TAIL_BYTES, options)
    if not tail:
        raise CatalogError("the file is empty (0 bytes); remove it or write it again")
    magic = tail[-4:]
    if magic == _ENCRYPTED_MAGIC:
        raise CatalogError("the file is encrypted, which is not supported; write it in the clear")
    if magic != _MAGIC or len(tail) < _TRAILER_BYTES + len(_MAGIC):
        raise CatalogError(
            "not a Parquet file, or cut short (it does not end in PAR1); "
            "remove it from the table's folder or write it again"
        )
    length = int.from_bytes(tail[-8:-4], "little")
    if length + _TRAILER_BYTES + len(_MAGIC) > entry.num_bytes:
        raise CatalogError(
            f"cut short: the footer says {length} bytes, the file has {entry.num_bytes}; "
            "write it again"
        )
    if length + _TRAILER_BYTES > len(tail):
        entry, tail = read_tail(entry, length + _TRAILER_BYTES, options)
    return entry, tail[-length - _TRAILER_BYTES : -_TRAILER_BYTES]


def _trailer(raw: bytes) -> bytes:
    return len(raw).to_bytes(4, "little") + _MAGIC


def _endless(columns: Sequence[StoredColumn], summaries: Sequence[ColumnSummary]) -> str | None:
    """Why DuckDB must not read a file with the first or last dates: they are infinity to it."""
    for column, summary in zip(columns, summaries, strict=True):
        last = _LAST.get(column.field.dtype.kind)
        bounds = (summary.min_value, summary.max_value)
        if last and any(isinstance(bound, int) and abs(bound) >= last for bound in bounds):
            return f"the first or last {column.field.dtype} that there is, infinity to DuckDB"
    return None


def _summarize(schema: Any, groups: list[Any], column: StoredColumn) -> ColumnSummary:
    """Summary of one top-level column; of a nested one only its size."""
    dtype = column.field.dtype
    if column.num_leaves == 1 and dtype.is_atomic and not dtype.is_only_sparks:
        leaf = schema.column(column.first_leaf)
        return merge_summaries(
            [
                _chunk_summary(leaf, group.column(column.first_leaf), group.num_rows)
                for group in groups
            ]
        )
    leaves = range(column.first_leaf, column.first_leaf + column.num_leaves)
    return ColumnSummary(
        num_rows=sum(group.num_rows for group in groups),
        num_bytes=sum(g.column(i).total_uncompressed_size for g in groups for i in leaves),
    )


def _chunk_summary(leaf: Any, chunk: Any, num_rows: int) -> ColumnSummary:
    statistics = chunk.statistics
    null_count: int | None = None
    bounds: tuple[StatValue, StatValue] | None = None
    if num_rows == 0 or logical_type(leaf)["Type"] == "Null":
        null_count = num_rows
    elif statistics is not None:
        null_count = statistics.null_count if statistics.has_null_count else None
        bounds = _bounds(leaf, statistics) if statistics.has_min_max else None
    distinct = None if null_count == num_rows else _dictionary_length(leaf, chunk, bounds)
    return ColumnSummary(
        num_rows=num_rows,
        num_bytes=chunk.total_uncompressed_size,
        null_count=null_count,
        min_value=bounds[0] if bounds else None,
        max_value=bounds[1] if bounds else None,
        distinct_count=distinct,
    )


def _bounds(leaf: Any, statistics: Any) -> tuple[StatValue, StatValue] | None:
    """Smallest and largest value in the units of `ColumnStats`; None where there are none.

    A NaN in the bounds makes them useless. Bounds without NaN say nothing of NaN in the column:
    most writers leave NaN out, though it is the largest value to Spark.
    """
    logical = logical_type(leaf)
    try:
        match logical["Type"], leaf.physical_type:
            case "Date", _:
                return statistics.min_raw, statistics.max_raw
            case "Timestamp", _:
                scale = _MICROS[logical["timeUnit"]]
                return statistics.min_raw * scale, statistics.max_raw * scale
            case "Decimal", _:
                return float(statistics.min), float(statistics.max)
            case (("String" | "Enum" | "JSON"), _):
                return _text(statistics.min), _text(statistics.max)
            case _, ("BOOLEAN" | "INT32" | "INT64"):
                return int(statistics.min), int(statistics.max)
            case _, ("FLOAT" | "DOUBLE"):
                low, high = float(statistics.min), float(statistics.max)
                return None if math.isnan(low) or math.isnan(high) else (low, high)
    except (ValueError, OverflowError, pa.ArrowException) as error:
        # A string bound cut inside a character, say: the column has no bounds then.
        log.debug("statistics of %s cannot be read: %s", leaf.path, error)
    return None


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value


def _dictionary_length(
    leaf: Any,
    chunk: Any,
    bounds: tuple[StatValue, StatValue] | None,
) -> int | None:
    """Estimated number of entries in a chunk's dictionary; None without a complete one.

    The footer has the dictionary page's compressed size only (the offsets' difference). Two
    estimates come from it: that size times the chunk's mean compression ratio, which is too low
    where entries compress better than indices, and what entries and bit-packed indices of the
    chunk's uncompressed size leave room for, which is too low where runs shorten the indices. The
    larger one counts. Strings are taken to be as long as the mean of the bounds. Where the indices
    would take more than 3 bytes a value, the writer gave the dictionary up and wrote plain values.
    """
    width = _plain_width(leaf, bounds)
    if not chunk.has_dictionary_page or width is None or not chunk.total_compressed_size:
        return None
    page_bytes = chunk.data_page_offset - chunk.dictionary_page_offset - _PAGE_HEADER_BYTES
    if page_bytes < 0:
        return None
    ratio = chunk.total_uncompressed_size / chunk.total_compressed_size
    length = page_bytes * max(1.0, ratio) / width
    if chunk.total_uncompressed_size - length * width > 3 * chunk.num_values + 1024:
        return None
    if chunk.compression != "UNCOMPRESSED":
        length = max(length, _length_by_size(chunk, width))
    return max(1, min(round(length), chunk.num_values))


def _length_by_size(chunk: Any, width: float) -> float:
    """The `d` for which `d` entries and as many indices of `log2(d)` bits fill the chunk."""
    filled = chunk.total_uncompressed_size - _CHUNK_HEADER_BYTES
    for bits in range(33):
        length = (filled - chunk.num_values * bits / 8) / width
        if length <= 2**bits:
            return max(length, 2**bits / 2)
    return 0.0


def _plain_width(leaf: Any, bounds: tuple[StatValue, StatValue] | None) -> float | None:
    """Bytes that one value takes in a dictionary page."""
    if leaf.physical_type == "FIXED_LEN_BYTE_ARRAY":
        return float(leaf.length)
    if leaf.physical_type == "BYTE_ARRAY":
        if bounds is None or not isinstance(bounds[0], str) or not isinstance(bounds[1], str):
            return None
        return 4 + (len(bounds[0].encode()) + len(bounds[1].encode())) / 2
    return _PLAIN_WIDTHS.get(leaf.physical_type)
