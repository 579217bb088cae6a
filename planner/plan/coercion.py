"""Make Spark's implicit casts (ANSI mode) explicit.

Source: Spark's `AnsiTypeCoercion` and `DecimalPrecision`.
"""

from __future__ import annotations

import datetime
import re
from decimal import Context, Decimal, Inexact, InvalidOperation

from stagecoach.planner.errors import AnalysisError, UnsupportedSqlError
from stagecoach.planner.plan.expressions import Expression, Literal, cast
from stagecoach.planner.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    INTERVAL,
    MAX_PRECISION,
    NULL,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DataType,
    common_type,
    decimal,
    decimal_for,
)

_ISO_TIME = re.compile(
    r"\s*(\d{4})-(\d{1,2})-(\d{1,2})(?:[ T](\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(\d{1,6}))?)?"
    r"(Z|[+-]\d\d:\d\d)?)?\s*"
)
_MOMENT = re.compile(
    r"\s*(\d{4})(?:-(\d{1,2})(?:-(\d{1,2})"
    r"(?:[ T](\d{1,2})(?::(\d{1,2})(?::(\d{1,2}).*)?)?.*)?)?)?\s*"
)
_ISO_DATE = re.compile(r"\s*([0-9]{4})(?:-([0-9]{1,2})(?:-([0-9]{1,2})(?:[ T].*)?)?)?\s*")

_WHOLE_TEXT = re.compile(r"-?[0-9]{1,18}")
_DECIMAL_TEXT = re.compile(r"-?[0-9]+(\.[0-9]+)?")
_DOUBLE_TEXT = re.compile(r"-?[0-9]{1,15}(\.[0-9]{1,9})?")
_INTEGER_BITS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}
_EXACT = Context(prec=MAX_PRECISION, traps=[Inexact, InvalidOperation])


def decimal_literal_type(text: str) -> DataType:
    """The type that Spark gives a decimal literal, such as decimal(2,2) for `0.05`."""
    sign, digits, exponent = Decimal(text).as_tuple()
    del sign
    if not isinstance(exponent, int):
        raise AnalysisError(f"'{text}' is not a decimal")
    scale = max(-exponent, 0)
    precision = max(len(digits) + max(exponent, 0), scale)
    return decimal(precision, scale)


def integer_literal_type(value: int) -> DataType:
    """INT where the value fits, else BIGINT, else a decimal, as Spark reads whole numbers."""
    if -(2**31) <= value < 2**31:
        return INT
    if -(2**63) <= value < 2**63:
        return BIGINT
    return decimal_literal_type(str(value))


def as_decimal_operand(expr: Expression) -> Expression:
    """An operand of decimal arithmetic: integers become decimals, literals the narrowest."""
    if expr.dtype.is_decimal:
        return expr
    if isinstance(expr, Literal) and isinstance(expr.value, int):
        return Literal(decimal_literal_type(str(abs(expr.value))), str(expr.value))
    return cast(expr, decimal_for(expr.dtype))


def date_text(text: str) -> str | None:
    """`YYYY-MM-DD` for a text that Spark casts to that date and is surely one; else None."""
    if match := _ISO_DATE.fullmatch(text):
        try:
            parts = (int(match[1]), int(match[2] or 1), int(match[3] or 1))
            return datetime.date(*parts).isoformat()
        except ValueError:
            return None
    return None


def is_moment(text: str) -> bool:
    """Whether a text begins with a date and a time of day that exist; what follows may be wrong."""
    match = _MOMENT.fullmatch(text)
    if match is None:
        return False
    year, month, day, hour, minute, second = (int(part or 0) for part in match.groups())
    try:
        datetime.datetime(year, month or 1, day or 1, hour, minute, second)
    except ValueError:
        return False
    return True


# Texts that Spark reads as a moment near the query's own, in `DATE'now'` but not in a cast.
_SPECIAL_TIMES = frozenset(("epoch", "now", "today", "tomorrow", "yesterday"))


def is_special_time(expr: Expression) -> bool:
    """Whether the operand is a text such as `now`, which only Spark may read as a moment."""
    return (
        isinstance(expr, Literal)
        and expr.dtype == STRING
        and str(expr.value).strip().lower().split(" ")[0] in _SPECIAL_TIMES
    )


