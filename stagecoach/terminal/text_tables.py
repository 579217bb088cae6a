"""Draws rows of texts: as a table that fits the terminal, a row a block, or Markdown."""

from __future__ import annotations

import os
import sys
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

MAX_CELL = 60
"""Columns of the terminal that a cell of a table takes at most."""
_DEFAULT_WIDTH = 80  # of a terminal that does not tell
_MIN_CELL = 8
_GAP = " │ "
_RULE = "─┼─"


@dataclass(frozen=True)
class Heading:
    """The head of a column.

    Args:
        name: Its name, printable.
        is_number: Whether its values stand at the right, and are never cut.
    """

    name: str
    is_number: bool


def terminal_width() -> int | None:
    """Columns of the terminal that standard output is, by `COLUMNS` if set; None of no terminal."""
    try:
        # Not of descriptor 1, which may lead to a log: see `divert_noise`.
        columns = os.get_terminal_size(sys.stdout.fileno()).columns
    except (OSError, ValueError, AttributeError):  # no terminal, or not even a file
        return None
    wanted = os.environ.get("COLUMNS", "")
    return (int(wanted) if wanted.isdecimal() else columns) or _DEFAULT_WIDTH


def draw_table(
    headings: Sequence[Heading], rows: Sequence[Sequence[str]], width: int | None = None
) -> tuple[list[str], int]:
    """The lines of a table, and how many columns they leave out at the right.

    Args:
        headings: Of its columns.
        rows: Texts, printable.
        width: Columns of the terminal. A wider table has its long texts cut, and columns left out
            if that is not enough; None for any width.
    """
    wanted = [
        max([display_width(h.name), *(min(display_width(row[i]), MAX_CELL) for row in rows)])
        for i, h in enumerate(headings)
    ]
    widths = wanted if width is None else _fitting(headings, wanted, width)
    shown = headings[: len(widths)]

    def line(cells: Sequence[str], numbers: Sequence[bool]) -> str:
        padded = (
            pad(clip(cell, w), w, right)
            for cell, w, right in zip(cells, widths, numbers, strict=False)
        )
        return _GAP.join(padded).rstrip()

    lines = [line([h.name for h in shown], [False] * len(shown))]
    lines.append(_RULE.join("─" * w for w in widths))
    lines += [line(row, [h.is_number for h in shown]) for row in rows]
    return lines, len(headings) - len(shown)


def _fitting(headings: Sequence[Heading], wanted: Sequence[int], width: int) -> list[int]:
    """Widths of the columns that fit: the widest texts are cut first, then columns fall away."""
    least = [
        w if h.is_number else min(w, max(_MIN_CELL, min(display_width(h.name), 2 * _MIN_CELL)))
        for h, w in zip(headings, wanted, strict=True)
    ]
    count = len(wanted)
    while count > 1 and _total(least[:count]) > width:
        count -= 1
    widths = list(wanted[:count])
    while _total(widths) > width:
        room = [w if w > m else 0 for w, m in zip(widths, least, strict=False)]
        if not any(room):
            break
        widths[room.index(max(room))] -= 1
    return widths


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + len(_GAP) * (len(widths) - 1)


def draw_blocks(headings: Sequence[Heading], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yield a block of lines for each row: a line for each column, whole."""
    names = max((display_width(h.name) for h in headings), default=0)
    for number, row in enumerate(rows, 1):
        yield f"── row {number:,} ".ljust(max(names + 2, 24), "─")
        for heading, text in zip(headings, row, strict=True):
            yield f"{pad(heading.name, names, False)}{_GAP}{text}".rstrip()


def draw_markdown(headings: Sequence[Heading], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a Markdown table, as GitHub reads it."""
    yield _markdown_line(h.name for h in headings)
    yield "|" + "|".join(" ---: " if h.is_number else " --- " for h in headings) + "|"
    for row in rows:
        yield _markdown_line(row)


def _markdown_line(cells: Iterable[str]) -> str:
    escaped = (cell.replace("\\", "\\\\").replace("|", "\\|") for cell in cells)
    return "| " + " | ".join(escaped) + " |"


def printable(text: str) -> str:
    """Text without characters that would move the cursor or change the terminal."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def display_width(text: str) -> int:
    """Columns that a text takes on a terminal."""
    return len(text) if text.isascii() else sum(_character_width(c) for c in text)


def _character_width(c: str) -> int:
    return 0 if unicodedata.combining(c) else 1 + (unicodedata.east_asian_width(c) in "WF")


def clip(text: str, width: int = MAX_CELL) -> str:
    """The text, cut with `…` where it is wider."""
    if display_width(text) <= width:
        return text
    taken = 0
    for position, c in enumerate(text):
        taken += _character_width(c)
        if taken > width - 1:
            return text[:position] + "…"
    return text


def pad(text: str, width: int, right: bool) -> str:
    """The text with spaces, before it if it stands at the right."""
    space = " " * (width - display_width(text))
    return space + text if right else text + space
