"""Refuses to compute a plan a second time where it may give other values then.

Two computations of the same rows may choose others among equals: those of a LIMIT, the first one of
a group, the number of a row in its window.
"""

from __future__ import annotations

from stagecoach.planner.aggregates.orderless import ORDERLESS, SUMS
from stagecoach.planner.errors import UnsupportedSqlError
from stagecoach.planner.plan.expressions import (
    AggregateCall,
    Call,
    Column,
    ColumnRef,
    Expression,
    WindowCall,
    WindowFrame,
)
from stagecoach.planner.plan.logical import Limit, LogicalPlan, Sort
from stagecoach.planner.tree import walk

_VOLATILE = frozenset(
    (
        "rand", "randn", "random", "uuid", "shuffle", "monotonically_increasing_id", "randstr",
        "uniform",
    )
)  # fmt: skip
_ORDERLESS = ORDERLESS | SUMS | {"approx_count_distinct"}
_EXACT = frozenset(("count", "min", "max"))  # of floats
_RANKS = frozenset(("rank", "dense_rank", "percent_rank", "cume_dist"))  # equal for equal rows


def require_repeatable(plan: LogicalPlan, columns: tuple[Column, ...]) -> None:
    """Refuse a plan that may give other values of some columns the second time.

    Raises:
        UnsupportedSqlError: It may.
    """
    floats = any(c.dtype.is_floating for c in columns)
    for node in walk(plan):
        if isinstance(node, Limit) and not _takes_the_same(node):
            raise UnsupportedSqlError(
                "a subquery is correlated with rows that a LIMIT chooses, which may be others when "
                "they are computed again"
            )
        for expr in node.expressions:
            for part in walk(expr):
                if (name := _changing(part, floats=floats)) is not None:
                    raise UnsupportedSqlError(
                        f"a subquery is correlated with rows that depend on {name}(), which may "
                        "give another value when they are computed again"
                    )


def _takes_the_same(limit: Limit) -> bool:
    """Whether rows that a limit may choose among are equal in all columns."""
    if not isinstance(limit.child, Sort):
        return False
    keys = {key.expr.id for key in limit.child.keys if isinstance(key.expr, ColumnRef)}
    return keys >= {column.id for column in limit.columns}


def _changing(expr: Expression, *, floats: bool) -> str | None:
    """The function, if its value may depend on the order of the rows, or on chance."""
    match expr:
        case Call() if expr.function in _VOLATILE:
            return expr.function
        case AggregateCall() if _depends_on_order(expr, floats=floats):
            return expr.function
        case WindowCall() if expr.function not in _RANKS:
            same_for_equals = expr.frame is not None and _has_equals_whole(expr.frame)
            if not same_for_equals or _depends_on_order(expr, floats=floats):
                return expr.function
    return None


def _depends_on_order(call: AggregateCall | WindowCall, *, floats: bool) -> bool:
    if call.dtype.is_floating:
        return floats and call.function not in _EXACT
    return call.function not in _ORDERLESS


def _has_equals_whole(frame: WindowFrame) -> bool:
    """Whether a frame has all rows that are equal in the order, or none of them."""
    ends = {frame.start.kind, frame.end.kind}
    return frame.unit != "rows" or ends == {"unbounded_preceding", "unbounded_following"}
