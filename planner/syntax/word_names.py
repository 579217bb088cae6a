"""Read keywords as names where Spark does.

Spark reserves no word: `SELECT when FROM t`, `SELECT 1 AS select` and `GROUP BY all` name columns.
sqlglot reserves about fifty. A word is a name here if its neighbours leave no other reading: behind
a point or AS, in front of a point, or where a value must begin and the word cannot begin one. So
tokens are looked at from left to right, remembering whether a value must come next.
"""

from __future__ import annotations

from sqlglot.tokenizer_core import Token, TokenType

_T = TokenType
_CLOSING = frozenset((_T.COMMA, _T.R_PAREN, _T.R_BRACKET, _T.SEMICOLON))
_OPERATORS = frozenset(
    (
        _T.EQ, _T.NEQ, _T.NULLSAFE_EQ, _T.LT, _T.LTE, _T.GT, _T.GTE, _T.SLASH, _T.MOD, _T.DPIPE,
        _T.AMP, _T.PIPE, _T.CARET, _T.DIV, _T.PLUS, _T.DASH, _T.TILDE, _T.ARROW, _T.NOT,
    )
)  # fmt: skip
# Behind these a value, a relation or a name must follow.
_OPENING = frozenset(
    (
        _T.L_PAREN, _T.L_BRACKET, _T.COMMA, _T.SELECT, _T.DISTINCT, _T.WHERE, _T.AND, _T.OR,
        _T.GROUP_BY, _T.ORDER_BY, _T.PARTITION_BY, _T.CLUSTER_BY, _T.DISTRIBUTE_BY, _T.SORT_BY,
        _T.ON, _T.HAVING, _T.WHEN, _T.THEN, _T.ELSE, _T.CASE, _T.BETWEEN, _T.LIKE, _T.ILIKE,
        _T.RLIKE, _T.FROM, _T.JOIN, _T.QUALIFY, _T.WITH, _T.ESCAPE, _T.IN, _T.UNION, _T.EXCEPT,
        _T.INTERSECT, _T.ALL, _T.STRAIGHT_JOIN, _T.INTERVAL, _T.DOT,
    )
)  # fmt: skip
_SET_OPERATIONS = frozenset((_T.UNION, _T.EXCEPT, _T.INTERSECT))
# Words that may begin a value, a relation or a query; each is a name where none can follow it.
_STARTING = frozenset(
    (
        _T.NOT, _T.CASE, _T.INTERVAL, _T.SELECT, _T.VALUES, _T.WITH, _T.ALL, _T.DISTINCT, _T.FROM,
        _T.LATERAL, _T.ANY, _T.EXISTS,
    )
)  # fmt: skip
_CALLED = frozenset((_T.ANY, _T.ARRAY, _T.MAP, _T.STRUCT, _T.LIST, _T.RANGE, _T.EXISTS))
_NESTED = frozenset((_T.ARRAY, _T.MAP, _T.STRUCT))
_BRACKETS = {_T.LT: 1, _T.GT: -1}
_NEVER_STARTING = frozenset(
    (
        _T.ALTER, _T.AND, _T.ALIAS, _T.BETWEEN, _T.CREATE, _T.CROSS, _T.DROP, _T.ELSE, _T.EXCEPT,
        _T.FETCH, _T.FOR, _T.GRANT, _T.HAVING, _T.ILIKE, _T.INNER, _T.INSERT, _T.INTERSECT,
        _T.INTO, _T.JOIN, _T.LIKE, _T.ON, _T.OR, _T.OUTER, _T.QUALIFY, _T.REVOKE, _T.ROLLBACK,
        _T.SERDE_PROPERTIES, _T.TABLE_SAMPLE, _T.THEN, _T.UNCACHE, _T.UNION, _T.USING, _T.WHEN,
        _T.WHERE, _T.ASOF, _T.LOCK, _T.DESCRIBE, _T.SET, _T.OVER, _T.ESCAPE, _T.RLIKE,
        _T.STRAIGHT_JOIN,
    )
)  # fmt: skip
_NO_PARENTHESES = frozenset(
    (_T.CURRENT_DATE, _T.CURRENT_TIMESTAMP, _T.CURRENT_USER, _T.SESSION_USER)
)
_NOT_A_VALUE = frozenset((_T.FROM, _T.SELECT, _T.LATERAL, _T.VALUES, _T.WITH))
_BEFORE_RELATIONS = frozenset((_T.L_PAREN, _T.FROM, _T.JOIN, _T.COMMA))
_BEFORE_ITEMS = ("SELECT", "WHERE", "EXTEND", "AGGREGATE", "SET", "DROP", "AS")  # of pipes
_CONSTANTS = frozenset((_T.TRUE, _T.FALSE, _T.NULL))
_WORDS = _STARTING | _CALLED | _NEVER_STARTING | _NO_PARENTHESES
# What follows a value, and so shows that the word before it was one.
_FOLLOWING = frozenset(
    (
        *_CLOSING, _T.EQ, _T.NEQ, _T.NULLSAFE_EQ, _T.LT, _T.LTE, _T.GT, _T.GTE, _T.SLASH, _T.MOD,
        _T.DPIPE, _T.DCOLON, _T.ARROW, _T.DIV, _T.IS, _T.IN, _T.BETWEEN, _T.AND, _T.OR, _T.ALIAS,
        _T.FROM, _T.WHERE, _T.GROUP_BY, _T.ORDER_BY, _T.HAVING, _T.LIMIT, _T.DESC, _T.ASC,
        _T.THEN, _T.WHEN, _T.ELSE, _T.END, _T.ON, _T.PIPE_GT, _T.JOIN, _T.LIKE,
    )
)  # fmt: skip
# What follows an alias that is written without AS.
_BEHIND_ALIASES = frozenset(
    (*_CLOSING, _T.ALIAS, _T.WHERE, _T.GROUP_BY, _T.ORDER_BY, _T.HAVING, _T.LIMIT, _T.PIPE_GT)
)


