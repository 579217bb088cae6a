"""Spark's data types, their Arrow form, and Spark's rules for result types.

Source of the rules: Spark's `DecimalPrecision`, `TypeCoercion` and `AnsiTypeCoercion`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from stagecoach.planner.errors import UnsupportedSqlError

MAX_PRECISION = 38
MIN_ADJUSTED_SCALE = 6


@dataclass(frozen=True)
class Field:
    """A named column or struct member."""

    name: str
    dtype: DataType


@dataclass(frozen=True)
class DataType:
    """A Spark SQL type.

    Args:
        kind: Spark's type name without arguments: `int`, `decimal`, `array`, …
        precision: Digits of a decimal, else 0.
        scale: Digits after the point of a decimal, else 0.
        fields: Element of an array, key and value of a map, members of a struct.
    """

    kind: str
    precision: int = 0
    scale: int = 0
    fields: tuple[Field, ...] = ()

    def __str__(self) -> str:
        match self.kind:
            case "decimal":
                return f"decimal({self.precision},{self.scale})"
            case "array":
                return f"array<{self.fields[0].dtype}>"
            case "map":
                return f"map<{self.fields[0].dtype},{self.fields[1].dtype}>"
            case "struct":
                return f"struct<{','.join(f'{f.name}:{f.dtype}' for f in self.fields)}>"
        return self.kind

    @property
    def is_integral(self) -> bool:
        """Whether the type is one of the four integer widths."""
        return self.kind in _INTEGRAL_DIGITS

    @property
    def is_floating(self) -> bool:
        """Whether the type is float or double."""
        return self.kind in ("float", "double")

    @property
    def is_decimal(self) -> bool:
        """Whether the type is a decimal."""
        return self.kind == "decimal"

    @property
    def is_numeric(self) -> bool:
        """Whether arithmetic is defined on the type."""
        return self.is_integral or self.is_floating or self.is_decimal

    @property
    def is_datetime(self) -> bool:
        """Whether the type is a date or a timestamp."""
        return self.kind in ("date", "timestamp", "timestamp_ntz")

    @property
    def is_day_time(self) -> bool:
        """Whether the type is a day-time interval, a number of microseconds to Spark."""
        return _interval_start(self.kind) in _DAY_TIME_FIELDS

    @property
    def is_year_month(self) -> bool:
        """Whether the type is a year-month interval, a number of months to Spark."""
        return _interval_start(self.kind) in _YEAR_MONTH_FIELDS

    @property
    def is_interval(self) -> bool:
        """Whether the type is one of the two kinds of intervals that compare and add up."""
        return self.is_day_time or self.is_year_month

    @property
    def is_only_sparks(self) -> bool:
        """Whether a column of the type can be read by Spark alone, or holds one that can."""
        if self.is_interval or _ONLY_SPARKS.fullmatch(self.kind):
            return True
        return any(field.dtype.is_only_sparks for field in self.fields)

    @property
    def is_atomic(self) -> bool:
        """Whether the type has no members."""
        return self.kind not in ("array", "map", "struct")


BOOLEAN = DataType("boolean")
TINYINT = DataType("tinyint")
SMALLINT = DataType("smallint")
INT = DataType("int")
BIGINT = DataType("bigint")
FLOAT = DataType("float")
DOUBLE = DataType("double")
STRING = DataType("string")
BINARY = DataType("binary")
DATE = DataType("date")
TIMESTAMP = DataType("timestamp")
TIMESTAMP_NTZ = DataType("timestamp_ntz")
NULL = DataType("void")
INTERVAL = DataType("interval")
"""The calendar interval of `make_interval`: months, days and microseconds side by side."""
INTERVAL_DAY = DataType("interval day")
DAY_TIME_INTERVAL = DataType("interval day to second")
YEAR_MONTH_INTERVAL = DataType("interval year to month")

# Types that Stagecoach has no Arrow form for.
_ONLY_SPARKS = re.compile(
    r"variant|time\(\d+\)|string collate \w+|(geography|geometry)\(\w+\)", re.IGNORECASE
)
_SPATIAL = re.compile(r"(geography|geometry)\(\w+\)")
_TIME = re.compile(r"time\(\d+\)")
_QUOTED_NAME = re.compile(r"\s*`((?:[^`]|``)*)`\s*:(.*)", re.DOTALL)
_COLLATED = re.compile(r"string collate \w+", re.IGNORECASE)
_YEAR_MONTH_FIELDS = ("year", "month")
_DAY_TIME_FIELDS = ("day", "hour", "minute", "second")
_INTEGRAL_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 20}
_ORDER = ("tinyint", "smallint", "int", "bigint")
_ALIASES = {
    "byte": "tinyint",
    "short": "smallint",
    "integer": "int",
    "long": "bigint",
    "real": "float",
    "timestamp_ltz": "timestamp",
    "timestampntz": "timestamp_ntz",
    "bool": "boolean",
}
_SIMPLE = {
    t.kind: t
    for t in (
        BOOLEAN,
        TINYINT,
        SMALLINT,
        INT,
        BIGINT,
        FLOAT,
        DOUBLE,
        STRING,
        BINARY,
        DATE,
        TIMESTAMP,
        TIMESTAMP_NTZ,
        NULL,
        INTERVAL,
    )
} | {
    f"interval {fields[low]}" + (f" to {fields[high]}" if high > low else ""): DataType(
        f"interval {fields[low]}" + (f" to {fields[high]}" if high > low else "")
    )
    for fields in (_YEAR_MONTH_FIELDS, _DAY_TIME_FIELDS)
    for low in range(len(fields))
    for high in range(low, len(fields))
}
_ARROW = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "void": pa.null(),
}


def decimal(precision: int, scale: int) -> DataType:
    """A decimal type as given, which must be within Spark's 38 digits."""
    if not 0 <= scale <= precision <= MAX_PRECISION or precision < 1:
        raise UnsupportedSqlError(f"decimal({precision},{scale}) is out of Spark's range")
    return DataType("decimal", precision, scale)


