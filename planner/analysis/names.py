"""The names that Spark gives to columns without an alias, such as `sum(x)` or `(a + b)`.

This covers common spellings. Spark's own analysis decides when a query runs: `infra` compares the
names and corrects those that differ.
"""

from __future__ import annotations

import re
from functools import singledispatch

from sqlglot import exp

from stagecoach.planner.analysis.function_names import double_name, function_name
from stagecoach.planner.plan.coercion import date_text
from stagecoach.planner.syntax.constant_ranges import SUFFIXES, is_suffixed
from stagecoach.planner.syntax.parse import StagecoachSpark
from stagecoach.planner.syntax.precedence import UnsignedRightShift
from stagecoach.planner.syntax.spark_syntax import UnaryPlus
from stagecoach.planner.text.moments import wall_clock
from stagecoach.planner.types import parse_type

_NUMBERS = frozenset(["bigint", "decimal", "double", "float", "int", "smallint", "tinyint"])
# Spark leaves such casts out of names.
_NESTED = (exp.DType.ARRAY, exp.DType.MAP, exp.DType.STRUCT)
_CASTS = _NUMBERS | {"binary", "boolean", "date", "string", "timestamp"}
_FIRST = re.compile(r"^(first|last)_value\(")
_VARIABLE = "namedlambdavariable()"
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
    exp.BitwiseAnd: "&",
    exp.BitwiseOr: "|",
    exp.BitwiseXor: "^",
    exp.BitwiseLeftShift: "<<",
    exp.BitwiseRightShift: ">>",
    UnsignedRightShift: ">>>",
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
    if not node.is_string and "e" in str(node.this).lower():
        return double_name(float(node.this))
    return str(node.this)


@column_name.register
def _(node: exp.HexString) -> str:
    return f"X'{str(node.this).upper()}'"


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
    if node.name.lower() in _CASTS and len(node.expressions) == 1:
        return column_name(node.expressions[0])
    if node.name.lower() == "struct":
        shown = [
            f"{column_name(a.this)} AS {a.alias}" if isinstance(a, exp.Alias) else column_name(a)
            for a in node.expressions
        ]
        return f"struct({', '.join(shown)})"
    return _function(node.name.lower(), node.expressions)


@column_name.register
def _(node: exp.Filter) -> str:
    return f"{column_name(node.this)} FILTER (WHERE {column_name(node.expression.this)})"


@column_name.register
def _(node: exp.Cast) -> str:
    if isinstance(node.this, exp.Paren) and node.to.meta.get("written", "").lower() in SUFFIXES:
        return column_name(node.this)  # `-128Y`
    if is_suffixed(node):
        is_float = node.to.this in (exp.DType.DOUBLE, exp.DType.FLOAT)
        return double_name(float(node.this.name)) if is_float else str(node.this.name)
    if typed := _typed_literal(node):
        return typed
    if node.to.this in _NESTED:
        return column_name(node.this)
    kind = _type_name(node.to)
    word = "TRY_CAST" if isinstance(node, exp.TryCast) else "CAST"
    return f"{word}({column_name(node.this)} AS {kind})"


def _type_name(to: exp.DataType) -> str:
    written = to.sql(dialect=StagecoachSpark)
    if to.this in (exp.DType.DECIMAL, exp.DType.INTERVAL):
        return str(parse_type(written.lower())).upper()
    return written.replace(", ", ",")


def _typed_literal(node: exp.Cast) -> str:
    """`DATE '…'` as Spark writes the value; empty for what is not such a literal."""
    if not node.meta.get("typed") or not isinstance(node.this, exp.Literal):
        return ""
    word = str(node.to.meta.get("written", "")).upper()
    try:
        moment = wall_clock(str(node.this.this).strip())
    except ValueError:
        day = date_text(str(node.this.this)) if word == "DATE" else None
        return f"DATE '{day}'" if day else ""
    if word == "DATE":
        return f"DATE '{moment.date().isoformat()}'"
    fraction = f"{moment.microsecond:06}".rstrip("0")
    return f"{word} '{moment:%Y-%m-%d %H:%M:%S}{'.' if fraction else ''}{fraction}'"


@column_name.register
def _(node: exp.Boolean) -> str:
    return "true" if node.this else "false"


@column_name.register
def _(node: exp.Neg) -> str:
    if isinstance(node.this, exp.Literal) or is_suffixed(node.this):
        shown = column_name(node.this)
        return shown if _is_unsigned_zero(node.this, shown) else f"-{shown}"
    return f"(- {column_name(node.this)})"


def _is_unsigned_zero(node: exp.Expr, shown: str) -> bool:
    """Whether a number has no negative: a zero that is not a float."""
    is_float = isinstance(node, exp.Cast) and node.to.this in (exp.DType.DOUBLE, exp.DType.FLOAT)
    is_double = isinstance(node, exp.Literal) and "e" in str(node.this).lower()
    return not node.is_string and not is_float and not is_double and not shown.strip("0.")


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
    several = node.expression
    if isinstance(several, exp.Any | exp.All):
        items = several.this.expressions if isinstance(several.this, exp.Tuple) else [several.this]
        if not all(isinstance(i, exp.Paren | exp.Literal) and i.unnest().is_string for i in items):
            return node.sql(dialect=StagecoachSpark)
        word = "likeany" if isinstance(several, exp.Any) else "likeall"
        return f"{'not' if node.args.get('negate') else ''}{word}({column_name(node.this)})"
    text = f"{column_name(node.this)} LIKE {column_name(node.expression)}"
    return f"(NOT {text})" if node.args.get("negate") else text


