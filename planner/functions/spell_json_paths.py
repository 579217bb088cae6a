"""Spell functions that find a value in a JSON text for DuckDB.

Spark reads more than JSON (single or double quotes, text after the value), has limits, and rewrites
numbers. So DuckDB answers only for texts that both engines read and write alike. The rest is for
functions of the worker (`infra/engines/duckdb/java_json.py`), which read as Spark does, but slower.
"""

from __future__ import annotations

import re

from stagecoach.planner.functions.spell_collections import raises
from stagecoach.planner.functions.templates import quoted
from stagecoach.planner.functions.text_casts import SHORTEST_FLOATS
from stagecoach.planner.plan.expressions import Call, Literal

_PATH = re.compile(r"\$(?:\.[A-Za-z_][A-Za-z0-9_]*|\[[0-9]{1,6}\])+")
_STEP = re.compile(r"\.[A-Za-z_][A-Za-z0-9_]*|\[[0-9]+\]")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# What DuckDB reads and Spark does not: numbers that are none, a comma behind the last member.
_NO_NUMBER = r"(^|[:\[,])\s*[-+]?(?i:nan|inf)|,\s*[\]}]"
_LONG_NUMBER = quoted("[-+.eE0-9]{1000}")
_ANY_TEXT = quoted(r'"(?:[^"\\]|\\.)*"')
_LEAF = quoted(r"\[[^\[\]{}]*\]|\{[^\[\]{}]*\}")
_NO_BRACKET = quoted(r"[^\[{]+")
# A whole number, or a double whose shortest text, which Spark writes, is the text itself.
_SAME_NUMBER = r"0|-?[1-9][0-9]*"
_SAME_DOUBLE = r"-?(0\.0|0\.(0{0,2}[1-9])([0-9]{0,6}[1-9])?|[1-9][0-9]{0,6}\.(0|[0-9]{0,6}[1-9]))"
# What of an array or an object Spark may write otherwise.
_ODD = r"[\\]|[0-9][.eE]|-0|[0-9]{19}|[\x{10000}-\x{10FFFF}]"

# With any other beginning a text holds no array and no object to Spark.
_FIRST = r"^[ \t\r\n]*[\[{]"


def _limits() -> str:
    """Whether Spark may not read as much: digits of a number, levels, bytes of a name."""
    brackets = "len(string_split({0}, '[')) + len(string_split({0}, " + quoted("{") + "))"
    # Most texts of many brackets are wide, not deep: little is left without the innermost levels.
    left = f"regexp_replace({{0}}, {_ANY_TEXT}, '', 'g')"
    for _ in range(4):
        left = f"regexp_replace({left}, {_LEAF}, '', 'g')"
    texts = f"list_transform(regexp_extract_all({{0}}, {_ANY_TEXT}), lambda text: strlen(text))"
    return (
        f"strlen({{0}}) > 1000 AND (regexp_matches({{0}}, {_LONG_NUMBER}) "
        f"OR {brackets} > 1000 AND strlen(regexp_replace({left}, {_NO_BRACKET}, '', 'g')) > 990 "
        f"OR strlen({{0}}) > 50000 AND list_max({texts}) > 50000)"
    )


def found(body: str, otherwise: str, *unclear: str) -> str:
    """The body for an array or an object that both engines read alike, NULL for what is neither.

    Args:
        body: DuckDB's spelling.
        otherwise: What answers for texts that the engines may not read alike.
        unclear: Tests for such texts, beside those that all functions share.
    """
    inner = guarded(body, *unclear, otherwise=otherwise)
    return f"CASE WHEN regexp_matches({{0}}, {quoted(_FIRST)}) THEN {inner} END"


def guarded(body: str, *unclear: str, otherwise: str = raises("JSON_IS_UNCLEAR")) -> str:
    """The body for a text that both engines read alike; arguments as for `found`."""
    tests = [
        "NOT json_valid({0})",
        f"regexp_matches({{0}}, {quoted(_NO_NUMBER)})",
        "contains({0}, " + quoted("\\u0000") + ")",
        _limits(),
        *unclear,
    ]
    return (
        "CASE WHEN {0} IS NULL THEN NULL "
        f"WHEN {' OR '.join(tests)} THEN {otherwise} ELSE {body} END"
    )


