"""What the planner is told of a table of Parquet files, from footers cached by file identity.

Footers are read by a few threads and kept in memory and, where a path is given, in a small JSON
file: a cache that is lost, stale or corrupt costs time, nothing else.
"""

from __future__ import annotations

import json
import logging
import os
import tempfile
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import google_crc32c

from stagecoach.infra.formats.partitions import partition_summary, partition_texts
from stagecoach.infra.reading.column_summary import (
    ColumnSummary,
    column_spread,
    column_stats,
    merge_summaries,
)
from stagecoach.infra.reading.footers import FileFooter, read_footer
from stagecoach.infra.storage.object_store import StorageOptions
from stagecoach.infra.storage.table_files import FileEntry
from stagecoach.planner.catalog import ColumnStats, TableInfo, TableStats
from stagecoach.planner.errors import CatalogError, GraphFormatError
from stagecoach.planner.plan.encoding import encode
from stagecoach.planner.plan.serde import decode
from stagecoach.planner.types import Field

log = logging.getLogger(__name__)

_CACHE_VERSION = 3
_NUM_THREADS = 16
DEFAULT_CACHE_ENTRIES = 20_000


class FooterCache:
    """Footers by file identity (URI, size, version), in memory and in one JSON file.

    Args:
        path: The JSON file; None keeps footers in memory only.
        max_entries: Files to remember on disk; the least recently added are dropped first.
    """

    def __init__(self, path: Path | None = None, max_entries: int = DEFAULT_CACHE_ENTRIES) -> None:
        self._path = path
        self._max_entries = max_entries
        self._lock = threading.Lock()
        self._footers: dict[FileEntry, FileFooter] | None = None

    def get(self, entry: FileEntry) -> FileFooter | None:
        """Return the footer of exactly this version of the file, or None."""
        with self._lock:
            return self._load().get(entry)

    def add(self, footers: Sequence[FileFooter]) -> None:
        """Remember footers; a failure to write them down is only logged."""
        if not footers:
            return
        with self._lock:
            known = self._load()
            changed = {footer.entry.uri for footer in footers}
            for entry in [e for e in known if e.uri in changed]:
                del known[entry]
            known.update((footer.entry, footer) for footer in footers)
            self._save(list(known.values())[-self._max_entries :])

    def _load(self) -> dict[FileEntry, FileFooter]:
        if self._footers is None:
            self._footers = {}
            for footer in self._read_file():
                self._footers[footer.entry] = footer
        return self._footers

    def _read_file(self) -> list[FileFooter]:
        if self._path is None:
            return []
        try:
            checksum, _, text = self._path.read_text(encoding="utf-8").partition("\n")
            if checksum != _checksum(text):
                raise ValueError("checksum mismatch")
            body = json.loads(text)
            if body["version"] != _CACHE_VERSION:
                return []
            return [_footer_from_json(item) for item in body["footers"]]
        except FileNotFoundError:
            return []
        except (OSError, ValueError, KeyError, TypeError, GraphFormatError) as error:
            log.warning("cache of footers %s is ignored: %s", self._path, error)
            return []

    def _save(self, footers: Sequence[FileFooter]) -> None:
        if self._path is None:
            return
        body = {"version": _CACHE_VERSION, "footers": [_footer_to_json(f) for f in footers]}
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            # Written beside and renamed, so that another process never reads half of it.
            handle, name = tempfile.mkstemp(dir=self._path.parent, prefix=f".{self._path.name}.")
            try:
                with open(handle, "w", encoding="utf-8") as file:
                    text = json.dumps(body, separators=(",", ":"))
                    file.write(f"{_checksum(text)}\n{text}")
                os.replace(name, self._path)
            except BaseException:
                os.unlink(name)
                raise
        except OSError as error:
            log.warning("cache of footers %s cannot be written: %s", self._path, error)


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
    first = footers[0]
    for other in footers[1:]:
        for field, ours, theirs in zip(first.columns, first.storage, other.storage, strict=True):
            if ours != theirs:
                return f"files store column {field.name!r} in different ways"
    return None


def _checksum(text: str) -> str:
    return f"{google_crc32c.value(text.encode()):08x}"


def _footer_to_json(footer: FileFooter) -> dict[str, Any]:
    return {
        "entry": asdict(footer.entry),
        "checksum": footer.checksum,
        "num_rows": footer.num_rows,
        "row_groups": footer.row_groups,
        "columns": encode(footer.columns),
        "storage": footer.storage,
        "summaries": [asdict(summary) for summary in footer.summaries],
        "native_reason": footer.native_reason,
    }


def _footer_from_json(body: dict[str, Any]) -> FileFooter:
    return FileFooter(
        entry=FileEntry(**{**body["entry"], "folders": tuple(body["entry"]["folders"])}),
        checksum=body["checksum"],
        num_rows=body["num_rows"],
        row_groups=tuple(body["row_groups"]),
        columns=decode(body["columns"]),
        storage=tuple(body["storage"]),
        summaries=tuple(ColumnSummary(**summary) for summary in body["summaries"]),
        native_reason=body["native_reason"],
    )