def _read_timestamp(literal: Literal, dtype: DataType) -> Expression:
    """A text with its zone (for TIMESTAMP) or without one (for TIMESTAMP_NTZ) as a literal."""
    match = _ISO_TIME.fullmatch(str(literal.value))
    if match is None or bool(match[8]) != (dtype == TIMESTAMP):
        return cast(literal, dtype)
    year, month, day, hour, minute, second = (int(match[n] or 0) for n in range(1, 7))
    micros = int((match[7] or "").ljust(6, "0"))
    try:
        moment = datetime.datetime(year, month, day, hour, minute, second, micros)
        if match[8] not in (None, "Z"):
            hours, minutes = match[8][1:].split(":")
            shift = datetime.timedelta(hours=int(hours), minutes=int(minutes))
            if shift > datetime.timedelta(hours=18):
                return cast(literal, dtype)
            moment = moment - shift if match[8][0] == "+" else moment + shift
    except (ValueError, OverflowError):
        return cast(literal, dtype)
    return Literal(dtype, moment.isoformat(sep=" "))


def cast_literal(expr: Expression, dtype: DataType) -> Expression:
    """A cast that is carried out now where the operand is a literal and the result is certain."""
    if expr.dtype == dtype or not isinstance(expr, Literal):
        return cast(expr, dtype)
    if expr.value is None:
        return Literal(dtype, None)
    if dtype == DATE and expr.dtype == STRING:
        text = date_text(str(expr.value))
        return Literal(DATE, text) if text else cast(expr, dtype)
    if dtype in (TIMESTAMP, TIMESTAMP_NTZ) and expr.dtype == STRING:
        return _read_timestamp(expr, dtype)
    if dtype == TIMESTAMP_NTZ and expr.dtype == DATE:
        return Literal(dtype, f"{expr.value} 00:00:00")
    if expr.dtype == STRING and dtype.is_numeric:
        return _read_number(expr, dtype)
    if expr.dtype.is_integral or expr.dtype.is_decimal:
        return _exact_number(Decimal(str(expr.value)), dtype) or cast(expr, dtype)
    return cast(expr, dtype)


def _read_number(literal: Literal, dtype: DataType) -> Expression:
    """A text as a number, where it is one without an exponent, of few enough digits."""
    text = str(literal.value)
    if dtype.is_integral:
        is_plain = _WHOLE_TEXT.fullmatch(text)
    elif dtype.is_decimal:
        is_plain = _DECIMAL_TEXT.fullmatch(text) if len(text) <= MAX_PRECISION else None
    else:
        is_plain = _DOUBLE_TEXT.fullmatch(text) if dtype == DOUBLE else None
    found = _exact_number(Decimal(text), dtype) if is_plain else None
    return found or cast(literal, dtype)


def _exact_number(value: Decimal, dtype: DataType) -> Literal | None:
    """A number as a literal of a type, or None where it is not one of its values.

    Doubles are the nearest ones, as Spark's.
    """
    if dtype.is_floating:
        return Literal(dtype, float(value))
    if dtype.is_integral:
        limit = 1 << (_INTEGER_BITS[dtype.kind] - 1)
        is_exact = value == value.to_integral_value() and -limit <= value < limit
        return Literal(dtype, int(value)) if is_exact else None
    if not dtype.is_decimal:
        return None
    try:
        # Decimals have up to 38 digits; Python's default context has 28.
        exact = value.quantize(Decimal(1).scaleb(-dtype.scale), context=_EXACT)
    except (InvalidOperation, Inexact):
        return None
    # `abs` would round to Python's digits; zero has no sign.
    size = exact.copy_abs()
    if size >= Decimal(10) ** (dtype.precision - dtype.scale):
        return None
    return Literal(dtype, format(exact if exact else size, "f"))


# What Spark casts the types that are not numbers or strings to, besides to strings (ANSI mode).
_CASTS_TO = {
    "boolean": (),
    "binary": (),
    "date": ("timestamp", "timestamp_ntz"),
    "timestamp": ("date", "timestamp_ntz"),
    "timestamp_ntz": ("date", "timestamp"),
}


