"""Spell Spark's casts of floats, intervals, arrays, maps and structs to strings for DuckDB.

Source: Spark's `ToStringBase` and `IntervalUtils`, and Java's `Double.toString`.
"""

from __future__ import annotations

from collections.abc import Callable

from stagecoach.planner.functions.templates import quoted
from stagecoach.planner.types import DataType, interval_fields

SHORTEST_FLOATS = "shortest_floats"
"""The variable that is 1 where Java writes the fewest digits of floats, 0 where it is older.

Without it, numbers that versions of Java write differently raise.
"""

# Up to here, all versions of Java write whole numbers with the fewest digits.
_LIMITS = {"double": "9007199254740992", "float": "16777216"}
_SHORTEST = {"double": "CAST({0} AS VARCHAR)", "float": "java_float_text({0})"}


def java_float_digits(kind: str) -> str:
    """A double or float as Java writes it, for numbers that have no faster spelling."""
    text = f"java_text_of_{kind}({{0}}, getvariable('{SHORTEST_FLOATS}'))"
    error = "CASE WHEN {0} IS NOT NULL THEN CAST(error('SPARK_ONLY') AS VARCHAR) END"
    return f"coalesce({text}, {error})"


def float_text(source: DataType) -> str:
    """A double or float as Java writes it."""
    shown = _SHORTEST[source.kind]
    name = source.kind.upper()
    small, large = (f"CAST('{n}' AS {name})" for n in ("1e-3", _LIMITS[source.kind]))
    absolute = shown.replace("{0}", "abs({0})")
    digits = f"regexp_replace(replace({absolute}, '.', ''), '0+$', '')"
    exponent = f"length(regexp_extract({absolute}, '^[0-9]+')) - 1"
    return (
        "CASE WHEN isnan({0}) THEN 'NaN' WHEN isinf({0}) THEN CASE WHEN {0} > 0 THEN 'Infinity' "
        "ELSE '-Infinity' END "
        f"WHEN {{0}} = 0 OR (abs({{0}}) >= {small} AND abs({{0}}) < 10000000) "
        f"THEN {shown} WHEN abs({{0}}) >= 10000000 AND abs({{0}}) < {large} THEN "
        f"CASE WHEN {{0}} < 0 THEN '-' ELSE '' END || left({digits}, 1) || '.' || "
        f"CASE WHEN length({digits}) > 1 THEN substring({digits}, 2) ELSE '0' END || 'E' || "
        f"CAST({exponent} AS VARCHAR) "
        f"WHEN {{0}} IS NOT NULL THEN {java_float_digits(source.kind)} END"
    )


def nested_text(source: DataType, text_of: Callable[[DataType], str | None]) -> str | None:
    """An array, map or struct as a string, such as `[1, null]`, `{k -> v}` and `{1, a}`.

    Args:
        source: Its type.
        text_of: Template of the string of a member; None where there is none.
    """
    templates = [_member(field.dtype, text_of) for field in source.fields]
    members = [t for t in templates if t is not None]
    if len(members) < len(templates):
        return None
    name = f"t{_height(source)}_"
    if source.kind == "struct":
        parts = [
            template.replace("{0}", f"struct_extract({{0}}, {quoted(field.name)})")
            for template, field in zip(members, source.fields, strict=True)
        ]
        inner = " || ', ' || ".join(parts) or "''"
        return f"CASE WHEN {{0}} IS NOT NULL THEN '{{{{' || {inner} || '}}}}' END"
    if source.kind == "array":
        listed = f"list_transform({{0}}, lambda {name}: {members[0].replace('{0}', name)})"
        opened, closed = "[", "]"
    else:
        key, value = (
            template.replace("{0}", f"{name}.{part}")
            for template, part in zip(members, ("key", "value"), strict=True)
        )
        entry = f"{key} || ' -> ' || {value}"
        listed = f"list_transform(map_entries({{0}}), lambda {name}: {entry})"
        opened, closed = "{{", "}}"
    # NOTE: DuckDB has no text for an array without values.
    joined = f"coalesce(array_to_string({listed}, ', '), '')"
    return f"CASE WHEN {{0}} IS NOT NULL THEN '{opened}' || {joined} || '{closed}' END"


def _member(dtype: DataType, text_of: Callable[[DataType], str | None]) -> str | None:
    if dtype.kind == "void":
        return "'null'"
    template = "{0}" if dtype.kind == "string" else text_of(dtype)
    return (
        None if template is None else f"coalesce({template.replace('{type}', 'VARCHAR')}, 'null')"
    )


def _height(dtype: DataType) -> int:
    return 1 + max((_height(f.dtype) for f in dtype.fields), default=0)


# ---------------------------------------------------------------- intervals

_MICROS = {"day": 86_400_000_000, "hour": 3_600_000_000, "minute": 60_000_000, "second": 1_000_000}


def interval_text(source: DataType) -> str:
    """An interval as a string, such as `INTERVAL '1 02:00:00' DAY TO SECOND`."""
    first, last = interval_fields(source)
    unit = first.upper() if first == last else f"{first.upper()} TO {last.upper()}"
    sign = "CASE WHEN {0} < 0 THEN '-' ELSE '' END"
    # The smallest number has no positive one; Spark then spells it out.
    size = "abs({0})"
    body = _months(first, last, size) if source.is_year_month else _clock(first, last, size)
    text = f"'INTERVAL ''' || {sign} || {body} || ''' {unit}'"
    return f"CASE WHEN {{0}} IS NOT NULL THEN {text} END"


def _months(first: str, last: str, size: str) -> str:
    years, rest = f"CAST({size} // 12 AS VARCHAR)", f"CAST({size} % 12 AS VARCHAR)"
    if first == "month":
        return f"CAST({size} AS VARCHAR)"
    return years if last == "year" else f"{years} || '-' || {rest}"


def _clock(first: str, last: str, size: str) -> str:
    fields = list(_MICROS)
    parts = []
    for name in fields[fields.index(first) : fields.index(last) + 1]:
        rest = size if name == first else f"({size} % {_MICROS[fields[fields.index(name) - 1]]})"
        number = f"CAST({rest} // {_MICROS[name]} AS VARCHAR)"
        if name != "day":
            number = f"CASE WHEN {rest} < {10 * _MICROS[name]} THEN '0' ELSE '' END || {number}"
        if name == "second":
            point = f"rtrim(printf('.%06d', {rest} % 1000000), '0')"
            number = f"{number} || CASE WHEN {rest} % 1000000 = 0 THEN '' ELSE {point} END"
        before = "" if name == first else "' ' || " if name == "hour" else "':' || "
        parts.append(before + number)
    return " || ".join(parts)
