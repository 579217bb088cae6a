"""A version of a Delta table as the planner and runs see it."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pyarrow as pa

from stagecoach.infra.formats.delta.log_files import list_log, live_vectors
from stagecoach.infra.formats.delta.schema import DeltaSchema, read_schema
from stagecoach.infra.formats.delta.statistics import (
    file_summaries,
    partition_values,
    written_partition,
    written_summaries,
)
from stagecoach.infra.formats.delta.vectors import unit_deletes
from stagecoach.infra.formats.mapped_files.columns import MappedColumn, value_text
from stagecoach.infra.formats.mapped_files.file_footers import num_rows
from stagecoach.infra.formats.mapped_files.paths import canonical_path
from stagecoach.infra.formats.snapshot import TableSnapshot, TableState
from stagecoach.infra.reading.column_summary import (
    ColumnSummary,
    column_spread,
    column_stats,
    merge_summaries,
)
from stagecoach.infra.reading.data_file import DataFile
from stagecoach.infra.reading.deletes import UnitDeletes
from stagecoach.infra.reading.file_bounds import stored_bounds
from stagecoach.infra.reading.inputs import ParquetInput
from stagecoach.infra.storage.object_store import StorageOptions
from stagecoach.infra.storage.table_files import is_remote
from stagecoach.planner.catalog import TableInfo, TableStats
from stagecoach.planner.errors import CatalogError

if TYPE_CHECKING:
    from deltalake import DeltaTable

FORMAT_NAME = "delta"
_PIECE_BYTES = 32 << 20


def table_schema(table: DeltaTable) -> DeltaSchema:
    """Return the columns of a table.

    Raises:
        CatalogError: A column is not read.
    """
    metadata = table.metadata()
    schema = json.loads(table.schema().to_json())
    return read_schema(schema, metadata.partition_columns, metadata.configuration)


@dataclass(frozen=True)
class _LiveFile:
    """A data file, what is known of each column, and the values of the partition columns."""

    file: DataFile
    summaries: tuple[ColumnSummary, ...]
    partition: Mapping[str, Any]


def table_state(
    name: str,
    table: DeltaTable,
    location: str,
    options: StorageOptions,
    *,
    added: Sequence[Mapping[str, Any]] = (),
    removed: Collection[str] = (),
) -> TableState:
    """Return the version of a table that is open.

    Args:
        name: Name of the table in the catalog file.
        table: The table.
        location: Its folder.
        options: How to reach storage.
        added: Data files that a commit on the version would add, as `DeltaPlan.write_reported`
            described them.
        removed: Canonical URIs of those that it would remove.

    Raises:
        CatalogError: A column is not read, or the log is damaged.
        StorageError: The storage refused.
    """
    schema = table_schema(table)
    found = [f for f in _live_files(table, schema, location, options) if f.file.uri not in removed]
    found += [_new_file(values, schema, location) for values in added]
    found.sort(key=lambda item: item.file.uri)
    files = tuple(item.file for item in found)
    fields = schema.fields
    stats = TableStats(
        num_rows=sum(file.num_rows for file in files),
        num_bytes=sum(file.num_bytes for file in files),
        num_files=len(files),
        columns={
            field.name: replace(
                column_stats(merge_summaries(parts), field.dtype),
                spread=column_spread(parts, field.dtype),
            )
            for field, parts in zip(
                fields, zip(*(item.summaries for item in found), strict=True), strict=True
            )
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
        notes=schema.notes,
    )
    detail: dict[str, Any] = {
        "columns": [column.to_list() for column in schema.columns],
        "hidden": [],
        "names": [mapped.to_list() for mapped in schema.names],
        "by_names": schema.by_names,
        "files": _constants(found, schema.columns),
    }
    return TableState(
        info,
        TableSnapshot(
            table=name,
            columns=fields,
            files=files,
            format=FORMAT_NAME,
            field_ids=tuple(column.field_id for column in schema.columns),
            detail=detail,
        ),
    )


def state_folder(location: str) -> str:
    """Return the folder of a table as the URIs of its files have it."""
    return location if is_remote(location) else os.path.realpath(location)


def live_files(table: DeltaTable) -> pa.Table:
    """Return the live files of a table with their statistics, as deltalake lists them."""
    return pa.table(table.get_add_actions())


def file_uri(path: str, folder: str) -> str:
    """Return the canonical URI of a file.

    Args:
        path: Its path in the log: relative or a URL, with escapes.
        folder: The table's folder.
    """
    scheme = path.partition(":")[0]
    if "/" not in scheme and scheme != path:
        return canonical_path(unquote(path))
    decoded = unquote(path)
    return decoded if decoded.startswith("/") else f"{folder}/{decoded}"


def _live_files(
    table: DeltaTable, schema: DeltaSchema, location: str, options: StorageOptions
) -> Iterator[_LiveFile]:
    """Yield the live files of a version."""
    adds = live_files(table)
    folder = state_folder(location)
    uris = [file_uri(path, folder) for path in adds["path"].to_pylist()]
    sizes = adds["size_bytes"].to_pylist()
    counts = _row_counts(adds, uris, sizes, options)
    partitions = partition_values(adds, schema)
    summaries = file_summaries(adds, schema, counts, partitions)
    deletes = _deletes(table, adds, folder, options)
    for place, (uri, count, size, gone, parts) in enumerate(
        zip(uris, counts, sizes, deletes, summaries, strict=True)
    ):
        file = _data_file(uri, count, size, schema, parts, gone)
        partition = {column: values[place] for column, values in partitions.items()}
        yield _LiveFile(file, parts, partition)


def _new_file(values: Mapping[str, Any], schema: DeltaSchema, location: str) -> _LiveFile:
    """A file that no version names yet; pruning does without its statistics."""
    path = str(values["path"]).removeprefix(f"{location}/")
    rows, size = values["num_rows"], values["num_bytes"]
    partition = written_partition(values["partition"], schema)
    parts = written_summaries(schema, rows, size, partition)
    file = _data_file(file_uri(path, state_folder(location)), rows, size, schema, parts)
    return _LiveFile(file, parts, partition)


def _data_file(
    uri: str,
    rows: int,
    size: int,
    schema: DeltaSchema,
    summaries: tuple[ColumnSummary, ...],
    deletes: UnitDeletes | None = None,
) -> DataFile:
    return DataFile(
        uri,
        rows,
        num_bytes=size,
        deletes=deletes,
        row_groups=_pieces(rows, size),
        bounds=stored_bounds(schema.fields, summaries),
    )


def _row_counts(
    adds: pa.Table, uris: Sequence[str], sizes: Sequence[int], options: StorageOptions
) -> list[int]:
    """Rows of each file: of the log, or else of the file's footer."""
    how = ParquetInput((), (), options.to_dict())
    return [
        num_rows(uri, size, how) if count is None else count
        for uri, size, count in zip(uris, sizes, adds["num_records"].to_pylist(), strict=True)
    ]


