"""A version of a deduplicated table: which chunks are live, as JSON with a checksum.

    <location>/versions/000000000007.json

A version is written once and never changed. It lists all live chunks with what is known of their
rows, so a reader that has read one knows which files to open, and which chunks may hold rows of the
same key, without a look at any of them.
"""

from __future__ import annotations

import dataclasses
import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from stagecoach.infra.formats.deduplicated import paths
from stagecoach.infra.formats.deduplicated.declaration import Declaration
from stagecoach.infra.formats.version_json import (
    check_fields,
    columns_from_json,
    columns_to_json,
    seal,
    unsealed,
)
from stagecoach.infra.host.recent_cache import RecentCache
from stagecoach.infra.reading.column_summary import ColumnSummary
from stagecoach.planner.formats.deduplicated.chunk import ChunkValue
from stagecoach.planner.types import Field

FORMAT_VERSION = 2
_READABLE = (1, 2)  # chunks of format 1 have no checksums of their parts

Operation = Literal["create", "append", "compact", "expire", "adopt"]
_CHUNK_LISTS = ("row_groups", "sort_order", "group_starts", "null_columns")


@dataclass(frozen=True, kw_only=True)
class StoredChunk:
    """A live chunk.

    Attributes:
        name: Name of its file below `chunks/`: `<token>-<number>.arrow` or `.parquet`.
        num_rows: Rows of the file.
        num_bytes: Size in bytes.
        row_groups: Rows of each row group or record batch; they add up to `num_rows`.
        checksum: SHA-256 of a Parquet footer (32 hex digits), CRC-32C of an Arrow file.
        columns: Columns of the file, with its own types.
        summaries: Statistics of each column.
        sequence: Number of the write; given when the chunk is committed.
        version: Number of the version that it came with.
        partition: Values of the partition columns if all rows agree in each, else None.
        time_min: Smallest value of the time column; None if unknown.
        time_max: Largest value likewise.
        sort_order: Columns by which the file is sorted, ascending, NULLs first, NaN last.
        group_starts: Value of the first of these columns in the first row of each row group; empty
            where it is not known, as in versions that older Stagecoaches wrote.
        may_contain_duplicates: Whether two rows may have the same key.
        has_deletes: Whether a row may be marked as deleted.
        null_columns: Columns of the key that are NULL in all rows.
        checksums: Those of the column chunks of a Parquet file or of the segments of an Arrow file,
            packed (`infra.integrity.checksums`); empty for a file that an older Stagecoach wrote.
    """

    name: str
    num_rows: int
    num_bytes: int
    row_groups: tuple[int, ...]
    checksum: str
    columns: tuple[Field, ...]
    summaries: tuple[ColumnSummary, ...]
    sequence: int = 0
    version: int = 0
    partition: tuple[ChunkValue | None, ...] | None = None
    time_min: int | None = None
    time_max: int | None = None
    sort_order: tuple[str, ...] = ()
    group_starts: tuple[ChunkValue | None, ...] = ()
    may_contain_duplicates: bool = True
    has_deletes: bool = False
    null_columns: tuple[str, ...] = ()
    checksums: str = ""

    @property
    def is_parquet(self) -> bool:
        """Whether the file is Parquet, and not Arrow IPC."""
        return self.name.endswith(".parquet")

    @property
    def any_checksums(self) -> str:
        """The checksum that covers every byte of the file; empty if there is none."""
        # The checksum of an Arrow file is of all of it, that of a Parquet file of its footer.
        return self.checksums or ("" if self.is_parquet else self.checksum)

    @property
    def key(self) -> str:
        """Its storage key, below the table's location."""
        return paths.chunk_file(self.name)


_CHUNK_FIELDS = {field.name for field in dataclasses.fields(StoredChunk)}


@dataclass(frozen=True, kw_only=True)
class ReplacedChunk:
    """A chunk that a compaction has replaced; readers of an older version may still need it.

    Attributes:
        name: Name of its file.
        num_bytes: Size in bytes.
        replaced_at: When it was, ISO 8601 in UTC.
    """

    name: str
    num_bytes: int
    replaced_at: str

    @property
    def key(self) -> str:
        """Its storage key, below the table's location."""
        return paths.chunk_file(self.name)


