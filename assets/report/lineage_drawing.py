"""Draws the lineage of a result as SVG.

Base columns stand left, by table, those of the result right. A line means that values come from
there, a dotted one that the column decides which rows there are.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from stagecoach.assets.report.drawings import colour
from stagecoach.assets.report.svg import as_text, as_title, shortened, svg
from stagecoach.planner.explain.lineage import by_source, deciders_of, in_order
from stagecoach.planner.lineage import Lineage, Source, TableColumn

MOST_COLUMNS = 120
"""A drawing of more columns on one side helps nobody; the table has them all."""

_ROW = 22
_BOX = 250
_RIGHT = 650
_MARGIN = 14
_GAP = 14
_CHARACTERS = 34
ROWS = "all rows"


@dataclass(frozen=True)
class _Place:
    """Where lines start or end: the edge of a box, at the height of a row."""

    x: float
    y: float


def lineage_svg(lineage: Lineage) -> str | None:
    """The drawing; None where nothing is known, or there is too much of it."""
    sources = [s for s in in_order(lineage.sources) if isinstance(s, TableColumn)]
    if lineage.unknown is not None or max(len(sources), len(lineage.columns)) > MOST_COLUMNS:
        return None
    parts: list[str] = []
    left: dict[Source, _Place] = {}
    y = float(_MARGIN)
    tables: dict[str, list[TableColumn]] = {}
    for source in sources:
        tables.setdefault(source.table, []).append(source)
    for number, (table, columns) in enumerate(tables.items()):
        names = [source.column for source in columns]
        parts.append(_box(table, names, _MARGIN, y, colour(number)))
        for position, source in enumerate(columns):
            left[source] = _Place(_MARGIN + _BOX, _middle(y, position))
        y += _height(len(columns)) + _GAP
    names = [column.name for column in lineage.columns]
    choices = [ROWS] if lineage.rows else []
    right_height = _height(len(names) + len(choices))
    top = max((y - _GAP + _MARGIN - right_height) / 2, _MARGIN)
    parts.append(_box("result", [*names, *choices], _RIGHT, top, colour(len(tables))))
    ends = [_Place(_RIGHT, _middle(top, i)) for i in range(len(names) + len(choices))]
    height = round(max(y - _GAP, top + right_height) + _MARGIN)
    lines = [*_lines(lineage, left, ends)]
    width = _RIGHT + _BOX + _MARGIN
    return svg(
        "lineage", width, height, [*lines, *parts], "Where the columns of the result come from"
    )


def _lines(
    lineage: Lineage, left: Mapping[Source, _Place], ends: Sequence[_Place]
) -> Iterable[str]:
    for source, roles in by_source(lineage.rows):
        yield _line(left[source], ends[-1], f"{source} → {ROWS}: {', '.join(roles)}", "choice")
    for column, end in zip(lineage.columns, ends, strict=False):  # the last one may be the rows
        for source, roles in deciders_of(column, lineage):
            title = f"{source} → {column.name}: {', '.join(roles)}"
            yield _line(left[source], end, title, "choice")
        for source in in_order(column.values):
            yield _line(left[source], end, f"{source} → {column.name}", "value")


def _line(start: _Place, end: _Place, title: str, kind: str) -> str:
    half = (end.x - start.x) / 2
    path = (
        f"M{start.x:.0f} {start.y:.0f}C{start.x + half:.0f} {start.y:.0f} "
        f"{end.x - half:.0f} {end.y:.0f} {end.x:.0f} {end.y:.0f}"
    )
    return f'<path class="edge {kind}" d="{path}">{as_title(title)}</path>'


def _box(name: str, rows: Sequence[str], x: float, y: float, fill: str) -> str:
    height = _height(len(rows))
    parts = [
        f'<rect class="box" x="{x:.0f}" y="{y:.0f}" width="{_BOX}" height="{height}" rx="6"/>',
        f'<rect class="{fill}" x="{x:.0f}" y="{y:.0f}" width="6" height="{height}" rx="3"/>',
        f'<text class="name" x="{x + 16:.0f}" y="{y + 17:.0f}">{_short(name)}</text>',
    ]
    parts += [
        f'<text class="note" x="{x + 16:.0f}" y="{_middle(y, i) + 4:.0f}">{_short(row)}</text>'
        for i, row in enumerate(rows)
    ]
    return "".join(parts)


def _short(name: str) -> str:
    shown = shortened(name, _CHARACTERS)
    return as_text(shown) if shown == name else f"{as_text(shown)}{as_title(name)}"


def _height(rows: int) -> int:
    return (rows + 1) * _ROW + 8


def _middle(top: float, position: int) -> float:
    """Half the height of a row below the heading of a box."""
    return top + _ROW * (position + 1.5)
