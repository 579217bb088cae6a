"""Build aggregates over an order: `f(…) WITHIN GROUP (ORDER BY …)`."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from stagecoach.planner.aggregates import AGGREGATE_ALIASES, make_aggregate
from stagecoach.planner.analysis.scalars.handlers import Names, build_scalar, handles
from stagecoach.planner.errors import AnalysisError, UnsupportedSqlError
from stagecoach.planner.plan.coercion import is_orderable
from stagecoach.planner.plan.expressions import AggregateCall, Expression, SortKey
from stagecoach.planner.syntax.parse import position

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
        raise UnsupportedSqlError("WITHIN GROUP after something that is not a function")
    name = inner.name.lower()
    name = AGGREGATE_ALIASES.get(name, name)
    if name in _OVER_THE_KEY:
        if len(keys) != 1:
            raise AnalysisError(f"{name} takes one sort key, not {len(keys)}")
        args = (keys[0].expr, *(build_scalar(a, names) for a in inner.expressions))
        return replace(make_aggregate(name, args), order=keys)
    if name != "listagg":
        raise AnalysisError(f"'{name}' does not take WITHIN GROUP")
    call = build_scalar(inner, names)
    if not isinstance(call, AggregateCall):
        raise AnalysisError("WITHIN GROUP is only allowed after an aggregate")
    return replace(call, order=keys)
