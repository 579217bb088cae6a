"""sqlglot scalar trees → typed expressions.

In: an AST node and a scope that resolves names and plans subqueries. Out: an `Expression` with all
of Spark's implicit casts. One small function a construct, found by the class of the node.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Protocol

from sqlglot import exp

from planner.aggregates import make_aggregate
from planner.coercion import (
    as_timestamp_like,
    cast_literal,
    comparable,
    date_text,
    decimal_literal_type,
    integer_literal_type,
)
from planner.errors import AnalysisError, SqlError, UnsupportedSqlError
from planner.expressions import (
    AggregateCall,
    Cast,
    Exists,
    Expression,
    InSubquery,
    Literal,
    Parameter,
    ScalarSubquery,
    cast,
    contains,
)
from planner.functions import make_call
from planner.logical import LogicalPlan
from planner.parse import StagecoachSpark, position
from planner.types import (
    BOOLEAN,
    DATE,
    DOUBLE,
    INTERVAL,
    NULL,
    STRING,
    TIMESTAMP,
    DataType,
    parse_type,
)


class Names(Protocol):
    """What a scalar needs of its surroundings."""

    def column(self, node: exp.Column) -> Expression:
        """The column or alias that the node names."""
        ...

    def subquery(self, query: exp.Query) -> LogicalPlan:
        """The plan of a subquery, whose free columns are columns of this scope."""
        ...

    def parameter(self, name: str) -> Parameter:
        """The declared parameter of that name."""
        ...

    def window(self, node: exp.Window) -> Expression:
        """The value of a window function."""
        ...


def build_scalar(node: exp.Expr, names: Names) -> Expression:
    """The typed expression of an AST node.

    Raises:
        AnalysisError: For an unknown name or wrong types, with line and column.
        UnsupportedSqlError: For what the planner does not know.
    """
    handler = _HANDLERS.get(type(node))
    if handler is None:
        raise UnsupportedSqlError(f"{_name(node)} is not known to the planner")
    try:
        return handler(node, names)
    except SqlError as error:
        if error.line is None:
            line, column = position(node)
            if line is not None:
                raise type(error)(error.message, line=line, column=column) from error
        raise


def _name(node: exp.Expr) -> str:
    if isinstance(node, exp.Anonymous):
        return f"function '{node.name}'"
    if isinstance(node, exp.Func):
        return f"function '{node.sql_name().lower()}'"
    return f"'{node.sql(dialect=StagecoachSpark)}'"


def _literal(node: exp.Literal, names: Names) -> Expression:
    del names
    if node.is_string:
        return Literal(STRING, node.this)
    text = str(node.this)
    if "e" in text.lower():
        return Literal(DOUBLE, float(text))
    if "." in text:
        return Literal(decimal_literal_type(text), _plain(Decimal(text)))
    value = int(text)
    dtype = integer_literal_type(value)
    return Literal(dtype, str(value) if dtype.is_decimal else value)


def _plain(value: Decimal) -> str:
    return format(value, "f")


def _negate(node: exp.Neg, names: Names) -> Expression:
    inner = build_scalar(node.this, names)
    if isinstance(inner, Literal) and inner.dtype == INTERVAL:
        return _interval_literal(*(-n for n in _interval_parts(inner)))
    if isinstance(inner, Literal) and isinstance(inner.value, int | float):
        return Literal(inner.dtype, -inner.value)
    if isinstance(inner, Literal) and inner.dtype.is_decimal:
        value = -Decimal(str(inner.value))
        if inner.dtype.scale == 0 and value == -(2**63):
            return Literal(integer_literal_type(-(2**63)), -(2**63))
        return Literal(inner.dtype, _plain(value))
    return make_call("negate", inner)


def _cast(node: exp.Cast, names: Names) -> Expression:
    arg = build_scalar(node.this, names)
    dtype = parse_type(node.to.sql(dialect=StagecoachSpark).lower())
    safe = isinstance(node, exp.TryCast)
    if arg == Literal(STRING, arg.value if isinstance(arg, Literal) else None) and dtype == DATE:
        return _date_literal(arg, safe)
    if safe:
        return Cast(dtype, arg, safe=True)
    return cast_literal(arg, dtype)


def _date_literal(arg: Expression, safe: bool) -> Expression:
    text = date_text(str(arg.value)) if isinstance(arg, Literal) else None
    return Literal(DATE, text) if text else Cast(DATE, arg, safe=safe)


_UNITS = {
    "year": (12, 0, 0),
    "quarter": (3, 0, 0),
    "month": (1, 0, 0),
    "week": (0, 7, 0),
    "day": (0, 1, 0),
}
_MICROS = {"hour": 3_600_000_000, "minute": 60_000_000, "second": 1_000_000}


def _interval(node: exp.Interval, names: Names) -> Expression:
    del names
    unit = str(node.unit).lower().removesuffix("s") if node.unit else ""
    amount = node.this.name if isinstance(node.this, exp.Literal) else ""
    if isinstance(node.this, exp.Neg):
        amount = f"-{node.this.this.name}"
    try:
        count = int(amount)
    except ValueError:
        raise UnsupportedSqlError("an interval that is not a whole number of one unit") from None
    if unit in _UNITS:
        return _interval_literal(*(count * n for n in _UNITS[unit]))
    if unit in _MICROS:
        return _interval_literal(0, 0, count * _MICROS[unit])
    raise UnsupportedSqlError(f"an interval of '{unit}'")


def _interval_literal(months: int, days: int, micros: int) -> Literal:
    return Literal(INTERVAL, f"{months} {days} {micros}")


def _interval_parts(literal: Literal) -> tuple[int, int, int]:
    months, days, micros = (int(n) for n in str(literal.value).split())
    return months, days, micros


def _plus(node: exp.Add | exp.Sub, names: Names) -> Expression:
    left, right = build_scalar(node.this, names), build_scalar(node.expression, names)
    minus = isinstance(node, exp.Sub)
    if left.dtype == INTERVAL and not minus:
        left, right = right, left
    if right.dtype == INTERVAL:
        return _shift_time(left, right, -1 if minus else 1)
    if left.dtype == DATE and right.dtype.is_integral:
        return make_call("date_sub" if minus else "date_add", left, right)
    if right.dtype == DATE and left.dtype.is_integral and not minus:
        return make_call("date_add", right, left)
    if left.dtype.is_datetime and right.dtype.is_datetime:
        raise UnsupportedSqlError("a difference of dates is an interval")
    return make_call("subtract" if minus else "add", left, right)


def _shift_time(moment: Expression, interval: Expression, sign: int) -> Expression:
    if not isinstance(interval, Literal):
        raise UnsupportedSqlError("arithmetic on computed intervals")
    months, days, micros = (sign * n for n in _interval_parts(interval))
    if moment.dtype == STRING:
        raise UnsupportedSqlError("an interval is added to a string")
    if moment.dtype == DATE and not micros:
        if months:
            return make_call("add_months", moment, Literal(parse_type("int"), months))
        return make_call("date_add", moment, Literal(parse_type("int"), days))
    as_timestamp_like(moment)
    raise UnsupportedSqlError("an interval is added to a timestamp")


def _connector(name: str) -> Callable[[exp.Connector, Names], Expression]:
    def build(node: exp.Connector, names: Names) -> Expression:
        return make_call(name, *(build_scalar(part, names) for part in node.flatten()))

    return build


def _binary(name: str) -> Callable[[exp.Binary, Names], Expression]:
    def build(node: exp.Binary, names: Names) -> Expression:
        _refuse_unused(node, ("expression",))
        return make_call(name, build_scalar(node.this, names), build_scalar(node.expression, names))

    return build


def _like(name: str) -> Callable[[exp.Like | exp.ILike, Names], Expression]:
    def build(node: exp.Like | exp.ILike, names: Names) -> Expression:
        _refuse_unused(node, ("expression", "negate"))
        matched = make_call(
            name, build_scalar(node.this, names), build_scalar(node.expression, names)
        )
        return make_call("not", matched) if node.args.get("negate") else matched

    return build


def _args(name: str, *keys: str) -> Callable[[exp.Expr, Names], Expression]:
    """A function whose arguments stand in these slots of the node; absent ones are left out."""

    def build(node: exp.Expr, names: Names) -> Expression:
        nodes: list[exp.Expr] = []
        for key in keys:
            value = node.args.get(key)
            nodes.extend(value if isinstance(value, list) else [value] if value is not None else [])
        _refuse_unused(node, keys)
        return make_call(name, *(build_scalar(part, names) for part in nodes))

    return build


_HARMLESS = frozenset(
    {
        "this",
        "big_int",
        "dialect",
        "safe",
        "coalesce",
        "null_safe",
        "is_string",
        "is_nvl",
        "zone",
        "ignore_nulls",
    }
)


def _refuse_unused(node: exp.Expr, keys: tuple[str, ...]) -> None:
    for key, value in node.args.items():
        if value and key not in keys and key not in _HARMLESS:
            raise UnsupportedSqlError(f"{_name(node)} with {key}")


def _unwrap_time(node: exp.Expr) -> exp.Expr:
    """Removes sqlglot's marker for arguments that may be text or a date."""
    while isinstance(node, exp.TsOrDsToDate) and not node.args.get("format"):
        node = node.this
    return node


