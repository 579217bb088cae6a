"""Write `explode` and its like in DuckDB's SQL, by `unnest`."""

from __future__ import annotations

from stagecoach.planner.engines.dialect import Alias, Scalar
from stagecoach.planner.errors import InternalPlanError
from stagecoach.planner.functions.spell_json_paths import json_tuple_members
from stagecoach.planner.plan.physical import GenerateExec
from stagecoach.planner.text.type_names import duckdb_type
from stagecoach.planner.types import DataType


def generate_text(node: GenerateExec, child: str, scalar: Scalar, alias: Alias) -> str:
    """Each row of the child with each row that the generator makes of it, as a FROM item."""
    if node.generator.function == "json_tuple":
        return _json_tuple(node, child, scalar, alias)
    lists, values = _unnested(node, scalar)
    made = [f"generated_{i}" for i in range(len(lists))]
    if node.outer:
        size = f"len({lists[0]})"
        lists = [f"CASE WHEN {size} > 0 THEN {text} ELSE [NULL] END" for text in lists]
    unnests = ", ".join(f"unnest({t}) AS {n}" for t, n in zip(lists, made, strict=True))
    kept = "".join(f"c{c.id}, " for c in node.child.columns)
    shown = ", ".join(
        f"CAST({value} AS {duckdb_type(column.dtype)}) AS c{column.id}"
        for value, column in zip(values, node.outputs, strict=True)
    )
    rows = f"(SELECT {kept}{unnests} FROM {child}) AS {alias()}"
    return f"(SELECT {kept}{shown} FROM {rows}) AS {alias()}"


def _json_tuple(node: GenerateExec, child: str, scalar: Scalar, alias: Alias) -> str:
    """Each row of the child with the members of its JSON text: there is one row for each."""
    kept = "".join(f"c{c.id}, " for c in node.child.columns)
    read = f"(SELECT {kept}{scalar(node.generator.args[0])} AS json_text FROM {child}) AS {alias()}"
    shown = ", ".join(
        f"{template.format('json_text', type='VARCHAR')} AS c{column.id}"
        for template, column in zip(json_tuple_members(node.generator), node.outputs, strict=True)
    )
    return f"(SELECT {kept}{shown} FROM {read}) AS {alias()}"


def _unnested(node: GenerateExec, scalar: Scalar) -> tuple[list[str], list[str]]:
    """Lists of one length to unnest side by side, and the outputs from their elements."""
    call = node.generator
    text = scalar(call.args[0])
    positions = f"range(len({text}))"
    dtype: DataType = call.args[0].dtype
    if call.function == "repeat_row":
        return [f"range({text})"], ["generated_0"]
    # NOTE: DuckDB's unnest drops rows whose list is empty or NULL, as explode does; several
    # unnest of one SELECT advance together.
    if dtype.kind == "map":
        positions = f"range(CAST(cardinality({text}) AS BIGINT))"
        entries = [f"map_keys({text})", f"map_values({text})"]
        if call.function == "explode":
            return entries, ["generated_0", "generated_1"]
        return [positions, *entries], ["generated_0", "generated_1", "generated_2"]
    if call.function == "explode":
        return [text], ["generated_0"]
    if call.function == "posexplode":
        return [positions, text], ["generated_0", "generated_1"]
    if call.function == "inline":
        # NOTE: a NULL struct gives a row of NULLs in both engines.
        fields = dtype.fields[0].dtype.fields
        names = [f.name.replace("'", "''") for f in fields]
        return [text], [f"struct_extract(generated_0, '{name}')" for name in names]
    raise InternalPlanError(f"generator '{call.function}' has no DuckDB spelling")
