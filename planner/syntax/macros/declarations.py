"""Reads macros from SQL text, in the words in which Spark declares functions and views.

    CREATE FUNCTION net_price(price DECIMAL(12,2), discount DECIMAL(4,2))
      RETURNS DECIMAL(12,2)
      RETURN price * (1 - discount);

    CREATE VIEW paid_orders AS SELECT * FROM orders WHERE status = 'paid';

Nothing is created anywhere. A function must be an expression of its arguments alone, so that it
means the same wherever it is called: no column, table, parameter or window of a query is its own to
name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Never

from sqlglot import exp

from stagecoach.planner.errors import ParseError, SqlError
from stagecoach.planner.syntax.macros.expansion import Expansion, Piece, SourceText
from stagecoach.planner.syntax.parse import parse_query
from stagecoach.planner.syntax.parsed_query import ParsedQuery
from stagecoach.planner.syntax.text import cut_text
from stagecoach.planner.syntax.tokens import SqlToken, placed_error, token_name
from stagecoach.planner.types import parse_type

_FORMS = "write CREATE FUNCTION name(argument TYPE, …) RETURN … or CREATE VIEW name AS SELECT …"
_NO_QUERY = "cannot hold a query; declare a view, and join it"
_OPEN, _CLOSE = frozenset("(["), frozenset(")]")
# Words that Spark reads without brackets as calls.
_CALLS = frozenset(
    ("current_date", "current_time", "current_timestamp", "current_user", "localtimestamp", "user")
)
# Their first argument may be a unit of time, which looks like a column.
_WITH_UNITS = frozenset(("date_add", "date_diff", "dateadd", "datediff", "timediff")) | frozenset(
    ("timestampadd", "timestampdiff")
)


@dataclass(frozen=True)
class MacroText:
    """A part of a file of macros.

    Attributes:
        source: The file.
        keep: Its text without comments; positions are those of the file.
        tokens: The tokens of the part.
    """

    source: SourceText
    keep: str
    tokens: tuple[SqlToken, ...]

    @property
    def start(self) -> int:
        """Position of the first token."""
        return self.tokens[0].start

    @property
    def end(self) -> int:
        """Position behind the last token."""
        return self.tokens[-1].end

    @property
    def text(self) -> str:
        """The text of the part."""
        return self.keep[self.start : self.end]


@dataclass(frozen=True)
class Argument:
    """An argument of a function.

    Attributes:
        name: Its name, as it is written.
        dtype: Its type, as it is written.
    """

    name: str
    dtype: str


@dataclass(frozen=True)
class SqlFunction:
    """A function that is an expression of its arguments.

    Attributes:
        name: Its name, in lower case.
        start: Position of the name in its file.
        arguments: Its arguments.
        returns: Type of the result, as it is written; empty for that of the expression.
        body: The expression.
        uses: Positions in the file where the expression names an argument, and its number.
        variables: Positions in the file of the variables of lambda functions, by name in lower
            case.
    """

    name: str
    start: int
    arguments: tuple[Argument, ...]
    returns: str
    body: MacroText
    uses: Mapping[int, int] = field(hash=False)
    variables: Mapping[str, frozenset[int]] = field(hash=False)


@dataclass(frozen=True)
class SharedQuery:
    """A query that becomes a CTE of each query which names it in FROM.

    Attributes:
        name: Its name, as it is written.
        start: Position of the name in its file.
        columns: The names of its columns, with their brackets; empty for those of the query.
        body: The query.
    """

    name: str
    start: int
    columns: str
    body: MacroText


Macro = SqlFunction | SharedQuery
"""What a file of macros declares."""


def read_declarations(source: SourceText) -> Iterator[SqlFunction | SharedQuery]:
    """The macros that a text declares, in order.

    Raises:
        SqlError: The text declares something else, or a function names what is not its argument;
            with the place in the text.
    """
    cut = cut_text(source.text)
    part: list[SqlToken] = []
    for token in cut.tokens:
        if cut.text[token.start : token.end] != ";":
            part.append(token)
        elif part:
            yield _Reader(MacroText(source, cut.text, tuple(part))).declaration()
            part = []
    if part:
        yield _Reader(MacroText(source, cut.text, tuple(part))).declaration()


class _Reader:
    """The tokens of one declaration, taken one after the other."""

    def __init__(self, part: MacroText) -> None:
        self._part = part
        self._position = 0

    def declaration(self) -> SqlFunction | SharedQuery:
        self._require("CREATE")
        if self._take("OR"):
            self._require("REPLACE")
        if not self._take("TEMPORARY"):
            self._take("TEMP")
        if self._take("FUNCTION"):
            return self._function()
        self._require("VIEW")
        return self._view()

    def _function(self) -> SqlFunction:
        start, name = self._name()
        arguments = tuple(self._arguments())
        names = [argument.name.lower() for argument in arguments]
        for number, argument in enumerate(names):
            if argument in names[:number]:
                self._refuse(f"macro '{name}' has two arguments '{argument}'", start)
        returns = ""
        if self._take("RETURNS"):
            returns = self._type(("RETURN",))
        self._require("RETURN")
        body = self._rest(f"the expression of macro '{name}'")
        for token in body.tokens:
            if token.kind == "text" and "\n" in body.keep[token.start : token.end]:
                self._refuse("a text in a macro must be on one line; write \\n in it", token.start)
        uses, variables = _Body(name, names, body).checked()
        return SqlFunction(name.lower(), start, arguments, returns, body, uses, variables)

    def _view(self) -> SharedQuery:
        start, name = self._name()
        columns = ""
        if self._text() == "(":
            first = self._token().start
            while self._text() not in (")", ""):
                self._position += 1
            end = self._token().end
            columns = self._part.keep[first:end].replace("\n", " ")
            self._position += 1
        self._require("AS")
        body = self._rest(f"the query of '{name}'")
        pieces = (Piece(body.text, body.source, body.start),)
        try:
            parse_query(body.text)
        except SqlError as error:
            raise in_file(error, Expansion(body.source.text, pieces)) from error
        return SharedQuery(name, start, columns, body)

    def _arguments(self) -> Iterator[Argument]:
        self._require("(")
        if self._take(")"):
            return
        while True:
            _, name = self._name()
            yield Argument(name, self._type((",", ")")))
            if self._take(")"):
                return
            self._require(",")

    def _type(self, ends: Sequence[str]) -> str:
        """The type up to one of some words, which is not taken."""
        first, depth, last = self._token(), 0, None
        while (text := self._text()) and (depth or text.upper() not in ends):
            depth += (text in ("(", "<")) - (text in (")", ">"))
            last = self._token()
            self._position += 1
        if last is None:
            self._refuse("a type is missing here", first.start)
        found = " ".join(self._part.keep[first.start : last.end].split())
        try:
            parse_type(found)
        except (SqlError, ValueError) as error:
            self._refuse(f"'{found}' is not a type: {error}", first.start)
        return found

    def _rest(self, what: str) -> MacroText:
        tokens = self._part.tokens[self._position :]
        if not tokens:
            self._refuse(f"{what} is missing", self._part.tokens[-1].start)
        return MacroText(self._part.source, self._part.keep, tokens)

    def _name(self) -> tuple[int, str]:
        token = self._token()
        if token.kind not in ("word", "name"):
            self._refuse(f"a name is missing here; {_FORMS}", token.start)
        self._position += 1
        return token.start, token_name(self._part.keep, token)

    def _token(self) -> SqlToken:
        """The next token, or the last one behind the end."""
        return self._part.tokens[min(self._position, len(self._part.tokens) - 1)]

    def _text(self) -> str:
        if self._position >= len(self._part.tokens):
            return ""
        token = self._token()
        return self._part.keep[token.start : token.end]

    def _take(self, word: str) -> bool:
        found = self._text().upper() == word
        self._position += found
        return found

    def _require(self, word: str) -> None:
        if not self._take(word):
            self._refuse(f"{word} is missing here; {_FORMS}", self._token().start)

    def _refuse(self, message: str, position: int) -> Never:
        raise placed_error(message, self._part.source.text, position)


class _Body:
    """The expression of a function, and what it names."""

    def __init__(self, name: str, arguments: Sequence[str], body: MacroText) -> None:
        self._name = name
        self._arguments = arguments
        self._body = body

    def checked(self) -> tuple[dict[int, int], dict[str, frozenset[int]]]:
        """Where arguments and variables of lambda functions are named.

        Raises:
            SqlError: It names something else.
        """
        self._check_brackets()
        tree = self._parsed().tree
        first = tree.expressions[0]
        if isinstance(first, exp.Query):
            self._refuse(_NO_QUERY, self._body.start)
        if len(tree.expressions) != 1 or not isinstance(first, exp.Paren):
            self._refuse("must be one expression, and it is not", self._body.start)
        variables = self._variables(tree)
        uses: dict[int, int] = {}
        for node in first.walk():
            at = self._position(node)
            if isinstance(node, exp.Query):
                self._refuse(_NO_QUERY, at)
            elif isinstance(node, exp.Placeholder):
                self._refuse("cannot have a parameter of a query; make it an argument", at)
            elif isinstance(node, exp.Window) and isinstance(node.args.get("alias"), exp.Expr):
                self._refuse("cannot name a window of a query", at)
            elif isinstance(node, exp.Column) and not self._is_word(node):
                part = node.parts[0]
                name = part.name.lower()
                if isinstance(part, exp.Star) or name not in self._arguments:
                    known = ", ".join(self._arguments) or "none"
                    text = "*" if isinstance(part, exp.Star) else part.name
                    self._refuse(
                        f"names '{text}', which is not an argument of it (it has: {known})",
                        self._position(part),
                    )
                uses[self._position(part)] = self._arguments.index(name)
        return uses, variables

    def _variables(self, tree: exp.Query) -> dict[str, frozenset[int]]:
        found: dict[str, set[int]] = {}
        for function in tree.find_all(exp.Lambda):
            names = {variable.name.lower() for variable in function.expressions}
            if clash := names & set(self._arguments):
                self._refuse(
                    f"has an argument and a variable '{min(clash)}'; rename one",
                    self._position(function.expressions[0]),
                )
            for node in function.find_all(exp.Identifier):
                is_field = isinstance(node.parent, exp.Dot) and node.arg_key == "expression"
                is_label = node.arg_key == "alias" or isinstance(node.parent, exp.Column)
                if node.name.lower() in names and not is_field and not is_label:
                    found.setdefault(node.name.lower(), set()).add(self._position(node))
        return {name: frozenset(places) for name, places in found.items()}

    @staticmethod
    def _is_word(column: exp.Column) -> bool:
        """Whether what looks like a column is a call without brackets, or a unit of time."""
        if len(column.parts) > 1 or column.this.args.get("quoted"):
            return False
        call = column.parent
        is_unit = (
            isinstance(call, exp.Anonymous)
            and call.name.lower() in _WITH_UNITS
            and len(call.expressions) > 2
            and call.expressions[0] is column
        )
        return is_unit or column.name.lower() in _CALLS

    def _parsed(self) -> ParsedQuery:
        source, start = self._body.source, self._body.start
        pieces = (
            Piece("SELECT (", source, start, exact=False),
            Piece(self._body.text, source, start),
            Piece(")", source, self._body.end - 1, exact=False),
        )
        self._expansion = Expansion(source.text, pieces)
        try:
            return parse_query(self._expansion.text)
        except SqlError as error:
            raise in_file(error, self._expansion) from error

    def _check_brackets(self) -> None:
        """So that the expression cannot end before its end."""
        depth = 0
        for token in self._body.tokens:
            mark = self._body.keep[token.start : token.end]
            depth += (mark in _OPEN) - (mark in _CLOSE)
            if depth < 0:
                self._refuse(f"has a '{mark}' without its beginning", token.start)

    def _position(self, node: exp.Expr) -> int:
        """Where a node is in the file."""
        named = next((n for n in node.walk() if "start" in n.meta), None)
        found = 0 if named is None else named.meta["start"] - len("SELECT (")
        return self._body.start + max(int(found), 0)

    def _refuse(self, message: str, position: int) -> Never:
        raise placed_error(f"macro '{self._name}' {message}", self._body.source.text, position)


def in_file(error: SqlError, expansion: Expansion) -> SqlError:
    """An error about a part of a file as one about the file."""
    if error.line is None:
        return ParseError(error.message, line=1, column=1)
    return expansion.relocated(error)
