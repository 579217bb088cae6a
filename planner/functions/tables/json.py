"""Functions of JSON texts."""

from __future__ import annotations

import re

from stagecoach.planner.errors import AnalysisError, UnsupportedSqlError
from stagecoach.planner.functions import nested_rules as rule
from stagecoach.planner.functions import spell_json_paths as paths
from stagecoach.planner.functions.constant_arguments import require_constant
from stagecoach.planner.functions.function import Args, Function, listed
from stagecoach.planner.functions.json_schemas import refuse_schema_of_json, schema_of_json
from stagecoach.planner.functions.json_texts import refuse_to_json, to_json
from stagecoach.planner.functions.rules import fixed
from stagecoach.planner.functions.spell_from_json import from_json, refuse_from_json
from stagecoach.planner.plan.expressions import Call, Literal
from stagecoach.planner.types import INT, NULL, STRING, DataType, array_of, parse_type


def _texts(args: Args) -> Args:
    return tuple(rule.literal_of(a, STRING) for a in args)


def _from_json(node: Call) -> str:
    kind = "ARRAY" if node.dtype.kind == "array" else "OBJECT"
    return paths.guarded(from_json(node), f"json_type({{0}}) <> '{kind}'")


def _schema(args: Args) -> Args:
    if len(args) > 1 and not (isinstance(args[1], Literal) and args[1].dtype == STRING):
        raise UnsupportedSqlError("a schema that is not a literal")
    return (rule.literal_of(args[0], STRING), *args[1:])


def schema_type(args: Args) -> DataType:
    """The type of the schema that is the second argument."""
    text = str(args[1].value) if isinstance(args[1], Literal) else ""
    try:
        return parse_type(text)
    except UnsupportedSqlError:
        return _table_type(text)


def _table_type(text: str) -> DataType:
    """The struct of a schema such as `a INT, b STRING`."""
    parts: list[str] = []
    depth = 0
    for piece in re.split(r"([<>(),])", text):
        depth += (piece in "<(" if piece else 0) - (piece in ">)" if piece else 0)
        if piece == "," and depth == 0:
            parts.append("")
        else:
            parts = [*parts[:-1], (parts[-1] if parts else "") + piece]
    members = [re.fullmatch(r"\s*(\w+)(?:\s*:\s*|\s+)(.+?)\s*", part) for part in parts]
    if not all(members):
        raise UnsupportedSqlError(f"the schema '{text}' is not known to the planner")
    return parse_type(f"struct<{','.join(f'{m[1]}:{m[2]}' for m in members if m)}>")


def _sampled(args: Args) -> Args:
    text = require_constant(args[0], "the JSON of schema_of_json")
    if isinstance(text, Literal) and text.value is None:
        raise AnalysisError("the JSON of schema_of_json is NULL")
    return _schema(args)


def _written(args: Args) -> Args:
    if args[0].dtype == NULL:
        raise UnsupportedSqlError("to_json of an untyped NULL")
    if args[0].dtype.is_atomic:
        raise AnalysisError(f"expected an array, a map or a struct, found {args[0].dtype}")
    return args


FUNCTIONS: tuple[Function, ...] = (
    Function("get_json_object", (2, 2), _texts, fixed(STRING), "get_json_object({0}, {1})", paths.get_json_object, proof="json"),
    Function("json_array_length", (1, 1), _texts, fixed(INT), "json_array_length({0})", paths.json_array_length, proof="json"),
    Function("json_object_keys", (1, 1), _texts, fixed(array_of(STRING)), "json_object_keys({0})", paths.json_object_keys, proof="json"),
    Function("from_json", (2, 3), _schema, schema_type, listed("from_json({*})"), _from_json, refuse_from_json, "json"),
    Function("to_json", (1, 2), _written, fixed(STRING), listed("to_json({*})"), to_json, refuse_to_json, "json"),
    Function("schema_of_json", (1, 2), _sampled, fixed(STRING), listed("schema_of_json({*})"), schema_of_json, refuse_schema_of_json, "json"),
)  # fmt: skip
