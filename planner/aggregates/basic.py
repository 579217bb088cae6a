"""Aggregates of every SQL: counts, sums, averages, extremes, booleans."""

from __future__ import annotations

from collections.abc import Callable

from stagecoach.planner.aggregates.function import AggregateFunction, Args, State
from stagecoach.planner.errors import AnalysisError, UnsupportedSqlError
from stagecoach.planner.functions.nested_rules import has_kind
from stagecoach.planner.functions.spell_collections import order_key
from stagecoach.planner.plan.expressions import (
    AggregateCall,
    Column,
    Expression,
    Literal,
    call,
    cast,
    conjoin,
)
from stagecoach.planner.types import (
    BIGINT,
    BOOLEAN,
    DAY_TIME_INTERVAL,
    DOUBLE,
    INT,
    NULL,
    STRING,
    TIMESTAMP,
    YEAR_MONTH_INTERVAL,
    DataType,
    bounded_decimal,
)

# Floats have zeros of both signs, of which Spark keeps any.
_UNPROVEN_MEMBERS = ("float", "double", "map", "void")
_SMALL_INTEGERS = ("tinyint", "smallint", "int")


def _summed(args: Args) -> Args:
    """Spark adds timestamps up as seconds since 1970."""
    return (cast(args[0], DOUBLE),) if args[0].dtype == TIMESTAMP else args


def _sum_type(args: Args) -> DataType:
    dtype = args[0].dtype
    if dtype.is_decimal:
        return bounded_decimal(dtype.precision + 10, dtype.scale)
    if dtype.is_integral:
        return BIGINT
    if dtype.is_floating or dtype == NULL:
        return DOUBLE
    if dtype.is_interval:
        return dtype
    if dtype == STRING:
        raise UnsupportedSqlError("a string is implicitly read as a number")
    raise AnalysisError(f"sum of {dtype}")


def _avg_type(args: Args) -> DataType:
    dtype = args[0].dtype
    if dtype.is_decimal:
        return bounded_decimal(dtype.precision + 4, dtype.scale + 4)
    if dtype.is_interval:
        return DAY_TIME_INTERVAL if dtype.is_day_time else YEAR_MONTH_INTERVAL
    _sum_type(args)
    return DOUBLE


def _avg_states(node: AggregateCall) -> tuple[State, ...]:
    (arg,) = node.args
    # Distinct doubles are not proven; sums of integers of up to 32 bits are as exact either way.
    whole = arg.dtype.is_decimal or arg.dtype.is_interval
    exact = whole or (node.distinct and arg.dtype.kind in _SMALL_INTEGERS)
    summed = arg if exact else cast(arg, DOUBLE)
    total = AggregateCall(_sum_type((summed,)), "sum", (summed,), where=node.where)
    count = AggregateCall(BIGINT, "count", (arg,), where=node.where)
    return State(total, "sum"), State(count, "sum")


def _finish_avg(node: AggregateCall, states: tuple[Column, ...]) -> Expression:
    name = "average_interval" if node.dtype.is_interval else "average"
    return call(name, node.dtype, states[0].ref, states[1].ref)


def _itself(merge: str) -> Callable[[AggregateCall], tuple[State, ...]]:
    return lambda node: (State(node, merge),)


def _row_count(node: AggregateCall) -> Expression:
    """1 for a row that passes the filter and has no NULL among the arguments, else 0."""
    tests: list[Expression] = [call("is_not_null", BOOLEAN, arg) for arg in node.args]
    if node.where is not None:
        tests.insert(0, node.where)
    one, zero = Literal(BIGINT, 1), Literal(BIGINT, 0)
    return call("case", BIGINT, conjoin(tests), one, zero) if tests else one


def _row_value(node: AggregateCall) -> Expression:
    """The value itself, NULL for a row that does not pass the filter."""
    value = cast(node.args[0], node.dtype)
    if node.where is None:
        return value
    return call("case", node.dtype, node.where, value, Literal(node.dtype, None))


def _first(args: Args) -> DataType:
    return args[0].dtype


def _fixed(dtype: DataType) -> Callable[[Args], DataType]:
    return lambda _: dtype


def _refuse_float(node: AggregateCall) -> str | None:
    dtype = node.args[0].dtype
    if dtype.is_floating:
        return f"{node.function} of {dtype} may see both zeros"
    if not dtype.is_atomic and has_kind(dtype, *_UNPROVEN_MEMBERS):
        return f"{node.function} of {dtype} is not proven"
    return None


