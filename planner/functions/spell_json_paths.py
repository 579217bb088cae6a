"""Spell functions that find a value in a JSON text for DuckDB.

Spark reads more than JSON (single or double quotes, text after the value) and rewrites numbers. So
DuckDB answers only for texts that both engines read and write alike. Other texts raise, and the
stage runs again on Spark.
"""

from __future__ import annotations

import json
import re

from stagecoach.planner.functions.spell_collections import raises
from stagecoach.planner.functions.templates import quoted
from stagecoach.planner.plan.expressions import Call, Literal, Parameter, contains

_PATH = re.compile(r"\$(?:\.[A-Za-z_][A-Za-z0-9_]*|\[[0-9]{1,6}\])+")
_STEP = re.compile(r"\.[A-Za-z_][A-Za-z0-9_]*|\[[0-9]+\]")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# What DuckDB reads and Spark does not: numbers that are none, a comma behind the last member.
_NO_NUMBER = r"(^|[:\[,])\s*[-+]?(?i:nan|inf)|,\s*[\]}]"
# A double whose shortest text, which Spark writes, is the text itself; or a whole number.
_SAME_NUMBER = r"-?(0|[1-9][0-9]*)"
_SAME_DOUBLE = r"-?(0\.0|0\.(0{0,2}[1-9])([0-9]{0,6}[1-9])?|[1-9][0-9]{0,6}\.(0|[0-9]{0,6}[1-9]))"
_ODD = r"[\\]|[0-9][.eE]|-0|[0-9]{19}"

# With any other beginning a text holds no value to Spark, which finds NULL in it.
_FIRST = "^[ \\t\\r\\n]*([\\[{\"'+.0-9-]|true|false|null|NaN|Inf)"


def found(body: str, *unclear: str) -> str:
    """The body for a text that both engines read alike; NULL for one that is not like JSON."""
    return f"CASE WHEN regexp_matches({{0}}, {quoted(_FIRST)}) THEN {guarded(body, *unclear)} END"


def guarded(body: str, *unclear: str) -> str:
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


def refuse_constant(node: Call) -> str | None:
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


def refuse_path(node: Call) -> str | None:
    """Only literal paths of names and positions."""
    if not _PATH.fullmatch(_path_of(node)):
        return "the JSON path is not proven"
    return refuse_constant(node)


def get_json_object(node: Call) -> str:
    """GET_JSON_OBJECT of a text and a literal path."""
    return _value_at(_path_of(node))


def refuse_json_tuple(node: Call) -> str | None:
    """Only literal names of members."""
    names = [a.value if isinstance(a, Literal) else None for a in node.args[1:]]
    if all(isinstance(n, str) and _NAME.fullmatch(n) for n in names):
        return refuse_constant(node)
    return "a name of json_tuple is not proven"


def json_tuple_members(node: Call) -> list[str]:
    """Templates of the columns of JSON_TUPLE."""
    return [_value_at(f"$.{a.value}") for a in node.args[1:] if isinstance(a, Literal)]


def _value_at(path: str) -> str:
    parents, at = ["$"], "$"
    for step in _STEP.findall(path):
        at += step
        parents.append(at)
    twice = [_keys_repeat(quoted(p)) for p in parents[:-1]]
    value = f"json_extract_string({{0}}, {quoted(path)})"
    kind = f"json_type({{0}}, {quoted(path)})"
    whole, double = quoted(_SAME_NUMBER), quoted(_SAME_DOUBLE)
    text = f"CAST(json_extract({{0}}, {quoted(path)}) AS VARCHAR)"
    body = (
        f"CASE {kind} WHEN 'VARCHAR' THEN {value} WHEN 'BOOLEAN' THEN {value} "
        "WHEN 'NULL' THEN NULL "
        f"WHEN 'UBIGINT' THEN CASE WHEN regexp_full_match({value}, {whole}) THEN {value} "
        f"ELSE {raises('JSON_IS_UNCLEAR')} END "
        f"WHEN 'BIGINT' THEN CASE WHEN regexp_full_match({value}, {whole}) AND {value} <> '-0' "
        f"THEN {value} ELSE {raises('JSON_IS_UNCLEAR')} END "
        f"WHEN 'DOUBLE' THEN CASE WHEN regexp_full_match({value}, {double}) THEN {value} "
        f"ELSE {raises('JSON_IS_UNCLEAR')} END "
        f"ELSE CASE WHEN {kind} IS NOT NULL AND regexp_matches({text}, {quoted(_ODD)}) "
        f"THEN {raises('JSON_IS_UNCLEAR')} ELSE {text} END END"
    )
    return found(body, *twice)


def _keys_repeat(path: str) -> str:
    keys = f"json_keys({{0}}, {path})"
    return f"coalesce(len({keys}) <> list_unique({keys}), false)"


ARRAY_LENGTH = found(
    "CASE WHEN json_type({0}) = 'ARRAY' THEN CAST(json_array_length({0}) AS INTEGER) END"
)
OBJECT_KEYS = found(
    "CASE WHEN json_type({0}) = 'OBJECT' THEN json_keys({0}) END",
    "contains({0}, " + quoted("\\") + ")",
)
