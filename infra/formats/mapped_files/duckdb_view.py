"""Tables of mapped files in DuckDB: a `MappedInput` as a view of the rows that are not deleted.

    files that store alike      one read_parquet, or the stream of a remote file
      ANTI JOIN positions       of position deletes and deletion vectors, by file and row number
      ANTI JOIN keys            of equality deletes, NULL being equal to NULL
    UNION ALL the next ones

Files store alike if the same SQL reads the table's columns from them. Local files are read by
DuckDB itself, so that filters reach them; others by pyarrow, whole columns at a time.

Worker code.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from stagecoach.infra.errors import InputLostError
from stagecoach.infra.formats.mapped_files.columns import MappedColumn
from stagecoach.infra.formats.mapped_files.delete_files import delete_leaf, deleted_positions
from stagecoach.infra.formats.mapped_files.file_footers import footer_of
from stagecoach.infra.formats.mapped_files.inputs import MappedInput
from stagecoach.infra.formats.mapped_files.stored_columns import (
    StoredField,
    column_sql,
    placed,
    stored_fields,
)
from stagecoach.infra.integrity.errors import DamagedFileError
from stagecoach.infra.reading.data_file import DataFile
from stagecoach.infra.reading.deletes import DeleteFile
from stagecoach.infra.reading.footers import group_bounds
from stagecoach.infra.reading.input_files import check_file
from stagecoach.infra.reading.inputs import ParquetInput, watched
from stagecoach.infra.reading.parquet import check_local_rows, read_stored_columns
from stagecoach.infra.reading.parquet_types import (
    LEGACY_CALENDAR_REASON,
    has_legacy_times,
    stored_columns,
)
from stagecoach.infra.reading.row_bounds import column_bounds
from stagecoach.infra.storage.object_store import StorageOptions
from stagecoach.planner.errors import CatalogError
from stagecoach.planner.text.quoting import duckdb_name
from stagecoach.planner.text.type_names import duckdb_type

if TYPE_CHECKING:
    import duckdb

_POSITION = "__position"
_ROW_NUMBER = "file_row_number"
_FILE = "__file"
_EXPANSION = 4  # bytes in memory for each stored one


def bind_files(
    cursor: duckdb.DuckDBPyConnection,
    name: str,
    leaf: MappedInput,
    memory_bytes: int,
    input_errors: list[BaseException],
) -> None:
    """Make `name` a view of the cursor that shows the rows of a scan.

    Args:
        cursor: Whose view it is.
        name: Name of the view.
        leaf: What to show.
        memory_bytes: Memory of the task, of which files that DuckDB cannot open get a part.
        input_errors: Gets what reading such a file raises.

    Raises:
        DamagedFileError: A file is damaged.
        InputLostError: A file is gone or has changed.
        StorageError: The storage refused.
    """
    binder = _Binder(cursor, name, leaf, memory_bytes, input_errors)
    try:
        body = " UNION ALL ".join(binder.selects()) or binder.empty()
    except InputLostError as error:
        # Others wrote the file, and may have removed it with its snapshot.
        raise InputLostError(error.uri, error.problem) from error
    cursor.execute(f"CREATE TEMP VIEW {name} AS {body}")


@dataclass(frozen=True)
class _ReadFile:
    """A file, and how it is read.

    Args:
        file: The rows of it that are meant.
        items: SQL of the columns to give.
        keys: SQL of the columns that equality deletes name.
        stored: The columns of the file that these read.
        fields: All columns of the file.
        positions: Whether rows of it are deleted by position.
        by_keys: Files with equality deletes of its rows.
    """

    file: DataFile
    items: tuple[str, ...]
    keys: tuple[str, ...]
    stored: tuple[StoredField, ...]
    fields: tuple[StoredField, ...]
    positions: bool
    by_keys: tuple[DeleteFile, ...]

    @property
    def by_place(self) -> bool:
        """Whether SQL names the columns of the file by their places."""
        return any(field.place is not None for field in self.fields)

    @property
    def is_streamed(self) -> bool:
        """Whether DuckDB cannot open the file: it is remote, or has a name that an option adds."""
        if self.file.local_path is None:
            return True
        added = {_ROW_NUMBER, _FILE} if self.positions or not self.file.is_whole else set()
        return not added.isdisjoint(field.name.lower() for field in self.fields)

    @property
    def likeness(self) -> tuple[object, ...]:
        """What files have in common that one SELECT reads."""
        kinds = tuple((field.name, str(field.kind)) for field in self.stored)
        alike = (self.items, self.keys, kinds, self.positions, self.by_keys)
        whole = self.file.is_whole and self.file.local_path is not None and not self.by_place
        return alike if whole else (*alike, self.file.uri, self.file.row_start)


class _Binder:
    """Writes the SQL of one input, and registers what the SQL names."""

    def __init__(
        self,
        cursor: duckdb.DuckDBPyConnection,
        name: str,
        leaf: MappedInput,
        memory_bytes: int,
        input_errors: list[BaseException],
    ) -> None:
        self._cursor = cursor
        self._name = name
        self._leaf = leaf
        self._memory_bytes = memory_bytes
        self._errors = input_errors
        self._how = ParquetInput(
            (), (), leaf.storage_options, memory_bytes=leaf.memory_bytes, checks=leaf.checks
        )
        self._options = StorageOptions.from_dict(leaf.storage_options)
        self._numbers = itertools.count()
        self._key_tables: dict[tuple[object, ...], str] = {}

    def empty(self) -> str:
        """A relation without rows."""
        items = (
            f"CAST(NULL AS {duckdb_type(c.dtype)}) AS {duckdb_name(c.name)}"
            for c in self._leaf.columns
        )
        return f"SELECT {', '.join(items) or 'TRUE AS no_column'} WHERE FALSE"

    def selects(self) -> Iterator[str]:
        """The SELECTs of files that are read together."""
        found = [self._read_file(file) for file in self._leaf.files]
        groups: dict[tuple[object, ...], list[_ReadFile]] = {}
        for item in found:
            groups.setdefault(item.likeness, []).append(item)
        for files in groups.values():
            yield self._select(files)

    def _read_file(self, file: DataFile) -> _ReadFile:
        metadata = footer_of(file, self._how)
        try:
            fields = stored_fields(metadata, self._leaf.names, by_names=self._leaf.by_names)
            fields = placed(fields, (_ROW_NUMBER, _FILE))
        except CatalogError as error:
            raise CatalogError(f"{file.uri}: {error}") from error
        if has_legacy_times(metadata, (column.dtype for column in self._leaf.trees)):
            raise CatalogError(
                f"{file.uri}: {LEGACY_CALENDAR_REASON}, which are not read here; rewrite the file "
                "with Spark 3.1 or newer"
            )
        constants = {int(number): value for number, value in file.constants}
        deletes = () if file.deletes is None else file.deletes.files
        by_keys = tuple(d for d in deletes if d.kind == "keys")
        named = {number for d in by_keys for number in d.columns}
        keys = [column for column in self._leaf.keys if column.field_id in named]
        items = [column_sql(column, fields, constants) for column in self._leaf.trees]
        key_items = [column_sql(column, fields, constants) for column in keys]
        stored = [field for _, field in (*items, *key_items) if field is not None]
        return _ReadFile(
            file,
            tuple(sql for sql, _ in items),
            tuple(
                f"{sql} AS {_key_name(column.field_id)}"
                for (sql, _), column in zip(key_items, keys, strict=True)
            ),
            tuple(dict.fromkeys(stored)),
            fields,
            _has_positions(file),
            by_keys,
        )

    def _select(self, files: Sequence[_ReadFile]) -> str:
        first = files[0]
        names = [duckdb_name(column.name) for column in self._leaf.columns]
        items = [
            *(f"{sql} AS {name}" for sql, name in zip(first.items, names, strict=True)),
            *first.keys,
        ]
        source, conditions = self._source(files)
        if first.positions:
            items += [f"{_ROW_NUMBER} AS {_POSITION}", _FILE]
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        select = f"SELECT {', '.join(items) or 'TRUE AS no_column'} FROM {source}{where}"
        if not first.positions and not first.by_keys:
            return select
        joins = ""
        if first.positions:
            deleted = self._positions(files)
            joins += (
                f" ANTI JOIN {deleted} AS p ON t.{_FILE} = p.file AND t.{_POSITION} = p.position"
            )
        for number, (columns, group) in enumerate(_by_columns(first.by_keys).items()):
            keys = self._keys(columns, group)
            on = " AND ".join(
                f"t.{_key_name(column)} IS NOT DISTINCT FROM k{number}.{_key_name(column)}"
                for column in columns
            )
            joins += f" ANTI JOIN {keys} AS k{number} ON {on}"
        outputs = ", ".join(f"t.{name}" for name in names) or "TRUE AS no_column"
        return f"SELECT {outputs} FROM ({select}) AS t{joins}"

    # -------------------------------------------------------------- files

    def _source(self, files: Sequence[_ReadFile]) -> tuple[str, list[str]]:
        """An item of FROM with the stored columns, and what its rows must pass."""
        first = files[0]
        if first.is_streamed:
            if first.file.local_path is not None:
                check_file(first.file, self._options)
            return self._registered(first), []
        stored = [field.name for field in first.stored]
        for item in files:
            check_file(item.file, self._options)
            check_local_rows([item.file], stored, self._leaf.checks)
        paths = ", ".join(_literal(_escape_glob(item.file.local_path or "")) for item in files)
        options = ["hive_partitioning = false"]
        conditions = []
        if first.positions:
            options += [f"filename = '{_FILE}'"]
        if first.positions or not first.file.is_whole:
            options += [f"{_ROW_NUMBER} = true"]
        if not first.file.is_whole:
            low, high = first.file.row_start, first.file.row_end
            conditions = [f"{_ROW_NUMBER} >= {low}", f"{_ROW_NUMBER} < {high}"]
        relation = f"read_parquet([{paths}], {', '.join(options)})"
        if first.by_place:
            relation += f" AS f({', '.join(field.sql_name for field in first.fields)})"
        return relation, conditions

    def _registered(self, item: _ReadFile) -> str:
        """The name of a relation with the rows of a file that DuckDB cannot open."""
        name = f"{self._name}_file_{next(self._numbers)}"
        schema, batches = self._stream(item)
        reader = pa.RecordBatchReader.from_batches(schema, watched(batches, self._errors))
        if item.file.read_bytes * _EXPANSION > self._memory_bytes // 8:
            # A table of DuckDB's own can spill.
            self._cursor.register(f"stream_{name}", reader)
            self._cursor.execute(f"CREATE TEMP TABLE {name} AS SELECT * FROM stream_{name}")
            self._cursor.unregister(f"stream_{name}")
        else:
            self._cursor.register(name, reader.read_all())
        return name

    def _stream(self, item: _ReadFile) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
        """Stored columns of the rows that are meant of a file, with their positions if needed."""
        how = ParquetInput(
            (),
            (item.file,),
            self._leaf.storage_options,
            memory_bytes=self._leaf.memory_bytes,
            checks=self._leaf.checks,
        )
        # Positions are counted, so no row group may be left out.
        wanted = None if item.positions else self._wanted_groups(item)
        batches = read_stored_columns(how, [field.name for field in item.stored], wanted)
        schema = pa.schema([(field.sql_name, field.kind) for field in item.stored])
        plain = (
            pa.RecordBatch.from_arrays(
                [column.cast(kind) for column, kind in zip(b.columns, schema.types, strict=True)],
                schema=schema,
            )
            if len(schema)
            else b
            for b in batches
        )
        extra = [pa.field("no_stored_column", pa.bool_())] if not len(schema) else []
        if item.positions:
            extra += [pa.field(_ROW_NUMBER, pa.int64()), pa.field(_FILE, pa.string())]
        return pa.schema([*schema, *extra]), _extended(plain, item, pa.schema([*schema, *extra]))

    def _wanted_groups(self, item: _ReadFile) -> list[bool] | None:
        """Which row groups of a file may have a row that passes the filters of the scan."""
        test = self._leaf.test
        if test is None or item.by_place:  # where names do not tell columns apart
            return None
        metadata = footer_of(item.file, self._how)
        known = {column.field.name: column for column in stored_columns(metadata)}
        by_field = {field.field_id: field.name for field in item.stored}
        tested = {
            position: known[name]
            for position, column in enumerate(self._leaf.trees)
            if position in test.columns
            and (name := by_field.get(column.field_id, "")) in known
            and known[name].field.dtype == column.dtype
        }
        groups = group_bounds(metadata, list(tested.values()))
        return [
            test.may_hold(
                {
                    position: column_bounds(
                        column.field.dtype, metadata.row_group(i).num_rows, bounds
                    )
                    for (position, column), bounds in zip(tested.items(), found, strict=True)
                }
            )
            for i, found in enumerate(groups)
        ]

    # -------------------------------------------------------------- deletes

    def _positions(self, files: Sequence[_ReadFile]) -> str:
        """The name of a relation with the positions of deleted rows of files."""
        places, names = [], []
        for item in files:
            deletes = () if item.file.deletes is None else item.file.deletes.files
            listed = () if item.file.deletes is None else item.file.deletes.positions
            found = deleted_positions(
                item.file.uri, [d for d in deletes if d.kind == "positions"], self._how, listed
            )
            inside = found[(found >= item.file.row_start) & (found < item.file.row_end)]
            places.append(inside)
            names.append(pa.repeat(pa.scalar(item.file.uri, pa.string()), len(inside)))
        name = f"{self._name}_positions_{next(self._numbers)}"
        rows = pa.table({"file": pa.chunked_array(names), "position": np.concatenate(places)})
        self._cursor.register(name, rows)
        return name

    def _keys(self, columns: tuple[int, ...], files: Sequence[DeleteFile]) -> str:
        """The name of a table with the keys of equality deletes."""
        key = (columns, tuple(file.uri for file in files))
        if key not in self._key_tables:
            known = {column.field_id: column for column in self._leaf.keys}
            name = f"{self._name}_keys_{next(self._numbers)}"
            selects = [self._key_select([known[c] for c in columns], file) for file in files]
            body = " UNION ".join(selects)
            self._cursor.execute(f"CREATE TEMP TABLE {name} AS {body}")
            self._key_tables[key] = name
        return self._key_tables[key]

    def _key_select(self, columns: Sequence[MappedColumn], file: DeleteFile) -> str:
        """A SELECT of the keys in a delete file, as the table's columns."""
        leaf = delete_leaf(file, self._how)
        (data,) = leaf.files
        fields = placed(
            stored_fields(
                footer_of(data, self._how), self._leaf.names, by_names=self._leaf.by_names
            )
        )
        items = []
        stored: list[StoredField] = []
        for column in columns:
            sql, field = column_sql(column, fields, {})
            if field is None:
                raise DamagedFileError(
                    file.uri, f"it has no column with field id {column.field_id}"
                )
            items.append(f"{sql} AS {_key_name(column.field_id)}")
            stored.append(field)
        schema = pa.schema([(field.sql_name, field.kind) for field in stored])
        batches = [
            pa.RecordBatch.from_arrays(
                [c.cast(kind) for c, kind in zip(batch.columns, schema.types, strict=True)],
                schema=schema,
            )
            for batch in read_stored_columns(leaf, [field.name for field in stored])
        ]
        name = f"{self._name}_deletes_{next(self._numbers)}"
        self._cursor.register(name, pa.Table.from_batches(batches, schema))
        return f"SELECT {', '.join(items)} FROM {name}"


