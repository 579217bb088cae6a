"""Functions of vectors, which are arrays of floats.

Spark adds doubles up, eight elements at a time, and rounds the result to a float. A NULL element
makes the result NULL. Source: Spark's `VectorFunctionImplUtils`.
"""

from __future__ import annotations

from stagecoach.planner.functions.function import Function, listed
from stagecoach.planner.functions.signatures import signature
from stagecoach.planner.functions.spell_collections import let
from stagecoach.planner.plan.expressions import Call

_ADD = "lambda x_, y_: x_ + y_"
_EIGHTS = (
    "list_transform(range(len(t_) // 8), "
    f"lambda i_: list_reduce(list_slice(t_, 8 * i_ + 1, 8 * i_ + 8), {_ADD}))"
)
_REST = "list_slice(t_, len(t_) // 8 * 8 + 1, len(t_))"


def _sum(lists: str, item: str) -> str:
    terms = f"list_transform({lists}, lambda z_: {item})"
    return let([("t_", terms)], f"list_reduce({_EIGHTS} || {_REST}, {_ADD}, CAST(0 AS DOUBLE))")


def _product(left: int, right: int) -> str:
    """The sum of the products of two vectors, of which one may be both."""
    if left == right:
        return _sum(f"{{{left}}}", "CAST(z_ AS DOUBLE) * CAST(z_ AS DOUBLE)")
    pairs = f"list_zip({{{left}}}, {{{right}}})"
    return _sum(pairs, "CAST(z_[1] AS DOUBLE) * CAST(z_[2] AS DOUBLE)")


def _of_two(body: str) -> str:
    """The value for vectors of one length; others raise."""
    return (
        "CASE WHEN {0} IS NULL OR {1} IS NULL THEN NULL WHEN len({0}) <> len({1}) "
        "THEN CAST(error('VECTOR_DIMENSION_MISMATCH') AS {type}) "
        f"ELSE CAST({body} AS {{type}}) END"
    )


_DIFFERENCE = "(CAST(z_[1] AS DOUBLE) - CAST(z_[2] AS DOUBLE))"
_DISTANCE = f"sqrt({_sum('list_zip({0}, {1})', f'{_DIFFERENCE} * {_DIFFERENCE}')})"
_LENGTH = f"sqrt({_product(0, 0)})"
_COSINE = (
    f"CASE WHEN {_product(0, 0)} * {_product(1, 1)} = 0 THEN NULL "
    f"ELSE {_product(0, 1)} / sqrt({_product(0, 0)} * {_product(1, 1)}) END"
)
_NORMALIZED = (
    "CASE WHEN len({0}) = 0 THEN {0} "
    f"WHEN {_LENGTH} <> 0 THEN list_transform({{0}}, lambda w_: CAST(w_ / {_LENGTH} AS FLOAT)) END"
)


def _refuse_degree(node: Call) -> str | None:
    return None if len(node.args) == 1 else f"the degree of {node.function} is not proven"


def _row(text: str, duckdb: str) -> Function:
    found = signature(text)
    refuse = _refuse_degree if found.arity == (1, 2) else (lambda _: None)
    spark = listed(f"{found.name}({{*}})")
    return Function(
        found.name, found.arity, found.check, found.result_type, spark, duckdb, refuse, "vectors"
    )


FUNCTIONS: tuple[Function, ...] = (
    _row("vector_cosine_similarity(array<float>, array<float>) -> float", _of_two(_COSINE)),
    _row("vector_inner_product(array<float>, array<float>) -> float", _of_two(_product(0, 1))),
    _row("vector_l2_distance(array<float>, array<float>) -> float", _of_two(_DISTANCE)),
    _row("vector_norm(array<float>, [float]) -> float", f"CAST({_LENGTH} AS {{type}})"),
    _row("vector_normalize(array<float>, [float]) -> array<float>", _NORMALIZED),
)