def with_word_names(tokens: list[Token]) -> list[Token]:
    """The tokens, in which keywords that are names are plain words."""
    result: list[Token] = []
    wanted = False  # whether a value, a relation or a name must come next
    listed = False  # whether it is a list of names, such as that of USING
    nested = 0  # how many types, such as ARRAY<INT>, are open
    for position, token in enumerate(tokens):
        if nested or (token.token_type == _T.LT and result and result[-1].token_type in _NESTED):
            behind = [t.token_type for t in tokens[position + 1 : position + 2]]
            for part in _type_tokens(token, behind):
                nested += _BRACKETS.get(part.token_type, 0)
                result.append(part)
            wanted = False
            continue
        listed = _is_listed(result, token, listed)
        if _is_word(token) and _is_name(tokens, result, position, wanted, listed):
            token = _name(token)
        wanted = _wants_value(result[-1].token_type if result else None, token, wanted)
        result.append(token)
    return result


def _type_tokens(token: Token, behind: list[TokenType]) -> list[Token]:
    """A token of a nested type: names of fields are words, and `>>>` closes three types."""
    if len(token.text) > 1 and set(token.text) == {">"}:
        count = len(token.text)
        places = [(token.line, token.col - n, token.end - n, token.end - n) for n in range(count)]
        return [Token(_T.GT, ">", *place) for place in reversed(places)]
    return [_name(token) if _is_word(token) and behind == [_T.COLON] else token]


def _name(token: Token) -> Token:
    place = (token.line, token.col, token.start, token.end)
    # sqlglot reads these by their text, unless they are quoted.
    kind = _T.IDENTIFIER if token.text.upper() in ("ANY", "CASE", "IF") else _T.VAR
    return Token(kind, token.text, *place, list(token.comments))


def _is_word(token: Token) -> bool:
    is_word = token.token_type in _WORDS or token.token_type in _CONSTANTS
    return (is_word or _is_if(token)) and token.text.isidentifier()


def _is_if(token: Token) -> bool:
    return token.token_type == _T.VAR and token.text.upper() == "IF"


def _is_listed(before: list[Token], token: Token, listed: bool) -> bool:
    """Whether the token stands in the parentheses of USING, or of EXCEPT behind a star."""
    if len(before) > 1 and before[-1].token_type == _T.L_PAREN:
        opening, ahead = before[-2].token_type, before[-3:-2]
        starred = bool(ahead) and ahead[0].token_type == _T.STAR
        is_query = token.token_type in (_T.SELECT, _T.FROM, _T.WITH, _T.VALUES, _T.L_PAREN)
        return opening == _T.USING or (opening == _T.EXCEPT and starred and not is_query)
    return listed and token.token_type != _T.R_PAREN


def _wants_value(previous: TokenType | None, token: Token, wanted: bool) -> bool:
    kind = token.token_type
    if previous == _T.PIPE_GT and token.text.upper() in _BEFORE_ITEMS:
        return True
    if previous == _T.ALIAS:
        return kind == _T.L_PAREN
    if previous == _T.DOT:
        return False  # a name, whatever the word
    if kind in (_T.HINT, _T.NOT):
        return wanted  # behind a value, NOT belongs to LIKE, IN or BETWEEN
    if kind in _OPENING or kind in _OPERATORS:
        return True
    if kind == _T.STAR:
        return not wanted  # a product, or all columns
    return kind in (_T.OVER, _T.WINDOW) and not wanted


