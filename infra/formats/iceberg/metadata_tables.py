"""Metadata tables of an Iceberg table, with the columns that Iceberg's own have in Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from stagecoach.infra.formats.iceberg.manifests import manifest_entries

if TYPE_CHECKING:
    from pyiceberg.table import Table

_INSTANT = pa.timestamp("us", "UTC")


def snapshots(table: Table) -> pa.Table:
    """Return one row for each snapshot that is kept."""
    kinds = [
        ("committed_at", _INSTANT),
        ("snapshot_id", pa.int64()),
        ("parent_id", pa.int64()),
        ("operation", pa.string()),
        ("manifest_list", pa.string()),
        ("summary", pa.map_(pa.string(), pa.string())),
    ]
    return _table(
        kinds,
        [
            (
                s.timestamp_ms * 1000,
                s.snapshot_id,
                s.parent_snapshot_id,
                None if s.summary is None else s.summary.operation.value,
                s.manifest_list,
                None if s.summary is None else list(s.summary.additional_properties.items()),
            )
            for s in table.metadata.snapshots
        ],
    )


def history(table: Table) -> pa.Table:
    """Return one row for each change of the current snapshot."""
    ancestors: set[int] = set()
    snapshot = table.current_snapshot()
    while snapshot is not None:
        ancestors.add(snapshot.snapshot_id)
        parent = snapshot.parent_snapshot_id
        snapshot = None if parent is None else table.snapshot_by_id(parent)
    kinds = [
        ("made_current_at", _INSTANT),
        ("snapshot_id", pa.int64()),
        ("parent_id", pa.int64()),
        ("is_current_ancestor", pa.bool_()),
    ]
    found = []
    for entry in table.history():
        made = table.snapshot_by_id(entry.snapshot_id)
        parent_id = None if made is None else made.parent_snapshot_id
        is_ancestor = entry.snapshot_id in ancestors
        found.append((entry.timestamp_ms * 1000, entry.snapshot_id, parent_id, is_ancestor))
    return _table(kinds, found)


def refs(table: Table) -> pa.Table:
    """Return one row for each branch and tag."""
    kinds = [("name", pa.string()), ("type", pa.string()), ("snapshot_id", pa.int64())]
    return _table(
        kinds,
        [
            (name, ref.snapshot_ref_type.value.upper(), ref.snapshot_id)
            for name, ref in sorted(table.refs().items())
        ],
    )


def files(table: Table) -> pa.Table:
    """Return one row for each data file and delete file of the current snapshot."""
    kinds = [
        ("content", pa.int32()),
        ("file_path", pa.string()),
        ("file_format", pa.string()),
        ("spec_id", pa.int32()),
        ("record_count", pa.int64()),
        ("file_size_in_bytes", pa.int64()),
        ("equality_ids", pa.list_(pa.int32())),
        ("sort_order_id", pa.int32()),
    ]
    snapshot = table.current_snapshot()
    manifests = [] if snapshot is None else snapshot.manifests(table.io)
    entries = [entry for manifest in manifests for entry in manifest_entries(manifest, table.io)]
    return _table(
        kinds,
        [
            (
                int(file.content),
                file.file_path,
                file.file_format.value,
                file.spec_id,
                file.record_count,
                file.file_size_in_bytes,
                file.equality_ids,
                file.sort_order_id,
            )
            for file in (entry.data_file for entry in entries)
        ],
    )


def _table(kinds: list[tuple[str, pa.DataType]], rows: list[tuple[Any, ...]]) -> pa.Table:
    columns = zip(*rows, strict=True) if rows else [[] for _ in kinds]
    schema = pa.schema(kinds)
    arrays = [pa.array(c, kind) for c, kind in zip(columns, schema.types, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)
