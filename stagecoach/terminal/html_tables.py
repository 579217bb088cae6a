"""Draws rows of texts as an HTML table, for notebooks."""

from __future__ import annotations

import html
from collections.abc import Iterable, Iterator, Sequence

from stagecoach.terminal.text_tables import Heading

_ALIGN = {True: "right", False: "left"}


def draw_html(
    headings: Sequence[Heading], kinds: Sequence[str], rows: Iterable[Sequence[str]], note: str
) -> Iterator[str]:
    """Yield the lines of a table; all text in it is escaped.

    Args:
        headings: Of its columns.
        kinds: Their types, which a pointer shows.
        rows: Texts.
        note: What stands below it.
    """
    # Notebooks have a style for this class.
    yield '<table class="dataframe">'
    cells = (
        f'<th style="text-align: {_ALIGN[h.is_number]}" title="{html.escape(kind)}">'
        f"{html.escape(h.name)}</th>"
        for h, kind in zip(headings, kinds, strict=True)
    )
    yield f"<thead><tr>{''.join(cells)}</tr></thead>"
    yield "<tbody>"
    for row in rows:
        cells = (
            f'<td style="text-align: {_ALIGN[h.is_number]}">{html.escape(text)}</td>'
            for h, text in zip(headings, row, strict=True)
        )
        yield f"<tr>{''.join(cells)}</tr>"
    yield "</tbody>"
    yield "</table>"
    yield f"<p>{html.escape(note)}</p>"
