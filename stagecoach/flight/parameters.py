"""Values of parameters: a record batch of one row that a client has bound.

The Arrow type of a value says which type of Spark's it has, unless the query's front matter
declares one, which the value then has to fit. Values are bound as literals and are never part of
the text.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from stagecoach.api.parameters import ParameterValue
from stagecoach.planner.errors import ParameterError, StagecoachError, UnsupportedSqlError
from stagecoach.planner.plan.literal_text import parse_literal, to_text
from stagecoach.planner.text.moments import moment_text, wall_clock_text
from stagecoach.planner.types import STRING, from_arrow, parse_type, to_arrow

if TYPE_CHECKING:
    from stagecoach.planner.types import DataType

_POSITION = re.compile(r"[1-9][0-9]*")


def parameter_schema(names: Sequence[str], declared: Mapping[str, str]) -> pa.Schema:
    """Return the parameters of a query as columns; those of no declared type are of type null.

    Args:
        names: In the order of the SQL.
        declared: Types that front matter declares, by name.
    """
    fields = []
    for name in names:
        dtype = pa.null()
        if name in declared:
            try:
                dtype = to_arrow(parse_type(declared[name]))
            except UnsupportedSqlError as error:
                raise ParameterError(f"parameter '{name}': {error.message}") from error
        fields.append(pa.field(name, dtype))
    return pa.schema(fields)


def stored_values(values: Mapping[str, Sequence[str | None]]) -> dict[str, ParameterValue]:
    """Return values of which a ticket has the types and texts."""
    return {
        name: ParameterValue(parse_type(kind or ""), text) for name, (kind, text) in values.items()
    }


def bound_values(names: Sequence[str], rows: pa.RecordBatch) -> dict[str, ParameterValue]:
    """Return the values of a query's parameters.

    Args:
        names: The parameters, in the order of the SQL.
        rows: One row. Its columns have the names of parameters, or else their order.

    Raises:
        ParameterError: There is not one row, or a value cannot be bound.
    """
    if rows.num_rows != 1:
        raise ParameterError(
            f"{rows.num_rows} rows of parameters were bound; bind one row for each execution"
        )
    if rows.num_columns != len(names):
        raise ParameterError(
            f"{rows.num_columns} parameters were bound; the query has {len(names)}"
            + (f" ({', '.join(names)})" if names else "")
        )
    given = rows.schema.names
    named = sorted(given) == sorted(names) and not all(_POSITION.fullmatch(n) for n in given)
    columns = {name: rows.column(given.index(name) if named else i) for i, name in enumerate(names)}
    return {name: _value(name, column) for name, column in columns.items()}


def _value(name: str, column: pa.Array) -> ParameterValue:
    if pa.types.is_timestamp(column.type) and column.type.unit != "us":
        column = column.cast(pa.timestamp("us", column.type.tz))
    try:
        dtype = from_arrow(column.type)
    except StagecoachError as error:
        raise ParameterError(
            f"parameter '{name}' is of the Arrow type {column.type}, which cannot be bound"
        ) from error
    value = column[0].as_py()
    if value is None:
        return ParameterValue(dtype, None)
    try:
        return ParameterValue(dtype, _text(value, dtype))
    except ValueError as error:
        raise ParameterError(f"parameter '{name}': {error}") from error


def _text(value: object, dtype: DataType) -> str:
    """The canonical text of a value."""
    if dtype == STRING:
        return str(value)
    match value:
        case datetime.datetime() if dtype.kind == "timestamp":
            return moment_text(value, "UTC")
        case datetime.datetime():
            return wall_clock_text(value)
        case bool() | int() | float() | datetime.date():
            return to_text(parse_literal(str(value), dtype))
    if dtype.is_decimal:
        return to_text(parse_literal(format(value, "f"), dtype))
    raise ValueError(f"values of type {dtype} cannot be bound; write them in the SQL")
