"""Functions that match texts with patterns."""

from __future__ import annotations

from stagecoach.planner.functions import rules as rule
from stagecoach.planner.functions import spell_patterns as spell
from stagecoach.planner.functions import spell_strings as text
from stagecoach.planner.functions.constant_arguments import require_constant
from stagecoach.planner.functions.function import Args, Function, listed
from stagecoach.planner.plan.coercion import as_int
from stagecoach.planner.plan.expressions import Literal
from stagecoach.planner.types import BOOLEAN, INT, STRING, array_of


def _grouped(args: Args) -> Args:
    group = as_int(args[2]) if len(args) == 3 else Literal(INT, 1)
    return (*rule.strings(args[:2]), group)


def _escaped(args: Args) -> Args:
    for escape in args[2:]:
        require_constant(escape, "the character of ESCAPE")
    return rule.strings(args)


def _replaced(args: Args) -> Args:
    for position in args[3:]:
        require_constant(position, "the position of regexp_replace")
    return rule.strings3_int(args)


FUNCTIONS: tuple[Function, ...] = (
    Function("like", (2, 3), _escaped, rule.fixed(BOOLEAN), text.spark_like, text.like, text.refuse_like, "like"),
    Function("rlike", (2, 2), rule.strings, rule.fixed(BOOLEAN), "({0} RLIKE {1})", spell.rlike, spell.refuse(end=True), "patterns"),
    Function("regexp_extract", (2, 3), _grouped, rule.fixed(STRING), listed("regexp_extract({*})"), spell.extract, spell.refuse_extract, "patterns"),
    Function("regexp_extract_all", (2, 3), _grouped, rule.fixed(array_of(STRING)), listed("regexp_extract_all({*})"), spell.extract_all, spell.refuse_extract, "patterns"),
    Function("regexp_replace", (3, 4), _replaced, rule.fixed(STRING), listed("regexp_replace({*})"), spell.replace, spell.refuse_replace, "patterns"),
    Function("regexp_count", (2, 2), rule.strings, rule.fixed(INT), "regexp_count({0}, {1})", spell.count, spell.refuse(empty=False), "patterns"),
    Function("regexp_substr", (2, 2), rule.strings, rule.fixed(STRING), "regexp_substr({0}, {1})", spell.substr, spell.refuse(), "patterns"),
    Function("regexp_instr", (2, 3), rule.strings_int, rule.fixed(INT), listed("regexp_instr({*})"), spell.instr, spell.refuse(start=False), "patterns"),
    Function("split", (2, 3), rule.strings_int, rule.fixed(array_of(STRING)), listed("split({*})"), spell.split, spell.refuse_split, "patterns"),
)  # fmt: skip
