"""Prints how two sets of rows differ.

   shop │ total
───────┼──────
-     1 │    11   expected
+     1 │    12   found
           ~~
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from stagecoach.terminal.output import shown_rows
from stagecoach.terminal.text_tables import display_width, printable
from stagecoach.terminal.value_texts import to_text

if TYPE_CHECKING:
    import pyarrow as pa

    from stagecoach.assets.query_tests.run import RowsDiffer

MAX_PAIRS = 20
_MAX_CELL = 40
_MARK = "~"


def diff_lines(rows: RowsDiffer, time_zone: str = "UTC") -> Iterator[str]:
    """Yield the rows that differ, the expected ones first, with the cells that differ marked.

    Args:
        rows: What was compared.
        time_zone: Zone that timestamps are shown in.
    """
    names = [printable(field.name) for field in rows.fields]
    pairs = rows.difference.pairs
    left = _texts(rows.expected, [i for i, _ in pairs[:MAX_PAIRS]], time_zone)
    right = _texts(rows.found, [j for _, j in pairs[:MAX_PAIRS]], time_zone)
    shown = [row for row in (*left, *right) if row is not None]
    widths = [
        max([display_width(name), *(display_width(row[i]) for row in shown)])
        for i, name in enumerate(names)
    ]
    yield f"- {rows.left}, + {rows.right}"
    yield "  " + _line(names, widths)
    yield "  " + "─┼─".join("─" * width for width in widths)
    for before, after in zip(left, right, strict=True):
        if before is not None:
            yield "- " + _line(before, widths)
        if after is not None:
            yield "+ " + _line(after, widths)
        if before is not None and after is not None:
            yield "  " + _marks(before, after, widths)
    if len(pairs) > MAX_PAIRS:
        yield f"… and {len(pairs) - MAX_PAIRS:,} more"
    equal = rows.difference.expected - len({i for i, _ in pairs if i is not None})
    if equal:
        yield f"({equal:,} {'row is' if equal == 1 else 'rows are'} equal)"


def _texts(
    table: pa.Table, numbers: Sequence[int | None], time_zone: str
) -> list[list[str] | None]:
    import pyarrow as pa

    wanted = pa.array([number for number in numbers if number is not None], pa.int64())
    cells = iter(shown_rows(table.take(wanted), time_zone))
    return [None if number is None else [_clip(v) for v in next(cells)] for number in numbers]


def _clip(value: Any) -> str:
    text = printable(to_text(value))
    if isinstance(value, str) and (text in ("", "NULL") or text != text.strip()):
        text = f"'{text}'"  # else it would look like nothing, or like NULL
    return text if len(text) <= _MAX_CELL else text[: _MAX_CELL - 1] + "…"


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = (c + " " * (w - display_width(c)) for c, w in zip(cells, widths, strict=True))
    return " │ ".join(padded).rstrip()


def _marks(before: Sequence[str], after: Sequence[str], widths: Sequence[int]) -> str:
    marks = (
        ("" if a == b else _MARK * max(display_width(a), display_width(b))).ljust(width)
        for a, b, width in zip(before, after, widths, strict=True)
    )
    return "   ".join(marks).rstrip()
