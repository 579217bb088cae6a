"""Schemas of Delta tables as columns of Spark's types.

A column is found in data files by its physical name, or by its id where the table maps columns so
(`delta.columnMapping.mode`). Columns without an id are numbered by their physical names, which they
keep for good.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stagecoach.infra.formats.mapped_files.columns import MappedColumn, MappedName
from stagecoach.planner import types
from stagecoach.planner.catalog import ColumnNotes
from stagecoach.planner.errors import CatalogError
from stagecoach.planner.types import DataType, Field

_ID, _PHYSICAL = "delta.columnMapping.id", "delta.columnMapping.physicalName"
_NO_ID = 1 << 60  # added to numbers that are made of names
_DECIMAL = re.compile(r"decimal\((\d+), ?(\d+)\)")
_TYPES: Mapping[str, DataType] = {
    "boolean": types.BOOLEAN,
    "byte": types.TINYINT,
    "short": types.SMALLINT,
    "integer": types.INT,
    "long": types.BIGINT,
    "float": types.FLOAT,
    "double": types.DOUBLE,
    "string": types.STRING,
    "binary": types.BINARY,
    "date": types.DATE,
    "timestamp": types.TIMESTAMP,
    "timestamp_ntz": types.TIMESTAMP_NTZ,
}


@dataclass(frozen=True)
class DeltaSchema:
    """The columns of a table.

    Args:
        columns: The columns.
        physical: The name of each in data files and statistics.
        partitioned: Names of those that are in no data file.
        notes: Comments and NOT NULL.
        by_names: Whether columns of files go by their names; else by field ids.
    """

    columns: tuple[MappedColumn, ...]
    physical: tuple[str, ...]
    partitioned: frozenset[str]
    notes: Mapping[str, ColumnNotes]
    by_names: bool
    names: tuple[MappedName, ...]

    @property
    def fields(self) -> tuple[Field, ...]:
        """Names and types of the columns."""
        return tuple(Field(column.name, column.dtype) for column in self.columns)


def read_schema(
    schema: Mapping[str, Any], partitioned: Sequence[str], configuration: Mapping[str, str]
) -> DeltaSchema:
    """Return the columns of a table.

    Args:
        schema: Its schema, as the log has it.
        partitioned: The names of its partition columns.
        configuration: Its properties.

    Raises:
        CatalogError: A column is of a type that is not read.
    """
    mode = configuration.get("delta.columnMapping.mode", "none")
    if mode not in ("none", "name", "id"):
        raise CatalogError(f"the column mapping mode {mode!r} is not supported (name, id)")
    reader = _Reader(mode)
    columns, names = [], []
    for field in schema["fields"]:
        column, name = reader.field(field, field["name"], ())
        if column.name in partitioned and column.dtype.kind == "binary":
            raise CatalogError(
                f"partition column {column.name!r} is of type binary, whose values writers spell "
                "in different ways; partition by another column"
            )
        columns.append(column)
        if column.name not in partitioned:
            names.append(name)
    return DeltaSchema(
        tuple(columns),
        tuple(reader.physical(field) for field in schema["fields"]),
        frozenset(partitioned),
        _notes(schema["fields"]),
        mode != "id",
        tuple(names) if mode != "id" else (),
    )


def _notes(fields: Sequence[Mapping[str, Any]]) -> dict[str, ColumnNotes]:
    found = {}
    for field in fields:
        comment = str(field.get("metadata", {}).get("comment", ""))
        if comment or not field["nullable"]:
            found[field["name"]] = ColumnNotes(comment, nullable=field["nullable"])
    return found


class _Reader:
    """Reads fields of a schema.

    Args:
        mode: The table's column mapping.
    """

    def __init__(self, mode: str) -> None:
        self._mode = mode

    def physical(self, field: Mapping[str, Any]) -> str:
        """The name of a field in data files."""
        if self._mode == "none":
            return str(field["name"])
        found = field.get("metadata", {}).get(_PHYSICAL)
        if not isinstance(found, str):
            raise CatalogError(f"column {field['name']!r} has no physical name in the Delta log")
        return found

    def field(
        self, field: Mapping[str, Any], path: str, above: tuple[str, ...]
    ) -> tuple[MappedColumn, MappedName]:
        """A field of a struct, and how files call it."""
        metadata = field.get("metadata", {})
        if "__COLLATIONS" in metadata:
            raise CatalogError(
                f"column {path!r} has a collation, which is not supported; alter its type to "
                "STRING COLLATE UTF8_BINARY"
            )
        physical = self.physical(field)
        place = (*above, physical)
        number = self._number(metadata, place)
        dtype, members, names = self._type(field["type"], path, place)
        column = MappedColumn(number, field["name"], dtype, members)
        return column, MappedName((physical,), number, names)

    def _number(self, metadata: Mapping[str, Any], place: tuple[str, ...]) -> int:
        if self._mode != "none" and isinstance(metadata.get(_ID), int):
            return int(metadata[_ID])
        digest = hashlib.sha256("\0".join(place).encode()).digest()
        return _NO_ID + int.from_bytes(digest[:7], "big")

    def _element(
        self, kind: Any, part: str, path: str, above: tuple[str, ...]
    ) -> tuple[MappedColumn, MappedName]:
        """The element of an array, or the key or value of a map."""
        place = (*above, part)
        dtype, members, names = self._type(kind, f"{path}.{part}", place)
        number = self._number({}, place)
        return MappedColumn(number, part, dtype, members), MappedName((part,), number, names)

    def _type(
        self, kind: Any, path: str, place: tuple[str, ...]
    ) -> tuple[DataType, tuple[MappedColumn, ...], tuple[MappedName, ...]]:
        if isinstance(kind, str):
            return _atomic(kind, path), (), ()
        if kind["type"] == "struct":
            pairs = [self.field(f, f"{path}.{f['name']}", place) for f in kind["fields"]]
        elif kind["type"] == "array":
            pairs = [self._element(kind["elementType"], "element", path, place)]
        elif kind["type"] == "map":
            pairs = [
                self._element(kind["keyType"], "key", path, place),
                self._element(kind["valueType"], "value", path, place),
            ]
        else:
            raise _refused(path, str(kind["type"]))
        members = tuple(column for column, _ in pairs)
        fields = tuple(Field(member.name, member.dtype) for member in members)
        return DataType(kind["type"], fields=fields), members, tuple(name for _, name in pairs)


def _atomic(kind: str, path: str) -> DataType:
    if (found := _DECIMAL.fullmatch(kind)) is not None:
        return types.decimal(int(found[1]), int(found[2]))
    if kind not in _TYPES:
        raise _refused(path, kind)
    return _TYPES[kind]


def _refused(path: str, kind: str) -> CatalogError:
    return CatalogError(
        f"column {path!r} is of Delta's type {kind}, which is not read; use a table without it"
    )
