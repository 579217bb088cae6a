"""Spell Spark's casts for DuckDB, and name the casts that it cannot do.

Text is checked against Spark's syntax before DuckDB reads it, because DuckDB also accepts `1_000`,
`0x1A` or `infinity` as a date. The results were measured; the proofs are in `tests/differential`.
"""

from __future__ import annotations

from stagecoach.planner.functions.spell_collections import nested_cast
from stagecoach.planner.functions.spell_decimals import decimal_call
from stagecoach.planner.functions.templates import quoted
from stagecoach.planner.functions.text_casts import (
    float_text,
    interval_text,
    java_float_digits,
    nested_text,
)
from stagecoach.planner.functions.time_casts import time_cast
from stagecoach.planner.types import DataType

# Java's `isWhitespace` or `isISOControl`, as Spark trims the texts of all types but floats.
_BLANK = r"[\x00-\x20\x7f]*"
# What Java's `String.trim` cuts off, as Spark trims the texts of floats and decimals.
_JAVA_BLANK = r"[\x00-\x20]*"
_MANTISSA = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)"
_NUMBER = rf"{_MANTISSA}(?:[eE][+-]?[0-9]+)?"
_NOT_FINITE = r"[+-]?(?i:inf|infinity)|(?i:nan)"
_DATE = rf"(?s)^{_BLANK}([0-9]{{4}})(?:-([0-9]{{1,2}})(?:-([0-9]{{1,2}})(?:[ T].*)?)?)?{_BLANK}$"
# Parts of a number with an exponent, of which DuckDB drops digits that Spark rounds.
_SCIENTIFIC = r"([+-]?)([0-9]*)\.?([0-9]*)[eE]([+-]?[0-9]+)"
# What may be a date of another year than 0001 to 9999, which DuckDB does not read.
_LONG_YEAR = rf"^{_BLANK}[+-]?(?:0000|[0-9]{{5,7}})(?:-|{_BLANK}$)|^{_BLANK}[+-][0-9]"


def cast_reason(source: DataType, target: DataType, *, safe: bool = False) -> str | None:
    """Why a cast must not run on DuckDB; None for the proven ones."""
    if source == target or source.kind == "void" or _template(source, target, safe) is not None:
        return None
    return f"{'TRY_' if safe else ''}CAST({source} AS {target}) is not proven"


def cast_template(source: DataType, target: DataType, *, safe: bool = False) -> str:
    """DuckDB text of a cast; `{0}` is the argument, `{type}` DuckDB's name of the target."""
    return _template(source, target, safe) or f"{_word(safe)}({{0}} AS {{type}})"


def _word(safe: bool) -> str:
    return "TRY_CAST" if safe else "CAST"


def _template(source: DataType, target: DataType, safe: bool) -> str | None:
    plain = f"{_word(safe)}({{0}} AS {{type}})"
    if not source.is_atomic:
        if target.kind == "string":
            return nested_text(source, lambda member: _template(member, target, safe))
        return nested_cast(source, target, lambda a, b: _template(a, b, safe))
    if (timed := time_cast(source, target, safe=safe)) is not None:
        return timed
    if source.is_interval or target.is_interval:
        return interval_text(source) if target.kind == "string" else None
    if source.kind == "string":
        return _of_text(target, safe)
    if source.is_integral:
        if target.is_numeric or target.kind in ("string", "boolean"):
            return plain
    elif source.is_decimal:
        return _of_decimal(source, target, safe)
    elif source.is_floating:
        return _of_float(source, target, safe)
    elif source.kind == "boolean":
        if target.is_integral or target.is_floating or target.kind == "string":
            return plain
        if target.is_decimal:
            return f"{_word(safe)}(CAST({{0}} AS INTEGER) AS {{type}})"
    elif source.kind == "date":
        if target.kind in ("string", "timestamp", "timestamp_ntz"):
            return plain
    elif source.kind == "binary":
        return "decode({0})" if target.kind == "string" else None
    elif (source.kind, target.kind) in (("timestamp", "date"), ("timestamp_ntz", "date")):
        return plain
    return None


def _of_decimal(source: DataType, target: DataType, safe: bool) -> str | None:
    if target.is_integral:
        # NOTE: Spark cuts digits off, DuckDB rounds.
        return f"{_word(safe)}(trunc({{0}}) AS {{type}})"
    if target.is_decimal and target.scale < source.scale and source.precision > 18:
        # NOTE: DuckDB's own cast divides numbers of 128 bits one by one, which is far slower.
        return decimal_call("try_round" if safe else "round", (source,), target)
    if target.kind == "double" and source.precision > 18 and not source.scale:
        # NOTE: DuckDB's own cast of such numbers is off by one in the last bit.
        return "CAST(CAST({0} AS VARCHAR) AS DOUBLE)"
    if target.is_decimal or target.kind == "double":
        return f"{_word(safe)}({{0}} AS {{type}})"
    if target.kind == "boolean":
        return "({0} <> 0)"
    if target.kind == "string":
        return _decimal_text(source)
    return None


