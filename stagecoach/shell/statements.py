"""Cuts what is typed into statements, by the rules of Spark's lexer."""

from __future__ import annotations

from stagecoach.planner.errors import ParseError
from stagecoach.planner.syntax.tokens import HIDDEN, tokenize

COMMAND_MARK = "."


def split_statements(text: str) -> tuple[list[str], str]:
    """The statements that a semicolon ends, without it, and what follows the last one.

    >>> split_statements("SELECT ';'; SELECT 2; SEL")
    (["SELECT ';'", 'SELECT 2'], 'SEL')

    A text or comment that is not closed goes on, so no semicolon in it ends anything.
    """
    found: list[str] = []
    start = 0
    has_rest = False
    try:
        for token in tokenize(text):
            has_rest = has_rest or token.kind not in HIDDEN
            if token.kind == "mark" and text[token.start : token.end] == ";":
                found.append(text[start : token.start].strip())
                start, has_rest = token.end, False
    except ParseError:
        has_rest = True  # what is not closed yet, or is not SQL
    rest = text[start:].strip() if has_rest else ""
    return [statement for statement in found if statement], rest


def is_complete(text: str) -> bool:
    """Whether Enter runs a text rather than begin another line of it."""
    stripped = text.strip()
    if not stripped or stripped.startswith(COMMAND_MARK):
        return True
    statements, rest = split_statements(text)
    return bool(statements) and not rest