@column_name.register
def _(node: exp.RegexpLike) -> str:
    return f"RLIKE({column_name(node.this)}, {column_name(node.expression)})"


@column_name.register
def _(node: exp.ILike) -> str:
    if isinstance(node.expression, exp.Any | exp.All | exp.Tuple):
        return node.sql(dialect=StagecoachSpark)
    text = f"ilike({column_name(node.this)}, {column_name(node.expression)})"
    return f"(NOT {text})" if node.args.get("negate") else text


@column_name.register
def _(node: exp.Escape) -> str:
    return f"{column_name(node.this)} ESCAPE '{node.expression.name}'"


@column_name.register
def _(node: exp.StrPosition) -> str:
    args = [node.args["substr"], node.this]
    if (start := node.args.get("position")) is not None:
        return _function("position", [*args, start])
    return _function("locate", args)


@column_name.register
def _(node: exp.Lambda) -> str:
    parameters = {p.name.lower() for p in node.expressions}
    body = node.this.copy()
    for part in list(body.find_all(exp.Identifier, exp.Column)):
        is_name = part.arg_key == "this" or not isinstance(part.parent, exp.Dot | exp.Alias)
        is_part = isinstance(part.parent, exp.Column) or bool(part.text("table"))
        if is_name and not is_part and part.name.lower() in parameters:
            if part is body:
                body = exp.var(_VARIABLE)
            else:
                part.replace(exp.var(_VARIABLE))
    return f"lambdafunction({', '.join([column_name(body), *[_VARIABLE] * len(parameters)])})"


@column_name.register
def _(node: exp.IgnoreNulls | exp.RespectNulls) -> str:
    return _FIRST.sub(r"\1(", column_name(node.this))


@column_name.register
def _(node: exp.Any) -> str:
    return f"any({column_name(node.this.unnest())})"


@column_name.register
def _(node: exp.Subquery) -> str:
    return "scalarsubquery()"


@column_name.register
def _(node: exp.WithinGroup) -> str:
    call, order = node.this, node.expression.expressions
    is_list = call.name.lower() in ("listagg", "string_agg")
    is_mode = call.name.lower() == "mode"  # Spark turns its order around
    keys = ", ".join(_sort_key(key, in_full=is_list, is_mode=is_mode) for key in order)
    name = column_name(call)
    if isinstance(call, exp.Anonymous) and is_list:
        name = _function("listagg", call.expressions)
    return f"{name} WITHIN GROUP (ORDER BY {keys})"


def _sort_key(key: exp.Expr, *, in_full: bool, is_mode: bool) -> str:
    descends = isinstance(key, exp.Ordered) and bool(key.args.get("desc")) != is_mode
    name = column_name(key.this if isinstance(key, exp.Ordered) else key)
    if in_full:
        return f"{name} DESC NULLS LAST" if descends else f"{name} ASC NULLS FIRST"
    return f"{name} DESC" if descends else name


@column_name.register
def _(node: exp.Extract) -> str:
    return f"extract({node.this.name} FROM {column_name(node.expression)})"


@column_name.register
def _(node: exp.Trim) -> str:
    side = str(node.args.get("position") or "").upper()
    value = column_name(node.this)
    if node.expression is None:
        return f"{ {'LEADING': 'ltrim', 'TRAILING': 'rtrim'}.get(side, 'trim') }({value})"
    return f"TRIM({side or 'BOTH'} {column_name(node.expression)} FROM {value})"


@column_name.register
def _(node: exp.NullSafeNEQ) -> str:
    return f"(NOT ({column_name(node.this)} <=> {column_name(node.expression)}))"


@column_name.register
def _(node: exp.Tuple) -> str:
    named = [f"{_member(o, n)}, {column_name(o)}" for n, o in enumerate(node.expressions, 1)]
    return f"named_struct({', '.join(named)})"


def _member(node: exp.Expr, number: int) -> str:
    name = "" if isinstance(node, exp.Literal) else node.alias_or_name
    return name or f"col{number}"


@column_name.register
def _(node: exp.Exists) -> str:
    return "exists()" if isinstance(node.this, exp.Query) else _function("exists", [node.this])


@column_name.register
def _(node: exp.In) -> str:
    if not node.expressions:
        return f"({column_name(node.this)} IN (listquery()))"
    items = ", ".join(column_name(item) for item in node.expressions)
    return f"({column_name(node.this)} IN ({items}))"


@column_name.register
def _(node: exp.DPipe) -> str:
    return f"concat({column_name(node.this)}, {column_name(node.expression)})"


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
    if name == "from_json":
        if len(args) > 1 and args[1].name.lower().startswith("map<"):
            return "entries"
        args = args[:1]  # nor the type
    ignoring = ("first", "last", "any_value", "first_value", "last_value")
    if name in ignoring and len(args) == 2:
        args = args[:1]  # Spark does not show whether NULLs are left out
    return function_name(name, [column_name(a) for a in args])
