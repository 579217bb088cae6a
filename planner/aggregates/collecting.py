"""Aggregates that keep values: lists, sets, the value at an extreme, first and last, joined text."""

from __future__ import annotations

from stagecoach.planner.aggregates.function import AggregateFunction, Args
from stagecoach.planner.errors import AnalysisError, UnsupportedSqlError
from stagecoach.planner.functions.constant_arguments import require_constant
from stagecoach.planner.functions.nested_rules import has_kind
from stagecoach.planner.functions.spell_collections import order_key
from stagecoach.planner.plan.coercion import as_int, as_string
from stagecoach.planner.plan.expressions import AggregateCall, Literal
from stagecoach.planner.types import BINARY, INT, NULL, STRING, DataType, array_of


def _first(args: Args) -> DataType:
    return args[0].dtype


def _counted(args: Args) -> Args:
    """A value, its rank, and of how many rows."""
    if len(args) < 3:
        return args
    if args[2].dtype not in (INT, STRING, NULL) and not args[2].dtype.is_numeric:
        raise AnalysisError(f"expected a number of values, found {args[2].dtype}")
    return (*args[:2], as_int(require_constant(args[2], "the number of values")))


def _set(args: Args) -> Args:
    if has_kind(args[0].dtype, "map"):
        raise AnalysisError(f"a set of {args[0].dtype}: maps cannot be compared")
    return args


def _list(args: Args) -> DataType:
    return array_of(args[0].dtype)


def _by(args: Args) -> DataType:
    return array_of(args[0].dtype) if len(args) == 3 else args[0].dtype


def _collect_list(node: AggregateCall) -> str:
    del node
    return "coalesce(list({distinct}{0}) FILTER ({where} AND {0} IS NOT NULL), [])"


def _collect_set(node: AggregateCall) -> str | None:
    if has_kind(node.args[0].dtype, "float", "double", "void"):
        return None
    return "coalesce(list(DISTINCT {0}) FILTER ({where} AND {0} IS NOT NULL), [])"


def _union(args: Args) -> Args:
    if args[0].dtype.kind != "array":
        raise UnsupportedSqlError(f"collect_union of {args[0].dtype}, which Spark judges")
    return _set(args)


def _collect_union(node: AggregateCall) -> str | None:
    if has_kind(node.args[0].dtype, "float", "double", "void"):
        return None
    return "coalesce(list_distinct(flatten(list({0}) FILTER ({where} AND {0} IS NOT NULL))), [])"


def _loses_zeros(dtype: DataType) -> bool:
    """Whether DuckDB keeps one value of many as a sort key, in which -0.0 is 0.0."""
    return not dtype.is_atomic and has_kind(dtype, "float", "double")


def _at(function: str) -> AggregateFunction:
    def template(node: AggregateCall) -> str | None:
        if len(node.args) != 2 or node.distinct:
            return None
        if has_kind(node.args[1].dtype, "float", "double", "void"):
            return None
        if _loses_zeros(node.args[0].dtype):
            return None
        name = {"max_by": "arg_max_null", "min_by": "arg_min_null"}[function]
        # NOTE: of FLOAT, DuckDB keeps a sort key, which has no sign of zero; of DOUBLE the value.
        value = "CAST({0} AS DOUBLE)" if node.args[0].dtype.kind == "float" else "{0}"
        return f"{name}({value}, {order_key('{1}', node.args[1].dtype)}){{filter}}"

    return AggregateFunction(
        function, (2, 3), _by, coerce=_counted, template=template, proof="aggregates"
    )


def _positional(function: str, duckdb: str) -> AggregateFunction:
    def template(node: AggregateCall) -> str | None:
        if node.distinct or _loses_zeros(node.args[0].dtype):
            return None
        if node.ignore_nulls:
            return f"{duckdb}({{0}}) FILTER ({{where}} AND {{0}} IS NOT NULL)"
        return f"{duckdb}({{0}}){{filter}}"

    return AggregateFunction(
        function,
        (1, 1),
        _first,
        template=template,
        spark="{name}({0}, {ignore_nulls}){filter}",
        proof="aggregates",
    )


def _strings(args: Args) -> Args:
    if args[0].dtype == BINARY:
        if any(a.dtype not in (BINARY, NULL) for a in args[1:]):
            raise AnalysisError(
                f"the delimiter of a listagg of binaries must be a binary, not {args[1].dtype}"
            )
        return args
    delimiter = args[1] if len(args) > 1 else Literal(STRING, "")
    if not isinstance(delimiter, Literal):
        raise AnalysisError("listagg needs a constant delimiter")
    return (as_string(args[0]), delimiter)


def _listagg(node: AggregateCall) -> str | None:
    if node.dtype != STRING:
        return None
    return "string_agg({distinct}{0}, {1} {order}){filter}"


def _listagg_spark(node: AggregateCall) -> str:
    within = " WITHIN GROUP ({order})" if node.order else ""
    return f"listagg({{distinct}}{{args}}){within}{{filter}}"


AGGREGATES: tuple[AggregateFunction, ...] = (
    AggregateFunction("collect_list", (1, 1), _list, template=_collect_list, empty="[]", proof="aggregates"),
    AggregateFunction("collect_set", (1, 1), _list, coerce=_set, template=_collect_set, empty="[]", proof="aggregates"),
    AggregateFunction("collect_union", (1, 1), _first, coerce=_union, template=_collect_union, empty="[]", proof="aggregates"),
    _at("max_by"), _at("min_by"),
    _positional("first", "first"), _positional("last", "last"), _positional("any_value", "first"),
    AggregateFunction("listagg", (1, 2), _first, template=_listagg, spark=_listagg_spark, coerce=_strings, proof="aggregates"),
)  # fmt: skip
