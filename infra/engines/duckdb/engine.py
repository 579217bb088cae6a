"""DuckDB inside a task.

Worker code. One database per process for each set of locked settings, a cursor per task. The
database can reach the folders of its inputs, its spill folder and the names that remote files have
while a fragment reads them (`scan_files`), and nothing else. With one thread, rows keep the order
of the input. The plan keeps the order of joins as written, left side streamed against the right
side.
"""

from __future__ import annotations

import atexit
import functools
import os
import re
import threading
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING

import duckdb
import pyarrow as pa

from stagecoach.infra.engines.duckdb.decimal_functions import DecimalFunctions
from stagecoach.infra.engines.duckdb.java_functions import JavaFunctions
from stagecoach.infra.engines.duckdb.parquet_bounds import leaves_out_values, without_bounds
from stagecoach.infra.engines.duckdb.project_functions import ProjectFunctions
from stagecoach.infra.engines.protocol import Fragment, Relation, Resources
from stagecoach.infra.errors import QueryError
from stagecoach.infra.functions.errors import FunctionRaisedError
from stagecoach.infra.functions.function_set import NO_FUNCTIONS, FunctionSet
from stagecoach.infra.host.process_folders import ProcessFolder
from stagecoach.infra.reading.data_file import DataFile, StoredTypes
from stagecoach.infra.reading.format_input import SqlInput
from stagecoach.infra.reading.inputs import (
    ArrowInput,
    LeafColumn,
    ParquetInput,
    conform,
    leaf_schema,
    watched,
)
from stagecoach.infra.reading.parquet import check_local_files, is_cached_locally
from stagecoach.planner.errors import StagecoachError, UnsupportedSqlError
from stagecoach.planner.text import type_names
from stagecoach.planner.text.quoting import duckdb_name
from stagecoach.planner.text.time_zones import duckdb_zone
from stagecoach.planner.types import DataType

if TYPE_CHECKING:
    from stagecoach.infra.engines.duckdb.scan_files import FragmentFiles, ScanFileSystem

BATCH_ROWS = 1 << 17
"""Rows of a result batch; a multiple of DuckDB's 2,048-row vectors."""
WIDE_BATCH_ROWS = 1 << 14
"""The same where a column has no fixed width: rows of 10 kB make batches of 160 MB then."""

_REMOTE_FILES = "stagecoach-scan://files"  # `scan_files.FOLDER`, without loading fsspec
_NO_PREFETCHING = "disable_parquet_prefetching"
_COLUMN_GAP = "parquet_prefetch_column_gap"
# Left to itself, DuckDB reads megabytes between two columns of a remote file, which nobody needs
# and which take requests of their own. Copying this many takes as long as another read of ours.
_GAP_BYTES = 256 << 10
_MAX_DATABASES = 4
# Join order is the planner's; pushing a partial aggregate below a join cost more than it saved.
# The rewriter makes sum(x) + count(x) of sum(x + 1) and so loses the overflow of x + 1 that Spark
# raises.
_DISABLED_OPTIMIZERS = "join_order,partial_aggregate_pushdown,aggregate_function_rewriter"


class DuckDbEngine:
    """DuckDB as a task engine.

    Args:
        batch_rows: Most rows of a batch; by default as many as the types of the result allow.
    """

    def __init__(self, batch_rows: int | None = None) -> None:
        self._batch_rows = batch_rows

    @contextmanager
    def run(self, fragment: Fragment, resources: Resources) -> Iterator[Iterator[pa.RecordBatch]]:
        """Run a fragment; see `stagecoach.infra.engines.protocol.TaskEngine`."""
        input_errors: list[BaseException] = []
        ended = ExitStack()
        sql, schema = fragment.sql, fragment.schema
        with _translate_errors(input_errors):
            database = _database(replace(resources, functions=NO_FUNCTIONS), os.getpid())
            cursor = database.cursor(sql, resources.functions)
        try:
            with _translate_errors(input_errors):
                words = Counter(re.findall(r"\w+", sql))
                # Of equal leaves the SQL names one.
                relations = {n: leaf for n, leaf in fragment.relations.items() if n in words}
                named = (name for name in words if name in relations)
                probe = next((name for name in named if not _is_empty(relations[name])), None)
                names = _remote_names(database, relations, input_errors, ended)
                for name, relation in relations.items():
                    # A reader can be read once, so only where the SQL names it once. And DuckDB
                    # knows nothing of its size, so it must be the side that is streamed: the first
                    # leaf of the text, or the first of the union's branch that this task is of.
                    once = name == probe and words[name] == 1
                    found = names.get(name, {})
                    _bind(cursor, name, relation, resources, input_errors, found, streamed=once)
                if _reads_from_page_cache(relations.values()):
                    cursor.execute(f"SET SESSION {_NO_PREFETCHING} = true")
                if names:
                    cursor.execute(f"SET SESSION {_COLUMN_GAP} = {_GAP_BYTES}")
                for name, value in fragment.variables.items():
                    cursor.execute(f"SET VARIABLE {duckdb_name(name)} = CAST({value} AS BIGINT)")
                # `sql` and not `execute`, which would hold the whole result.
                result = cursor.sql(sql)
                if len(result.columns) != len(schema):
                    raise QueryError(
                        f"the fragment has {len(result.columns)} columns, the plan {len(schema)}"
                    )
                reader = result.to_arrow_reader(self._batch_rows or _batch_rows(schema))
            yield _conformed(reader, schema, input_errors)
        finally:
            cursor.close()
            ended.close()


