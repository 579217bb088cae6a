"""Rule: decimal products that fit 64 bits are computed in 64 bits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal

from stagecoach.planner.estimates import ColumnEstimate
from stagecoach.planner.optimizer.context import RuleContext
from stagecoach.planner.plan.expressions import (
    AggregateCall,
    Call,
    Cast,
    ColumnRef,
    Expression,
    Literal,
    call,
)
from stagecoach.planner.plan.logical import Aggregate, LogicalPlan, Project
from stagecoach.planner.plan.rewriting import map_expressions
from stagecoach.planner.tree import transform_up
from stagecoach.planner.types import decimal

_LIMIT = 10**18
_MARGIN = 1.01  # statistics of decimals are kept as doubles
Columns = Mapping[int, ColumnEstimate]


def narrow_decimals(plan: LogicalPlan, context: RuleContext) -> LogicalPlan:
    """Multiply in 64 bits where the columns' footer bounds say that the product fits.

    Before:  sum(price * (1 - discount))                     128-bit product, decimal(32,4)
    After:   sum(multiply_narrow(price, 1 - discount))       64-bit product, decimal(18,4)
    Values and the type of the result stay. Bounds that are out of date cannot make it wrong: the
    product is checked, an overflow raises, and the stage runs on Spark.
    Never:   where the result has fewer digits after the point than the exact product.
    """

    def visit(node: LogicalPlan) -> LogicalPlan:
        if not isinstance(node, Aggregate | Project):
            return node
        columns = context.estimator.estimate(node.child).columns
        return map_expressions(
            node, lambda expr: transform_up(expr, lambda e: _sum(_narrow(e, columns)))
        )

    return transform_up(plan, visit)


def _narrow(expr: Expression, columns: Columns) -> Expression:
    if not isinstance(expr, Call) or expr.function != "multiply" or not expr.dtype.is_decimal:
        return expr
    left, right = (_unwidened(arg) for arg in expr.args)
    scale = left.dtype.scale + right.dtype.scale
    widths = (left.dtype.precision, right.dtype.precision)
    if expr.dtype.scale != scale or scale > 18 or max(widths) > 18 or sum(widths) <= 18:
        return expr
    bounds = (_bound(left, columns), _bound(right, columns))
    if bounds[0] is None or bounds[1] is None or bounds[0] * bounds[1] * _MARGIN >= _LIMIT:
        return expr
    return Cast(expr.dtype, call("multiply_narrow", decimal(18, scale), left, right))


def _sum(expr: Expression) -> Expression:
    """A sum needs no operand wider than its values."""
    if isinstance(expr, AggregateCall) and expr.function == "sum" and not expr.distinct:
        return replace(expr, args=(_unwidened(expr.args[0]),))
    return expr


def _unwidened(expr: Expression) -> Expression:
    if isinstance(expr, Cast) and isinstance(expr.arg, Call):
        inner = expr.arg
        if inner.function == "multiply_narrow" and inner.dtype.scale == expr.dtype.scale:
            return inner
    return expr


def _bound(expr: Expression, columns: Columns) -> float | None:
    """The largest magnitude of the unscaled value, or None where it is not known."""
    unit = 10.0**expr.dtype.scale
    match expr:
        case Literal():
            return None if expr.value is None else abs(float(Decimal(str(expr.value)))) * unit
        case ColumnRef():
            known = columns.get(expr.id)
            if known is None or known.low is None or known.high is None:
                return None
            return max(abs(known.low), abs(known.high)) * unit * _MARGIN
        case Cast() if expr.arg.dtype.is_decimal or expr.arg.dtype.is_integral:
            inner = _bound(expr.arg, columns)
            return (
                None if inner is None else inner * 10.0 ** (expr.dtype.scale - expr.arg.dtype.scale)
            )
        case Call() if expr.function in ("add", "subtract", "multiply_narrow", "negate"):
            return _call_bound(expr, columns)
    return None


def _call_bound(expr: Call, columns: Columns) -> float | None:
    bounds = [_bound(arg, columns) for arg in expr.args]
    known = [b for b in bounds if b is not None]
    if len(known) < len(bounds):
        return None
    if expr.function == "multiply_narrow":
        return known[0] * known[1]
    shifts = (10.0 ** (expr.dtype.scale - arg.dtype.scale) for arg in expr.args)
    return sum(bound * shift for bound, shift in zip(known, shifts, strict=True))
