"""Rows of small text files, counted once for each version of a file.

Counting a few megabytes takes milliseconds and makes what is planned for small tables exact. Rows
of larger tables are estimated from bytes.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from stagecoach.infra.errors import InputLostError, QueryError, StorageError
from stagecoach.infra.formats.text_files.line_rules import LineRule
from stagecoach.infra.reading.data_file import DataFile
from stagecoach.infra.reading.line_blocks import line_blocks, spark_only
from stagecoach.infra.storage.object_store import StorageOptions
from stagecoach.infra.storage.table_files import FileEntry

logger = logging.getLogger(__name__)

MOST_BYTES = 4 << 20
"""Stored bytes of a table whose rows are counted."""
MOST_FILES = 64
MOST_TEXT_BYTES = 32 << 20
"""Bytes of a file after decompression."""

_BLOCK_BYTES = 1 << 20
_NUM_THREADS = 16


class RowCounts:
    """Rows of files, by file identity; of each file and rule those of the newest version."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[tuple[str, LineRule], tuple[FileEntry, int | None]] = {}

    def of(
        self, entries: Sequence[FileEntry], rule: LineRule, options: StorageOptions
    ) -> tuple[int | None, ...]:
        """Return the rows of each file, None where they are not known.

        Args:
            entries: All files of a table.
            rule: Which of its lines are rows.
            options: How to reach the files.
        """
        if len(entries) > MOST_FILES or sum(e.num_bytes for e in entries) > MOST_BYTES:
            return (None,) * len(entries)
        with self._lock:
            known = {e: self._known.get((e.uri, rule)) for e in entries}
        missing = [e for e, found in known.items() if found is None or found[0] != e]
        if missing:
            with ThreadPoolExecutor(min(_NUM_THREADS, len(missing))) as pool:
                counts = list(pool.map(lambda e: _count(e, rule, options), missing))
            read = {e: (e, rows) for e, rows in zip(missing, counts, strict=True)}
            known |= read
            with self._lock:
                self._known |= {(e.uri, rule): value for e, value in read.items()}
        return tuple(None if found is None else found[1] for found in known.values())


def _count(entry: FileEntry, rule: LineRule, options: StorageOptions) -> int | None:
    if not entry.num_bytes:
        return 0
    if spark_only(entry.uri):
        return None
    # All bytes of a file of one row.
    file = DataFile(entry.uri, 1, num_bytes=entry.num_bytes, version=entry.version)
    rows = num_bytes = 0
    try:
        for block in line_blocks(file, options, _BLOCK_BYTES, max_line_bytes=MOST_TEXT_BYTES):
            num_bytes += len(block)
            if num_bytes > MOST_TEXT_BYTES:
                return None
            rows += rule.count(block)
    except (QueryError, InputLostError, StorageError) as error:
        # A run that reads the file says what is wrong with it; a plan needs no count.
        logger.debug("%s: its rows are estimated: %s", entry.uri, error)
        return None
    return max(rows - rule.has_header, 0)