def get_json_object(node: Call) -> str:
    """GET_JSON_OBJECT of a text and a path; any but plain ones are for the worker alone."""
    path = node.args[1].value if isinstance(node.args[1], Literal) else None
    if isinstance(path, str) and _PATH.fullmatch(path) and not _is_constant(node):
        return _value_at(path, _worker("java_get_json_object", quoted(path)))
    return _worker("java_get_json_object", "{1}")


def refuse_json_tuple(node: Call) -> str | None:
    """Only literal names of members."""
    if all(isinstance(a, Literal) and isinstance(a.value, str) for a in node.args[1:]):
        return None
    return "a name of json_tuple is not a literal"


def json_tuple_members(node: Call) -> list[str]:
    """Templates of the columns of JSON_TUPLE."""
    names = [str(a.value) for a in node.args[1:] if isinstance(a, Literal)]
    all_names = f"[{', '.join(map(quoted, names))}]"
    columns = [
        (name, _worker("java_json_tuple", all_names, str(position)))
        for position, name in enumerate(names)
    ]
    if _is_constant(node):
        return [slow for _, slow in columns]
    return [
        _value_at(f"$.{name}", slow) if _NAME.fullmatch(name) else slow for name, slow in columns
    ]


def json_array_length(node: Call) -> str:
    """JSON_ARRAY_LENGTH of a text."""
    return "java_json_array_length({0})" if _is_constant(node) else _ARRAY_LENGTH


def json_object_keys(node: Call) -> str:
    """JSON_OBJECT_KEYS of a text."""
    return "java_json_object_keys({0})" if _is_constant(node) else _OBJECT_KEYS


def _is_constant(node: Call) -> bool:
    """Whether DuckDB computes the parts of a spelling before it tests whether the text is JSON."""
    return not node.args[0].column_ids


def _worker(function: str, *arguments: str) -> str:
    given = ", ".join(["{0}", *arguments, f"getvariable('{SHORTEST_FLOATS}')"])
    return f"{function}({given})"


def _value_at(path: str, otherwise: str) -> str:
    parents, at = ["$"], "$"
    for step in _STEP.findall(path):
        at += step
        parents.append(at)
    twice = [_keys_repeat(quoted(p)) for p in parents[:-1]]
    value = f"json_extract_string({{0}}, {quoted(path)})"
    kind = f"json_type({{0}}, {quoted(path)})"
    text = f"CAST(json_extract({{0}}, {quoted(path)}) AS VARCHAR)"
    # Spark skips a member that is null, but writes an item.
    null = "'null'" if path.endswith("]") else "NULL"
    whole, double = quoted(_SAME_NUMBER), quoted(_SAME_DOUBLE)
    body = (
        f"CASE WHEN {kind} IS NULL THEN NULL WHEN {kind} = 'NULL' THEN {null} "
        f"WHEN {kind} IN ('VARCHAR', 'BOOLEAN') "
        f"OR {kind} IN ('UBIGINT', 'BIGINT') AND regexp_full_match({value}, {whole}) "
        f"OR {kind} = 'DOUBLE' AND regexp_full_match({value}, {double}) THEN {value} "
        f"WHEN {kind} IN ('ARRAY', 'OBJECT') AND NOT regexp_matches({text}, {quoted(_ODD)}) "
        f"THEN {text} ELSE {otherwise} END"
    )
    return found(body, otherwise, *twice)


def _keys_repeat(path: str) -> str:
    keys = f"json_keys({{0}}, {path})"
    return f"coalesce(len({keys}) <> list_unique({keys}), false)"


_ARRAY_LENGTH = found(
    "CASE WHEN json_type({0}) = 'ARRAY' THEN CAST(json_array_length({0}) AS INTEGER) END",
    "java_json_array_length({0})",
)
_OBJECT_KEYS = found(
    "CASE WHEN json_type({0}) = 'OBJECT' THEN json_keys({0}) END",
    "java_json_object_keys({0})",
    "contains({0}, " + quoted("\\") + ")",
)
