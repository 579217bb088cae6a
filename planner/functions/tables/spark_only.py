"""Functions that only Spark computes: their stage runs on Spark, and the rest of the query does not.

To add one, write its signature under the reason (`functions.signatures`). Nothing else is needed.
"""

from __future__ import annotations

from collections.abc import Callable

from stagecoach.planner.errors import UnsupportedSqlError
from stagecoach.planner.functions.function import Args, Function, listed
from stagecoach.planner.functions.signatures import constant_text, each, signature
from stagecoach.planner.functions.tables.json import schema_type
from stagecoach.planner.plan.coercion import cast_literal
from stagecoach.planner.plan.expressions import Call, Literal
from stagecoach.planner.types import DOUBLE, DataType, Field, array_of, parse_column_type, struct_of

_SKETCH = "a sketch of Apache DataSketches"
_VARIANT = "DuckDB has no VARIANT of Spark's format"
_XML = "XML is read by Java's libraries"
_PLACE = "DuckDB has no GEOGRAPHY and GEOMETRY of Spark's format"
_SESSION = "only Spark's session knows it"
_CIPHER = "DuckDB has no such cipher"

_KLL_TYPES = ("bigint", "double", "float")

# By reason; a result type that depends on the arguments is in `_RESULTS`.
_SIGNATURES: dict[str, tuple[str, ...]] = {
    _SKETCH: (
        "approx_top_k_estimate(struct, [int])",
        "hll_sketch_estimate(binary) -> bigint",
        "hll_union(binary, binary, [boolean]) -> binary",
        *each(
            _KLL_TYPES,
            "kll_sketch_get_n_{type}(binary) -> bigint",
            "kll_sketch_get_quantile_{type}(binary, share | nested)",
            "kll_sketch_get_rank_{type}(binary, number | nested)",
            "kll_sketch_merge_{type}(binary, binary) -> binary",
            "kll_sketch_to_string_{type}(binary) -> string",
        ),
        "theta_difference(binary, binary) -> binary",
        "theta_intersection(binary, binary) -> binary",
        "theta_sketch_estimate(binary) -> bigint",
        "theta_union(binary, binary, [int]) -> binary",
        *each(
            {"double": "double", "integer": "bigint"},
            "tuple_difference_{type}(binary, binary) -> binary",
            "tuple_difference_theta_{type}(binary, binary) -> binary",
            "tuple_intersection_{type}(binary, binary, [string]) -> binary",
            "tuple_intersection_theta_{type}(binary, binary, [string]) -> binary",
            "tuple_sketch_estimate_{type}(binary) -> double",
            "tuple_sketch_summary_{type}(binary, [string]) -> {total}",
            "tuple_sketch_theta_{type}(binary) -> double",
            "tuple_union_{type}(binary, binary, [int], [string]) -> binary",
            "tuple_union_theta_{type}(binary, binary, [int], [string]) -> binary",
        ),
    ),
    _VARIANT: (
        "is_valid_variant(variant) -> boolean",
        "is_variant_null(variant) -> boolean",
        "parse_json(string) -> variant",
        "schema_of_variant(variant) -> string",
        "to_variant_object(nested) -> variant",
        "try_parse_json(string) -> variant",
        "try_variant_array_append(variant, string, any) -> variant",
        "try_variant_get(variant, string, string)",
        "try_variant_insert(variant, string, any) -> variant",
        "try_variant_set(variant, string, any, [boolean]) -> variant",
        "variant_array_append(variant, string, any) -> variant",
        "variant_delete(variant, string) -> variant",
        "variant_get(variant, string, string)",
        "variant_insert(variant, string, any) -> variant",
        "variant_set(variant, string, any, [boolean]) -> variant",
        "variant_strip_nulls(variant, [boolean]) -> variant",
    ),
    _XML: (
        "from_xml(string, string, [map<string,string>])",
        "schema_of_xml(string, [map<string,string>]) -> string",
        "to_xml(struct | variant, [map<string,string>]) -> string",
        "xpath(string, string) -> array<string>",
        "xpath_boolean(string, string) -> boolean",
        "xpath_double(string, string) -> double",
        "xpath_float(string, string) -> float",
        "xpath_int(string, string) -> int",
        "xpath_long(string, string) -> bigint",
        "xpath_number(string, string) -> double",
        "xpath_short(string, string) -> smallint",
        "xpath_string(string, string) -> string",
    ),
    _PLACE: (
        "st_asbinary(place, [string]) -> binary",
        "st_geogfromwkb(binary) -> geography(4326)",
        "st_geomfromwkb(binary, [int])",
        "st_setsrid(place, int)",
        "st_srid(place) -> int",
    ),
    _SESSION: (
        "current_catalog() -> string",
        "current_database() -> string",
        "current_path() -> string",
        "current_user() -> string",
        "version() -> string",
    ),
}


