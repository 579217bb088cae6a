"""The names that Spark gives to columns without an alias, such as `sum(x)` or `(a + b)`.

This covers common spellings. Spark's own analysis decides when a query runs: `infra` compares the
names and corrects those that differ.
"""

from __future__ import annotations

from functools import singledispatch

from sqlglot import exp

from stagecoach.planner.syntax.parse import StagecoachSpark
from stagecoach.planner.syntax.spark_syntax import UnaryPlus

_NUMBERS = frozenset(["bigint", "decimal", "double", "float", "int", "smallint", "tinyint"])
_CASTS = _NUMBERS | {"binary", "boolean", "date", "string", "timestamp"}
_OPERATORS: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NullSafeEQ: "<=>",
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


def item_name(node: exp.Expr) -> str:
    """Spark's name of an item of a select list: a cast of a column keeps the column's name."""
    casts = isinstance(node, exp.Cast) or (
        isinstance(node, exp.Anonymous)
        and node.name.lower() in _CASTS
        and len(node.expressions) == 1
    )
    target = node.expressions[0] if isinstance(node, exp.Anonymous) and casts else node.this
    return column_name(target if casts and isinstance(target, exp.Column) else node)


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
def _(node: exp.Substring) -> str:
    length = node.args.get("length") or exp.Literal.number((1 << 31) - 1)
    name = str(node.meta.get("written", "substring"))
    return _function(name, [node.this, node.args["start"], length])


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
    if node.name.lower() in ("window", "session_window"):
        return str(node.name.lower())  # the call stands for a column of that name
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


@column_name.register
def _(node: exp.Boolean) -> str:
    return "true" if node.this else "false"


@column_name.register
def _(node: exp.Neg) -> str:
    if isinstance(node.this, exp.Literal):
        return f"-{node.this.this}"
    return f"(- {column_name(node.this)})"


@column_name.register
def _(node: UnaryPlus) -> str:
    inner = column_name(node.this)
    return f"(+ {inner})"


@column_name.register
def _(node: exp.NEQ) -> str:
    return f"(NOT ({column_name(node.this)} = {column_name(node.expression)}))"


@column_name.register
def _(node: exp.Not) -> str:
    inner = node.this
    if isinstance(inner, exp.Is) and isinstance(inner.expression, exp.Null):
        return f"({column_name(inner.this)} IS NOT NULL)"
    return f"(NOT {column_name(inner)})"


@column_name.register
def _(node: exp.Is) -> str:
    operator = "IS" if isinstance(node.expression, exp.Null) else "<=>"
    return f"({column_name(node.this)} {operator} {column_name(node.expression)})"


@column_name.register
def _(node: exp.Between) -> str:
    args = (node.this, node.args["low"], node.args["high"])
    return f"between({', '.join(column_name(a) for a in args)})"


@column_name.register
def _(node: exp.Like) -> str:
    text = f"{column_name(node.this)} LIKE {column_name(node.expression)}"
    return f"(NOT {text})" if node.args.get("negate") else text


@column_name.register
def _(node: exp.In) -> str:
    if not node.expressions:
        return node.sql(dialect=StagecoachSpark)
    items = ", ".join(column_name(item) for item in node.expressions)
    return f"({column_name(node.this)} IN ({items}))"


@column_name.register
def _(node: exp.DPipe) -> str:
    operands = [o for o in node.flatten() if not isinstance(o, exp.DPipe)]
    return f"concat({', '.join(column_name(o) for o in operands)})"


@column_name.register
def _(node: exp.If) -> str:
    args = [node.this, node.args["true"], node.args.get("false") or exp.Null()]
    return f"(IF({', '.join(column_name(a) for a in args)}))"


@column_name.register
def _(node: exp.Case) -> str:
    text = "CASE"
    for branch in node.args["ifs"]:
        test = column_name(branch.this)
        if node.this is not None:
            test = f"({column_name(node.this)} = {test})"
        text += f" WHEN {test} THEN {column_name(branch.args['true'])}"
    default = node.args.get("default")
    return f"{text}{'' if default is None else f' ELSE {column_name(default)}'} END"


def _function(name: str, args: list[exp.Expr]) -> str:
    if len(args) == 1 and isinstance(args[0], exp.Distinct):
        inner = ", ".join(column_name(a) for a in args[0].expressions)
        return f"{name}(DISTINCT {inner})"
    return f"{name}({', '.join(column_name(a) for a in args)})"
