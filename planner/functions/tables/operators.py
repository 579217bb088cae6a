"""Operators: arithmetic, comparison, boolean logic, conditionals."""

from __future__ import annotations

from stagecoach.planner.functions import duckdb as duck
from stagecoach.planner.functions import rules as rule
from stagecoach.planner.functions import spell_decimals as decimals
from stagecoach.planner.functions import spell_numbers as spell
from stagecoach.planner.functions.function import Function, listed
from stagecoach.planner.plan.expressions import Call
from stagecoach.planner.types import BIGINT, BOOLEAN, NULL


def _infix(name: str, operator: str) -> Function:
    return Function(
        name, (2, 2), rule.comparison, rule.fixed(BOOLEAN), f"({{0}} {operator} {{1}})",
        duck.compare(operator), refuse=duck.without_maps, proof="comparison",
    )  # fmt: skip


def _nary(name: str, operator: str) -> Function:
    def joined(node: Call) -> str:
        return "(" + f" {operator} ".join(f"{{{i}}}" for i in range(len(node.args))) + ")"

    return Function(
        name, (1, 1 << 20), rule.booleans, rule.fixed(BOOLEAN), joined, joined, proof="boolean"
    )


def _in_list(node: Call) -> str:
    return "({0} IN (" + ", ".join(f"{{{i}}}" for i in range(1, len(node.args))) + "))"


def _case_text(node: Call) -> str:
    pairs = range(0, len(node.args) - 1, 2)
    whens = " ".join(f"WHEN {{{i}}} THEN {{{i + 1}}}" for i in pairs)
    return f"CASE {whens} ELSE {{{len(node.args) - 1}}} END"


def _nullif(node: Call) -> str:
    if len(node.args) == 2:
        return "nullif({0}, {1})"
    return "CASE WHEN {1} = {2} THEN NULL ELSE {0} END"


FUNCTIONS: tuple[Function, ...] = (
    Function("add", (2, 2), rule.arithmetic, rule.add_type, "({0} + {1})", duck.add("add", "+"), duck.refuse_add("add"), "arithmetic"),
    Function("subtract", (2, 2), rule.arithmetic, rule.add_type, "({0} - {1})", duck.add("subtract", "-"), duck.refuse_add("subtract"), "arithmetic"),
    Function("multiply", (2, 2), rule.arithmetic, rule.multiply_type, "({0} * {1})", duck.multiply, proof="arithmetic"),
    Function("divide", (2, 2), rule.division, rule.divide_type, "({0} / {1})", duck.divide, decimals.refuse("divide"), "division"),
    Function("div", (2, 2), rule.integral_division, rule.fixed(BIGINT), "({0} div {1})", spell.int_divide, decimals.refuse("div"), "division"),
    Function("mod", (2, 2), rule.arithmetic, rule.mod_type, "({0} % {1})", spell.mod, decimals.refuse("mod"), "division"),
    Function("negate", (1, 1), rule.numeric, rule.first_type, "(- {0})", duck.negated("negate", "(- {0})"), proof="arithmetic"),
    Function("abs", (1, 1), rule.numeric, rule.first_type, "abs({0})", duck.negated("abs", "abs({0})"), proof="arithmetic"),
    _infix("eq", "="), _infix("ne", "<>"), _infix("lt", "<"), _infix("le", "<="), _infix("gt", ">"), _infix("ge", ">="),
    Function("eq_null_safe", (2, 2), rule.comparison, rule.fixed(BOOLEAN), "({0} <=> {1})", "({0} IS NOT DISTINCT FROM {1})", duck.without_maps, "comparison"),
    _nary("and", "AND"), _nary("or", "OR"),
    Function("not", (1, 1), rule.booleans, rule.fixed(BOOLEAN), "(NOT {0})", "(NOT {0})", proof="boolean"),
    Function("is_null", (1, 1), rule.unchanged, rule.fixed(BOOLEAN), "({0} IS NULL)", "({0} IS NULL)", proof="boolean"),
    Function("is_not_null", (1, 1), rule.unchanged, rule.fixed(BOOLEAN), "({0} IS NOT NULL)", "({0} IS NOT NULL)", proof="boolean"),
    Function("in", (2, 1 << 20), rule.membership, rule.fixed(BOOLEAN), _in_list, _in_list, duck.without_maps, "comparison"),
    Function("case", (3, 1 << 20), rule.case_branches, rule.last_type, _case_text, _case_text, proof="conditional"),
    Function("coalesce", (1, 1 << 20), rule.unified_for("COALESCE"), rule.first_type, listed("coalesce({*})"), listed("coalesce({*})"), proof="conditional"),
    Function("nullif", (2, 2), rule.value_and_comparison, rule.first_type, _nullif, _nullif, duck.without_maps, "conditional"),
    Function("greatest", (2, 1 << 20), rule.extremes("GREATEST"), rule.first_type, listed("greatest({*})"), spell.extreme("greatest"), spell.refuse_extreme, "conditional"),
    Function("least", (2, 1 << 20), rule.extremes("LEAST"), rule.first_type, listed("least({*})"), spell.extreme("least"), spell.refuse_extreme, "conditional"),
    Function("assert_true", (1, 2), lambda a: (*rule.conditions(a[:1]), *rule.strings(a[1:])), rule.fixed(NULL), listed("assert_true({*})"), "CASE WHEN {0} THEN NULL ELSE CAST(error('USER_RAISED_EXCEPTION') AS INTEGER) END", proof="conditional"),
    Function("raise_error", (1, 1), rule.strings, rule.fixed(NULL), "raise_error({0})", "CAST(error('USER_RAISED_EXCEPTION') AS INTEGER)", proof="conditional"),
)  # fmt: skip
