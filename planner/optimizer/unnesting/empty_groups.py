"""Give aggregates their value over no rows: the remedy for the "COUNT bug".

An outer join fills the columns of an aggregate with NULL where a group is missing, but `count` over
no rows is 0.
"""

from __future__ import annotations

from stagecoach.planner.aggregates import AGGREGATES
from stagecoach.planner.errors import UnsupportedSqlError
from stagecoach.planner.functions import REGISTRY
from stagecoach.planner.plan.expressions import (
    AggregateCall,
    Call,
    Column,
    Expression,
    Literal,
    call,
)

_ZERO = frozenset(("approx_count_distinct", "regr_count"))


def empty_value(node: AggregateCall) -> Expression | None:
    """The value over no rows; None for NULL.

    Raises:
        UnsupportedSqlError: For an aggregate whose value over no rows cannot be written.
    """
    empty = AGGREGATES[node.function].empty
    if empty == "0" or node.function in _ZERO:
        return Literal(node.dtype, 0)
    if empty == "[]" and "array" in REGISTRY:
        return Call(node.dtype, "array", ())
    if empty is not None:
        raise UnsupportedSqlError(
            f"a correlated subquery with {node.function}, which is not NULL over no rows"
        )
    return None


def restored(column: Column, node: AggregateCall) -> Expression:
    """The aggregate's value where the outer join may have put NULL for "no rows".

    None of the aggregates with an empty value ever gives NULL, so NULL means "no rows".
    """
    empty = empty_value(node)
    return column.ref if empty is None else call("coalesce", column.dtype, column.ref, empty)
