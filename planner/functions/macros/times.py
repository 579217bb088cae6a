"""Functions of dates and timestamps that are shorthand for another expression."""

from __future__ import annotations

from collections.abc import Callable

from stagecoach.planner.errors import AnalysisError, UnsupportedSqlError, check_count
from stagecoach.planner.functions.registry import make_call
from stagecoach.planner.functions.tables.times import DEFAULT_PATTERN
from stagecoach.planner.plan.coercion import as_string, cast_literal, require_castable
from stagecoach.planner.plan.expressions import Cast, Expression, Literal, Parameter
from stagecoach.planner.types import DATE, NULL, STRING, TIMESTAMP, TIMESTAMP_NTZ, DataType

Args = tuple[Expression, ...]
NOW = Parameter(TIMESTAMP, "@now")
TODAY = Parameter(DATE, "@date")


def _count(name: str, args: Args, fewest: int, most: int) -> None:
    check_count(f"function '{name}'", (fewest, most), len(args))


def _reading(
    name: str, row: str, dtype: DataType, *, safe: bool = False
) -> Callable[[Args], Expression]:
    """A function that is a cast without a pattern, and reads a text with one."""

    def build(args: Args) -> Expression:
        _count(name, args, 1, 2)
        source = _readable(name, args, dtype)
        if len(args) == 2:
            as_string(args[1])
            if source.dtype == STRING:
                return make_call(row, source, args[1])
        if safe and (source.dtype == STRING or source.dtype.is_numeric):
            return Cast(dtype, source, safe=True)
        return cast_literal(source, dtype)

    return build


def _readable(name: str, args: Args, dtype: DataType) -> Expression:
    """What is read: a number of seconds for a timestamp, a moment, or else a text.

    Raises:
        AnalysisError: For values that are not texts, and for numbers with a pattern.
    """
    found = args[0].dtype
    if found.is_datetime or found in (STRING, NULL):
        return args[0]
    if found.is_numeric and dtype == TIMESTAMP:
        if len(args) == 2:
            raise AnalysisError(f"{name} reads a text by a pattern, not {_a(found)}")
        return args[0]
    if found.is_interval or not found.is_atomic:
        # Spark, too, makes of an interval a text that is not a moment; only it can say so.
        what = UnsupportedSqlError if found.is_interval else AnalysisError
        raise what(f"{name}: expected a text or a moment, found {found}")
    return cast_literal(args[0], STRING)


def _a(dtype: DataType) -> str:
    return f"{'an' if dtype.kind[0] in 'aeiou' else 'a'} {dtype}"


def _seconds(name: str) -> Callable[[Args], Expression]:
    def build(args: Args) -> Expression:
        _count(name, args, 0 if name == "unix_timestamp" else 1, 2)
        for layout in args[1:]:
            if layout.dtype not in (STRING, NULL):
                raise AnalysisError(f"{name}: expected a string, found {layout.dtype}")
        if not args:
            return make_call("seconds_since_1970", NOW)
        if args[0].dtype == STRING:
            pattern = args[1] if len(args) == 2 else Literal(STRING, DEFAULT_PATTERN)
            return make_call("to_unix_timestamp", args[0], pattern)
        if args[0].dtype == TIMESTAMP_NTZ:
            raise UnsupportedSqlError(f"{name} of a timestamp_ntz")
        return make_call("seconds_since_1970", args[0])

    return build


def _from_unixtime(args: Args) -> Expression:
    _count("from_unixtime", args, 1, 2)
    return make_call("from_unixtime", *(*args, Literal(STRING, DEFAULT_PATTERN))[:2])


def _making(row: str) -> Callable[[Args], Expression]:
    def build(args: Args) -> Expression:
        if len(args) in (1, 2, 3):
            raise UnsupportedSqlError("a timestamp made of a TIME")
        return make_call(row, *args)

    return build


def _convert(args: Args) -> Expression:
    source = (make_call("current_timezone"),) if len(args) == 2 else ()
    return make_call("convert_timezone", *source, *args)


def _cast(name: str, dtype: DataType) -> Callable[[Args], Expression]:
    def build(args: Args) -> Expression:
        _count(name, args, 1, 1)
        if args[0].dtype == NULL:
            return Literal(dtype, None)
        require_castable(args[0].dtype, dtype)
        return cast_literal(args[0], dtype)

    return build


def _bound(name: str, value: Expression) -> Callable[[Args], Expression]:
    def build(args: Args) -> Expression:
        if len(args) == 1 and value.dtype != DATE:
            raise UnsupportedSqlError(f"{name} with a number of digits")
        _count(name, args, 0, 0)
        return value

    return build


MACROS: dict[str, Callable[[Args], Expression]] = {
    "dayofmonth": lambda args: make_call("day", *args),
    "date": _cast("date", DATE),
    "timestamp": _cast("timestamp", TIMESTAMP),
    "to_date": _reading("to_date", "to_date", DATE),
    "try_to_date": _reading("try_to_date", "try_to_date", DATE, safe=True),
    "to_timestamp": _reading("to_timestamp", "to_timestamp_ltz", TIMESTAMP),
    "to_timestamp_ltz": _reading("to_timestamp_ltz", "to_timestamp_ltz", TIMESTAMP),
    "to_timestamp_ntz": _reading("to_timestamp_ntz", "to_timestamp_ntz", TIMESTAMP_NTZ),
    "try_to_timestamp": _reading("try_to_timestamp", "try_to_timestamp", TIMESTAMP, safe=True),
    "unix_timestamp": _seconds("unix_timestamp"),
    "to_unix_timestamp": _seconds("to_unix_timestamp"),
    "from_unixtime": _from_unixtime,
    "make_timestamp": _making("make_timestamp_ltz"),
    "make_timestamp_ltz": _making("make_timestamp_ltz"),
    "make_timestamp_ntz": _making("make_timestamp_ntz"),
    "try_make_timestamp": _making("try_make_timestamp_ltz"),
    "try_make_timestamp_ltz": _making("try_make_timestamp_ltz"),
    "try_make_timestamp_ntz": _making("try_make_timestamp_ntz"),
    "convert_timezone": _convert,
    "now": _bound("now", NOW),
    "current_timestamp": _bound("current_timestamp", NOW),
    "current_date": _bound("current_date", TODAY),
    "curdate": _bound("curdate", TODAY),
    "localtimestamp": _bound("localtimestamp", Parameter(TIMESTAMP_NTZ, "@local")),
}
