"""Functions that make structs."""

from __future__ import annotations

from stagecoach.planner.functions import nested_rules as rule
from stagecoach.planner.functions import spell_collections as spell
from stagecoach.planner.functions.function import Function, listed
from stagecoach.planner.plan.expressions import Call
from stagecoach.planner.types import DataType


def duplicate_names(dtype: DataType) -> str | None:
    """Why DuckDB has no such type: it takes `a` and `A` for one name, and needs a name at all."""
    names = [f.name.lower() for f in dtype.fields]
    if dtype.kind == "struct" and (len(set(names)) < len(names) or not names):
        return f"DuckDB has no type {dtype}"
    return next(filter(None, (duplicate_names(f.dtype) for f in dtype.fields)), None)


def _refuse(node: Call) -> str | None:
    return duplicate_names(node.dtype)


FUNCTIONS: tuple[Function, ...] = (
    Function("named_struct", (0, 1 << 20), rule.named_values, rule.struct_type, listed("named_struct({*})"), spell.named_struct, _refuse, "structs"),
)  # fmt: skip