def _refuse_distinct_float(node: AggregateCall) -> str | None:
    if not node.distinct:
        return None
    wrong = next((a.dtype for a in node.args if a.dtype.is_floating or not a.dtype.is_atomic), None)
    return None if wrong is None else f"DISTINCT {wrong} is not proven"


def _require_boolean(args: Args) -> Args:
    if args[0].dtype not in (BOOLEAN, NULL):
        raise AnalysisError(f"expected a boolean, found {args[0].dtype}")
    return args


def _extreme(node: AggregateCall) -> str | None:
    """Of zeros of both signs, which are equal, the first is kept; several threads know no first."""
    dtype = node.args[0].dtype
    if not dtype.is_atomic:
        if has_kind(dtype, *_UNPROVEN_MEMBERS):
            return None
        return f"arg_{node.function}({{0}}, {order_key('{0}', dtype)}){{filter}}"
    if not dtype.is_floating:
        return None
    plain = f"{node.function}({{0}}){{filter}}"
    both = "bit_or(CASE WHEN {0} = 0 THEN CASE WHEN signbit({0}) THEN 2 ELSE 1 END END){filter} = 3"
    return (
        f"CASE WHEN {plain} = 0 THEN CASE WHEN {both} AND current_setting('threads') > 1 "
        "THEN CAST(error('both zeros') AS {type}) ELSE first({0}) FILTER ({where} AND {0} = 0) END "
        f"ELSE {plain} END"
    )


def _try_sum(node: AggregateCall) -> str | None:
    """NULL for an overflow: DuckDB sums integers in 128 bits.

    Spark's is NULL too where only a sum on the way overflows, which depends on its order of rows.
    """
    if node.distinct and node.dtype.is_floating:
        return None
    if node.dtype.is_decimal:
        # With ten digits to spare, no sum overflows.
        spare = node.dtype.precision - node.args[0].dtype.precision
        return "sum({distinct}{0}){filter}" if spare == 10 else None
    total = "TRY_CAST(sum({distinct}{0}){filter} AS {type})"
    if node.args[0].dtype.kind in _SMALL_INTEGERS:
        return total
    beyond = " OR ".join(
        f"TRY_CAST(sum({{distinct}}{side}({{0}}, 0)){{filter}} AS {{type}}) IS NULL"
        for side in ("greatest", "least")
    )
    return (
        f"CASE WHEN {total} IS NOT NULL AND ({beyond}) "
        f"THEN CAST(error('SPARK_ONLY') AS {{type}}) ELSE {total} END"
    )


def _integers(args: Args) -> Args:
    if not (args[0].dtype.is_integral or args[0].dtype == NULL):
        raise AnalysisError(f"expected a whole number, found {args[0].dtype}")
    return (cast(args[0], INT),) if args[0].dtype == NULL else args


def _bits(name: str) -> AggregateFunction:
    return AggregateFunction(
        name, (1, 1), _first, name, states=_itself(name), coerce=_integers, row=_row_value, proof="aggregates"
    )  # fmt: skip


AGGREGATES: tuple[AggregateFunction, ...] = (
    AggregateFunction("count", (0, 1 << 20), _fixed(BIGINT), "count", states=_itself("sum"), empty="0", row=_row_count, proof="aggregates"),
    AggregateFunction("sum", (1, 1), _sum_type, "sum", _refuse_distinct_float, _itself("sum"), coerce=_summed, row=_row_value, proof="aggregates"),
    AggregateFunction("avg", (1, 1), _avg_type, None, lambda _: "avg in one step is not proven", _avg_states, _finish_avg, coerce=_summed, proof="aggregates"),
    AggregateFunction("min", (1, 1), _first, "min", _refuse_float, _itself("min"), template=_extreme, row=_row_value, proof="aggregates"),
    AggregateFunction("max", (1, 1), _first, "max", _refuse_float, _itself("max"), template=_extreme, row=_row_value, proof="aggregates"),
    AggregateFunction("bool_and", (1, 1), _fixed(BOOLEAN), "bool_and", states=_itself("bool_and"), coerce=_require_boolean, row=_row_value, proof="aggregates"),
    AggregateFunction("bool_or", (1, 1), _fixed(BOOLEAN), "bool_or", states=_itself("bool_or"), coerce=_require_boolean, row=_row_value, proof="aggregates"),
    _bits("bit_and"), _bits("bit_or"), _bits("bit_xor"),
    AggregateFunction("try_sum", (1, 1), _sum_type, template=_try_sum, coerce=_summed, proof="aggregates"),
    AggregateFunction("try_avg", (1, 1), _avg_type, coerce=_summed, reason="an average that may overflow is NULL", proof="aggregates"),
)  # fmt: skip
