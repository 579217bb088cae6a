"""Query parameters from the command line and from Python.

In: `--param name=value` texts or Python values, and the types that a query's front matter
declares. Out: typed values in the planner's canonical text, bound later as literals, never spliced
into SQL.

    --param ship_date=1995-03-15          a declared `date`: checked as one
    --param "ship_date=DATE '1995-03-15'" not declared: the SQL literal's own type
    --param segment=BUILDING              not declared, no literal: text
    --param 1=5                           the first `?` of the text
"""

from __future__ import annotations

import datetime
import difflib
import math
import re
import zoneinfo
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING

from planner.errors import ParameterError, UnsupportedSqlError

if TYPE_CHECKING:
    from planner.types import DataType

ParameterInput = str | int | float | bool | Decimal | datetime.date | datetime.datetime | None

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|[1-9][0-9]*")
_INTEGER = re.compile(r"[+-]?\d+")
_DECIMAL = re.compile(r"[+-]?(\d+\.\d*|\.\d+)")
_DOUBLE = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)[eE][+-]?\d+")
_TYPED = re.compile(r"(DATE|TIMESTAMP|TIMESTAMP_NTZ)\s*('[^']*'|\"[^\"]*\")", re.IGNORECASE)
_INTEGRAL_BITS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}


@dataclass(frozen=True)
class ParameterValue:
    """A typed value.

    Args:
        dtype: Spark type.
        text: Canonical text (see `planner.expressions.Literal`); None for NULL.
    """

    dtype: DataType
    text: str | None


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
                f"--param {assignment}: '{name}' is no parameter name; use letters, digits and '_'"
            )
        if name in values:
            raise ParameterError(f"parameter '{name}' is given twice; give it once")
        values[name] = text
    return values


def check_known(given: Collection[str], known: Collection[str]) -> None:
    """Refuse parameters that no query has.

    Raises:
        ParameterError: Naming the first of them, the nearest match and all that exist.
    """
    for name in given:
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            hint = f"; did you mean '{close[0]}'?" if close else ""
            names = ", ".join(sorted(known)) or "none"
            raise ParameterError(f"unknown parameter '{name}'{hint} (the SQL has: {names})")


def resolve_parameters(
    used: Collection[str],
    given: Mapping[str, ParameterInput],
    *,
    types: Mapping[str, str] | None = None,
    defaults: Mapping[str, str | None] | None = None,
    time_zone: str = "UTC",
) -> dict[str, ParameterValue]:
    """A value for each parameter that a query uses.

    Args:
        used: Names in the SQL, without the colon.
        given: Values by name: text as on the command line, or Python values.
        types: Declared types by name, as Spark spells them.
        defaults: Declared default texts by name; None where a value must be given.
        time_zone: Zone of timestamps that name none.

    Raises:
        ParameterError: A value is missing, does not fit its type, or its type is unknown.
    """
    types, defaults = types or {}, defaults or {}
    values: dict[str, ParameterValue] = {}
    for name in used:
        if name in given:
            value = given[name]
        elif defaults.get(name) is not None:
            value = defaults[name]
        else:
            raise ParameterError(f"parameter '{name}' has no value; give it with --param {name}=…")
        values[name] = parse_value(name, value, types.get(name), time_zone)
    return values


def parse_value(
    name: str, value: ParameterInput, declared: str | None = None, time_zone: str = "UTC"
) -> ParameterValue:
    """One value, of its declared type or of its own.

    Raises:
        ParameterError: The value does not fit the type.
    """
    from planner.types import NULL, parse_type

    dtype = None
    if declared is not None:
        try:
            dtype = parse_type(declared)
        except UnsupportedSqlError as error:
            raise ParameterError(f"parameter '{name}': {error.message}") from error
    if value is None:
        return ParameterValue(dtype or NULL, None)
    if isinstance(value, str):
        found = _literal(value.strip(), time_zone)
        if dtype is None:
            return found or _string(value)
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


def _literal(text: str, time_zone: str) -> ParameterValue | None:
    """The value of a text that is a SQL literal; None where it is none."""
    from planner.coercion import decimal_literal_type, integer_literal_type
    from planner.types import BOOLEAN, DATE, DOUBLE, NULL, TIMESTAMP, TIMESTAMP_NTZ

    if text.upper() == "NULL":
        return ParameterValue(NULL, None)
    if text.lower() in ("true", "false"):
        return ParameterValue(BOOLEAN, text.lower())
    try:
        if _INTEGER.fullmatch(text):
            return ParameterValue(integer_literal_type(int(text)), str(int(text)))
        if _DECIMAL.fullmatch(text):
            number = Decimal(text)
            return ParameterValue(decimal_literal_type(text), format(number, "f"))
    except UnsupportedSqlError as error:
        raise ParameterError(f"{text} has more than 38 digits, which no number can hold") from error
    if _DOUBLE.fullmatch(text):
        return ParameterValue(DOUBLE, repr(float(text)))
    if match := _TYPED.fullmatch(text):
        inner = match[2][1:-1]
        dtype = {"DATE": DATE, "TIMESTAMP": TIMESTAMP}.get(match[1].upper(), TIMESTAMP_NTZ)
        canonical = _date(inner) if dtype == DATE else _timestamp(inner, dtype, time_zone)
        if canonical is None:
            raise ParameterError(f"{text} is not a valid {dtype}")
        return ParameterValue(dtype, canonical)
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "'\"":
        return _string(text[1:-1].replace(text[0] * 2, text[0]))
    return None


