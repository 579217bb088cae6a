"""Build member access, structs and lambdas: `s.f`, `a[0]`, `transform(a, x -> x + 1)`.

The parameters of a lambda are columns with negative numbers, counted by nesting depth. So equal
texts give equal expressions, and an expression that replaces a column inside a lambda cannot
capture one of its parameters.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlglot import exp

from stagecoach.planner.analysis.names import column_name
from stagecoach.planner.analysis.scalars.handlers import Names, build_scalar, builds, handles
from stagecoach.planner.analysis.scalars.project_calls import refuse_in_lambda
from stagecoach.planner.errors import AnalysisError, UnknownColumnError, UnsupportedSqlError
from stagecoach.planner.functions import REGISTRY, make_call
from stagecoach.planner.functions.macros.members import get_field, get_item
from stagecoach.planner.plan.expressions import (
    Column,
    Expression,
    Lambda,
    Literal,
)
from stagecoach.planner.plan.logical import LogicalPlan
from stagecoach.planner.types import STRING, DataType

# Functions whose lambda may have the element's index, counted from 0, as its last parameter.
_INDEXED = frozenset({"transform", "filter"})
# Where a function takes a lambda; any other value there is one without parameters.
_LAMBDAS_AT = {
    **dict.fromkeys(("transform", "filter", "exists", "forall", "map_filter"), (1,)),
    **dict.fromkeys(("transform_keys", "transform_values"), (1,)),
    **dict.fromkeys(("zip_with", "map_zip_with"), (2,)),
    "aggregate": (2, 3),
}


class LambdaNames:
    """The names that a lambda's body sees: its parameters, then those around it.

    Args:
        outer: Names around the lambda.
        parameters: Values of the parameters by lower-case name.
        depth: Parameters of this lambda and of those around it.
    """

    def __init__(self, outer: Names, parameters: Mapping[str, Expression], depth: int) -> None:
        self._outer = outer
        self._parameters = parameters
        self.lambda_depth = depth

    def column(self, node: exp.Column) -> Expression:
        """The parameter, or the column around the lambda, or a member of it."""
        value = self._parameter([part.name for part in node.parts])
        return self._outer.column(node) if value is None else value

    def find(self, parts: Sequence[str]) -> Expression | None:
        """As `column`; None if there is none."""
        value = self._parameter(parts)
        return self._outer.find(parts) if value is None else value

    def _parameter(self, parts: Sequence[str]) -> Expression | None:
        first, *members = parts
        value = self._parameters.get(first.lower())
        if value is not None:
            for member in members:
                value = get_field(value, member)
        return value

    def subquery(self, query: exp.Query) -> LogicalPlan:
        """Spark has no subqueries in lambdas."""
        del query
        raise UnsupportedSqlError("a subquery in a lambda")

    def window(self, node: exp.Window) -> Expression:
        """Window functions are not computed per element."""
        del node
        raise UnsupportedSqlError("a window function in a lambda")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._outer, name)


@handles(exp.Identifier)
def _identifier(node: exp.Identifier, names: Names) -> Expression:
    # sqlglot makes identifiers of the columns that are a lambda's parameters.
    return names.column(exp.Column(this=node.copy()))


@handles(exp.Dot)
def _dot(node: exp.Dot, names: Names) -> Expression:
    if not isinstance(node.expression, exp.Identifier):
        raise UnsupportedSqlError(f"'{node.expression.sql()}' behind a point")
    return get_field(build_scalar(node.this, names), node.expression.name)


@handles(exp.Bracket)
def _bracket(node: exp.Bracket, names: Names) -> Expression:
    if len(node.expressions) != 1 or isinstance(node.expressions[0], exp.Slice):
        raise UnsupportedSqlError("[…] with more than one index")
    value = build_scalar(node.this, names)
    try:
        key = build_scalar(node.expressions[0], names)
    except UnknownColumnError as error:
        if value.dtype.kind != "map" or not isinstance(node.expressions[0], exp.Column):
            raise
        raise UnknownColumnError(
            error.message.removeprefix(f"[{error.condition}] "),
            name=error.name,
            condition=error.condition.replace("UNRESOLVED_COLUMN", "UNRESOLVED_MAP_KEY"),
            line=error.line,
            column=error.column,
        ) from error
    return get_item(value, key)


@handles(exp.Lambda)
def _stray_lambda(node: exp.Lambda, names: Names) -> Expression:
    del names
    raise UnsupportedSqlError(f"'{node.sql()}' as argument of a function that takes a lambda")


# ---------------------------------------------------------------- structs


@builds("struct")
def _struct(node: exp.Anonymous, names: Names) -> Expression:
    return _named(node.expressions, names)


@handles(exp.Tuple)
def _tuple(node: exp.Tuple, names: Names) -> Expression:
    return _named(node.expressions, names)


def _named(operands: list[exp.Expr], names: Names) -> Expression:
    args: list[Expression] = []
    for operand in operands:
        for name, value in names.star(operand) if _is_star(operand) else ((None, None),):
            if name is None or value is None:
                name, value = _name(operand), build_scalar(operand, names)
            args += [Literal(STRING, name or f"col{len(args) // 2 + 1}"), value]
    return make_call("named_struct", *args)


def _is_star(node: exp.Expr) -> bool:
    return isinstance(node.this if isinstance(node, exp.Column) else node, exp.Star)


@builds("arrays_zip")
def _arrays_zip(node: exp.Anonymous, names: Names) -> Expression:
    args: list[Expression] = []
    for number, operand in enumerate(node.expressions):
        value = build_scalar(operand, names)
        args += [Literal(STRING, _name(operand) or str(number)), value]
    return make_call("arrays_zip", *args)


def _name(node: exp.Expr) -> str:
    """The name that Spark gives a member by its expression; empty where it has none."""
    node = node.unnest()
    star = node.this if isinstance(node, exp.Column) else node
    if isinstance(star, exp.Star):
        raise UnsupportedSqlError("a struct of *")
    if isinstance(node, exp.Alias | exp.Column | exp.Identifier):
        return str(node.alias_or_name)
    if isinstance(node, exp.Dot):
        return str(node.expression.name)
    if isinstance(node, exp.Bracket):
        index = node.expressions[0]
        return str(index.this) if isinstance(index, exp.Literal) and index.is_string else ""
    return ""


# ---------------------------------------------------------------- lambdas


@builds(*(name for name, function in REGISTRY.items() if function.lambda_types is not None))
def _call_with_lambdas(node: exp.Anonymous, names: Names) -> Expression:
    return _higher_order(node.name.lower(), node.expressions, names)


@builds("reduce")
def _reduce(node: exp.Anonymous, names: Names) -> Expression:
    return _higher_order("aggregate", node.expressions, names)


def _higher_order(name: str, operands: list[exp.Expr], names: Names) -> Expression:
    types = REGISTRY[name].lambda_types
    given = {
        number: build_scalar(operand, names)
        for number, operand in enumerate(operands)
        if not isinstance(operand, exp.Lambda)
    }
    args: list[Expression] = []
    for number, operand in enumerate(operands):
        if not isinstance(operand, exp.Lambda):
            value = given[number]
            if types is not None and number in _LAMBDAS_AT.get(name, ()):
                value = _without_parameters(value, types(given, number), names, name in _INDEXED)
            args.append(value)
            continue
        if types is None or number == 0 or 0 not in given:
            raise AnalysisError(f"function '{name}' takes no lambda as argument {number + 1}")
        args.append(_lambda(operand, types(given, number), names, indexed=name in _INDEXED))
    return make_call(name, *args)


def _without_parameters(
    value: Expression, types: tuple[DataType, ...], names: Names, indexed: bool
) -> Lambda:
    """A value in place of a lambda, which is the same for every element."""
    depth = getattr(names, "lambda_depth", 0)
    count = len(types) - 1 if indexed else len(types)
    columns = (Column(-(depth + 1 + n), f"_{n}", dtype) for n, dtype in enumerate(types[:count]))
    refuse_in_lambda(value)
    return Lambda(value.dtype, tuple(columns), value)


def _lambda(
    node: exp.Lambda, types: tuple[DataType, ...], names: Names, *, indexed: bool
) -> Lambda:
    labels = [p.name for p in node.expressions]
    fewest = len(types) - 1 if indexed else len(types)
    if not fewest <= len(labels) <= len(types):
        raise AnalysisError(f"the lambda has {len(labels)} parameters, not {fewest}")
    if len({label.lower() for label in labels}) < len(labels):
        raise AnalysisError(f"the lambda names a parameter twice: {', '.join(labels)}")
    depth = getattr(names, "lambda_depth", 0)
    columns = tuple(
        Column(-(depth + 1 + number), label, dtype)
        for number, (label, dtype) in enumerate(zip(labels, types, strict=False))
    )
    values: dict[str, Expression] = {c.name.lower(): c.ref for c in columns}
    if indexed and len(columns) == len(types):
        index = columns[-1]
        values[index.name.lower()] = make_call("element_index", index.ref)
    body = build_scalar(node.this, LambdaNames(names, values, depth + len(columns)))
    refuse_in_lambda(body)
    return Lambda(body.dtype, columns, body)


# ---------------------------------------------------------------- names of results


@column_name.register
def _(node: exp.Dot) -> str:
    return f"{column_name(node.this)}.{node.expression.name}"


@column_name.register
def _(node: exp.Bracket) -> str:
    return f"{column_name(node.this)}[{', '.join(column_name(e) for e in node.expressions)}]"


@column_name.register
def _(node: exp.Identifier) -> str:
    return str(node.name)
