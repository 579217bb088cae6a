"""`EXPLAIN [EXTENDED | CODEGEN | COST | FORMATTED] SELECT …` as a statement.

The text of the query keeps its length and its lines, so places in messages are those of the whole
statement.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal as OneOf

from stagecoach.planner.errors import ParseError, UnsupportedSqlError
from stagecoach.planner.syntax.tokens import HIDDEN, SqlToken, placed_error, tokenize

ExplainMode = OneOf["simple", "extended", "cost", "formatted"]

_MODES: dict[str, ExplainMode] = {"EXTENDED": "extended", "COST": "cost", "FORMATTED": "formatted"}
_REFUSED = {
    "CODEGEN": "shows Java code that Spark generates, which stages do not have; "
    "EXPLAIN FORMATTED shows the SQL of each stage",
    "ANALYZE": "is not a Spark statement; `stagecoach explain --analyze` runs a query and "
    "compares it with its plan",
}


@dataclass(frozen=True)
class ExplainStatement:
    """An EXPLAIN.

    Args:
        mode: What is asked for; `simple` without a word.
        sql: The text with EXPLAIN and its word blanked out.
    """

    mode: ExplainMode
    sql: str


def split_explain(sql: str) -> ExplainStatement | None:
    """The EXPLAIN that the text is, or None if it is something else.

    Raises:
        UnsupportedSqlError: For EXPLAIN CODEGEN, with the place of the word.
    """
    first, second = _first_words(sql)
    if first is None or _text(sql, first) != "EXPLAIN":
        return None
    sql = _blanked(sql, first)
    name = "" if second is None else _text(sql, second)
    if second is None or name not in {**_MODES, **_REFUSED}:
        return ExplainStatement("simple", sql)
    if name in _REFUSED:
        place = placed_error("", sql, second.start)
        message = f"EXPLAIN {name} {_REFUSED[name]}"
        raise UnsupportedSqlError(message, line=place.line, column=place.column)
    return ExplainStatement(_MODES[name], _blanked(sql, second))


def _first_words(sql: str) -> tuple[SqlToken | None, SqlToken | None]:
    """The first two tokens that Spark's parser sees, None for one that is not a word."""
    visible = (token for token in tokenize(sql) if token.kind not in HIDDEN)
    try:
        first, second = next(visible, None), next(visible, None)
    except ParseError:  # the query's own parser tells it
        return None, None
    words = [token if token and token.kind == "word" else None for token in (first, second)]
    return words[0], words[1]


def _text(sql: str, token: SqlToken) -> str:
    return sql[token.start : token.end].upper()


def _blanked(sql: str, token: SqlToken) -> str:
    return sql[: token.start] + " " * (token.end - token.start) + sql[token.end :]
