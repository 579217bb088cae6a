"""Metadata tables of a Delta table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from stagecoach.infra.formats.delta.history import History
from stagecoach.infra.formats.delta.log_files import list_log, live_vectors
from stagecoach.infra.formats.delta.state import live_files
from stagecoach.infra.storage.object_store import StorageOptions

if TYPE_CHECKING:
    from deltalake import DeltaTable

_TEXTS = pa.map_(pa.string(), pa.string())


def history(table: DeltaTable, location: str, options: StorageOptions) -> pa.Table:
    """Return one row for each version whose commit is kept, as `DESCRIBE HISTORY` has it."""
    times = History(list_log(location, options), table.metadata().configuration, options)
    rows = [
        (
            entry["version"],
            times.time_ms(entry["version"]) * 1000,
            entry.get("operation"),
            _texts(entry.get("operationParameters")),
            _texts(entry.get("operationMetrics")),
            entry.get("engineInfo"),
            entry.get("userMetadata"),
        )
        for entry in table.history()
        if entry["version"] in times.versions
    ]
    kinds = [
        ("version", pa.int64()),
        ("timestamp", pa.timestamp("us", "UTC")),
        ("operation", pa.string()),
        ("operationParameters", _TEXTS),
        ("operationMetrics", _TEXTS),
        ("engineInfo", pa.string()),
        ("userMetadata", pa.string()),
    ]
    return _table(kinds, rows)


def files(table: DeltaTable, location: str, options: StorageOptions) -> pa.Table:
    """Return one row for each live data file."""
    adds = live_files(table)
    vectors = {}
    if "deletionVectors" in (table.protocol().reader_features or ()):
        vectors = live_vectors(list_log(location, options), table.version(), options)
    rows = []
    for add in adds.select(["path", "size_bytes", "num_records"]).to_pylist():
        vector = vectors.get(add["path"])
        deleted = 0 if vector is None else vector.cardinality
        rows.append((add["path"], add["size_bytes"], add["num_records"], deleted))
    kinds = [
        ("path", pa.string()),
        ("size", pa.int64()),
        ("num_records", pa.int64()),
        ("deleted_records", pa.int64()),
    ]
    return _table(kinds, rows)


def _texts(found: Any) -> list[tuple[str, str]] | None:
    return None if found is None else [(key, str(value)) for key, value in found.items()]


def _table(kinds: list[tuple[str, pa.DataType]], rows: list[tuple[Any, ...]]) -> pa.Table:
    columns = zip(*rows, strict=True) if rows else [[] for _ in kinds]
    schema = pa.schema(kinds)
    arrays = [pa.array(c, kind) for c, kind in zip(columns, schema.types, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)
