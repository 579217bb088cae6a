"""A CTE of a query as a query of its own: the text with `SELECT * FROM <cte>` in place of the rest.

    WITH a AS (…), b AS (SELECT … FROM a), c AS (…) SELECT … FROM c
    ─▶ WITH a AS (…), b AS (SELECT … FROM a)  SELECT * FROM `b`          for b
    ─▶                b AS (SELECT … FROM a)  SELECT * FROM `b`          for b, with a given

What stays keeps its line and column, so that places in messages are those of the file.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from stagecoach.planner.errors import UnsupportedSqlError
from stagecoach.planner.syntax.text import cut_text
from stagecoach.planner.syntax.tokens import SqlToken, token_name

_OPEN, _CLOSE = "([", ")]"


@dataclass(frozen=True)
class CteText:
    """Where a CTE is in the text of its query.

    Attributes:
        name: Its name, as it is written.
        start: Position of the name.
        end: Position behind the closing parenthesis.
        names: All words in it, in lower case: the CTEs that it reads are among them.
    """

    name: str
    start: int
    end: int
    names: frozenset[str]


@dataclass(frozen=True)
class WithClause:
    """The CTEs at the head of a query.

    Attributes:
        text: The query without comments.
        start: Position of WITH.
        is_recursive: Whether RECURSIVE follows.
        ctes: The CTEs, in the order of the text; none without WITH.
        end: Position behind the last of them.
    """

    text: str
    start: int = 0
    is_recursive: bool = False
    ctes: tuple[CteText, ...] = ()
    end: int = 0

    def names(self) -> tuple[str, ...]:
        """Names of the CTEs."""
        return tuple(cte.name for cte in self.ctes)


def with_clause(sql: str) -> WithClause:
    """The CTEs at the head of a query.

    Raises:
        ParseError: The text is not made of Spark's tokens.
    """
    cut = cut_text(sql)
    words = _Words(cut.text, cut.tokens)
    if not words.take("WITH"):
        return WithClause(cut.text)
    start = cut.tokens[0].start
    is_recursive = words.take("RECURSIVE")
    ctes: list[CteText] = []
    while (cte := words.cte()) is not None:
        ctes.append(cte)
        if not words.take(","):
            break
    return WithClause(cut.text, start, is_recursive, tuple(ctes), ctes[-1].end if ctes else start)


def unit_text(sql: str, cte: str | None, given: Collection[str] = ()) -> str:
    """The query, or one of its CTEs as a query, without CTEs whose rows are given.

    Args:
        sql: The query.
        cte: Name of the CTE; None for the whole query.
        given: Names of CTEs that are read as tables.

    Raises:
        UnsupportedSqlError: There is no such CTE, or a recursive one is given.
        ParseError: The text is not made of Spark's tokens.
    """
    clause = with_clause(sql)
    by_name = {c.name.lower(): c for c in clause.ctes}
    dropped = {name.lower() for name in given} & by_name.keys()
    if cte is not None and cte.lower() not in by_name:
        known = ", ".join(clause.names()) or "none"
        raise UnsupportedSqlError(f"the query has no CTE '{cte}' (it has: {known})")
    if cte is None and not dropped:
        return sql
    if cte is not None and cte.lower() in dropped:
        raise UnsupportedSqlError(f"the CTE '{cte}' is tested, so its rows cannot be given")
    if cte is None:
        rest = clause.text[clause.end :]
        kept = [c for c in clause.ctes if c.name.lower() not in dropped]
    else:
        unit = by_name[cte.lower()]
        rest = f" SELECT * FROM {_quoted(unit.name)}"
        kept = _needed(unit, clause, dropped)
    return _written(clause, kept, rest)


def _needed(unit: CteText, clause: WithClause, dropped: Collection[str]) -> list[CteText]:
    """A CTE and those before it that it reads, in the order of the text."""
    names = {unit.name.lower()}
    found: list[CteText] = []
    for cte in reversed(clause.ctes):
        if cte.start <= unit.start and cte.name.lower() in names - set(dropped):
            found.insert(0, cte)
            names |= cte.names
    return found


def _written(clause: WithClause, kept: list[CteText], rest: str) -> str:
    head = _blank(clause.text[: clause.start])
    if not kept:
        return f"{head}{_blank(clause.text[clause.start : clause.end])}{rest}"
    pieces = [head, clause.text[clause.start : clause.ctes[0].start]]
    position = clause.ctes[0].start
    for cte in clause.ctes:
        between = clause.text[position : cte.start]
        is_kept = cte in kept
        # The comma before a CTE belongs to it, and the first of those that stay has none.
        pieces.append(between if is_kept and cte is not kept[0] else _blank(between))
        body = clause.text[cte.start : cte.end]
        pieces.append(body if is_kept else _blank(body))
        position = cte.end
    return "".join([*pieces, rest])


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _blank(text: str) -> str:
    return "".join(c if c in "\r\n" else " " for c in text)


CLOCK = frozenset(
    (
        "curdate",
        "current_date",
        "current_time",
        "current_timestamp",
        "localtimestamp",
        "now",
        "unix_timestamp",
    )
)
"""Functions that read the clock."""


def clock_words(sql: str) -> frozenset[str]:
    """The words in a text that may be calls which read the clock, in lower case."""
    cut = cut_text(sql)
    words = {cut.text[t.start : t.end].lower() for t in cut.tokens if t.kind == "word"}
    return frozenset(words) & CLOCK


class _Words:
    """The tokens of a text, taken one after the other."""

    def __init__(self, text: str, tokens: tuple[SqlToken, ...]) -> None:
        self._text = text
        self._tokens = tokens
        self._position = 0

    def _next(self) -> SqlToken | None:
        found = self._tokens[self._position : self._position + 1]
        return found[0] if found else None

    def take(self, word: str) -> bool:
        """Whether this word comes next; then it is taken."""
        token = self._next()
        if token is None or self._text[token.start : token.end].upper() != word:
            return False
        self._position += 1
        return True

    def cte(self) -> CteText | None:
        """The CTE that comes next: `name [(columns)] [MAX RECURSION LEVEL n] [AS] (query)`."""
        first = self._next()
        if first is None or first.kind not in ("word", "name"):
            return None
        self._position += 1
        names: set[str] = set()
        end = first.end
        if self._at("("):  # either the names of the columns or the query itself
            end = self._bracket(names)
        while (token := self._next()) is not None and not self._at("("):
            if self._text[token.start : token.end] in (",", ";") or self._ends_here(token):
                return CteText(token_name(self._text, first), first.start, end, frozenset(names))
            self._position += 1
        if self._next() is not None:
            end = self._bracket(names)
        return CteText(token_name(self._text, first), first.start, end, frozenset(names))

    def _ends_here(self, token: SqlToken) -> bool:
        """Whether the main query begins: `AS` was left out and the brackets held the query."""
        return self._text[token.start : token.end].upper() in ("SELECT", "FROM", "VALUES", "TABLE")

    def _at(self, mark: str) -> bool:
        token = self._next()
        return token is not None and self._text[token.start : token.end] == mark

    def _bracket(self, names: set[str]) -> int:
        """Take what is in brackets; the position behind them."""
        depth, end = 0, 0
        while (token := self._next()) is not None:
            self._position += 1
            text = self._text[token.start : token.end]
            end = token.end
            if token.kind == "mark" and text in _OPEN:
                depth += 1
            elif token.kind == "mark" and text in _CLOSE:
                depth -= 1
                if not depth:
                    break
            elif token.kind in ("word", "name"):
                names.add(token_name(self._text, token).lower())
        return end
