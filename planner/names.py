"""The names that Spark gives to columns without an alias, as far as plain text shows them.

In: an AST node. Out: text such as `sum(x)` or `(a + b)`. Spark's own analysis has the last word
when a query runs (`infra` compares), so a rare spelling that differs here is corrected there.
"""

from __future__ import annotations

from functools import singledispatch

from sqlglot import exp

from planner.parse import StagecoachSpark

_OPERATORS: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "!=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "%",
    exp.IntDiv: "div",
    exp.And: "AND",
    exp.Or: "OR",
}


@singledispatch
def column_name(node: exp.Expr) -> str:
    """Spark's name of the column that `node` computes."""
    return node.sql(dialect=StagecoachSpark)


@column_name.register
def _(node: exp.Func) -> str:
    args = [a for v in node.args.values() for a in (v if isinstance(v, list) else [v])]
    shown = [a.this if isinstance(a, exp.TsOrDsToDate) else a for a in args]
    return _function(node.sql_name().lower(), [a for a in shown if isinstance(a, exp.Expr)])


@column_name.register
def _(node: exp.Alias) -> str:
    return str(node.alias)


@column_name.register
def _(node: exp.Column) -> str:
    return str(node.name)


@column_name.register
def _(node: exp.Paren) -> str:
    return column_name(node.this)


@column_name.register
def _(node: exp.Literal) -> str:
    return str(node.this)


@column_name.register
def _(node: exp.Binary) -> str:
    operator = _OPERATORS.get(type(node))
    if operator is None:
        return node.sql(dialect=StagecoachSpark)
    return f"({column_name(node.this)} {operator} {column_name(node.expression)})"


@column_name.register
def _(node: exp.Anonymous) -> str:
    if len(node.expressions) == 1 and isinstance(node.expressions[0], exp.Star):
        return f"{node.name.lower()}(1)"
    return _function(node.name.lower(), node.expressions)


@column_name.register
def _(node: exp.Filter) -> str:
    return f"{column_name(node.this)} FILTER (WHERE {column_name(node.expression.this)})"


@column_name.register
def _(node: exp.Cast) -> str:
    if isinstance(node.this, exp.Literal) and node.to.this == exp.DType.DATE:
        return f"DATE '{node.this.this}'"
    return f"CAST({column_name(node.this)} AS {node.to.sql(dialect=StagecoachSpark)})"


def _function(name: str, args: list[exp.Expr]) -> str:
    if len(args) == 1 and isinstance(args[0], exp.Distinct):
        inner = ", ".join(column_name(a) for a in args[0].expressions)
        return f"{name}(DISTINCT {inner})"
    return f"{name}({', '.join(column_name(a) for a in args)})"
