"""Functions that read a member: of a struct, an array or a map."""

from __future__ import annotations

from stagecoach.planner.functions import nested_rules as rule
from stagecoach.planner.functions import spell_collections as spell
from stagecoach.planner.functions.function import Function
from stagecoach.planner.functions.rules import fixed, unchanged
from stagecoach.planner.types import INT

FUNCTIONS: tuple[Function, ...] = (
    Function("get_field", (2, 2), unchanged, rule.field_type, spell.spark_field, spell.get_field, proof="members"),
    Function("get_fields", (2, 2), unchanged, rule.fields_type, spell.spark_field, spell.get_fields, proof="members"),
    Function("array_item", (2, 2), rule.array_index, rule.element_at_type, "({0})[{1}]", spell.ARRAY_ITEM, proof="members"),
    Function("map_item", (2, 2), rule.map_index, rule.element_at_type, "({0})[{1}]", spell.MAP_ITEM, proof="members"),
    Function("element_at", (2, 2), rule.element_at, rule.element_at_type, "element_at({0}, {1})", spell.element_at, proof="members"),
    Function("try_element_at", (2, 2), rule.element_at, rule.element_at_type, "try_element_at({0}, {1})", spell.try_element_at, proof="members"),
    Function("get", (2, 2), lambda a: (rule.expect(a[0], "array"), rule.castable_int(a[1])), rule.element_at_type, "get({0}, {1})", "CASE WHEN {1} >= 0 THEN list_extract({0}, CAST({1} AS BIGINT) + 1) END", proof="members"),
    # The index parameter of a lambda: Spark counts from 0, DuckDB from 1.
    Function("element_index", (1, 1), unchanged, fixed(INT), "{0}", "CAST({0} - 1 AS INTEGER)", proof="lambdas"),
)  # fmt: skip
