"""Find the range of values that a query reads of a table's column, for given parameters.

The filters right above the table's scans determine the range. From it follows which partitions of
an upstream table a partitioned query needs, such as "the same day" or "the last seven days". A
filter that is not understood does not narrow the range, so the range is never too small.

Timestamps are wall-clock times of the session's zone; a date is its midnight.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from stagecoach.planner.plan.comparisons import MIRRORED
from stagecoach.planner.plan.expressions import (
    Call,
    Cast,
    ColumnRef,
    Expression,
    Literal,
    LiteralValue,
    Parameter,
)
from stagecoach.planner.plan.physical import PhysicalPlan, ScanExec
from stagecoach.planner.plan.stages import StageGraph
from stagecoach.planner.pruning.scan_filters import conjuncts_above
from stagecoach.planner.text.moments import plus_months, session_moment, wall_clock
from stagecoach.planner.text.time_zones import zone_info
from stagecoach.planner.types import DataType

_DAY = datetime.timedelta(days=1)
_TICK = datetime.timedelta(microseconds=1)
_UNITS = {"year": "year", "yyyy": "year", "yy": "year"} | {
    "month": "month",
    "mon": "month",
    "mm": "month",
    "week": "week",
    "day": "day",
    "dd": "day",
    "hour": "hour",
}


@dataclass(frozen=True)
class TimeRange:
    """A range of moments; what footers tell of a column is `infra.reading.row_bounds.Bounds`.

    Args:
        low: The least moment; None is without bound.
        high: The first moment above; None is without bound.
    """

    low: datetime.datetime | None = None
    high: datetime.datetime | None = None

    def both(self, other: TimeRange) -> TimeRange:
        """The range that lies in both."""
        lows = [b for b in (self.low, other.low) if b is not None]
        highs = [b for b in (self.high, other.high) if b is not None]
        return TimeRange(max(lows, default=None), min(highs, default=None))

    def either(self, other: TimeRange) -> TimeRange:
        """The least range around both."""
        low = None if self.low is None or other.low is None else min(self.low, other.low)
        high = None if self.high is None or other.high is None else max(self.high, other.high)
        return TimeRange(low, high)


def time_range(
    graph: StageGraph, table: str, column: str, values: Mapping[str, datetime.datetime]
) -> TimeRange:
    """The range of `column` that the query reads of `table`.

    Args:
        graph: The query.
        table: A table that it reads; case does not matter.
        column: A date or timestamp column of it; case does not matter.
        values: Moments by parameter name; other parameters are not understood.

    Returns:
        The range around all scans of the table; without bounds where one of them reads the whole
        table, or where Spark runs the text of the query.
    """
    zone = zone_info(graph.time_zone)
    found: TimeRange | None = None
    for fragment, scan in _scans(graph, table):
        left = TimeRange()
        ids = _ids(scan, column)
        for part in conjuncts_above(fragment, scan):
            left = left.both(_range_of(part, ids, values, zone))
        found = left if found is None else found.either(left)
    whole = any(table.lower() in (t.lower() for t in s.sql_tables) for s in graph.stages)
    return TimeRange() if found is None or whole else found


def reads_key_only(graph: StageGraph, table: str, column: str, parameter: str) -> bool:
    """Whether each scan of the table is filtered by `column = :parameter`.

    Args:
        graph: The query.
        table: A table that it reads; case does not matter.
        column: A column of it; case does not matter.
        parameter: Name of a parameter.
    """
    scans = list(_scans(graph, table))
    return bool(scans) and all(
        any(
            _is_key_filter(part, _ids(scan, column), parameter)
            for part in conjuncts_above(fragment, scan)
        )
        for fragment, scan in scans
    )


def _is_key_filter(part: Expression, ids: frozenset[int], parameter: str) -> bool:
    if not isinstance(part, Call) or part.function != "eq":
        return False
    for left, right in (part.args, part.args[::-1]):
        if isinstance(left, ColumnRef) and left.id in ids:
            return isinstance(right, Parameter) and right.name == parameter
    return False


def _scans(graph: StageGraph, table: str) -> Iterator[tuple[PhysicalPlan, ScanExec]]:
    for stage in graph.stages:
        # The operators of other stages may not have been read yet.
        if table.lower() not in (name.lower() for name in stage.tables):
            continue
        for leaf in stage.leaves:
            if isinstance(leaf, ScanExec) and leaf.table.lower() == table.lower():
                yield stage.fragment, leaf


def _ids(scan: ScanExec, column: str) -> frozenset[int]:
    pairs = zip(scan.outputs, scan.source, strict=True)
    return frozenset(made.id for made, name in pairs if name.lower() == column.lower())


def _range_of(
    part: Expression,
    ids: frozenset[int],
    values: Mapping[str, datetime.datetime],
    zone: datetime.tzinfo,
) -> TimeRange:
    """The range that one conjunct leaves of the column; without bounds where it says nothing."""
    if not isinstance(part, Call) or part.function not in MIRRORED or len(part.args) != 2:
        return TimeRange()
    left, right = part.args
    operator = part.function
    if not _reads(left, ids):
        left, right, operator = right, left, MIRRORED[operator]
    if not _reads(left, ids):
        return TimeRange()
    moment = _moment(right, values, zone)
    if moment is None:
        return TimeRange()
    unit = _DAY if left.dtype.kind == "date" else _TICK
    try:
        match operator:
            case "lt":
                return TimeRange(high=moment)
            case "le":
                return TimeRange(high=moment + unit)
            case "gt":
                return TimeRange(low=moment + unit)
            case "ge":
                return TimeRange(low=moment)
        return TimeRange(moment, moment + unit)
    except OverflowError:
        return TimeRange()


def _reads(expr: Expression, ids: frozenset[int]) -> bool:
    """Whether it is the column, or the column as another type of moment."""
    while isinstance(expr, Cast) and _is_moment(expr.dtype) and _is_moment(expr.arg.dtype):
        expr = expr.arg
    return isinstance(expr, ColumnRef) and expr.id in ids and _is_moment(expr.dtype)


def _is_moment(dtype: DataType) -> bool:
    return dtype.kind == "date" or dtype.is_datetime


def _moment(
    expr: Expression, values: Mapping[str, datetime.datetime], zone: datetime.tzinfo
) -> datetime.datetime | None:
    """The moment that an expression over parameters gives; None where that is not known here."""
    if isinstance(expr, Parameter):
        return values.get(expr.name)
    if isinstance(expr, Literal):
        return _written(expr, zone)
    if isinstance(expr, Cast) and _is_moment(expr.dtype):
        if isinstance(expr.arg, Literal) and expr.arg.dtype.kind == "string":
            moment = _parsed(expr.arg.value)
        else:
            moment = _moment(expr.arg, values, zone)
        return _midnight(moment) if moment and expr.dtype.kind == "date" else moment
    if not isinstance(expr, Call) or len(expr.args) != 2:
        return None
    if expr.function in ("trunc", "date_trunc"):
        base, unit = expr.args if expr.function == "trunc" else expr.args[::-1]
        moment = _moment(base, values, zone)
        name = unit.value if isinstance(unit, Literal) else None
        return _truncated(moment, _UNITS.get(str(name).lower())) if moment else None
    moment = _moment(expr.args[0], values, zone)
    amount = expr.args[1].value if isinstance(expr.args[1], Literal) else None
    if moment is None or not isinstance(amount, int) or isinstance(amount, bool):
        return None
    return _moved(moment, expr.function, amount)


def _parsed(text: LiteralValue) -> datetime.datetime | None:
    """A text as a moment of the session's zone, where it names no zone of its own."""
    try:
        return wall_clock(str(text))
    except ValueError:
        return None


