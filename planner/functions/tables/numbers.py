"""Functions of numbers.

One table of `Function` rows; the rules are in `planner.functions.function`.
"""

from __future__ import annotations

from collections.abc import Callable

from planner.coercion import as_int
from planner.functions import duckdb as duck
from planner.functions import rules as rule
from planner.functions.function import Args, Function, listed
from planner.types import DOUBLE, DataType


def _spark_only(
    name: str, arity: tuple[int, int], coerce: Callable[[Args], Args], result: DataType
) -> Function:
    return Function(name, arity, coerce, rule.fixed(result), listed(f"{name}({{*}})"))


FUNCTIONS: tuple[Function, ...] = (
    Function("round", (1, 2), lambda a: (rule.numeric(a)[0], *(as_int(x) for x in a[1:])), rule.round_type, listed("round({*})"), listed("CAST(round({*}) AS {type})"), duck.refuse_round, "rounding"),
    Function("ceil", (1, 1), rule.numeric, rule.ceil_type, "ceil({0})", "CAST(ceil({0}) AS {type})", duck.only("decimal"), "rounding"),
    Function("floor", (1, 1), rule.numeric, rule.ceil_type, "floor({0})", "CAST(floor({0}) AS {type})", duck.only("decimal"), "rounding"),
    Function("sqrt", (1, 1), rule.doubles, rule.fixed(DOUBLE), "sqrt({0})", None),
    _spark_only("exp", (1, 1), rule.doubles, DOUBLE), _spark_only("ln", (1, 1), rule.doubles, DOUBLE),
    _spark_only("log10", (1, 1), rule.doubles, DOUBLE), _spark_only("log2", (1, 1), rule.doubles, DOUBLE),
    _spark_only("power", (2, 2), rule.doubles, DOUBLE),
    _spark_only("sin", (1, 1), rule.doubles, DOUBLE), _spark_only("cos", (1, 1), rule.doubles, DOUBLE),
)  # fmt: skip
