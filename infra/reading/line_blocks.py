"""Blocks of whole lines of a text file, or of a range of its bytes.

A range has the lines that begin in it, so that ranges side by side have each line once, wherever
they are cut. A compressed file is read from its beginning, as Spark does.

Worker code.
"""

from __future__ import annotations

import bz2
import gzip
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any, Protocol, cast

from stagecoach.infra.errors import QueryError
from stagecoach.infra.reading.input_files import opened_unchanged

if TYPE_CHECKING:
    import pyarrow as pa

    from stagecoach.infra.reading.data_file import DataFile
    from stagecoach.infra.storage.object_store import StorageOptions

BLOCK_BYTES = 8 << 20
MAX_LINE_BYTES = 256 << 20
"""A longer line is read by Spark."""

_BOM = b"\xef\xbb\xbf"


def _unzipped(source: pa.NativeFile) -> IO[bytes]:
    return cast("IO[bytes]", gzip.GzipFile(fileobj=cast("IO[bytes]", source)))


def _bunzipped(source: pa.NativeFile) -> IO[bytes]:
    return cast("IO[bytes]", bz2.BZ2File(cast("IO[bytes]", source)))


_DECODERS: dict[str, Callable[[pa.NativeFile], IO[bytes]]] = {
    ".gz": _unzipped,
    ".bz2": _bunzipped,
}
"""By the end of a file's name, which is what Spark goes by."""

_SPARKS_ENDS = (
    ".deflate",
    ".lz4",
    ".snappy",
    ".zst",
    ".lzo",
    ".lzo_deflate",
    ".zstd",
    ".passthrough",
)
"""Other names by which Spark may know a compressed file."""


def is_split(uri: str) -> bool:
    """Whether a range of the file can be read by itself."""
    return not uri.endswith((*_DECODERS, *_SPARKS_ENDS))


def spark_only(uri: str) -> str | None:
    """Why only Spark can read the file, or None."""
    end = next((end for end in _SPARKS_ENDS if uri.endswith(end)), None)
    return f"files compressed as {end} are read by Spark" if end else None


class _Source(Protocol):
    def read(self, size: int, /) -> bytes: ...


def line_blocks(
    file: DataFile,
    options: StorageOptions,
    block_bytes: int = BLOCK_BYTES,
    *,
    max_line_bytes: int = MAX_LINE_BYTES,
) -> Iterator[bytes]:
    """Yield the lines of a range of a file in blocks; each line has its end, but for the last one.

    The bytes are those that stand for the rows `row_start` to `row_end`, which are estimated: the
    same share of the file. A byte order mark at the beginning of the file is left out.

    Args:
        file: The range.
        options: How to reach it.
        block_bytes: About how much is read at once.
        max_line_bytes: A longer line is an error, since a block holds whole lines.

    Raises:
        InputLostError: The file is gone or has changed.
        QueryError: It is not compressed as its name says, or a line is too long.
        StorageError: The storage refused.
    """
    start, end = byte_range(file)
    if start >= end:
        return
    with _opened(file, options) as (source, size):
        # From one byte before: a line that begins at the start of the range belongs to it.
        position = max(start - 1, 0)
        if position:
            cast("Any", source).seek(position)
        kept = b""
        skipping = start > 0
        while True:
            found = source.read(block_bytes)
            if not found:
                break
            if position == 0 and not kept and found.startswith(_BOM):
                found = found[len(_BOM) :]
                position += len(_BOM)
            if skipping:
                cut = found.find(b"\n") + 1
                if not cut:
                    position += len(found)
                    if position >= end:
                        return
                    continue
                position, found, skipping = position + cut, found[cut:], False
                if position >= end:
                    return
            position += len(found)
            if size and position >= end:
                # The last line of the range is the one that holds the byte before its end.
                cut = found.find(b"\n", max(len(found) - (position - end) - 1, 0)) + 1
                if cut:
                    yield kept + found[:cut]
                    return
            cut = found.rfind(b"\n") + 1
            if cut:
                yield kept + found[:cut]
                kept = found[cut:]
            else:
                kept += found
            if len(kept) > max_line_bytes:
                raise QueryError(f"{file.uri} has a line of more than {max_line_bytes} bytes")
        if kept:
            yield kept


def byte_range(file: DataFile) -> tuple[int, int]:
    """The bytes that stand for the meant rows of a file whose rows are estimated."""
    total = max(file.num_rows, 1)
    return file.num_bytes * file.row_start // total, file.num_bytes * file.row_end // total


@contextmanager
def _opened(file: DataFile, options: StorageOptions) -> Iterator[tuple[_Source, int]]:
    """The bytes of a file and how many there are, 0 where that is not known."""
    decode = next((d for end, d in _DECODERS.items() if file.uri.endswith(end)), None)
    with opened_unchanged(file, options) as source:
        if decode is None:
            yield source, file.num_bytes
            return
        try:
            yield decode(source), 0
        except (OSError, EOFError, zlib.error) as error:
            raise QueryError(f"{file.uri} cannot be decompressed: {error}") from error
