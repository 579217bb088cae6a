"""Spell FROM_JSON for DuckDB, for values that have the types of the schema.

Spark also reads values of other types, in several ways. Such a text raises, and its stage runs
again on Spark. Source: Spark's `JacksonParser`.
"""

from __future__ import annotations

import json
import re

from stagecoach.planner.functions.spell_collections import duck_name
from stagecoach.planner.functions.templates import escaped, quoted
from stagecoach.planner.functions.time_casts import written_moment
from stagecoach.planner.plan.expressions import Call, Literal, Parameter, contains
from stagecoach.planner.types import DataType

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_WHOLE = quoted(r"-?[1-9][0-9]*|0")
_UNCLEAR = "CAST(error('JSON_IS_UNCLEAR') AS {})"


def from_json(node: Call) -> str:
    """FROM_JSON of a text that both engines read alike."""
    return json_value("CAST({0} AS JSON)", node.dtype, 0)


def refuse_from_json(node: Call) -> str | None:
    """Why DuckDB must not read a schema: options, and types whose texts have several forms."""
    if len(node.args) > 2:
        return "from_json with options is not proven"
    if node.dtype.is_atomic or not is_read_value(node.dtype):
        return f"from_json of {node.dtype} is not proven"
    return _refuse_constant(node)


def _refuse_constant(node: Call) -> str | None:
    """A constant text must be plain JSON: with another, every run would fall back to Spark."""
    text = node.args[0]
    if text.column_ids or contains(text, Parameter):
        return None
    if isinstance(text, Literal):
        try:
            json.loads("null" if text.value is None else str(text.value))
        except ValueError:
            return "the constant text is not JSON"
        return None
    return "a computed constant may not be JSON"


def is_plain_struct(dtype: DataType) -> bool:
    """Whether a struct has members, whose names DuckDB can tell apart and Spark does not use."""
    # DuckDB's structs have no two names that differ in case only.
    names = {field.name.lower() for field in dtype.fields}
    known = all(_NAME.fullmatch(field.name) for field in dtype.fields)
    return dtype.kind == "struct" and known and 0 < len(names) == len(dtype.fields)


def is_read_value(dtype: DataType) -> bool:
    """Whether JSON values can be read as the type."""
    if dtype.kind == "struct":
        return is_plain_struct(dtype) and all(is_read_value(field.dtype) for field in dtype.fields)
    if dtype.kind == "array":
        return is_read_value(dtype.fields[0].dtype)
    if dtype.kind == "map":
        key, value = (field.dtype for field in dtype.fields)
        return key.kind == "string" and is_read_value(value)
    known = ("string", "boolean", "double", "date", "timestamp", "timestamp_ntz")
    return dtype.is_integral or dtype.kind in known


def json_value(json_text: str, dtype: DataType, depth: int) -> str:
    """A JSON value as a value of the type; NULL for null and for what is missing."""
    name = duck_name(dtype)
    kind = f"json_type({json_text})"
    text = f"json_extract_string({json_text}, '$')"
    branches = [f"WHEN {json_text} IS NULL OR {kind} = 'NULL' THEN NULL"]
    whole = f"WHEN {kind} IN ('UBIGINT', 'BIGINT') AND regexp_full_match({text}, {_WHOLE})"
    if dtype.kind == "struct":
        branches.append(f"WHEN {kind} = 'OBJECT' THEN {_struct(json_text, dtype, depth)}")
    elif dtype.kind == "array":
        item = f"j{depth}_"
        items = f"json_extract({json_text}, '$[*]')"
        body = json_value(item, dtype.fields[0].dtype, depth + 1)
        branches.append(
            f"WHEN {kind} = 'ARRAY' THEN list_transform({items}, lambda {item}: {body})"
        )
    elif dtype.kind == "map":
        branches.append(f"WHEN {kind} = 'OBJECT' THEN {_map(json_text, dtype, depth)}")
    elif dtype.kind in ("date", "timestamp", "timestamp_ntz"):
        test, moment = written_moment(text, dtype)
        branches.append(f"WHEN {kind} = 'VARCHAR' AND {test} THEN {moment}")
    elif dtype.is_integral:
        number = f"TRY_CAST({text} AS {name})"
        branches.append(f"{whole} AND {number} IS NOT NULL THEN {number}")
    elif dtype.kind == "double":
        number = f"TRY_CAST({text} AS DOUBLE)"
        branches.append(f"{whole} THEN {number}")
        branches.append(f"WHEN {kind} = 'DOUBLE' AND isfinite({number}) THEN {number}")
    elif dtype.kind == "boolean":
        branches.append(f"WHEN {kind} = 'BOOLEAN' THEN CAST({text} AS BOOLEAN)")
    else:
        branches.append(f"WHEN {kind} IN ('VARCHAR', 'BOOLEAN') THEN {text}")
        branches.append(f"{whole} THEN {text}")
    return f"CASE {' '.join(branches)} ELSE {_UNCLEAR.format(name)} END"


def _struct(json_text: str, dtype: DataType, depth: int) -> str:
    """The members of an object, which is parsed once."""
    shape = quoted(json.dumps({field.name: "JSON" for field in dtype.fields}))
    given = f"s{depth}_"
    members = ", ".join(
        f"{quoted(field.name)}: "
        + json_value(f"struct_extract({given}, {quoted(field.name)})", field.dtype, depth + 1)
        for field in dtype.fields
    )
    keys = f"json_keys({json_text})"
    read = (
        f"list_transform([json_transform({json_text}, {shape})], "
        f"lambda {given}: {escaped('{')}{members}{escaped('}')})[1]"
    )
    unclear = _UNCLEAR.format(duck_name(dtype))
    return f"CASE WHEN len({keys}) <> list_unique({keys}) THEN {unclear} ELSE {read} END"


def _map(json_text: str, dtype: DataType, depth: int) -> str:
    """The members of an object as the entries of a map."""
    entry = f"m{depth}_"
    value = json_value(f"{entry}.value", dtype.fields[1].dtype, depth + 1)
    entries = (
        f"map_entries(json_transform({json_text}, {quoted(json.dumps('MAP(VARCHAR, JSON)'))}))"
    )
    item = f"{escaped('{')}'key': {entry}.key, 'value': {value}{escaped('}')}"
    read = f"map_from_entries(list_transform({entries}, lambda {entry}: {item}))"
    keys = f"json_keys({json_text})"
    name = duck_name(dtype)
    return (
        f"CASE WHEN len({keys}) <> list_unique({keys}) THEN {_UNCLEAR.format(name)} ELSE {read} END"
    )
