"""Hints of a SELECT: which texts are hints, and which of them Spark gets.

Spark ignores hints that it does not know, but its parser reads any expression in one. So Spark gets
lists of known names only, each with columns, tables and numbers in parentheses.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from stagecoach.planner.syntax.tokens import HIDDEN, SqlToken, placed_error

BY_COLUMNS = ("REPARTITION", "REPARTITION_BY_RANGE", "REBALANCE")
"""Hints that take a number of tasks, columns, or both."""

JOINS = frozenset(
    (
        "BROADCAST",
        "BROADCASTJOIN",
        "MAPJOIN",
        "MERGE",
        "MERGEJOIN",
        "SHUFFLE_MERGE",
        "SHUFFLE_HASH",
        "SHUFFLE_REPLICATE_NL",
    )
)
"""Hints that ask for a join's algorithm."""

_KNOWN = frozenset((*BY_COLUMNS, "COALESCE", *JOINS))
_MARKS = frozenset("(),.")


def check_hint(sql: str, tokens: Sequence[SqlToken]) -> None:
    """Check the tokens between `/*+` and `*/`, which sqlglot reads as one.

    Raises:
        ParseError: One is a quoted text, which could hide the end of the hint; with its place.
    """
    for token in tokens:
        if token.kind in ("text", "hint_start"):
            raise placed_error("a hint takes names and numbers only", sql, token.start)


def known_hints(sql: str, tokens: Sequence[SqlToken]) -> str:
    """Return those hints of a list that Spark knows, no longer than they were written.

    A list that is not of the form `name [(column, …)] [,] …` gives none.
    """
    visible = [token for token in tokens if token.kind not in HIDDEN]
    texts = [sql[token.start : token.end] for token in visible]
    if any(t.kind == "mark" and sql[t.start] not in _MARKS for t in visible):
        return ""
    try:
        return _joined([text for name, text in _hints(texts) if name in _KNOWN])
    except ValueError:
        return ""


def _hints(texts: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the name of each hint in upper case, and its text without comments.

    Raises:
        ValueError: The texts are not a list of hints.
    """
    position = 0
    while position < len(texts):
        if texts[position] == ",":
            position += 1
            continue
        if texts[position] in _MARKS:
            raise ValueError(f"{texts[position]} is not the name of a hint")
        end = position + 1
        if texts[end : end + 1] == ["("]:
            end = texts.index(")", end) + 1
        yield texts[position].upper(), _joined(texts[position:end])
        position = end


def _joined(texts: Sequence[str]) -> str:
    """The texts with spaces where two words would become one."""
    result = ""
    for text in texts:
        apart = result and result[-1] not in _MARKS and text[0] not in _MARKS
        result += f" {text}" if apart else text
    return result