def duckdb_type(dtype: DataType) -> str:
    """DuckDB's spelling of a type.

    Raises:
        QueryError: If DuckDB has no such type.
    """
    try:
        return type_names.duckdb_type(dtype)
    except UnsupportedSqlError as error:
        raise QueryError(error.message) from error


class _Database:
    """A database and the functions that its queries have needed so far."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, time_zone: str) -> None:
        self._connection = connection
        self._decimals = DecimalFunctions(connection)
        self._java = JavaFunctions(connection)
        self._of_projects = ProjectFunctions(connection, time_zone)
        self._scans: ScanFileSystem | None = None
        self._lock = threading.Lock()

    def cursor(
        self, sql: str = "", functions: FunctionSet = NO_FUNCTIONS
    ) -> duckdb.DuckDBPyConnection:
        """A cursor that knows all functions of the SQL, and those of the project."""
        self.declare(sql)
        self._of_projects.declare(functions)
        return self._connection.cursor()

    def open_files(self, memory_bytes: int, errors: list[BaseException]) -> FragmentFiles:
        """A place for the remote files of a fragment.

        Args:
            memory_bytes: Bound of what is fetched of them and not yet decoded.
            errors: Where the errors of reads go.
        """
        # It loads fsspec, which tasks over local files do without.
        from stagecoach.infra.engines.duckdb.scan_files import FragmentFiles, ScanFileSystem

        with self._lock:
            if self._scans is None:
                self._scans = ScanFileSystem.register(self._connection)
        return FragmentFiles(self._scans, memory_bytes, errors)

    def declare(self, sql: str) -> None:
        """Make our own functions that the SQL names known to all cursors."""
        self._decimals.declare(sql)
        self._java.declare(sql)


@functools.lru_cache(maxsize=_MAX_DATABASES)
def _database(resources: Resources, pid: int) -> _Database:
    # `pid` is part of the key: a database must not be used on both sides of a fork.
    spill = _spill_folder(resources.spill_dir, pid)
    connection = duckdb.connect(":memory:")
    options: dict[str, str] = {
        "threads": str(resources.threads),
        "TimeZone": _literal(duckdb_zone(resources.time_zone) or resources.time_zone),
        "default_null_order": "'nulls_first_on_asc_last_on_desc'",
        "memory_limit": f"'{resources.memory_bytes}B'",
        "temp_directory": _literal(spill),
        # Remote files have names that no other task reads.
        "enable_external_file_cache": "false",
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
        "preserve_insertion_order": "true",
        "disabled_optimizers": f"'{_disabled_optimizers(resources)}'",
    }
    if resources.max_spill_bytes:
        options["max_temp_directory_size"] = f"'{resources.max_spill_bytes}B'"
    # A folder whose name has glob characters is compared in the form in which paths are given.
    folders = {
        spill,
        _REMOTE_FILES,
        *resources.directories,
        *map(_escape_glob, resources.directories),
    }
    allowed = ", ".join(_literal(d) for d in sorted(folders))
    options["allowed_configs"] = f"['{_NO_PREFETCHING}', '{_COLUMN_GAP}']"
    # The order matters: each of these restricts what may be set after it.
    options["allowed_directories"] = f"[{allowed}]"
    options["enable_external_access"] = "false"
    options["lock_configuration"] = "true"
    for name, value in options.items():
        # GLOBAL: a cursor is a session of its own, and would have the process's time zone.
        connection.execute(f"SET GLOBAL {name} = {value}")
    return _Database(connection, resources.time_zone)


atexit.register(_database.cache_clear)


def _disabled_optimizers(resources: Resources) -> str:
    """Those that are off: the build side is the planner's choice, too, unless it leaves that."""
    if resources.chooses_build_side:
        return _DISABLED_OPTIMIZERS
    return f"{_DISABLED_OPTIMIZERS},build_side_probe_side"


@functools.cache
def _spill_folder(parent: str, pid: int) -> str:
    """The folder of this process for what all its databases spill, kept until the process ends."""
    return ProcessFolder(parent, "duckdb").path