def _extended(
    batches: Iterator[pa.RecordBatch], item: _ReadFile, schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """Rows of a file with what else the SQL reads of them."""
    start = item.file.row_start
    for batch in batches:
        rows = batch.num_rows
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        columns["no_stored_column"] = pa.nulls(rows, pa.bool_())
        columns[_ROW_NUMBER] = pa.arange(start, start + rows)
        columns[_FILE] = pa.repeat(pa.scalar(item.file.uri, pa.string()), rows)
        start += rows
        yield pa.RecordBatch.from_arrays([columns[name] for name in schema.names], schema=schema)


def _has_positions(file: DataFile) -> bool:
    deletes = file.deletes
    return deletes is not None and (
        bool(deletes.positions) or any(d.kind == "positions" for d in deletes.files)
    )


def _by_columns(files: Sequence[DeleteFile]) -> dict[tuple[int, ...], list[DeleteFile]]:
    """Equality deletes by the columns that they name."""
    found: dict[tuple[int, ...], list[DeleteFile]] = {}
    for file in files:
        found.setdefault(tuple(sorted(file.columns)), []).append(file)
    return found


def _key_name(field_id: int) -> str:
    return f"__key_{field_id}"


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _escape_glob(path: str) -> str:
    return "".join(f"[{c}]" if c in "[*?" else c for c in path)
