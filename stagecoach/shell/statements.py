"""Cuts what is typed, or a script, into statements, by the rules of Spark's lexer, and commands."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from stagecoach.planner.errors import ParseError
from stagecoach.planner.syntax.tokens import HIDDEN, tokenize

COMMAND_MARK = "."


class Piece(NamedTuple):
    """A statement or a command.

    Attributes:
        text: It, without the semicolon that ends it.
        start: Position of its first character.
        is_complete: Whether a semicolon ends it; a command is complete.
    """

    text: str
    start: int
    is_complete: bool

    @property
    def is_command(self) -> bool:
        """Whether it is a command, which is a line, rather than a statement."""
        return self.text.startswith(COMMAND_MARK)


def split_pieces(text: str) -> Iterator[Piece]:
    r"""Yield the statements and commands of a text.

    >>> [piece.text for piece in split_pieces("SELECT ';'; .limit 2\\nSELECT 2; SEL")]
    ["SELECT ';'", '.limit 2', 'SELECT 2', 'SEL']

    A text or comment that is not closed goes on, so no semicolon in it ends anything.
    """
    start = 0
    while start < len(text):
        rest = text[start:]
        length = len(rest)
        for piece in _until_command(rest):
            yield piece._replace(start=start + piece.start)
            if piece.is_command:  # what follows its line is none of its text
                length = piece.start + len(piece.text)
        start += length


def _until_command(text: str) -> Iterator[Piece]:
    """Yield statements, and the first command, if there is one."""
    start = 0
    has_rest = False
    try:
        for token in tokenize(text):
            if token.kind in HIDDEN:
                continue
            mark = text[token.start : token.end] if token.kind == "mark" else ""
            if mark == COMMAND_MARK and not has_rest:
                yield Piece(text[token.start :].partition("\n")[0], token.start, True)
                return
            if mark == ";":
                if has_rest:
                    yield _stripped(text, start, token.start, is_complete=True)
                start = token.end
            has_rest = mark != ";"
    except ParseError:
        has_rest = True  # what is not closed yet, or is not SQL
    if has_rest:
        yield _stripped(text, start, len(text), is_complete=False)


def _stripped(text: str, start: int, end: int, *, is_complete: bool) -> Piece:
    found = text[start:end]
    return Piece(found.strip(), end - len(found.lstrip()), is_complete)


def is_complete(text: str) -> bool:
    """Whether Enter runs a text rather than begin another line of it."""
    pieces = list(split_pieces(text))
    return not text.strip() or (bool(pieces) and pieces[-1].is_complete)
