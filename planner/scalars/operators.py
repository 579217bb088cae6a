"""Operators and conditionals.

In: nodes such as `a + b`, `a IN (…)`, CASE. Out: calls of the registry.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from planner.coercion import (
    comparable,
)
from planner.errors import UnsupportedSqlError
from planner.expressions import (
    Expression,
    Literal,
)
from planner.functions import make_call
from planner.scalars.handlers import (
    HANDLERS,
    Names,
    build_scalar,
    handles,
    refuse_unused,
)
from planner.scalars.intervals import shift_time
from planner.scalars.subqueries import in_subquery, query_of
from planner.types import (
    BOOLEAN,
    DATE,
    INTERVAL,
    NULL,
    STRING,
)


@handles(exp.Paren, exp.Alias)
def _inner(node: exp.Expr, names: Names) -> Expression:
    return build_scalar(node.this, names)


@handles(exp.Column)
def _column(node: exp.Column, names: Names) -> Expression:
    return names.column(node)


@handles(exp.Add, exp.Sub)
def _plus(node: exp.Add | exp.Sub, names: Names) -> Expression:
    left, right = build_scalar(node.this, names), build_scalar(node.expression, names)
    minus = isinstance(node, exp.Sub)
    if left.dtype == INTERVAL and not minus:
        left, right = right, left
    if right.dtype == INTERVAL:
        return shift_time(left, right, -1 if minus else 1)
    if left.dtype == DATE and right.dtype.is_integral:
        return make_call("date_sub" if minus else "date_add", left, right)
    if right.dtype == DATE and left.dtype.is_integral and not minus:
        return make_call("date_add", right, left)
    if left.dtype.is_datetime and right.dtype.is_datetime:
        raise UnsupportedSqlError("a difference of dates is an interval")
    return make_call("subtract" if minus else "add", left, right)


def _connector(name: str) -> Callable[[exp.Connector, Names], Expression]:
    def build(node: exp.Connector, names: Names) -> Expression:
        return make_call(name, *(build_scalar(part, names) for part in node.flatten()))

    return build


def _binary(name: str) -> Callable[[exp.Binary, Names], Expression]:
    def build(node: exp.Binary, names: Names) -> Expression:
        refuse_unused(node, ("expression",))
        return make_call(name, build_scalar(node.this, names), build_scalar(node.expression, names))

    return build


def _like(name: str) -> Callable[[exp.Like | exp.ILike, Names], Expression]:
    def build(node: exp.Like | exp.ILike, names: Names) -> Expression:
        refuse_unused(node, ("expression", "negate"))
        matched = make_call(
            name, build_scalar(node.this, names), build_scalar(node.expression, names)
        )
        return make_call("not", matched) if node.args.get("negate") else matched

    return build


@handles(exp.In)
def _in(node: exp.In, names: Names) -> Expression:
    arg = node.this
    operands = arg.expressions if isinstance(arg, exp.Tuple) else [arg]
    query = node.args.get("query")
    if query is not None:
        args = tuple(build_scalar(o, names) for o in operands)
        return in_subquery(args, names.subquery(query_of(query)))
    if node.args.get("unnest") or node.args.get("field") or len(operands) != 1:
        raise UnsupportedSqlError("IN over rows")
    value = build_scalar(operands[0], names)
    items = [build_scalar(item, names) for item in node.expressions]
    if value.dtype.is_datetime or value.dtype.is_numeric:
        items = [comparable(value, i)[1] if i.dtype == STRING else i for i in items]
    return make_call("in", value, *items)


@handles(exp.Between)
def _between(node: exp.Between, names: Names) -> Expression:
    value = build_scalar(node.this, names)
    low, high = (build_scalar(node.args[key], names) for key in ("low", "high"))
    return make_call("and", make_call("ge", value, low), make_call("le", value, high))


@handles(exp.Is)
def _is(node: exp.Is, names: Names) -> Expression:
    value = build_scalar(node.this, names)
    other = node.expression
    if isinstance(other, exp.Null):
        return make_call("is_null", value)
    if isinstance(other, exp.Boolean):
        return make_call("eq_null_safe", value, Literal(BOOLEAN, bool(other.this)))
    raise UnsupportedSqlError("IS with an expression")


@handles(exp.Not)
def _not(node: exp.Not, names: Names) -> Expression:
    inner = build_scalar(node.this, names)
    if getattr(inner, "function", None) == "is_null":
        return make_call("is_not_null", *inner.children)
    return make_call("not", inner)


@handles(exp.Case)
def _case(node: exp.Case, names: Names) -> Expression:
    subject = build_scalar(node.this, names) if node.this is not None else None
    args: list[Expression] = []
    for branch in node.args["ifs"]:
        test = build_scalar(branch.this, names)
        args.append(test if subject is None else make_call("eq", subject, test))
        args.append(build_scalar(branch.args["true"], names))
    default = node.args.get("default")
    args.append(build_scalar(default, names) if default is not None else Literal(NULL, None))
    return make_call("case", *args)


@handles(exp.If)
def _if(node: exp.If, names: Names) -> Expression:
    false = node.args.get("false")
    otherwise = build_scalar(false, names) if false is not None else Literal(NULL, None)
    test, value = build_scalar(node.this, names), build_scalar(node.args["true"], names)
    return make_call("case", test, value, otherwise)


@handles(exp.DPipe)
def _concat(node: exp.DPipe, names: Names) -> Expression:
    return make_call("concat", *(build_scalar(p, names) for p in node.flatten()))


HANDLERS.update(
    {
        exp.Mul: _binary("multiply"),
        exp.Div: _binary("divide"),
        exp.IntDiv: _binary("div"),
        exp.Mod: _binary("mod"),
        exp.And: _connector("and"),
        exp.Or: _connector("or"),
        exp.EQ: _binary("eq"),
        exp.NEQ: _binary("ne"),
        exp.LT: _binary("lt"),
        exp.LTE: _binary("le"),
        exp.GT: _binary("gt"),
        exp.GTE: _binary("ge"),
        exp.NullSafeEQ: _binary("eq_null_safe"),
        exp.NullSafeNEQ: lambda node, names: make_call("not", _binary("eq_null_safe")(node, names)),
        exp.Like: _like("like"),
        exp.ILike: _like("ilike"),
        exp.RegexpLike: _binary("rlike"),
    }
)