def _written(literal: Literal, zone: datetime.tzinfo) -> datetime.datetime | None:
    if not isinstance(literal.value, str) or not _is_moment(literal.dtype):
        return None
    try:
        if literal.dtype.kind == "timestamp":
            return session_moment(literal.value, zone)
        return wall_clock(literal.value)
    except (ValueError, OverflowError):
        return None


def _moved(moment: datetime.datetime, function: str, amount: int) -> datetime.datetime | None:
    try:
        match function:
            case "date_add":
                return moment + amount * _DAY
            case "date_sub":
                return moment - amount * _DAY
            case "time_plus_duration":
                return moment + amount * _TICK
            case "add_months" | "time_plus_months":
                return plus_months(moment, amount)
    except (ValueError, OverflowError):
        return None
    return None


def _truncated(moment: datetime.datetime, unit: str | None) -> datetime.datetime | None:
    match unit:
        case "year":
            return _midnight(moment).replace(month=1, day=1)
        case "month":
            return _midnight(moment).replace(day=1)
        case "week":
            return _midnight(moment) - moment.weekday() * _DAY
        case "day":
            return _midnight(moment)
        case "hour":
            return moment.replace(minute=0, second=0, microsecond=0)
    return None


def _midnight(moment: datetime.datetime) -> datetime.datetime:
    return moment.replace(hour=0, minute=0, second=0, microsecond=0)
