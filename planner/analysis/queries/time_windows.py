"""Build the rows that calls of `window` and `session_window` group by.

A tumbling window is a projection and a sliding one makes copies of the row. A session is a window
of the row alone until the aggregate above merges sessions that overlap. Source of the rules:
Spark's `ResolveTimeWindows` and `MergingSessionsIterator`.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from stagecoach.planner.aggregates import make_aggregate
from stagecoach.planner.analysis.queries.context import BuildContext
from stagecoach.planner.analysis.scalars.time_windows import (
    WINDOWS,
    SessionWindow,
    TimeWindow,
    read_window,
    window_struct,
    window_type,
)
from stagecoach.planner.analysis.scope import Scope
from stagecoach.planner.errors import AnalysisError, UnsupportedSqlError
from stagecoach.planner.functions import make_call
from stagecoach.planner.functions.macros.members import get_field
from stagecoach.planner.plan.expressions import (
    AggregateCall,
    Column,
    ColumnRef,
    Expression,
    FrameBound,
    Literal,
    SortKey,
    WindowCall,
    WindowFrame,
    conjoin,
)
from stagecoach.planner.plan.logical import (
    Expand,
    Filter,
    LogicalPlan,
    NamedExpression,
    Project,
    Window,
)
from stagecoach.planner.syntax.places import located
from stagecoach.planner.types import INT
from stagecoach.planner.windows.registry import RUNNING_RANGE

_BEFORE = WindowFrame(
    "rows", FrameBound("unbounded_preceding"), FrameBound("preceding", Literal(INT, 1))
)


def plan_time_windows(
    context: BuildContext, plan: LogicalPlan, node: exp.Select, scope: Scope
) -> LogicalPlan:
    """The rows with the time window that the SELECT asks for; the scope learns its name.

    Raises:
        AnalysisError: For more than one window, as Spark has it.
        UnsupportedSqlError: For windows where only Spark knows what they mean.
    """
    calls = list(_calls(node))
    if not calls:
        return plan
    found: dict[TimeWindow | SessionWindow, str] = {}
    for call in calls:
        with located(call):
            found[read_window(call, scope)] = call.name.lower()
    if len(set(found.values())) > 1:
        raise UnsupportedSqlError("windows and sessions in one SELECT")
    if len(found) > 1:
        with located(calls[-1]):
            raise AnalysisError(
                "a SELECT can have only one time window; use a subquery for another"
            )
    ((window, name),) = found.items()
    hidden = any(c.name.lower() == name for r in scope.relations for c in r.columns)
    if hidden and any(_is_named(part, name) for item in _items(node) for part in _walk(item)):
        raise UnsupportedSqlError(f"a time window beside a column '{name}'")
    column = context.column(name, window_type(window.moment.dtype))
    if isinstance(window, TimeWindow):
        plan = _tumbling_or_sliding(plan, window, column)
    else:
        plan = _sessions(plan, window, column)
    context.time_windows.add(column.id)
    scope.made = {name: column.ref}
    return plan


def _items(node: exp.Select) -> list[exp.Expr]:
    """What a SELECT computes of its rows."""
    others = (node.args.get(part) for part in ("group", "having", "order", "qualify"))
    return [*node.expressions, *(part for part in others if part is not None)]


def _walk(node: exp.Expr) -> Iterator[exp.Expr]:
    """The nodes, without those of the queries in them and the arguments of time windows."""
    return node.walk(prune=lambda n: isinstance(n, exp.Query) or _is_call(n))


def _is_call(node: exp.Expr) -> bool:
    return isinstance(node, exp.Anonymous) and node.name.lower() in WINDOWS


def _is_named(node: exp.Expr, name: str) -> bool:
    return isinstance(node, exp.Column) and node.parts[0].name.lower() == name


def _calls(node: exp.Select) -> Iterator[exp.Anonymous]:
    """The calls in a SELECT; `analysis.scope` refuses those in other places than these two."""
    for item in _items(node):
        for found in _walk(item):
            if not isinstance(found, exp.Anonymous) or not _is_call(found):
                continue
            if isinstance(item, exp.Having | exp.Order | exp.Qualify):
                raise UnsupportedSqlError(f"'{found.name}' in {item.key.upper()}")
            yield found


def _tumbling_or_sliding(plan: LogicalPlan, window: TimeWindow, column: Column) -> LogicalPlan:
    plan = Filter(plan, make_call("is_not_null", window.moment))
    own = tuple((c, c.ref) for c in plan.columns)
    if window.overlaps == 1 and window.length == window.slide:
        return Project(plan, (*own, (column, window.bounds(0))))
    rows = tuple((*(e for _, e in own), window.bounds(number)) for number in range(window.overlaps))
    copies: LogicalPlan = Expand(plan, rows, (*plan.columns, column))
    if window.length % window.slide == 0:
        return copies
    # Of so many windows the first one may end before the moment.
    inside: list[Expression] = [
        make_call("ge", window.moment, get_field(column.ref, "start")),
        make_call("lt", window.moment, get_field(column.ref, "end")),
    ]
    return Filter(copies, conjoin(inside))


def _sessions(plan: LogicalPlan, window: SessionWindow, column: Column) -> LogicalPlan:
    lasts = make_call("gt", window.end, window.moment)
    plan = Filter(plan, conjoin([make_call("is_not_null", window.moment), lasts]))
    own = tuple((c, c.ref) for c in plan.columns)
    return Project(plan, (*own, (column, window_struct(window.moment, window.end))))


def session_of(scope: Scope, keys: tuple[Expression, ...]) -> ColumnRef | None:
    """The session among the keys of GROUP BY, if there is one."""
    session = scope.made.get("session_window")
    return session if isinstance(session, ColumnRef) and session in keys else None


def merge_sessions(
    context: BuildContext,
    plan: LogicalPlan,
    groups: tuple[NamedExpression, ...],
    session: ColumnRef,
) -> tuple[LogicalPlan, tuple[NamedExpression, ...], tuple[Column, AggregateCall], Expression]:
    """Groups in which the sessions of equal other keys that meet are one.

    Args:
        context: Where columns come from.
        plan: The rows, with the session of each row by itself.
        groups: All group columns; that of the session is among them.
        session: The session of a row.

    Returns:
        The rows, the groups over them, an aggregate that they need, and the merged session above.
    """
    moment = session.dtype.fields[0].dtype
    start, end = (context.column(name, moment) for name in ("start", "end"))
    keys = tuple((context.column(c.name, e.dtype), e) for c, e in groups if e != session)
    own = tuple((c, c.ref) for c in plan.columns)
    bounds = ((start, get_field(session, "start")), (end, get_field(session, "end")))
    plan = Project(plan, (*own, *keys, *bounds))
    partition = tuple(c.ref for c, _ in keys)
    order = (SortKey(start.ref), SortKey(end.ref))

    def running_max(value: Column, frame: WindowFrame) -> WindowCall:
        return WindowCall(moment, "max", (value.ref,), partition, order, frame)

    last = context.column("last_end", moment)
    plan = Window(plan, ((last, running_max(end, _BEFORE)),))
    goes_on = make_call("le", start.ref, last.ref)
    begins = make_call("case", goes_on, Literal(moment, None), start.ref)
    begin = context.column("begin", moment)
    plan = Project(plan, (*((c, c.ref) for c in plan.columns), (begin, begins)))
    first = context.column("session_start", moment)
    # By values, because rows of one time stand in no certain order.
    plan = Window(plan, ((first, running_max(begin, RUNNING_RANGE)),))
    made = dict(zip([c for c, e in groups if e != session], (c.ref for c, _ in keys), strict=True))
    start_group = context.column("session_start", moment)
    merged = tuple((start_group, first.ref) if e == session else (c, made[c]) for c, e in groups)
    latest = context.column("session_end", moment)
    call = make_aggregate("max", (end.ref,))
    return plan, merged, (latest, call), window_struct(start_group.ref, latest.ref)
