"""Join the tokens that are one constant to Spark: adjacent texts, and names in IDENTIFIER('…')."""

from __future__ import annotations

import re

from sqlglot.tokenizer_core import Token, TokenType

_T = TokenType
TEXTS = (_T.STRING, _T.RAW_STRING)
"""The tokens of texts."""
TYPES = frozenset(
    (_T.DATE, _T.TIMESTAMP, _T.TIMESTAMPLTZ, _T.TIMESTAMPNTZ, _T.TIMESTAMPTZ, _T.TIME, _T.INTERVAL)
)
"""The types that a typed literal such as `DATE '…'` begins with."""
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def with_joined_constants(tokens: list[Token]) -> list[Token]:
    """The tokens with `'a' 'b'` as one text, and `IDENTIFIER('a')` as the name in backticks.

    A typed literal such as `DATE '…'` has one text only.
    """
    result: list[Token] = []
    for position, token in enumerate(tokens):
        behind = tokens[position + 1].token_type if position + 1 < len(tokens) else None
        previous = result[-1] if result else None
        if previous is not None and _is_continued(result, token):
            result[-1] = _token(_T.STRING, previous.text + token.text, previous)
        elif behind != _T.DOT and _closes_identifier(result, token):
            word, text = result[-3], result[-1].text
            result[-3:] = [_token(_T.IDENTIFIER, text, word)]
        else:
            result.append(token)
    return result


def _is_continued(before: list[Token], token: Token) -> bool:
    if token.token_type not in TEXTS or before[-1].token_type not in TEXTS:
        return False
    return len(before) < 2 or before[-2].token_type not in TYPES


def _closes_identifier(before: list[Token], token: Token) -> bool:
    if token.token_type != _T.R_PAREN or len(before) < 3:
        return False
    word, opening, text = before[-3:]
    is_call = word.token_type == _T.VAR and word.text.upper() == "IDENTIFIER"
    behind_point = len(before) > 3 and before[-4].token_type == _T.DOT
    is_text = opening.token_type == _T.L_PAREN and text.token_type in TEXTS
    return is_call and is_text and not behind_point and bool(_NAME.fullmatch(text.text))


def _token(kind: TokenType, text: str, place: Token) -> Token:
    return Token(kind, text, place.line, place.col, place.start, place.end, list(place.comments))
