"""Reads remote Parquet files as record batches, for an engine that is fed with rows.

Worker code. DuckDB opens remote files itself (`remote_files`). What is read here, Spark is fed with
or a format reads by itself, by pyarrow through the same store classes as shuffle files: projected
columns only, a few row groups at a time, and of these only such as may hold a row
that passes the filters of the scan.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq

from stagecoach.infra.errors import InputLostError, StorageError
from stagecoach.infra.integrity.diagnosis import find_undecodable, raise_if_undecodable
from stagecoach.infra.integrity.errors import DamagedFileError
from stagecoach.infra.integrity.fetched import FetchedChecks
from stagecoach.infra.integrity.local import (
    FileChecks,
    LocalParquet,
    check_local_parquet,
    is_cached,
)
from stagecoach.infra.integrity.parquet import FooterChangedError, FooterError, read_footer
from stagecoach.infra.reading.data_file import DataFile
from stagecoach.infra.reading.file_bounds import StoredBounds
from stagecoach.infra.reading.footers import group_bounds
from stagecoach.infra.reading.input_files import check_file, opened_unchanged
from stagecoach.infra.reading.inputs import LeafColumn, ParquetInput, leaf_schema
from stagecoach.infra.reading.opened_ahead import FILES_AHEAD, OpenedFile, opened_ahead
from stagecoach.infra.reading.parquet_types import StoredColumn, stored_columns
from stagecoach.infra.reading.row_bounds import Bounds, column_bounds
from stagecoach.infra.reading.row_groups import read_row_groups
from stagecoach.infra.reading.widening import readers, widened_array, widened_bounds
from stagecoach.infra.storage.object_store import StorageOptions

SMALL_BYTES = 1 << 20
"""Files up to this size are read whole: another request takes longer than these bytes."""

AHEAD_SHARE = 8
"""The part of the memory that the files share whose turn has not come, as a divisor."""

_FILES_LOOKED_AT = 64


def check_local_files(leaf: ParquetInput) -> None:
    """Look whether the local files of a scan are those of the snapshot, and undamaged.

    Raises:
        DamagedFileError: A file is damaged.
        InputLostError: A file is gone or has changed.
        StorageError: The storage refused.
    """
    columns = [column.source for column in leaf.columns]
    for _, parts in itertools.groupby(leaf.files, key=lambda file: file.uri):
        files = list(parts)
        check_file(files[0])
        check_local_rows(files, columns, leaf.checks)


def is_cached_locally(leaf: ParquetInput) -> bool:
    """Whether the page cache seems to hold what a scan reads of its local files.

    Of many files, some are looked at.

    Raises:
        InputLostError: A file is gone.
        StorageError: The storage refused.
    """
    columns = [column.source for column in leaf.columns]
    groups = [list(group) for _, group in itertools.groupby(leaf.files, key=lambda file: file.uri)]
    for files in groups[:: len(groups) // _FILES_LOOKED_AT + 1]:
        with _lost_if_missing(files[0]):
            if not is_cached(_local(files, columns)):
                return False
    return True


def decode_local_files(leaf: ParquetInput) -> None:
    """Decode what a scan needs of local files that have no checksums.

    Raises:
        DamagedFileError: That fails.
        InputLostError: A file is gone.
    """
    columns = [column.source for column in leaf.columns]
    for file in leaf.files:
        if not file.checksums:
            with _lost_if_missing(file):
                path = file.local_path or ""
                raise_if_undecodable(path, columns, [(file.row_start, file.row_end)])


def check_local_rows(
    files: Sequence[DataFile], columns: Collection[str] | None, checks: FileChecks
) -> None:
    """Check the bytes of some rows of one local Parquet file.

    Args:
        files: The rows, all of one file.
        columns: Columns that are read; None for all.
        checks: What to check.

    Raises:
        DamagedFileError: The file is damaged.
        InputLostError: The file is gone.
        StorageError: It cannot be read.
    """
    with _lost_if_missing(files[0]):
        check_local_parquet(_local(files, columns), checks)


def _local(files: Sequence[DataFile], columns: Collection[str] | None) -> LocalParquet:
    """What is read of one local file."""
    first = files[0]
    return LocalParquet(
        path=first.local_path or "",
        footer=first.footer_checksum,
        checksums=first.checksums,
        columns=columns,
        rows=[(file.row_start, file.row_end) for file in files],
    )


@contextmanager
def _lost_if_missing(file: DataFile) -> Iterator[None]:
    """Report a file that does not exist as a lost input."""
    try:
        yield
    except FileNotFoundError:
        raise InputLostError(file.uri, "there is no such file") from None


def read_parquet_batches(leaf: ParquetInput) -> Iterator[pa.RecordBatch]:
    """The rows of a scan with the leaf's names and types, file by file.

    Row groups in which the leaf's test shows that no row passes are left out.

    Raises:
        DamagedFileError: A file is damaged.
        InputLostError: A file is gone or has fewer rows than the snapshot says.
        StorageError: The store refuses or fails.
    """
    options = StorageOptions.from_dict(leaf.storage_options)
    parts = [list(group) for _, group in itertools.groupby(leaf.files, key=lambda file: file.uri)]
    # Those that are opened ahead share a part of the memory; a single one has all of it.
    ahead = leaf.memory_bytes // AHEAD_SHARE if len(parts) > 1 else 0
    each = replace(leaf, memory_bytes=leaf.memory_bytes - ahead)

    def open_one(files: list[DataFile]) -> OpenedFile[Iterator[pa.RecordBatch]]:
        with ExitStack() as stack:
            source = stack.enter_context(opened_unchanged(files[0], options))
            if source.size() <= SMALL_BYTES:
                source = pa.BufferReader(source.read_at(source.size(), 0))
            metadata = checked_footer(source, files[0], leaf.checks)
            rows = _read_file(source, metadata, files, each, ahead // FILES_AHEAD)
            return OpenedFile(rows, stack.pop_all())

    for opened in opened_ahead(parts, open_one):
        with opened.closing:
            yield from opened.rows


def _read_file(
    source: pa.NativeFile,
    metadata: pq.FileMetaData,
    files: Sequence[DataFile],
    leaf: ParquetInput,
    ahead_bytes: int,
) -> Iterator[pa.RecordBatch]:
    """The rows that are meant of one file; the first are asked for at once if they are few."""
    stored = stored_names(metadata)
    names = chosen_names(stored, leaf)
    wanted = groups_to_read(metadata, files[0], leaf)
    pieces = _stored_rows(source, metadata, files, names, wanted, leaf, ahead_bytes)
    return _shaped(pieces, leaf, stored, dict(files[0].constants))


def stored_names(metadata: pq.FileMetaData) -> dict[str, str]:
    """Return the top-level columns as the file spells them, by their names in lower case."""
    return {name.lower(): name for name in metadata.schema.to_arrow_schema().names}


def chosen_names(stored: Mapping[str, str], leaf: ParquetInput) -> list[str]:
    """Return the columns of a scan that the file has, as it spells them."""
    sources = (column.source.lower() for column in leaf.columns)
    return [stored[source] for source in sources if source in stored]


def _shaped(
    pieces: Iterator[pa.RecordBatch],
    leaf: ParquetInput,
    stored: dict[str, str],
    constants: dict[str, str | None],
) -> Iterator[pa.RecordBatch]:
    """Stored rows with the columns of the leaf."""
    schema = leaf_schema(leaf.columns)
    for piece in pieces:
        arrays = [_column(piece, c, stored, constants) for c in leaf.columns]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def read_stored_columns(
    leaf: ParquetInput, names: Sequence[str], wanted: Sequence[bool] | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield columns of the one file of a scan as it stores them.

    Args:
        leaf: Says which rows, and how they are read; its columns are not looked at.
        names: Top-level columns, as the file spells them; none gives batches of the right length.
        wanted: Which row groups may have a row that is needed; None for all.

    Raises:
        DamagedFileError: The file is damaged.
        InputLostError: It is gone or has fewer rows than the snapshot says.
        StorageError: The store refuses or fails.
    """
    (file,) = leaf.files
    with opened_unchanged(file, StorageOptions.from_dict(leaf.storage_options)) as source:
        metadata = checked_footer(source, file, leaf.checks)
        groups = [True] * metadata.num_row_groups if wanted is None else wanted
        yield from _stored_rows(source, metadata, leaf.files, names, groups, leaf)


