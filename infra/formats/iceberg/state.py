"""A snapshot of an Iceberg table as the planner and runs see it."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from stagecoach.infra.formats.iceberg.manifests import FoundFile, snapshot_files, with_change
from stagecoach.infra.formats.iceberg.metrics import PartitionValue, column_summary, metrics_of
from stagecoach.infra.formats.iceberg.schema import (
    fields_of,
    mapped_names,
    table_columns,
)
from stagecoach.infra.formats.mapped_files.columns import MappedColumn, by_id, value_text
from stagecoach.infra.formats.snapshot import TableSnapshot, TableState
from stagecoach.infra.reading.column_summary import (
    ColumnSummary,
    column_spread,
    column_stats,
    merge_summaries,
)
from stagecoach.infra.reading.data_file import DataFile
from stagecoach.infra.reading.file_bounds import stored_bounds
from stagecoach.infra.storage.table_files import is_remote
from stagecoach.planner.catalog import ColumnNotes, TableInfo, TableStats
from stagecoach.planner.types import DataType

if TYPE_CHECKING:
    from pyiceberg.manifest import DataFile as IcebergFile
    from pyiceberg.partitioning import PartitionSpec
    from pyiceberg.schema import Schema
    from pyiceberg.table import Table
    from pyiceberg.table.snapshots import Snapshot

FORMAT_NAME = "iceberg"


def table_state(
    name: str,
    table: Table,
    snapshot: Snapshot | None,
    schema: Schema | None = None,
    *,
    added: Sequence[IcebergFile] = (),
    removed: Collection[str] = (),
) -> TableState:
    """Return a snapshot of a table.

    Args:
        name: Name of the table in the catalog file.
        table: The table.
        snapshot: The snapshot; None for a table without data.
        schema: The schema to read it with; the table's present one by default.
        added: Data files that a commit on the snapshot would add.
        removed: Canonical URIs of those that it would remove.

    Raises:
        CatalogError: Spark could not read the table, or files are of a format that is not read.
    """
    schema = schema or table.schema()
    columns = table_columns(schema)
    specs = table.specs()
    manifests = [] if snapshot is None else snapshot.manifests(table.io)
    found = with_change(snapshot_files(manifests, specs, table.io), added, removed)
    partitions = [_partition(file, specs) for file in found]
    summaries = [
        _summaries(columns, schema, file, values)
        for file, values in zip(found, partitions, strict=True)
    ]
    fields = fields_of(columns)
    files = tuple(
        DataFile(
            item.path,
            item.file.record_count,
            num_bytes=item.file.file_size_in_bytes,
            deletes=item.deletes,
            row_groups=_pieces(item),
            bounds=stored_bounds(fields, parts),
        )
        for item, parts in zip(found, summaries, strict=True)
    )
    stats = TableStats(
        num_rows=sum(file.num_rows for file in files),
        num_bytes=sum(file.num_bytes for file in files),
        num_files=len(files),
        columns={
            field.name: replace(
                column_stats(merge_summaries(parts), field.dtype),
                spread=column_spread(parts, field.dtype),
            )
            for field, parts in zip(fields, zip(*summaries, strict=True), strict=True)
        }
        if files
        else {},
        is_estimate=any(file.deletes for file in files),
    )
    is_local = not any(is_remote(file.uri) for file in files)
    info = TableInfo(
        name,
        fields,
        stats,
        format=FORMAT_NAME,
        by_cores=is_local,
        is_local=is_local,
        notes={
            field.name: ColumnNotes(field.doc or "", nullable=not field.required)
            for field in schema.fields
            if field.doc or field.required
        },
    )
    return TableState(
        info,
        TableSnapshot(
            table=name,
            columns=fields,
            files=files,
            format=FORMAT_NAME,
            field_ids=tuple(column.field_id for column in columns),
            detail=_detail(table, schema, columns, found, partitions),
        ),
    )


def _detail(
    table: Table,
    schema: Schema,
    columns: Sequence[MappedColumn],
    found: Sequence[FoundFile],
    partitions: Sequence[Sequence[PartitionValue]],
) -> dict[str, Any]:
    """What scans must know besides: plain data.

    `columns` are those of the table, `hidden` others that equality deletes name, `names` the name
    mapping, `files` the buckets and the constants of each file by its URI.
    """
    from pyiceberg.types import UUIDType

    known = by_id(columns)
    # What a UUID is to Spark, a text, has other buckets.
    bucketed = {f.field_id for f in schema.fields if not isinstance(f.field_type, UUIDType)}
    mapping = table.name_mapping()
    files: dict[str, Any] = {}
    for item, values in zip(found, partitions, strict=True):
        buckets = [
            [v.source_id, v.transform, v.value]
            for v in values
            if v.transform.startswith("bucket[") and v.source_id in bucketed
        ]
        constants = [
            [
                v.source_id,
                None if v.value is None else value_text(v.value, known[v.source_id].dtype),
            ]
            for v in values
            if v.transform == "identity" and v.source_id in known
        ]
        if buckets or constants:
            files[item.path] = [buckets, constants]
    wanted = {
        number
        for item in found
        if item.deletes is not None
        for file in item.deletes.files
        for number in file.columns
    }
    return {
        "columns": [column.to_list() for column in columns],
        "hidden": [c.to_list() for c in _earlier_columns(table, wanted - known.keys())],
        "names": []
        if mapping is None
        else [mapped.to_list() for mapped in mapped_names(mapping.root)],
        "by_names": False,
        "files": files,
    }


def _constant(value: Any, dtype: DataType) -> str | None:
    return None if value is None else value_text(value, dtype)


def _earlier_columns(table: Table, wanted: set[int]) -> list[MappedColumn]:
    """Columns of earlier schemas by id, the latest of each."""
    found: dict[int, MappedColumn] = {}
    for schema in sorted(table.schemas().values(), key=lambda s: s.schema_id):
        kept = [field for field in schema.fields if field.field_id in wanted]
        for column in table_columns(type(schema)(*kept)):
            found[column.field_id] = column
    return [found[number] for number in sorted(found)]


def _partition(item: FoundFile, specs: Mapping[int, PartitionSpec]) -> tuple[PartitionValue, ...]:
    number, values = item.partition
    return tuple(
        PartitionValue(field.source_id, str(field.transform), value)
        for field, value in zip(specs[number].fields, values, strict=True)
    )


def _summaries(
    columns: Sequence[MappedColumn],
    schema: Schema,
    item: FoundFile,
    partition: Sequence[PartitionValue],
) -> tuple[ColumnSummary, ...]:
    from pyiceberg.types import PrimitiveType

    file = item.file
    sizes = _sizes(columns, file.column_sizes or {})
    found = []
    for column, field in zip(columns, schema.fields, strict=True):
        kind = field.field_type
        number = column.field_id
        found.append(
            column_summary(
                column,
                kind if isinstance(kind, PrimitiveType) else None,
                num_rows=file.record_count,
                num_bytes=sizes[number],
                null_count=metrics_of(file.null_value_counts, number),
                bounds=(
                    metrics_of(file.lower_bounds, number),
                    metrics_of(file.upper_bounds, number),
                ),
                partition=_of_type(partition, column.dtype),
            )
        )
    return tuple(found)


def _of_type(partition: Sequence[PartitionValue], dtype: DataType) -> tuple[PartitionValue, ...]:
    return () if dtype.is_floating else tuple(partition)


def _sizes(columns: Sequence[MappedColumn], sizes: Mapping[int, int]) -> dict[int, int]:
    """Stored bytes of top-level columns, those of their members together."""
    found: dict[int, int] = defaultdict(int)
    for column in columns:
        for number in by_id([column]):
            found[column.field_id] += sizes.get(number, 0)
    return found


def _pieces(item: FoundFile) -> tuple[int, ...]:
    """Rows of pieces of a file in which tasks may read it, as many as it has row groups.

    A manifest says where row groups begin, not how many rows they have: rows are shared out by
    bytes.
    """
    rows, size = item.file.record_count, item.file.file_size_in_bytes
    offsets = sorted(o for o in item.file.split_offsets or () if 0 <= o < size)
    if len(offsets) < 2 or not size or rows < len(offsets):
        return (rows,)
    ends = [*(rows * offset // size for offset in offsets[1:]), rows]
    return tuple(end - start for start, end in itertools.pairwise([0, *ends]))
