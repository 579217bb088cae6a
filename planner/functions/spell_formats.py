"""Spell TO_CHAR, TO_NUMBER and TRY_TO_NUMBER for DuckDB; the latter for digits and a point.

Source: Spark's `ToNumberParser`. A text with blanks or digits of other scripts is left to Spark.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from stagecoach.planner.functions.spell_strings import text_of
from stagecoach.planner.functions.templates import quoted
from stagecoach.planner.plan.expressions import Call
from stagecoach.planner.text.number_formats import number_format

_DIGITS = re.compile(r"([09]+)(?:[.dD]([09]*))?")


def _parts(node: Call) -> tuple[str, str] | None:
    """The digits of the format on both sides of its point; None for other formats."""
    match = _DIGITS.fullmatch(text_of(node.args[1]) or "")
    return None if match is None else (match[1], match[2] or "")


def to_number(*, safe: bool) -> Callable[[Call], str]:
    """A rule that spells reading a number; `safe` gives NULL for a text of another format."""

    def spell(node: Call) -> str:
        whole, places = _parts(node) or ("", "")
        # Digits that begin with a 0 must all be there.
        fewest = len(whole) if whole.startswith("0") else 0
        before = f"([0-9]{{{fewest},{len(whole)}}})"
        pattern = quoted(rf"^{before}(?:\.([0-9]{{0,{len(places)}}}))?$")
        before, after = (f"regexp_extract({{0}}, {pattern}, {n})" for n in (1, 2))
        value = f"CAST('0' || {before} || '.' || {after} || '0' AS {{type}})"
        error = "CAST(error('INVALID_FORMAT') AS {type})"
        digit = quoted("[0-9]")
        other = ""
        if safe:
            plain = quoted("^[!-~]*$")
            other = f"WHEN {{0}} <> '.' AND regexp_matches({{0}}, {plain}) THEN NULL "
        return (
            "CASE WHEN {0} IS NULL THEN NULL "
            f"WHEN regexp_matches({{0}}, {pattern}) AND regexp_matches({{0}}, {digit}) "
            f"THEN {value} {other}ELSE {error} END"
        )

    return spell


def refuse_to_number(node: Call) -> str | None:
    """Only digits and a point."""
    return None if _parts(node) else f"{node.function} by this format is not proven"


def refuse_to_char(node: Call) -> str | None:
    """Formats of digits with at most one sign."""
    text = text_of(node.args[1])
    known = text is not None and number_format(text) is not None
    return None if known else "to_char by this format is not proven"
