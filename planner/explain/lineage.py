"""Render column lineage as a Markdown table, JSON, YAML or Mermaid.

The table has one line per result column: the base columns that its values come from, and those that
only decide which row a value is taken from. Columns that decide on rows for every result column are
listed once below it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from stagecoach.planner.errors import OptionError
from stagecoach.planner.explain.mermaid import escaped
from stagecoach.planner.limits.deep_stack import on_deep_stack
from stagecoach.planner.lineage import (
    ColumnLineage,
    Decider,
    Lineage,
    QueryLineage,
    Source,
    StageColumn,
    TableColumn,
    graph_lineage,
)
from stagecoach.planner.plan.stages import StageGraph
from stagecoach.planner.text.yaml_text import to_yaml

_Said = Callable[[Source], str]

LINEAGE_VERSION = 1
FORMATS = ("text", "json", "yaml", "mermaid")

_HEADINGS = ("column", "values come from", "rows are chosen by")
_MARKUP = re.compile(r"([\\`*<>|\[\]#~])")
_BREAKS = re.compile(r"[\r\n\t]+")


@on_deep_stack
def render_lineage(graph: StageGraph, format: str = "text", *, details: bool = False) -> str:
    """The lineage of a query in one of the formats, ending in a newline.

    Args:
        graph: The query.
        format: One of `FORMATS`.
        details: Whether text has a table for each stage, too; JSON and YAML always do.

    Raises:
        OptionError: For another format.
    """
    found = graph_lineage(graph)
    match format:
        case "text":
            return _text(graph, found, details)
        case "json":
            return json.dumps(lineage_data(graph, found), indent=2, ensure_ascii=False) + "\n"
        case "yaml":
            return to_yaml(lineage_data(graph, found))
        case "mermaid":
            return lineage_mermaid(found.result)
    raise OptionError(f"lineage cannot be shown as '{format}'; there are {', '.join(FORMATS)}")


def lineage_markdown(lineage: Lineage) -> str:
    """A table of the columns of a result, without a newline at the end."""
    return "\n".join(_table(lineage, _source_text))


def deciders_of(column: ColumnLineage, lineage: Lineage) -> list[tuple[Source, Sequence[str]]]:
    """What decides on the rows of a column alone, with its roles; no column of its values."""
    return by_source(
        decider for decider in column.deciders - lineage.rows if decider[0] not in column.values
    )


def by_source(deciders: Iterable[Decider]) -> list[tuple[Source, Sequence[str]]]:
    """Columns in order, each once with its roles."""
    found: dict[Source, list[str]] = {}
    for source, role in sorted(deciders, key=lambda item: (_order(item[0]), item[1])):
        found.setdefault(source, []).append(role)
    return list(found.items())


def in_order(sources: Iterable[Source]) -> list[Source]:
    """Columns of tables by name, those of stages by number."""
    return sorted(sources, key=_order)


def _order(source: Source) -> tuple[str, str, int, int]:
    if isinstance(source, TableColumn):
        return source.table, source.column, 0, 0
    return "", "", source.stage_id, source.position


# ---------------------------------------------------------------- text


def _text(graph: StageGraph, found: QueryLineage, details: bool) -> str:
    lines = [f"lineage of {graph.query}", "", *_table(found.result, _source_text)]
    if details:

        def said(source: Source) -> str:
            if isinstance(source, TableColumn):
                return _source_text(source)
            name = graph.stages[source.stage_id].schema[source.position].name
            return f"stage {source.stage_id}: {plain(name)}"

        for stage, lineage in zip(graph.stages, found.stages, strict=True):
            lines += ["", f"stage {stage.stage_id}: {stage.title}", "", *_table(lineage, said)]
    return "\n".join(lines) + "\n"


def _table(lineage: Lineage, said: _Said) -> list[str]:
    if lineage.unknown is not None:
        return _unknown(lineage)
    cells = [_HEADINGS, *(_cells(column, lineage, said) for column in lineage.columns)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(_HEADINGS))]
    lines = [_line(row, widths) for row in cells]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    rows = [f"{said(source)} ({', '.join(roles)})" for source, roles in by_source(lineage.rows)]
    return [*lines, "", f"rows: {', '.join(rows) or 'no column decides on them'}"]


def _unknown(lineage: Lineage) -> list[str]:
    tables = {source.table for source in lineage.sources if isinstance(source, TableColumn)}
    read = f"any column of {', '.join(map(plain, sorted(tables)))}" if tables else "no table"
    return [f"unknown: {plain(lineage.unknown or '')}", "", f"Each column may come from {read}."]


def _cells(column: ColumnLineage, lineage: Lineage, said: _Said) -> tuple[str, str, str]:
    values = ", ".join(said(source) for source in in_order(column.values))
    chosen = ", ".join(
        f"{said(source)} ({', '.join(roles)})" for source, roles in deciders_of(column, lineage)
    )
    return plain(column.name), values, chosen


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "| " + " | ".join(c.ljust(w) for c, w in zip(cells, widths, strict=True)) + " |"


def _source_text(source: Source) -> str:
    if isinstance(source, TableColumn):
        return f"{plain(source.table)}.{plain(source.column)}"
    return f"stage {source.stage_id}, column {source.position}"


def plain(text: str) -> str:
    """A name as Markdown shows it unchanged, in one line."""
    return _MARKUP.sub(r"\\\1", _BREAKS.sub(" ", text))


# ---------------------------------------------------------------- data


def lineage_data(graph: StageGraph, found: QueryLineage) -> dict[str, Any]:
    """What the JSON and YAML formats hold."""
    return {
        "format_version": LINEAGE_VERSION,
        "query": graph.query,
        "unknown": found.result.unknown,
        "result": _lineage_data(graph, found.result),
        "stages": [
            {"stage_id": stage.stage_id, **_lineage_data(graph, lineage)}
            for stage, lineage in zip(graph.stages, found.stages, strict=True)
        ],
    }


def _lineage_data(graph: StageGraph, lineage: Lineage) -> dict[str, Any]:
    return {
        "columns": [
            {
                "name": column.name,
                "values": [_source_data(graph, s) for s in in_order(column.values)],
                "deciders": _deciders_data(graph, column.deciders),
            }
            for column in lineage.columns
        ],
        "rows": _deciders_data(graph, lineage.rows),
    }


def _deciders_data(graph: StageGraph, deciders: Iterable[Decider]) -> list[dict[str, Any]]:
    return [
        {**_source_data(graph, source), "roles": list(roles)}
        for source, roles in by_source(deciders)
    ]


def _source_data(graph: StageGraph, source: Source) -> dict[str, Any]:
    if isinstance(source, StageColumn):
        name = graph.stages[source.stage_id].schema[source.position].name
        return {"stage_id": source.stage_id, "position": source.position, "column": name}
    return {"table": source.table, "column": source.column}


# ---------------------------------------------------------------- diagram


def lineage_mermaid(lineage: Lineage) -> str:
    """Base columns left, by table, result columns right; dotted arrows only decide on rows."""
    tables: dict[str, dict[Source, str]] = {}
    for source in in_order(lineage.sources):
        if isinstance(source, TableColumn):
            columns = tables.setdefault(source.table, {})
            columns[source] = f"t{len(tables) - 1}c{len(columns)}"
    lines = ["flowchart LR"]
    for number, (table, columns) in enumerate(tables.items()):
        lines.append(f'  subgraph t{number}["{escaped(table)}"]')
        lines += [f'    {key}["{escaped(_column(source))}"]' for source, key in columns.items()]
        lines.append("  end")
    lines.append('  subgraph result["result"]')
    lines += [
        f'    r{number}["{escaped(column.name)}"]' for number, column in enumerate(lineage.columns)
    ]
    lines += ["    rows([rows])", "  end"]
    keys = {source: key for columns in tables.values() for source, key in columns.items()}
    return "\n".join([*lines, *_edges(lineage, keys)]) + "\n"


def _edges(lineage: Lineage, keys: Mapping[Source, str]) -> list[str]:
    lines: list[str] = []
    for number, column in enumerate(lineage.columns):
        lines += [f"  {keys[source]} --> r{number}" for source in in_order(column.values)]
        lines += [
            f'  {keys[source]} -. "{", ".join(roles)}" .-> r{number}'
            for source, roles in deciders_of(column, lineage)
        ]
    lines += [
        f'  {keys[source]} -. "{", ".join(roles)}" .-> rows'
        for source, roles in by_source(lineage.rows)
    ]
    return lines


def _column(source: Source) -> str:
    return source.column if isinstance(source, TableColumn) else str(source)