def _frequent_items(args: Args) -> DataType:
    """Items and their counts, of a state that has an item's type as its third member."""
    members = args[0].dtype.fields
    if len(members) != 4:
        raise UnsupportedSqlError(f"approx_top_k_estimate of {args[0].dtype}")
    counted = (Field("item", members[2].dtype), Field("count", parse_column_type("bigint")))
    return array_of(struct_of(counted))


def _per_item(item: str) -> Callable[[Args], DataType]:
    """One value for a number, an array of values for an array."""

    def result(args: Args) -> DataType:
        dtype = parse_column_type(item)
        return array_of(dtype) if args[1].dtype.kind == "array" else dtype

    return result


def _named(args: Args) -> DataType:
    return parse_column_type(constant_text(args, 2, "the type of variant_get"))


def _reference_system(args: Args, position: int) -> int:
    """The number of a spatial reference system, which is part of a type."""
    given = args[position] if position < len(args) else Literal(parse_column_type("int"), 0)
    if not isinstance(given, Literal) or not isinstance(given.value, int):
        raise UnsupportedSqlError("a spatial reference system that is not a literal")
    return given.value


def _geometry(args: Args) -> DataType:
    return parse_column_type(f"geometry({_reference_system(args, 1)})")


def _moved(args: Args) -> DataType:
    return parse_column_type(f"{args[0].dtype.kind.split('(')[0]}({_reference_system(args, 1)})")


_RESULTS: dict[str, Callable[[Args], DataType]] = {
    "approx_top_k_estimate": _frequent_items,
    "from_xml": schema_type,
    "st_geomfromwkb": _geometry,
    "st_setsrid": _moved,
    "try_variant_get": _named,
    "variant_get": _named,
    **{f"kll_sketch_get_quantile_{t}": _per_item(t) for t in _KLL_TYPES},
    **{f"kll_sketch_get_rank_{t}": _per_item("double") for t in _KLL_TYPES},
}


def _ranked(check: Callable[[Args], Args]) -> Callable[[Args], Args]:
    """Literal ranks as doubles, because Spark takes no array of casts, which may be NULL."""

    def coerce(args: Args) -> Args:
        sketch, rank = check(args)
        if isinstance(rank, Call) and rank.function == "array":
            items = tuple(cast_literal(item, DOUBLE) for item in rank.args)
            return sketch, Call(array_of(DOUBLE), "array", items)
        return sketch, cast_literal(rank, DOUBLE) if rank.dtype.is_decimal else rank

    return coerce


def _row(text: str, reason: str) -> Function:
    found = signature(text)
    result = _RESULTS.get(found.name, found.result_type)
    coerce = _ranked(found.check) if "get_quantile" in found.name else found.check
    spark = listed(f"{found.name}({{*}})")
    return Function(found.name, found.arity, coerce, result, spark, reason=reason)


FUNCTIONS: tuple[Function, ...] = tuple(
    _row(text, reason) for reason, texts in _SIGNATURES.items() for text in texts
)
