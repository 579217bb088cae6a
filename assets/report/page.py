"""An analysed run as one HTML page that needs no network.

Style, drawings and numbers are all in the page; it loads nothing and runs no script. It follows the
reader's light or dark scheme.
"""

from collections.abc import Iterable, Sequence

from stagecoach.assets.plans.estimates import FAR_OFF
from stagecoach.assets.report.analysis import Analysis, Comparison, StageRun
from stagecoach.assets.report.drawings import colour, stage_graph, timeline
from stagecoach.assets.report.lineage_drawing import lineage_svg
from stagecoach.assets.report.svg import as_text
from stagecoach.assets.report.text import (
    HEADINGS,
    how_it_ran,
    rows_compared,
    seconds_text,
    stage_cells,
)
from stagecoach.planner.distribution.reasons import RESULT, size_text
from stagecoach.planner.explain.lineage import by_source, deciders_of, in_order
from stagecoach.planner.lineage import Lineage, Source, TableColumn, graph_lineage

_LEFT = 3  # the columns of words in the table; the others are numbers

_STYLE = """
:root { color-scheme: light dark;
  --page: #f6f7f9; --card: #ffffff; --text: #1b1f24; --soft: #5b6672; --line: #d5dae1;
  --bad: #b42318; --badback: #fdeceb; --span: #e4e8ee; --code: #f0f2f5; }
@media (prefers-color-scheme: dark) { :root {
  --page: #14171c; --card: #1d2128; --text: #e6e9ee; --soft: #9aa5b1; --line: #363d47;
  --bad: #ff8a80; --badback: #3a2020; --span: #2e353f; --code: #161a20; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 24px; max-width: 1120px; background: var(--page);
  color: var(--text); font: 14px/1.45 system-ui, "Segoe UI", Roboto, sans-serif; }
h1 { font-size: 21px; margin: 0; } h2 { font-size: 16px; margin: 28px 0 8px; }
h3 { font-size: 14px; margin: 0; display: inline; }
p { margin: 4px 0; } .soft { color: var(--soft); } .id { white-space: nowrap; }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 8px;
  padding: 12px 14px; margin: 8px 0; overflow-x: auto; }
.tiles { display: flex; flex-wrap: wrap; gap: 10px; margin: 14px 0; }
.tile { background: var(--card); border: 1px solid var(--line); border-radius: 8px;
  padding: 8px 14px; min-width: 120px; }
.tile b { display: block; font-size: 19px; font-variant-numeric: tabular-nums; }
.tile.alarm b { color: var(--bad); }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { padding: 4px 8px; text-align: right; white-space: nowrap;
  border-bottom: 1px solid var(--line); }
tr:last-child td { border-bottom: 0; }
th { color: var(--soft); font-weight: 600; } .word { text-align: left; }
td i { display: inline-block; width: 10px; height: 10px; border-radius: 2px; margin-right: 6px; }
.off, .off td { background: var(--badback); } .bad { color: var(--bad); fill: var(--bad); }
td.tree { text-align: left; white-space: normal; overflow-wrap: anywhere;
  font: 12px/1.5 ui-monospace, Consolas, monospace; }
.operators :is(th, td):not(:last-child) { min-width: 92px; }
.operators .word, .operators .tree { width: 100%; }
pre { background: var(--code); padding: 10px; border-radius: 6px; overflow-x: auto; margin: 8px 0;
  font: 12px/1.5 ui-monospace, Consolas, monospace; white-space: pre-wrap; }
summary { cursor: pointer; } a { color: inherit; text-decoration: none; }
ul { margin: 4px 0; padding-left: 20px; }
svg { display: block; margin: 0 auto; max-width: 100%; height: auto;
  font: 12px system-ui, "Segoe UI", Roboto, sans-serif; }
svg text { fill: var(--text); } svg .note, svg .axis, svg .label { fill: var(--soft); }
svg .name { font-weight: 600; } svg .label { font-size: 11px; } svg .bad { fill: var(--bad);
  font-weight: 600; }
svg .box { fill: var(--card); stroke: var(--line); stroke-width: 1.3; }
svg .box.idle { stroke-dasharray: 5 4; } svg .box.failed { stroke: var(--bad);
  stroke-width: 2; fill: var(--badback); } svg a:hover .box { stroke: var(--text); }
svg .edge { fill: none; stroke: var(--soft); opacity: .75; } svg .value { stroke-width: 1.5; }
svg .choice { stroke-dasharray: 2 4; opacity: .45; }
svg .edge:hover { opacity: 1; stroke: var(--text); stroke-width: 2.5; }
svg .tip { fill: var(--soft); }
svg .grid { stroke: var(--line); } svg .span { fill: var(--span); } svg .faint { opacity: .85; }
svg .share { opacity: .8; } svg .inbar { fill: #fff; font-size: 11px; pointer-events: none; }
.c0 { fill: #3b74c4; background: #3b74c4; } .c1 { fill: #c2571a; background: #c2571a; }
.c2 { fill: #2d8659; background: #2d8659; } .c3 { fill: #8455c0; background: #8455c0; }
.c4 { fill: #b03a6f; background: #b03a6f; } .c5 { fill: #1d7f93; background: #1d7f93; }
.c6 { fill: #8a6d14; background: #8a6d14; } .c7 { fill: #6a7482; background: #6a7482; }
@media print { body { max-width: none; } .card { break-inside: avoid; } }
"""
# The page may use its own style and nothing else: no script, no request.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def analysis_page(analysis: Analysis, written_at: str) -> str:
    """The page.

    Args:
        analysis: The run.
        written_at: When it ran, for people.
    """
    name = as_text(analysis.graph.query)
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{name}: how it ran</title><style>{_STYLE}</style></head><body>",
        f"<h1>{name}</h1>",
        f'<p class="soft">{as_text(how_it_ran(analysis))}; {as_text(written_at)}, '
        f'<span class="id">run {as_text(analysis.run_id)}</span></p>',
        *(_problem(stage) for stage in analysis.failed),
        _tiles(analysis),
        _verdicts(analysis),
        '<h2>Stages</h2><p class="soft">Rows flow down. The bar at the foot of a box is its part '
        "of all task time, thicker arrows carry more bytes, a dashed box was not computed in this "
        "run, a red one failed.</p>",
        f'<div class="card">{stage_graph(analysis)}</div>',
        _timeline(analysis),
        "<h2>Numbers</h2>",
        f'<div class="card">{_table(analysis)}</div>',
        '<p class="soft">Time is from the first task of a stage to its commit; share is its part '
        "of all task time; min, median and max are of its tasks. Estimates are of rows in memory, "
        "stored bytes are compressed. Skew is the largest partition divided by the median "
        "one.</p>",
        "<h2>Operators</h2>",
        *(_stage(stage) for stage in reversed(analysis.stages)),
        *_lineage(graph_lineage(analysis.graph).result),
        "<h2>SQL</h2>",
        f'<div class="card"><pre>{as_text(analysis.graph.sql.strip())}</pre></div>',
        "</body></html>",
    ]
    return "\n".join(part for part in parts if part) + "\n"


