"""Deduplicated tables in DuckDB: a `ChunkInput` as a relation with one row for each key.

Worker code. Each part becomes up to three SELECTs:

    plain               what has no twin, read as an ordinary scan; filters reach the files
    base ANTI newer     rows of the oldest layer whose key no newer row has: the newer ones, few as
                        a rule, are the hash table, the others stream past it
    newer               the latest of each key: a window orders rows whose key occurs twice in these
    base FULL newer     instead of the last two where a column tells versions: of two rows with one
                        key the one with the higher version, of equal versions the newer one

Local Parquet files are read by DuckDB itself; all others by pyarrow, whole columns at a time.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from stagecoach.infra.engines.duckdb.parquet_bounds import without_bounds
from stagecoach.infra.errors import InputLostError
from stagecoach.infra.formats.deduplicated.inputs import (
    ChunkInput,
    ChunkPart,
    ChunkRows,
)
from stagecoach.infra.integrity.fetched import open_checked_arrow
from stagecoach.infra.integrity.local import FileChecks, check_local_arrow
from stagecoach.infra.reading.input_files import check_file
from stagecoach.infra.reading.inputs import LeafColumn, ParquetInput, watched
from stagecoach.infra.reading.parquet import check_local_rows, read_parquet_batches
from stagecoach.infra.storage.object_store import StorageOptions
from stagecoach.infra.storage.stores import open_store
from stagecoach.planner.functions.spell_collections import normalized
from stagecoach.planner.text.quoting import duckdb_name
from stagecoach.planner.text.type_names import duckdb_type
from stagecoach.planner.types import DataType, parse_type

if TYPE_CHECKING:
    import duckdb

POSITION = "__position"
_SEQUENCE = "__sequence"
_OLD = "__old"
_EXPANSION = 4  # bytes in memory for each stored one


def bind_chunks(
    cursor: duckdb.DuckDBPyConnection,
    name: str,
    leaf: ChunkInput,
    memory_bytes: int,
    input_errors: list[BaseException],
) -> None:
    """Make `name` a view of the cursor that shows the rows of a deduplicated table.

    Args:
        cursor: Whose view it is.
        name: Name of the view.
        leaf: What to show.
        memory_bytes: Memory of the task, of which files that DuckDB cannot open get a part.
        input_errors: Gets what reading such a file raises.

    Raises:
        InputLostError: A file is gone or has changed.
        StorageError: The storage refused.
    """
    binder = _Binder(cursor, name, leaf, memory_bytes, input_errors)
    selects = [text for part in leaf.parts for text in binder.part(part)]
    body = " UNION ALL ".join(selects) or binder.empty()
    cursor.execute(f"CREATE TEMP VIEW {name} AS {body}")


class _Binder:
    """Writes the SQL of one input, and registers what the SQL names."""

    def __init__(
        self,
        cursor: duckdb.DuckDBPyConnection,
        name: str,
        leaf: ChunkInput,
        memory_bytes: int,
        input_errors: list[BaseException],
    ) -> None:
        self._cursor = cursor
        self._name = name
        self._leaf = leaf
        self._memory_bytes = memory_bytes
        self._errors = input_errors
        self._options = StorageOptions.from_dict(leaf.storage_options)
        self._columns = {c.name: c for c in (*leaf.columns, *leaf.hidden)}
        self._outputs = ", ".join(duckdb_name(c.name) for c in leaf.columns) or "TRUE AS no_column"
        self._relations: dict[tuple[str, int, int], str] = {}
        self._numbers = itertools.count()

    def empty(self) -> str:
        """A relation without rows."""
        items = ", ".join(
            f"CAST(NULL AS {duckdb_type(c.dtype)}) AS {duckdb_name(c.name)}"
            for c in self._leaf.columns
        )
        return f"SELECT {items or 'TRUE AS no_column'} WHERE FALSE"

    def part(self, part: ChunkPart) -> list[str]:
        """The SELECTs of a part, which have no row in common."""
        selects = []
        if part.plain:
            selects.append(self._shown(self._scan(part.plain), part.plain, self._condition(part)))
        if part.newer:
            selects.append(f"SELECT * FROM ({self._compared(part)})")
        elif part.base:
            selects.append(self._shown(self._scan(part.base), part.base, self._condition(part)))
        return selects

    def _condition(self, part: ChunkPart) -> str:
        """What rows of a part must pass; alike for all rows with a key."""
        first, end, count = part.shares
        parts = [part.where] if part.where else []
        if end - first < count:
            share = f"hash({', '.join(self._key(part))}) % {count}"
            parts.append(f"{share} >= {first} AND {share} < {end}")
        return " AND ".join(parts)

    def _shown(self, source: str, files: Sequence[ChunkRows], where: str) -> str:
        """The columns that are given of the rows that are not marked as deleted."""
        conditions = [f"({where})"] if where else []
        if self._leaf.marker and any(f.has_deletes for f in files):
            conditions.append(f"{duckdb_name(self._leaf.marker)} IS DISTINCT FROM TRUE")
        return f"SELECT {self._outputs} FROM {source}{_where(' AND '.join(conditions))}"

    def _compared(self, part: ChunkPart) -> str:
        """A statement that gives the rows of the base and the newer files that are shown.

        What is written twice in it is computed once.
        """
        tables = [f"sent AS MATERIALIZED ({self._sent(part)})"]
        newer = "sent"
        if not part.are_newer_distinct:
            key = ", ".join(self._key(part))
            # Few keys occur twice as a rule: only their rows are put in order.
            twins = f"SELECT {key} FROM sent GROUP BY {key} HAVING count(*) > 1"
            tables.append(f"twins AS MATERIALIZED ({twins})")
            tables.append(f"newer AS ({self._latest(part)})")
            newer = "newer"
        if not part.base:
            selects = [self._shown(newer, part.newer, "")]
        elif self._leaf.version:
            selects = [self._shown(f"({self._by_version(part, newer)})", part.files, "")]
        else:
            on = self._same_key(part, "old", "sent")
            old = f"({self._old(part)}) AS old ANTI JOIN sent ON {on}"
            selects = [self._shown(old, part.base, ""), self._shown(newer, part.newer, "")]
        return f"WITH {', '.join(tables)} {' UNION ALL '.join(selects)}"

    def _sent(self, part: ChunkPart) -> str:
        """All rows of the newer files, with what orders them."""
        return (
            f"SELECT * FROM {self._scan(part.newer, ordered=True)}{_where(self._condition(part))}"
        )

    def _old(self, part: ChunkPart) -> str:
        return f"SELECT * FROM {self._scan(part.base)}{_where(self._condition(part))}"

    def _latest(self, part: ChunkPart) -> str:
        """The latest row for each key of those that were sent."""
        version = (
            f"{duckdb_name(self._leaf.version)} DESC NULLS LAST, " if self._leaf.version else ""
        )
        order = f"{version}{_SEQUENCE} DESC, {POSITION} DESC"
        key = ", ".join(self._key(part))
        on = self._same_key(part, "sent", "twins")
        return (
            f"SELECT * FROM sent ANTI JOIN twins ON {on} UNION ALL "
            f"SELECT * FROM (SELECT * FROM sent SEMI JOIN twins ON {on}) "
            f"QUALIFY row_number() OVER (PARTITION BY {key} ORDER BY {order}) = 1"
        )

    def _by_version(self, part: ChunkPart, newer: str) -> str:
        """The rows of highest version of a base and newer rows; the newer ones of equal versions.

        At most one row of each side has a key. NULL is the lowest version.
        """
        version = duckdb_name(self._leaf.version)
        older_wins = (
            f"late.{_SEQUENCE} IS NULL OR (old.{_OLD} IS NOT NULL AND old.{version} IS NOT NULL "
            f"AND (late.{version} IS NULL OR old.{version} > late.{version}))"
        )
        items = ", ".join(
            f"CASE WHEN {older_wins} THEN old.{name} ELSE late.{name} END AS {name}"
            for name in map(duckdb_name, self._columns)
        )
        return (
            f"SELECT {items} FROM (SELECT *, TRUE AS {_OLD} FROM ({self._old(part)})) AS old "
            f"FULL JOIN {newer} AS late ON {self._same_key(part, 'old', 'late')}"
        )

    def _same_key(self, part: ChunkPart, left: str, right: str) -> str:
        """The condition of a join of rows with equal keys."""
        return " AND ".join(f"{left}.{k} IS NOT DISTINCT FROM {right}.{k}" for k in self._key(part))

    def _key(self, part: ChunkPart) -> list[str]:
        """The key's columns; floats have a twin of one zero sign, for -0.0 is the key 0.0."""
        return [
            duckdb_name(_twin(name)) if self._columns[name].dtype.is_floating else duckdb_name(name)
            for name in part.key
        ]

    # -------------------------------------------------------------- files

    def _scan(self, files: Sequence[ChunkRows], *, ordered: bool = False) -> str:
        """All needed columns of the files' rows, as an item of FROM."""
        selects = []
        for _, alike in itertools.groupby(files, key=lambda f: _likeness(f, ordered)):
            selects.append(self._select(list(alike), ordered))
        return f"({' UNION ALL '.join(selects)})"

    def _select(self, files: list[ChunkRows], ordered: bool) -> str:
        """A SELECT of files that have the same columns, and the same rows of which are meant."""
        first = files[0]
        stored = {source: parse_type(kind) for source, kind in first.stored}
        items = []
        for column in self._columns.values():
            text = self._value(column, stored, column.source in first.may_hold_nan)
            items.append(f"{text} AS {duckdb_name(column.name)}")
            if column.dtype.is_floating:
                twin = normalized(text, column.dtype)
                items.append(f"{twin} AS {duckdb_name(_twin(column.name))}")
        source, position = self._source(files, needs_position=ordered and first.has_duplicates)
        if ordered:
            items.append(f"CAST({first.sequence} AS BIGINT) AS {_SEQUENCE}")
            items.append(f"CAST({position} AS BIGINT) AS {POSITION}")
        select = f"SELECT {', '.join(items)} FROM {source}"
        return f"SELECT * FROM ({select}) WHERE {first.clip}" if first.clip else select

    def _value(self, column: LeafColumn, stored: dict[str, DataType], may_be_nan: bool) -> str:
        kind = duckdb_type(column.dtype)
        if column.source not in stored:
            return f"CAST(NULL AS {kind})"
        if may_be_nan:
            return f"CAST({without_bounds(duckdb_name(column.source))} AS {kind})"
        # DuckDB drops a cast to the type that the column already has, so filters reach the file.
        return f"CAST({duckdb_name(column.source)} AS {kind})"

    def _source(self, files: list[ChunkRows], *, needs_position: bool) -> tuple[str, str]:
        """An item of FROM with the stored columns, and the SQL of a row's position."""
        for file in files:
            check_file(file, self._options)
        first = files[0]
        if not _is_native(first):
            relation = self._registered(first)
            return relation, POSITION
        stored = [source for source, _ in first.stored]
        for file in files:
            check_local_rows([file], stored, self._leaf.checks)
        paths = ", ".join(_literal(_escape_glob(f.local_path or "")) for f in files)
        numbered = needs_position or not first.is_whole
        option = ", file_row_number = true" if numbered else ""
        scan = f"read_parquet([{paths}], hive_partitioning = false{option})"
        if not first.is_whole:
            low, high = first.row_start, first.row_end
            scan = (
                f"(SELECT * FROM {scan} "
                f"WHERE file_row_number >= {low} AND file_row_number < {high})"
            )
        return scan, "file_row_number" if numbered else "0"

    def _registered(self, file: ChunkRows) -> str:
        """The name of a relation with the rows of a file that DuckDB cannot open."""
        key = (file.uri, file.row_start, file.row_end)
        if key not in self._relations:
            name = f"{self._name}_file_{next(self._numbers)}"
            schema, batches = self._read(file)
            reader = pa.RecordBatchReader.from_batches(schema, watched(batches, self._errors))
            if file.read_bytes * _EXPANSION > self._memory_bytes // 8:
                # A table of DuckDB's own can spill.
                self._cursor.register(f"stream_{name}", reader)
                self._cursor.execute(f"CREATE TEMP TABLE {name} AS SELECT * FROM stream_{name}")
                self._cursor.unregister(f"stream_{name}")
            else:
                self._cursor.register(name, reader.read_all())
            self._relations[key] = name
        return self._relations[key]

    def _read(self, file: ChunkRows) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
        """The file's stored columns, and the position of each row."""
        columns = tuple(LeafColumn(s, s, parse_type(kind)) for s, kind in file.stored)
        if file.kind == "parquet":
            leaf = ParquetInput(
                columns,
                (file,),
                self._leaf.storage_options,
                memory_bytes=self._leaf.memory_bytes,
                checks=self._leaf.checks,
            )
            batches = read_parquet_batches(leaf)
        else:
            batches = _arrow_batches(
                file, [c.source for c in columns], self._options, self._leaf.checks
            )
        numbered = _numbered(batches, file.row_start)
        first = next(numbered, None)
        if first is None:
            fields = [pa.field(c.source, pa.null()) for c in columns]
            return pa.schema([*fields, pa.field(POSITION, pa.int64())]), iter(())
        return first.schema, itertools.chain((first,), numbered)


