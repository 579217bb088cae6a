"""Logical windows → physical ones: averages become sums and counts.

In: `Window` operators. Out: `WindowExec` operators, with a projection on top where a result is
computed from several calls.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from planner.aggregates import AGGREGATES
from planner.errors import InternalPlanError, UnsupportedSqlError
from planner.expressions import (
    AggregateCall,
    Column,
    ColumnRef,
    Expression,
    Literal,
    WindowCall,
    substitute,
)
from planner.logical import LogicalPlan, NamedExpression, Window
from planner.physical import PhysicalPlan, ProjectionExec, WindowExec

if TYPE_CHECKING:
    from planner.lower import Lowering

_MICROS_OF_A_DAY = 86_400_000_000
# Zones without changes of the clock, where a day is always 24 hours.
_EVEN_ZONES = frozenset(("UTC", "Etc/UTC", "GMT", "Etc/GMT", "Z"))


def lower_windows(plan: Window, lowering: Lowering) -> PhysicalPlan:
    """The physical form of a window and of the windows right below it."""
    windows: list[Window] = []
    below: LogicalPlan = plan
    while isinstance(below, Window):
        windows.append(below)
        below = below.child
    current = lowering.lower(below)
    keys: dict[Expression, Expression] = {}
    finished: dict[int, Expression] = {}
    waiting = [[(c, call) for c, call in window.calls] for window in reversed(windows)]
    for position, calls in enumerate(waiting):
        replaced = [(c, substitute(call, finished)) for c, call in calls]
        later = [call for calls in waiting[position + 1 :] for _, call in calls]
        needed = [*(call for _, call in replaced), *later]
        current = _with_keys(current, needed, keys, lowering)
        parts = _lower_calls([(c, _keyed(call, keys)) for c, call in replaced], lowering, finished)
        new = WindowExec(current, tuple((column, call) for call, column in parts.items()))
        current = lowering.note_size(new, current)
    if not finished and not keys:
        return current
    return ProjectionExec(current, tuple((c, finished.get(c.id, c.ref)) for c in plan.columns))


def _with_keys(
    child: PhysicalPlan,
    calls: list[Expression],
    known: dict[Expression, Expression],
    lowering: Lowering,
) -> PhysicalPlan:
    """The child with a column for each computed partition or sort key that it can compute.

    Rows are hashed by columns, and DuckDB orders windows by nothing that may raise an error. Keys
    of windows further up are computed along, so that windows stay stacked without anything between.
    """
    ids = frozenset(c.id for c in child.columns)
    items: list[NamedExpression] = []
    for call in calls:
        if not isinstance(call, WindowCall):
            continue
        for key in (*call.partition, *(k.expr for k in call.order)):
            if (
                not isinstance(key, ColumnRef | Literal)
                and key not in known
                and key.column_ids <= ids
            ):
                column = lowering.context.column("key", key.dtype)
                known[key] = column.ref
                items.append((column, key))
    if not items:
        return child
    projected = ProjectionExec(child, (*((c, c.ref) for c in child.columns), *items))
    return lowering.note_size(projected, child)


def _keyed(call: Expression, keys: dict[Expression, Expression]) -> WindowCall:
    if not isinstance(call, WindowCall):
        raise InternalPlanError("a window call became something else")
    partition = tuple(keys.get(k, k) for k in call.partition)
    order = tuple(replace(k, expr=keys.get(k.expr, k.expr)) for k in call.order)
    return replace(call, partition=partition, order=order)


def _lower_calls(
    calls: list[tuple[Column, WindowCall]], lowering: Lowering, finished: dict[int, Expression]
) -> dict[WindowCall, Column]:
    """The calls of one operator; adds to `finished` what is computed from several of them."""
    parts: dict[WindowCall, Column] = {}
    ends: dict[int, Expression] = {}
    for column, call in calls:
        _check_days(call, lowering.context.options.time_zone)
        if call.function != "avg":
            if call in parts:
                ends[column.id] = parts[call].ref
            parts.setdefault(call, column)
            continue
        function = AGGREGATES[call.function]
        node = AggregateCall(call.dtype, call.function, call.args, where=call.where)
        states = function.states(node) if function.states is not None else ()
        columns = []
        for state in states:
            part = _over(state.partial, call)
            if part not in parts:
                parts[part] = lowering.context.column(part.function, part.dtype)
            columns.append(parts[part])
        ends[column.id] = function.finish(node, tuple(columns))
    finished |= ends
    return parts


def _over(node: AggregateCall, call: WindowCall) -> WindowCall:
    """An aggregate over the window of another call."""
    return WindowCall(
        node.dtype, node.function, node.args, call.partition, call.order, call.frame, node.where
    )


def _check_days(call: WindowCall, time_zone: str) -> None:
    """Refuse frames by days of a time zone in which some days are longer than others."""
    frame = call.frame
    if frame is None or not call.order or call.order[0].expr.dtype.kind != "timestamp":
        return
    for bound in (frame.start, frame.end):
        if bound.offset is None or not bound.offset.dtype.is_day_time:
            continue
        if int(bound.offset.value or 0) >= _MICROS_OF_A_DAY and time_zone not in _EVEN_ZONES:
            raise UnsupportedSqlError(f"a RANGE of days in the time zone {time_zone}")