def _is_name(
    tokens: list[Token], before: list[Token], position: int, wanted: bool, listed: bool
) -> bool:
    kind = tokens[position].token_type
    previous = before[-1].token_type if before else None
    following = [t.token_type for t in tokens[position + 1 : position + 4]]
    behind = following[0] if following else _T.SEMICOLON
    if previous == _T.DOT or listed:
        return True
    if previous is None or previous in (_T.PIPE_GT, _T.SEMICOLON):
        return False
    if previous == _T.ALIAS:
        return kind not in _CALLED and kind != _T.INTERVAL  # types, behind the AS of CAST
    if behind == _T.DOT and kind not in _CONSTANTS:
        return True
    if kind in _CONSTANTS:
        return following[:2] == [_T.DOT, _T.STAR]
    if following[:2] == [_T.ALIAS, _T.L_PAREN] and kind != _T.ALIAS:
        return True  # of a CTE or a window
    if not wanted:
        return kind not in _CALLED and _is_alias(kind, previous, following)
    if kind in _NO_PARENTHESES:
        return previous == _T.WITH
    if kind == _T.WHEN and previous == _T.CASE:
        return behind == _T.WHEN and not _is_end(following[1:])
    if kind == _T.WHERE and previous == _T.L_PAREN and _is_filter(before):
        return False
    if kind in _NEVER_STARTING:
        return True
    if kind == _T.RANGE:
        return behind in _FOLLOWING and behind != _T.BETWEEN  # else of a window frame
    if kind in _CALLED or _is_if(tokens[position]):
        return behind != _T.L_PAREN
    return _is_value(kind, previous, following)


def _is_filter(before: list[Token]) -> bool:
    return len(before) > 1 and before[-2].text.upper() == "FILTER"


def _is_alias(kind: TokenType, previous: TokenType, following: list[TokenType]) -> bool:
    """Whether a word behind a value or a relation is its alias, without AS."""
    behind = following[0] if following else _T.SEMICOLON
    if kind == _T.FROM and behind in (_T.SEMICOLON, _T.R_PAREN):
        return False  # whoever writes `SELECT a FROM` has forgotten the table
    if behind in _CLOSING:
        return previous not in _SET_OPERATIONS
    if behind == _T.FROM:
        is_operator = kind in _SET_OPERATIONS or kind == _T.DISTINCT
        is_name = _is_end(following[1:]) or following[1] == _T.DOT
        return not is_operator and previous != _T.IS and not is_name
    # `WHERE where = 1`: the word behind is the name.
    is_clause = kind == _T.ALIAS or _is_end(following[1:])
    return behind in _BEHIND_ALIASES and previous not in _SET_OPERATIONS and not is_clause


def _is_value(kind: TokenType, previous: TokenType, following: list[TokenType]) -> bool:
    """Whether a word that may begin a value is one by itself."""
    behind = following[0] if following else _T.SEMICOLON
    if previous in _SET_OPERATIONS or (previous == _T.ALL and kind != _T.ALL):
        return False
    if kind == _T.DISTINCT and previous == _T.NOT:
        return False  # IS NOT DISTINCT FROM
    is_relation = kind in (_T.LATERAL, _T.VALUES)  # else it begins a query, behind a parenthesis
    before_it = _BEFORE_RELATIONS if is_relation else (_T.L_PAREN,)
    if kind in _NOT_A_VALUE and (
        previous not in before_it or (kind != _T.SELECT and behind in (_T.PLUS, _T.DASH))
    ):
        return True
    if kind == _T.INTERVAL and behind in (_T.PLUS, _T.DASH):
        return _is_end(following[2:])
    if kind == _T.NOT and behind in (_T.IN, _T.BETWEEN, _T.LIKE):
        return False
    if kind == _T.CASE and behind == _T.WHEN:
        return previous == _T.CASE
    is_keyword = behind in _WORDS or behind in (_T.IS, _T.IN, _T.END)
    # `DISTINCT from FROM t`: the word behind is the name.
    return behind in _FOLLOWING and not (is_keyword and _is_end(following[1:]))


def _is_end(following: list[TokenType]) -> bool:
    """Whether what comes next can only follow a value."""
    return not following or following[0] in _FOLLOWING