def _decimal_text(source: DataType) -> str | None:
    if source.precision > source.scale:
        return "CAST({0} AS VARCHAR)"
    if source.precision < 38:
        # NOTE: without a digit left of the point DuckDB writes `.05`.
        return f"CAST(CAST({{0}} AS DECIMAL({source.precision + 1},{source.scale})) AS VARCHAR)"
    return None


def _of_float(source: DataType, target: DataType, safe: bool) -> str | None:
    if target.kind == "double":
        return "CAST({0} AS DOUBLE)"
    if target.kind == "boolean":
        return "({0} <> 0)"
    if target.is_integral:
        # DuckDB rounds where Spark cuts off. Both refuse NaN, infinities and what is out of range.
        return f"{_word(safe)}(trunc({{0}}) AS {{type}})"
    if target.kind == "float":
        largest = "CAST('3.4028235677973366e38' AS DOUBLE)"
        return (
            f"CASE WHEN abs({{0}}) >= {largest} AND NOT isnan({{0}}) "
            "THEN CAST(CASE WHEN {0} > 0 THEN 'inf' ELSE '-inf' END AS FLOAT) "
            "ELSE CAST({0} AS FLOAT) END"
        )
    if source.kind == "double" and target.is_decimal:
        return _double_to_decimal(target, safe)
    if target.kind == "string":
        return float_text(source)
    return None


# From here on, Java writes other digits than the shortest ones.
_LARGE = "CAST('9007199254740992' AS DOUBLE)"


def _double_to_decimal(target: DataType, safe: bool) -> str:
    """Through the text of the double, as Java's `BigDecimal.valueOf` does; NULL for NaN."""
    tiny = "abs({0}) < CAST('1e-3' AS DOUBLE) AND {0} <> 0"
    small = _checked_decimal(_without_exponent("CAST({0} AS VARCHAR)"), target, safe, "{0}")
    plain = _checked_decimal("CAST({0} AS VARCHAR)", target, safe, "{0}")
    other = f"abs({{0}}) >= {_LARGE}"
    if target.scale > 18:
        # Java writes small powers of 2 with one digit more than the shortest text has.
        small = _checked_decimal(
            _without_exponent(java_float_digits("double")), target, safe, "{0}"
        )
    exact = _checked_decimal(java_float_digits("double"), target, safe, "{0}")
    return (
        f"CASE WHEN NOT isfinite({{0}}) THEN NULL WHEN {other} THEN {exact} "
        f"WHEN {tiny} THEN {small} ELSE {plain} END"
    )


def _without_exponent(text: str) -> str:
    """The text of a double below 0.001 with all its digits: `0.000015` for `1.5e-05`."""
    # NOTE: DuckDB computes constants also where a CASE leaves them out, so nothing here may raise.
    digits = f"replace(regexp_extract({text}, '^-?([0-9.]+)', 1), '.', '')"
    exponent = f"TRY_CAST(regexp_extract({text}, '[eE]-([0-9]+)$', 1) AS INTEGER)"
    return (
        f"CASE WHEN regexp_matches({text}, '[eE]') THEN CASE WHEN {{0}} < 0 THEN '-' ELSE '' END "
        f"|| '0.' || repeat('0', {exponent} - 1) || {digits} ELSE {text} END"
    )


def _checked_decimal(
    text: str, target: DataType, safe: bool, number: str = "", rare: str = ""
) -> str:
    """A text as a decimal; DuckDB's own check of the range misses texts with exponents.

    Args:
        text: The text.
        target: The decimal.
        safe: Whether NULL stands for a number out of range.
        number: The text as a double, where it is known.
        rare: Branches for texts in the range that are cast in another way.
    """
    # A text that is a bit less than the limit may be the limit as a double.
    limit = "1" if number else "1.001"
    number = number or f"TRY_CAST({text} AS DOUBLE)"
    top = f"CAST('{limit}e{target.precision - target.scale}' AS DOUBLE)"
    other = "NULL" if safe else "CAST(error('NUMERIC_VALUE_OUT_OF_RANGE') AS {type})"
    cast = f"{_word(safe)}({text} AS {{type}})"
    return f"CASE WHEN abs({number}) >= {top} THEN {other} {rare}ELSE {cast} END"


def _extract(pattern: str, group: int = 1) -> str:
    return f"regexp_extract({{0}}, {quoted(pattern)}, {group})"


