"""One row of the registry of scalar functions.

An entry without a DuckDB spelling, or whose condition refuses the arguments, runs on Spark. A
DuckDB spelling may stand in a table only with the differential test that proves it (`proof`).
Templates are `str.format` patterns over the rendered arguments; `{*}` is all of them, `{type}` the
result type. For an argument that is a lambda, `{b1}` is the body of argument 1 and `{p1_0}` its
first parameter.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from stagecoach.planner.plan.expressions import Call, Expression
from stagecoach.planner.types import DataType

Args = tuple[Expression, ...]


@dataclass(frozen=True)
class Function:
    """One row of the registry.

    Args:
        name: Canonical name, which plans hold.
        arity: Fewest and most arguments.
        coerce: Casts the arguments as Spark does; raises `AnalysisError` for wrong types.
        result: Result type from the coerced arguments.
        spark: Template for Spark SQL, or a function that gives the template.
        duckdb: The same for DuckDB; None where none is proven.
        refuse: Why these arguments must not run on DuckDB, or None.
        proof: Name of the differential test of the DuckDB spelling.
        lambda_types: For functions that take lambdas: the types of the parameters of the lambda at
            a position, from the arguments that are not lambdas (at their positions).
        reason: Why no call runs on DuckDB.
    """

    name: str
    arity: tuple[int, int]
    coerce: Callable[[Args], Args]
    result: Callable[[Args], DataType]
    spark: str | Callable[[Call], str]
    duckdb: str | Callable[[Call], str] | None = None
    refuse: Callable[[Call], str | None] = lambda _: None
    proof: str = ""
    lambda_types: Callable[[Mapping[int, Expression], int], tuple[DataType, ...]] | None = None
    reason: str = ""


def listed(template: str) -> Callable[[Call], str]:
    """A spelling in which `{*}` stands for all arguments."""
    return lambda node: template.replace(
        "{*}", ", ".join(f"{{{i}}}" for i in range(len(node.args)))
    )
