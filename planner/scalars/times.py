"""Functions of time whose arguments are not plain scalars: units, fields, intervals.

In: calls such as `extract(YEAR FROM d)` or `dateadd(MONTH, 3, d)`. Out: calls of the registry.
"""

from __future__ import annotations

from sqlglot import exp

from planner.coercion import cast_literal
from planner.errors import UnsupportedSqlError
from planner.expressions import Expression, Literal, Parameter
from planner.functions import make_call
from planner.scalars.handlers import Names, build_scalar, builds, handles
from planner.scalars.intervals import shift_time
from planner.types import DATE, INTERVAL, STRING, TIMESTAMP

_FIELDS = {"dayofweek": "dayofweek", "dow": "dayofweek", "doy": "dayofyear", "week": "weekofyear"}
_TRUNC_UNITS = {"YYYY": "YEAR", "YY": "YEAR", "MM": "MONTH", "MON": "MONTH"}


def _time_argument(arg: Expression) -> Expression:
    return cast_literal(arg, DATE) if isinstance(arg, Literal) and arg.dtype == STRING else arg


@builds(
    "year", "month", "day", "dayofmonth", "quarter", "dayofyear", "weekofyear", "dayofweek",
    "weekday", "hour", "minute", "second",
)  # fmt: skip
def _field(node: exp.Anonymous, names: Names) -> Expression:
    name = "day" if node.name.lower() == "dayofmonth" else node.name.lower()
    return make_call(name, *(_time_argument(build_scalar(a, names)) for a in node.expressions))


@handles(exp.Extract)
def _extract(node: exp.Extract, names: Names) -> Expression:
    unit = node.this.name.lower()
    if unit in ("second", "seconds"):
        raise UnsupportedSqlError("extract(SECOND) is a decimal")
    return make_call(_FIELDS.get(unit, unit), build_scalar(node.expression, names))


@builds("date_add", "dateadd", "date_sub")
def _date_shift(node: exp.Anonymous, names: Names) -> Expression:
    if len(node.expressions) != 2:
        raise UnsupportedSqlError("date arithmetic in a unit")
    moment, amount = (build_scalar(a, names) for a in node.expressions)
    back = node.name.lower() == "date_sub"
    if amount.dtype == INTERVAL:
        return shift_time(moment, amount, -1 if back else 1)
    return make_call("date_sub" if back else "date_add", _time_argument(moment), amount)


@builds("datediff", "date_diff")
def _date_diff(node: exp.Anonymous, names: Names) -> Expression:
    if len(node.expressions) != 2:
        raise UnsupportedSqlError("a date difference in a unit")
    return make_call("datediff", *(build_scalar(a, names) for a in node.expressions))


@builds("to_date", "date")
def _to_date(node: exp.Anonymous, names: Names) -> Expression:
    if len(node.expressions) != 1:
        raise UnsupportedSqlError("to_date with a format")
    return cast_literal(build_scalar(node.expressions[0], names), DATE)


@builds("trunc")
def _trunc(node: exp.Anonymous, names: Names) -> Expression:
    args = tuple(build_scalar(a, names) for a in node.expressions)
    if len(args) == 2 and isinstance(args[1], Literal) and args[1].dtype == STRING:
        unit = str(args[1].value).upper()
        args = (_time_argument(args[0]), Literal(STRING, _TRUNC_UNITS.get(unit, unit)))
    return make_call("trunc", *args)


@handles(exp.CurrentDate)
@builds("current_date", "curdate")
def _today(node: exp.Expr, names: Names) -> Expression:
    del node, names
    return Parameter(DATE, "@date")


@handles(exp.CurrentTimestamp)
@builds("current_timestamp", "now")
def _now(node: exp.Expr, names: Names) -> Expression:
    del node, names
    return Parameter(TIMESTAMP, "@now")
