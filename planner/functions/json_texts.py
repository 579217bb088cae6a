"""Spell TO_JSON for DuckDB: the text that Spark's `JacksonGenerator` writes.

NULL members of a struct are left out, NULL elements and values of a map are written. Strings are
escaped by DuckDB itself, which escapes the same characters in the same way.
"""

from __future__ import annotations

import json

from stagecoach.planner.functions import spell_times as times
from stagecoach.planner.functions.templates import quoted
from stagecoach.planner.functions.text_casts import float_text, interval_text
from stagecoach.planner.plan.expressions import Call
from stagecoach.planner.types import DataType

# With more digits after the point Java writes small numbers with an exponent.
_MOST_PLACES = 6


def to_json(node: Call) -> str:
    """TO_JSON of one argument."""
    text = _value(node.args[0].dtype)
    assert text is not None, node
    return text


def refuse_to_json(node: Call) -> str | None:
    """Only types whose text is proven, with the default options."""
    if len(node.args) > 1:
        return "to_json with options is not proven"
    dtype = node.args[0].dtype
    return None if _value(dtype) else f"to_json of {dtype} is not proven"


def _value(dtype: DataType) -> str | None:
    """Template of a value's text, NULL for NULL; None where there is none."""
    if not dtype.is_atomic:
        return _nested(dtype)
    if dtype.is_integral or dtype.kind == "boolean":
        return "CAST({0} AS VARCHAR)"
    if dtype.is_decimal:
        plain = dtype.scale <= _MOST_PLACES and dtype.precision > dtype.scale
        return "CAST({0} AS VARCHAR)" if plain else None
    if dtype.is_floating:
        shown = float_text(dtype)
        return (
            f"CASE WHEN isnan({{0}}) OR isinf({{0}}) THEN '\"' || {shown} || '\"' ELSE {shown} END"
        )
    if dtype.is_interval:
        return f"('\"' || {interval_text(dtype)} || '\"')"
    match dtype.kind:
        case "string":
            return "CAST(to_json({0}) AS VARCHAR)"
        case "binary":
            return "('\"' || to_base64({0}) || '\"')"
        case "void":
            return "CAST(NULL AS VARCHAR)"
        case "date":
            return f"('\"' || {times.dated_text('{0}')} || '\"')"
        case "timestamp" | "timestamp_ntz":
            return f"('\"' || {moment_text(dtype)} || '\"')"
    return None


def moment_text(dtype: DataType) -> str:
    """Template of a timestamp's text in JSON and CSV, such as `2024-02-29T10:11:12.000Z`."""
    local = times.local_of(0, dtype)
    offset = ""
    if dtype.kind == "timestamp":
        seconds = f"((epoch_us({local}) - epoch_us({{0}})) // 1000000)"
        sign = f"CASE WHEN {seconds} < 0 THEN '-' ELSE '+' END"
        parts = f"abs({seconds}) // 3600, abs({seconds}) // 60 % 60"
        # An offset of before the zones were introduced may have seconds.
        left = f"abs({seconds}) % 60"
        rest = f"CASE WHEN {left} > 0 THEN printf(':%02d', {left}) ELSE '' END"
        offset = (
            f" || CASE WHEN {seconds} = 0 THEN 'Z' "
            f"ELSE {sign} || printf('%02d:%02d', {parts}) || {rest} END"
        )
    pattern = "-%m-%dT%H:%M:%S.%g"
    return (
        f"(CASE WHEN year({local}) BETWEEN 0 AND 9999 THEN strftime({local}, '%Y{pattern}') "
        f"ELSE {times.year_text(local)} || strftime({local}, '{pattern}') END{offset})"
    )


def _nested(dtype: DataType) -> str | None:
    members = [_value(field.dtype) for field in dtype.fields]
    if any(m is None for m in members):
        return None
    texts = [m or "" for m in members]
    name = f"j{_height(dtype)}_"
    if dtype.kind == "array":
        item = f"coalesce({texts[0].replace('{0}', name)}, 'null')"
        listed = f"list_transform({{0}}, lambda {name}: {item})"
        return _enclosed("[", f"coalesce(array_to_string({listed}, ','), '')", "]")
    if dtype.kind == "map":
        key = _key(dtype.fields[0].dtype)
        if key is None:
            return None
        key = key.replace("{0}", f"{name}.key")
        item = f"{key} || ':' || coalesce({texts[1].replace('{0}', f'{name}.value')}, 'null')"
        listed = f"list_transform(map_entries({{0}}), lambda {name}: {item})"
        return _enclosed("{{", f"coalesce(array_to_string({listed}, ','), '')", "}}")
    parts = []
    for field, text in zip(dtype.fields, texts, strict=True):
        if any(c < " " for c in field.name):
            return None
        label = quoted(json.dumps(field.name, ensure_ascii=False) + ":")
        parts.append(f"{label} || {text.replace('{0}', _member(field.name))}")
    inner = f"concat_ws(',', {', '.join(parts)})" if parts else "''"
    return _enclosed("{{", inner, "}}")


def _member(name: str) -> str:
    return f"struct_extract({{0}}, {quoted(name)})"


def _key(dtype: DataType) -> str | None:
    """Template of a map's key as text."""
    if dtype.kind == "string":
        return "CAST(to_json({0}) AS VARCHAR)"
    return "('\"' || CAST({0} AS VARCHAR) || '\"')" if dtype.is_integral else None


def _enclosed(opening: str, inner: str, closing: str) -> str:
    return f"CASE WHEN {{0}} IS NOT NULL THEN '{opening}' || {inner} || '{closing}' END"


def _height(dtype: DataType) -> int:
    return 1 + max((_height(f.dtype) for f in dtype.fields), default=0)
