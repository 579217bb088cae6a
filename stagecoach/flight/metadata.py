"""What a catalog has, as the tables in which Flight SQL asks for it.

There is one catalog, whose name is empty, and a schema for each prefix of table names: `tpch` of
`tpch.q1`, and the empty one of names without a prefix. So tools that join the parts of a name come
to names that the SQL of a statement may have.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa

from stagecoach.api.session import Session
from stagecoach.flight.messages.commands import (
    GetCatalogs,
    GetKeys,
    GetSchemas,
    GetSqlInfo,
    GetTables,
    GetTableTypes,
    GetTypeInfo,
    MetadataCommand,
)
from stagecoach.flight.sql_info import SCHEMA as SQL_INFO
from stagecoach.flight.sql_info import info_table
from stagecoach.flight.type_info import TYPE_INFO, type_table
from stagecoach.planner.catalog import ColumnNotes
from stagecoach.planner.errors import StagecoachError
from stagecoach.planner.types import DataType, Field, to_arrow

log = logging.getLogger(__name__)

CATALOG = ""
TABLE = "TABLE"
_METADATA = "ARROW:FLIGHT:SQL:"


def _text(name: str, *, nullable: bool = True) -> pa.Field:
    return pa.field(name, pa.string(), nullable=nullable)


_CATALOGS = pa.schema([_text("catalog_name", nullable=False)])
_SCHEMAS = pa.schema([_text("catalog_name"), _text("db_schema_name", nullable=False)])
_TABLES = pa.schema(
    [
        _text("catalog_name"),
        _text("db_schema_name"),
        _text("table_name", nullable=False),
        _text("table_type", nullable=False),
    ]
)
_COLUMNS = _TABLES.append(pa.field("table_schema", pa.binary(), nullable=False))
_TABLE_TYPES = pa.schema([_text("table_type", nullable=False)])
_PRIMARY_KEYS = pa.schema(
    [
        _text("catalog_name"),
        _text("db_schema_name"),
        _text("table_name", nullable=False),
        _text("column_name", nullable=False),
        _text("key_name"),
        pa.field("key_sequence", pa.int32(), nullable=False),
    ]
)
_FOREIGN_KEYS = pa.schema(
    [
        _text("pk_catalog_name"),
        _text("pk_db_schema_name"),
        _text("pk_table_name", nullable=False),
        _text("pk_column_name", nullable=False),
        _text("fk_catalog_name"),
        _text("fk_db_schema_name"),
        _text("fk_table_name", nullable=False),
        _text("fk_column_name", nullable=False),
        pa.field("key_sequence", pa.int32(), nullable=False),
        _text("fk_key_name"),
        _text("pk_key_name"),
        pa.field("update_rule", pa.uint8(), nullable=False),
        pa.field("delete_rule", pa.uint8(), nullable=False),
    ]
)


def metadata_schema(command: MetadataCommand) -> pa.Schema:
    """Return the columns of the answer to a command."""
    match command:
        case GetCatalogs():
            return _CATALOGS
        case GetSchemas():
            return _SCHEMAS
        case GetTables():
            return _COLUMNS if command.include_schema else _TABLES
        case GetTableTypes():
            return _TABLE_TYPES
        case GetSqlInfo():
            return SQL_INFO
        case GetTypeInfo():
            return TYPE_INFO
        case GetKeys():
            return _PRIMARY_KEYS if command.primary else _FOREIGN_KEYS


def metadata_table(command: MetadataCommand, session: Session) -> pa.Table:
    """Return the answer to a command.

    Args:
        command: The command.
        session: Knows the tables.

    Raises:
        StagecoachError: The catalog cannot be read.
    """
    match command:
        case GetCatalogs():
            return pa.table([[CATALOG]], schema=_CATALOGS)
        case GetSchemas():
            return _schemas(command, session)
        case GetTables():
            return _tables(command, session)
        case GetTableTypes():
            return pa.table([[TABLE]], schema=_TABLE_TYPES)
        case GetSqlInfo():
            return info_table(command.codes)
        case GetTypeInfo():
            return type_table(command.data_type)
        case GetKeys():
            return metadata_schema(command).empty_table()


def _schemas(command: GetSchemas, session: Session) -> pa.Table:
    fits = like(command.pattern)
    names = sorted({_split(name)[0] for name in session.catalog.table_names()} | {""})
    found = [name for name in names if fits(name) and command.catalog in (None, CATALOG)]
    return pa.table([[CATALOG] * len(found), found], schema=_SCHEMAS)


def _tables(command: GetTables, session: Session) -> pa.Table:
    fits_schema, fits_name = like(command.schema_pattern), like(command.table_pattern)
    is_wanted = command.catalog in (None, CATALOG) and (not command.types or TABLE in command.types)
    rows: list[tuple[Any, ...]] = []
    for name in sorted(session.catalog.table_names()) if is_wanted else ():
        prefix, own = _split(name)
        if not (fits_schema(prefix) and fits_name(own)):
            continue
        row: tuple[Any, ...] = (CATALOG, prefix, own, TABLE)
        if command.include_schema:
            row = (*row, _described(name, session).serialize().to_pybytes())
        rows.append(row)
    schema = metadata_schema(command)
    columns = zip(*rows, strict=True) if rows else ((),) * len(schema)
    return pa.table([list(column) for column in columns], schema=schema)


def _described(name: str, session: Session) -> pa.Schema:
    """The columns of a table, with what Flight SQL tells of them besides their Arrow types."""
    try:
        table = session.catalog.table(name)
    except StagecoachError as error:
        # One table without files must not hide all others from a tool that lists them.
        log.warning("the columns of table '%s' are not known: %s", name, error)
        return pa.schema([])
    if table is None:
        return pa.schema([])
    notes = _notes(name, session)
    return pa.schema([_field(name, field, notes) for field in table.columns])


def _notes(name: str, session: Session) -> Mapping[str, ColumnNotes]:
    found = getattr(session.base_catalog, "notes", None)
    is_base = name in session.base_catalog.table_names()
    return found(name) if found is not None and is_base else {}


def _field(table: str, field: Field, notes: Mapping[str, ColumnNotes]) -> pa.Field:
    prefix, own = _split(table)
    told = {
        "CATALOG_NAME": CATALOG,
        "DB_SCHEMA_NAME": prefix,
        "TABLE_NAME": own,
        "TYPE_NAME": str(field.dtype),
        "IS_AUTO_INCREMENT": "0",
        "IS_CASE_SENSITIVE": "1" if field.dtype.kind == "string" else "0",
        "IS_READ_ONLY": "1",
        "IS_SEARCHABLE": "1",
        **_digits(field.dtype),
    }
    if (note := notes.get(field.name)) is not None and note.comment:
        told["REMARKS"] = note.comment
    metadata = {f"{_METADATA}{key}": value for key, value in told.items()}
    try:
        kind = to_arrow(field.dtype)
    except StagecoachError:
        kind = pa.string()  # of a type that only Spark has, which results have as text
    return pa.field(field.name, kind, metadata=metadata)


def _digits(dtype: DataType) -> dict[str, str]:
    if not dtype.is_decimal:
        return {}
    return {"PRECISION": str(dtype.precision), "SCALE": str(dtype.scale)}


def _split(name: str) -> tuple[str, str]:
    prefix, _, own = name.rpartition(".")
    return prefix, own


def like(pattern: str | None) -> Callable[[str], bool]:
    """Return a test for names that a pattern of `LIKE` fits: `%`, `_`, and a backslash before them.

    Args:
        pattern: The pattern; None fits all.
    """
    if pattern is None:
        return lambda name: True
    parts = re.findall(r"\\.|.", pattern, re.DOTALL)
    wild = {"%": ".*", "_": "."}
    compiled = re.compile("".join(wild.get(p) or re.escape(p[-1]) for p in parts), re.S | re.I)
    return lambda name: compiled.fullmatch(name) is not None
