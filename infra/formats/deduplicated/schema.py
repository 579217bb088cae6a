"""Fits the columns of files to those of a deduplicated table, which may gain columns by it.

A file may lack columns (they are NULL in its rows), bring new ones, or have wider or narrower types
of those that are there, as long as every value keeps its meaning. Everything else is refused, with
the name of the file, before anything is written.

Pure: nothing is read or written here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from stagecoach.infra.formats.deduplicated.declaration import RESERVED_PREFIX, Declaration
from stagecoach.infra.formats.deduplicated.errors import AppendError
from stagecoach.planner.errors import CatalogError, UnsupportedSqlError
from stagecoach.planner.types import (
    BOOLEAN,
    NULL,
    DataType,
    Field,
    arrow_schema,
    decimal_for,
    from_arrow,
    to_arrow,
)

_INTEGERS = ("tinyint", "smallint", "int", "bigint")
_PARTITION_KINDS = (*_INTEGERS, "string", "boolean", "date", "timestamp", "timestamp_ntz")


def wider_type(left: DataType, right: DataType) -> DataType | None:
    """Return the narrower type that holds all values of both exactly, or None.

    Whole numbers widen among themselves, to decimals with room for all their digits and, up to
    `int`, to double; float to double; decimals to those with at least as many digits on both sides
    of the point. What needs both (float and int) becomes double only where no digit is lost.
    """
    if left == right or right == NULL:
        return left
    if left == NULL:
        return right
    if left.is_integral and right.is_integral:
        return max(left, right, key=lambda t: _INTEGERS.index(t.kind))
    if left.is_floating or right.is_floating:
        return _wider_floating(left, right)
    if left.is_numeric and right.is_numeric:
        return _wider_decimal(decimal_for(left), decimal_for(right))
    return None


def _wider_floating(left: DataType, right: DataType) -> DataType | None:
    double = left if left.kind == "double" else right if right.kind == "double" else None
    other = right if double is left else left
    if double is None or not other.is_numeric:
        return None
    return double if other.kind in ("tinyint", "smallint", "int", "float") else None


def _wider_decimal(left: DataType, right: DataType) -> DataType | None:
    scale = max(left.scale, right.scale)
    digits = max(left.precision - left.scale, right.precision - right.scale)
    if digits + scale > 38:
        return None
    return DataType("decimal", digits + scale, scale)


def merge_columns(
    columns: tuple[Field, ...],
    added: Sequence[Field],
    *,
    declaration: Declaration,
    table: str,
    place: str,
) -> tuple[Field, ...]:
    """Return the table's columns once rows with the columns `added` are in it.

    Args:
        columns: Columns of the table as they are.
        added: Columns of the rows, spelled as the table spells those that it has.
        declaration: Key and roles of columns.
        table: Name of the table, for messages.
        place: Where the rows come from, for messages.

    Raises:
        AppendError: A type does not fit, or names clash.
    """
    by_name = {field.name.lower(): field for field in columns}
    roles = {name.lower() for name in declaration.role_columns}
    for field in added:
        known = by_name.get(field.name.lower())
        if known is None:
            by_name[field.name.lower()] = field
            continue
        if known.name != field.name:
            raise AppendError(
                f"{place}: table '{table}' has just got a column '{known.name}', spelled "
                f"{field.name!r} here; append again"
            )
        wider = wider_type(known.dtype, field.dtype)
        if wider is None or (
            field.name.lower() in roles and not _keeps_order(known.dtype, field.dtype, wider)
        ):
            raise AppendError(_type_problem(table, place, known, field))
        by_name[field.name.lower()] = Field(known.name, wider)
    made = with_markers(tuple(by_name.values()), declaration)
    check_roles(table, place, declaration, made)
    return made


def _keeps_order(left: DataType, right: DataType, wider: DataType) -> bool:
    """Whether the statistics of older chunks stay true of a column of the key."""
    same_kind = left.kind == right.kind == wider.kind and left.scale == right.scale
    return (left.is_integral and right.is_integral) or same_kind


def _type_problem(table: str, place: str, known: Field, found: Field) -> str:
    return (
        f"{place}: column '{known.name}' of table '{table}' is {known.dtype}, here {found.dtype}, "
        f"and no type that both widen to keeps every value; cast it to {known.dtype} and append "
        "again"
    )


def with_markers(columns: tuple[Field, ...], declaration: Declaration) -> tuple[Field, ...]:
    """Return the columns and the delete column, whose type is known, if it is not among them."""
    name = declaration.delete_column
    if name is None or any(field.name.lower() == name.lower() for field in columns):
        return columns
    return (*columns, Field(name, BOOLEAN))


def check_roles(
    table: str, place: str, declaration: Declaration, columns: tuple[Field, ...]
) -> None:
    """Check that the declared columns are there and that their types fit.

    Raises:
        AppendError: They are not.
    """
    try:
        declaration.table(table, columns)
    except CatalogError as error:
        raise AppendError(f"{place}: {error}") from error
    kinds = {field.name: field.dtype for field in columns}
    for name in declaration.partition_by:
        if kinds[name].kind not in _PARTITION_KINDS:
            raise AppendError(
                f"{place}: table '{table}' is partitioned by '{name}' of type {kinds[name]}; use a "
                "string, a whole number, a date, a timestamp or a boolean"
            )


def file_fields(schema: pa.Schema, *, place: str) -> tuple[Field, ...]:
    """Return the columns of a file with Spark's types; `void` where it has NULLs without a type.

    Raises:
        AppendError: A column has a type or a name that a table cannot have.
    """
    found: dict[str, Field] = {}
    for field in schema:
        if not field.name or field.name.startswith(RESERVED_PREFIX):
            raise AppendError(
                f"{place}: column {field.name!r}: names must not be empty or start with '__'; "
                "rename it"
            )
        if (other := found.get(field.name.lower())) is not None:
            raise AppendError(
                f"{place}: columns '{other.name}' and '{field.name}' have the same name (case "
                "does not matter); rename one"
            )
        found[field.name.lower()] = Field(field.name, _spark_type(field.type, place, field.name))
    if not found:
        raise AppendError(f"{place}: it has no columns; give it at least those of the key")
    return tuple(found.values())


def _spark_type(dtype: pa.DataType, place: str, column: str) -> DataType:
    try:
        made = from_arrow(storable_type(dtype))
        if made != NULL:
            to_arrow(made)
        return made
    except UnsupportedSqlError as error:
        raise AppendError(
            f"{place}: column '{column}' is of Arrow type {dtype}, which no column of a table can "
            "have; cast it before you append"
        ) from error


def storable_type(dtype: pa.DataType) -> pa.DataType:
    """The Arrow type that is stored for another: timestamps of any unit in microseconds, say."""
    if pa.types.is_timestamp(dtype):
        return pa.timestamp("us", tz="UTC" if dtype.tz else None)
    if pa.types.is_date64(dtype):
        return pa.date32()
    if pa.types.is_float16(dtype):
        return pa.float32()
    if pa.types.is_dictionary(dtype):
        return storable_type(dtype.value_type)
    if pa.types.is_decimal32(dtype) or pa.types.is_decimal64(dtype):
        return pa.decimal128(dtype.precision, dtype.scale)
    return dtype


def fitted_fields(
    fields: Sequence[Field],
    columns: tuple[Field, ...],
    *,
    declaration: Declaration,
    table: str,
    place: str,
    allow_missing_keys: bool,
) -> tuple[Field, ...]:
    """Return the columns that a chunk of these fields has: the table's spelling, typed NULLs only.

    A column of NULLs without a type takes the table's type, or is left out if the table has none.

    Raises:
        AppendError: A column of the key is missing.
    """
    known = {field.name.lower(): field for field in columns}
    spelled = {name.lower(): name for name in declaration.role_columns}
    made: list[Field] = []
    for field in fields:
        old = known.get(field.name.lower())
        if old is not None:
            made.append(Field(old.name, old.dtype if field.dtype == NULL else field.dtype))
        elif field.dtype != NULL:
            made.append(Field(spelled.get(field.name.lower(), field.name), field.dtype))
    _check_keys(made, known, declaration, table, place, allow_missing_keys)
    return tuple(made)


def _check_keys(
    made: Iterable[Field],
    known: dict[str, Field],
    declaration: Declaration,
    table: str,
    place: str,
    allow_missing_keys: bool,
) -> None:
    found = {field.name for field in made}
    time = declaration.time_column
    if time is not None and time not in found:
        raise AppendError(
            f"{place}: the time column '{time}' of table '{table}' is missing; "
            f"there are {', '.join(sorted(found)) or 'none'}"
        )
    missing = [name for name in declaration.primary_key if name not in found]
    if missing and (not allow_missing_keys or any(n.lower() not in known for n in missing)):
        raise AppendError(
            f"{place}: column '{missing[0]}' of the primary key of table '{table}' is missing "
            f"(there are {', '.join(sorted(found)) or 'none'}); add it, or allow missing keys if "
            "it is NULL in all rows"
        )


def cast_rows(rows: pa.Table, fields: Sequence[Field], *, place: str) -> pa.Table:
    """Return the rows with exactly these columns, in this order.

    Args:
        rows: Rows with columns of the same names (case does not matter), and maybe more.
        fields: The columns to have; each must be one of the rows'.
        place: Where they come from, for messages.

    Raises:
        AppendError: A value does not fit the type without a loss.
    """
    places = {name.lower(): i for i, name in enumerate(rows.schema.names)}
    schema = arrow_schema(tuple(fields))
    made = []
    for field in schema:
        column = rows.column(places[field.name.lower()])
        try:
            made.append(_cast(column, field.type))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise AppendError(
                f"{place}: a value of column '{field.name}' cannot be converted to {field.type}: "
                f"{error}"
            ) from error
    return pa.Table.from_arrays(made, schema=schema)


def _cast(column: pa.ChunkedArray, dtype: pa.DataType) -> pa.ChunkedArray:
    if column.type == dtype:
        return column
    if pa.types.is_dictionary(column.type):
        column = pc.cast(column, column.type.value_type)
    if pa.types.is_floating(dtype) and pa.types.is_integer(column.type):
        # Arrow refuses what double cannot hold exactly; up to `int` it holds everything.
        return pc.cast(pc.cast(column, pa.int64()), dtype)
    return pc.cast(column, dtype)
