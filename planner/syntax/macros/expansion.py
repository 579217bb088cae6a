"""A text into which macros were written, and where each piece of it comes from.

    SELECT net(a, 2) FROM t
    ─▶ SELECT (CAST((CAST((a) AS INT)) * (CAST((2) AS INT)) AS INT)) FROM t
               └ glue ┘      └ the query's └ macros/prices.sql:3:12

A place in the text that is planned is thus told as one in the text that its author wrote: what
comes from a macro stands where the query calls it, with a note that names the macro's file and
line.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import accumulate
from typing import TypeVar

from stagecoach.planner.cached_property import cached_property
from stagecoach.planner.errors import PlacedError
from stagecoach.planner.syntax.tokens import place_at

_E = TypeVar("_E", bound=PlacedError)


@dataclass(frozen=True)
class SourceText:
    """A text that somebody wrote.

    Attributes:
        text: The text.
        name: Its file; empty for the query itself.
    """

    text: str
    name: str = ""

    def place(self, position: int) -> str:
        """The file, line and column of a position, for messages."""
        line, column = place_at(self.text, position)
        return f"{self.name}:{line}:{column}"


@dataclass(frozen=True)
class Use:
    """Where a macro is used.

    Attributes:
        macro: Its name.
        source: The text that uses it.
        start: Position of its name there.
        outer: The use of the macro that this text belongs to; None in the query itself.
    """

    macro: str
    source: SourceText
    start: int
    outer: Use | None = None


@dataclass(frozen=True)
class Piece:
    """A part of the expanded text.

    Attributes:
        text: The text.
        source: Where it was written.
        start: Position there.
        use: The use of the macro that it was written in; None for the query's own text.
        exact: Whether it is written there character by character; else it stands for what is at
            `start`.
    """

    text: str
    source: SourceText
    start: int
    use: Use | None = None
    exact: bool = True


@dataclass(frozen=True)
class Expansion:
    """A text with its macros written out.

    Attributes:
        written: The text as its author wrote it.
        pieces: The parts of the expanded text, in order.
        macros: Names of the macros that it uses, directly or not, sorted.
    """

    written: str
    pieces: tuple[Piece, ...]
    macros: tuple[str, ...] = ()

    @cached_property
    def text(self) -> str:
        """The expanded text: what is planned and run."""
        return "".join(piece.text for piece in self.pieces)

    @cached_property
    def _starts(self) -> Sequence[int]:
        return list(accumulate((len(p.text) for p in self.pieces), initial=0))[:-1]

    @cached_property
    def _lines(self) -> Sequence[int]:
        """Where each line of the expanded text begins."""
        ends = [i + 1 for i, character in enumerate(self.text) if character == "\n"]
        return [0, *ends]

    def written_place(self, line: int, column: int | None) -> tuple[int, int, str]:
        """Where something of the expanded text was written.

        Returns:
            Line and column in the text as it was written, and a note about the macro that it is
            in; the note is empty for what the author wrote.
        """
        begin = self._lines[min(line, len(self._lines)) - 1]
        position = min(begin + max((column or 1) - 1, 0), max(len(self.text) - 1, 0))
        index = max(bisect.bisect_right(self._starts, position) - 1, 0)
        piece = self.pieces[index]
        at = piece.start + (position - self._starts[index] if piece.exact else 0)
        if piece.use is None:
            return *place_at(piece.source.text, at), ""
        use, place = piece.use, piece.source.place(at)
        note = f"in macro '{use.macro}', {place}"
        while use.outer is not None:
            note += f", which '{use.outer.macro}' uses, {use.source.place(use.start)}"
            use = use.outer
        return *place_at(use.source.text, use.start), note

    def relocated(self, error: _E) -> _E:
        """An error about the expanded text as one about the text that was written."""
        if error.line is None:
            return error
        line, column, note = self.written_place(error.line, error.column)
        placed = error.at(line, column)
        return placed.with_note(note) if note else placed

    @contextmanager
    def places(self) -> Iterator[None]:
        """Errors of the body about the expanded text become errors about what was written."""
        try:
            yield
        except PlacedError as error:
            placed = self.relocated(error)
            if placed is error:
                raise
            raise placed from error


def as_written(sql: str) -> Expansion:
    """A text without macros."""
    return Expansion(sql, (Piece(sql, SourceText(sql), 0),))
