"""Writes the macros of a project into the text of a query.

    SELECT net(a, 2) FROM paid
    ─▶ WITH paid AS (SELECT …) SELECT (CAST((CAST((a) AS INT)) * …)) FROM paid

Arguments are written as they stand, in brackets and with a cast to the declared type. Names keep
their meaning: the expression of a function has none but its arguments (`declarations`), a variable
of a lambda function in it is renamed if an argument has its name, and a shared query comes before
the CTEs of the query, so that it cannot read them. What an argument says more than once must be
the same each time.

The lines of the query keep their numbers, so that a place that only a number of a line tells, such
as one in a message of Spark's, is still right.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise

from stagecoach.planner.cached_property import cached_property
from stagecoach.planner.errors import (
    AnalysisError,
    FunctionCallError,
    ParseError,
    SqlError,
)
from stagecoach.planner.limits.deep_stack import run_deep
from stagecoach.planner.syntax.cte_units import with_clause
from stagecoach.planner.syntax.macros.declarations import (
    Macro,
    MacroText,
    SharedQuery,
    SqlFunction,
    read_declarations,
)
from stagecoach.planner.syntax.macros.expansion import (
    Expansion,
    Piece,
    SourceText,
    Use,
    as_written,
)
from stagecoach.planner.syntax.parse import read_query
from stagecoach.planner.syntax.text import cut_text
from stagecoach.planner.syntax.tokens import SqlToken, place_at, placed_error, token_name

LONGEST_TEXT = 1 << 20
"""To how many characters a query may grow."""

# Words behind which a value can stand; behind others a name with brackets is an alias.
_BEFORE_VALUES = frozenset(
    (
        "aggregate", "all", "and", "asc", "between", "by", "case", "desc", "distinct", "div",
        "else", "escape", "except", "extend", "filter", "for", "from", "having", "ilike", "in",
        "is", "like", "limit", "not", "offset", "on", "or", "order", "over", "partition",
        "qualify", "regexp", "rlike", "select", "set", "then", "when", "where",
    )
)  # fmt: skip
_QUERY_WORDS = frozenset(("select", "with", "from", "values", "table", "("))
_RANDOM = frozenset(
    (
        "monotonically_increasing_id", "rand", "randn", "random", "randstr", "shuffle", "uniform",
        "uuid",
    )
)  # fmt: skip
_Values = Mapping[int, tuple[Piece, ...]]


@dataclass(frozen=True)
class Macros:
    """The macros of a project.

    Args:
        functions: SQL functions, by name in lower case.
        queries: Shared queries, by name in lower case.
        changing: Names of functions, in lower case, that are not the same each time besides
            Spark's own.

    Raises:
        SqlError: Macros use one another in a circle; with the file in its message.
    """

    functions: Mapping[str, SqlFunction] = field(default_factory=dict, hash=False)
    queries: Mapping[str, SharedQuery] = field(default_factory=dict, hash=False)
    changing: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.functions or self.queries)

    def expand(self, sql: str) -> Expansion:
        """Write the macros that a query uses into its text.

        Raises:
            SqlError: The text is not made of Spark's tokens, or it uses a macro wrongly; with the
                place in the text.
        """
        if not self or not self._named.search(sql):
            return as_written(sql)
        try:
            return run_deep(lambda: _Writer(self).expansion(sql))
        except RecursionError:
            text = "the query is nested too deeply for its macros; nest it less"
            raise ParseError(text, line=1, column=1) from None

    @cached_property
    def _named(self) -> re.Pattern[str]:
        names = "|".join(map(re.escape, sorted({*self.functions, *self.queries})))
        return re.compile(rf"(?<!\w)(?:{names})(?!\w)", re.IGNORECASE)

    def check(self) -> None:
        """Refuse macros that use one another in a circle, or use one wrongly.

        Raises:
            SqlError: Its message begins with the file, line and column.
        """
        macros: list[Macro] = [*self.functions.values(), *self.queries.values()]
        for macro in macros:
            writer = _Writer(self)
            use = Use(macro.name, macro.body.source, macro.start)
            try:
                if isinstance(macro, SqlFunction):
                    list(writer.body(macro, {}, use))
                else:
                    run_deep(partial(writer.with_query, macro, use))
            except SqlError as error:
                raise type(error)(f"{macro.body.source.name}: {error}") from error

    @staticmethod
    def read(sources: Sequence[SourceText], changing: frozenset[str] = frozenset()) -> Macros:
        """The macros that some files declare.

        Raises:
            SqlError: A declaration is wrong; its message begins with the file.
        """
        functions: dict[str, SqlFunction] = {}
        queries: dict[str, SharedQuery] = {}
        for source in sources:
            try:
                for macro in read_declarations(source):
                    name = macro.name.lower()
                    known: Macro | None = functions.get(name) or queries.get(name)
                    if known is not None:
                        message = (
                            f"another macro is named '{macro.name}', in "
                            f"{known.body.source.place(known.start)}; rename one"
                        )
                        raise placed_error(message, source.text, macro.start)
                    if isinstance(macro, SqlFunction):
                        functions[name] = macro
                    else:
                        queries[name] = macro
            except SqlError as error:
                raise type(error)(f"{source.name}: {error}") from error
        macros = Macros(functions, queries, changing)
        macros.check()
        return macros


@dataclass
class _Call:
    """A call of a function in a text.

    Attributes:
        end: Index behind its last token.
        arguments: The tokens of each argument.
    """

    end: int
    arguments: list[Sequence[SqlToken]] = field(default_factory=list)


class _Writer:
    """Writes one text."""

    def __init__(self, macros: Macros) -> None:
        self._macros = macros
        self._used: set[str] = set()
        self._length = 0

    def expansion(self, sql: str) -> Expansion:
        cut = cut_text(sql)
        source = SourceText(sql)
        # Outside of calls the text stays as it is, with its comments: front matter is one.
        body = MacroText(source, cut.text, cut.tokens)
        pieces = list(self._pieces(body, cut.tokens, {}, None, (0, len(sql)), keep=sql))
        found = Expansion(sql, tuple(pieces))
        pieces = self._with_queries(found, source, cut.tokens)
        return Expansion(sql, tuple(pieces), tuple(sorted(self._used)))

    # ---------------------------------------------------------------- functions

    def _pieces(
        self,
        text: MacroText,
        tokens: Sequence[SqlToken],
        values: _Values,
        use: Use | None,
        extent: tuple[int, int],
        keep: str = "",
    ) -> Iterator[Piece]:
        """A part of a text, with the calls in it written out.

        Args:
            text: The whole text.
            tokens: The tokens of the part.
            values: What takes the place of tokens, by their positions.
            use: The use of the macro whose text it is.
            extent: Where the part begins and ends.
            keep: The text as it was written, if lines and comments are to be kept.
        """
        source, position = text.source, extent[0]
        shown = keep or _one_line(text.keep, text.tokens)
        index = 0
        while index < len(tokens):
            token = tokens[index]
            call = self._call(text, tokens, index)
            if call is None and token.start not in values:
                index += 1
                continue
            if token.start > position:
                yield self._counted(Piece(shown[position : token.start], source, position, use))
            if call is None:
                yield from map(self._counted, values[token.start])
                index, position = index + 1, token.end
                continue
            written = list(self._written(text, token, call, values, use))
            yield from written
            end = tokens[call.end - 1].end
            lines = text.keep.count("\n", token.start, end) if keep else 0
            missing = lines - sum(piece.text.count("\n") for piece in written)
            if missing > 0:
                yield Piece("\n" * missing, source, token.start, use, exact=False)
            index, position = call.end, end
        if extent[1] > position:
            yield self._counted(Piece(shown[position : extent[1]], source, position, use))

    def _call(self, text: MacroText, tokens: Sequence[SqlToken], index: int) -> _Call | None:
        """The call of a macro that begins at a token, or None."""
        token = tokens[index]
        if token.kind not in ("word", "name") or self._function(text, token) is None:
            return None
        if index + 1 >= len(tokens) or text.keep[tokens[index + 1].start] != "(":
            return None
        if index:
            before = text.keep[tokens[index - 1].start : tokens[index - 1].end].lower()
            is_word = tokens[index - 1].kind in ("word", "name")
            if before in (".", ")", "]") or (is_word and before not in _BEFORE_VALUES):
                return None  # a method, or an alias with columns
        call = _Call(index + 1)
        depth, first = 0, index + 2
        for position in range(index + 1, len(tokens)):
            mark = text.keep[tokens[position].start : tokens[position].end]
            if mark in ("(", "["):
                depth += 1
            elif mark in (")", "]"):
                depth -= 1
            if (depth == 1 and mark == ",") or depth == 0:
                part = tokens[first:position]
                if part or mark == "," or call.arguments:
                    call.arguments.append(part)
                first = position + 1
            if depth == 0:
                call.end = position + 1
                return None if _is_cte(text, tokens, call.end) else call
        message = f"the call of macro '{token_name(text.keep, token)}' has no closing )"
        raise self._error(ParseError(message), text.source, token.start, None)

    def _function(self, text: MacroText, token: SqlToken) -> SqlFunction | None:
        return self._macros.functions.get(token_name(text.keep, token).lower())

    def _written(
        self, text: MacroText, token: SqlToken, call: _Call, values: _Values, use: Use | None
    ) -> Iterator[Piece]:
        """A call as the expression of its function."""
        function = self._function(text, token)
        assert function is not None
        here = Use(function.name, text.source, token.start, use)
        self._check_circle(here)
        self._used.add(function.name)
        arguments = self._by_name(function, text, call, here)
        parts: dict[int, tuple[Piece, ...]] = {}
        for number, tokens in enumerate(arguments):
            if not tokens:
                message = f"argument {number + 1} of macro '{function.name}' is missing"
                raise self._error(FunctionCallError(message), text.source, token.start, use)
            self._check_same(function, number, text, tokens, use)
            extent = (tokens[0].start, tokens[-1].end)
            inner = self._pieces(text, tokens, values, use, extent)
            begin = Piece("(CAST((", text.source, tokens[0].start, use, exact=False)
            end = f") AS {function.arguments[number].dtype}))"
            parts[number] = (begin, *inner, replace(begin, text=end))
        yield from self.body(function, parts, here)

    def body(
        self, function: SqlFunction, arguments: Mapping[int, Sequence[Piece]], use: Use
    ) -> Iterator[Piece]:
        """The expression of a function over some arguments, by their numbers."""
        body = function.body
        values = {at: tuple(arguments.get(n, ())) for at, n in function.uses.items()}
        if not arguments:
            values = {}
        words = {
            word.lower()
            for pieces in arguments.values()
            for piece in pieces
            for word in re.findall(r"\w+", piece.text)
        }
        for name in function.variables.keys() & words:
            number = 1
            while f"{name}_{number}" in words or f"{name}_{number}" in function.variables:
                number += 1
            for at in function.variables[name]:
                new = Piece(f"{name}_{number}", body.source, at, use, exact=False)
                values[at] = (new,)
        glue = Piece("(", use.source, use.start, use.outer, exact=False)
        begin, end = ("(CAST((", f") AS {function.returns}))") if function.returns else ("(", ")")
        yield self._counted(replace(glue, text=begin))
        yield from self._pieces(body, body.tokens, values, use, (body.start, body.end))
        yield self._counted(replace(glue, text=end))

    def _by_name(
        self, function: SqlFunction, text: MacroText, call: _Call, use: Use
    ) -> list[Sequence[SqlToken]]:
        """The arguments in the order of their declaration: `f(1, b => 2)`."""
        names = [argument.name.lower() for argument in function.arguments]
        found: dict[int, Sequence[SqlToken]] = {}
        for number, tokens in enumerate(call.arguments):
            marks = [text.keep[t.start : t.end] for t in tokens[1:3]]
            position = number
            if marks == ["=", ">"]:
                name = token_name(text.keep, tokens[0])
                if name.lower() not in names:
                    known = ", ".join(a.name for a in function.arguments)
                    message = f"macro '{function.name}' has no argument '{name}' (it has: {known})"
                    raise self._error(
                        FunctionCallError(message), text.source, tokens[0].start, use.outer
                    )
                position, tokens = names.index(name.lower()), tokens[3:]
            if position in found or position >= len(names):
                break
            found[position] = tokens
        if len(found) != len(names) or len(call.arguments) != len(names):
            shown = ", ".join(f"{a.name} {a.dtype}" for a in function.arguments)
            message = (
                f"macro '{function.name}' takes {len(names)} argument"
                f"{'' if len(names) == 1 else 's'} ({shown}), not {len(call.arguments)}"
            )
            raise self._error(FunctionCallError(message), text.source, use.start, use.outer)
        return [found[number] for number in range(len(names))]

    def _check_same(
        self,
        function: SqlFunction,
        number: int,
        text: MacroText,
        tokens: Sequence[SqlToken],
        use: Use | None,
    ) -> None:
        """Refuse an argument that is written several times and differs each time."""
        if sum(used == number for used in function.uses.values()) < 2:
            return
        for token, following in pairwise(tokens):
            name = token_name(text.keep, token).lower()
            is_call = text.keep[following.start] == "("
            if is_call and name in _RANDOM | self._macros.changing:
                message = (
                    f"macro '{function.name}' uses its argument "
                    f"'{function.arguments[number].name}' several times, and '{name}' gives "
                    "another value each time; compute it in a subquery"
                )
                raise self._error(FunctionCallError(message), text.source, token.start, use)

    # ---------------------------------------------------------------- shared queries

    def _with_queries(
        self, found: Expansion, source: SourceText, tokens: Sequence[SqlToken]
    ) -> list[Piece]:
        """The pieces of a query with the shared queries that it reads as its first CTEs."""
        pieces = list(found.pieces)
        if not any(name in found.text.lower() for name in self._macros.queries):
            return pieces
        try:
            read = [name.lower() for name, _ in read_query(found.text).tables]
        except SqlError:
            return pieces  # whoever reads it next says what is wrong with it
        clause = with_clause(found.text)
        own = {name.lower() for name in clause.names()}
        wanted = [name for name in read if name in self._macros.queries and name not in own]
        needed: dict[str, tuple[Piece, ...]] = {}
        for name in wanted:
            self._need(name, needed, Use(name, source, _named_at(source, tokens, name)))
        if clash := own & needed.keys():
            name = min(clash)
            start = _named_at(source, tokens, name)
            message = (
                f"the CTE '{name}' has the name of a shared query that '{wanted[0]}' reads; "
                "rename it"
            )
            raise self._error(AnalysisError(message), source, start, None)
        if not needed:
            return pieces
        head: list[Piece] = []
        for number, written in enumerate(needed.values()):
            glue = replace(written[0], text=", " if number else "", exact=False)
            head += [glue, *written]
        first = clause.ctes[0].start if clause.ctes else _first_token(found.text)
        before, after = _split(pieces, first)
        glue = Piece("" if clause.ctes else "WITH ", source, tokens[0].start, exact=False)
        end = replace(glue, text=", " if clause.ctes else " ")
        return [*before, glue, *head, end, *after]

    def _need(self, name: str, needed: dict[str, tuple[Piece, ...]], use: Use) -> None:
        """Add a shared query behind those that it reads."""
        if name in needed:
            return
        self._check_circle(use)
        self._used.add(name)
        query = self._macros.queries[name]
        body = query.body
        inner = list(self._pieces(body, body.tokens, {}, use, (body.start, body.end)))
        text = Expansion(body.source.text, tuple(inner)).text
        own = {cte.lower() for cte in with_clause(text).names()}
        for other in _tables(text):
            if other in self._macros.queries and other not in own:
                at = _named_at(body.source, body.tokens, other)
                self._need(other, needed, Use(other, body.source, at, use))
        begin = Piece(
            f"`{query.name}`{query.columns} AS (", body.source, query.start, use, exact=False
        )
        needed[name] = (begin, *inner, replace(begin, text=")"))

    def with_query(self, query: SharedQuery, use: Use) -> None:
        """Write a shared query and what it uses, to see whether that can be done."""
        self._need(query.name.lower(), {}, use)

    # ---------------------------------------------------------------- limits and messages

    def _check_circle(self, use: Use) -> None:
        names, outer = [use.macro], use.outer
        while outer is not None:
            names.append(outer.macro)
            if outer.macro == use.macro:
                circle = " → ".join(reversed(names))
                message = f"macros use one another in a circle: {circle}; change one of them"
                raise self._error(AnalysisError(message), use.source, use.start, use.outer)
            outer = outer.outer

    def _counted(self, piece: Piece) -> Piece:
        self._length += len(piece.text)
        if self._length > LONGEST_TEXT:
            message = "its macros make the query longer than 1 MiB; use fewer of them, or a view"
            raise self._error(ParseError(message), piece.source, piece.start, piece.use)
        return piece

    @staticmethod
    def _error(error: SqlError, source: SourceText, start: int, use: Use | None) -> SqlError:
        """The error at a position of the query, or of a macro that the query uses."""
        if use is None:
            return error.at(*place_at(source.text, start))
        piece = Piece(" ", source, start, use)
        return Expansion("", (piece,)).relocated(error.at(1, 1))


def _is_cte(text: MacroText, tokens: Sequence[SqlToken], end: int) -> bool:
    """Whether `name(…)` is followed by `AS (SELECT …`: a CTE with its columns."""
    words = [text.keep[t.start : t.end].lower() for t in tokens[end : end + 3]]
    return len(words) == 3 and words[:2] == ["as", "("] and words[2] in _QUERY_WORDS


def _tables(text: str) -> Sequence[str]:
    return [name.lower() for name, _ in read_query(text).tables]


def _named_at(source: SourceText, tokens: Sequence[SqlToken], name: str) -> int:
    """Where a text names something first; its first token where it does not by itself."""
    named = (t.start for t in tokens if token_name(source.text, t).lower() == name)
    return next(named, tokens[0].start)


def _first_token(text: str) -> int:
    return cut_text(text).tokens[0].start


def _split(pieces: Sequence[Piece], position: int) -> tuple[list[Piece], list[Piece]]:
    """The pieces before and behind a position of their text."""
    before: list[Piece] = []
    for index, piece in enumerate(pieces):
        if position < len(piece.text):
            first = replace(piece, text=piece.text[:position])
            start = piece.start + position if piece.exact else piece.start
            rest = replace(piece, text=piece.text[position:], start=start)
            return [*before, first], [rest, *pieces[index + 1 :]]
        before.append(piece)
        position -= len(piece.text)
    return before, []


def _one_line(text: str, tokens: Sequence[SqlToken]) -> str:
    """A text with spaces for line ends, but for those in quoted texts; it keeps its length."""
    pieces, position = [], 0
    for token in tokens:
        if token.kind in ("text", "name"):
            pieces.append(text[position : token.start].replace("\r", " ").replace("\n", " "))
            pieces.append(text[token.start : token.end])
            position = token.end
    pieces.append(text[position:].replace("\r", " ").replace("\n", " "))
    return "".join(pieces)