def bounded_decimal(precision: int, scale: int) -> DataType:
    """`DecimalType.bounded`: both numbers capped at 38 (result type of sum and avg)."""
    return decimal(min(precision, MAX_PRECISION), min(scale, MAX_PRECISION))


def adjusted_decimal(precision: int, scale: int) -> DataType:
    """`DecimalType.adjustPrecisionScale`: above 38 digits the scale shrinks, to 6 at least."""
    if precision <= MAX_PRECISION:
        return decimal(precision, scale)
    integral_digits = precision - scale
    min_scale = min(scale, MIN_ADJUSTED_SCALE)
    return decimal(MAX_PRECISION, max(MAX_PRECISION - integral_digits, min_scale))


def decimal_for(dtype: DataType) -> DataType:
    """The decimal that holds every value of an integer type (`DecimalType.forType`)."""
    if dtype.is_decimal:
        return dtype
    return decimal(_INTEGRAL_DIGITS[dtype.kind], 0)


def _interval_start(kind: str) -> str:
    return kind.split()[1] if kind.startswith("interval ") else ""


def interval_of(first: str, last: str) -> DataType:
    """The interval type of the fields `first` to `last`, such as `day` to `second`.

    Raises:
        UnsupportedSqlError: For fields that do not belong together.
    """
    kind = f"interval {first}" if first == last else f"interval {first} to {last}"
    if kind not in _SIMPLE:
        raise UnsupportedSqlError(f"there is no type '{kind}'")
    return _SIMPLE[kind]


def interval_fields(dtype: DataType) -> tuple[str, str]:
    """First and last field of an interval type."""
    words = dtype.kind.split()
    return words[1], words[-1]


def _wider_interval(left: DataType, right: DataType) -> DataType:
    fields = _DAY_TIME_FIELDS if left.is_day_time else _YEAR_MONTH_FIELDS
    ends = [fields.index(f) for side in (left, right) for f in interval_fields(side)]
    return interval_of(fields[min(ends)], fields[max(ends)])


def array_of(element: DataType) -> DataType:
    """An array type."""
    return DataType("array", fields=(Field("element", element),))


def map_of(key: DataType, value: DataType) -> DataType:
    """A map type."""
    return DataType("map", fields=(Field("key", key), Field("value", value)))


def struct_of(fields: tuple[Field, ...]) -> DataType:
    """A struct type."""
    return DataType("struct", fields=fields)