def _string(text: str) -> ParameterValue:
    from planner.types import STRING

    return ParameterValue(STRING, text)


def _from_python(
    name: str, value: int | float | Decimal | datetime.date, time_zone: str
) -> ParameterValue:
    from planner.coercion import decimal_literal_type, integer_literal_type
    from planner.types import BOOLEAN, DATE, DOUBLE, TIMESTAMP

    match value:
        case bool():
            return ParameterValue(BOOLEAN, str(value).lower())
        case int():
            return ParameterValue(integer_literal_type(value), str(value))
        case float():
            return ParameterValue(DOUBLE, repr(value))
        case Decimal():
            text = format(value, "f")
            return ParameterValue(decimal_literal_type(text), text)
        case datetime.datetime():
            return ParameterValue(TIMESTAMP, _utc_text(value, time_zone))
        case datetime.date():
            return ParameterValue(DATE, value.isoformat())
    raise ParameterError(
        f"parameter '{name}' is a {type(value).__name__}; "
        "give a str, int, float, bool, Decimal, date, datetime or None"
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
    canonical = _canonical(text, dtype, time_zone, source)
    if canonical is None:
        example = _EXAMPLES.get(dtype.kind, "")
        hint = f", for example {name}={example}" if example else ""
        raise ParameterError(
            f"parameter '{name}' must be of type {dtype}, not {str(shown)!r}; "
            f"give a {dtype.kind}{hint}"
        )
    return ParameterValue(dtype, canonical)


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


def _canonical(text: str, dtype: DataType, time_zone: str, source: DataType | None) -> str | None:
    text = text if dtype.kind == "string" else text.strip()
    if source is not None and source.is_datetime:
        # A moment is no number and no text of its own accord; a day is the midnight it starts with.
        if source != dtype and not (source.kind == "date" and dtype.is_datetime):
            return None
        if source == dtype:
            return text
    match dtype.kind:
        case "string":
            return text
        case "boolean":
            return text.lower() if text.lower() in ("true", "false") else None
        case "date":
            return _date(text)
        case "timestamp" | "timestamp_ntz":
            return _timestamp(text, dtype, time_zone)
        case "float" | "double":
            return _float(text)
        case "decimal":
            return _decimal(text, dtype)
        case kind if kind in _INTEGRAL_BITS:
            limit = 1 << (_INTEGRAL_BITS[kind] - 1)
            fits = _INTEGER.fullmatch(text) and -limit <= int(text) < limit
            return str(int(text)) if fits else None
    return None


def _float(text: str) -> str | None:
    try:
        number = float(text.replace("_", "!"))
    except ValueError:
        return None
    finite = math.isfinite(number) or text.lower().lstrip("+-") in ("nan", "inf", "infinity")
    return repr(number) if finite else None


def _decimal(text: str, dtype: DataType) -> str | None:
    try:
        number = Decimal(text)
        if not number.is_finite():
            return None
        exact = number.quantize(Decimal(1).scaleb(-dtype.scale)) if number else Decimal(0)
    except InvalidOperation:
        return None
    digits = dtype.precision - dtype.scale
    if exact != number or abs(number) >= Decimal(10) ** digits:
        return None
    return format(number.quantize(Decimal(1).scaleb(-dtype.scale)), "f")


def _date(text: str) -> str | None:
    from planner.coercion import date_text

    return date_text(text)


def _timestamp(text: str, dtype: DataType, time_zone: str) -> str | None:
    try:
        moment = datetime.datetime.fromisoformat(text)
    except ValueError:
        return None
    if dtype.kind == "timestamp_ntz":
        return None if moment.tzinfo else moment.isoformat(" ", timespec="microseconds")
    return _utc_text(moment, time_zone)


def _utc_text(moment: datetime.datetime, time_zone: str) -> str:
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=zoneinfo.ZoneInfo(time_zone))
    utc = moment.astimezone(datetime.UTC).replace(tzinfo=None)
    return utc.isoformat(" ", timespec="microseconds")