def _field(name: str) -> Callable[[exp.Func, Names], Expression]:
    return lambda node, names: make_call(
        name, _time_argument(build_scalar(_unwrap_time(node.this), names))
    )


def _time_argument(arg: Expression) -> Expression:
    return cast_literal(arg, DATE) if isinstance(arg, Literal) and arg.dtype == STRING else arg


_EXTRACT = {"dayofweek": "dayofweek", "dow": "dayofweek", "doy": "dayofyear", "week": "weekofyear"}


def _extract(node: exp.Extract, names: Names) -> Expression:
    unit = node.this.name.lower()
    if unit in ("second", "seconds"):
        raise UnsupportedSqlError("extract(SECOND) is a decimal")
    arg = build_scalar(_unwrap_time(node.expression), names)
    return make_call(_EXTRACT.get(unit, unit), arg)


def _date_shift(sign: int) -> Callable[[exp.Func, Names], Expression]:
    def build(node: exp.Func, names: Names) -> Expression:
        unit = node.args.get("unit")
        if unit is not None and unit.name.upper() != "DAY":
            raise UnsupportedSqlError(f"date arithmetic in {unit.name}")
        moment = build_scalar(_unwrap_time(node.this), names)
        amount = build_scalar(node.expression, names)
        if amount.dtype == INTERVAL:
            return _shift_time(moment, amount, sign)
        return make_call("date_add" if sign > 0 else "date_sub", _time_argument(moment), amount)

    return build