def _problem(stage: StageRun) -> str:
    number = stage.stage.stage_id
    return (
        f'<div class="card off"><a class="bad" href="#stage{number}">'
        f"<b>Stage {number} failed</b></a>"
        f"<pre>{as_text(stage.problem or '')}</pre>"
        '<p class="soft">A stage that had not ended by then shows as not run.</p></div>'
    )


def _tiles(analysis: Analysis) -> str:
    head = analysis.graph.head
    computed = [stage for stage in analysis.stages if stage.how == "computed"]
    written = sum(stage.num_bytes.actual or 0 for stage in computed if stage.stage is not head)
    busy = sum(task.seconds for stage in computed for task in stage.tasks)
    off = len(analysis.far_off())
    tiles = [
        (f"{analysis.seconds:.2f} s", "from start to end", False),
        (f"{busy:.2f} s", "of task time", False),
        ("none" if analysis.failed else f"{analysis.num_rows:,}", "rows in the result", False),
        (f"{len(computed)} of {len(analysis.stages)}", "stages computed", False),
        (size_text(written), "through shuffles", False),
        (str(off), f"estimates off by {FAR_OFF:.0f}x", off > 0),
    ]
    return '<div class="tiles">' + "".join(_tile(*tile) for tile in tiles) + "</div>"


def _tile(value: str, label: str, alarm: bool) -> str:
    return (
        f'<div class="tile{" alarm" if alarm else ""}"><b>{as_text(value)}</b>'
        f'<span class="soft">{as_text(label)}</span></div>'
    )


def _verdicts(analysis: Analysis) -> str:
    found = analysis.far_off()
    if not found:
        return ""
    items = "".join(
        f'<li><a href="#stage{stage.stage.stage_id}">stage {stage.stage.stage_id}</a>: '
        f'{as_text(rows_compared(rows))}, <span class="bad">{rows.verdict}</span>: '
        f"{as_text(operator.line if operator is not None else 'the whole stage')}</li>"
        for stage, operator, rows in found
    )
    return (
        f"<h2>Estimates of rows that were off by more than {FAR_OFF:.0f}x</h2>"
        f'<div class="card"><ul>{items}</ul></div>'
    )


