"""A deduplicated table as plain Python sees it: the reference for everything that is tested here."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from stagecoach.infra.formats.deduplicated.declaration import Declaration
from stagecoach.infra.formats.deduplicated.table import ChunkTable
from stagecoach.infra.formats.deduplicated.version import ChunkTableVersion, StoredChunk
from stagecoach.infra.storage.object_store import ObjectStore

Row = Mapping[str, Any]
Key = tuple[Any, ...]

KEYED = Declaration(primary_key=("k",))
TIMED = Declaration(primary_key=("k", "t"), time_column="t")


def canonical(value: Any) -> Any:
    """One zero, one NaN."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0
    return value


def rank(value: Any) -> tuple[int, Any]:
    """Spark's order: NULL first, NaN last."""
    if value is None:
        return 0, 0
    return (2, 0) if isinstance(value, float) and math.isnan(value) else (1, value)


def sorted_by(rows: pa.Table, columns: Sequence[str]) -> bool:
    """Whether the rows are in ascending order of these columns."""
    values = zip(*(rows.column(name).to_pylist() for name in columns), strict=True)
    ranks = [tuple(map(rank, row)) for row in values]
    return ranks == sorted(ranks)


def key_of(row: Row, declaration: Declaration) -> Key:
    return tuple(canonical(row.get(name)) for name in declaration.primary_key)


def latest(rows: Iterable[Row], declaration: Declaration) -> dict[Key, Row]:
    """The visible rows, given all that were ever appended, the oldest first."""
    found: dict[Key, Row] = {}
    version = declaration.version_column
    for row in rows:
        key = key_of(row, declaration)
        old = found.get(key)
        if old is None or version is None or rank(row.get(version)) >= rank(old.get(version)):
            found[key] = row
    marker = declaration.delete_column
    return {key: row for key, row in found.items() if marker is None or not row.get(marker)}


def chunk_rows(store: ObjectStore, chunk: StoredChunk) -> pa.Table:
    with store.open_input(chunk.key) as file:
        if chunk.is_parquet:
            return pq.read_table(file)
        return pa.ipc.open_file(file).read_all()


def stored_rows(table: ChunkTable, version: ChunkTableVersion) -> list[Row]:
    """All rows of the live chunks, the oldest first, with the table's columns."""
    names = [field.name for field in version.columns]
    rows: list[Row] = []
    for chunk in sorted(version.chunks, key=lambda c: c.sequence):
        found = chunk_rows(table.store, chunk)
        assert found.schema.names == [field.name for field in chunk.columns]
        rows += [{n: row.get(n) for n in names} for row in found.to_pylist()]
    return rows


def visible(table: ChunkTable, version: ChunkTableVersion | None = None) -> dict[Key, Row]:
    version = version or table.read()
    return latest(stored_rows(table, version), table.declaration)


def plain(rows: Mapping[Key, Row]) -> dict[Key, dict[str, Any]]:
    """Rows that compare equal if they are, NaN included; NULL where a column is missing."""
    return {
        key: {name: canonical(value) for name, value in row.items() if value is not None}
        for key, row in rows.items()
    }
