"""Build calls of the project's own functions, which the catalog declares.

Spark hands a Python function whatever it is called with. Here a declaration has types, so a call
casts its arguments as Spark implicitly casts those of its own functions.
"""

from __future__ import annotations

from sqlglot import exp

from stagecoach.planner.analysis.scalars.handlers import Names, build_scalar
from stagecoach.planner.errors import AnalysisError, FunctionCallError, UnsupportedSqlError
from stagecoach.planner.plan.coercion import (
    as_binary,
    as_boolean,
    as_date,
    as_number,
    as_string,
    cast_literal,
)
from stagecoach.planner.plan.expressions import (
    AggregateCall,
    Expression,
    ProjectCall,
    WindowCall,
    contains,
)
from stagecoach.planner.project_function import ProjectFunction
from stagecoach.planner.syntax.parse import position
from stagecoach.planner.types import NULL, STRING, DataType

_BY_KIND = {"string": as_string, "binary": as_binary, "boolean": as_boolean, "date": as_date}


def project_call(function: ProjectFunction, node: exp.Anonymous, names: Names) -> Expression:
    """A call of a function of the project.

    Raises:
        FunctionCallError: It has too many or too few arguments, or one of another type.
        UnsupportedSqlError: For DISTINCT and the like.
    """
    operands = node.expressions
    if any(isinstance(operand, exp.Star) for operand in operands):
        raise UnsupportedSqlError(f"{function.name}(*)")
    if any(isinstance(operand, exp.Kwarg) for operand in operands):
        raise FunctionCallError(
            f"function '{function.name}' of the catalog takes its arguments by position: "
            f"{function.signature}"
        )
    args = tuple(build_scalar(operand, names) for operand in operands)
    if len(args) != len(function.arguments):
        count = len(function.arguments)
        raise FunctionCallError(
            f"function '{function.name}' of the catalog takes {count} "
            f"argument{'' if count == 1 else 's'}, not {len(args)}: {function.signature}",
            condition="WRONG_NUM_ARGS.WITHOUT_SUGGESTION",
        )
    coerced = []
    for number, (operand, arg, dtype) in enumerate(
        zip(operands, args, function.arguments, strict=True), 1
    ):
        try:
            coerced.append(_as_declared(arg, dtype))
        except AnalysisError as error:
            line, column = position(operand)
            raise FunctionCallError(
                f"argument {number} of function '{function.name}' must be {dtype}, "
                f"found {arg.dtype}; write a CAST",
                condition="DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE",
                line=line,
                column=column,
            ) from error
    return ProjectCall(function.returns, function, tuple(coerced))


def refuse_in_lambda(body: Expression) -> None:
    """Refuse what cannot be computed for each element of an array.

    Raises:
        UnsupportedSqlError: For an aggregate, a window function, and a function of the project,
            which Spark refuses as well.
    """
    if contains(body, AggregateCall) or contains(body, WindowCall):
        raise UnsupportedSqlError("an aggregate in a lambda")
    if contains(body, ProjectCall):
        raise UnsupportedSqlError("a function of the project in a lambda")


def _as_declared(arg: Expression, dtype: DataType) -> Expression:
    """The argument in the declared type.

    Raises:
        AnalysisError: Spark does not implicitly cast between the types.
    """
    if arg.dtype == dtype:
        return arg
    if arg.dtype == NULL:
        return cast_literal(arg, dtype)
    if dtype.is_numeric:
        return as_number(arg, dtype)
    if (cast := _BY_KIND.get(dtype.kind)) is not None:
        return cast(arg)
    if dtype.is_datetime and (arg.dtype.is_datetime or arg.dtype == STRING):
        return cast_literal(arg, dtype)
    raise AnalysisError(f"expected {dtype}, found {arg.dtype}")
