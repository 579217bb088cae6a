"""The tokens of a SQL text, by the rules of Spark's own lexer.

sqlglot and Spark disagree about where comments, hints and quoted texts end. What one reads as a
comment the other can run. So the text is first cut by Spark's rules (`SqlBaseLexer.g4` of Spark
4.3), and everything else is decided about these tokens. `tests/security/test_lexers.py` compares
them with Spark's lexer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal as OneOf
from typing import NamedTuple

from stagecoach.planner.errors import ParseError

TokenKind = OneOf[
    "space",
    "line_comment",
    "block_comment",
    "hint_start",
    "hint_end",
    "text",
    "name",
    "word",
    "mark",
]

_SPACES = (
    " \t\n\f\r\x0b\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u202f\u205f\u3000"
)
# The order of the alternatives decides where several match, as the length does in Spark's lexer.
_RULES: dict[TokenKind, str] = {
    "space": f"[{_SPACES}]+",
    # A backslash at the end of its line continues a comment. A lone carriage return ends one.
    "line_comment": r"--(?:\\\n|[^\r\n])*\r?\n?",
    "hint_start": r"/\*\+",
    "block_comment": r"/\*",  # its end depends on the comments in it
    "hint_end": r"\*/",
    # A doubled quote is a quote. Backslashes mean nothing in raw texts.
    "text": r"""'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*"|[rR]'[^']*'|[rR]"[^"]*\"""",
    "name": r"`(?:[^`]|``)*`",
    "word": r"[A-Za-z0-9_]+",
    "mark": r"[;(),.\[\]!=<>+\-*/%~&|^:?@]",
}
_TOKEN = re.compile("|".join(f"(?P<{kind}>{rule})" for kind, rule in _RULES.items()), re.DOTALL)
_KINDS: dict[str, TokenKind] = {kind: kind for kind in _RULES}
_COMMENT_PART = re.compile(r"/\*(?!\+)|\*/")
_CLOSING = {"'": "'", '"': '"', "`": "`"}

SYNTAX_ERROR = "PARSE_SYNTAX_ERROR"
"""Spark's condition for a text that its parser refuses."""
HIDDEN: frozenset[TokenKind] = frozenset(("space", "line_comment", "block_comment"))
"""Tokens that Spark's parser never sees."""


class SqlToken(NamedTuple):
    """A piece of a SQL text.

    Attributes:
        kind: What it is. A `text` is a string literal with its quotes, a `name` an identifier in
            backticks, a `word` a keyword, identifier or number, a `mark` one character of an
            operator.
        start: Position of its first character.
        end: Position after its last character.
    """

    kind: TokenKind
    start: int
    end: int


def tokenize(sql: str) -> Iterator[SqlToken]:
    """Yield the tokens of a text, which cover it without gaps.

    A named tuple for each, because long lists have hundreds of thousands.

    Raises:
        ParseError: The text has a character that means nothing to Spark, a comment or a quoted text
            without an end, or an identifier that is a path; with its place.
    """
    position, length, match = 0, len(sql), _TOKEN.match
    while position < length:
        found = match(sql, position)
        if found is None:
            raise _unknown(sql, position)
        kind = _KINDS[found.lastgroup or ""]
        end = found.end()
        if kind == "block_comment":
            end = _comment_end(sql, position)
        elif kind == "word":
            if sql.startswith("://", end):
                raise placed_error(
                    "a path is not a table; name a table of the catalog", sql, position
                )
            if end < length and not sql[end].isascii() and sql[end].isalpha():
                raise _unknown(sql, end)
        yield SqlToken(kind, position, end)
        position = end


def placed_error(message: str, sql: str, position: int, condition: str = "") -> ParseError:
    """Return an error with the line and column of a position in the text."""
    line, column = place_at(sql, position)
    return ParseError(message, condition=condition, line=line, column=column)


def place_at(sql: str, position: int) -> tuple[int, int]:
    """The 1-based line and column of a position in the text."""
    return sql.count("\n", 0, position) + 1, position - sql.rfind("\n", 0, position)


def token_name(sql: str, token: SqlToken) -> str:
    """The text of a token; of a name in backticks, the name."""
    text = sql[token.start : token.end]
    return text[1:-1].replace("``", "`") if token.kind == "name" else text


def _comment_end(sql: str, start: int) -> int:
    """The position after a block comment; comments nest, hints do not begin one."""
    depth, position = 1, start + len("/*")
    while depth:
        found = _COMMENT_PART.search(sql, position)
        if found is None:
            message = "syntax error: what begins here has no closing */"
            raise placed_error(message, sql, start, "UNCLOSED_BRACKETED_COMMENT")
        depth += 1 if found[0] == "/*" else -1
        position = found.end()
    return position


def _unknown(sql: str, position: int) -> ParseError:
    character = sql[position]
    condition = SYNTAX_ERROR
    if closing := _CLOSING.get(character):
        text = f"syntax error: what begins here has no closing {closing}"
    elif character.isalpha():
        text = f"the name with {character!r} must be written in backticks (`)"
        condition = "INVALID_IDENTIFIER"
    else:
        text = f"syntax error: {character!r} is not part of Spark's SQL"
    return placed_error(text, sql, position, condition)
