"""Spell TO_CHAR, TO_NUMBER and TRY_TO_NUMBER for DuckDB.

Source: Spark's `ToNumberParser`. A text with blanks, digits of other scripts, or commas in other
places than its format has, is left to Spark.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from stagecoach.planner.functions.spell_strings import text_of
from stagecoach.planner.functions.templates import quoted
from stagecoach.planner.plan.expressions import Call
from stagecoach.planner.text.number_formats import number_format

_FORM = re.compile(r"(S|MI)?(\$)?([09]+(?:[,G][09]{3})*)(?:[.D]([09]*))?(S|MI|PR)?", re.IGNORECASE)
_SIGNS = {"S": "[+-]?", "MI": "-?", "": ""}
_BRACKETS = {"PR": ("<?", ">?")}


@dataclass(frozen=True)
class _Reading:
    """How texts of a format look.

    Args:
        pattern: With groups for what is before the digits, the digits, those behind the point, and
            what is at the end.
        brackets: Whether negative numbers are in brackets.
        commas: Whether there are any.
        plain: Whether there are only digits and a point.
    """

    pattern: str
    brackets: bool
    commas: bool
    plain: bool


def _reading(node: Call) -> _Reading | None:
    """How a text is read; None for formats that are not proven."""
    match = _FORM.fullmatch(text_of(node.args[1]) or "")
    if match is None:
        return None
    first, dollar, whole, places, last = (part or "" for part in match.groups())
    first, last = first.upper(), last.upper()
    groups = [len(g) for g in re.split("[,Gg]", whole)]
    uniform = len(set(whole) & {"0", "9"}) == 1
    if (first and last) or (len(groups) > 1 and not uniform):
        return None
    before, after = _BRACKETS.get(last, (_SIGNS[first], "" if last == "PR" else _SIGNS[last]))
    point = rf"(?:\.([0-9]{{0,{len(places)}}}))?" if match[4] is not None else "()"
    dollars = r"\$" if dollar else ""
    body = _whole(groups, exact=whole.startswith("0"))
    pattern = rf"^({before}){dollars}({body}){point}({after})$"
    plain = not (first or last or dollar) and len(groups) == 1
    return _Reading(pattern, last == "PR", len(groups) > 1, plain)


def _whole(groups: list[int], *, exact: bool) -> str:
    """The digits before the point: all groups if they begin with a 0, else some at the end."""
    if len(groups) == 1:
        return f"[0-9]{{{groups[0] if exact else 0},{groups[0]}}}"
    full = [f"[0-9]{{{size}}}" for size in groups]
    if exact:
        return ",".join(full)
    options = (
        ",".join([f"[0-9]{{1,{size}}}", *full[number + 1 :]]) for number, size in enumerate(groups)
    )
    return "|".join(options)


def to_number(*, safe: bool) -> Callable[[Call], str]:
    """A rule that spells reading a number; `safe` gives NULL for a text of another format."""

    def spell(node: Call) -> str:
        reading = _reading(node)
        assert reading is not None, node
        pattern = quoted(reading.pattern)
        first, whole, places, last = (f"regexp_extract({{0}}, {pattern}, {n})" for n in range(1, 5))
        sign = f"CASE WHEN {first} IN ('-', '<') OR {last} = '-' THEN '-' ELSE '' END"
        digits = f"replace({whole}, ',', '')" if reading.commas else whole
        value = f"CAST({sign} || '0' || {digits} || '.' || {places} || '0' AS {{type}})"
        tests = [f"regexp_matches({{0}}, {p})" for p in (pattern, quoted("[0-9]"))]
        if reading.brackets:
            tests.append(f"({first} = '<') = ({last} = '>')")
        return (
            "CASE WHEN {0} IS NULL THEN NULL "
            f"WHEN {' AND '.join(tests)} THEN {value} "
            f"{_other(reading) if safe else ''}ELSE CAST(error('INVALID_FORMAT') AS {{type}}) END"
        )

    return spell


def _other(reading: _Reading) -> str:
    """A branch for texts that are plainly of another format."""
    if reading.plain:
        return f"WHEN {{0}} <> '.' AND regexp_matches({{0}}, {quoted('^[!-~]*$')}) THEN NULL "
    letters = quoted("^[!-~]*[A-Za-z][!-~]*$")
    return f"WHEN regexp_matches({{0}}, {letters}) THEN NULL "


def refuse_to_number(node: Call) -> str | None:
    """Digits, a point, commas before three digits, a dollar and one sign."""
    return None if _reading(node) else f"{node.function} by this format is not proven"


def refuse_to_char(node: Call) -> str | None:
    """Formats of digits with at most one sign."""
    text = text_of(node.args[1])
    known = text is not None and number_format(text) is not None
    return None if known else "to_char by this format is not proven"
