"""Order stacked windows, choose their hash keys, and push limits below their exchange."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from stagecoach.planner.distribution.delivered import Distribution, colocated
from stagecoach.planner.functions import make_call
from stagecoach.planner.optimizer.context import RuleContext
from stagecoach.planner.plan.comparisons import constant_last
from stagecoach.planner.plan.expressions import (
    Column,
    ColumnRef,
    Expression,
    Literal,
    WindowCall,
    conjuncts,
)
from stagecoach.planner.plan.physical import FilterExec, PhysicalPlan, ProjectionExec, WindowExec
from stagecoach.planner.types import INT

# Ranks that count only rows before the current one: dropping later rows does not change them.
_RANKS = frozenset(("row_number", "rank", "dense_rank"))
_MOST_RANKS = 1000  # a larger limit hardly drops a row of a task
_MOST_NAMES = 4


def window_chain(plan: WindowExec) -> tuple[PhysicalPlan, list[WindowExec]]:
    """What is below stacked windows, and the windows, the lowest first."""
    found: list[WindowExec] = []
    node: PhysicalPlan = plan
    while isinstance(node, WindowExec):
        found.append(node)
        node = node.child
    return node, found[::-1]


@dataclass(frozen=True)
class NextWindow:
    """A choice among windows.

    Args:
        window: The one to compute next, its keys as columns where they are hashed.
        keys: Columns to hash its rows by first, none for one task; None where they are in place.
    """

    window: WindowExec
    keys: tuple[Column, ...] | None


def next_window(
    waiting: Sequence[WindowExec], child: PhysicalPlan, delivered: Distribution
) -> tuple[int, NextWindow]:
    """The position of the window to compute next, and what it needs.

    First those that need no exchange; then the keys that serve most of the others, because rows
    that are partitioned by some keys are partitioned by more keys too; one task for all rows last.
    """
    columns = frozenset(c.id for c in child.columns)
    ready = [i for i, w in enumerate(waiting) if _reads(w) <= columns]
    for position in ready:
        window = waiting[position]
        if delivered.kind == "single" or colocated(delivered, _key_ids(window)):
            return position, NextWindow(window, None)
    serving = {i: sum(_serves(waiting[i], other) for other in waiting) for i in ready}
    position = max(ready, key=lambda i: (serving[i], -i))
    window = waiting[position]
    names = {c.id: c for c in child.columns}
    if not serving[position]:
        return position, NextWindow(window, ())
    return position, NextWindow(window, tuple(names[i] for i in _key_order(window)))


def _reads(window: WindowExec) -> frozenset[int]:
    return frozenset[int]().union(*(e.column_ids for e in window.expressions))


def _key_order(window: WindowExec) -> tuple[int, ...]:
    return tuple(k.id for k in window.partition if isinstance(k, ColumnRef))


def _key_ids(window: WindowExec) -> frozenset[int]:
    return frozenset(_key_order(window))


def _serves(window: WindowExec, other: WindowExec) -> bool:
    """Whether an exchange by the keys of one window is one by those of the other."""
    if not hashable(window.partition):
        return False
    return frozenset(window.partition) <= frozenset(other.partition)


def hashable(partition: Iterable[Expression]) -> bool:
    """Whether rows can be hashed by these keys, of which there is at least one."""
    dtypes = [key.dtype for key in partition]
    return bool(dtypes) and all(dtype.is_atomic for dtype in dtypes)


def restored(plan: PhysicalPlan, columns: tuple[Column, ...]) -> PhysicalPlan:
    """The plan with these columns in this order."""
    if plan.columns == columns:
        return plan
    return ProjectionExec(plan, tuple((c, c.ref) for c in columns))


# ---------------------------------------------------------------- limits below the exchange


def rank_limit(predicate: Expression, window: WindowExec) -> tuple[WindowCall, int] | None:
    """The rank and its largest value that a filter above the window keeps.

    None where the filter bounds no rank, or where another call of the window may see rows that a
    task would drop.
    """
    calls = [call for _, call in window.calls]
    if any(c.function not in _RANKS or c.order != calls[0].order for c in calls):
        return None
    by_id = {column.id: call for column, call in window.calls}
    for part in conjuncts(predicate):
        found = _bounded(part, by_id.keys())
        if found is not None and found[1] <= _MOST_RANKS:
            return by_id[found[0]], found[1]
    return None


def _bounded(part: Expression, ids: Collection[int]) -> tuple[int, int] | None:
    compared = constant_last(part)
    if compared is None:
        return None
    function, left, right = compared
    if not isinstance(left, ColumnRef) or left.id not in ids or function not in ("lt", "le", "eq"):
        return None
    if not isinstance(right, Literal) or right.dtype != INT or not isinstance(right.value, int):
        return None
    return left.id, right.value - (function == "lt")


def limited(
    child: PhysicalPlan, limit: tuple[WindowCall, int], context: RuleContext
) -> tuple[PhysicalPlan, FilterExec]:
    """Only rows whose rank in their own task is within the limit; also the filter on its own.

    A rank among the rows of one task is at most the rank among all rows, and the rows that decide
    a kept row's rank are kept themselves.
    """
    call, most = limit
    rank = context.column(call.function, call.dtype)
    ranked = WindowExec(child, ((rank, call),))
    kept = FilterExec(ranked, make_call("le", rank.ref, Literal(INT, most)))
    return restored(kept, child.columns), kept


# ---------------------------------------------------------------- reasons


def window_reason(keys: Sequence[Column], window: WindowExec, limit: int | None) -> str:
    """Why rows are moved for a window, for people."""
    shown = ", ".join(k.name for k in keys[:_MOST_NAMES])
    more = len(keys) - _MOST_NAMES
    listed = f"{shown} and {more} more" if more > 0 else shown
    sent = "" if limit is None else f"; each task sends the first {limit:,} of its rows of each"
    if keys:
        return f"window keys {listed}: the input is not partitioned by them{sent}"
    wrong = next((k.dtype for k in window.partition if not k.dtype.is_atomic), None)
    if wrong is not None:
        return f"a window key is of type {wrong}, by which rows are not hashed"
    sent = "" if limit is None else f", of which each task sends its first {limit:,}"
    return f"one window over all rows{sent}"
