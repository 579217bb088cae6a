"""Build calls of functions and aggregates by their names in Spark."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from stagecoach.planner.aggregates import AGGREGATE_ALIASES, AGGREGATES, make_aggregate
from stagecoach.planner.analysis.scalars.handlers import (
    CALL_BUILDERS,
    Names,
    build_scalar,
    handles,
    refuse_unused,
)
from stagecoach.planner.analysis.scalars.project_calls import project_call
from stagecoach.planner.errors import AnalysisError, UnsupportedSqlError, check_count
from stagecoach.planner.functions import MACROS, make_call
from stagecoach.planner.functions.builtin import is_builtin
from stagecoach.planner.functions.registry import ALIAS_ARITIES, ALIASES
from stagecoach.planner.plan.coercion import as_boolean, require_castable, require_orderable
from stagecoach.planner.plan.expressions import AggregateCall, Expression, Literal, cast, contains
from stagecoach.planner.syntax.parse import position
from stagecoach.planner.types import BOOLEAN, parse_type

_CASTS = frozenset(
    ("tinyint", "smallint", "int", "bigint", "float", "double", "boolean", "string", "binary")
)


@handles(exp.Anonymous)
def _call(node: exp.Anonymous, names: Names) -> Expression:
    name = node.name.lower()
    if (declared := names.function(name)) is not None:
        return project_call(declared, node, names)
    builder = CALL_BUILDERS.get(name)
    if builder is not None:
        return builder(node, names)
    if not is_builtin(name):
        # The registries also hold operators and steps of the planner's own, such as 'add'.
        raise UnsupportedSqlError(f"function '{name}' is not known to the planner")
    aggregate = AGGREGATE_ALIASES.get(name, name)
    if aggregate in AGGREGATES or aggregate == "count_if":
        return _aggregate(aggregate, node, names)
    args = tuple(build_scalar(a, names) for a in node.expressions)
    if name in _CASTS and len(args) == 1:
        require_castable(args[0].dtype, parse_type(name))
        return cast(args[0], parse_type(name))
    if name in MACROS:
        return MACROS[name](args)
    arity = ALIAS_ARITIES.get(name)
    if arity is not None:
        check_count(f"function '{name}'", arity, len(args))
    return make_call(ALIASES.get(name, name), *args)


def _aggregate(name: str, node: exp.Anonymous, names: Names) -> Expression:
    operands = list(node.expressions)
    distinct = bool(operands) and isinstance(operands[0], exp.Distinct)
    if distinct:
        operands = operands[0].expressions
    ignore_nulls = False
    plain: list[exp.Expr] = []
    for operand in operands:
        if isinstance(operand, exp.IgnoreNulls | exp.RespectNulls):
            ignore_nulls = isinstance(operand, exp.IgnoreNulls)
            operand = operand.this
        if isinstance(operand, exp.Order | exp.Limit):
            raise UnsupportedSqlError(f"{name} with {operand.key.upper()}")
        plain.append(operand)
    if len(plain) == 1 and isinstance(plain[0], exp.Star):
        if name != "count" or distinct:
            raise UnsupportedSqlError(f"{name}({'DISTINCT ' if distinct else ''}*)")
        plain = []
    elif name == "count" and not plain:
        raise AnalysisError("count needs an argument, such as *")
    args = tuple(build_scalar(o, names) for o in plain)
    if name in ("first", "last", "any_value") and len(args) == 2:
        ignore_nulls, args = ignores_nulls(name, args[1]), args[:1]
    call = aggregate_call(name, args, distinct)
    return replace(call, ignore_nulls=True) if ignore_nulls else call


def ignores_nulls(name: str, node: Expression) -> bool:
    """What the second argument of `first` and its kin says.

    Raises:
        AnalysisError: It is not a constant boolean.
    """
    if not isinstance(node, Literal) or not isinstance(node.value, bool):
        raise AnalysisError(f"the second argument of '{name}' must be true or false")
    return node.value


def aggregate_call(name: str, args: tuple[Expression, ...], distinct: bool) -> AggregateCall:
    """An aggregate of the registry as Spark understands it.

    Raises:
        AnalysisError: For an aggregate inside an aggregate.
    """
    if any(contains(a, AggregateCall) for a in args):
        raise AnalysisError(f"an aggregate cannot be nested inside the aggregate '{name}'")
    if name == "mode" and distinct:
        raise AnalysisError("the aggregate 'mode' cannot have DISTINCT")
    args = checked_arguments(name, args)
    if name == "count" and len(args) == 1 and isinstance(args[0], Literal) and not distinct:
        args = () if args[0].value is not None else args
    if name == "count_if":
        check_count("aggregate 'count_if'", (1, 1), len(args))
        return make_aggregate("count", (), where=args[0])
    return make_aggregate(name, args, distinct=distinct)


def checked_arguments(name: str, args: tuple[Expression, ...]) -> tuple[Expression, ...]:
    """Arguments of an aggregate; texts become booleans where Spark reads them as such.

    Raises:
        AnalysisError: For values without an order, and for what is not a boolean.
    """
    if name in ("min", "max") and args:
        require_orderable(args[0].dtype, f"{name} of")
    if name in ("min_by", "max_by") and len(args) > 1:
        require_orderable(args[1].dtype, f"{name} by")
    if name in ("bool_and", "bool_or", "count_if") and len(args) == 1:
        return (as_boolean(args[0]),)
    return args


@handles(exp.IgnoreNulls, exp.RespectNulls)
def _nulls(node: exp.Expr, names: Names) -> Expression:
    inner = build_scalar(node.this, names)
    if not isinstance(inner, AggregateCall):
        raise UnsupportedSqlError(f"{node.key.upper()} of a scalar")
    return replace(inner, ignore_nulls=isinstance(node, exp.IgnoreNulls))


@handles(exp.Filter)
def _filter(node: exp.Filter, names: Names) -> Expression:
    inner = build_scalar(node.this, names)
    if not isinstance(inner, AggregateCall):
        raise AnalysisError("FILTER is only allowed after an aggregate")
    where = build_scalar(node.expression.this, names)
    line, column = position(node.expression)
    if where.dtype != BOOLEAN:
        found = f"FILTER needs a boolean, found {where.dtype}"
        raise AnalysisError(found, line=line, column=column)
    if contains(where, AggregateCall):
        raise AnalysisError("aggregates are not allowed in FILTER", line=line, column=column)
    if inner.where is not None:
        where = make_call("and", inner.where, where)
    return replace(inner, where=where)


@handles(exp.Placeholder)
def _placeholder(node: exp.Placeholder, names: Names) -> Expression:
    return names.parameter(node.name)


@handles(exp.Window)
def _window(node: exp.Window, names: Names) -> Expression:
    return names.window(node)


@handles(exp.Substring)
def _substring(node: exp.Substring, names: Names) -> Expression:
    parts = (node.this, node.args.get("start"), node.args.get("length"))
    refuse_unused(node, ("start", "length"))
    return make_call("substring", *(build_scalar(p, names) for p in parts if p is not None))


@handles(exp.Trim)
def _trim(node: exp.Trim, names: Names) -> Expression:
    where = str(node.args.get("position") or "").upper()
    name = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(where, "trim")
    parts = (node.this, node.args.get("expression"))
    return make_call(name, *(build_scalar(p, names) for p in parts if p is not None))
