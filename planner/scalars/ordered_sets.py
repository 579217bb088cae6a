"""Aggregates over an order: `f(…) WITHIN GROUP (ORDER BY …)`.

In: WITHIN GROUP nodes. Out: aggregate calls with sort keys.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from planner.aggregates import AGGREGATE_ALIASES, make_aggregate
from planner.coercion import is_orderable
from planner.errors import AnalysisError, UnsupportedSqlError
from planner.expressions import AggregateCall, Expression, SortKey
from planner.parse import position
from planner.scalars.handlers import Names, build_scalar, handles

_OVER_THE_KEY = ("percentile_cont", "percentile_disc", "mode")


def sort_key(item: exp.Expr, names: Names) -> SortKey:
    """An item of ORDER BY that is an expression over `names`."""
    target = item.this if isinstance(item, exp.Ordered) else item
    return directed(item, build_scalar(target, names))


def directed(item: exp.Expr, expr: Expression) -> SortKey:
    """`expr` in the direction that an item of ORDER BY names.

    NULLs come first in ascending order unless it says otherwise.
    """
    ascending = not item.args.get("desc")
    nulls_first = item.args.get("nulls_first")
    if not is_orderable(expr.dtype):
        line, column = position(item)
        raise AnalysisError(f"cannot sort by {expr.dtype}", line=line, column=column)
    return SortKey(expr, ascending, ascending if nulls_first is None else bool(nulls_first))


@handles(exp.WithinGroup)
def _within_group(node: exp.WithinGroup, names: Names) -> Expression:
    keys = tuple(sort_key(item, names) for item in node.expression.expressions)
    inner = node.this
    if not isinstance(inner, exp.Anonymous):
        raise UnsupportedSqlError("WITHIN GROUP behind something that is no function")
    name = inner.name.lower()
    name = AGGREGATE_ALIASES.get(name, name)
    if name in _OVER_THE_KEY:
        if len(keys) != 1:
            raise AnalysisError(f"{name} is over one sort key, not {len(keys)}")
        args = (keys[0].expr, *(build_scalar(a, names) for a in inner.expressions))
        return replace(make_aggregate(name, args), order=keys)
    if name != "listagg":
        raise AnalysisError(f"'{name}' has no WITHIN GROUP")
    call = build_scalar(inner, names)
    if not isinstance(call, AggregateCall):
        raise AnalysisError("WITHIN GROUP stands behind an aggregate only")
    return replace(call, order=keys)