def _date_diff(node: exp.DateDiff, names: Names) -> Expression:
    unit = node.args.get("unit")
    if unit is not None and unit.name.upper() != "DAY":
        raise UnsupportedSqlError(f"a date difference in {unit.name}")
    left, right = (build_scalar(_unwrap_time(n), names) for n in (node.this, node.expression))
    return make_call("datediff", left, right)


def _to_date(node: exp.TsOrDsToDate, names: Names) -> Expression:
    if node.args.get("format"):
        raise UnsupportedSqlError("to_date with a format")
    return cast_literal(build_scalar(node.this, names), DATE)


_TRUNC_UNITS = {"YYYY": "YEAR", "YY": "YEAR", "MM": "MONTH", "MON": "MONTH"}


def _trunc(args: tuple[Expression, ...]) -> Expression:
    if len(args) == 2 and isinstance(args[1], Literal) and args[1].dtype == STRING:
        unit = str(args[1].value).upper()
        args = (_time_argument(args[0]), Literal(STRING, _TRUNC_UNITS.get(unit, unit)))
    return make_call("trunc", *args)


def _in(node: exp.In, names: Names) -> Expression:
    arg = node.this
    operands = arg.expressions if isinstance(arg, exp.Tuple) else [arg]
    query = node.args.get("query")
    if query is not None:
        args = tuple(build_scalar(o, names) for o in operands)
        return _in_subquery(args, names.subquery(_query_of(query)))
    if node.args.get("unnest") or node.args.get("field") or len(operands) != 1:
        raise UnsupportedSqlError("IN over rows")
    value = build_scalar(operands[0], names)
    items = [build_scalar(item, names) for item in node.expressions]
    if value.dtype.is_datetime or value.dtype.is_numeric:
        items = [comparable(value, i)[1] if i.dtype == STRING else i for i in items]
    return make_call("in", value, *items)


