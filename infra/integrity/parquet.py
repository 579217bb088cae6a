"""One Parquet file, checked: its footer, and any of its column chunks.

Worker code. `find_damage` checks a file completely; readers use the parts that it is made of. The
checksums of column chunks are those of the table's version; a file without them (a user's own) is
checked by the checksums of its pages, if it has any.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import google_crc32c
import pyarrow as pa
import pyarrow.parquet as pq

from stagecoach.infra.integrity.checksums import pack_chunks, unpack_chunks
from stagecoach.infra.integrity.pages import PageError, check_pages

_MAGIC = b"PAR1"
_TRAILER_BYTES = 8  # length of the footer, and the magic
_TAIL_BYTES = 64 << 10
LOCAL_PIECE_BYTES = 256 << 10
"""Read at once of a local file: what is copied from the page cache stays in the processor's own."""
REMOTE_PIECE_BYTES = 8 << 20


class Reader(Protocol):
    """What a file is read through: `pa.NativeFile`, or `LocalReader`."""

    def read_at(self, nbytes: int, offset: int) -> bytes:
        """Some bytes; fewer where the file ends."""
        ...


@dataclass(frozen=True)
class Damage:
    """A part of a file that is not what was written.

    Args:
        problem: What is wrong, as a phrase.
        column: The column, if the bytes belong to one.
        row_group: 0-based number of the row group or record batch, or None.
    """

    problem: str
    column: str = ""
    row_group: int | None = None


class FooterError(Exception):
    """A footer is not the one that was written, or cannot be read."""


class FooterChangedError(FooterError):
    """A footer is not the one that is known of the file."""


@dataclass(frozen=True)
class ColumnChunk:
    """Where the bytes of a column in a row group are.

    Args:
        index: Its number in the file, row group by row group.
        row_group: 0-based number of the row group.
        column: Path of the column in the file's schema.
        start: First byte.
        end: The byte after the last one.
    """

    index: int
    row_group: int
    column: str
    start: int
    end: int


def read_footer(reader: Reader, num_bytes: int, checksum: str = "") -> pq.FileMetaData:
    """Return the footer of a file.

    Args:
        reader: The file.
        num_bytes: Its size.
        checksum: SHA-256 of the footer, 32 hex digits; empty if it is not known.

    Raises:
        FooterChangedError: It is another footer.
        FooterError: It cannot be read.
    """
    raw = footer_bytes(reader, num_bytes)
    if checksum and footer_checksum(raw) != checksum:
        raise FooterChangedError("its footer does not have its checksum")
    try:
        trailer = len(raw).to_bytes(4, "little") + _MAGIC
        return pq.read_metadata(pa.BufferReader(_MAGIC + raw + trailer))
    except (pa.ArrowException, OSError) as error:
        raise FooterError(f"its footer cannot be read ({error})") from error


def footer_bytes(reader: Reader, num_bytes: int) -> bytes:
    """Return the bytes of a file's footer.

    Raises:
        FooterError: The last bytes of the file are not those of a Parquet file.
    """
    start = max(0, num_bytes - _TAIL_BYTES)
    tail = bytes(reader.read_at(num_bytes - start, start))
    length = int.from_bytes(tail[-_TRAILER_BYTES:-4], "little")
    if tail[-4:] != _MAGIC or length + _TRAILER_BYTES + len(_MAGIC) > num_bytes:
        raise FooterError("it does not end as a Parquet file does")
    if length + _TRAILER_BYTES > len(tail):
        start = num_bytes - length - _TRAILER_BYTES
        tail = bytes(reader.read_at(length + _TRAILER_BYTES, start))
    return tail[-length - _TRAILER_BYTES : -_TRAILER_BYTES]


def footer_checksum(raw: bytes) -> str:
    """Return the checksum of a footer, as versions and snapshots keep it."""
    return hashlib.sha256(raw).hexdigest()[:32]


def column_chunks(
    metadata: pq.FileMetaData,
    columns: Collection[str] | None = None,
    rows: Sequence[tuple[int, int]] | None = None,
) -> Iterator[ColumnChunk]:
    """Yield the column chunks of a file.

    Args:
        metadata: Its footer.
        columns: Top-level columns, in any case; None for all.
        rows: Ranges of rows; None for all.
    """
    paths = [metadata.schema.column(i).path for i in range(metadata.num_columns)]
    chosen = range(len(paths)) if columns is None else _leaves(paths, columns)
    first = 0
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        end = first + group.num_rows
        if rows is None or any(low < end and high > first for low, high in rows):
            for leaf in chosen:
                start, stop = chunk_range(group.column(leaf))
                yield ColumnChunk(number * len(paths) + leaf, number, paths[leaf], start, stop)
        first = end


