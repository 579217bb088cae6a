"""A query that only Spark can parse: what its tokens alone tell.

The planner's parser does not know all of Spark's SQL. Such a text may still be a query that Spark
answers. It can run as one Spark stage, for which its tables and parameters have to be known; they
are found by Spark's own tokens, cautiously: a table too many costs little, one that is missing
fails the query.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from stagecoach.planner.cached_property import cached_property
from stagecoach.planner.errors import ForbiddenSqlError, ParseError
from stagecoach.planner.syntax.outside import PATH_FORMATS
from stagecoach.planner.syntax.parsed_query import CHANGING, TODAY, Place
from stagecoach.planner.syntax.text import cut_text
from stagecoach.planner.syntax.tokens import SqlToken, place_at, token_name

# Words and marks behind which the name of a table can stand.
_BEFORE_TABLE = frozenset(("from", "join", "table", ",", "(", "lateral"))
_WRITES = frozenset(("delete", "insert", "merge", "update"))
_BEHIND_WRITE = frozenset(("from", "into", "overwrite", "using"))


@dataclass(frozen=True, eq=False)
class UnparsedQuery:
    """A text that the planner's parser refuses and Spark may take.

    Args:
        sql: The text, as it was given.
        error: Why the planner's parser refuses it.
    """

    sql: str
    error: ParseError

    @cached_property
    def tables(self) -> tuple[tuple[str, bool], ...]:
        """What can be the name of a table, each once; each may be something else, too."""
        found = [name for name, before, _ in self._names if before in _BEFORE_TABLE]
        return tuple((name, True) for name in dict.fromkeys(found))

    @cached_property
    def parameters(self) -> dict[str, Place]:
        """Line and column of the first use of each parameter, in the order of the text.

        A colon right behind a name or a bracket belongs to the path of a VARIANT.
        """
        found: dict[str, Place] = {}
        number = 0
        tokens = self._tokens
        for position, token in enumerate(tokens):
            mark = self._text(token)
            if mark == "?":
                number += 1
                found.setdefault(str(number), self._place(token))
            if mark != ":" or position + 1 == len(tokens):
                continue
            before, name = tokens[position - 1], tokens[position + 1]
            is_path = before.end == token.start and self._text(before)[-1] not in "(,[=<>+-*/%|"
            if name.kind == "word" and name.start == token.end and not is_path:
                found.setdefault(self._text(name), self._place(token))
        return found

    @property
    def shaping_parameters(self) -> frozenset[str]:
        """Parameters whose values may change the names or types of columns: all of them."""
        return frozenset(self.parameters)

    @cached_property
    def function_names(self) -> tuple[str, ...]:
        """What can be the name of a function, each once, in lower case; it may be anything else."""
        named = (t for t in self._tokens if t.kind in ("word", "name"))
        return tuple(dict.fromkeys(token_name(self.sql, token).lower() for token in named))

    @cached_property
    def is_deterministic(self) -> bool:
        """Whether the query's own text gives the same rows for the same data in every run."""
        words = {self._text(t).lower() for t in self._tokens if t.kind in ("word", "name")}
        texts = (self._text(t).lstrip("rR")[1:] for t in self._tokens if t.kind == "text")
        return not words & {*CHANGING, "tablesample"} and not any(map(TODAY.match, texts))

    @cached_property
    def is_ordered(self) -> bool:
        """Whether ORDER BY stands outside of all brackets."""
        depth, before = 0, ""
        for token in self._tokens:
            word = self._text(token).lower()
            depth += (word in ("(", "[")) - (word in (")", "]"))
            if depth == 0 and (before, word) == ("order", "by"):
                return True
            before = word
        return False

    def place_of(self, table: str) -> Place | None:
        """Line and column where a table is named first, or None."""
        places = (t for name, _, t in self._names if name.lower() == table.lower())
        token = next(places, None)
        return None if token is None else self._place(token)

    @cached_property
    def _tokens(self) -> tuple[SqlToken, ...]:
        return cut_text(self.sql).tokens

    @cached_property
    def _names(self) -> tuple[tuple[str, str, SqlToken], ...]:
        """Names with points in them, what stands before each, and where each begins."""
        return tuple(self._find_names())

    def _find_names(self) -> Iterator[tuple[str, str, SqlToken]]:
        tokens = self._tokens
        position = 0
        while position < len(tokens):
            first = position
            if tokens[position].kind not in ("word", "name"):
                position += 1
                continue
            parts = [token_name(self.sql, tokens[position])]
            while (
                position + 2 < len(tokens)
                and self._text(tokens[position + 1]) == "."
                and tokens[position + 2].kind in ("word", "name")
            ):
                position += 2
                parts.append(token_name(self.sql, tokens[position]))
            position += 1
            before = self._text(tokens[first - 1]).lower() if first else ""
            yield ".".join(parts), before, tokens[first]

    def _text(self, token: SqlToken) -> str:
        return self.sql[token.start : token.end]

    def _place(self, token: SqlToken) -> Place:
        return place_at(self.sql, token.start)

    def refuse_outside_access(self) -> None:
        """Refuse statements that write, and names that can be the path of a file.

        Raises:
            ForbiddenSqlError: Naming the statement or path, with its place.
        """
        words = [self._text(token).lower() for token in self._tokens]
        for token, last, word, following in zip(
            self._tokens[1:], words, words[1:], [*words[2:], ""], strict=False
        ):
            follows = last == ")" or following in _BEHIND_WRITE
            if word in _WRITES and follows:
                line, column = self._place(token)
                message = f"{word.upper()} is not allowed in a query"
                raise ForbiddenSqlError(message, line=line, column=column)
        for name, before, start in self._names:
            first, _, rest = name.partition(".")
            is_path = before in _BEFORE_TABLE and first.lower() in PATH_FORMATS and rest
            if is_path or (start.kind == "name" and any(mark in name for mark in "/\\:")):
                line, column = self._place(start)
                raise ForbiddenSqlError(
                    f"'{name}' reads a path; add the files to the catalog and name the table",
                    line=line,
                    column=column,
                )