def _arrow_batches(
    file: ChunkRows, columns: Sequence[str], options: StorageOptions, checks: FileChecks
) -> Iterator[pa.RecordBatch]:
    """Some columns of the rows of an Arrow IPC file.

    Raises:
        DamagedFileError: The file is damaged.
        InputLostError: The file has other rows than the snapshot says.
    """
    try:
        yield from _read_arrow(file, columns, options, checks)
    except (pa.ArrowInvalid, OSError) as error:
        raise InputLostError(file.uri, f"it is damaged ({error})", True) from error


def _read_arrow(
    file: ChunkRows, columns: Sequence[str], options: StorageOptions, checks: FileChecks
) -> Iterator[pa.RecordBatch]:
    folder, _, name = file.uri.removeprefix("file://").rpartition("/")
    if file.local_path is not None:
        check_local_arrow(
            file.local_path,
            num_bytes=file.num_bytes,
            checksum=file.footer_checksum,
            segments=file.checksums,
            checks=checks,
        )
    with open_store(folder, options).open_input(name) as source:
        if file.local_path is None and checks.files and file.footer_checksum:
            source = open_checked_arrow(
                source, file.uri, file.num_bytes, file.footer_checksum, file.checksums
            )
        reader = pa.ipc.open_file(source)
        if file.local_path is not None:
            # Only what is needed is decompressed; elsewhere each column would be a request.
            needed = sorted(reader.schema.get_field_index(column) for column in columns)
            reader = pa.ipc.open_file(source, options=pa.ipc.IpcReadOptions(included_fields=needed))
        start = 0
        for index in range(reader.num_record_batches):
            batch = reader.get_batch(index)
            low, high = max(file.row_start - start, 0), min(file.row_end - start, batch.num_rows)
            start += batch.num_rows
            if low < high:
                yield batch.select(list(columns)).slice(low, high - low)
        if start != file.num_rows:
            raise InputLostError(file.uri, f"it has {start} rows instead of {file.num_rows}", True)


def _numbered(batches: Iterator[pa.RecordBatch], start: int) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        positions = pa.arange(start, start + batch.num_rows)
        start += batch.num_rows
        yield pa.RecordBatch.from_arrays(
            [*batch.columns, positions], names=[*batch.schema.names, POSITION]
        )


def _likeness(file: ChunkRows, ordered: bool) -> tuple[object, ...]:
    """What files have in common that one SELECT reads."""
    if ordered or not file.is_whole or not _is_native(file):
        return (file.uri, file.row_start, file.clip)
    return (file.stored, file.may_hold_nan, file.clip)


def _is_native(file: ChunkRows) -> bool:
    return file.kind == "parquet" and file.local_path is not None


def _twin(name: str) -> str:
    return f"__key_{name}"


def _where(condition: str) -> str:
    return f" WHERE {condition}" if condition else ""


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _escape_glob(path: str) -> str:
    return "".join(f"[{c}]" if c in "[*?" else c for c in path)
