"""Query parameters from the command line and from Python.

Each value is read as the type that the query's front matter declares, or as its own. It is bound as
a literal, never spliced into SQL.

    --param ship_date=1995-03-15          a declared `date`: checked as one
    --param "ship_date=DATE '1995-03-15'" not declared: the SQL literal's own type
    --param segment=BUILDING              not declared, no literal: text
    --param 1=5                           the first `?` of the text
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

from stagecoach.planner.errors import ParameterError, UnsupportedSqlError
from stagecoach.planner.plan.given_parameters import at_its_use, without_value

if TYPE_CHECKING:
    from stagecoach.planner.plan.expressions import Literal
    from stagecoach.planner.types import DataType

HINT = "; give it with --param {name}=…"
"""How to give a value."""
_WINDOW_HINT = (
    "; the query has partitions, and Dagster gives a run those of its partition. Here, give both "
    "bounds: --param partition_start=… --param partition_end=… (exclusive)"
)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|[1-9][0-9]*")


@dataclass(frozen=True)
class ParameterValue:
    """A typed value.

    Args:
        dtype: Spark type.
        text: Canonical text (see `stagecoach.planner.plan.expressions.Literal`); None for NULL.
    """

    dtype: DataType
    text: str | None


ParameterInput = (
    str | int | float | bool | Decimal | datetime.date | datetime.datetime | ParameterValue | None
)
"""A value as it is given; a `ParameterValue` has its type already."""


def parse_assignments(assignments: Sequence[str]) -> dict[str, str]:
    """Names and value texts of `name=value` arguments.

    Raises:
        ParameterError: An argument has no `=`, no name, or a name that was given before.
    """
    values: dict[str, str] = {}
    for assignment in assignments:
        name, equals, text = assignment.partition("=")
        name = name.strip().removeprefix(":")
        if not equals:
            raise ParameterError(f"--param {assignment} has no '='; write --param name=value")
        if not _NAME.fullmatch(name):
            raise ParameterError(
                f"--param {assignment}: '{name}' is not a valid parameter name; "
                "use letters, digits and '_'"
            )
        if name in values:
            raise ParameterError(f"parameter '{name}' is given twice; give it once")
        values[name] = text
    return values


def resolve_parameters(
    used: Collection[str],
    given: Mapping[str, ParameterInput],
    *,
    types: Mapping[str, str] | None = None,
    defaults: Mapping[str, str | None] | None = None,
    time_zone: str = "UTC",
    sql: str = "",
    query: str = "",
) -> dict[str, ParameterValue]:
    """A value for each parameter that a query uses.

    Args:
        used: Names in the SQL, without the colon.
        given: Values by name: text as on the command line, or Python values.
        types: Declared types by name, as Spark spells them.
        defaults: Declared default texts by name; None where a value must be given.
        time_zone: Zone of timestamps that name none.
        sql: The query's text, where errors show the parameter.
        query: The query's name, for errors.

    Raises:
        ParameterError: A value is missing, does not fit its type, or its type is unknown; it
            names the query and the place where the parameter is used.
    """
    types, defaults = types or {}, defaults or {}
    values: dict[str, ParameterValue] = {}
    for name in used:
        try:
            value = given[name] if name in given else defaults.get(name)
            if name not in given and value is None:
                is_bound = name in ("partition_start", "partition_end") and name in types
                raise without_value(name, _WINDOW_HINT if is_bound else HINT)
            values[name] = parse_value(name, value, types.get(name), time_zone)
        except ParameterError as error:
            raise at_its_use(error, name, sql, query) from error
    return values


def parse_value(
    name: str, value: ParameterInput, declared: str | None = None, time_zone: str = "UTC"
) -> ParameterValue:
    """One value, of its declared type or of its own.

    Raises:
        ParameterError: The value does not fit the type.
    """
    from stagecoach.planner.types import NULL, STRING, parse_type

    dtype = None
    if declared is not None:
        try:
            dtype = parse_type(declared)
        except UnsupportedSqlError as error:
            raise ParameterError(f"parameter '{name}': {error.message}") from error
    if value is None:
        return ParameterValue(dtype or NULL, None)
    if isinstance(value, ParameterValue):
        if dtype is None or value.text is None:
            return value
        return _fit(name, value.text, dtype, value.text, "UTC", value.dtype)
    if isinstance(value, str):
        found = _sql_value(name, value.strip(), time_zone)
        if dtype is None:
            return found or ParameterValue(STRING, value)
        if found is None or dtype.kind == "string":
            text = value if found is None or found.dtype.kind != "string" else found.text
            return _fit(name, str(text), dtype, value, time_zone)
    else:
        found = _from_python(name, value, time_zone)
        if dtype is None:
            return found
    if found.text is None:
        return ParameterValue(dtype, None)
    return _fit(name, found.text, dtype, value, time_zone, found.dtype)


def _sql_value(name: str, text: str, time_zone: str) -> ParameterValue | None:
    """The value of a text that is a SQL literal; None where it is none."""
    from stagecoach.planner.plan.literal_text import sql_literal

    try:
        found = sql_literal(text, time_zone)
    except ValueError as error:
        raise ParameterError(f"parameter '{name}': {error}") from error
    return None if found is None else _of_literal(found)


def _of_literal(literal: Literal) -> ParameterValue:
    from stagecoach.planner.plan.literal_text import to_text

    return ParameterValue(literal.dtype, None if literal.value is None else to_text(literal))


def _from_python(
    name: str, value: int | float | Decimal | datetime.date, time_zone: str
) -> ParameterValue:
    from stagecoach.planner.plan.literal_text import fraction, integer
    from stagecoach.planner.text.moments import moment_text
    from stagecoach.planner.types import BOOLEAN, DATE, DOUBLE, TIMESTAMP

    match value:
        case bool():
            return ParameterValue(BOOLEAN, str(value).lower())
        case int():
            return _of_literal(integer(value))
        case float():
            return ParameterValue(DOUBLE, repr(value))
        case Decimal():
            return _of_literal(fraction(value))
        case datetime.datetime():
            return ParameterValue(TIMESTAMP, moment_text(value, time_zone))
        case datetime.date():
            return ParameterValue(DATE, value.isoformat())
    raise ParameterError(
        f"parameter '{name}' is a {type(value).__name__}; "
        "give a str, int, float, bool, Decimal, date or datetime"
    )


def _fit(
    name: str,
    text: str,
    dtype: DataType,
    shown: object,
    time_zone: str,
    source: DataType | None = None,
) -> ParameterValue:
    """The text as a value of the type, if it is one without loss."""
    from stagecoach.planner.plan.literal_text import parse_literal

    if source == dtype:
        return ParameterValue(dtype, text)
    try:
        if source is not None and source.is_datetime and not _is_midnight_of(source, dtype):
            raise ValueError(f"a {source} is not a {dtype}")
        return _of_literal(parse_literal(text, dtype, time_zone))
    except ValueError as error:
        example = _EXAMPLES.get(dtype.kind, "")
        hint = f", for example {name}={example}" if example else ""
        raise ParameterError(
            f"parameter '{name}' must be of type {dtype}, not {str(shown)!r}; "
            f"give a {dtype.kind}{hint}"
        ) from error


def _is_midnight_of(source: DataType, dtype: DataType) -> bool:
    """Whether it is a day, which stands for the midnight that it starts with."""
    return source.kind == "date" and dtype.is_datetime


_EXAMPLES = {
    "boolean": "true",
    "date": "1995-03-15",
    "timestamp": "'1995-03-15 10:00:00'",
    "timestamp_ntz": "'1995-03-15 10:00:00'",
    "int": "42",
    "bigint": "42",
    "decimal": "0.05",
    "double": "0.05",
}
