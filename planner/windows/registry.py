"""The registry of window functions: types, requirements on the window, DuckDB's spelling.

Aggregates over a window are in the registry of aggregates. A spelling needs a differential test
that proves it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal as OneOf

from stagecoach.planner.errors import AnalysisError, UnsupportedSqlError, check_count
from stagecoach.planner.plan.expressions import (
    Expression,
    FrameBound,
    Literal,
    WindowCall,
    WindowFrame,
)
from stagecoach.planner.types import BIGINT, DOUBLE, INT, NULL, DataType

Args = tuple[Expression, ...]
Frames = OneOf["rows", "range", "none", "any"]

_UNBOUNDED = FrameBound("unbounded_preceding")
_CURRENT = FrameBound("current")
RUNNING_ROWS = WindowFrame("rows", _UNBOUNDED, _CURRENT)
RUNNING_RANGE = WindowFrame("range", _UNBOUNDED, _CURRENT)
WHOLE_PARTITION = WindowFrame("rows", _UNBOUNDED, FrameBound("unbounded_following"))


@dataclass(frozen=True)
class WindowFunction:
    """One row of the registry.

    Args:
        name: Canonical name, which Spark understands too.
        arity: Fewest and most arguments.
        result: Result type.
        duckdb: DuckDB's name of the function over a window, or None where it is not proven.
        frame: `any` for a function of the frame; `rows` or `range` for one that always sees the
            rows up to the current one; `none` for one that takes no frame.
        ordered: Whether it needs ORDER BY.
        skips_nulls: Whether it may be told to pass over NULLs.
        is_aggregate: Whether it is an aggregate too, which may have a FILTER.
        coerce: Checks and completes the arguments.
        refuse: Why a call must not run on DuckDB, or None.
        proof: Name of the differential test.
    """

    name: str
    arity: tuple[int, int]
    result: Callable[[Args], DataType]
    duckdb: str | None = None
    frame: Frames = "any"
    ordered: bool = False
    skips_nulls: bool = False
    is_aggregate: bool = False
    coerce: Callable[[Args], Args] = lambda args: args
    refuse: Callable[[WindowCall], str | None] = lambda _: None
    proof: str = ""

    @property
    def required_frame(self) -> WindowFrame | None:
        """The frame that it always has; None where it has none or any."""
        return {"rows": RUNNING_ROWS, "range": RUNNING_RANGE}.get(self.frame)


def _fixed(dtype: DataType) -> Callable[[Args], DataType]:
    return lambda _: dtype


def _first(args: Args) -> DataType:
    return args[0].dtype


def _no_arguments(args: Args) -> Args:
    """Spark's rank functions take arguments and never look at them."""
    del args
    return ()


def _buckets(args: Args) -> Args:
    return (_positive("ntile", args[0], (INT,), "buckets"),) if args else (Literal(INT, 1),)


def _nth(args: Args) -> Args:
    return (args[0], _positive("nth_value", args[1], (INT, BIGINT), "offset"))


def _positive(name: str, node: Expression, types: tuple[DataType, ...], what: str) -> Literal:
    if not isinstance(node, Literal) or node.dtype not in types or not isinstance(node.value, int):
        raise AnalysisError(f"the {what} of {name} must be a constant of type {types[0]}")
    if node.value <= 0:
        raise AnalysisError(f"the {what} of {name} must be positive, not {node.value}")
    return node


def _shifted(name: str) -> Callable[[Args], Args]:
    """The value, a constant offset (1 if none is given) and a default."""

    def coerce(args: Args) -> Args:
        offset = args[1] if len(args) > 1 else Literal(INT, 1)
        if not isinstance(offset, Literal) or offset.dtype != INT or offset.value is None:
            raise AnalysisError(f"the offset of {name} must be a constant of type int")
        default = args[2] if len(args) > 2 else Literal(NULL, None)
        return (args[0], offset, default)

    return coerce


def _refuse_shift(call: WindowCall) -> str | None:
    if call.ignore_nulls and call.args[1] == Literal(INT, 0):
        return f"{call.function} by 0 rows IGNORE NULLS is not proven"
    return None


def _refuse_filter(call: WindowCall) -> str | None:
    if call.where is not None:
        return f"{call.function} over a window with a FILTER is not proven"
    return None


def _counter(args: Args) -> Args:
    """A value that only grows, and since when."""
    if not args[0].dtype.is_numeric:
        raise UnsupportedSqlError(f"counter_diff of {args[0].dtype}")
    return args


def _refuse_counter(call: WindowCall) -> str | None:
    if len(call.args) > 1 or call.args[0].dtype.is_floating:
        return "counter_diff of floats, or with a start time, is not proven"
    return None


def _ranking(name: str, dtype: DataType, arity: int = 0, frame: Frames = "rows") -> WindowFunction:
    return WindowFunction(
        name, (0, arity), _fixed(dtype), name, frame, ordered=True, coerce=_no_arguments,
        proof="windows",
    )  # fmt: skip


def _shift(name: str) -> WindowFunction:
    return WindowFunction(
        name, (1, 3), _first, name, "none", ordered=True, skips_nulls=True, coerce=_shifted(name),
        refuse=_refuse_shift, proof="windows",
    )  # fmt: skip


def _value(name: str, duckdb: str) -> WindowFunction:
    return WindowFunction(
        name, (1, 1), _first, duckdb, skips_nulls=True, is_aggregate=True, refuse=_refuse_filter,
        proof="windows",
    )  # fmt: skip


_ANY_NUMBER = 1 << 20
_TABLE = (
    _ranking("row_number", INT),
    _ranking("rank", INT, _ANY_NUMBER),
    _ranking("dense_rank", INT, _ANY_NUMBER),
    _ranking("percent_rank", DOUBLE, _ANY_NUMBER),
    _ranking("cume_dist", DOUBLE, frame="range"),
    WindowFunction(
        "ntile", (0, 1), _fixed(INT), "ntile", "rows", ordered=True, coerce=_buckets,
        proof="windows",
    ),
    _shift("lag"),
    _shift("lead"),
    WindowFunction(
        "nth_value", (2, 2), _first, "nth_value", ordered=True, skips_nulls=True, coerce=_nth,
        proof="windows",
    ),
    WindowFunction(
        "counter_diff", (1, 2), _first, "lag", "rows", ordered=True, coerce=_counter,
        refuse=_refuse_counter, proof="windows",
    ),
    _value("first", "first_value"),
    _value("last", "last_value"),
    _value("any_value", "first_value"),
)  # fmt: skip

WINDOW_FUNCTIONS: dict[str, WindowFunction] = {function.name: function for function in _TABLE}

# Functions that exist over a window only.
ONLY_OVER = frozenset(f.name for f in _TABLE if not f.is_aggregate)


def window_function(name: str, args: Args) -> tuple[DataType, Args]:
    """The result type and the completed arguments of a function of this registry.

    Raises:
        AnalysisError: For a wrong number or kind of arguments.
    """
    function = WINDOW_FUNCTIONS[name]
    check_count(f"window function '{name}'", function.arity, len(args))
    coerced = function.coerce(args)
    return function.result(coerced), coerced