def _matches(pattern: str) -> str:
    return f"regexp_matches({{0}}, {quoted(pattern)})"


def _of_text(target: DataType, safe: bool) -> str | None:
    word = _word(safe)
    if target.is_integral:
        return f"{word}({_extract(rf'^{_BLANK}([+-]?[0-9]+){_BLANK}$')} AS {{type}})"
    if target.is_floating:
        text = _extract(rf"^{_JAVA_BLANK}(?:({_NUMBER})[fFdD]?|({_NOT_FINITE})){_JAVA_BLANK}$")
        special = _extract(rf"^{_JAVA_BLANK}({_NOT_FINITE}){_JAVA_BLANK}$")
        body = (
            f"CASE WHEN {_matches('[iI][nN][fF]|[nN][aA][nN]')} "
            f"THEN {word}({special} AS {{type}}) ELSE {word}({text} AS {{type}}) END"
        )
        # Java reads hexadecimal floats, and `-NaN` in that case only.
        return _raising("[xX]|[+-]NaN", body) if safe else body
    if target.is_decimal:
        number = _extract(rf"^{_JAVA_BLANK}({_NUMBER}){_JAVA_BLANK}$")
        shape = rf"^{_JAVA_BLANK}{_MANTISSA}[eE][+-]?[0-9]{{1,3}}{_JAVA_BLANK}$"
        long = rf"^{_JAVA_BLANK}{_MANTISSA}[eE][+-]?[0-9]{{4,}}{_JAVA_BLANK}$"
        digits = f"CASE WHEN {_matches(shape)} THEN {_plain_digits()} ELSE {number} END"
        # A search for a letter is much faster than that for a pattern.
        exponent = "contains({0}, 'e') OR contains({0}, 'E')"
        other = _raising(long, f"{word}({digits} AS {{type}})")
        body = _checked_decimal(number, target, safe, rare=f"WHEN {exponent} THEN {other} ")
        # Java reads the digits of all scripts.
        return _raising(r"[^\x00-\x7f]", body) if safe else body
    if target.kind == "boolean":
        return _text_to_boolean(safe)
    if target.kind == "date":
        return _text_to_date(safe)
    if target.kind == "binary":
        return "encode({0})"
    return None


def _plain_digits() -> str:
    """A text with an exponent of up to three digits as a number with all its digits."""
    shape = rf"^{_JAVA_BLANK}{_SCIENTIFIC}{_JAVA_BLANK}$"
    sign, whole, fraction, exponent = (_extract(shape, n) for n in range(1, 5))
    digits = f"{whole} || {fraction}"
    point = f"(length({whole}) + TRY_CAST({exponent} AS INTEGER))"
    # More zeros than a decimal has digits change nothing. Nor may this raise for other texts.
    return (
        f"{sign} || CASE WHEN {point} <= 0 "
        f"THEN '0.' || repeat('0', least(-{point}, 80)) || {digits} "
        f"WHEN {point} >= length({digits}) "
        f"THEN {digits} || repeat('0', least({point} - length({digits}), 80)) "
        f"ELSE left({digits}, {point}) || '.' || substring({digits}, {point} + 1) END"
    )


def _raising(pattern: str, body: str) -> str:
    """`body`, but an error for texts with the pattern, which DuckDB reads in another way."""
    return (
        f"CASE WHEN {_matches(pattern)} THEN CAST(error('SPARK_ONLY') AS {{type}}) ELSE {body} END"
    )


def _text_to_boolean(safe: bool) -> str:
    text = f"lower({_extract(rf'^{_BLANK}([a-zA-Z01]+){_BLANK}$')})"
    other = "NULL" if safe else "CAST(error('CAST_INVALID_INPUT') AS BOOLEAN)"
    return (
        f"CASE WHEN {text} IN ('t', 'true', 'y', 'yes', '1') THEN true "
        f"WHEN {text} IN ('f', 'false', 'n', 'no', '0') THEN false "
        f"WHEN {{0}} IS NULL THEN NULL ELSE {other} END"
    )


def _text_to_date(safe: bool) -> str:
    parts = [f"coalesce(nullif({_extract(_DATE, n)}, ''), '01')" for n in (2, 3)]
    text = " || '-' || ".join([_extract(_DATE), *parts])
    other = "java_date({0})"
    if not safe:
        error = "CASE WHEN {0} IS NOT NULL THEN CAST(error('CAST_INVALID_INPUT') AS DATE) END"
        other = f"coalesce({other}, {error})"
    plain = f"{_word(safe)}({text} AS DATE)"
    return f"CASE WHEN {_matches(_LONG_YEAR)} THEN {other} ELSE {plain} END"
