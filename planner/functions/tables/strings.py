"""Functions of strings and binaries.

One table of `Function` rows; the rules are in `planner.functions.function`.
"""

from __future__ import annotations

from collections.abc import Callable

from planner.functions import duckdb as duck
from planner.functions import rules as rule
from planner.functions.function import Args, Function, listed
from planner.types import BOOLEAN, INT, STRING, DataType


def _spark_only(
    name: str, arity: tuple[int, int], coerce: Callable[[Args], Args], result: DataType
) -> Function:
    return Function(name, arity, coerce, rule.fixed(result), listed(f"{name}({{*}})"))


FUNCTIONS: tuple[Function, ...] = (
    Function("like", (2, 2), rule.strings, rule.fixed(BOOLEAN), "({0} LIKE {1})", "({0} LIKE {1})", duck.pattern_is_plain, "like"),
    Function("ilike", (2, 2), rule.strings, rule.fixed(BOOLEAN), "({0} ILIKE {1})"),
    Function("contains", (2, 2), rule.strings, rule.fixed(BOOLEAN), "contains({0}, {1})", "contains({0}, {1})", proof="strings"),
    Function("startswith", (2, 2), rule.strings, rule.fixed(BOOLEAN), "startswith({0}, {1})", "starts_with({0}, {1})", proof="strings"),
    Function("endswith", (2, 2), rule.strings, rule.fixed(BOOLEAN), "endswith({0}, {1})", "ends_with({0}, {1})", proof="strings"),
    Function("rlike", (2, 2), rule.strings, rule.fixed(BOOLEAN), "({0} RLIKE {1})"),
    Function("concat", (1, 1 << 20), rule.strings, rule.fixed(STRING), listed("concat({*})"), lambda n: "(" + " || ".join(f"{{{i}}}" for i in range(len(n.args))) + ")", proof="strings"),
    Function("substring", (2, 3), rule.string_ints, rule.fixed(STRING), listed("substring({*})"), duck.substring, duck.refuse_substring, "strings"),
    Function("length", (1, 1), rule.strings, rule.fixed(INT), "length({0})", "CAST(length({0}) AS INTEGER)", proof="strings"),
    Function("replace", (2, 3), rule.replacement, rule.fixed(STRING), listed("replace({*})"), listed("replace({*})"), proof="strings"),
    Function("upper", (1, 1), rule.strings, rule.fixed(STRING), "upper({0})", None),
    Function("lower", (1, 1), rule.strings, rule.fixed(STRING), "lower({0})", None),
    Function("trim", (1, 1), rule.strings, rule.fixed(STRING), "trim({0})", None),
    Function("ltrim", (1, 1), rule.strings, rule.fixed(STRING), "ltrim({0})", None),
    Function("rtrim", (1, 1), rule.strings, rule.fixed(STRING), "rtrim({0})", None),
    Function("left", (2, 2), rule.string_ints, rule.fixed(STRING), "left({0}, {1})", "left({0}, CASE WHEN {1} < 0 THEN 0 ELSE {1} END)", proof="strings"),
    Function("right", (2, 2), rule.string_ints, rule.fixed(STRING), "right({0}, {1})", "right({0}, CASE WHEN {1} < 0 THEN 0 ELSE {1} END)", proof="strings"),
    Function("lpad", (3, 3), rule.string_int_string, rule.fixed(STRING), listed("lpad({*})"), None),
    Function("rpad", (3, 3), rule.string_int_string, rule.fixed(STRING), listed("rpad({*})"), None),
    Function("regexp_replace", (3, 3), rule.strings, rule.fixed(STRING), listed("regexp_replace({*})"), None),
    _spark_only("initcap", (1, 1), rule.strings, STRING), _spark_only("reverse", (1, 1), rule.strings, STRING),
    _spark_only("md5", (1, 1), rule.unchanged, STRING),
)  # fmt: skip