def is_castable(source: DataType, target: DataType) -> bool:
    """Whether Spark may cast between two types; it refuses the others whatever the values are.

    Source: `Cast.canAnsiCast`, which TRY_CAST follows too. Types that are not known here pass:
    they are Spark's to judge.
    """
    if source in (target, NULL) or target == STRING:
        return True
    if source.kind == target.kind and not source.is_atomic:
        pairs = zip(source.fields, target.fields, strict=False)
        same = len(source.fields) == len(target.fields)
        return same and all(is_castable(a.dtype, b.dtype) for a, b in pairs)
    if source.is_interval or target.is_interval:
        kinds = [(t.is_day_time, t.is_year_month) for t in (source, target)]
        if kinds[0] == kinds[1]:
            return True
        other = target if source.is_interval else source
        counted = other.is_integral or other.is_decimal or other == STRING
        return counted or not (_is_judged(other) or other.is_interval)
    if not _is_judged(source) or not _is_judged(target):
        return True
    if not source.is_atomic or not target.is_atomic:
        return False
    if source == STRING or (source.is_numeric and target.is_numeric):
        return True
    if source.is_numeric:
        return target.kind in ("boolean", "timestamp")
    if target.is_numeric:
        return source.kind in ("boolean", "timestamp")
    return target.kind in _CASTS_TO[source.kind]


def _is_judged(dtype: DataType) -> bool:
    known = dtype.is_numeric or dtype == STRING or dtype.kind in _CASTS_TO
    return known or not dtype.is_atomic


def require_castable(source: DataType, target: DataType) -> None:
    """Refuse a cast that Spark refuses.

    Raises:
        AnalysisError: Naming both types, and the function that does it, if there is one.
    """
    if is_castable(source, target):
        return
    hint = _INSTEAD.get((source.kind, "number" if target.is_numeric else target.kind))
    if source.is_integral and target.kind == "date":
        hint = "date_from_unix_date"
    advice = f"; use {hint}(…)" if hint else ""
    raise AnalysisError(f"cannot cast {source} to {target}{advice}")


_INSTEAD = {
    ("date", "number"): "unix_date",
    ("timestamp_ntz", "number"): "unix_timestamp",
}


def is_orderable(dtype: DataType) -> bool:
    """Whether Spark compares and sorts values of a type; it does neither with maps."""
    if dtype.kind in ("map", "variant") or dtype == INTERVAL:
        return False
    return all(is_orderable(field.dtype) for field in dtype.fields)


def require_orderable(dtype: DataType, what: str) -> None:
    """Refuse a type whose values Spark neither compares nor sorts.

    Args:
        dtype: The type.
        what: What would compare them.

    Raises:
        AnalysisError: Naming both.
    """
    if not is_orderable(dtype):
        kind = "maps" if "map<" in str(dtype) else f"values of type {dtype}"
        raise AnalysisError(f"{what} {dtype}: {kind} have no order and cannot be compared")


def comparable(left: Expression, right: Expression) -> tuple[Expression, Expression]:
    """Both operands of a comparison in one type.

    Raises:
        AnalysisError: For types that Spark does not compare.
    """
    target = comparison_type(*_compared_types(left, right))
    require_orderable(target, "cannot compare")
    return cast_literal(left, target), cast_literal(right, target)


def _compared_types(left: Expression, right: Expression) -> tuple[DataType, DataType]:
    """Both types; a whole number that is written beside a decimal has as few digits as it needs."""
    sides = [left.dtype, right.dtype]
    for i, (expr, other) in enumerate(((left, right), (right, left))):
        if isinstance(expr, Literal) and expr.dtype.is_integral and other.dtype.is_decimal:
            sides[i] = decimal_literal_type(str(abs(int(expr.value or 0))))
    return sides[0], sides[1]


def comparison_type(left: DataType, right: DataType) -> DataType:
    """The type in which Spark compares two values; a string yields to the other side."""
    common = common_type(left, right) or promoted(left, right)
    unlike = left != right and not left.is_atomic and "decimal" in str(left) + str(right)
    if unlike or (common is None and left.kind == right.kind and not left.is_atomic):
        raise UnsupportedSqlError(f"compares {left} with {right}")
    if common is None:
        raise AnalysisError(f"cannot compare {left} with {right}")
    return common


