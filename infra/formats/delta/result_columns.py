"""The columns of a result as those of a Delta table.

Whether a result fits is told without deltalake and without data.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from stagecoach.infra.formats.publishing import PublishError, column_difference
from stagecoach.infra.formats.result_columns import check_columns, partition_columns
from stagecoach.planner.types import DataType, Field

_NAMES: Mapping[str, str] = {
    "boolean": "boolean",
    "tinyint": "byte",
    "smallint": "short",
    "int": "integer",
    "bigint": "long",
    "float": "float",
    "double": "double",
    "string": "string",
    "binary": "binary",
    "date": "date",
    "timestamp": "timestamp",
    "timestamp_ntz": "timestamp_ntz",
}
_PARTITIONS = (
    *("boolean", "tinyint", "smallint", "int", "bigint", "decimal", "string", "date"),
    *("timestamp", "timestamp_ntz"),
)
_REFUSED_IN_NAMES = " ,;{}()\n\t="


def check_delta_columns(columns: Sequence[Field], partition_by: Sequence[str] = ()) -> None:
    """Look whether a result with these columns can be a Delta table; needs no data.

    Raises:
        PublishError: Delta has no such type or name, two columns share a name, or files cannot be
            divided by a column.
    """
    check_columns(columns)
    for column in columns:
        _check_name(column.name, column.name)
        _check_type(column.name, column.dtype)
    for name, found in partition_columns(columns, partition_by):
        if found.dtype.kind not in _PARTITIONS:
            raise PublishError(
                f"partition_by names '{name}', which is {found.dtype}; a Delta table is "
                "partitioned by texts, whole numbers, decimals, booleans, dates or timestamps: "
                f"cast it, such as CAST({name} AS DATE)"
            )
    if len(partition_by) == len(columns):
        raise PublishError(
            "partition_by names all columns, and a Delta table has one more in its files; leave "
            "one out"
        )


def new_schema(columns: Sequence[Field], comments: Mapping[str, str]) -> dict[str, Any]:
    """Return the schema of a table that is to be created, as the log has it.

    Args:
        columns: Of the result.
        comments: What columns mean, by name.
    """
    return _struct(columns, comments)


def check_fields(
    table: str, schema: Mapping[str, Any], present: Sequence[Field], columns: Sequence[Field]
) -> None:
    """Look whether a table that is there takes a result.

    Args:
        table: Name of the table, for messages.
        schema: Its present schema, as the log has it.
        present: Its present columns.
        columns: Of the result.

    Raises:
        PublishError: A column differs.
    """
    for field in schema["fields"]:
        for path in _required(field["type"], field["name"]):
            raise PublishError(
                f"table '{table}': '{path}' is required, which is not checked in results; make it "
                "optional, or publish to another table"
            )
    if (problem := column_difference(present, columns)) is not None:
        raise PublishError(
            f"table '{table}': the table does not match the result: {problem}; change the query, "
            "or alter the table with the tool that manages it"
        )


def check_partitions(table: str, present: Sequence[str], partition_by: Sequence[str]) -> None:
    """Look whether a table is partitioned as a query says, if it says anything.

    Raises:
        PublishError: It is not.
    """
    if partition_by and tuple(partition_by) != tuple(present):
        raise PublishError(
            f"table '{table}' is partitioned by ({', '.join(present) or 'nothing'}), and "
            f"partition_by says ({', '.join(partition_by)}); make them equal"
        )


def _required(kind: Any, path: str) -> Iterator[str]:
    """The members inside of a column that have no NULLs; keys of maps never have."""
    if isinstance(kind, str):
        return
    if kind["type"] == "struct":
        for field in kind["fields"]:
            inner = f"{path}.{field['name']}"
            if not field["nullable"]:
                yield inner
            yield from _required(field["type"], inner)
    elif kind["type"] == "array":
        if not kind["containsNull"]:
            yield f"{path}.element"
        yield from _required(kind["elementType"], f"{path}.element")
    elif kind["type"] == "map":
        if not kind["valueContainsNull"]:
            yield f"{path}.value"
        yield from _required(kind["keyType"], f"{path}.key")
        yield from _required(kind["valueType"], f"{path}.value")


def _check_name(path: str, name: str) -> None:
    bad = next((sign for sign in _REFUSED_IN_NAMES if sign in name), None)
    if bad is not None:
        raise PublishError(
            f"column '{path}' has {bad!r} in its name, which Delta tables without column mapping "
            "do not have; give it an alias"
        )


def _check_type(path: str, dtype: DataType) -> None:
    for member in dtype.fields:
        inner = f"{path}.{member.name}"
        if dtype.kind == "struct":
            _check_name(inner, member.name)
        _check_type(inner, member.dtype)
    if dtype.is_atomic and not dtype.is_decimal and dtype.kind not in _NAMES:
        raise PublishError(
            f"column '{path}' is {dtype}, which Delta tables do not have; cast it, such as "
            "CAST(… AS STRING)"
        )


def _struct(fields: Sequence[Field], comments: Mapping[str, str] = {}) -> dict[str, Any]:
    found = []
    for field in fields:
        metadata = {"comment": comments[field.name]} if field.name in comments else {}
        kind = _type(field.dtype)
        found.append({"name": field.name, "type": kind, "nullable": True, "metadata": metadata})
    return {"type": "struct", "fields": found}


def _type(dtype: DataType) -> Any:
    match dtype.kind:
        case "struct":
            return _struct(dtype.fields)
        case "array":
            element = _type(dtype.fields[0].dtype)
            return {"type": "array", "elementType": element, "containsNull": True}
        case "map":
            key, value = (_type(member.dtype) for member in dtype.fields)
            return {"type": "map", "keyType": key, "valueType": value, "valueContainsNull": True}
        case "decimal":
            return f"decimal({dtype.precision},{dtype.scale})"
    return _NAMES[dtype.kind]
