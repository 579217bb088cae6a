"""A pipe operator has one clause of a result: `|> ORDER BY a |> LIMIT 1`."""

from __future__ import annotations

from sqlglot.tokenizer_core import Token, TokenType

from stagecoach.planner.errors import ParseError

_ORDERS = (
    TokenType.ORDER_BY,
    TokenType.SORT_BY,
    TokenType.CLUSTER_BY,
    TokenType.DISTRIBUTE_BY,
)
_LIMITS = (TokenType.LIMIT, TokenType.OFFSET)


def refuse_second_clause(token: Token | None) -> None:
    """Refuse the LIMIT of `|> ORDER BY a LIMIT 1`, which sqlglot takes for the whole query's.

    Args:
        token: What follows a clause; None at the end of the text.

    Raises:
        ParseError: Another clause follows.
    """
    if token is None or token.token_type not in (*_ORDERS, *_LIMITS):
        return
    condition = "MULTIPLE_QUERY_RESULT_CLAUSES_WITH_PIPE_OPERATORS"
    if token.token_type in _ORDERS:
        condition = "UNSUPPORTED_FEATURE.COMBINATION_QUERY_RESULT_CLAUSES"
    word = token.text.upper()
    raise ParseError(
        f"{word} needs an operator of its own: |> {word} …",
        condition=condition,
        line=token.line,
        column=max(token.col - len(word) + 1, 1),
    )