def _leaves(paths: Sequence[str], columns: Collection[str]) -> list[int]:
    names = {name.lower() for name in columns}
    inner = tuple(f"{name}." for name in names)
    lowered = [path.lower() for path in paths]
    return [i for i, path in enumerate(lowered) if path in names or path.startswith(inner)]


def chunk_range(chunk: Any) -> tuple[int, int]:
    """First byte of a column chunk (of pyarrow's metadata), and the byte after its last one."""
    start = chunk.data_page_offset
    if chunk.has_dictionary_page and chunk.dictionary_page_offset:
        start = min(start, chunk.dictionary_page_offset)
    return start, start + chunk.total_compressed_size


def range_checksum(reader: Reader, start: int, end: int, piece_bytes: int) -> int:
    """CRC-32C of a range of a file; of what there is of it where the file ends within."""
    checksum = 0
    for low in range(start, end, piece_bytes):
        checksum = google_crc32c.extend(checksum, reader.read_at(min(piece_bytes, end - low), low))
    return checksum


def chunk_problem(
    reader: Reader, chunk: ColumnChunk, checksum: int | None, piece_bytes: int
) -> str | None:
    """What is wrong with a column chunk as a phrase, or None.

    Args:
        reader: The file.
        chunk: The column chunk.
        checksum: Its CRC-32C; None to look at the checksums of its pages, if it has any.
        piece_bytes: How much is read at once.
    """
    if checksum is not None:
        found = range_checksum(reader, chunk.start, chunk.end, piece_bytes)
        return None if found == checksum else checksum_problem(found, checksum)
    try:
        check_pages(lambda offset, length: reader.read_at(length, offset), chunk.start, chunk.end)
    except PageError as error:
        return str(error)
    return None


def checksum_problem(found: int, expected: int) -> str:
    """Two different checksums as a phrase."""
    return f"checksum mismatch: {found:08x} instead of {expected:08x}"


def find_damage(
    reader: Reader,
    num_bytes: int,
    *,
    footer: str = "",
    checksums: str = "",
    piece_bytes: int = REMOTE_PIECE_BYTES,
) -> Iterator[Damage]:
    """Check a whole file and yield what is wrong with it.

    Args:
        reader: The file.
        num_bytes: Its size as it should be.
        footer: Checksum of its footer; empty if it is not known.
        checksums: Those of its column chunks as `pack_chunks` packs them; empty to look at the
            checksums of pages.
        piece_bytes: How much is read at once.
    """
    if reader.read_at(len(_MAGIC), 0) != _MAGIC:
        yield Damage("it does not begin as a Parquet file does")
    if len(reader.read_at(1, num_bytes)):
        yield Damage(f"it is larger than {num_bytes} bytes")
    try:
        metadata = read_footer(reader, num_bytes, footer)
        expected = unpack_chunks(checksums) if checksums else None
    except FooterError as error:
        yield Damage(str(error))
        return
    if expected is not None and len(expected) != metadata.num_row_groups * metadata.num_columns:
        yield Damage("its column chunks are not those that have checksums")
        return
    for chunk in column_chunks(metadata):
        checksum = None if expected is None else expected[chunk.index]
        if (problem := chunk_problem(reader, chunk, checksum, piece_bytes)) is not None:
            yield Damage(problem, chunk.column, chunk.row_group)


def compute_checksums(
    reader: Reader, num_bytes: int, piece_bytes: int = REMOTE_PIECE_BYTES
) -> tuple[str, str]:
    """Return the checksums of a file as it is: of the footer, and of the column chunks, packed.

    This is for files that were written without; whether they are as they were written, it cannot
    tell, except that pages are compared with their checksums where they have any.

    Raises:
        FooterError: It is not a Parquet file.
    """
    raw = footer_bytes(reader, num_bytes)
    metadata = read_footer(reader, num_bytes)
    packed = pack_chunks(
        range_checksum(reader, chunk.start, chunk.end, piece_bytes)
        for chunk in column_chunks(metadata)
    )
    return footer_checksum(raw), packed
