"""The time windows of GROUP BY: `window`, `session_window` and `window_time`.

A call becomes a reference to a column that the rows below the select list have for it
(`analysis.queries.time_windows` makes that column). Source of the rules: Spark's `TimeWindow`,
`SessionWindow` and `ResolveTimeWindows`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from stagecoach.planner.analysis.scalars.handlers import Names, build_scalar, builds
from stagecoach.planner.analysis.scalars.intervals import DAY_MICROS, shift_time, words_as_interval
from stagecoach.planner.errors import AnalysisError, UnsupportedSqlError, check_count
from stagecoach.planner.functions import make_call
from stagecoach.planner.functions.macros.members import get_field
from stagecoach.planner.functions.tables.times import as_moment
from stagecoach.planner.plan.expressions import Call, Expression, Literal
from stagecoach.planner.types import (
    BIGINT,
    DAY_TIME_INTERVAL,
    INTERVAL_DAY,
    NULL,
    STRING,
    DataType,
    Field,
    interval_of,
    struct_of,
)

if TYPE_CHECKING:
    from sqlglot import exp

WINDOWS = ("window", "session_window")
_MOST_OVERLAPS = 1_000  # copies of a row


@dataclass(frozen=True)
class TimeWindow:
    """What a call of `window` says.

    Args:
        moment: The time of a row, a timestamp.
        length: Length of a window in microseconds.
        slide: From the start of a window to that of the next, in microseconds.
        start: Of a window after 1970-01-01 00:00, in microseconds.
    """

    moment: Expression
    length: int
    slide: int
    start: int

    @property
    def overlaps(self) -> int:
        """How many windows a moment may lie in."""
        return -(-self.length // self.slide)

    def bounds(self, before: int) -> Expression:
        """The window of a row that is `before` slides before its last one: a struct."""
        first = self._bound(-before * self.slide)
        return window_struct(first, self._bound(self.length - before * self.slide))

    def _bound(self, shift: int) -> Expression:
        numbers = (self.slide, self.start, shift)
        return make_call("window_bound", self.moment, *(Literal(BIGINT, n) for n in numbers))


@dataclass(frozen=True)
class SessionWindow:
    """What a call of `session_window` says.

    Args:
        moment: The time of a row, a timestamp.
        end: When its session ends if no other row comes.
    """

    moment: Expression
    end: Expression


def window_struct(start: Expression, end: Expression) -> Expression:
    """The value of a window."""
    return make_call("named_struct", Literal(STRING, "start"), start, Literal(STRING, "end"), end)


def window_type(moment: DataType) -> DataType:
    """The type of a window over such moments."""
    return struct_of((Field("start", moment), Field("end", moment)))


def read_window(node: exp.Anonymous, names: Names) -> TimeWindow | SessionWindow:
    """What a call of `window` or `session_window` says.

    Raises:
        AnalysisError: For lengths that Spark refuses.
        UnsupportedSqlError: For what is not staged.
    """
    name = node.name.lower()
    arity = (2, 4) if name == "window" else (2, 2)
    check_count(f"function '{name}'", arity, len(node.expressions))
    first, *rest = (build_scalar(part, names) for part in node.expressions)
    moment = _moment(first, names)
    if name == "session_window":
        return SessionWindow(moment, shift_time(moment, _gap(rest[0]), 1))
    length, *others = (_micros(part) for part in rest)
    slide = others[0] if others else length
    start = others[1] if len(others) > 1 else 0
    if length <= 0 or slide <= 0:
        raise AnalysisError("the length and the slide of a window must be positive")
    if slide > length:
        raise AnalysisError("the slide of a window must not be longer than the window")
    if abs(start) >= slide:
        raise AnalysisError("the start of a window must be shorter than its slide")
    window = TimeWindow(moment, length, slide, start)
    if window.overlaps > _MOST_OVERLAPS:
        raise UnsupportedSqlError(f"a moment lies in {window.overlaps} windows")
    return window


def _moment(value: Expression, names: Names) -> Expression:
    if value.dtype.kind == "struct":
        return _time_of(value, names)
    if value.dtype == NULL:
        raise UnsupportedSqlError("a window of NULL")
    return as_moment(value)


def _micros(value: Expression) -> int:
    """Microseconds of a constant length."""
    if not isinstance(value, Literal) or value.value is None:
        raise UnsupportedSqlError("the length of a window is not a constant")
    if value.dtype.is_integral:
        return int(value.value)
    if value.dtype != STRING:
        raise UnsupportedSqlError(f"the length of a window is a {value.dtype}")
    length = words_as_interval(str(value.value))
    if length.dtype.is_year_month:
        raise UnsupportedSqlError("the length of a window has months")
    return int(length.value or 0)


def _gap(value: Expression) -> Expression:
    """The gap of a session as a day-time interval; it may depend on the row by CASE."""
    if isinstance(value, Call) and value.function == "case":
        args = list(value.args)
        for slot in [*range(1, len(args), 2), *([len(args) - 1] if len(args) % 2 else [])]:
            args[slot] = _gap(args[slot])
        return make_call("case", *args)
    if isinstance(value, Literal) and value.value is None:
        return Literal(DAY_TIME_INTERVAL, None)
    if not isinstance(value, Literal) or value.dtype != STRING:
        raise UnsupportedSqlError("the gap of a session is not a constant text")
    gap = words_as_interval(str(value.value))
    if not gap.dtype.is_day_time or not isinstance(gap.value, int):
        raise UnsupportedSqlError("the gap of a session has months")
    if abs(gap.value) >= DAY_MICROS and gap.dtype != INTERVAL_DAY:
        # Whole days go by the calendar and 24 hours by the clock; the sum does not tell them apart.
        raise UnsupportedSqlError("the gap of a session is a day or more in hours")
    return replace(gap, dtype=DAY_TIME_INTERVAL)


@builds(*WINDOWS)
def _window(node: exp.Anonymous, names: Names) -> Expression:
    return names.time_window(node.name.lower())


@builds("window_time")
def _window_time(node: exp.Anonymous, names: Names) -> Expression:
    check_count("function 'window_time'", (1, 1), len(node.expressions))
    return _time_of(build_scalar(node.expressions[0], names), names)


def _time_of(window: Expression, names: Names) -> Expression:
    """The last microsecond of a window."""
    if not names.is_time_window(window):
        raise UnsupportedSqlError("window_time of a column that is not known to be a time window")
    return shift_time(get_field(window, "end"), Literal(interval_of("second", "second"), -1), 1)