def checked_footer(source: pa.NativeFile, file: DataFile, checks: FileChecks) -> pq.FileMetaData:
    """Return the footer of a file of the run's snapshot.

    Raises:
        DamagedFileError: It is damaged.
        InputLostError: The file was written again, or has fewer rows than the snapshot says.
    """
    try:
        known = file.footer_checksum if checks.files else ""
        metadata = read_footer(source, source.size(), known)
    except FooterChangedError as error:
        if not file.checksums:  # a user's own file, which may have been written again
            raise InputLostError(file.uri, str(error)) from error
        raise DamagedFileError(file.uri, str(error)) from error
    except FooterError as error:
        raise DamagedFileError(file.uri, str(error)) from error
    if metadata.num_rows != file.num_rows:
        found = f"it has {metadata.num_rows} rows instead of {file.num_rows}"
        raise InputLostError(file.uri, found)
    return metadata


def _stored_rows(
    source: pa.NativeFile,
    metadata: pq.FileMetaData,
    files: Sequence[DataFile],
    names: Sequence[str],
    wanted: Sequence[bool],
    leaf: ParquetInput,
    ahead_bytes: int = 0,
) -> Iterator[pa.RecordBatch]:
    """Stored columns of the rows that are meant of one file, in row groups that are wanted."""
    first = files[0]
    groups, ranges = select_groups(metadata, files, wanted)
    checked = fetched_checks(first, metadata, leaf.checks)
    batches = read_row_groups(
        source, metadata, groups, names, leaf.memory_bytes, checked, ahead_bytes
    )
    return _cut(_decoded(batches, source, metadata, groups, names, first.uri), ranges)


