"""Spell Spark's bit and digit functions for DuckDB.

DuckDB's shifts raise when bits are lost, so they are carried out on 128 bits.
"""

from __future__ import annotations

from stagecoach.planner.functions.spell_strings import int_of
from stagecoach.planner.plan.expressions import Call

_BITS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}


def _signed(text: str, bits: int) -> str:
    """The signed number of `bits` bits whose two's complement is the not negative HUGEINT."""
    top, size = 1 << (bits - 1), 1 << bits
    return f"CAST(CASE WHEN {text} >= {top} THEN {text} - {size} ELSE {text} END AS {{type}})"


def _unsigned(bits: int) -> str:
    wide = "CAST({0} AS HUGEINT)"
    return f"CASE WHEN {{0}} < 0 THEN {wide} + {1 << bits} ELSE {wide} END"


def shift_left(node: Call) -> str:
    """SHIFTLEFT: bits that leave are lost, and the amount is taken modulo the width."""
    bits = _BITS[node.dtype.kind]
    left = f"CAST({bits} - ({{1}} & {bits - 1}) AS INTEGER)"
    kept = f"(({_unsigned(bits)}) % (CAST(1 AS HUGEINT) << {left}))"
    return _signed(f"({kept} * (CAST(1 AS HUGEINT) << ({{1}} & {bits - 1})))", bits)


def shift_right(node: Call) -> str:
    """SHIFTRIGHT keeps the sign."""
    bits = _BITS[node.dtype.kind]
    return f"CAST({{0}} >> CAST({{1}} & {bits - 1} AS {{type}}) AS {{type}})"


def shift_right_unsigned(node: Call) -> str:
    """SHIFTRIGHTUNSIGNED fills with zeros."""
    bits = _BITS[node.dtype.kind]
    return _signed(f"(({_unsigned(bits)}) // (CAST(1 AS HUGEINT) << ({{1}} & {bits - 1})))", bits)


def bit_count(node: Call) -> str:
    """BIT_COUNT of 64 bits."""
    if node.args[0].dtype.kind == "boolean":
        return "CAST({0} AS INTEGER)"
    return "CAST(bit_count(CAST({0} AS BIGINT)) AS INTEGER)"


def bit_get(node: Call) -> str:
    """BIT_GET; a position out of range raises."""
    bits = _BITS[node.args[0].dtype.kind]
    return (
        f"CASE WHEN {{0}} IS NULL OR {{1}} IS NULL THEN NULL WHEN {{1}} < 0 OR {{1}} >= {bits} "
        "THEN CAST(error('INVALID_BIT_POSITION') AS TINYINT) "
        "ELSE CAST(CAST(CAST({0} AS BIGINT) >> CAST({1} AS BIGINT) AS BIGINT) & 1 AS TINYINT) END"
    )


def conv(node: Call) -> str:
    """CONV of plain digits that surely fit 63 bits; an error for all others."""
    source, target = int_of(node.args[1]) or 10, int_of(node.args[2]) or 10
    digits = "0123456789abcdefghijklmnopqrstuvwxyz"[:source]
    most = 1
    while source ** (most + 1) < 1 << 62:
        most += 1
    value = (
        "list_reduce(list_prepend(CAST(0 AS BIGINT), list_transform(string_split(lower({0}), ''), "
        f"lambda c: CAST(instr('{digits}', c) - 1 AS BIGINT))), lambda a, c: a * {source} + c)"
    )
    return (
        f"CASE WHEN regexp_full_match({{0}}, '(?i)[{digits}]{{{{1,{most}}}}}') "
        f"THEN to_base({value}, {target}) "
        "WHEN {0} IS NOT NULL THEN CAST(error('SPARK_ONLY') AS VARCHAR) END"
    )


def refuse_conv(node: Call) -> str | None:
    """Only literal bases, to an unsigned number."""
    bases = [int_of(a) for a in node.args[1:]]
    if any(b is None or not 2 <= b <= 36 for b in bases):
        return "the base is not a literal from 2 to 36"
    return None
