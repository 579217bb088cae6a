"""The names that may be meant at the end of a text: tables, columns, functions and keywords."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from stagecoach.planner.errors import StagecoachError
from stagecoach.planner.functions.builtin import functions_by_group
from stagecoach.planner.syntax.tokens import tokenize

if TYPE_CHECKING:
    from stagecoach.api.session import Session

_KEYWORDS = (
    *("SELECT", "FROM", "WHERE", "GROUP BY", "HAVING", "ORDER BY", "LIMIT", "OFFSET", "WITH"),
    *("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "CROSS JOIN", "LEFT SEMI JOIN", "ON"),
    *("LEFT ANTI JOIN", "USING", "LATERAL", "UNION ALL", "UNION", "INTERSECT", "EXCEPT"),
    *("DISTINCT", "AS", "AND", "OR", "NOT", "IN", "IS NULL", "IS NOT NULL", "BETWEEN", "LIKE"),
    *("CASE", "WHEN", "THEN", "ELSE", "END", "OVER", "PARTITION BY", "QUALIFY", "VALUES"),
    *("EXPLAIN", "INTERVAL", "CAST", "ASC", "DESC", "NULLS FIRST", "NULLS LAST"),
)
_WORD = re.compile(r"\w+", re.ASCII)
_BEFORE_TABLE = frozenset(("from", "join"))
_NO_ALIAS = frozenset(
    (
        *("where", "group", "order", "having", "limit", "join", "left", "right", "inner", "full"),
        *("cross", "on", "using", "union", "intersect", "except", "lateral", "qualify", "natural"),
    )
)


class Names:
    """The names that a session knows.

    Args:
        session: The session.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._columns: dict[str, tuple[str, ...]] = {}

    def refresh(self) -> None:
        """Forget the columns of tables."""
        self._columns.clear()

    def after(self, text: str, word: str) -> Iterator[tuple[str, str]]:
        """Yield names that begin with a word, each with what it is.

        Args:
            text: What stands before the word; of the whole text, so that its tables are known.
            word: The beginning of the name, in any case.
        """
        words = _words(text)
        if words is None:
            return  # inside of a text or a comment
        tables = _tables_of(words)
        if words and words[-1] == ".":
            owner = words[-2].lower() if len(words) > 1 else ""
            for name in self._columns_of(tables.get(owner, owner)):
                if _begins(name, word):
                    yield name, "column"
            return
        if words and words[-1].lower() in _BEFORE_TABLE:
            yield from self._tables(word)
            return
        for table in dict.fromkeys(tables.values()):
            for name in self._columns_of(table):
                if _begins(name, word):
                    yield name, f"column of {table}"
        if not word:
            return
        for keyword in _KEYWORDS:
            if _begins(keyword, word):
                yield keyword, "keyword"
        yield from self._tables(word)
        for name in self._session.base_catalog.function_names():
            if _begins(name, word):
                yield name, "function of the project"
        for name, group in functions_by_group():
            if _WORD.fullmatch(name) and _begins(name, word):
                yield name, f"function, {group}"

    def tables(self) -> list[str]:
        """Names of the tables, those that the project has published among them."""
        return sorted(self._session.catalog.table_names(), key=str.lower)

    def _tables(self, word: str) -> Iterator[tuple[str, str]]:
        for name in self.tables():
            if _begins(name, word):
                yield name, "table"

    def _columns_of(self, table: str) -> tuple[str, ...]:
        key = table.lower()
        if key not in self._columns:
            try:
                info = self._session.catalog.table(table)
            except StagecoachError:
                info = None  # a query over it will say why
            self._columns[key] = tuple(c.name for c in info.columns) if info else ()
        return self._columns[key]


def _begins(name: str, word: str) -> bool:
    return name.lower().startswith(word.lower())


def _words(text: str) -> list[str] | None:
    """The tokens of a text that may be cut anywhere; None where it ends inside of one."""
    try:
        return [
            text[token.start : token.end]
            for token in tokenize(text)
            if token.kind in ("word", "name", "mark")
        ]
    except StagecoachError:
        return None


def _tables_of(words: list[str]) -> dict[str, str]:
    """The tables that follow FROM and JOIN, by their names and aliases in lower case."""
    found: dict[str, str] = {}
    for position, word in enumerate(words[:-1]):
        if word.lower() not in _BEFORE_TABLE:
            continue
        table = words[position + 1].strip("`")
        if not _WORD.fullmatch(table):
            continue
        found[table.lower()] = table
        behind = [w for w in words[position + 2 : position + 4] if w.lower() != "as"][:1]
        if behind and _WORD.fullmatch(behind[0]) and behind[0].lower() not in _NO_ALIAS:
            found[behind[0].lower()] = table
    return found