def _in_subquery(args: tuple[Expression, ...], plan: LogicalPlan) -> Expression:
    if len(args) != len(plan.columns):
        raise AnalysisError(f"IN compares {len(args)} values with {len(plan.columns)} columns")
    pairs = [comparable(a, c.ref) for a, c in zip(args, plan.columns, strict=True)]
    if any(right != column.ref for (_, right), column in zip(pairs, plan.columns, strict=True)):
        raise UnsupportedSqlError("IN casts the columns of its subquery")
    return InSubquery(BOOLEAN, plan, tuple(left for left, _ in pairs))


def _query_of(node: exp.Expr) -> exp.Query:
    query = node.unnest() if isinstance(node, exp.Subquery) else node
    if not isinstance(query, exp.Query):
        raise UnsupportedSqlError("a subquery that is no SELECT")
    return query


def _exists(node: exp.Exists, names: Names) -> Expression:
    return Exists(BOOLEAN, names.subquery(_query_of(node.this)))


def _scalar_subquery(node: exp.Subquery, names: Names) -> Expression:
    plan = names.subquery(_query_of(node))
    if len(plan.columns) != 1:
        raise AnalysisError(f"a scalar subquery has one column, not {len(plan.columns)}")
    return ScalarSubquery(plan.columns[0].dtype, plan)


def _between(node: exp.Between, names: Names) -> Expression:
    value = build_scalar(node.this, names)
    low, high = (build_scalar(node.args[key], names) for key in ("low", "high"))
    return make_call("and", make_call("ge", value, low), make_call("le", value, high))


def _is(node: exp.Is, names: Names) -> Expression:
    value = build_scalar(node.this, names)
    other = node.expression
    if isinstance(other, exp.Null):
        return make_call("is_null", value)
    if isinstance(other, exp.Boolean):
        return make_call("eq_null_safe", value, Literal(BOOLEAN, bool(other.this)))
    raise UnsupportedSqlError("IS with an expression")


def _not(node: exp.Not, names: Names) -> Expression:
    inner = build_scalar(node.this, names)
    if getattr(inner, "function", None) == "is_null":
        return make_call("is_not_null", *inner.children)
    return make_call("not", inner)


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


def _if(node: exp.If, names: Names) -> Expression:
    false = node.args.get("false")
    otherwise = build_scalar(false, names) if false is not None else Literal(NULL, None)
    test, value = build_scalar(node.this, names), build_scalar(node.args["true"], names)
    return make_call("case", test, value, otherwise)


def _trim(node: exp.Trim, names: Names) -> Expression:
    if node.args.get("expression"):
        raise UnsupportedSqlError("TRIM of given characters")
    where = str(node.args.get("position") or "").upper()
    name = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(where, "trim")
    return make_call(name, build_scalar(node.this, names))


def _pad(node: exp.Pad, names: Names) -> Expression:
    parts = [node.this, node.expression, node.args.get("fill_pattern")]
    name = "lpad" if node.args.get("is_left") else "rpad"
    return make_call(name, *(build_scalar(p, names) for p in parts if p is not None))


def _concat(node: exp.Expr, names: Names) -> Expression:
    parts = node.expressions if isinstance(node, exp.Concat) else list(node.flatten())
    return make_call("concat", *(build_scalar(p, names) for p in parts))