def wider_decimal(left: DataType, right: DataType) -> DataType:
    """The common type of two decimals in comparisons, CASE and UNION.

    Above 38 digits the scale shrinks, to 0 at least (`DecimalType.boundedPreferIntegralDigits`).
    """
    scale = max(left.scale, right.scale)
    digits = max(left.precision - left.scale, right.precision - right.scale)
    return decimal(min(digits + scale, MAX_PRECISION), min(scale, MAX_PRECISION - digits))


def common_type(left: DataType, right: DataType) -> DataType | None:
    """The least common type of two types under ANSI rules; None where there is none.

    Strings are not widened here: comparisons of a string with another type are cast by the caller.
    """
    if left == right:
        return left
    if left == NULL:
        return right
    if right == NULL:
        return left
    if left.is_integral and right.is_integral:
        return max(left, right, key=lambda t: _ORDER.index(t.kind))
    if left.is_numeric and right.is_numeric:
        if left.is_floating or right.is_floating:
            both_float = {left.kind, right.kind} == {"float"}
            return FLOAT if both_float else DOUBLE
        return wider_decimal(decimal_for(left), decimal_for(right))
    if left.is_datetime and right.is_datetime:
        kinds = {left.kind, right.kind}
        return TIMESTAMP if "timestamp" in kinds else TIMESTAMP_NTZ
    if (left.is_day_time and right.is_day_time) or (left.is_year_month and right.is_year_month):
        return _wider_interval(left, right)
    return _common_nested(left, right)


def _common_nested(left: DataType, right: DataType) -> DataType | None:
    """The common type of arrays, maps or structs: that of their members, under the left's names."""
    if left.is_atomic or left.kind != right.kind or len(left.fields) != len(right.fields):
        return None
    fields = []
    for mine, theirs in zip(left.fields, right.fields, strict=True):
        member = common_type(mine.dtype, theirs.dtype)
        if member is None or mine.name.lower() != theirs.name.lower():
            return None
        fields.append(Field(mine.name, member))
    return DataType(left.kind, fields=tuple(fields))


def parse_type(text: str) -> DataType:
    """The type that Spark prints as `text`.

    Raises:
        UnsupportedSqlError: For a type that Stagecoach has no Arrow form for.
    """
    return _parse(text, lambda _: None)


def parse_column_type(text: str) -> DataType:
    """The type of a stored column, also one that only Spark can read.

    Raises:
        UnsupportedSqlError: For a type that Spark does not have.
    """
    return _parse(text, lambda name: DataType(name) if _ONLY_SPARKS.fullmatch(name) else None)


def parse_result_type(text: str) -> DataType:
    """The type that carries a column of a result, for which Spark prints `text`.

    A collated string is a string outside of Spark. VARIANT and the spatial types are the structs
    that Spark's own Arrow form makes of them. Intervals of months and calendar intervals, for which
    it has none, are texts.

    Raises:
        UnsupportedSqlError: For a type that Spark does not have.
    """
    return _parse(text, _result_form)


def _result_form(name: str) -> DataType | None:
    name = name.lower()
    if (
        _COLLATED.fullmatch(name)
        or name == "interval"
        or _interval_start(name) in _YEAR_MONTH_FIELDS
    ):
        return STRING
    if name == "variant":
        return struct_of((Field("value", BINARY), Field("metadata", BINARY)))
    if _SPATIAL.fullmatch(name):
        return struct_of((Field("srid", INT), Field("wkb", BINARY)))
    return DataType(name) if _TIME.fullmatch(name) else None


def _parse(text: str, form_of: Callable[[str], DataType | None]) -> DataType:
    """The type that Spark prints as `text`.

    Args:
        text: A type, whose members and elements are read likewise.
        form_of: The type to take for a name, before all others; None for its own.
    """
    text = " ".join(text.split())
    if (form := form_of(text)) is not None:
        return form
    low = _ALIASES.get(text.lower(), text.lower())
    if low in _SIMPLE:
        return _SIMPLE[low]
    if match := re.fullmatch(
        r"(?:decimal|numeric|dec)\s*(?:\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\))?", low
    ):
        return decimal(int(match[1] or 10), int(match[2] or 0))
    if re.fullmatch(r"(?:var)?char\s*\(\s*\d+\s*\)", low):
        return STRING
    if match := re.fullmatch(r"array\s*<(.*)>", text, re.I | re.S):
        return array_of(_parse(match[1], form_of))
    if match := re.fullmatch(r"map\s*<(.*)>", text, re.I | re.S):
        key, value = _split_arguments(match[1])
        return map_of(_parse(key, form_of), _parse(value, form_of))
    if match := re.fullmatch(r"struct\s*<(.*)>", text, re.I | re.S):
        members = [_member(part) for part in _split_arguments(match[1])]
        return struct_of(tuple(Field(name, _parse(kind, form_of)) for name, kind in members))
    raise UnsupportedSqlError(f"type '{text}' is not supported")


