"""Check local files before an engine opens them itself: DuckDB and Spark verify nothing.

Worker code. What is read here stays in the page cache, where the engine finds it a moment later.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from stagecoach.infra.errors import InputLostError, StorageError
from stagecoach.infra.integrity import arrow, parquet
from stagecoach.infra.integrity.checksums import unpack_chunks
from stagecoach.infra.integrity.errors import DamagedFileError
from stagecoach.infra.integrity.parquet import LOCAL_PIECE_BYTES, FooterChangedError, FooterError
from stagecoach.infra.integrity.read_parts import FOOTER, find_parts, keep_parts, part_of, parts_key
from stagecoach.infra.integrity.records import CheckedParts, file_version


@dataclass(frozen=True, kw_only=True)
class FileChecks:
    """What is checked when table files are read, and how often.

    Args:
        files: Whether files are compared with the checksums that their table's version keeps.
        pages: Whether other Parquet files are compared with the checksums of their pages.
        seconds: How long a check of a local file counts.
        folder: Local folder below which the processes of the host tell each other what they have
            checked; empty for this process only.
    """

    files: bool = True
    pages: bool = True
    seconds: float = 600.0
    folder: str = ""


DEFAULT_CHECKS = FileChecks()
"""All checks, known to this process only."""


@dataclass(frozen=True)
class _Record:
    parts: CheckedParts
    version: str

    def missing(self, parts: Iterable[int]) -> list[int]:
        return self.parts.missing(self.version, parts)


_NO_WAIT: int | None = getattr(os, "RWF_NOWAIT", None)  # Linux only


class LocalReader:
    """A local file that is open for reading.

    Args:
        path: Its path.

    Raises:
        FileNotFoundError: The file does not exist.
        StorageError: It cannot be opened.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        try:
            self._file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            raise
        except OSError as error:
            raise StorageError(f"cannot open {path}: {error}") from error
        self.status = os.fstat(self._file)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        os.close(self._file)

    def has_cached(self, offset: int) -> bool:
        """Whether the page cache holds a byte; False where the system does not tell."""
        if _NO_WAIT is None:
            return False
        try:
            return os.preadv(self._file, [bytearray(1)], offset, _NO_WAIT) == 1
        except OSError:  # it would wait, or the file system knows no such flag
            return False

    def read_at(self, nbytes: int, offset: int) -> bytes:
        """Some bytes; fewer where the file ends.

        Raises:
            StorageError: The device refuses.
        """
        try:
            content = os.pread(self._file, nbytes, offset)
            while len(content) < nbytes:
                more = os.pread(self._file, nbytes - len(content), offset + len(content))
                if not more:
                    break
                content += more
            return content
        except OSError as error:
            raise StorageError(f"cannot read {self._path}: {error}") from error


@dataclass(frozen=True, kw_only=True)
class LocalParquet:
    """What is about to be read of a local Parquet file.

    Args:
        path: The file.
        footer: Checksum of its footer; empty if it is not known.
        checksums: Those of its column chunks, packed; empty for a user's own file.
        columns: Top-level columns that are read; None for all.
        rows: Ranges of rows that are read; None for all.
    """

    path: str
    footer: str
    checksums: str
    columns: Collection[str] | None
    rows: Sequence[tuple[int, int]] | None


def check_local_parquet(read: LocalParquet, checks: FileChecks) -> None:
    """Check what is about to be read of a local Parquet file, unless that was done lately.

    Args:
        read: What is read of which file.
        checks: What to check.

    Raises:
        DamagedFileError: It is damaged.
        InputLostError: It is a user's own file, and has another footer than in the snapshot.
        FileNotFoundError: The file does not exist.
        StorageError: It cannot be read.
    """
    by_pages = not read.checksums
    if not (checks.pages if by_pages else checks.files):
        return
    with LocalReader(read.path) as reader:
        record = _record(checks, _parquet_version(reader, read))
        key = parts_key(record.version, read.columns, read.rows)
        known = find_parts(key)
        if known is not None and not record.missing(known.numbers):
            return
        expected = unpack_chunks(read.checksums) if read.checksums else ()
        num_bytes = reader.status.st_size
        try:
            metadata = parquet.read_footer(reader, num_bytes, read.footer)
        except FooterChangedError as error:
            if by_pages:  # a user's own file, which may have been written again
                raise InputLostError(read.path, str(error)) from error
            raise DamagedFileError(read.path, str(error)) from error
        except FooterError as error:
            raise DamagedFileError(read.path, str(error)) from error
        if not by_pages and len(expected) != metadata.num_row_groups * metadata.num_columns:
            raise DamagedFileError(read.path, "its column chunks are not those that have checksums")
        chunks = {part_of(c): c for c in parquet.column_chunks(metadata, read.columns, read.rows)}
        missing = record.missing(chunks)
        for part in missing:
            chunk = chunks[part]
            checksum = None if by_pages else expected[chunk.index]
            problem = parquet.chunk_problem(reader, chunk, checksum, LOCAL_PIECE_BYTES)
            if problem is not None:
                raise DamagedFileError(read.path, problem, chunk.column, chunk.row_group)
        record.parts.add(record.version, [FOOTER, *missing])
        keep_parts(key, chunks.values())


def is_cached(read: LocalParquet) -> bool:
    """Whether the page cache seems to hold what is about to be read of a local Parquet file.

    It looks at some bytes, from all over the file, and waits for none of them.

    Args:
        read: What is read of which file.

    Raises:
        FileNotFoundError: The file does not exist.
        StorageError: It cannot be read.
    """
    with LocalReader(read.path) as reader:
        key = parts_key(_parquet_version(reader, read), read.columns, read.rows)
        parts = find_parts(key)
        if parts is None:  # nothing is checked here
            try:
                metadata = parquet.read_footer(reader, reader.status.st_size, read.footer)
            except FooterError:
                return False  # whoever reads it says so
            parts = keep_parts(key, parquet.column_chunks(metadata, read.columns, read.rows))
        return all(map(reader.has_cached, parts.offsets))


def check_local_arrow(
    path: str,
    *,
    num_bytes: int,
    checksum: str,
    segments: str,
    checks: FileChecks,
) -> None:
    """Check a local Arrow file that is about to be read, unless that was done lately.

    Args:
        path: The file.
        num_bytes: Its size.
        checksum: CRC-32C of the whole file; empty if it is not known.
        segments: Those of its segments, packed; empty for a file with one checksum.
        checks: What to check.

    Raises:
        DamagedFileError: It is damaged.
        FileNotFoundError: The file does not exist.
        StorageError: It cannot be read.
    """
    if not checks.files or not (checksum or segments):
        return
    with LocalReader(path) as reader:
        record = _record(checks, file_version(reader.status, "arrow", checksum, segments))
        known = arrow.file_segments(num_bytes, checksum, segments)
        needed = {segment.index: segment for segment in known}
        missing = record.missing(needed)
        for part in missing:
            problem = arrow.segment_problem(reader, needed[part], LOCAL_PIECE_BYTES)
            if problem is not None:
                raise DamagedFileError(path, problem, row_group=needed[part].batch)
        record.parts.add(record.version, missing)


def _record(checks: FileChecks, version: str) -> _Record:
    return _Record(_checked_parts(checks.folder, checks.seconds, os.getpid()), version)


def _parquet_version(reader: LocalReader, read: LocalParquet) -> str:
    return file_version(reader.status, "parquet with footer", read.footer, read.checksums)


@functools.lru_cache(maxsize=4)
def _checked_parts(folder: str, seconds: float, pid: int) -> CheckedParts:
    return CheckedParts(folder, seconds)