def _aggregate(name: str, *keys: str) -> Callable[[exp.AggFunc, Names], Expression]:
    def build(node: exp.AggFunc, names: Names) -> Expression:
        _refuse_unused(node, (*keys, "expressions") if name == "count" else keys)
        operands = [node.args[k] for k in keys or ("this",) if node.args.get(k) is not None]
        distinct = isinstance(operands[0], exp.Distinct) if operands else False
        if distinct:
            operands = operands[0].expressions
        operands += [item for item in node.expressions if name == "count"]
        for operand in operands:
            if isinstance(operand, exp.Order | exp.Limit | exp.IgnoreNulls | exp.RespectNulls):
                raise UnsupportedSqlError(f"{name} with {operand.key.upper()}")
        if len(operands) == 1 and isinstance(operands[0], exp.Star):
            if distinct:
                raise UnsupportedSqlError(f"{name}(DISTINCT *)")
            operands = []
        return _aggregate_call(name, tuple(build_scalar(o, names) for o in operands), distinct)

    return build


def _aggregate_call(name: str, args: tuple[Expression, ...], distinct: bool) -> Expression:
    if any(contains(a, AggregateCall) for a in args):
        raise AnalysisError(f"an aggregate inside the aggregate '{name}'")
    if name == "count" and len(args) == 1 and isinstance(args[0], Literal) and not distinct:
        args = () if args[0].value is not None else args
    if name == "count_if":
        return make_aggregate("count", (), where=args[0])
    return make_aggregate(name, args, distinct=distinct)


def _filter(node: exp.Filter, names: Names) -> Expression:
    inner = build_scalar(node.this, names)
    if not isinstance(inner, AggregateCall):
        raise AnalysisError("FILTER stands behind an aggregate only")
    where = build_scalar(node.expression.this, names)
    if where.dtype not in (BOOLEAN, NULL):
        raise AnalysisError(f"FILTER needs a boolean, found {where.dtype}")
    if inner.where is not None:
        where = make_call("and", inner.where, where)
    return AggregateCall(inner.dtype, inner.function, inner.args, inner.distinct, where)


def _placeholder(node: exp.Placeholder, names: Names) -> Expression:
    if node.name in ("", "?"):
        raise AnalysisError("positional parameters are not supported; use :name")
    return names.parameter(node.name)


def _anonymous(node: exp.Anonymous, names: Names) -> Expression:
    name = node.name.lower()
    if (
        name in ("bigint", "int", "double", "float", "string", "date", "boolean")
        and len(node.expressions) == 1
    ):
        return cast(build_scalar(node.expressions[0], names), parse_type(name))
    if name in ("some", "any"):
        return make_aggregate("bool_or", tuple(build_scalar(a, names) for a in node.expressions))
    if name == "every":
        return make_aggregate("bool_and", tuple(build_scalar(a, names) for a in node.expressions))
    args = tuple(build_scalar(a, names) for a in node.expressions)
    return _trunc(args) if name == "trunc" else make_call(name, *args)


def _clock(dtype: DataType) -> Callable[[exp.Expr, Names], Expression]:
    return lambda node, names: Parameter(dtype, "@date" if dtype == DATE else "@now")


