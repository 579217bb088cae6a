"""Aggregates of bitmaps: 4,096 bytes, whose bits are the positions 0 to 32,767, the lowest first."""

from __future__ import annotations

from collections.abc import Callable

from stagecoach.planner.aggregates.function import AggregateFunction
from stagecoach.planner.functions.signatures import signature
from stagecoach.planner.plan.expressions import AggregateCall

_SIZE = 4096
_BLANK = {"bit_or": f"unhex(repeat('00', {_SIZE}))", "bit_and": f"unhex(repeat('FF', {_SIZE}))"}


def _constructed(node: AggregateCall) -> str:
    # A list of distinct positions has at most 32,768.
    del node
    outside = f"bool_or({{0}} < 0 OR {{0}} >= {8 * _SIZE}){{filter}}"
    positions = "list(DISTINCT CAST({0} AS BIGINT)) FILTER ({where} AND {0} IS NOT NULL)"
    return (
        f"CASE WHEN {outside} THEN CAST(error('INVALID_BITMAP_POSITION') AS {{type}}) "
        f"ELSE java_bitmap_of(coalesce({positions}, CAST([] AS BIGINT[]))) END"
    )


def _merged(function: str) -> AggregateFunction:
    def template(node: AggregateCall) -> str:
        del node
        zeros = f"array_slice({_BLANK['bit_or']}, 1, {_SIZE} - octet_length({{0}}))"
        long = f"bool_or(octet_length({{0}}) > {_SIZE}){{filter}}"
        # DuckDB compares bits of one length only.
        bits = f"CASE WHEN octet_length({{0}}) <= {_SIZE} THEN CAST({{0}} || {zeros} AS BIT) END"
        return (
            f"CASE WHEN {long} THEN CAST(error('SPARK_ONLY') AS {{type}}) "
            f"ELSE coalesce(CAST({function}({bits}){{filter}} AS BLOB), {_BLANK[function]}) END"
        )

    name = {"bit_or": "bitmap_or_agg", "bit_and": "bitmap_and_agg"}[function]
    return _bitmap(f"{name}(binary) -> binary", template)


def _bitmap(text: str, template: Callable[[AggregateCall], str]) -> AggregateFunction:
    """The aggregate of a signature."""
    found = signature(text)
    return AggregateFunction(
        found.name,
        found.arity,
        found.result_type,
        coerce=found.check,
        template=template,
        empty="unknown",
        proof="aggregates",
    )


AGGREGATES: tuple[AggregateFunction, ...] = (
    _bitmap("bitmap_construct_agg(whole) -> binary", _constructed),
    _merged("bit_or"),
    _merged("bit_and"),
)