def _timeline(analysis: Analysis) -> str:
    if not analysis.first_task_at:
        there = all(stage.reused for stage in analysis.stages)
        why = "No task ran: every stage was there already." if there else "No task ran to its end."
        return f'<h2>Timeline</h2><p class="soft">{why}</p>'
    wait = seconds_text(analysis.waited)
    return (
        f'<h2>Timeline</h2><p class="soft">It begins with the first task, {as_text(wait)} after '
        "the start of the run. Above, each stage from its first task to its commit with its "
        "tasks in it; below, the tasks by executor slot, each with the numbers of its stage and "
        "itself. Times are by the clocks of the machines.</p>"
        f'<div class="card">{timeline(analysis)}</div>'
    )


def _table(analysis: Analysis) -> str:
    head = "".join(_cell("th", text, i) for i, text in enumerate(HEADINGS))
    rows = "".join(_row(stage) for stage in analysis.stages)
    return f"<table><tr>{head}</tr>{rows}</table>"


def _row(stage: StageRun) -> str:
    number = stage.stage.stage_id
    first, *rest = stage_cells(stage)
    mark = f'<i class="{colour(number)}"></i>'
    cells = [f'<td class="word"><a href="#stage{number}">{mark}{first}</a></td>']
    cells += [_cell("td", text, i) for i, text in enumerate(rest, start=1)]
    return f"<tr{_off(stage.rows)}>{''.join(cells)}</tr>"


def _cell(tag: str, text: str, position: int) -> str:
    word = ' class="word"' if position < _LEFT else ""
    return f"<{tag}{word}>{as_text(text)}</{tag}>"


def _off(rows: Comparison) -> str:
    return ' class="off"' if rows.is_far_off else ""


def _stage(stage: StageRun) -> str:
    number = stage.stage.stage_id
    said = [f"{stage.engine}: {stage.engine_reason}"]
    if stage.stage.output.reason not in ("", RESULT):
        said.append(f"{stage.exchange}: {stage.stage.output.reason}")
    if stage.deferred:
        said.append(f"deferred to the last stage: {stage.deferred}")
    notes = "".join(f'<p class="soft">{as_text(line)}</p>' for line in said)
    operators = "".join(
        f'<tr{_off(op.rows)}><td class="tree" '
        f'style="padding-left: {8 + 14 * op.depth}px">{as_text(op.line)}</td>'
        f"<td>{'' if op.rows.actual is None else f'{op.rows.actual:,}'}</td>"
        f"<td>{'' if op.rows.estimated is None else f'{op.rows.estimated:,}'}</td>"
        f'<td class="bad">{as_text(op.rows.verdict)}</td></tr>'
        for op in stage.operators
    )
    table = (
        '<table class="operators"><tr><th class="word">operator</th><th>rows</th>'
        "<th>estimated</th><th></th></tr>"
        f"{operators}</table>"
        if operators
        else ""
    )
    return (
        f'<div class="card" id="stage{number}"><h3>Stage {number}</h3> '
        f'<span class="soft">{as_text(stage.stage.title)}, {stage.how}</span>{notes}{table}'
        f"<details><summary>SQL</summary><pre>{as_text(stage.sql.strip())}</pre></details></div>"
    )


def _lineage(lineage: Lineage) -> list[str]:
    parts = ["<h2>Lineage</h2>"]
    if lineage.unknown is not None:
        tables = {s.table for s in lineage.sources if isinstance(s, TableColumn)}
        said = f"Unknown: {lineage.unknown}. Each column may come from any column of "
        said += ", ".join(sorted(tables)) or "no table"
        return [*parts, f'<p class="soft">{as_text(said)}</p>']
    parts.append(
        '<p class="soft">A line leads from a base column to the columns that its values go into; '
        "a dotted one means that it decides which rows there are, or in which order.</p>"
    )
    if (drawing := lineage_svg(lineage)) is not None:
        parts.append(f'<div class="card">{drawing}</div>')
    chosen = [_named(deciders_of(column, lineage)) for column in lineage.columns]
    heads = ["column", "values come from", *(["its rows are chosen by"] if any(chosen) else [])]
    head = "".join(f'<th class="word">{text}</th>' for text in heads)
    rows = ""
    for column, by in zip(lineage.columns, chosen, strict=True):
        cells = [column.name, _named((s, ()) for s in in_order(column.values)), by][: len(heads)]
        rows += "<tr>" + "".join(f'<td class="tree">{as_text(c)}</td>' for c in cells) + "</tr>"
    said = _named(by_source(lineage.rows)) or "no column decides on them"
    parts.append(
        f'<div class="card"><table><tr>{head}</tr>{rows}</table>'
        f'<p class="soft">All rows: {as_text(said)}</p></div>'
    )
    return parts


def _named(sources: Iterable[tuple[Source, Sequence[str]]]) -> str:
    return ", ".join(
        f"{source} ({', '.join(roles)})" if roles else str(source) for source, roles in sources
    )