@contextmanager
def _translate_errors(input_errors: list[BaseException]) -> Iterator[None]:
    """Turn DuckDB's errors into `QueryError`, unless an input's own error lies below them."""
    try:
        yield
    except StagecoachError:
        raise
    except (duckdb.Error, pa.ArrowException, OSError, UnicodeError) as error:
        if input_errors:
            raise input_errors[0] from error
        # What a function of the project raised is behind DuckDB's own words.
        _, _, raised = str(error).partition(f"{FunctionRaisedError.__name__}: ")
        raise QueryError(raised or f"{type(error).__name__}: {error}") from error


def _conformed(
    reader: pa.RecordBatchReader, schema: pa.Schema, input_errors: list[BaseException]
) -> Iterator[pa.RecordBatch]:
    while True:
        with _translate_errors(input_errors):
            try:
                batch = reader.read_next_batch()
            except StopIteration:
                return
            batch = conform(batch, schema)
        yield batch


def _remote_names(
    database: _Database,
    relations: Mapping[str, Relation],
    errors: list[BaseException],
    ended: ExitStack,
) -> Mapping[str, Mapping[str, str]]:
    """What DuckDB opens in place of remote files, for each relation by URI; all are begun."""
    scans = {
        name: leaf
        for name, leaf in relations.items()
        if isinstance(leaf, ParquetInput) and any(f.local_path is None for f in leaf.files)
    }
    if not scans:
        return {}
    memory_bytes = max(leaf.memory_bytes for leaf in scans.values())
    files = database.open_files(memory_bytes, errors)
    ended.callback(files.close)
    return {name: files.add(leaf) for name, leaf in scans.items()}


def _bind(
    cursor: duckdb.DuckDBPyConnection,
    name: str,
    leaf: Relation,
    resources: Resources,
    input_errors: list[BaseException],
    remote_names: Mapping[str, str],
    *,
    streamed: bool,
) -> None:
    """Make `name` a relation of the cursor."""
    if isinstance(leaf, SqlInput):
        leaf.bind(cursor, name, resources.memory_bytes, input_errors)
        return
    if isinstance(leaf, ParquetInput):
        if not leaf.files:
            cursor.execute(f"CREATE TEMP VIEW {name} AS {_empty_select(leaf.columns)}")
            return
        if not remote_names:
            check_local_files(leaf)
        cursor.execute(f"CREATE TEMP VIEW {name} AS {parquet_select(cursor, leaf, remote_names)}")
        return
    if not isinstance(leaf, ArrowInput):
        raise QueryError(f"DuckDB cannot read a {type(leaf).__name__}")
    schema, batches = _as_stored(leaf_schema(leaf.columns), leaf.batches())
    reader = pa.RecordBatchReader.from_batches(schema, watched(batches, input_errors))
    if streamed:
        cursor.register(name, reader)
    elif leaf.num_bytes > resources.memory_bytes // 4:
        # Beyond what should be held outside DuckDB's memory limit: a table of its own can spill.
        cursor.register(f"stream_{name}", reader)
        cursor.execute(f"CREATE TEMP TABLE {name} AS SELECT * FROM stream_{name}")
        cursor.unregister(f"stream_{name}")
    else:
        cursor.register(name, reader.read_all())


def _reads_from_page_cache(relations: Collection[Relation]) -> bool:
    """Whether all Parquet files are local and in the page cache.

    DuckDB fetches the column chunks of a row group before it decodes them. Where nothing has to be
    waited for, that only copies them once more. A format that reads its files by itself is not
    asked about them.
    """
    scans = [leaf for leaf in relations if not isinstance(leaf, ArrowInput)]
    return bool(scans) and all(
        isinstance(leaf, ParquetInput)
        and all(file.local_path is not None for file in leaf.files)
        and is_cached_locally(leaf)
        for leaf in scans
    )


def _as_stored(
    schema: pa.Schema, batches: Iterator[pa.RecordBatch]
) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """The rows with durations as microseconds, which DuckDB would read as its own INTERVAL."""
    stored = pa.schema([pa.field(f.name, _stored_type(f.type)) for f in schema])
    if stored.equals(schema):
        return schema, batches
    return stored, (conform(batch, stored) for batch in batches)


def _stored_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_duration(kind):
        return pa.int64()
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(f.name, _stored_type(f.type)) for f in kind])
    if pa.types.is_map(kind):
        return pa.map_(_stored_type(kind.key_type), _stored_type(kind.item_type))
    if pa.types.is_list(kind):
        return pa.list_(pa.field("element", _stored_type(kind.value_type)))
    return kind


