"""Call a function over Arrow columns, in the same way whatever engine asks for it.

Worker code. All kinds of functions are called here, on DuckDB and on Spark, so both engines give
the same rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import pyarrow as pa
import pyarrow.compute as pc

from stagecoach.infra.functions.errors import FunctionRaisedError
from stagecoach.infra.functions.values import from_python, to_python
from stagecoach.planner.errors import UnsupportedSqlError
from stagecoach.planner.project_function import ProjectFunction
from stagecoach.planner.types import DataType, common_type, from_arrow, to_arrow

_UTC = ZoneInfo("UTC")
Code = Callable[..., Any]
_NOT_OF_TYPE = (pa.ArrowException, TypeError, ValueError, ArithmeticError, AttributeError, KeyError)


def call_function(
    function: ProjectFunction, code: Code, columns: Sequence[pa.Array], time_zone: str
) -> pa.Array:
    """The results of a function for some rows.

    Args:
        function: Its declaration.
        code: What is called.
        columns: A column for each argument; at least one.
        time_zone: The session's, an IANA name.

    Returns:
        A column of the declared type with a value for each row.

    Raises:
        FunctionRaisedError: The code raised, or gave something else than it declares.
    """
    columns = _as_declared(function, columns)
    rows = len(columns[0])
    if function.null_input == "call":
        return _called(function, code, columns, rows, _zone(function, time_zone))
    full = pc.is_valid(columns[0])
    for column in columns[1:]:
        full = pc.and_(full, pc.is_valid(column))
    places = pc.indices_nonzero(full)
    if len(places) == rows:
        return _called(function, code, columns, rows, _zone(function, time_zone))
    columns = [column.take(places) for column in columns]
    found = _called(function, code, columns, len(places), _zone(function, time_zone))
    # For each row its place among the results, or NULL.
    numbers = pc.subtract(pc.cumulative_sum(pc.cast(full, pa.int64())), 1)
    return found.take(pc.if_else(full, numbers, pa.scalar(None, pa.int64())))


def _zone(function: ProjectFunction, time_zone: str) -> ZoneInfo:
    """The session's time zone, where the function sees or makes a TIMESTAMP; else any."""
    if not any("timestamp" in str(dtype) for dtype in (*function.arguments, function.returns)):
        return _UTC
    try:
        return ZoneInfo(time_zone)
    except (ValueError, ZoneInfoNotFoundError) as error:
        problem = f"needs a time zone of the tz database, which '{time_zone}' is not"
        raise FunctionRaisedError(function, problem) from error


def _called(
    function: ProjectFunction, code: Code, columns: Sequence[pa.Array], rows: int, zone: ZoneInfo
) -> pa.Array:
    if not rows:
        return pa.nulls(0, to_arrow(function.returns))
    call = {"scalar": _by_row, "pandas": _over_series, "arrow": _over_arrays}[function.kind]
    found = call(function, code, columns, zone)
    if len(found) != rows:
        problem = f"gave {len(found)} values for {rows} rows; it must give one for each"
        raise FunctionRaisedError(function, problem)
    return found


def _by_row(
    function: ProjectFunction, code: Code, columns: Sequence[pa.Array], zone: ZoneInfo
) -> pa.Array:
    pairs = zip(columns, function.arguments, strict=True)
    with _raising(function):
        values = list(map(code, *(to_python(column, dtype, zone) for column, dtype in pairs)))
    with _converting(function):
        return from_python(values, function.returns, zone)


def _over_series(
    function: ProjectFunction, code: Code, columns: Sequence[pa.Array], zone: ZoneInfo
) -> pa.Array:
    from stagecoach.infra.functions.series import from_series, to_series

    pairs = zip(columns, function.arguments, strict=True)
    with _raising(function):
        found = code(*(to_series(column, dtype, zone) for column, dtype in pairs))
    with _converting(function):
        return from_series(found, function.returns, zone)


def _over_arrays(
    function: ProjectFunction, code: Code, columns: Sequence[pa.Array], zone: ZoneInfo
) -> pa.Array:
    del zone
    with _raising(function):
        found = code(*columns)
    if isinstance(found, pa.ChunkedArray):
        found = found.combine_chunks()
    if not isinstance(found, pa.Array):
        kind = type(found).__name__
        raise FunctionRaisedError(function, f"gave a {kind}; it must give a pyarrow.Array")
    target = to_arrow(function.returns)
    with _converting(function):
        return found if found.type == target else found.cast(target)


@contextmanager
def _raising(function: ProjectFunction) -> Iterator[None]:
    """Calls the project's code, which may raise anything."""
    try:
        yield
    except Exception as error:
        raise FunctionRaisedError.of(function, error) from error


@contextmanager
def _converting(function: ProjectFunction) -> Iterator[None]:
    """Converts what the project's code gave to the declared type."""
    try:
        yield
    except _NOT_OF_TYPE as error:
        told = str(error).splitlines() or [type(error).__name__]
        problem = f"gave a value that is not {function.returns}: {told[0]}"
        raise FunctionRaisedError(function, problem) from error


def _as_declared(function: ProjectFunction, columns: Sequence[pa.Array]) -> list[pa.Array]:
    """The arguments in the types that are declared.

    Where the planner knows the call, they have these types. Where Spark runs a text as it stands,
    they may have others; those are refused for which only Spark's own cast would be right.

    Raises:
        FunctionRaisedError: For a wrong number of arguments, or another type.
    """
    if len(columns) != len(function.arguments):
        raise FunctionRaisedError(
            function, f"takes {len(function.arguments)} arguments, not {len(columns)}"
        )
    found = []
    for number, (column, dtype) in enumerate(zip(columns, function.arguments, strict=True), 1):
        target = to_arrow(dtype)
        if column.type == target:
            found.append(column)
            continue
        try:
            given = None if pa.types.is_null(column.type) else from_arrow(column.type)
            if given is not None and not _casts(given, dtype):
                raise FunctionRaisedError(
                    function, f"takes {dtype} as argument {number}, not {given}; write a CAST"
                )
            found.append(column.cast(target))
        except (UnsupportedSqlError, pa.ArrowException) as error:
            raise FunctionRaisedError(
                function, f"takes {dtype} as argument {number}, not {column.type}: {error}"
            ) from error
    return found


def _casts(source: DataType, target: DataType) -> bool:
    """Whether Arrow casts a type as Spark implicitly does: exactly, or not at all."""
    if source == target:
        return True
    if source.is_integral:
        return target.is_integral or target.kind == "string"
    numbers = source.is_numeric and target.is_numeric and not target.is_floating
    return (numbers and common_type(source, target) == target) or (
        (source.kind, target.kind) in (("float", "double"), ("date", "string"))
    )
