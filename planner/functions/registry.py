"""The registry of scalar operators and functions, and typed calls of them."""

from __future__ import annotations

from stagecoach.planner.errors import AnalysisError, UnsupportedSqlError, check_count
from stagecoach.planner.functions.function import Function
from stagecoach.planner.functions.tables import (
    arrays,
    bitwise,
    conversions,
    csv,
    generators,
    internal,
    intervals,
    json,
    maps,
    members,
    numbers,
    operators,
    patterns,
    spark_only,
    strings,
    structs,
    time_windows,
    times,
    vectors,
)
from stagecoach.planner.plan.expressions import Call, Expression, call

_TABLES = (
    operators,
    numbers,
    bitwise,
    strings,
    patterns,
    conversions,
    csv,
    times,
    time_windows,
    intervals,
    members,
    arrays,
    maps,
    structs,
    json,
    generators,
    internal,
    spark_only,
    vectors,
)

REGISTRY: dict[str, Function] = {row.name: row for table in _TABLES for row in table.FUNCTIONS}

# Spark's other names of the same function.
ALIASES: dict[str, str] = {
    "nvl": "coalesce",
    "ifnull": "coalesce",
    "char_length": "length",
    "character_length": "length",
    "len": "length",
    "substr": "substring",
    "ucase": "upper",
    "lcase": "lower",
    "pow": "power",
    "ceiling": "ceil",
    "negative": "negate",
    "char": "chr",
    "signum": "sign",
    "sha": "sha1",
    "printf": "format_string",
    "position": "locate",
    "btrim": "trim",
    "regexp": "rlike",
    "regexp_like": "rlike",
    "getbit": "bit_get",
    "equal_null": "eq_null_safe",
    "cardinality": "size",
    "current_schema": "current_database",
    "session_user": "current_user",
    "user": "current_user",
}


# Of other names that take fewer arguments than the function itself.
ALIAS_ARITIES: dict[str, tuple[int, int]] = {"nvl": (2, 2), "ifnull": (2, 2)}


def make_call(name: str, *args: Expression) -> Call:
    """A call with Spark's implicit casts and result type.

    Raises:
        AnalysisError: For a wrong number or type of arguments.
        UnsupportedSqlError: For a function that is not in the registry.
    """
    function = REGISTRY.get(name)
    if function is None:
        raise UnsupportedSqlError(f"function '{name}' is not known to the planner")
    check_count(f"function '{name}'", function.arity, len(args))
    try:
        coerced = function.coerce(args)
    except AnalysisError as error:
        raise AnalysisError(f"{name}: {error.message}") from error
    return call(name, function.result(coerced), *coerced)
