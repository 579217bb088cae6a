"""Build rows that come from no table: VALUES and the table function `range`."""

from __future__ import annotations

from sqlglot import exp

from stagecoach.planner.analysis.queries.constants import whole_number
from stagecoach.planner.analysis.queries.context import BuildContext, Ctes
from stagecoach.planner.analysis.scalars import build_scalar
from stagecoach.planner.analysis.scope import Scope
from stagecoach.planner.errors import AnalysisError, UnsupportedSqlError, check_count
from stagecoach.planner.plan.coercion import cast_literal
from stagecoach.planner.plan.expressions import AggregateCall, Expression, WindowCall, contains
from stagecoach.planner.plan.logical import LogicalPlan, Range, Values
from stagecoach.planner.plan.subqueries import SubqueryExpression
from stagecoach.planner.syntax.places import located
from stagecoach.planner.types import BIGINT, NULL, DataType, common_type

_BIGINTS = range(-(2**63), 2**63)


def plan_values(context: BuildContext, node: exp.Values, ctes: Ctes) -> LogicalPlan:
    """The rows of VALUES, each column in the one type of its items.

    Raises:
        AnalysisError: For rows of different lengths, and columns without a common type.
        UnsupportedSqlError: For items that are not plain expressions.
    """
    scope = context.scope((), None, ctes)
    rows: list[tuple[Expression, ...]] = []
    for row in node.expressions:
        with located(row):
            built = tuple(build_scalar(item, scope) for item in _row_items(row, node))
            if rows and len(built) != len(rows[0]):
                raise AnalysisError(
                    f"row {len(rows) + 1} of VALUES has {len(built)} items, "
                    f"the first one {len(rows[0])}"
                )
            for item in built:
                _require_constant(item)
        rows.append(built)
    with located(node):
        types = tuple(_type(column, i) for i, column in enumerate(zip(*rows, strict=True)))
    outputs = tuple(context.column(f"col{i + 1}", t) for i, t in enumerate(types))
    cast = tuple(tuple(cast_literal(e, t) for e, t in zip(row, types, strict=True)) for row in rows)
    return Values(cast, outputs)


def _bare(item: exp.Expr, node: exp.Values) -> exp.Expr:
    """The item; sqlglot takes the alias of `VALUES 1, 2 AS t(a)` for one of the last item."""
    if isinstance(item, exp.Alias) and item.find_ancestor(exp.Values) is node:
        return item.this
    return item


def _row_items(row: exp.Expr, node: exp.Values) -> list[exp.Expr]:
    """The items of a row; one struct alone is a row to Spark."""
    items = row.expressions if isinstance(row, exp.Tuple) else [row]
    items = [_bare(item, node) for item in items]
    if len(items) > 1:
        return items
    only = items[0].unnest()
    if isinstance(only, exp.Tuple):
        return only.expressions
    if isinstance(only, exp.Anonymous) and only.name.lower() == "struct":
        return [item.this if isinstance(item, exp.Alias) else item for item in only.expressions]
    return items


def _require_constant(item: Expression) -> None:
    if contains(item, SubqueryExpression):
        raise UnsupportedSqlError("a subquery in VALUES")
    if contains(item, AggregateCall) or contains(item, WindowCall):
        raise AnalysisError("aggregate and window functions are not allowed in VALUES")


def _type(column: tuple[Expression, ...], position: int) -> DataType:
    result = NULL
    for item in column:
        common = common_type(result, item.dtype)
        if common is None:
            raise AnalysisError(f"column {position + 1} of VALUES mixes {result} and {item.dtype}")
        result = common
    return result


def plan_range(context: BuildContext, node: exp.Anonymous, ctes: Ctes) -> LogicalPlan:
    """The rows of `range(end)` or `range(start, end[, step[, numPartitions]])`.

    Raises:
        AnalysisError: For a step of 0, NULL, or a wrong number of arguments.
        UnsupportedSqlError: For arguments whose value is not known when the query is planned.
    """
    count = len(node.expressions)
    check_count("table function 'range'", (1, 4), count)
    scope = context.scope((), None, ctes)
    numbers = []
    for argument in node.expressions:
        with located(argument):
            numbers.append(_range_argument(argument, scope))
    start, stop = (0, numbers[0]) if count == 1 else (numbers[0], numbers[1])
    step = numbers[2] if count > 2 else 1
    if step == 0:
        with located(node.expressions[2]):
            raise AnalysisError("the step of 'range' must not be 0")
    return Range((context.column("id", BIGINT),), start, stop, step)


def _range_argument(argument: exp.Expr, scope: Scope) -> int:
    if isinstance(argument, exp.PropertyEQ | exp.Kwarg):
        raise UnsupportedSqlError("named arguments of 'range'")
    number = whole_number(build_scalar(argument, scope), "an argument of 'range'")
    if number is None or number not in _BIGINTS:
        raise UnsupportedSqlError("'range' of an expression whose value is not known yet")
    return number
