"""What the planner is told of a table of Parquet files, from footers cached by file identity.

Footers are read by a few threads and kept in memory.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from stagecoach.infra.formats.partitions import partition_summary, partition_texts
from stagecoach.infra.reading.column_summary import (
    ColumnSummary,
    column_spread,
    column_stats,
    merge_summaries,
)
from stagecoach.infra.reading.footers import FileFooter, read_footer
from stagecoach.infra.storage.object_store import StorageOptions
from stagecoach.infra.storage.table_files import FileEntry, is_remote
from stagecoach.planner.catalog import ColumnStats, TableInfo, TableStats
from stagecoach.planner.errors import CatalogError
from stagecoach.planner.types import Field

_NUM_THREADS = 16


class FooterCache:
    """Footers by file identity (URI, size, version); of each file the newest."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._footers: dict[FileEntry, FileFooter] = {}

    def get(self, entry: FileEntry) -> FileFooter | None:
        """Return the footer of exactly this version of the file, or None."""
        with self._lock:
            return self._footers.get(entry)

    def add(self, footers: Sequence[FileFooter]) -> None:
        """Remember footers, and forget those of other versions of these files."""
        with self._lock:
            changed = {footer.entry.uri for footer in footers}
            for entry in [e for e in self._footers if e.uri in changed]:
                del self._footers[entry]
            self._footers.update((footer.entry, footer) for footer in footers)


def read_footers(
    entries: Sequence[FileEntry],
    options: StorageOptions | None = None,
    cache: FooterCache | None = None,
    *,
    immutable: bool = False,
) -> tuple[FileFooter, ...]:
    """Return the footers of the files, in their order.

    Args:
        entries: The files.
        options: How to reach S3.
        cache: Footers that are known already.
        immutable: Whether the files never change: then footers are kept under the entries as they
            are given, else under what the files are when they are read.

    Raises:
        CatalogError: A file cannot be used; the message names it.
    """
    cache = cache if cache is not None else FooterCache()
    known = {entry: cache.get(entry) for entry in entries}
    missing = [entry for entry in entries if known[entry] is None]
    if missing:
        with ThreadPoolExecutor(min(_NUM_THREADS, len(missing))) as pool:
            read = list(pool.map(lambda entry: read_footer(entry, options), missing))
        if immutable:
            read = [replace(f, entry=entry) for entry, f in zip(missing, read, strict=True)]
        known.update(zip(missing, read, strict=True))
        cache.add(read)
    return tuple(footer for entry in entries if (footer := known[entry]) is not None)


def table_info(
    name: str, footers: Sequence[FileFooter], partitions: tuple[Field, ...] = ()
) -> TableInfo:
    """Return what the planner knows of a table with these files.

    Args:
        name: Name in the catalog.
        footers: Footers of all files.
        partitions: Columns that come from folder names; they stand behind those of the files.

    Raises:
        CatalogError: Two files have different columns or types, or a partition column has the
            name of a column of the files.
    """
    first = footers[0]
    for other in footers[1:]:
        _check_same_columns(first, other)
    columns = {}
    for i, field in enumerate(first.columns):
        summaries = [footer.summaries[i] for footer in footers]
        columns[field.name] = _column_stats(summaries, field)
    stored = {field.name.lower() for field in first.columns}
    for i, field in enumerate(partitions):
        if field.name.lower() in stored:
            raise CatalogError(
                f"column {field.name!r} stands in the files and in the names of their folders; "
                "write the files without it"
            )
        parts = [
            partition_summary(partition_texts(footer.entry)[i], field.dtype, footer.num_rows)
            for footer in footers
        ]
        columns[field.name] = _column_stats(parts, field)
    return TableInfo(
        name=name,
        columns=(*first.columns, *partitions),
        stats=TableStats(
            num_rows=sum(footer.num_rows for footer in footers),
            num_bytes=sum(footer.entry.num_bytes for footer in footers),
            num_files=len(footers),
            columns=columns,
        ),
        native_reason=_native_reason(footers),
        by_cores=True,
        is_local=not any(is_remote(footer.entry.uri) for footer in footers),
    )


def _column_stats(parts: Sequence[ColumnSummary], field: Field) -> ColumnStats:
    """Statistics of a column, of which each file is a part."""
    stats = column_stats(merge_summaries(parts), field.dtype)
    return replace(stats, spread=column_spread(parts, field.dtype))


def _check_same_columns(first: FileFooter, other: FileFooter) -> None:
    if first.columns == other.columns:
        return
    left = {field.name: field.dtype for field in first.columns}
    right = {field.name: field.dtype for field in other.columns}
    difference = "the columns are in another order"
    for name in [*left, *right]:
        if left.get(name) != right.get(name):
            ours, theirs = left.get(name, "missing"), right.get(name, "missing")
            difference = f"column {name!r} is {ours} in the former and {theirs} in the latter"
            break
    raise CatalogError(
        f"files {first.entry.uri} and {other.entry.uri} differ: {difference}; "
        "write all files of a table with the same columns"
    )


def _native_reason(footers: Sequence[FileFooter]) -> str | None:
    for footer in footers:
        if footer.native_reason:
            return footer.native_reason
    fields = footers[0].columns
    known: list[str | None] = [None] * len(fields)
    for footer in footers:
        for i, storage in enumerate(footer.storage):
            if storage is not None and known[i] not in (None, storage):
                return f"files store column {fields[i].name!r} in different ways"
            known[i] = known[i] or storage
    return None