def _deletes(
    table: DeltaTable, adds: pa.Table, folder: str, options: StorageOptions
) -> list[UnitDeletes | None]:
    """The deleted rows of each file."""
    paths = adds["path"].to_pylist()
    if "deletionVectors" not in (table.protocol().reader_features or ()):
        return [None] * len(paths)
    vectors = live_vectors(list_log(folder, options), table.version(), options)
    if vectors.keys() != set(paths):
        odd = sorted(vectors.keys() ^ set(paths))[0]
        raise CatalogError(
            f"the Delta log was read in two ways, which differ in {odd!r}: it may have been "
            "cleaned up meanwhile; plan the query again"
        )
    return [
        None if (found := vectors[path]) is None else unit_deletes(found, folder) for path in paths
    ]


def _constants(found: Iterable[_LiveFile], columns: Sequence[MappedColumn]) -> dict[str, Any]:
    """The values of partition columns by file, for scans (`mapped_files.scan`)."""
    constants: dict[str, Any] = {}
    for item in found:
        values = [
            [c.field_id, None if value is None else value_text(value, c.dtype)]
            for c in columns
            if c.name in item.partition
            for value in [item.partition[c.name]]
        ]
        if values:
            constants[item.file.uri] = [values]
    return constants


def _pieces(rows: int, size: int) -> tuple[int, ...]:
    """Rows of pieces of a file in which tasks may read it: the log does not know row groups."""
    count = max(1, min(rows, size // _PIECE_BYTES))
    return tuple(rows * (i + 1) // count - rows * i // count for i in range(count))
