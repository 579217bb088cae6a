"""The registry of aggregate functions, and typed calls of them."""

from __future__ import annotations

from stagecoach.planner.aggregates import (
    basic,
    bitmaps,
    collecting,
    sketches,
    spark_only,
    statistics,
)
from stagecoach.planner.aggregates.function import AggregateFunction, Args
from stagecoach.planner.errors import UnsupportedSqlError, check_count
from stagecoach.planner.plan.expressions import (
    AggregateCall,
    Expression,
)
from stagecoach.planner.types import MAX_PRECISION, DataType

_TABLES = (basic, bitmaps, collecting, sketches, statistics, spark_only)

AGGREGATES: dict[str, AggregateFunction] = {
    function.name: function for table in _TABLES for function in table.AGGREGATES
}

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
    "string_agg": "listagg",
    "percentile_approx": "approx_percentile",
}

# Equal rows change nothing.
_OF_SETS = frozenset(
    (
        "min", "max", "bool_and", "bool_or", "bit_and", "bit_or", "collect_set",
        "collect_union", "approx_count_distinct",
    )
)  # fmt: skip


def is_aggregate(name: str) -> bool:
    """Whether a function is an aggregate that the planner knows, by any name of it."""
    name = name.lower()
    return AGGREGATE_ALIASES.get(name, name) in AGGREGATES or name == "count_if"


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
    check_count(f"aggregate '{name}'", function.arity, len(args))
    coerced = function.coerce(args)
    distinct = distinct and name not in _OF_SETS
    if name == "try_avg" and _never_overflows(coerced[0].dtype):
        name = "avg"
    if name == "try_sum" and coerced[0].dtype.is_floating:
        name = "sum"
    return AggregateCall(function.result(coerced), name, coerced, distinct, where)


def splits(node: AggregateCall) -> bool:
    """Whether the aggregate can be computed per task first and merged afterwards."""
    return not node.distinct and AGGREGATES[node.function].states(node) is not None


def _never_overflows(dtype: DataType) -> bool:
    """Whether averages are always in range: of decimals, if ten digits are left for their sum."""
    if dtype.is_decimal:
        return dtype.precision <= MAX_PRECISION - 10
    return not dtype.is_interval