def _member(text: str) -> tuple[str, str]:
    """The name and the type of a struct's member, such as `a: int` or `` `a:b`: int ``."""
    if match := _QUOTED_NAME.match(text):
        return match[1].replace("``", "`"), match[2]
    name, _, kind = text.partition(":")
    return name.strip(), kind


def _split_arguments(text: str) -> list[str]:
    parts, depth, start, quoted = [], 0, 0, False
    for i, char in enumerate(text):
        quoted ^= char == "`"
        if quoted:
            continue
        depth += (char in "<(") - (char in ">)")
        if char == "," and depth == 0:
            parts.append(text[start:i])
            start = i + 1
    return [*parts, text[start:]] if text.strip() else []


def to_arrow(dtype: DataType) -> pa.DataType:
    """The Arrow type that carries `dtype` between stages and in results.

    Raises:
        UnsupportedSqlError: For an interval of months, which Spark's Arrow cannot hold.
    """
    if dtype.is_day_time:
        return pa.duration("us")
    if _TIME.fullmatch(dtype.kind):
        return pa.time64("ns")
    match dtype.kind:
        case "decimal":
            return pa.decimal128(dtype.precision, dtype.scale)
        case "array":
            return pa.list_(pa.field("element", to_arrow(dtype.fields[0].dtype)))
        case "map" if dtype.fields[0].dtype == NULL:
            raise UnsupportedSqlError(f"a column of type '{dtype}' cannot be stored")
        case "map":
            return pa.map_(to_arrow(dtype.fields[0].dtype), to_arrow(dtype.fields[1].dtype))
        case "struct":
            return pa.struct([pa.field(f.name, to_arrow(f.dtype)) for f in dtype.fields])
    if dtype.kind not in _ARROW:
        raise UnsupportedSqlError(f"a column of type '{dtype}' cannot be stored")
    return _ARROW[dtype.kind]


def from_arrow(dtype: pa.DataType) -> DataType:
    """The type that Spark gives a Parquet column of this Arrow type.

    Raises:
        UnsupportedSqlError: For a type that Spark's Parquet reader refuses.
    """
    for kind, arrow in _ARROW.items():
        if arrow == dtype:
            return _SIMPLE[kind]
    if pa.types.is_decimal(dtype):
        return decimal(dtype.precision, dtype.scale)
    if pa.types.is_large_string(dtype) or pa.types.is_string_view(dtype):
        return STRING
    if (
        pa.types.is_large_binary(dtype)
        or pa.types.is_fixed_size_binary(dtype)
        or pa.types.is_binary_view(dtype)
    ):
        return BINARY
    if pa.types.is_timestamp(dtype) and dtype.unit in ("us", "ms"):
        return TIMESTAMP if dtype.tz else TIMESTAMP_NTZ
    if pa.types.is_unsigned_integer(dtype):
        widened = {8: SMALLINT, 16: INT, 32: BIGINT, 64: decimal(20, 0)}
        return widened[dtype.bit_width]
    if pa.types.is_dictionary(dtype):
        return from_arrow(dtype.value_type)
    if pa.types.is_list(dtype) or pa.types.is_large_list(dtype):
        return array_of(from_arrow(dtype.value_type))
    if pa.types.is_map(dtype):
        return map_of(from_arrow(dtype.key_type), from_arrow(dtype.item_type))
    if pa.types.is_struct(dtype):
        return struct_of(tuple(Field(f.name, from_arrow(f.type)) for f in dtype))
    raise UnsupportedSqlError(f"Parquet columns of type '{dtype}' are not supported by Spark")


def arrow_schema(fields: tuple[Field, ...]) -> pa.Schema:
    """The Arrow schema of a row with these columns, all nullable."""
    return pa.schema([pa.field(f.name, to_arrow(f.dtype)) for f in fields])
