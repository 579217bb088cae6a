"""ORDER BY, LIMIT and OFFSET.

In: a query node and what it selects. Out: sort keys, plans with an order or a bound.
"""

from __future__ import annotations

from sqlglot import exp

from planner.errors import AnalysisError, UnsupportedSqlError
from planner.expressions import (
    AggregateCall,
    ColumnRef,
    Expression,
    SortKey,
    contains,
)
from planner.logical import (
    Limit,
    LogicalPlan,
    Sort,
)
from planner.scalars import build_scalar
from planner.scope import Scope


def sort_keys(node: exp.Query, scope: Scope, outputs: list[Expression]) -> list[SortKey]:
    """The items of ORDER BY.

    Args:
        node: The query.
        scope: What the items see.
        outputs: The select items, for positions.
    """
    order = node.args.get("order")
    keys: list[SortKey] = []
    for item in order.expressions if order is not None else []:
        target = item.this if isinstance(item, exp.Ordered) else item
        if isinstance(target, exp.Literal) and not target.is_string:
            expr = ordinal(target, outputs, "ORDER BY")
        elif isinstance(target, exp.Column) and target.name.lower() == "all" and not target.table:
            raise UnsupportedSqlError("ORDER BY ALL is not staged yet")
        else:
            expr = build_scalar(target, scope)
        ascending = not item.args.get("desc")
        nulls_first = item.args.get("nulls_first")
        keys.append(
            SortKey(expr, ascending, ascending if nulls_first is None else bool(nulls_first))
        )
    return keys


def order_and_limit(node: exp.Query, plan: LogicalPlan, scope: Scope) -> LogicalPlan:
    """The plan of a set operation or nested query in the order that it asks for."""
    keys = sort_keys(node, scope, [c.ref for c in plan.columns])
    if any(not isinstance(k.expr, ColumnRef) for k in keys):
        raise UnsupportedSqlError("ORDER BY of a set operation by an expression")
    if keys:
        plan = Sort(plan, tuple(keys))
    return limited(node, plan)


def limited(node: exp.Query, plan: LogicalPlan) -> LogicalPlan:
    """The plan cut by LIMIT and OFFSET."""
    limit, offset = node.args.get("limit"), node.args.get("offset")
    if limit is None and offset is None:
        return plan
    if limit is not None and not isinstance(limit, exp.Limit):
        raise UnsupportedSqlError(f"{limit.key.upper()} is not staged")
    count = None if limit is None else _whole(limit.expression, "LIMIT")
    skip = 0 if offset is None else _whole(offset.expression, "OFFSET")
    return Limit(plan, count, skip or 0)


def ordinal(node: exp.Literal, outputs: list[Expression], clause: str) -> Expression:
    """The select item at a position.

    Raises:
        AnalysisError: If there is none, or GROUP BY names an aggregate.
    """
    position_ = int(node.this) if str(node.this).isdigit() else 0
    if not 1 <= position_ <= len(outputs):
        raise AnalysisError(f"{clause} position {node.this} is not in the select list")
    expr = outputs[position_ - 1]
    if clause == "GROUP BY" and contains(expr, AggregateCall):
        raise AnalysisError(f"GROUP BY position {position_} is an aggregate")
    return expr


def _whole(node: exp.Expr, clause: str) -> int | None:
    if isinstance(node, exp.Literal) and not node.is_string and str(node.this).isdigit():
        return int(node.this)
    if isinstance(node, exp.Column) and node.name.lower() == "all":
        return None
    raise UnsupportedSqlError(f"{clause} of an expression")
