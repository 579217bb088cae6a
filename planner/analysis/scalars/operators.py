"""Build operators and conditionals: `a + b`, `a IN (…)`, CASE."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from sqlglot import exp

from stagecoach.planner.analysis.scalars.handlers import (
    HANDLERS,
    Names,
    build_scalar,
    handles,
    refuse_unused,
)
from stagecoach.planner.analysis.scalars.intervals import add_or_subtract, times_or_divided
from stagecoach.planner.analysis.scalars.rows import alike, compared
from stagecoach.planner.analysis.scalars.subqueries import in_subquery, query_of
from stagecoach.planner.errors import AnalysisError, UnsupportedSqlError
from stagecoach.planner.functions import MACROS, make_call
from stagecoach.planner.plan.expressions import (
    Expression,
    Literal,
)
from stagecoach.planner.syntax.precedence import UnsignedRightShift
from stagecoach.planner.types import (
    BOOLEAN,
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
    moved = add_or_subtract(left, right, minus)
    if moved is not None:
        return moved
    return make_call("subtract" if minus else "add", left, right)


@handles(exp.Mul, exp.Div)
def _product(node: exp.Mul | exp.Div, names: Names) -> Expression:
    refuse_unused(node, ("expression", "typed"))
    left, right = build_scalar(node.this, names), build_scalar(node.expression, names)
    name = "divide" if isinstance(node, exp.Div) else "multiply"
    scaled = times_or_divided(left, right, name)
    return scaled if scaled is not None else make_call(name, left, right)


@handles(exp.DPipe)
def _concat(node: exp.DPipe, names: Names) -> Expression:
    """A chain of `a || b || c`, which is one call."""
    operands: list[exp.Expr] = []
    chain: exp.Expr = node
    while isinstance(chain, exp.DPipe):
        operands.append(chain.expression)
        chain = chain.this
    values = [build_scalar(operand, names) for operand in (chain, *reversed(operands))]
    return _named_call("concat", *values)


@handles(exp.BitwiseNot)
def _bit_not(node: exp.BitwiseNot, names: Names) -> Expression:
    return make_call("bit_not", build_scalar(node.this, names))


def _connector(name: str) -> Callable[[exp.Connector, Names], Expression]:
    def build(node: exp.Connector, names: Names) -> Expression:
        return make_call(name, *(build_scalar(part, names) for part in node.flatten()))

    return build


def _binary(
    name: str, make: Callable[[str, Expression, Expression], Expression] = make_call
) -> Callable[[exp.Binary, Names], Expression]:
    def build(node: exp.Binary, names: Names) -> Expression:
        refuse_unused(node, ("expression",))
        return make(name, build_scalar(node.this, names), build_scalar(node.expression, names))

    return build


_comparison = partial(_binary, make=compared)


def _distinct(node: exp.NullSafeNEQ, names: Names) -> Expression:
    return make_call("not", _comparison("eq_null_safe")(node, names))


def _like(node: exp.Like | exp.ILike, names: Names) -> Expression:
    return _like_escaped(node, names, None)


def _like_escaped(
    node: exp.Like | exp.ILike, names: Names, escape: Expression | None
) -> Expression:
    refuse_unused(node, ("expression", "negate"))
    name = "ilike" if isinstance(node, exp.ILike) else "like"
    subject = build_scalar(node.this, names)
    quantifier = node.expression
    many = isinstance(quantifier, exp.Any | exp.All)
    inner = quantifier.this if many else quantifier
    if many and isinstance(inner, exp.Tuple):
        patterns = inner.expressions
    else:
        patterns = [inner.unnest() if many else inner]
    rest = () if escape is None else (escape,)
    matches = []
    for pattern in patterns:
        match = _named_call(name, subject, build_scalar(pattern, names), *rest)
        matches.append(make_call("not", match) if node.args.get("negate") else match)
    if len(matches) == 1:
        return matches[0]
    return make_call("and" if isinstance(quantifier, exp.All) else "or", *matches)


def _named_call(name: str, *args: Expression) -> Expression:
    return MACROS[name](args) if name in MACROS else make_call(name, *args)


@handles(exp.Escape)
def _escape(node: exp.Escape, names: Names) -> Expression:
    if not isinstance(node.this, exp.Like | exp.ILike):
        raise UnsupportedSqlError("ESCAPE without LIKE")
    escape = build_scalar(node.expression, names)
    if isinstance(escape, Literal) and len(str(escape.value)) != 1 and escape.dtype == STRING:
        raise AnalysisError(f"ESCAPE takes one character, not '{escape.value}'")
    return _like_escaped(node.this, names, escape)


@handles(exp.Overlay)
def _overlay(node: exp.Overlay, names: Names) -> Expression:
    parts = (node.this, node.expression, node.args["from_"], node.args.get("for_"))
    return make_call("overlay", *(build_scalar(p, names) for p in parts if p is not None))


@handles(exp.StrPosition)
def _position(node: exp.StrPosition, names: Names) -> Expression:
    refuse_unused(node, ("substr", "position"))
    parts = (node.args["substr"], node.this, node.args.get("position"))
    return make_call("locate", *(build_scalar(p, names) for p in parts if p is not None))


def _row(node: exp.Expr) -> list[exp.Expr]:
    """The values that IN compares with the columns of a query: `struct(a, b)` is a row, too."""
    inner = node.unnest()
    # Between backticks it is a function, of which Spark makes one value.
    quoted = isinstance(inner.this, exp.Identifier)
    if isinstance(inner, exp.Anonymous) and inner.name.lower() == "struct" and not quoted:
        return [member.unalias() for member in inner.expressions]
    return inner.expressions if isinstance(inner, exp.Tuple) else [node]


@handles(exp.In)
def _in(node: exp.In, names: Names) -> Expression:
    query = node.args.get("query")
    if query is not None:
        args = tuple(build_scalar(operand, names) for operand in _row(node.this))
        return in_subquery(args, names.subquery(query_of(query)))
    refuse_unused(node, ("expressions",))
    value = build_scalar(node.this, names)
    items = [build_scalar(item, names) for item in node.expressions]
    return make_call("in", *alike(value, *items))


@handles(exp.Between)
def _between(node: exp.Between, names: Names) -> Expression:
    value = build_scalar(node.this, names)
    low, high = (build_scalar(node.args[key], names) for key in ("low", "high"))
    return make_call("and", compared("ge", value, low), compared("le", value, high))


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
        if subject is None and test.dtype == NULL:
            raise AnalysisError("case: expected a boolean, found void")
        args.append(test if subject is None else make_call("eq", subject, test))
        args.append(build_scalar(branch.args["true"], names))
    default = node.args.get("default")
    args.append(build_scalar(default, names) if default is not None else Literal(NULL, None))
    return make_call("case", *args)


@handles(exp.If)
def _if(node: exp.If, names: Names) -> Expression:
    false = node.args.get("false")
    if false is None:
        raise AnalysisError("function 'if' takes 3 arguments, not 2")
    otherwise = build_scalar(false, names)
    test, value = build_scalar(node.this, names), build_scalar(node.args["true"], names)
    return make_call("case", test, value, otherwise)


HANDLERS.update(
    {
        exp.IntDiv: _binary("div"),
        exp.Mod: _binary("mod"),
        exp.And: _connector("and"),
        exp.Or: _connector("or"),
        exp.EQ: _comparison("eq"),
        exp.NEQ: _comparison("ne"),
        exp.LT: _comparison("lt"),
        exp.LTE: _comparison("le"),
        exp.GT: _comparison("gt"),
        exp.GTE: _comparison("ge"),
        exp.NullSafeEQ: _comparison("eq_null_safe"),
        exp.NullSafeNEQ: _distinct,
        exp.Like: _like,
        exp.ILike: _like,
        exp.RegexpLike: _binary("rlike"),
        exp.BitwiseOr: _binary("bit_or", _named_call),
        exp.BitwiseXor: _binary("bit_xor", _named_call),
        exp.BitwiseAnd: _binary("bit_and", _named_call),
        exp.BitwiseLeftShift: _binary("shiftleft", _named_call),
        exp.BitwiseRightShift: _binary("shiftright", _named_call),
        UnsignedRightShift: _binary("shiftrightunsigned", _named_call),
    }
)
