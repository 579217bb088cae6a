"""Spark's error condition for a text that sqlglot cannot parse."""

from __future__ import annotations

import re
from itertools import pairwise

from stagecoach.planner.syntax.text import CutText
from stagecoach.planner.syntax.tokens import SYNTAX_ERROR

SPARK_TYPES = frozenset(
    """array bigint binary boolean byte char character date dec decimal double float geography
    geometry int integer interval long map numeric real short smallint string struct time timestamp
    timestamp_ltz timestamp_ntz tinyint varchar variant void""".split()  # noqa: SIM905
)
"""The names that Spark has for types."""
_HEX = re.compile("""['"][0-9A-Fa-f]*['"]""")
# What a value may follow. A word there with a text behind it is a literal of a type of that name.
_BEFORE_VALUES = re.compile(r"(?:\b(?:SELECT|AND|OR|NOT|WHERE|ON)|[,(=<>+*/%-])\s*$", re.IGNORECASE)


def syntax_condition(cut: CutText, description: str = "", near: str = "") -> str:
    """The condition that Spark raises.

    Args:
        cut: The text.
        description: What sqlglot says.
        near: The token at which it stopped, if it is known.
    """
    if description.lower().startswith(("expected type", "expecting >")) and near.isidentifier():
        if near.lower() in SPARK_TYPES:
            return SYNTAX_ERROR
        return "UNSUPPORTED_DATATYPE"
    for before, token in pairwise(cut.tokens):
        word, text = (cut.text[t.start : t.end] for t in (before, token))
        if before.kind != "word" or token.kind != "text":
            continue
        if word.upper() == "X" and not _HEX.fullmatch(text):
            return "INVALID_TYPED_LITERAL"
        starts_value = _BEFORE_VALUES.search(cut.text[max(before.start - 20, 0) : before.start])
        if text == near and word.isidentifier() and starts_value:
            return "UNSUPPORTED_TYPED_LITERAL"
    return SYNTAX_ERROR
