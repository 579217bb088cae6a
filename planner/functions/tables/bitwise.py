"""Functions of bits."""

from __future__ import annotations

from stagecoach.planner.errors import AnalysisError
from stagecoach.planner.functions import rules as rule
from stagecoach.planner.functions import spell_bits as spell
from stagecoach.planner.functions.function import Args, Function
from stagecoach.planner.types import BIGINT, BINARY, BOOLEAN, INT, TINYINT


def _counted(args: Args) -> Args:
    return args if args[0].dtype == BOOLEAN else rule.integer(args)


def _one_binary(args: Args) -> Args:
    if args[0].dtype != BINARY:
        raise AnalysisError(f"expected a binary, found {args[0].dtype}")
    return rule.binaries(args)


FUNCTIONS: tuple[Function, ...] = (
    Function("bit_and", (2, 2), rule.integers, rule.first_type, "({0} & {1})", "({0} & {1})", proof="bits"),
    Function("bit_or", (2, 2), rule.integers, rule.first_type, "({0} | {1})", "({0} | {1})", proof="bits"),
    Function("bit_xor", (2, 2), rule.integers, rule.first_type, "({0} ^ {1})", "xor({0}, {1})", proof="bits"),
    Function("bit_not", (1, 1), rule.integer, rule.first_type, "(~ {0})", "(~ {0})", proof="bits"),
    Function("shiftleft", (2, 2), rule.shifted, rule.first_type, "shiftleft({0}, {1})", spell.shift_left, proof="bits"),
    Function("shiftright", (2, 2), rule.shifted, rule.first_type, "shiftright({0}, {1})", spell.shift_right, proof="bits"),
    Function("shiftrightunsigned", (2, 2), rule.shifted, rule.first_type, "shiftrightunsigned({0}, {1})", spell.shift_right_unsigned, proof="bits"),
    Function("bit_count", (1, 1), _counted, rule.fixed(INT), "bit_count({0})", spell.bit_count, proof="bits"),
    Function("bit_get", (2, 2), rule.integer, rule.fixed(TINYINT), "bit_get({0}, {1})", spell.bit_get, proof="bits"),
    Function("bitmap_bit_position", (1, 1), rule.bigints, rule.fixed(BIGINT), "bitmap_bit_position({0})", "CAST(CASE WHEN {0} > 0 THEN ({0} - 1) % 32768 ELSE -CAST({0} AS HUGEINT) % 32768 END AS BIGINT)", proof="bits"),
    Function("bitmap_bucket_number", (1, 1), rule.bigints, rule.fixed(BIGINT), "bitmap_bucket_number({0})", "CAST(CASE WHEN {0} > 0 THEN 1 + ({0} - 1) // 32768 ELSE {0} // 32768 END AS BIGINT)", proof="bits"),
    Function("bitmap_count", (1, 1), _one_binary, rule.fixed(BIGINT), "bitmap_count({0})", "CASE WHEN octet_length({0}) = 0 THEN CAST(0 AS BIGINT) ELSE CAST(bit_count(CAST({0} AS BIT)) AS BIGINT) END", proof="bits"),
)  # fmt: skip