def _batch_rows(schema: pa.Schema) -> int:
    """Rows of a batch of about the same size whatever the columns are."""
    fixed = all(pa.types.is_primitive(k) or pa.types.is_decimal(k) for k in schema.types)
    return BATCH_ROWS if fixed else WIDE_BATCH_ROWS


def _is_empty(leaf: Relation) -> bool:
    if isinstance(leaf, SqlInput):
        return not leaf.num_parts
    return isinstance(leaf, ParquetInput) and not leaf.files


def parquet_select(
    cursor: duckdb.DuckDBPyConnection,
    leaf: ParquetInput,
    remote_names: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """A SELECT of Parquet files with the leaf's names and types.

    Whole neighbours that store the columns alike are one `read_parquet`: given files with different
    types, it would convert them all to those of the first. A part of a file is a range of
    `file_row_number`, by which DuckDB skips row groups.

    Args:
        cursor: Asked for the types of stored columns.
        leaf: The scan.
        remote_names: What DuckDB opens in place of files that are not local, by URI.
    """
    paths = {f.uri: remote_names.get(f.uri) or f.local_path or "" for f in leaf.files}
    groups: list[list[DataFile]] = []
    for file in leaf.files:
        if groups and file.is_whole and _reads_with(file, groups[-1][-1]):
            groups[-1].append(file)
        else:
            groups.append([file])
    kinds: dict[StoredTypes, dict[str, str]] = {}
    for first, *_ in groups:
        if first.stored_types not in kinds:
            kinds[first.stored_types] = _stored_kinds(cursor, leaf, paths[first.uri])
    return " UNION ALL ".join(
        _piece(leaf.columns, kinds[files[0].stored_types], files, paths) for files in groups
    )


def _reads_with(file: DataFile, other: DataFile) -> bool:
    """Whether two files can be read together."""
    return (
        other.is_whole
        and file.constants == other.constants
        and file.stored_types == other.stored_types
    )


def _piece(
    columns: tuple[LeafColumn, ...],
    kinds: dict[str, str],
    files: Sequence[DataFile],
    paths_by_uri: Mapping[str, str],
) -> str:
    first = files[0]
    # A column that a file lacks is NULL in all of its rows.
    constants = {**dict.fromkeys(first.lacks), **dict(first.constants)}
    items = ", ".join(_column(c, kinds, constants) for c in columns) or "TRUE AS no_column"
    paths = ", ".join(_literal(_escape_glob(paths_by_uri[f.uri])) for f in files)
    select = f"SELECT {items} FROM read_parquet([{paths}], hive_partitioning = false"
    if first.is_whole:
        return f"{select})"
    return (
        f"{select}, file_row_number = true) WHERE file_row_number >= {first.row_start} "
        f"AND file_row_number < {first.row_end}"
    )


def _column(column: LeafColumn, kinds: dict[str, str], constants: Mapping[str, str | None]) -> str:
    kind = duckdb_type(column.dtype)
    if column.source.lower() in constants:
        value = constants[column.source.lower()]
        text = "NULL" if value is None else _literal(value)
        return f"CAST({text} AS {kind}) AS {duckdb_name(column.name)}"
    source = duckdb_name(column.source)
    if column.dtype.kind == "timestamp" and kinds.get(column.source.lower()) == "TIMESTAMP":
        # INT96: an instant that DuckDB reads without its zone (engine-parity.md, section 4).
        return f"make_timestamptz(epoch_us({source})) AS {duckdb_name(column.name)}"
    if leaves_out_values(column.dtype):
        source = without_bounds(source)
    # DuckDB drops a cast to the type that the column already has, so filters still reach the file.
    # To another type, a cast converts as Spark's reader does (`infra.reading.widening`): members
    # of structs go by name, whatever its case, and missing ones are NULL.
    return f"CAST({source} AS {kind}) AS {duckdb_name(column.name)}"


def _stored_kinds(
    cursor: duckdb.DuckDBPyConnection, leaf: ParquetInput, path: str
) -> dict[str, str]:
    """DuckDB's types of the stored columns by lower-case name, asked for only where they matter."""
    if not any(c.dtype.kind == "timestamp" for c in leaf.columns):
        return {}
    name = _literal(_escape_glob(path))
    rows = cursor.execute(
        f"DESCRIBE SELECT * FROM read_parquet({name}, hive_partitioning = false)"
    ).fetchall()
    return {str(row[0]).lower(): str(row[1]) for row in rows}


def _empty_select(columns: tuple[LeafColumn, ...]) -> str:
    items = ", ".join(
        f"CAST(NULL AS {duckdb_type(c.dtype)}) AS {duckdb_name(c.name)}" for c in columns
    )
    return f"SELECT {items or 'TRUE AS no_column'} WHERE FALSE"


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _escape_glob(path: str) -> str:
    return re.sub(r"([\[*?])", r"[\1]", path)
