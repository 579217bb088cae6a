"""Check that sqlglot read a text as Spark reads it.

The plan is made from sqlglot's tokens. If they do not cover exactly the tokens of Spark's lexer,
sqlglot has taken something for a comment or a quoted text that Spark would run, or the reverse.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from stagecoach.planner.errors import ParseError
from stagecoach.planner.syntax.text import CutText
from stagecoach.planner.syntax.tokens import SqlToken, placed_error

if TYPE_CHECKING:
    from sqlglot.tokenizer_core import Token

_QUOTED = ("text", "name")


def check_agreement(cut: CutText, tokens: Sequence[Token]) -> None:
    """Check sqlglot's tokens of a text without comments against Spark's.

    Every token of Spark's must lie in one of sqlglot's. A quoted one must be the only quoted one
    there, and end where that ends. A hint is one token of sqlglot's; a second one it ignores.

    Args:
        cut: The text, and Spark's tokens of it.
        tokens: What sqlglot's tokenizer made of `cut.text`.

    Raises:
        ParseError: They differ, with the place.
    """
    remaining = list(reversed(tokens))
    quoted: Token | None = None  # that holds the last quoted token of Spark's
    sql = cut.text
    for token in _joined_hints(cut.tokens):
        while remaining and remaining[-1].end < token.start:
            remaining.pop()
        theirs = remaining[-1] if remaining else None
        if token.kind == "hint_start":
            spans = (token.start, token.end)
            if theirs and theirs.start < token.end and (theirs.start, theirs.end + 1) != spans:
                raise _disagreement(sql, token)
            continue
        if theirs is None or theirs.start > token.start or theirs.end + 1 < token.end:
            raise _disagreement(sql, token)
        if token.kind in _QUOTED:
            if theirs.end + 1 != token.end or theirs is quoted:
                raise _disagreement(sql, token)
            quoted = theirs


def _joined_hints(tokens: Sequence[SqlToken]) -> list[SqlToken]:
    """The tokens with each hint as one."""
    result: list[SqlToken] = []
    start: int | None = None
    for token in tokens:
        if token.kind == "hint_start":
            start = token.start
        elif token.kind == "hint_end" and start is not None:
            result.append(SqlToken("hint_start", start, token.end))
            start = None
        elif start is None:
            result.append(token)
    return result


def _disagreement(sql: str, token: SqlToken) -> ParseError:
    return placed_error("the text cannot be read as Spark reads it", sql, token.start)
