"""Aggregates of every SQL: counts, sums, averages, extremes, booleans."""

from __future__ import annotations

from collections.abc import Callable

from planner.aggregates.function import AggregateFunction, Args, State
from planner.errors import AnalysisError, UnsupportedSqlError
from planner.expressions import (
    AggregateCall,
    Column,
    Expression,
    call,
    cast,
)
from planner.types import BIGINT, BOOLEAN, DOUBLE, NULL, STRING, DataType, array_of, bounded_decimal

_SMALL_INTEGERS = ("tinyint", "smallint", "int")


def _sum_type(args: Args) -> DataType:
    dtype = args[0].dtype
    if dtype.is_decimal:
        return bounded_decimal(dtype.precision + 10, dtype.scale)
    if dtype.is_integral:
        return BIGINT
    if dtype.is_floating or dtype == NULL:
        return DOUBLE
    if dtype == STRING:
        raise UnsupportedSqlError("a string is implicitly read as a number")
    raise AnalysisError(f"sum of {dtype}")


def _avg_type(args: Args) -> DataType:
    dtype = args[0].dtype
    if dtype.is_decimal:
        return bounded_decimal(dtype.precision + 4, dtype.scale + 4)
    _sum_type(args)
    return DOUBLE


def _avg_states(node: AggregateCall) -> tuple[State, ...]:
    (arg,) = node.args
    # Distinct doubles are not proven; sums of integers of up to 32 bits are as exact either way.
    exact = arg.dtype.is_decimal or (node.distinct and arg.dtype.kind in _SMALL_INTEGERS)
    summed = arg if exact else cast(arg, DOUBLE)
    total = AggregateCall(_sum_type((summed,)), "sum", (summed,), where=node.where)
    count = AggregateCall(BIGINT, "count", (arg,), where=node.where)
    return State(total, "sum"), State(count, "sum")


def _finish_avg(node: AggregateCall, states: tuple[Column, ...]) -> Expression:
    return call("average", node.dtype, states[0].ref, states[1].ref)


def _itself(merge: str) -> Callable[[AggregateCall], tuple[State, ...]]:
    return lambda node: (State(node, merge),)


def _first(args: Args) -> DataType:
    return args[0].dtype


def _fixed(dtype: DataType) -> Callable[[Args], DataType]:
    return lambda _: dtype


def _refuse_float(node: AggregateCall) -> str | None:
    dtype = node.args[0].dtype
    if dtype.is_floating:
        return f"{node.function} of {dtype} may see both zeros"
    return None if dtype.is_atomic else f"{node.function} of {dtype} is not proven"


def _refuse_distinct_float(node: AggregateCall) -> str | None:
    if not node.distinct:
        return None
    wrong = next((a.dtype for a in node.args if a.dtype.is_floating or not a.dtype.is_atomic), None)
    return None if wrong is None else f"DISTINCT {wrong} is not proven"


def _require_boolean(args: Args) -> Args:
    if args[0].dtype not in (BOOLEAN, NULL):
        raise AnalysisError(f"expected a boolean, found {args[0].dtype}")
    return args


def _statistic(name: str, arity: int = 1) -> AggregateFunction:
    return AggregateFunction(
        name, (arity, arity), _fixed(DOUBLE), coerce=lambda a: tuple(cast(x, DOUBLE) for x in a)
    )


AGGREGATES: tuple[AggregateFunction, ...] = (
    AggregateFunction("count", (0, 1 << 20), _fixed(BIGINT), "count", _refuse_distinct_float, _itself("sum"), proof="aggregates"),
    AggregateFunction("sum", (1, 1), _sum_type, "sum", _refuse_distinct_float, _itself("sum"), proof="aggregates"),
    AggregateFunction("avg", (1, 1), _avg_type, None, lambda _: "avg in one step is not proven", _avg_states, _finish_avg, proof="aggregates"),
    AggregateFunction("min", (1, 1), _first, "min", _refuse_float, _itself("min"), proof="aggregates"),
    AggregateFunction("max", (1, 1), _first, "max", _refuse_float, _itself("max"), proof="aggregates"),
    AggregateFunction("bool_and", (1, 1), _fixed(BOOLEAN), "bool_and", states=_itself("bool_and"), coerce=_require_boolean, proof="aggregates"),
    AggregateFunction("bool_or", (1, 1), _fixed(BOOLEAN), "bool_or", states=_itself("bool_or"), coerce=_require_boolean, proof="aggregates"),
    AggregateFunction("first", (1, 1), _first), AggregateFunction("last", (1, 1), _first),
    AggregateFunction("any_value", (1, 1), _first), AggregateFunction("median", (1, 1), _fixed(DOUBLE)),
    AggregateFunction("max_by", (2, 2), _first), AggregateFunction("min_by", (2, 2), _first),
    AggregateFunction("collect_list", (1, 1), lambda a: array_of(a[0].dtype)),
    AggregateFunction("collect_set", (1, 1), lambda a: array_of(a[0].dtype)),
    AggregateFunction("approx_count_distinct", (1, 1), _fixed(BIGINT)),
    _statistic("stddev_samp"), _statistic("stddev_pop"), _statistic("var_samp"), _statistic("var_pop"),
    _statistic("skewness"), _statistic("kurtosis"), _statistic("corr", 2), _statistic("covar_samp", 2), _statistic("covar_pop", 2),
)  # fmt: skip