def promoted(left: DataType, right: DataType) -> DataType | None:
    """The type of a string beside another atomic type (`findWiderTypeForString`), or None."""
    for text, other in ((left, right), (right, left)):
        if text == STRING:
            if other.is_integral:
                return BIGINT
            if other.is_numeric:
                return DOUBLE
            if other.is_atomic and other != STRING and not (other.is_interval or other == INTERVAL):
                return other
    return None


def widest(dtypes: tuple[DataType, ...], what: str, *, promote: bool = True) -> DataType:
    """The one type of the branches of `what` (CASE, COALESCE, UNION, …).

    Args:
        dtypes: Types of the branches, in order.
        what: What a message calls the construct.
        promote: Whether a string takes the type of the others.

    Raises:
        AnalysisError: Where there is none.
    """
    result = NULL
    for dtype in dtypes:
        common = common_type(result, dtype)
        if common is None and promote:
            common = promoted(result, dtype)
        if common is None and result.kind == dtype.kind and not dtype.is_atomic:
            raise UnsupportedSqlError(f"{what} mixes {result} and {dtype}")
        if common is None:
            raise AnalysisError(f"{what} mixes {result} and {dtype}")
        result = common
    return result


def unified(
    args: tuple[Expression, ...], what: str, *, promote: bool = True
) -> tuple[Expression, ...]:
    """All operands in their widest type."""
    target = widest(tuple(a.dtype for a in args), what, promote=promote)
    return tuple(cast_literal(a, target) for a in args)


def as_date(expr: Expression) -> Expression:
    """The operand of a date function."""
    if expr.dtype.kind in ("date", "timestamp", "timestamp_ntz", "string", "void"):
        return cast_literal(expr, DATE)
    raise AnalysisError(f"expected a date, found {expr.dtype}")


def as_timestamp_like(expr: Expression) -> Expression:
    """The operand of a time function: timestamps stay, dates stay, strings are refused here."""
    if expr.dtype.is_datetime:
        return expr
    if expr.dtype == STRING:
        raise UnsupportedSqlError("a string is implicitly read as a timestamp")
    raise AnalysisError(f"expected a date or timestamp, found {expr.dtype}")


def as_string(expr: Expression) -> Expression:
    """The operand of a string function; atomic values are cast as Spark does."""
    if expr.dtype.is_atomic:
        return cast_literal(expr, STRING)
    raise AnalysisError(f"expected a string, found {expr.dtype}")


def as_text_or_binary(expr: Expression) -> Expression:
    """The operand of a function of strings that has a form for binaries too."""
    return expr if expr.dtype == BINARY else as_string(expr)


def as_binary(expr: Expression) -> Expression:
    """The operand of a function of binaries; only strings become binaries."""
    if expr.dtype in (BINARY, STRING, NULL):
        return cast_literal(expr, BINARY)
    raise AnalysisError(f"expected a binary, found {expr.dtype}")


def as_number(expr: Expression, dtype: DataType) -> Expression:
    """An operand of a numeric type, which numbers and strings are cast to."""
    if expr.dtype.is_numeric or expr.dtype in (STRING, NULL):
        return cast_literal(expr, dtype)
    raise AnalysisError(f"expected a number, found {expr.dtype}")


def as_int(expr: Expression) -> Expression:
    """An INT operand, such as a position or a length."""
    return as_number(expr, INT)


def as_bigint(expr: Expression) -> Expression:
    """A BIGINT operand."""
    return as_number(expr, BIGINT)


def as_double(expr: Expression) -> Expression:
    """A DOUBLE operand."""
    return as_number(expr, DOUBLE)


def as_boolean(expr: Expression) -> Expression:
    """A BOOLEAN operand; strings are read as one."""
    if expr.dtype in (BOOLEAN, STRING, NULL):
        return cast_literal(expr, BOOLEAN)
    raise AnalysisError(f"expected a boolean, found {expr.dtype}")
