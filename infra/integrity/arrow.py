"""One Arrow IPC file of a deduplicated table, checked segment by segment.

Worker code. A segment is a record batch (the first one with the schema before it), or what stands
after the last one, which is the footer. A file that an older Stagecoach wrote has one checksum for
all of it, which is the same as a single segment.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from stagecoach.infra.integrity.checksums import unpack_segments
from stagecoach.infra.integrity.parquet import (
    REMOTE_PIECE_BYTES,
    Damage,
    Reader,
    checksum_problem,
    range_checksum,
)


@dataclass(frozen=True)
class FileSegment:
    """A part of an Arrow file.

    Args:
        index: Its number in the file.
        batch: 0-based number of its record batch; None for the footer and for a whole file.
        start: First byte.
        end: The byte after the last one.
        checksum: CRC-32C.
    """

    index: int
    batch: int | None
    start: int
    end: int
    checksum: int


def file_segments(num_bytes: int, checksum: str, segments: str) -> tuple[FileSegment, ...]:
    """Return the segments of a file; together they are all of it.

    Args:
        num_bytes: Size of the file.
        checksum: CRC-32C of the whole file, 8 hex digits; empty if it is not known.
        segments: What `pack_segments` packed; empty for a file with one checksum.

    Raises:
        ValueError: They are not segments of a file of that size.
    """
    if not segments:
        return (FileSegment(0, None, 0, num_bytes, int(checksum, 16)),) if checksum else ()
    known = unpack_segments(segments)
    ends = list(itertools.accumulate(length for length, _ in known))
    if not ends or ends[-1] != num_bytes:
        raise ValueError(f"its segments have {ends[-1] if ends else 0} bytes, not {num_bytes}")
    last = len(known) - 1
    return tuple(
        FileSegment(i, None if i == last else i, end - length, end, crc)
        for i, ((length, crc), end) in enumerate(zip(known, ends, strict=True))
    )


def segment_problem(reader: Reader, segment: FileSegment, piece_bytes: int) -> str | None:
    """What is wrong with a segment as a phrase, or None."""
    found = range_checksum(reader, segment.start, segment.end, piece_bytes)
    return None if found == segment.checksum else checksum_problem(found, segment.checksum)


def find_damage(
    reader: Reader,
    num_bytes: int,
    *,
    checksum: str = "",
    segments: str = "",
    piece_bytes: int = REMOTE_PIECE_BYTES,
) -> Iterator[Damage]:
    """Check a whole file and yield what is wrong with it; see `file_segments`."""
    if len(reader.read_at(1, num_bytes)):
        yield Damage(f"it is larger than {num_bytes} bytes")
    for segment in file_segments(num_bytes, checksum, segments):
        if (problem := segment_problem(reader, segment, piece_bytes)) is not None:
            yield Damage(problem, row_group=segment.batch)
