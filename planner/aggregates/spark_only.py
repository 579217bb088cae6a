"""Aggregates that only Spark computes, mostly sketches.

As with functions, a new one needs its signature under the reason (`functions.signatures`).
"""

from __future__ import annotations

from collections.abc import Callable

from stagecoach.planner.aggregates.function import AggregateFunction, Args
from stagecoach.planner.functions.signatures import each, signature
from stagecoach.planner.types import (
    BIGINT,
    BINARY,
    DOUBLE,
    INT,
    STRING,
    DataType,
    Field,
    array_of,
    struct_of,
)

_SKETCH = "a sketch of Apache DataSketches"
_VECTORS = "its vectors of floats are summed in Spark's order"

# By reason; a result type that depends on the arguments is in `_RESULTS`.
_SIGNATURES: dict[str, tuple[str, ...]] = {
    _SKETCH: (
        "approx_top_k(any, [int], [int])",
        "approx_top_k_accumulate(any, [int])",
        "approx_top_k_combine(struct, [int])",
        "hll_sketch_agg(int | bigint | string | binary, [int]) -> binary",
        "hll_union_agg(binary, [boolean]) -> binary",
        *each(("bigint", "double", "float"), "kll_merge_agg_{type}(binary, [int]) -> binary"),
        "kll_sketch_agg_bigint(whole, [int]) -> binary",
        "kll_sketch_agg_double(float | double, [int]) -> binary",
        "kll_sketch_agg_float(float, [int]) -> binary",
        "theta_intersection_agg(binary) -> binary",
        "theta_sketch_agg(any, [int]) -> binary",
        "theta_union_agg(binary, [int]) -> binary",
        "tuple_sketch_agg_double(any, number, [int], [string]) -> binary",
        "tuple_sketch_agg_integer(any, int, [int], [string]) -> binary",
        *each(
            ("double", "integer"),
            "tuple_intersection_agg_{type}(binary, [string]) -> binary",
            "tuple_union_agg_{type}(binary, [int], [string]) -> binary",
        ),
    ),
    "its sketch is Spark's own": ("count_min_sketch(any, share, share, int) -> binary",),
    "its bins depend on the order in which Spark merges them": ("histogram_numeric(any, int)",),
    "DuckDB has no VARIANT of Spark's format": ("schema_of_variant_agg(variant) -> string",),
    _VECTORS: (
        "vector_avg(array<float>) -> array<float>",
        "vector_sum(array<float>) -> array<float>",
    ),
}
# NULL over no rows; what the others give cannot be written as a constant.
_NULL_OVER_NO_ROWS = ("histogram_numeric", "vector_avg", "vector_sum")


def _counted(args: Args) -> DataType:
    return array_of(struct_of((Field("item", args[0].dtype), Field("count", BIGINT))))


def _state(args: Args) -> DataType:
    return struct_of(
        (
            Field("sketch", BINARY),
            Field("maxItemsTracked", INT),
            Field("itemDataType", args[0].dtype),
            Field("itemDataTypeDDL", STRING),
        )
    )


def _bins(args: Args) -> DataType:
    return array_of(struct_of((Field("x", args[0].dtype), Field("y", DOUBLE))))


def _first(args: Args) -> DataType:
    return args[0].dtype


_RESULTS: dict[str, Callable[[Args], DataType]] = {
    "approx_top_k": _counted,
    "approx_top_k_accumulate": _state,
    "approx_top_k_combine": _first,
    "histogram_numeric": _bins,
}


def _row(text: str, reason: str) -> AggregateFunction:
    found = signature(text)
    return AggregateFunction(
        found.name,
        found.arity,
        _RESULTS.get(found.name, found.result_type),
        coerce=found.check,
        empty=None if found.name in _NULL_OVER_NO_ROWS else "unknown",
        reason=reason,
    )


AGGREGATES: tuple[AggregateFunction, ...] = tuple(
    _row(text, reason) for reason, texts in _SIGNATURES.items() for text in texts
)
