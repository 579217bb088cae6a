"""Refuse what sqlglot reads and Spark's parser does not: numbers out of range, `a ! IN b`.

Tokens are sqlglot's: a number with a suffix, such as `5L`, is three of them, a number, `::` and a
type, all at the place of the number.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from stagecoach.planner.errors import ParseError

_T = TokenType
_BITS = {_T.TINYINT: 8, _T.SMALLINT: 16, _T.BIGINT: 64}
_GREATEST = {
    _T.FLOAT: float.fromhex("0x1.fffffep+127"),
    _T.DOUBLE: float.fromhex("0x1.fffffffffffffp+1023"),
}
_OPERANDS = (_T.VAR, _T.IDENTIFIER, _T.NUMBER, _T.STRING, _T.R_PAREN, _T.R_BRACKET)
_INFIX = (_T.IN, _T.BETWEEN, _T.LIKE, _T.ILIKE, _T.RLIKE)


def with_ranges_checked(tokens: list[Token]) -> list[Token]:
    """The tokens, where the minus of `-128Y` belongs to the number, as it does in Spark.

    Raises:
        ParseError: A number is out of the range of its type, or `!` stands between operands.
    """
    _refuse_marks(tokens)
    result: list[Token] = []
    for position, token in enumerate(tokens):
        result.append(token)
        if token.token_type != _T.NUMBER:
            continue
        kind = _suffix(tokens, position)
        least = kind in _BITS and int(token.text) == 1 << (_BITS[kind] - 1)
        if least and _is_signed(result):
            result[-2:] = _in_parentheses(result[-2:])
        elif not _fits(token.text, kind):
            raise _error(
                token,
                f"the number {token.text} is out of the range of {(kind or _T.DOUBLE).name}",
                "INVALID_NUMERIC_LITERAL_RANGE",
            )
    return result


SUFFIXES = frozenset(("y", "s", "l", "f", "d", "bd"))
"""The suffixes of numbers, in lower case."""


def is_suffixed(node: exp.Expr) -> bool:
    """Whether a node is a number with a suffix, such as `5L`, and no cast of a number."""
    if not isinstance(node, exp.Cast) or not isinstance(node.this, exp.Literal):
        return False
    if node.to.this == exp.DType.DECIMAL and "written" not in node.to.meta:
        return True  # sqlglot gives `1.5BD` its precision
    return not node.this.is_string and str(node.to.meta.get("written", "")).lower() in SUFFIXES


def _suffix(tokens: list[Token], position: int) -> TokenType | None:
    """The type that the suffix of a number names; `1::double` has none."""
    behind = tokens[position + 1 : position + 3]
    if len(behind) < 2 or any(t.start != tokens[position].start for t in behind):
        return None
    return behind[1].token_type


def _fits(text: str, kind: TokenType | None) -> bool:
    if kind in _BITS:
        return int(text) < 1 << (_BITS[kind] - 1)
    if kind is None and "e" in text.lower():
        kind = _T.DOUBLE
    return kind not in _GREATEST or float(text) <= _GREATEST[kind]


def _is_signed(tokens: list[Token]) -> bool:
    """Whether the last token has a minus before it that subtracts from nothing."""
    if len(tokens) < 2 or tokens[-2].token_type != _T.DASH:
        return False
    return len(tokens) < 3 or tokens[-3].token_type not in _OPERANDS


def _in_parentheses(tokens: list[Token]) -> Iterator[Token]:
    first, last = tokens[0], tokens[-1]
    yield Token(_T.L_PAREN, "(", first.line, first.col, first.start, first.end)
    yield from tokens
    yield Token(_T.R_PAREN, ")", last.line, last.col, last.start, last.end)


def _refuse_marks(tokens: list[Token]) -> None:
    """Refuse `!` where NOT stands between operands, which Spark gave up."""
    for position, (token, following) in enumerate(pairwise(tokens)):
        if token.token_type != _T.NOT or token.text != "!" or not position:
            continue
        before = tokens[position - 1].token_type
        if before == _T.IS or (before in _OPERANDS and following.token_type in _INFIX):
            raise _error(token, "write NOT instead of !", "SYNTAX_DISCONTINUED.BANG_EQUALS_NOT")


def _error(token: Token, message: str, condition: str) -> ParseError:
    column = token.col - (token.end - token.start)
    return ParseError(message, condition=condition, line=token.line, column=max(column, 1))
