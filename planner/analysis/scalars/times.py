"""Build functions of dates and timestamps that have a syntax of their own.

Examples are `EXTRACT(YEAR FROM d)` and `dateadd(DAY, 1, d)`. `current_date` and `now` become
parameters that are bound when the query runs.
"""

from __future__ import annotations

from sqlglot import exp

from stagecoach.planner.analysis.scalars.handlers import Names, build_scalar, builds, handles
from stagecoach.planner.analysis.scalars.intervals import is_interval
from stagecoach.planner.errors import AnalysisError, UnsupportedSqlError
from stagecoach.planner.functions import make_call
from stagecoach.planner.functions.macros.times import MACROS, NOW, TODAY
from stagecoach.planner.functions.spell_times import UNIT_MICROS, UNIT_MONTHS
from stagecoach.planner.plan.expressions import Expression, Literal
from stagecoach.planner.types import INT, INTERVAL, STRING, interval_fields

_FIELDS = {
    "year": ("y", "years", "yr", "yrs"),
    "quarter": ("qtr",),
    "month": ("mon", "mons", "months"),
    "weekofyear": ("week", "w", "weeks"),
    "day": ("d", "days"),
    "dayofweek": ("dow",),
    "dayofyear": ("doy",),
    "hour": ("h", "hours", "hr", "hrs"),
    "yearofweek": (),
    "minute": ("m", "min", "mins", "minutes"),
    "second_with_fraction": ("second", "s", "sec", "seconds", "secs"),
    "iso": ("dayofweek_iso", "dow_iso"),
}
# By what is written; the names of functions that Spark does not take as fields are left out.
_FIELD_OF = {
    word: field
    for field, words in _FIELDS.items()
    for word in (
        *words,
        *(
            (field,)
            if field not in ("weekofyear", "dayofyear", "iso", "second_with_fraction")
            else ()
        ),
    )
}
_INTERVAL_FIELDS = {
    "year": "interval_years",
    "month": "interval_months",
    "day": "interval_days",
    "hour": "interval_hours",
    "minute": "interval_minutes",
    "second_with_fraction": "interval_seconds",
}


def _field_of(name: str, source: Expression) -> Expression:
    """A field of a moment or an interval.

    Raises:
        AnalysisError: For a field that the type does not have.
    """
    field = _FIELD_OF.get(name.lower())
    if source.dtype == INTERVAL:
        raise UnsupportedSqlError("a field of a calendar interval")
    if source.dtype.is_interval:
        units = ("year", "month", "day", "hour", "minute", "second")
        first, last = (units.index(f) for f in interval_fields(source.dtype))
        within = units[first : last + 1]
        if field not in _INTERVAL_FIELDS or str(field).split("_")[0] not in within:
            raise AnalysisError(f"there is no field {name} in an {source.dtype}")
        return make_call(_INTERVAL_FIELDS[field], source)
    if field is None:
        raise AnalysisError(f"there is no field {name} in a {source.dtype}")
    if field == "iso":
        return make_call("add", make_call("weekday", source), Literal(INT, 1))
    return make_call(field, source)


@handles(exp.Extract)
def _extract(node: exp.Extract, names: Names) -> Expression:
    return _field_of(node.this.name, build_scalar(node.expression, names))


@builds("date_part", "datepart")
def _date_part(node: exp.Anonymous, names: Names) -> Expression:
    if len(node.expressions) != 2:
        raise AnalysisError(f"function '{node.name}' takes 2 arguments")
    field = node.expressions[0]
    if not isinstance(field, exp.Literal) or not field.is_string:
        raise UnsupportedSqlError(f"{node.name} of a computed field")
    return _field_of(str(field.this), build_scalar(node.expressions[1], names))


def _unit(node: exp.Expr) -> Literal:
    name = node.name.upper() if isinstance(node, exp.Column | exp.Var) else ""
    if name not in UNIT_MICROS and name not in UNIT_MONTHS:
        raise UnsupportedSqlError(f"the unit {node.sql()}")
    return Literal(STRING, name)


@builds("date_add", "dateadd", "date_sub", "timestampadd")
def _date_shift(node: exp.Anonymous, names: Names) -> Expression:
    name = node.name.lower()
    if len(node.expressions) == 3 and name != "date_sub":
        unit, *rest = node.expressions
        return make_call("timestampadd", _unit(unit), *(build_scalar(a, names) for a in rest))
    if len(node.expressions) != 2 or name == "timestampadd":
        raise AnalysisError(f"function '{name}' takes 2 arguments, or 3 with a unit")
    moment, amount = (build_scalar(a, names) for a in node.expressions)
    if is_interval(amount.dtype):
        raise AnalysisError(f"'{name}' takes a number of days; use + or - for an interval")
    return make_call("date_sub" if name == "date_sub" else "date_add", moment, amount)


@builds("datediff", "date_diff", "timestampdiff", "timediff")
def _date_diff(node: exp.Anonymous, names: Names) -> Expression:
    name = node.name.lower()
    if len(node.expressions) == 3:
        unit, *rest = node.expressions
        return make_call("timestampdiff", _unit(unit), *(build_scalar(a, names) for a in rest))
    if name in ("timestampdiff", "timediff"):
        raise AnalysisError(f"function '{name}' takes 3 arguments")
    return make_call("datediff", *(build_scalar(a, names) for a in node.expressions))


WORDS_OF_FUNCTIONS = (exp.CurrentDate, exp.CurrentTimestamp, exp.CurrentUser, exp.SessionUser)
"""Functions that are called without parentheses, where no column has their name."""


@handles(exp.CurrentDate)
def _today(node: exp.CurrentDate, names: Names) -> Expression:
    # Without parentheses: a column of that name hides the function.
    return names.find([node.sql_name().lower()]) or TODAY


@handles(exp.CurrentTimestamp)
def _now(node: exp.CurrentTimestamp, names: Names) -> Expression:
    return names.find([node.sql_name().lower()]) or NOW


@handles(exp.CurrentUser, exp.SessionUser)
def _user(node: exp.CurrentUser | exp.SessionUser, names: Names) -> Expression:
    return names.find([node.sql_name().lower()]) or make_call("current_user")


@handles(exp.Localtimestamp)
def _local(node: exp.Expr, names: Names) -> Expression:
    del node, names
    return MACROS["localtimestamp"](())


@handles(exp.AtTimeZone)
def _at_time_zone(node: exp.AtTimeZone, names: Names) -> Expression:
    del node, names
    raise UnsupportedSqlError("AT TIME ZONE")


_UNSTAGED = {
    **dict.fromkeys(
        (
            "current_time",
            "localtime",
            "make_time",
            "time",
            "time_diff",
            "time_from_micros",
            "time_from_millis",
            "time_from_seconds",
            "time_to_micros",
            "time_to_millis",
            "time_to_seconds",
            "time_trunc",
            "to_time",
            "try_to_time",
        ),
        "a value of type TIME",
    ),
    "timestamp_nanos": "a timestamp of nanoseconds",
    "unix_nanos": "a timestamp of nanoseconds",
}


@builds(*_UNSTAGED)
def _unstaged(node: exp.Anonymous, names: Names) -> Expression:
    del names
    reason = _UNSTAGED[node.name.lower()]
    raise UnsupportedSqlError(f"function '{node.name.lower()}': {reason} is not staged")
