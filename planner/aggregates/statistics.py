"""Statistical aggregates: variance, correlation, regression, percentiles, modes.

The results of floats are equal to Spark's to rounding; percentiles are equal exactly, because
DuckDB is told Spark's own formula (`Percentile.getPercentile`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from stagecoach.planner.aggregates.function import AggregateFunction, Args
from stagecoach.planner.errors import AnalysisError, UnsupportedSqlError
from stagecoach.planner.functions.constant_arguments import require_accuracy, require_shares
from stagecoach.planner.plan.expressions import AggregateCall, Call, Cast, Expression, Literal, cast
from stagecoach.planner.types import BIGINT, BOOLEAN, DOUBLE, NULL, STRING, DataType, array_of


def _fixed(dtype: DataType) -> Callable[[Args], DataType]:
    return lambda _: dtype


def _doubles(args: Args) -> Args:
    for arg in args:
        if not (arg.dtype.is_numeric or arg.dtype == NULL):
            raise UnsupportedSqlError(f"a statistic of {arg.dtype}")
    return tuple(cast(arg, DOUBLE) for arg in args)


def _statistic(
    name: str, template: str, arity: int = 1, *, guard: Callable[[str, AggregateCall], str]
) -> AggregateFunction:
    return AggregateFunction(
        name,
        (arity, arity),
        _fixed(DOUBLE),
        template=lambda node: guard(template, node),
        coerce=_doubles,
        proof="aggregates",
    )


def _plain(
    name: str, arity: int = 1, *, guard: Callable[[str, AggregateCall], str]
) -> AggregateFunction:
    return _statistic(name, f"{name}({{distinct}}{{args}}){{filter}}", arity, guard=guard)


# ---------------------------------------------------------------- NaN and infinity

_MAX_POWERED = "CAST(1e75 AS DOUBLE)"
"""Up to which fourth powers, and sums of very many of them, are finite."""


def _any(template: str, node: AggregateCall) -> str:
    """Of whatever values: DuckDB's result is Spark's with NaN and infinity among them, too."""
    del node
    return template


def _finite_only(template: str, node: AggregateCall) -> str:
    """NaN, infinity and what becomes it give other results in DuckDB: such a stage runs on Spark."""
    # NOTE: NaN is less than nothing, to DuckDB, too.
    odd = [f"bool_or(NOT abs({{{i}}}) < {_MAX_POWERED}){{filter}}" for i in _inexact(node)]
    if not odd:
        return template
    error = "CAST(error('not finite') AS {type})"
    return f"CASE WHEN {' OR '.join(odd)} THEN {error} ELSE {template} END"


def _single_too(template: str, node: AggregateCall) -> str:
    """Of one value DuckDB says 0, which for NaN and infinity is NaN in Spark."""
    if not _inexact(node):
        return template
    itself = "max({0}){filter} - max({0}){filter}"
    return f"{template} + CASE WHEN count({{distinct}}{{0}}){{filter}} = 1 THEN {itself} ELSE 0 END"


def _inexact(node: AggregateCall) -> list[int]:
    """The arguments that are not made of whole numbers or decimals, which are all finite."""
    return [
        i
        for i, arg in enumerate(node.args)
        if not isinstance(arg, Cast) or not (arg.arg.dtype.is_integral or arg.arg.dtype.is_decimal)
    ]


def _average(name: str, averaged: int) -> AggregateFunction:
    """An average over pairs, which to Spark is a decimal where the averaged values are."""

    def coerce(args: Args) -> Args:
        if args[averaged].dtype.is_decimal:
            raise UnsupportedSqlError(f"{name} of {args[averaged].dtype}")
        return _doubles(args)

    return replace(_plain(name, 2, guard=_any), coerce=coerce)


# ---------------------------------------------------------------- percentiles


def _shared(args: Args) -> Args:
    """A value and its percentages, and for `percentile` how often the value counts."""
    require_shares(args[1], "a percentile")
    if len(args) == 3 and not (args[2].dtype.is_integral or args[2].dtype == NULL):
        raise AnalysisError(
            f"the frequency of a percentile must be a whole number, not {args[2].dtype}"
        )
    return (*_doubles(args[:1]), _as_doubles(args[1]), *args[2:])


def _as_doubles(shares: Expression) -> Expression:
    """Literal percentages as doubles, for Spark takes no array of casts, which may be NULL."""
    if isinstance(shares, Call) and shares.function == "array":
        items = tuple(_as_doubles(item) for item in shares.args)
        return Call(array_of(DOUBLE), "array", items)
    if isinstance(shares, Literal) and shares.value is not None and shares.dtype.is_numeric:
        return Literal(DOUBLE, float(shares.value))
    return shares


def _deterministic(args: Args) -> Args:
    for flag in args[1:]:
        if not isinstance(flag, Literal) or not isinstance(flag.value, bool):
            raise AnalysisError("the second argument of 'mode' must be true or false")
    return args


def _approximated(args: Args) -> Args:
    value = args[0].dtype
    if value in (STRING, NULL):
        args = (cast(args[0], DOUBLE), *args[1:])
    elif not (value.is_numeric or value.is_datetime or value.is_interval):
        raise AnalysisError(f"percentile_approx of {value}")
    require_shares(args[1], "percentile_approx")
    if len(args) == 3:
        require_accuracy(args[2], "percentile_approx")
    return (args[0], _as_doubles(args[1]), *args[2:])


def shares(node: Expression) -> tuple[float, ...] | None:
    """The literal percentages of a percentile, each from 0 to 1; None if they are computed."""
    items = node.args if isinstance(node, Call) and node.function == "array" else (node,)
    values: list[float] = []
    for item in items:
        if not isinstance(item, Literal) or item.value is None:
            return None
        value = float(item.value)
        if not 0 <= value <= 1:
            raise AnalysisError(f"a percentage must be from 0 to 1, not {value}")
        values.append(value)
    return tuple(values)


def _percentile_type(args: Args) -> DataType:
    return array_of(DOUBLE) if args[1].dtype.kind == "array" else DOUBLE


def _interpolated(share: float, order: str) -> str:
    """The value at a share of the sorted values, between neighbours on a line."""
    values = (
        f"list({{distinct}}{{0}} ORDER BY {{0}} {order}) FILTER ({{where}} AND {{0}} IS NOT NULL)"
    )
    position = f"((len({values}) - 1) * CAST({share!r} AS DOUBLE))"
    low = f"({values})[CAST(floor({position}) AS BIGINT) + 1]"
    high = f"({values})[CAST(ceil({position}) AS BIGINT) + 1]"
    step = f"{low} + ({high} - {low}) * ({position} - floor({position}))"
    return f"CASE WHEN {low} = {high} THEN {low} ELSE {step} END"


def _descending(node: AggregateCall) -> bool:
    return bool(node.order) and not node.order[0].ascending


def _percentile(node: AggregateCall) -> str | None:
    given = shares(node.args[1])
    if given is None or len(node.args) > 2:
        return None
    order = "DESC" if _descending(node) else "ASC"
    texts = [_interpolated(share, order) for share in given]
    if node.dtype.kind != "array":
        return _finite(texts[0])
    return _finite(f"CASE WHEN count({{0}}){{filter}} > 0 THEN [{', '.join(texts)}] END")


def _finite(text: str) -> str:
    # Zeros of both signs are one value to Spark's counting, but two to a sorted list.
    zeros = "bool_or({0} = 0 AND signbit({0})){filter}"
    return f"CASE WHEN {zeros} THEN CAST(error('both zeros') AS {{type}}) ELSE {text} END"


def _percentile_disc(node: AggregateCall) -> str | None:
    given = shares(node.args[1])
    if given is None or len(node.args) > 2 or node.distinct or node.dtype.kind == "array":
        return None
    order = " ORDER BY {0} DESC" if _descending(node) else ""
    return _finite(f"quantile_disc({{0}}, CAST({given[0]!r} AS DOUBLE){order}){{filter}}")


def _median(node: AggregateCall) -> str | None:
    del node
    return _finite(_interpolated(0.5, "ASC"))


_ORDERED = "{name}({1}) WITHIN GROUP (ORDER BY {0} {direction}){filter}"


# ---------------------------------------------------------------- modes


def _mode(node: AggregateCall) -> str | None:
    """The most frequent value; of several the first in the order that was asked for."""
    if not node.args[0].dtype.is_atomic or node.args[0].dtype.is_floating:
        return None
    if len(node.args) > 1 and node.args[1] != Literal(BOOLEAN, True):
        return None  # of several values that are the most frequent Spark gives any
    sign, sort = ("", "list_reverse_sort") if _descending(node) else ("-", "list_sort")
    counts = "map_entries(histogram({0}){filter})"
    pairs = f"list_transform({counts}, lambda e: {{{{'c': {sign}CAST(e.value AS BIGINT), 'k': e.key}}}})"
    return f"({sort}({pairs}))[1].k"


def _mode_of_spark(node: AggregateCall) -> str:
    if not node.order:
        return "mode({args}){filter}"
    return "mode() WITHIN GROUP (ORDER BY {0} {direction}){filter}"


_SKEWNESS = (
    "CASE WHEN count({0}){filter} > 2 THEN skewness({0}){filter} * (count({0}){filter} - 2) / "
    "sqrt(count({0}){filter} * (count({0}){filter} - 1.0)) "
    "WHEN var_pop({0}){filter} > 0 THEN 0.0 END"
)
_NO_SLOPE = "CASE WHEN regr_sxx({0}, {1}){filter} = 0 THEN NULL ELSE "
_NO_CORRELATION = (
    "CASE WHEN regr_sxx({0}, {1}){filter} = 0 OR regr_syy({0}, {1}){filter} = 0 THEN NULL ELSE "
)

AGGREGATES: tuple[AggregateFunction, ...] = (
    _plain("stddev_samp", guard=_any), _plain("stddev_pop", guard=_single_too), _plain("var_samp", guard=_any), _plain("var_pop", guard=_single_too),
    _statistic("skewness", _SKEWNESS, guard=_finite_only),
    _statistic("kurtosis", "kurtosis_pop({distinct}{0}){filter}", guard=_finite_only),
    _statistic("corr", _NO_CORRELATION + "corr({0}, {1}){filter} END", 2, guard=_any),
    _plain("covar_samp", 2, guard=_finite_only), _plain("covar_pop", 2, guard=_finite_only),
    _average("regr_avgx", 1), _average("regr_avgy", 0),
    _plain("regr_sxx", 2, guard=_finite_only), _plain("regr_sxy", 2, guard=_finite_only), _plain("regr_syy", 2, guard=_finite_only),
    _plain("regr_intercept", 2, guard=_finite_only), _plain("regr_r2", 2, guard=_finite_only),
    _statistic("regr_slope", _NO_SLOPE + "regr_slope({0}, {1}){filter} END", 2, guard=_finite_only),
    AggregateFunction("regr_count", (2, 2), _fixed(BIGINT), template=lambda _: "regr_count({0}, {1}){filter}", coerce=_doubles, proof="aggregates"),
    AggregateFunction("percentile", (2, 3), _percentile_type, template=_percentile, coerce=_shared, proof="aggregates"),
    AggregateFunction("median", (1, 1), _fixed(DOUBLE), template=_median, coerce=_doubles, proof="aggregates"),
    AggregateFunction("percentile_cont", (2, 2), _percentile_type, template=_percentile, spark=_ORDERED, coerce=_shared, proof="aggregates"),
    AggregateFunction("percentile_disc", (2, 2), _percentile_type, template=_percentile_disc, spark=_ORDERED, coerce=_shared, proof="aggregates"),
    AggregateFunction("mode", (1, 2), lambda a: a[0].dtype, coerce=_deterministic, template=_mode, spark=_mode_of_spark, proof="aggregates"),
    AggregateFunction("approx_percentile", (2, 3), lambda a: array_of(a[0].dtype) if a[1].dtype.kind == "array" else a[0].dtype, coerce=_approximated, reason="its sketch differs from DuckDB's"),
)  # fmt: skip
