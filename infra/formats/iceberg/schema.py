"""Schemas of Iceberg tables as columns of Spark's types.

Types are those of Iceberg's own integration with Spark. Types that Spark does not read from an
Iceberg table are refused, by the name of the column.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from stagecoach.infra.formats.mapped_files.columns import MappedColumn, MappedName, value_text
from stagecoach.planner import types
from stagecoach.planner.errors import CatalogError
from stagecoach.planner.types import DataType, Field

if TYPE_CHECKING:
    from pyiceberg.schema import Schema
    from pyiceberg.types import IcebergType, NestedField


def table_columns(schema: Schema) -> tuple[MappedColumn, ...]:
    """Return the columns of a schema.

    Raises:
        CatalogError: Spark cannot read a column, or two have the same name to Spark.
    """
    columns = tuple(_column(field, field.name) for field in schema.fields)
    seen: dict[str, str] = {}
    for column in columns:
        other = seen.setdefault(column.name.lower(), column.name)
        if other is not column.name:
            raise CatalogError(
                f"columns {other!r} and {column.name!r} have the same name in Spark, where case "
                "does not matter; rename one"
            )
    return columns


def mapped_names(fields: Iterable[Any]) -> tuple[MappedName, ...]:
    """Return the fields of a name mapping (`schema.name-mapping.default`) of the table."""
    return tuple(
        MappedName(tuple(field.names), field.field_id, mapped_names(field.fields or ()))
        for field in fields
    )


def _column(field: NestedField, path: str) -> MappedColumn:
    dtype, members = _type(field.field_type, path)
    default = field.initial_default
    if default is not None and not dtype.is_atomic:
        raise CatalogError(f"column {path!r} has a default of its members, which is not supported")
    text = None if default is None else value_text(default, dtype)
    return MappedColumn(field.field_id, field.name, dtype, members, text)


def _type(kind: IcebergType, path: str) -> tuple[DataType, tuple[MappedColumn, ...]]:
    from pyiceberg import types as it

    match kind:
        case it.StructType():
            members = tuple(_column(f, f"{path}.{f.name}") for f in kind.fields)
            fields = tuple(Field(member.name, member.dtype) for member in members)
            return DataType("struct", fields=fields), members
        case it.ListType():
            element = _column(kind.element_field, f"{path}.element")
            return DataType("array", fields=(Field("element", element.dtype),)), (element,)
        case it.MapType():
            key = _column(kind.key_field, f"{path}.key")
            value = _column(kind.value_field, f"{path}.value")
            inner = (Field("key", key.dtype), Field("value", value.dtype))
            return DataType("map", fields=inner), (key, value)
        case it.DecimalType():
            return types.decimal(kind.precision, kind.scale), ()
        case it.FixedType():
            return types.BINARY, ()
    known: dict[object, DataType] = {
        it.BooleanType: types.BOOLEAN,
        it.IntegerType: types.INT,
        it.LongType: types.BIGINT,
        it.FloatType: types.FLOAT,
        it.DoubleType: types.DOUBLE,
        it.DateType: types.DATE,
        it.TimestampType: types.TIMESTAMP_NTZ,
        it.TimestamptzType: types.TIMESTAMP,
        it.StringType: types.STRING,
        it.UUIDType: types.STRING,
        it.BinaryType: types.BINARY,
    }
    found = known.get(type(kind))
    if found is None:
        raise CatalogError(
            f"column {path!r} is of Iceberg's type {kind}, which Spark does not read; "
            "use a table without it"
        )
    return found, ()


def fields_of(columns: Sequence[MappedColumn]) -> tuple[Field, ...]:
    """Return names and types of columns."""
    return tuple(Field(column.name, column.dtype) for column in columns)
