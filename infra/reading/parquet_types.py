"""Parquet columns → Spark types, as `ParquetToSparkSchemaConverter` maps them.

The metadata of a file gives one `StoredColumn` for each top-level column. Types come from what is
stored (physical and logical type), not from the Arrow schema that pyarrow keeps in
the footer and Spark does not know: an Arrow duration is a bigint to Spark.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from stagecoach.infra.reading.schema_merge import check_names
from stagecoach.planner import types
from stagecoach.planner.errors import CatalogError, UnsupportedSqlError
from stagecoach.planner.types import DataType, Field

INT96_REASON = "nested INT96 timestamps"
LEGACY_CALENDAR_REASON = "dates or timestamps in the legacy (Julian) calendar"

_SPARK_SCHEMA_KEY = b"org.apache.spark.sql.parquet.row.metadata"
_TOO_DEEP = (
    f"its footer key {_SPARK_SCHEMA_KEY.decode()} is nested too deeply; rewrite the file without it"
)
_SPARK_VERSION_KEY = b"org.apache.spark.version"
_LEGACY_KEYS = (b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96")
_FIRST_PROLEPTIC_VERSION = (3, 1)  # of Spark, for INT96; 3.0 for the rest
_PHYSICAL = {
    "BOOLEAN": types.BOOLEAN,
    "INT32": types.INT,
    "INT64": types.BIGINT,
    "INT96": types.TIMESTAMP,
    "FLOAT": types.FLOAT,
    "DOUBLE": types.DOUBLE,
    "BYTE_ARRAY": types.BINARY,
    "FIXED_LEN_BYTE_ARRAY": types.BINARY,
}
_LOGICAL = {
    "String": types.STRING,
    "Enum": types.STRING,
    "JSON": types.STRING,
    "BSON": types.BINARY,
    "Date": types.DATE,
    "Null": types.INT,
}
_INTEGERS = {
    (8, True): types.TINYINT,
    (16, True): types.SMALLINT,
    (32, True): types.INT,
    (64, True): types.BIGINT,
    **{(bits, False): types.from_arrow(getattr(pa, f"uint{bits}")()) for bits in (8, 16, 32, 64)},
}


@dataclass(frozen=True, kw_only=True)
class StoredColumn:
    """A top-level column of a Parquet file.

    Attributes:
        field: Name and Spark type.
        storage: How its leaves are stored; equal texts are read alike by every engine.
        first_leaf: Index of its first leaf among the file's leaf columns.
        num_leaves: Number of its leaves; 1 for an atomic column.
        native_reason: Why DuckDB and pyarrow would not read what Spark reads, or None.
    """

    field: Field
    storage: str
    first_leaf: int
    num_leaves: int
    native_reason: str | None = None


@dataclass
class _Leaves:
    """The leaf columns of a schema, consumed in depth-first order."""

    schema: Any
    index: int = 0
    native_reason: str | None = None

    def take(self) -> Any:
        leaf = self.schema.column(self.index)
        self.index += 1
        return leaf


def stored_columns(metadata: pq.FileMetaData) -> tuple[StoredColumn, ...]:
    """The top-level columns of a file, in file order.

    Raises:
        CatalogError: A column has a type that Spark refuses or that Stagecoach has no form for,
            two names differ in case only, or a stale Spark schema contradicts the columns. The
            caller adds the names of table and file.
    """
    leaves = _Leaves(metadata.schema)
    columns: list[StoredColumn] = []
    for field in metadata.schema.to_arrow_schema():
        first = leaves.index
        leaves.native_reason = None
        try:
            dtype = _convert(field.type, leaves)
        except UnsupportedSqlError as error:
            raise CatalogError(
                f"column {field.name!r}: {error.message}; rewrite it with a type that Spark reads"
            ) from error
        storage = (_storage_text(metadata.schema.column(i)) for i in range(first, leaves.index))
        columns.append(
            StoredColumn(
                field=Field(field.name, dtype),
                storage=" ".join(storage),
                first_leaf=first,
                num_leaves=leaves.index - first,
                native_reason=_column_reason(dtype, leaves),
            )
        )
    if not columns:
        raise CatalogError("it has no columns; write it with at least one")
    check_names([column.field for column in columns], with_members=False)
    declared = _declared_columns(metadata)
    for position, column in enumerate(columns):
        told = (declared or {}).get(column.field.name)
        if told is not None and told.is_only_sparks:
            field = Field(column.field.name, told)
            columns[position] = replace(column, field=field, native_reason=None)
    if declared is not None:
        _check_spark_schema(declared, tuple(column.field for column in columns))
    return tuple(columns)


def _column_reason(dtype: DataType, leaves: _Leaves) -> str | None:
    # A column of INT96 is read as an instant (`stagecoach.infra.engines`); members of one are not.
    if leaves.native_reason == INT96_REASON and dtype.is_atomic:
        return None
    return leaves.native_reason


def file_native_reason(metadata: pq.FileMetaData, columns: tuple[StoredColumn, ...]) -> str | None:
    """Why the file must be read by Spark, or None.

    Source: Spark's `DataSourceUtils.datetimeRebaseSpec` and `int96RebaseSpec`.
    """
    for column in columns:
        if column.native_reason:
            return column.native_reason
    if has_legacy_times(metadata, (column.field.dtype for column in columns)):
        return LEGACY_CALENDAR_REASON
    return None


def has_legacy_times(metadata: pq.FileMetaData, dtypes: Iterable[DataType]) -> bool:
    """Return whether dates or times of a file may be in the legacy calendar.

    Args:
        metadata: Its footer.
        dtypes: Types of the columns that are read.
    """
    keys = metadata.metadata or {}
    legacy = any(key in keys for key in _LEGACY_KEYS)
    version = keys.get(_SPARK_VERSION_KEY, b"").decode(errors="replace").split(".")
    if len(version) >= 2 and version[0].isdigit() and version[1].isdigit():
        legacy = legacy or (int(version[0]), int(version[1])) < _FIRST_PROLEPTIC_VERSION
    return legacy and any(map(_has_datetime, dtypes))


def logical_type(leaf: Any) -> dict[str, Any]:
    """The logical type of a leaf column as its JSON says, `{"Type": …}`."""
    loaded: dict[str, Any] = json.loads(leaf.logical_type.to_json())
    return loaded


def _convert(dtype: pa.DataType, leaves: _Leaves) -> DataType:
    if isinstance(dtype, pa.BaseExtensionType):
        if pa.types.is_nested(dtype.storage_type):
            raise UnsupportedSqlError(f"type '{dtype}' is not supported")
        dtype = dtype.storage_type
    if pa.types.is_struct(dtype):
        return types.struct_of(tuple(Field(f.name, _convert(f.type, leaves)) for f in dtype))
    if pa.types.is_map(dtype):
        key = _convert(dtype.key_type, leaves)
        return types.map_of(key, _convert(dtype.item_type, leaves))
    if pa.types.is_nested(dtype):
        return types.array_of(_convert(dtype.value_type, leaves))
    leaf = leaves.take()
    spark_type = _leaf_type(leaf)
    if leaf.physical_type == "INT96":
        leaves.native_reason = INT96_REASON
    elif pa.types.is_duration(dtype) or logical_type(leaf)["Type"] in ("Enum", "JSON", "BSON"):
        name = dtype if pa.types.is_duration(dtype) else logical_type(leaf)["Type"]
        leaves.native_reason = f"{name} values, which only Spark reads as {spark_type}"
    return spark_type


def _leaf_type(leaf: Any) -> DataType:
    logical = logical_type(leaf)
    match logical["Type"]:
        case "None" | "UNKNOWN" | "Undefined":
            return _PHYSICAL[leaf.physical_type]
        case "Int":
            return _INTEGERS[logical["bitWidth"], logical["isSigned"]]
        case "Decimal":
            return types.decimal(logical["precision"], logical["scale"])
        case "Timestamp" if logical["timeUnit"] != "nanoseconds":
            adjusted = logical["isAdjustedToUTC"]
            return types.TIMESTAMP if adjusted else types.TIMESTAMP_NTZ
        case kind if kind in _LOGICAL:
            return _LOGICAL[kind]
    raise UnsupportedSqlError(f"Parquet type {_type_text(leaf)} is not supported by Spark")


def _type_text(leaf: Any) -> str:
    logical = logical_type(leaf)
    unit = f"({logical['timeUnit']})" if "timeUnit" in logical else ""
    name = leaf.physical_type if logical["Type"] == "None" else logical["Type"]
    return f"{name}{unit}"


def _storage_text(leaf: Any) -> str:
    logical = logical_type(leaf)
    details = [str(logical[key]) for key in sorted(logical) if "converted_type" not in key]
    return f"{leaf.physical_type}({','.join(details)})"


def _declared_columns(metadata: pq.FileMetaData) -> dict[str, DataType] | None:
    """Types by name in the schema that Spark wrote into the footer; None if there is none."""
    text = (metadata.metadata or {}).get(_SPARK_SCHEMA_KEY)
    if text is None:
        return None
    try:
        members = json.loads(text)["fields"]
    except (ValueError, KeyError, TypeError):
        return None  # Spark ignores a schema that it cannot read
    except RecursionError:
        raise CatalogError(_TOO_DEEP) from None
    declared = {}
    for member in members:
        try:
            declared[member["name"]] = _declared_type(member)
        except UnsupportedSqlError as error:
            raise CatalogError(f"column {member['name']!r}: {error.message}") from error
        except RecursionError:
            raise CatalogError(_TOO_DEEP) from None
    return declared


def _check_spark_schema(declared: Mapping[str, DataType], columns: tuple[Field, ...]) -> None:
    """Spark trusts the schema that Spark wrote into the footer, so it must say the same."""
    for name, dtype in declared.items():
        stored = next((c for c in columns if c.name == name), None)
        if stored is None or stored.dtype != dtype:
            _raise_stale(f"{name} {dtype}", stored)
    for column in columns:
        if column.name not in declared:
            _raise_stale("nothing", column)


def _raise_stale(declared: str, stored: Field | None) -> None:
    found = f"{stored.name} {stored.dtype}" if stored else "nothing of that name"
    raise CatalogError(
        f"its footer key {_SPARK_SCHEMA_KEY.decode()} declares {declared} but the file stores "
        f"{found}; Spark would read the declared columns, so rewrite the file without that key"
    )


def _declared_type(member: dict[str, Any]) -> DataType:
    """The type of a field in Spark's schema JSON."""
    collations = member.get("metadata", {}).get("__COLLATIONS", {})
    if not collations:
        return _declared(member["type"])
    # By path, such as `c` or `c.element`; a name has its provider before it: `icu.UNICODE_CI`.
    simple = isinstance(collations, dict) and collations.keys() == {member["name"]}
    if simple and member["type"] == "string":
        collation = collations[member["name"]].split(".")[-1]
        return types.parse_column_type(f"string collate {collation}")
    raise UnsupportedSqlError(
        "collated strings inside of arrays, maps and structs are not supported; rewrite it without"
    )


def _declared(body: Any) -> DataType:
    if isinstance(body, str):
        return types.parse_column_type(body)
    match body.get("type"):
        case "struct":
            return types.struct_of(
                tuple(Field(m["name"], _declared_type(m)) for m in body["fields"])
            )
        case "array":
            return types.array_of(_declared(body["elementType"]))
        case "map":
            return types.map_of(_declared(body["keyType"]), _declared(body["valueType"]))
    raise UnsupportedSqlError(f"type '{body.get('type')}' is not supported")


def _has_datetime(dtype: DataType) -> bool:
    return dtype.is_datetime or any(_has_datetime(f.dtype) for f in dtype.fields)
