"""Functions of JSON texts.

Spark reads more than JSON (single or double quotes, text after the value) and rewrites numbers. So
DuckDB answers only for texts that both engines read and write alike. Other texts raise, and the
stage runs again on Spark.
"""

from __future__ import annotations

import re

from stagecoach.planner.errors import AnalysisError, UnsupportedSqlError
from stagecoach.planner.functions import nested_rules as rule
from stagecoach.planner.functions.constant_arguments import require_constant
from stagecoach.planner.functions.function import Args, Function, listed
from stagecoach.planner.functions.json_texts import refuse_to_json, to_json
from stagecoach.planner.functions.rules import fixed
from stagecoach.planner.functions.spell_collections import raises
from stagecoach.planner.functions.spell_from_json import from_json, refuse_from_json
from stagecoach.planner.functions.templates import quoted
from stagecoach.planner.plan.expressions import Call, Literal
from stagecoach.planner.types import INT, NULL, STRING, DataType, array_of, parse_type

_PATH = re.compile(r"\$(?:\.[A-Za-z_][A-Za-z0-9_]*|\[[0-9]{1,6}\])+")
_STEP = re.compile(r"\.[A-Za-z_][A-Za-z0-9_]*|\[[0-9]+\]")
# What DuckDB reads and Spark does not: numbers that are none, a comma behind the last member.
_NO_NUMBER = r"(^|[:\[,])\s*[-+]?(?i:nan|inf)|,\s*[\]}]"
# A double whose shortest text, which Spark writes, is the text itself; or a whole number.
_SAME_NUMBER = r"-?(0|[1-9][0-9]*)"
_SAME_DOUBLE = (
    r"-?(0\.0|0\.(0{{0,2}}[1-9])([0-9]{{0,6}}[1-9])?|[1-9][0-9]{{0,6}}\.(0|[0-9]{{0,6}}[1-9]))"
)


# With any other beginning a text holds no value to Spark, which finds NULL in it.
_FIRST = "^[ \\t\\r\\n]*([\\[{\"'+.0-9-]|true|false|null|NaN|Inf)"


def _texts(args: Args) -> Args:
    return tuple(rule.literal_of(a, STRING) for a in args)


def _found(body: str, *unclear: str) -> str:
    """The body for a text that both engines read alike; NULL for one that is not like JSON."""
    return f"CASE WHEN regexp_matches({{0}}, {quoted(_FIRST)}) THEN {_guarded(body, *unclear)} END"


def _guarded(body: str, *unclear: str) -> str:
    """The body for a text that both engines read alike."""
    tests = [
        "NOT json_valid({0})",
        f"regexp_matches({{0}}, {quoted(_NO_NUMBER)})",
        "contains({0}, " + quoted("\\u0000") + ")",
        *unclear,
    ]
    return (
        "CASE WHEN {0} IS NULL THEN NULL "
        f"WHEN {' OR '.join(tests)} THEN {raises('JSON_IS_UNCLEAR')} ELSE {body} END"
    )


def _path_of(node: Call) -> str:
    path = node.args[1]
    return str(path.value) if isinstance(path, Literal) else ""


def _refuse_path(node: Call) -> str | None:
    return None if _PATH.fullmatch(_path_of(node)) else "the JSON path is not proven"


def _get_json_object(node: Call) -> str:
    path = _path_of(node)
    parents, at = ["$"], "$"
    for step in _STEP.findall(path):
        at += step
        parents.append(at)
    twice = [f"{_keys_repeat(quoted(p))}" for p in parents[:-1]]
    value, kind = (f"{name}({{0}}, {quoted(path)})" for name in ("json_extract_string", "json_type"))  # fmt: skip
    safe = quoted(_SAME_NUMBER), quoted(_SAME_DOUBLE.replace("{{", "{").replace("}}", "}"))
    text = f"CAST(json_extract({{0}}, {quoted(path)}) AS VARCHAR)"
    odd = quoted(r"[\\]|[0-9][.eE]|-0|[0-9]{{19}}".replace("{{", "{").replace("}}", "}"))
    body = (
        f"CASE {kind} WHEN 'VARCHAR' THEN {value} WHEN 'BOOLEAN' THEN {value} WHEN 'NULL' THEN NULL "
        f"WHEN 'UBIGINT' THEN CASE WHEN regexp_full_match({value}, {safe[0]}) THEN {value} "
        f"ELSE {raises('JSON_IS_UNCLEAR')} END "
        f"WHEN 'BIGINT' THEN CASE WHEN regexp_full_match({value}, {safe[0]}) AND {value} <> '-0' "
        f"THEN {value} ELSE {raises('JSON_IS_UNCLEAR')} END "
        f"WHEN 'DOUBLE' THEN CASE WHEN regexp_full_match({value}, {safe[1]}) THEN {value} "
        f"ELSE {raises('JSON_IS_UNCLEAR')} END "
        f"ELSE CASE WHEN {kind} IS NOT NULL AND regexp_matches({text}, {odd}) "
        f"THEN {raises('JSON_IS_UNCLEAR')} ELSE {text} END END"
    )
    return _found(body, *twice)


def _keys_repeat(path: str) -> str:
    keys = f"json_keys({{0}}, {path})"
    return f"coalesce(len({keys}) <> list_unique({keys}), false)"


_LENGTH = _found(
    "CASE WHEN json_type({0}) = 'ARRAY' THEN CAST(json_array_length({0}) AS INTEGER) END"
)
_KEYS = _found(
    "CASE WHEN json_type({0}) = 'OBJECT' THEN json_keys({0}) END",
    "contains({0}, " + quoted("\\") + ")",
)


def _from_json(node: Call) -> str:
    kind = "ARRAY" if node.dtype.kind == "array" else "OBJECT"
    return _guarded(from_json(node), f"json_type({{0}}) <> '{kind}'")


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
    Function("get_json_object", (2, 2), _texts, fixed(STRING), "get_json_object({0}, {1})", _get_json_object, _refuse_path, "json"),
    Function("json_array_length", (1, 1), _texts, fixed(INT), "json_array_length({0})", _LENGTH, proof="json"),
    Function("json_object_keys", (1, 1), _texts, fixed(array_of(STRING)), "json_object_keys({0})", _KEYS, proof="json"),
    Function("from_json", (2, 3), _schema, schema_type, listed("from_json({*})"), _from_json, refuse_from_json, "json"),
    Function("to_json", (1, 2), _written, fixed(STRING), listed("to_json({*})"), to_json, refuse_to_json, "json"),
    Function("schema_of_json", (1, 2), _sampled, fixed(STRING), listed("schema_of_json({*})")),
)  # fmt: skip
