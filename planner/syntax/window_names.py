"""Read `window` as a name: of the time window function, and of the column that it makes.

WINDOW stays a keyword only where it begins a WINDOW clause.
"""

from __future__ import annotations

from sqlglot.tokenizer_core import Token, TokenType


def with_window_names(tokens: list[Token]) -> list[Token]:
    """The tokens, in which WINDOW stays the word of a clause only in `WINDOW name AS`."""
    result = list(tokens)
    for position, token in enumerate(tokens):
        if token.token_type != TokenType.WINDOW:
            continue
        behind = tokens[position + 2].token_type if position + 2 < len(tokens) else None
        if behind != TokenType.ALIAS:
            place = (token.line, token.col, token.start, token.end)
            result[position] = Token(TokenType.VAR, token.text, *place, list(token.comments))
    return result
