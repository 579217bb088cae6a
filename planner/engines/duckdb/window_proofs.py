"""Why DuckDB must not compute a call over a window."""

from __future__ import annotations

from stagecoach.planner.aggregates import AGGREGATES
from stagecoach.planner.plan.expressions import AggregateCall, FrameBound, Literal, WindowCall
from stagecoach.planner.types import BINARY, BOOLEAN, NULL, STRING, DataType
from stagecoach.planner.windows.registry import WINDOW_FUNCTIONS

NATIVE_AGGREGATES = frozenset(
    ("count", "sum", "min", "max", "bool_and", "bool_or", "bit_and", "bit_or", "bit_xor")
)
"""Aggregates that DuckDB computes over every frame as Spark does; `avg` becomes two of them."""

# Beyond this many days Spark's own sum of a date and an offset may wrap around.
_MOST_DAYS = 10_000_000


def refuse_window(call: WindowCall) -> str | None:
    """Why DuckDB must not compute the call; None where it may."""
    keys = [*call.partition, *(k.expr for k in call.order)]
    wrong = next((k.dtype for k in keys if not _sorts(k.dtype)), None)
    if wrong is not None:
        return f"a window by {wrong} is not proven"
    function = WINDOW_FUNCTIONS.get(call.function)
    if function is not None:
        if function.duckdb is None:
            return f"window function '{call.function}' is not proven on DuckDB"
        return function.refuse(call) or _refuse_frame(call)
    if call.function not in NATIVE_AGGREGATES or call.distinct:
        return f"aggregate '{call.function}' over a window is not proven on DuckDB"
    aggregate = AggregateCall(call.dtype, call.function, call.args, where=call.where)
    return AGGREGATES[call.function].refuse(aggregate) or _refuse_frame(call)


def _sorts(dtype: DataType) -> bool:
    if dtype.kind in ("array", "struct"):
        return bool(dtype.fields) and all(_sorts(field.dtype) for field in dtype.fields)
    return dtype.is_numeric or dtype.is_datetime or dtype in (STRING, BINARY, BOOLEAN, NULL)


def _refuse_frame(call: WindowCall) -> str | None:
    frame = call.frame
    if frame is None:
        return None
    signed = (_sign(frame.start), _sign(frame.end))
    if signed[0] > signed[1]:
        return "a frame that ends before it starts is not proven"
    offsets = [b.offset for b in (frame.start, frame.end) if b.offset is not None]
    if frame.unit == "rows" or not offsets:
        return None
    return _refuse_offsets(call.order[0].expr.dtype, offsets)


def _refuse_offsets(key: DataType, offsets: list[Literal]) -> str | None:
    """RANGE by a distance from the sort key's value."""
    if key.kind == "date" and all(o.dtype.is_integral for o in offsets):
        most = max(abs(int(o.value or 0)) for o in offsets)
        return None if most <= _MOST_DAYS else f"a RANGE of {most} days is not proven"
    if key.is_numeric and all(o.dtype == key for o in offsets):
        return None
    if key.kind in ("timestamp", "timestamp_ntz") and all(o.dtype.is_day_time for o in offsets):
        return None  # a number of microseconds; `lower_windows` looks at the time zone
    if key.kind in ("date", "timestamp_ntz") and all(o.dtype.is_year_month for o in offsets):
        return None
    return f"a RANGE of {offsets[0].dtype} around a {key} is not proven"


def _sign(bound: FrameBound) -> int:
    order = ("unbounded_preceding", "preceding", "current", "following", "unbounded_following")
    return order.index(bound.kind)