_HANDLERS: dict[type[exp.Expr], Callable[..., Expression]] = {
    exp.Column: lambda node, names: names.column(node),
    exp.Literal: _literal,
    exp.Null: lambda node, names: Literal(NULL, None),
    exp.Boolean: lambda node, names: Literal(BOOLEAN, bool(node.this)),
    exp.Paren: lambda node, names: build_scalar(node.this, names),
    exp.Alias: lambda node, names: build_scalar(node.this, names),
    exp.Neg: _negate,
    exp.Cast: _cast,
    exp.TryCast: _cast,
    exp.Interval: _interval,
    exp.Add: _plus,
    exp.Sub: _plus,
    exp.Mul: _binary("multiply"),
    exp.Div: _binary("divide"),
    exp.IntDiv: _binary("div"),
    exp.Mod: _binary("mod"),
    exp.And: _connector("and"),
    exp.Or: _connector("or"),
    exp.Not: _not,
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
    exp.RegexpLike: _args("rlike", "this", "expression"),
    exp.In: _in,
    exp.Exists: _exists,
    exp.Subquery: _scalar_subquery,
    exp.Between: _between,
    exp.Is: _is,
    exp.Case: _case,
    exp.If: _if,
    exp.Coalesce: _args("coalesce", "this", "expressions"),
    exp.Nullif: _args("nullif", "this", "expression"),
    exp.Greatest: _args("greatest", "this", "expressions"),
    exp.Least: _args("least", "this", "expressions"),
    exp.Substring: _args("substring", "this", "start", "length"),
    exp.Length: _args("length", "this"),
    exp.Upper: _args("upper", "this"),
    exp.Lower: _args("lower", "this"),
    exp.Initcap: _args("initcap", "this"),
    exp.Reverse: _args("reverse", "this"),
    exp.Trim: _trim,
    exp.Left: _args("left", "this", "expression"),
    exp.Right: _args("right", "this", "expression"),
    exp.Replace: _args("replace", "this", "expression", "replacement"),
    exp.Pad: _pad,
    exp.RegexpReplace: _args("regexp_replace", "this", "expression", "replacement"),
    exp.Concat: _concat,
    exp.DPipe: _concat,
    exp.Contains: _args("contains", "this", "expression"),
    exp.StartsWith: _args("startswith", "this", "expression"),
    exp.EndsWith: _args("endswith", "this", "expression"),
    exp.Abs: _args("abs", "this"),
    exp.Round: _args("round", "this", "decimals"),
    exp.Ceil: _args("ceil", "this"),
    exp.Floor: _args("floor", "this"),
    exp.Sqrt: _args("sqrt", "this"),
    exp.Exp: _args("exp", "this"),
    exp.Ln: _args("ln", "this"),
    exp.Pow: _args("power", "this", "expression"),
    exp.Year: _field("year"),
    exp.Month: _field("month"),
    exp.Day: _field("day"),
    exp.DayOfMonth: _field("day"),
    exp.Quarter: _field("quarter"),
    exp.DayOfYear: _field("dayofyear"),
    exp.WeekOfYear: _field("weekofyear"),
    exp.DayOfWeek: _field("dayofweek"),
    exp.Hour: _field("hour"),
    exp.Minute: _field("minute"),
    exp.Second: _field("second"),
    exp.Extract: _extract,
    exp.TsOrDsAdd: _date_shift(1),
    exp.DateAdd: _date_shift(1),
    exp.DateSub: _date_shift(-1),
    exp.AddMonths: _args("add_months", "this", "expression"),
    exp.LastDay: _args("last_day", "this"),
    exp.DateDiff: _date_diff,
    exp.TsOrDsToDate: _to_date,
    exp.CurrentDate: _clock(DATE),
    exp.CurrentTimestamp: _clock(TIMESTAMP),
    exp.Placeholder: _placeholder,
    exp.Anonymous: _anonymous,
    exp.Filter: _filter,
    exp.Window: lambda node, names: names.window(node),
    exp.Count: _aggregate("count"),
    exp.CountIf: _aggregate("count_if"),
    exp.Sum: _aggregate("sum"),
    exp.Avg: _aggregate("avg"),
    exp.Min: _aggregate("min"),
    exp.Max: _aggregate("max"),
    exp.LogicalAnd: _aggregate("bool_and"),
    exp.LogicalOr: _aggregate("bool_or"),
    exp.First: _aggregate("first"),
    exp.Last: _aggregate("last"),
    exp.AnyValue: _aggregate("any_value"),
    exp.Median: _aggregate("median"),
    exp.ArgMax: _aggregate("max_by", "this", "expression"),
    exp.ArgMin: _aggregate("min_by", "this", "expression"),
    exp.ArrayAgg: _aggregate("collect_list"),
    exp.ArrayUniqueAgg: _aggregate("collect_set"),
    exp.ApproxDistinct: _aggregate("approx_count_distinct"),
    exp.StddevSamp: _aggregate("stddev_samp"),
    exp.Stddev: _aggregate("stddev_samp"),
    exp.StddevPop: _aggregate("stddev_pop"),
    exp.Variance: _aggregate("var_samp"),
    exp.VariancePop: _aggregate("var_pop"),
    exp.Corr: _aggregate("corr", "this", "expression"),
    exp.CovarSamp: _aggregate("covar_samp", "this", "expression"),
    exp.CovarPop: _aggregate("covar_pop", "this", "expression"),
}