@dataclass(frozen=True, kw_only=True)
class ChunkTableVersion:
    """The state of a deduplicated table after one commit.

    Attributes:
        table: Name of the table.
        number: 1 for the first commit; without gaps.
        token: Identity of the commit: no two have the same.
        committed_at: When it was made, ISO 8601 in UTC.
        operation: What it did.
        declaration: Key and roles of columns.
        columns: Columns of the table.
        next_sequence: Sequence of the next chunk that is appended.
        chunks: Live chunks, oldest first.
        replaced: Chunks that are live no more and whose files are not yet removed.
    """

    table: str
    number: int
    token: str
    committed_at: str
    operation: Operation
    declaration: Declaration
    columns: tuple[Field, ...] = ()
    next_sequence: int = 1
    chunks: tuple[StoredChunk, ...] = ()
    replaced: tuple[ReplacedChunk, ...] = ()

    @property
    def num_rows(self) -> int:
        """Rows of all live chunks, those that are hidden by newer ones among them."""
        return sum(chunk.num_rows for chunk in self.chunks)

    @property
    def num_bytes(self) -> int:
        """Size of all live chunks in bytes."""
        return sum(chunk.num_bytes for chunk in self.chunks)

    def to_json(self) -> bytes:
        """Return the version's text: keys sorted, its own CRC-32C among them."""
        schemas: dict[tuple[Field, ...], int] = {}
        chunks = [
            _chunk_to_json(chunk, schemas.setdefault(chunk.columns, len(schemas)))
            for chunk in self.chunks
        ]
        values: dict[str, Any] = {
            **vars(self),
            "format_version": FORMAT_VERSION,
            "declaration": self.declaration.to_dict(),
            "columns": columns_to_json(self.columns),
            "schemas": [columns_to_json(columns) for columns in schemas],
            "chunks": chunks,
            "replaced": [vars(chunk) for chunk in self.replaced],
        }
        return seal(values)

    @classmethod
    def from_json(cls, text: bytes, *, uri: str) -> ChunkTableVersion:
        """Return the version whose text this is.

        Raises:
            TableVersionError: It is damaged, has unknown fields or is of another format.
        """
        return unsealed(text, _from_values, uri=uri, format_versions=_READABLE)


# By bytes of text; what is made of them takes about ten times as much.
_PARSED: RecentCache[ChunkTableVersion] = RecentCache(max_entries=8, max_cost=16 << 20)


def parsed_version(text: bytes, *, uri: str) -> ChunkTableVersion:
    """Return `ChunkTableVersion.from_json` of a text, which is read once a process.

    A version never changes, but a folder may be removed and made anew: so it is known by its text.

    Raises:
        TableVersionError: As `from_json`.
    """
    return _PARSED.get(
        (uri, hashlib.sha256(text).digest()),
        lambda: ChunkTableVersion.from_json(text, uri=uri),
        lambda _: len(text),
    )


def _from_values(values: dict[str, Any]) -> ChunkTableVersion:
    schemas = [columns_from_json(columns) for columns in values.pop("schemas")]
    check_fields(ChunkTableVersion, values)
    rest = {
        "declaration": Declaration.from_dict(values["declaration"]),
        "columns": columns_from_json(values["columns"]),
        "chunks": tuple(_chunk_from_json(chunk, schemas) for chunk in values["chunks"]),
        "replaced": tuple(ReplacedChunk(**chunk) for chunk in values["replaced"]),
    }
    return ChunkTableVersion(**{**values, **rest})


def _chunk_to_json(chunk: StoredChunk, schema: int) -> dict[str, Any]:
    values = {**vars(chunk), "schema": schema}
    del values["columns"]
    # Most of a version's text: one short list a column.
    values["summaries"] = [
        [s.null_count, _bound(s.min_value), _bound(s.max_value), s.distinct_count, s.num_bytes]
        for s in chunk.summaries
    ]
    return values


def _chunk_from_json(values: dict[str, Any], schemas: Sequence[tuple[Field, ...]]) -> StoredChunk:
    columns = schemas[values.pop("schema")]
    summaries = [
        ColumnSummary(
            num_rows=values["num_rows"],
            null_count=null_count,
            min_value=low,
            max_value=high,
            distinct_count=distinct,
            num_bytes=num_bytes,
        )
        for null_count, low, high, distinct, num_bytes in values["summaries"]
    ]
    if len(summaries) != len(columns):
        raise ValueError(f"chunk {values['name']!r} has other columns than statistics")
    values.setdefault("group_starts", [])
    values.setdefault("checksums", "")
    lists = {name: tuple(values[name]) for name in _CHUNK_LISTS}
    partition = None if values["partition"] is None else tuple(values["partition"])
    values = {**values, **lists, "partition": partition, "summaries": tuple(summaries)}
    values["columns"] = columns
    if values.keys() != _CHUNK_FIELDS:
        check_fields(StoredChunk, values)
    return StoredChunk(**values)


def _bound(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value
