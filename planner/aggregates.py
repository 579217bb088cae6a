"""The registry of aggregate functions, and how each splits into a partial and a final one.

In: a canonical name and typed arguments. Out: the result type, both engines' spelling, and for
aggregates that can be computed in two steps their states. The rules of `functions` hold: no DuckDB
spelling without the test that proves it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from planner.errors import AnalysisError, UnsupportedSqlError, wrong_count
from planner.expressions import (
    AggregateCall,
    Column,
    Expression,
    call,
    cast,
)
from planner.types import BIGINT, BOOLEAN, DOUBLE, NULL, STRING, DataType, array_of, bounded_decimal

Args = tuple[Expression, ...]
_SMALL_INTEGERS = ("tinyint", "smallint", "int")


@dataclass(frozen=True)
class State:
    """One column of a partial aggregate.

    Args:
        partial: What a task computes over its rows.
        merge: Function that combines the states of all tasks, of the same type.
    """

    partial: AggregateCall
    merge: str


@dataclass(frozen=True)
class AggregateFunction:
    """One row of the registry.

    Args:
        name: Canonical name, which Spark understands too.
        arity: Fewest and most arguments.
        result: Result type; raises `AnalysisError` for arguments of a wrong type.
        duckdb: DuckDB's name of the function, or None where it is not proven; the result is pinned
            to the result type (DuckDB sums integers in 128 bits).
        refuse: Why these arguments must not run on DuckDB, or None.
        states: The partial states of a call; None for an aggregate that needs all rows at once.
        finish: The result from the merged states.
        coerce: Implicit casts of the arguments.
        proof: Name of the differential test.
    """

    name: str
    arity: tuple[int, int]
    result: Callable[[Args], DataType]
    duckdb: str | None = None
    refuse: Callable[[AggregateCall], str | None] = lambda _: None
    states: Callable[[AggregateCall], tuple[State, ...]] | None = None
    finish: Callable[[AggregateCall, tuple[Column, ...]], Expression] = lambda _, s: s[0].ref
    coerce: Callable[[Args], Args] = lambda args: args
    proof: str = ""


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


_TABLE = (
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

AGGREGATES: dict[str, AggregateFunction] = {function.name: function for function in _TABLE}

# Spark's other names of the same aggregate; `count_if` is a count with a filter.
AGGREGATE_ALIASES: dict[str, str] = {
    "any": "bool_or",
    "some": "bool_or",
    "every": "bool_and",
    "mean": "avg",
    "std": "stddev_samp",
    "stddev": "stddev_samp",
    "variance": "var_samp",
    "first_value": "first",
    "last_value": "last",
    "array_agg": "collect_list",
}


def make_aggregate(
    name: str, args: Args, *, distinct: bool = False, where: Expression | None = None
) -> AggregateCall:
    """An aggregate call with its result type.

    Raises:
        AnalysisError: For a wrong number or type of arguments.
        UnsupportedSqlError: For an aggregate that is not in the registry.
    """
    function = AGGREGATES.get(name)
    if function is None:
        raise UnsupportedSqlError(f"aggregate '{name}' is not known to the planner")
    fewest, most = function.arity
    if not fewest <= len(args) <= most:
        raise AnalysisError(f"aggregate '{name}' {wrong_count(function.arity, len(args))}")
    coerced = function.coerce(args)
    if name in ("min", "max", "bool_and", "bool_or"):
        distinct = False  # equal rows change nothing
    return AggregateCall(function.result(coerced), name, coerced, distinct, where)


def splits(node: AggregateCall) -> bool:
    """Whether the aggregate can be computed per task first and merged afterwards."""
    return AGGREGATES[node.function].states is not None and not node.distinct
