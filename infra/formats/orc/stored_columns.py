"""Columns of ORC files → Spark types, and who may read them.

Spark notes the type of a column beside it (`spark.sql.catalyst.type`), where ORC has none for it: a
TIMESTAMP_NTZ is a long.

Only Spark reads

- moments: they are stored as wall time in the zone of the JVM that wrote them;
- texts of writers that may mean CHAR, which pads them, and which pyarrow does not tell from STRING;
- intervals, and everything else of which the noted type is another than the stored one.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from stagecoach.planner import types
from stagecoach.planner.errors import CatalogError, UnsupportedSqlError
from stagecoach.planner.types import DataType, Field

_NOTED = b"spark.sql.catalyst.type"
_TRUSTED_WRITER = "ORC_CPP"
"""What pyarrow and others write with Apache's C++ library."""


@dataclass(frozen=True)
class StoredColumn:
    """A column of an ORC file.

    Args:
        field: Name and Spark type.
        spark_reason: Why only Spark may read it, or None.
    """

    field: Field
    spark_reason: str | None = None

    def why_spark(self, wanted: DataType) -> str | None:
        """Return why only Spark may read the column as one of a table's, or None.

        Args:
            wanted: Its type in the table.
        """
        if self.spark_reason is None and self.field.dtype != wanted:
            name, dtype = self.field.name, self.field.dtype
            return f"column {name!r} is {dtype} in a file, which Spark reads as {wanted}"
        return self.spark_reason


def stored_columns(schema: pa.Schema, writer: str) -> tuple[StoredColumn, ...]:
    """Return the columns of a file.

    Args:
        schema: As pyarrow has it.
        writer: Name of the library that wrote the file.

    Raises:
        CatalogError: A column has a type that Spark does not read.
    """
    return tuple(_column(field, writer) for field in schema)


def _column(field: pa.Field, writer: str) -> StoredColumn:
    dtype, reason = _type(field, writer)
    return StoredColumn(Field(field.name, dtype), reason)


def _type(field: pa.Field, writer: str) -> tuple[DataType, str | None]:
    noted = ((field.metadata or {}).get(_NOTED) or b"").decode()
    if field.type.num_fields:
        return _nested(field, writer)
    if noted == "timestamp_ntz" and pa.types.is_int64(field.type):
        return types.TIMESTAMP_NTZ, None
    if pa.types.is_timestamp(field.type):
        return types.TIMESTAMP, "only Spark reads timestamps of ORC files"
    dtype = _simple(field)
    if noted and noted != str(dtype):
        return _noted(field.name, noted)
    if dtype.kind == "string" and not noted and writer != _TRUSTED_WRITER:
        return dtype, f"only Spark reads texts of ORC files by the writer {writer}"
    return dtype, None


def _simple(field: pa.Field) -> DataType:
    try:
        return types.from_arrow(field.type)
    except UnsupportedSqlError:
        raise CatalogError(
            f"column {field.name!r} has the type {field.type}, which Spark does not read from ORC"
        ) from None


def _noted(name: str, noted: str) -> tuple[DataType, str]:
    try:
        return types.parse_column_type(noted), f"only Spark reads {noted} from ORC"
    except (UnsupportedSqlError, ValueError):
        raise CatalogError(
            f"column {name!r} has the type {noted}, which tables cannot have; declare the table's "
            "columns without it"
        ) from None


def _nested(field: pa.Field, writer: str) -> tuple[DataType, str | None]:
    if pa.types.is_union(field.type):
        raise CatalogError(f"column {field.name!r} is a union, which Spark does not read from ORC")
    if pa.types.is_map(field.type):
        parts = [field.type.key_field, field.type.item_field]
    else:
        parts = [field.type.field(i) for i in range(field.type.num_fields)]
    found = [_type(part, writer) for part in parts]
    inner = [dtype for dtype, _ in found]
    reason = next((reason for _, reason in found if reason is not None), None)
    # A member that is stored otherwise than it is read would have to be cast inside of the column.
    if reason is None and any(dtype == types.TIMESTAMP_NTZ for dtype in inner):
        reason = "only Spark reads timestamps inside of other values from ORC"
    if pa.types.is_map(field.type):
        return types.map_of(*inner), reason
    if pa.types.is_struct(field.type):
        names = [part.name for part in parts]
        fields = tuple(Field(name, dtype) for name, dtype in zip(names, inner, strict=True))
        return types.struct_of(fields), reason
    return types.array_of(inner[0]), reason
