"""The chunks of a deduplicated table as people and programs see them."""

from __future__ import annotations

import pyarrow as pa

from stagecoach.infra.formats.capabilities import ShownFiles
from stagecoach.infra.formats.deduplicated.grouping import (
    needs_dedup,
    overlap_groups,
    overlap_share,
)
from stagecoach.infra.formats.deduplicated.table import ChunkTable
from stagecoach.infra.formats.deduplicated.view import dedup_table, table_chunks
from stagecoach.planner.formats.deduplicated.chunk import Chunk, DedupTable
from stagecoach.planner.text.sizes import format_bytes
from stagecoach.planner.types import to_arrow


def shown_chunks(table: ChunkTable) -> ShownFiles:
    """Return the chunks of the newest version in groups of those that may share keys."""
    version = table.read()
    declared = dedup_table(version)
    groups = overlap_groups(declared, table_chunks(table.store, version))
    share = overlap_share(groups)
    count = len(version.chunks)
    lines = [
        f"{version.table}: version {version.number}, {count:,} chunk{'' if count == 1 else 's'}, "
        f"{version.num_rows:,} rows, {format_bytes(version.num_bytes)}, {share:.1%} to deduplicate"
    ]
    for number, group in enumerate(groups, 1):
        reason = "" if needs_dedup(group) else "  one row a key"
        lines.append(f"  group {number}{reason}")
        lines += [f"    {_line(declared, chunk)}" for chunk in group]
    values = {
        "table": version.table,
        "version": version.number,
        "rows": version.num_rows,
        "bytes": version.num_bytes,
        "overlap_share": share,
        "groups": [
            {"deduplicated": needs_dedup(g), "chunks": [_as_json(declared, c) for c in g]}
            for g in groups
        ],
    }
    return ShownFiles(tuple(lines), values)


def _line(table: DedupTable, chunk: Chunk) -> str:
    parts = [
        f"{chunk.sequence:>6}  {chunk.kind:<7}  {chunk.num_rows:>11,} rows",
        f"{format_bytes(chunk.num_bytes):>8}",
    ]
    if (times := _times(table, chunk)) is not None:
        parts.append(f"{times[0]} … {times[1]}")
    if chunk.partition is not None and table.partition_by:
        pairs = zip(table.partition_by, chunk.partition, strict=True)
        parts.append(" ".join(f"{name}={_shown(value)}" for name, value in pairs))
    notes = [
        *(["sorted"] if chunk.sort_order else []),
        *(["duplicates"] if chunk.may_contain_duplicates else []),
        *(["deletes"] if chunk.has_deletes else []),
    ]
    return "  ".join([*parts, *([", ".join(notes)] if notes else [])])


def _times(table: DedupTable, chunk: Chunk) -> tuple[str, str] | None:
    """First and last time as people read them."""
    kinds = {field.name: field.dtype for field in table.columns}
    if chunk.time_range is None or table.time_column is None:
        return None
    low, high = pa.array(chunk.time_range, pa.int64()), kinds[table.time_column]
    kind = to_arrow(high)
    values = low.cast(pa.int32()).cast(kind) if high.kind == "date" else low.cast(kind)
    first, last = (str(value) for value in values)
    return first, last


def _as_json(table: DedupTable, chunk: Chunk) -> dict[str, object]:
    times = _times(table, chunk)
    return {
        "id": chunk.chunk_id,
        "uri": chunk.uri,
        "kind": chunk.kind,
        "sequence": chunk.sequence,
        "rows": chunk.num_rows,
        "bytes": chunk.num_bytes,
        "partition": chunk.partition,
        "first_time": times[0] if times else None,
        "last_time": times[1] if times else None,
        "sort_order": chunk.sort_order,
        "may_contain_duplicates": chunk.may_contain_duplicates,
        "has_deletes": chunk.has_deletes,
        "columns": [f"{f.name} {f.dtype}" for f in chunk.columns],
    }


def _shown(value: object) -> str:
    return "NULL" if value is None else str(value)
