"""The schema of a JSON text, which is a constant, as Spark infers it.

Source: Spark's `JsonInferSchema`.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any

from stagecoach.planner.functions.templates import quoted
from stagecoach.planner.plan.expressions import Call, Literal

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_MOST_DEPTH = 20
# A larger whole number is a decimal.
_LARGEST = 10**18

# The name of an atomic type, the members of a struct, or the one type of an array's elements.
Schema = str | dict[str, "Schema"] | list["Schema"]
_NULL = "null"


class _OddJson(ValueError):
    """A JSON text whose schema is not proven."""


def schema_of_json(node: Call) -> str:
    """SCHEMA_OF_JSON of a literal."""
    schema = _schema(node)
    assert schema is not None, node
    return quoted(schema)


def refuse_schema_of_json(node: Call) -> str | None:
    """Only texts that are plainly JSON, without options."""
    return None if _schema(node) else "the schema of this JSON is not proven"


def _schema(node: Call) -> str | None:
    text = node.args[0]
    if len(node.args) > 1 or not isinstance(text, Literal) or not isinstance(text.value, str):
        return None
    try:
        value = json.loads(text.value, object_pairs_hook=_members, parse_constant=_refused)
        return _shown(_type(value, 0))
    except (ValueError, RecursionError):
        return None


def _refused(text: str) -> None:
    raise _OddJson(text)


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    plain = all(name.isascii() and name.isprintable() for name in members)
    if not members or "" in members or not plain or len(members) < len(pairs):
        raise _OddJson(str(pairs))
    return members


def _type(value: Any, depth: int) -> Schema:
    if depth > _MOST_DEPTH:
        raise _OddJson("too deep")
    match value:
        case None:
            return _NULL
        case bool():
            return "BOOLEAN"
        case int() if abs(value) < _LARGEST:
            return "BIGINT"
        case float() if math.isfinite(value):
            return "DOUBLE"
        case str():
            return "STRING"
        case dict():
            return {name: _type(member, depth + 1) for name, member in value.items()}
        case list():
            element: Schema = _NULL
            for item in value:
                element = _common(element, _type(item, depth + 1))
            return [element]
    raise _OddJson(str(value))


def _common(left: Schema, right: Schema) -> Schema:
    """The type of values of two types."""
    if left == right or right == _NULL:
        return left
    if left == _NULL:
        return right
    if isinstance(left, dict) and isinstance(right, dict):
        return {
            name: _common(left.get(name, _NULL), right.get(name, _NULL)) for name in left | right
        }
    if isinstance(left, list) and isinstance(right, list):
        return [_common(left[0], right[0])]
    if isinstance(left, str) and isinstance(right, str) and {left, right} == {"BIGINT", "DOUBLE"}:
        return "DOUBLE"
    return "STRING"


def _shown(schema: Schema) -> str:
    match schema:
        case str():
            return "STRING" if schema == _NULL else schema
        case list():
            return f"ARRAY<{_shown(schema[0])}>"
    members = (f"{_name(name)}: {_shown(schema[name])}" for name in sorted(schema))
    return f"STRUCT<{', '.join(members)}>"


def _name(name: str) -> str:
    return name if _NAME.fullmatch(name) else "`" + name.replace("`", "``") + "`"
