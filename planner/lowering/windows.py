"""Lower windows: averages become sums and counts.

A projection on top computes results that need several calls.
"""

from __future__ import annotations

from dataclasses import replace

from stagecoach.planner.aggregates import AGGREGATES
from stagecoach.planner.errors import InternalPlanError, UnsupportedSqlError
from stagecoach.planner.lowering.sizes import PlanSizes
from stagecoach.planner.optimizer.context import RuleContext
from stagecoach.planner.plan.expressions import (
    AggregateCall,
    Column,
    ColumnRef,
    Expression,
    Literal,
    WindowCall,
    substitute,
)
from stagecoach.planner.plan.logical import NamedExpression, Window
from stagecoach.planner.plan.physical import PhysicalPlan, ProjectionExec, WindowExec
from stagecoach.planner.text.time_zones import UTC_NAMES

_MICROS_OF_A_DAY = 86_400_000_000


def stacked_windows(plan: Window) -> list[Window]:
    """A window and those right below it, from the top down."""
    windows = [plan]
    while isinstance(windows[-1].child, Window):
        windows.append(windows[-1].child)
    return windows


def lower_windows(
    windows: list[Window], current: PhysicalPlan, context: RuleContext, sizes: PlanSizes
) -> PhysicalPlan:
    """The physical form of stacked windows.

    Args:
        windows: From the top down.
        current: The physical form of the rows below them.
        context: Options and fresh columns.
        sizes: Where the sizes of new operators are noted.
    """
    keys: dict[Expression, Expression] = {}
    finished: dict[int, Expression] = {}
    waiting = [[(c, call) for c, call in window.calls] for window in reversed(windows)]
    for position, calls in enumerate(waiting):
        replaced = [(c, substitute(call, finished)) for c, call in calls]
        later = [call for calls in waiting[position + 1 :] for _, call in calls]
        needed = [*(call for _, call in replaced), *later]
        current = _with_keys(current, needed, keys, context, sizes)
        parts = _lower_calls([(c, _keyed(call, keys)) for c, call in replaced], context, finished)
        new = WindowExec(current, tuple((column, call) for call, column in parts.items()))
        current = sizes.note_size(new, current)
    if not finished and not keys:
        return current
    columns = windows[0].columns
    return ProjectionExec(current, tuple((c, finished.get(c.id, c.ref)) for c in columns))


def _with_keys(
    child: PhysicalPlan,
    calls: list[Expression],
    known: dict[Expression, Expression],
    context: RuleContext,
    sizes: PlanSizes,
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
                column = context.column("key", key.dtype)
                known[key] = column.ref
                items.append((column, key))
    if not items:
        return child
    projected = ProjectionExec(child, (*((c, c.ref) for c in child.columns), *items))
    return sizes.note_size(projected, child)


def _keyed(call: Expression, keys: dict[Expression, Expression]) -> WindowCall:
    if not isinstance(call, WindowCall):
        raise InternalPlanError("a window call became something else")
    partition = tuple(keys.get(k, k) for k in call.partition)
    order = tuple(replace(k, expr=keys.get(k.expr, k.expr)) for k in call.order)
    return replace(call, partition=partition, order=order)


def _lower_calls(
    calls: list[tuple[Column, WindowCall]], context: RuleContext, finished: dict[int, Expression]
) -> dict[WindowCall, Column]:
    """The calls of one operator; adds to `finished` what is computed from several of them."""
    parts: dict[WindowCall, Column] = {}
    ends: dict[int, Expression] = {}
    for column, call in calls:
        _check_days(call, context.options.time_zone)
        if call.function != "avg":
            if call in parts:
                ends[column.id] = parts[call].ref
            parts.setdefault(call, column)
            continue
        function = AGGREGATES[call.function]
        node = AggregateCall(call.dtype, call.function, call.args, where=call.where)
        columns = []
        for state in function.states(node) or ():
            part = _over(state.partial, call)
            if part not in parts:
                parts[part] = context.column(part.function, part.dtype)
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
        if int(bound.offset.value or 0) >= _MICROS_OF_A_DAY and time_zone not in UTC_NAMES:
            raise UnsupportedSqlError(f"a RANGE of days in the time zone {time_zone}")
