"""Translate Spark's datetime patterns, such as `yyyy-MM-dd HH:mm`, into DuckDB SQL.

A pattern with a letter that is not proven has no translation. Texts outside the proven range, such
as those of a year above 9999, raise, and Spark runs the stage. Source: Spark's
`DateTimeFormatterHelper` over `java.time`, locale en-US.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from stagecoach.planner.functions.spell_times import year_text
from stagecoach.planner.functions.templates import quoted

_MONTHS = "MMM"
_TOKEN = re.compile(r"'((?:[^']|'')*)'|([A-Za-z])\2*|([^A-Za-z']+)")
Token = tuple[str, str]


def tokens(pattern: str) -> list[Token] | None:
    """Letters with their counts and literal text, or None for what Spark refuses."""
    found: list[Token] = []
    position = 0
    while position < len(pattern):
        match = _TOKEN.match(pattern, position)
        if (
            match is None
            or "[" in match[0]
            or "]" in match[0]
            or "#" in match[0]
            or "{" in match[0]
            or "}" in match[0]
        ):
            return None
        position = match.end()
        if match[2]:
            found.append(("letter", match[0]))
        elif match[3]:
            found.append(("text", match[3]))
        else:
            found.append(("text", match[1].replace("''", "'") or "'"))
    return found


# ---------------------------------------------------------------- writing


def _padded(value: str, width: int) -> str:
    if width == 1:
        return f"CAST({value} AS VARCHAR)"
    return f"lpad(CAST({value} AS VARCHAR), {width}, '0')"


def _two_digits(value: str) -> str:
    wide = "CAST(error('FIELD_TOO_WIDE') AS VARCHAR)"
    return f"CASE WHEN {value} < 100 THEN {_padded(value, 2)} ELSE {wide} END"


def _letter(letters: str, when: str) -> str | None:
    """SQL of one pattern letter of a local time."""
    letter, count = letters[0], len(letters)
    hour12 = f"((hour({when}) + 11) % 12 + 1)"
    numbers = {
        "d": (f"day({when})", 2),
        "H": (f"hour({when})", 2),
        "m": (f"minute({when})", 2),
        "s": (f"second({when})", 2),
        "h": (hour12, 2),
        "k": (f"((hour({when}) + 23) % 24 + 1)", 2),
        "K": (f"(hour({when}) % 12)", 2),
    }
    if letter in numbers and count <= numbers[letter][1]:
        return _padded(numbers[letter][0], count)
    if letters == "yy":
        return _padded(f"(abs(year({when})) % 100)", 2)
    if letter == "y" and count in (1, 4):
        return year_text(when) if count == 4 else f"CAST(year({when}) AS VARCHAR)"
    if letter in "ML" and count <= 2:
        return _padded(f"month({when})", count)
    names = {
        "MMM": f"left(monthname({when}), 3)",
        "LLL": f"left(monthname({when}), 3)",
        "MMMM": f"monthname({when})",
        "LLLL": f"monthname({when})",
        "E": f"left(dayname({when}), 3)",
        "EE": f"left(dayname({when}), 3)",
        "EEE": f"left(dayname({when}), 3)",
        "EEEE": f"dayname({when})",
        "D": f"CAST(dayofyear({when}) AS VARCHAR)",
        "DD": _two_digits(f"dayofyear({when})"),
        "DDD": _padded(f"dayofyear({when})", 3),
        "a": f"CASE WHEN hour({when}) < 12 THEN 'AM' ELSE 'PM' END",
        "Q": f"CAST(quarter({when}) AS VARCHAR)",
        "q": f"CAST(quarter({when}) AS VARCHAR)",
        "QQ": f"lpad(CAST(quarter({when}) AS VARCHAR), 2, '0')",
        "QQQ": f"('Q' || CAST(quarter({when}) AS VARCHAR))",
    }
    if letters in names:
        return f"({names[letters]})"
    if letter == "S" and count <= 9:
        micros = f"(((epoch_us({when}) % 1000000) + 1000000) % 1000000)"
        digits = f"(lpad(CAST({micros} AS VARCHAR), 6, '0') || '000')"
        return f"left({digits}, {count})"
    return None


def written(pattern: str, when: str) -> str | None:
    """SQL that writes a local time, or None for an unproven pattern."""
    parts = []
    found = tokens(pattern)
    if not found:
        return None
    for kind, text in found:
        part = quoted(text) if kind == "text" else _letter(text, when)
        if part is None:
            return None
        parts.append(part)
    return f"CASE WHEN {when} IS NOT NULL THEN {' || '.join(parts)} END"


# ---------------------------------------------------------------- reading

_FIELDS = {
    "yyyy": (r"(\d\d\d\d)", "year"),
    "MM": (r"(\d\d)", "month"),
    "dd": (r"(\d\d)", "day"),
    "HH": (r"(\d\d)", "hour"),
    "mm": (r"(\d\d)", "minute"),
    "ss": (r"(\d\d)", "second"),
    "M": (r"(\d\d?)", "month"),
    "d": (r"(\d\d?)", "day"),
    "H": (r"(\d\d?)", "hour"),
    "m": (r"(\d\d?)", "minute"),
    "s": (r"(\d\d?)", "second"),
    "y": (r"(\d\d\d\d)", "year"),
}
_GREEDY = "yMdHmsS"  # letters that read more digits than they are long, if they may
_DEFAULTS = {"year": "1970", "month": "1", "day": "1", "hour": "0", "minute": "0", "second": "0"}


@dataclass(frozen=True)
class Reading:
    """How a text is read by a pattern, in SQL.

    Args:
        shape: Whether the digits of the text stand where the pattern has them.
        bounds: Whether each field is in its range, the day of the month apart.
        perhaps: Whether Java might read the text, by a sign or more digits than DuckDB allows.
        when: The local time; an error for a day that does not exist.
        year: The year.
    """

    shape: str
    bounds: str
    perhaps: str
    when: str
    year: str


def read(pattern: str, text: str) -> Reading | None:
    """How to read a text by a literal pattern.

    Args:
        pattern: A literal pattern.
        text: SQL of the text.

    Returns:
        None for an unproven pattern.
    """
    regex, wide, fields = "", "", list[str]()
    previous = last = ""
    found = tokens(pattern)
    if not found:
        return None
    for kind, part in found:
        if kind == "text":
            if previous == "letter" and last[0] in _GREEDY and part[0].isdigit():
                return None  # Java leaves no digits for the text
            regex += re.escape(part)
            wide += re.escape(part)
        elif part[0] == "S" and len(part) <= 6 and "fraction" not in fields:
            regex += rf"(\d{{1,{len(part)}}})"
            wide += r"\d*"
            fields.append("fraction")
        elif part in _FIELDS and _FIELDS[part][1] not in fields:
            if previous == "letter" and (len(part) == 1 or len(last) == 1 or last[0] == "S"):
                return None  # digits of neighbours would be shared out
            regex += _FIELDS[part][0]
            wide += _wide(part)
            fields.append(_FIELDS[part][1])
        else:
            return None
        if previous == kind == "letter" and fields[-1] == "fraction":
            return None
        previous, last = kind, part
    if "'" in regex or "\\'" in regex or not fields:
        return None
    pattern_text = quoted(regex)

    def field(name: str) -> str:
        if name not in fields:
            return _DEFAULTS[name]
        return f"CAST(regexp_extract({text}, {pattern_text}, {fields.index(name) + 1}) AS INTEGER)"

    year, month, day, hour, minute, second = map(field, _DEFAULTS)
    clock = f"CAST({hour} * 3600 + {minute} * 60 + {second} AS BIGINT) * 1000000"
    if "fraction" in fields:
        digits = f"regexp_extract({text}, {pattern_text}, {fields.index('fraction') + 1})"
        clock += f" + CAST(rpad({digits}, 6, '0') AS BIGINT)"
    tops = (("hour", 24), ("minute", 60), ("second", 60))
    bounds = [f"{field(name)} < {top}" for name, top in tops if name in fields]
    date = f"CAST(make_date({year}, {month}, {day}) AS TIMESTAMP)"
    return Reading(
        shape=f"regexp_full_match({text}, {pattern_text})",
        bounds=" AND ".join(bounds) or "true",
        perhaps=f"regexp_full_match({text}, {quoted(wide)}, 'i')",
        when=f"make_timestamp(epoch_us({date}) + {clock})",
        year=year,
    )


def _wide(letters: str) -> str:
    if letters[0] == "y":
        return rf"[+-]?\d{{{len(letters)},19}}"
    return r"[+-]?\d{1,19}" if len(letters) == 1 else r"\d\d"
