"""Rows to append, from files or Arrow data: their columns, and the rows in pieces.

    Parquet, Arrow IPC       read in pieces, whatever their size
    CSV, NDJSON              read whole, because their types are known only then

A column that the table has is read with the table's type: a postcode keeps its zeros. Whole numbers
too large for it are left as they are, so that the table's column may widen.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet as pq

from stagecoach.infra.errors import StorageError
from stagecoach.infra.formats.deduplicated.errors import AppendError
from stagecoach.infra.storage.object_store import StorageOptions, redact_url
from stagecoach.infra.storage.stores import open_store
from stagecoach.planner.types import DataType, Field, to_arrow

PIECE_ROWS = 1 << 20
PIECE_BYTES = 256 << 20
"""Largest piece, in bytes of Arrow memory; a chunk holds one piece at most."""
_BATCH_ROWS = 1 << 17
_MAX_BLOCK = (1 << 31) - 1

FORMATS = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".arrows": "arrow",
    ".ipc": "arrow",
    ".feather": "arrow",
    ".csv": "csv",
    ".tsv": "tsv",
    ".ndjson": "ndjson",
    ".jsonl": "ndjson",
    ".json": "ndjson",
}


@dataclass(frozen=True)
class Source:
    """Rows that are to be appended.

    Args:
        place: Where they come from, for messages.
        schema: Their columns.
        batches: Reads them, in order; may be called once.
    """

    place: str
    schema: pa.Schema
    batches: Callable[[], Iterable[pa.RecordBatch]]

    def pieces(self) -> Iterator[pa.Table]:
        """Yield the rows in pieces, in their order; none is empty.

        Raises:
            AppendError: They cannot be read.
        """
        waiting: list[pa.RecordBatch] = []
        num_rows = num_bytes = 0
        try:
            for whole in self.batches():
                for start in range(0, whole.num_rows, _BATCH_ROWS):
                    batch = whole.slice(start, _BATCH_ROWS)
                    waiting.append(batch)
                    num_rows += batch.num_rows
                    num_bytes += batch.nbytes
                    if num_rows >= PIECE_ROWS or num_bytes >= PIECE_BYTES:
                        yield pa.Table.from_batches(waiting, schema=self.schema)
                        waiting, num_rows, num_bytes = [], 0, 0
        except (pa.ArrowException, OSError) as error:
            raise AppendError(f"{self.place}: cannot be read: {error}") from error
        if waiting:
            yield pa.Table.from_batches(waiting, schema=self.schema)


def open_source(
    item: object,
    columns: Sequence[Field],
    *,
    position: int = 0,
    options: StorageOptions | None = None,
    file_format: str | None = None,
) -> Source:
    """Return the source of what a caller wants to append.

    Args:
        item: A path or URL of a file; or an Arrow table, batch or reader, a pandas frame, or a
            list of mappings.
        columns: The table's columns.
        position: Which one of several items it is, for messages.
        options: How to reach S3.
        file_format: `parquet`, `arrow`, `csv`, `tsv` or `ndjson`; by default the name tells.

    Raises:
        AppendError: It is none of these, or it cannot be read.
    """
    if isinstance(item, str | os.PathLike):
        return _open_file(os.fspath(item), columns, options, file_format)
    place = f"rows {position}" if position else "rows"
    if isinstance(item, pa.RecordBatchReader):
        return Source(place, item.schema, lambda: item)
    try:
        rows = _as_table(item)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise AppendError(f"{place}: cannot be had as Arrow rows: {error}") from error
    return Source(place, rows.schema, rows.to_batches)


def _as_table(item: object) -> pa.Table:
    if isinstance(item, pa.Table):
        return item
    if isinstance(item, pa.RecordBatch):
        return pa.Table.from_batches([item])
    if isinstance(item, list):
        # Keys of all rows: `from_pylist` looks at the first one only.
        names = {name: None for row in item for name in row}
        return pa.table({name: pa.array([row.get(name) for row in item]) for name in names})
    if hasattr(item, "__arrow_c_stream__"):
        return pa.table(item)
    if type(item).__module__.split(".")[0] == "pandas":
        return pa.Table.from_pandas(item, preserve_index=False).replace_schema_metadata()
    raise TypeError(
        f"{type(item).__name__} is not a table, a frame, a list of mappings or the path of a file"
    )


def _open_file(
    path: str, columns: Sequence[Field], options: StorageOptions | None, file_format: str | None
) -> Source:
    place = redact_url(path)
    name, packed = (path[:-3], True) if path.lower().endswith(".gz") else (path, False)
    found = file_format or FORMATS.get(os.path.splitext(name)[1].lower(), "")
    if found not in FORMATS.values() or (packed and found in ("parquet", "arrow")):
        raise AppendError(
            f"{place}: its name tells no known format ({', '.join(FORMATS)}; text also .gz); "
            "rename it or name the format"
        )
    try:
        file = _open_input(path, options)
        if found == "parquet":
            parquet = pq.ParquetFile(file)
            return Source(
                place, parquet.schema_arrow, lambda: parquet.iter_batches(batch_size=_BATCH_ROWS)
            )
        if found == "arrow":
            return _arrow_source(place, file)
        text = (pa.CompressedInputStream(file, "gzip") if packed else file).read()
        rows = _read_json(text, columns) if found == "ndjson" else _read_csv(text, columns, found)
    except (pa.ArrowException, OSError) as error:
        hint = _HINTS.get(found, "")
        raise AppendError(f"{place}: cannot be read as {found}: {error}{hint}") from error
    except StorageError as error:
        raise AppendError(str(error)) from error
    return Source(place, rows.schema, rows.to_batches)


_HINTS = {"csv": "; timestamps of a table need a zone, such as 2024-01-31T12:00:00Z"}


def _open_input(path: str, options: StorageOptions | None) -> pa.NativeFile:
    folder, _, name = path.rpartition("/")
    if "://" not in path:
        folder, name = os.path.split(os.path.abspath(os.path.expanduser(path)))
    return open_store(folder, options).open_input(name)


def _arrow_source(place: str, file: pa.NativeFile) -> Source:
    magic = file.read(6)
    file.seek(0)
    if magic != b"ARROW1":
        stream = pa.ipc.open_stream(file)
        return Source(place, stream.schema, lambda: stream)
    reader = pa.ipc.open_file(file)
    return Source(
        place,
        reader.schema,
        lambda: (reader.get_batch(i) for i in range(reader.num_record_batches)),
    )


def _read_csv(text: bytes, columns: Sequence[Field], file_format: str) -> pa.Table:
    """CSV as Spark and PostgreSQL have it: a header; nothing is NULL, `""` is an empty text."""
    parse = pa.csv.ParseOptions(
        delimiter="\t" if file_format == "tsv" else ",", newlines_in_values=True
    )
    names = pa.csv.open_csv(pa.BufferReader(text), parse_options=parse).schema.names
    known = {field.name.lower(): _text_type(field) for field in columns}
    convert = pa.csv.ConvertOptions(
        column_types={n: known[n.lower()] for n in names if n.lower() in known},
        null_values=[""],
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
    )
    rows = pa.csv.read_csv(pa.BufferReader(text), parse_options=parse, convert_options=convert)
    return _narrowed(rows, columns)


def _read_json(text: bytes, columns: Sequence[Field]) -> pa.Table:
    if not text.strip():
        return pa.table({})
    known = pa.schema([(field.name, _json_type(field)) for field in columns])
    rows = pa.json.read_json(
        pa.BufferReader(text),
        # One block: an object never straddles two, and types come from all rows.
        read_options=pa.json.ReadOptions(block_size=min(len(text) + 1, _MAX_BLOCK)),
        parse_options=pa.json.ParseOptions(
            explicit_schema=known, unexpected_field_behavior="infer", newlines_in_values=True
        ),
    )
    # Arrow adds the columns of the explicit schema that no row has.
    absent = [
        name
        for name in known.names
        if rows.column(name).null_count == len(rows) and json.dumps(name).encode() not in text
    ]
    return _narrowed(rows.drop_columns(absent), columns)


def _text_type(field: Field) -> pa.DataType:
    return pa.int64() if field.dtype.is_integral else to_arrow(field.dtype)


def _json_type(field: Field) -> pa.DataType:
    # Arrow's JSON has dates as numbers only.
    return pa.string() if field.dtype.kind == "date" else _text_type(field)


def _narrowed(rows: pa.Table, columns: Sequence[Field]) -> pa.Table:
    """Whole numbers with the table's type where all of them fit, and dates out of texts."""
    known: Mapping[str, DataType] = {field.name.lower(): field.dtype for field in columns}
    for position, name in enumerate(rows.schema.names):
        dtype, column = known.get(name.lower()), rows.column(position)
        if dtype is None or column.type == to_arrow(dtype):
            continue
        if dtype.is_integral and pa.types.is_int64(column.type):
            try:
                column = pc.cast(column, to_arrow(dtype))
            except pa.ArrowInvalid:
                continue  # the table's column widens
        elif dtype.kind == "date":
            column = pc.cast(column, pa.date32())
        rows = rows.set_column(position, name, column)
    return rows