def fetched_checks(
    file: DataFile, metadata: pq.FileMetaData, checks: FileChecks
) -> FetchedChecks | None:
    """What is checked of a file before it is decoded; None for nothing."""
    if not (checks.files if file.checksums else checks.pages):
        return None
    return FetchedChecks(file.uri, file.checksums, metadata.num_row_groups * metadata.num_columns)


def _decoded(
    batches: Iterator[pa.RecordBatch],
    source: pa.NativeFile,
    metadata: pq.FileMetaData,
    groups: Sequence[int],
    names: Sequence[str],
    uri: str,
) -> Iterator[pa.RecordBatch]:
    """The batches; what cannot be decoded is looked for where it is."""
    try:
        yield from batches
    except (pa.ArrowInvalid, OSError) as error:
        if isinstance(error, StorageError):
            raise
        found = find_undecodable(source, metadata, groups, names)
        problem = f"it cannot be decoded ({error})" if found is None else found.problem
        place = ("", None) if found is None else (found.column, found.row_group)
        raise DamagedFileError(uri, problem, *place) from error


def groups_to_read(metadata: pq.FileMetaData, file: DataFile, leaf: ParquetInput) -> list[bool]:
    """Whether a row of each row group may pass the leaf's test."""
    rows = [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]
    if leaf.test is None:
        return [True] * len(rows)
    constants = dict(file.constants)
    stored = {c.field.name.lower(): c for c in stored_columns(metadata)}
    tested = {
        position: stored[name]
        for position, column in enumerate(leaf.columns)
        if position in leaf.test.columns
        and (name := column.source.lower()) in stored
        and name not in constants
        and readers(stored[name].field.dtype, column.dtype) == "any"
    }
    groups = group_bounds(metadata, list(tested.values()))
    return [
        leaf.test.may_hold(
            {
                position: _widened_bounds(column, leaf.columns[position], num_rows, bounds)
                for (position, column), bounds in zip(tested.items(), known, strict=True)
            }
        )
        for num_rows, known in zip(rows, groups, strict=True)
    ]


def _widened_bounds(
    stored: StoredColumn, column: LeafColumn, num_rows: int, bounds: StoredBounds
) -> Bounds:
    return column_bounds(
        column.dtype, num_rows, widened_bounds(stored.field.dtype, column.dtype, bounds)
    )


def select_groups(
    metadata: pq.FileMetaData, files: Sequence[DataFile], wanted: Sequence[bool]
) -> tuple[list[int], list[tuple[int, int]]]:
    """Row groups that overlap the rows, and which of all their rows are meant."""
    groups: list[int] = []
    ranges: list[tuple[int, int]] = []
    chosen_rows = 0  # of `groups`
    for file in files:
        start = 0
        for group in range(metadata.num_row_groups):
            rows = metadata.row_group(group).num_rows
            low, high = max(file.row_start - start, 0), min(file.row_end - start, rows)
            start += rows
            if low >= high or not wanted[group]:
                continue
            if not groups or groups[-1] != group:
                groups.append(group)
                chosen_rows += rows
            ranges.append((chosen_rows - rows + low, chosen_rows - rows + high))
    return groups, ranges


def _cut(
    batches: Iterator[pa.RecordBatch], ranges: Sequence[tuple[int, int]]
) -> Iterator[pa.RecordBatch]:
    """The rows of ranges of a stream, which are in order."""
    left = deque(ranges)
    start = 0
    for batch in batches:
        end = start + batch.num_rows
        while left and left[0][0] < end:
            low, high = left[0]
            first = max(low, start)
            yield batch.slice(first - start, min(high, end) - first)
            if high > end:
                break
            left.popleft()
        start = end


def _column(
    batch: pa.RecordBatch,
    column: LeafColumn,
    stored: dict[str, str],
    constants: dict[str, str | None],
) -> pa.Array:
    kind = leaf_schema((column,)).types[0]
    if column.source.lower() in constants:
        value = pa.scalar(constants[column.source.lower()], pa.string())
        return pa.repeat(value.cast(kind), len(batch))
    if column.source.lower() not in stored:
        return pa.nulls(len(batch), kind)
    return widened_array(batch.column(stored[column.source.lower()]), kind)
