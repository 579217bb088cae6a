"""Draws the stages of an analysed run, and a timeline of its tasks, as SVG.

`stage_graph` draws the stages and their exchanges, `timeline` when each task ran, and where.
Colours are those of the page's style, so that both drawings follow its light or dark scheme.
"""

import itertools
import math
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from stagecoach.assets.report.analysis import Analysis, StageRun, TaskRun
from stagecoach.assets.report.dag_layout import layout
from stagecoach.assets.report.svg import as_text, as_title, shortened, svg
from stagecoach.assets.report.text import seconds_text
from stagecoach.planner.distribution.reasons import size_text
from stagecoach.planner.explain.diagrams import stage_steps
from stagecoach.planner.explain.plan_text import rows_text

COLOURS = 8
_BOX_WIDTH, _BOX_HEIGHT = 236, 120
_COLUMN, _LAYER = 264, 186
_MARGIN = 14
_LABELS = 310  # what stands left of the timeline
_PLOT = 730
_ROW = 22
_LINE = 15  # of a label that has two
_MOST_LABEL = 48  # characters of a line
_MOST_CHARACTERS = 33
_Scale = Callable[[float], float]


def colour(stage_id: int) -> str:
    """The CSS class of a stage's colour."""
    return f"c{stage_id % COLOURS}"


# ---------------------------------------------------------------- stages


def stage_graph(analysis: Analysis) -> str:
    """Boxes and arrows; rows flow downwards, thicker arrows carry more bytes."""
    found = layout({stage.stage.stage_id: stage.inputs for stage in analysis.stages})
    width = round((found.columns - 1) * _COLUMN + _BOX_WIDTH + 2 * _MARGIN)
    height = (found.layers - 1) * _LAYER + _BOX_HEIGHT + 2 * _MARGIN + 40

    def middle(column: float) -> float:
        return _MARGIN + _BOX_WIDTH / 2 + column * _COLUMN

    def top(layer: int) -> float:
        return _MARGIN + layer * _LAYER

    parts: list[str] = []
    for stage in analysis.stages:
        column, layer = found.places[stage.stage.stage_id]
        for source in stage.inputs:
            upstream = analysis.stages[source]
            from_column, from_layer = found.places[source]
            points = [(middle(from_column), top(from_layer) + _BOX_HEIGHT + 18)]
            for bend, bend_layer in found.bends[source, stage.stage.stage_id]:
                points += [
                    (middle(bend), top(bend_layer) - 8),
                    (middle(bend), top(bend_layer) + _BOX_HEIGHT + 18),
                ]
            points.append((middle(column), top(layer) - 3))
            parts.append(_arrow(points, upstream))
    for stage in analysis.stages:
        column, layer = found.places[stage.stage.stage_id]
        parts.append(_box(stage, middle(column) - _BOX_WIDTH / 2, top(layer)))
    head_column, head_layer = found.places[analysis.graph.head.stage_id]
    end = top(head_layer) + _BOX_HEIGHT
    ended = "none" if analysis.failed else rows_text(analysis.num_rows)
    parts.append(
        f'<text class="label" text-anchor="middle" x="{middle(head_column):.0f}" '
        f'y="{end + 22:.0f}">result: {as_text(ended)}</text>'
    )
    marker = (
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" '
        'markerHeight="8" markerUnits="userSpaceOnUse" orient="auto">'
        '<path class="tip" d="M0 0L8 4L0 8z"/></marker></defs>'
    )
    return svg("graph", width, height, [marker, *parts], "The stages of the run")


def _arrow(points: Sequence[tuple[float, float]], source: StageRun) -> str:
    path = f"M{points[0][0]:.0f} {points[0][1]:.0f}"
    for (x0, y0), (x1, y1) in itertools.pairwise(points):
        half = (y1 - y0) / 2
        path += f"C{x0:.0f} {y0 + half:.0f} {x1:.0f} {y1 - half:.0f} {x1:.0f} {y1:.0f}"
    stored = source.num_bytes.actual or 0
    thick = 1.2 + min(math.log10(stored + 1), 10) * 0.28
    title = as_title(
        f"{source.exchange}: {rows_text(source.rows.actual or 0)}, {size_text(stored)}"
    )
    return (
        f'<path class="edge" marker-end="url(#tip)" stroke-width="{thick:.1f}" '
        f'd="{path}">{title}</path>'
    )


def _box(stage: StageRun, x: float, y: float) -> str:
    number = stage.stage.stage_id
    steps = textwrap.wrap(stage_steps(stage.stage), _MOST_CHARACTERS, max_lines=2, placeholder=" …")
    counted = "" if stage.rows.actual is None else rows_text(stage.rows.actual)
    stored = "" if stage.num_bytes.actual is None else size_text(stage.num_bytes.actual)
    took = stage.how if stage.how != "computed" else f"{seconds_text(_busy(stage))} of tasks"
    kind = {"computed": "box", "failed": "box failed"}.get(stage.how, "box idle")
    tasks = f"{len(stage.tasks)} task{'' if len(stage.tasks) == 1 else 's'}, "
    if not stage.tasks and stage.how != "computed":
        tasks = ""
    far = next((op.rows for op in stage.operators if op.rows.is_far_off), None)
    share = round(max(min(stage.share, 1.0), 0.0) * (_BOX_WIDTH - 6))
    lines = [
        f'<rect class="{kind}" width="{_BOX_WIDTH}" height="{_BOX_HEIGHT}" rx="6"/>',
        f'<rect class="{colour(number)}" width="6" height="{_BOX_HEIGHT}" rx="3"/>',
        f'<rect class="{colour(number)} share" x="6" y="{_BOX_HEIGHT - 5}" width="{share}" '
        'height="5"/>',
        f'<text class="name" x="16" y="20">Stage {number}</text>',
        f'<text class="note" x="{_BOX_WIDTH - 10}" y="20" text-anchor="end">'
        f"{as_text(stage.engine)}</text>",
    ]
    lines += [
        f'<text class="steps" x="16" y="{38 + 15 * i}">{as_text(line)}</text>'
        for i, line in enumerate(steps)
    ]
    rows = ", ".join(filter(None, (counted, stored)))
    lines.append(f'<text class="note" x="16" y="72">{as_text(rows)}</text>')
    lines.append(f'<text class="note" x="16" y="88">{as_text(tasks + took)}</text>')
    if far is not None:
        lines.append(f'<text class="bad" x="16" y="104">estimate {as_text(far.verdict)}</text>')
    label = "" if number == _head(stage) else shortened(stage.label)
    lines.append(
        f'<text class="label" text-anchor="middle" x="{_BOX_WIDTH / 2:.0f}" '
        f'y="{_BOX_HEIGHT + 13}">{as_text(label)}</text>'
    )
    title = as_title(f"{stage.stage.title}\n{stage.exchange}\n{stage.stage.output.reason}")
    link = f'<a href="#stage{number}">'
    return f'{link}<g transform="translate({x:.0f} {y:.0f})">{title}{"".join(lines)}</g></a>'


def _head(stage: StageRun) -> int:
    from stagecoach.planner.distribution.reasons import RESULT

    return stage.stage.stage_id if stage.stage.output.reason == RESULT else -1


def _busy(stage: StageRun) -> float:
    return sum(task.seconds for task in stage.tasks)


# ---------------------------------------------------------------- timeline


@dataclass(frozen=True)
class _Bar:
    stage: StageRun
    task: TaskRun
    slot: int


def timeline(analysis: Analysis) -> str:
    """When stages and their tasks ran: a row for each stage, then one for each executor slot."""
    ran = [stage for stage in analysis.stages if not stage.reused and stage.tasks]
    timed = [(s, t) for s in ran for t in s.tasks if t.started_at]
    slots, bars = _slots(timed)
    start = analysis.first_task_at
    ends = [start + 0.001, *(s.started_at + s.seconds for s in ran)]
    ends += [t.started_at + t.seconds for _, t in timed]
    scale = _PLOT / (max(ends) - start)

    def x(moment: float) -> float:
        return _LABELS + max(moment - start, 0.0) * scale

    parts: list[str] = []
    y = 30
    for stage in ran:
        parts += _stage_row(stage, x, y)
        y += _ROW + _LINE * (len(_stage_label(stage)) - 1)
    y += 14
    for number, name in enumerate(slots):
        parts += _row_label([shortened(name, _MOST_LABEL)], name, y)
        parts += [_bar(bar, x, y) for bar in bars if bar.slot == number]
        y += _ROW
    grid = _grid(max(ends) - start, scale, y)
    width = _LABELS + _PLOT + _MARGIN + 20
    return svg("timeline", width, y + 10, [*grid, *parts], "When each task ran")


def _stage_row(stage: StageRun, x: _Scale, y: int) -> list[str]:
    number = stage.stage.stage_id
    left, right = x(stage.started_at), x(stage.started_at + stage.seconds)
    title = as_title(f"stage {number}: {seconds_text(stage.seconds)} from first task to commit")
    parts = [
        *_row_label(_stage_label(stage), stage.stage.title, y),
        f'<rect class="span" x="{left:.1f}" y="{y + 3}" width="{max(right - left, 1):.1f}" '
        f'height="{_ROW - 6}" rx="3">{title}</rect>',
    ]
    for task in stage.tasks:
        if task.started_at:
            begin, end = x(task.started_at), x(task.started_at + task.seconds)
            parts.append(
                f'<rect class="{colour(number)} faint" x="{begin:.1f}" y="{y + 6}" '
                f'width="{max(end - begin, 1.5):.1f}" height="{_ROW - 12}">'
                f"{_task_title(stage, task)}</rect>"
            )
    return parts


def _bar(bar: _Bar, x: _Scale, y: int) -> str:
    task, number = bar.task, bar.stage.stage.stage_id
    begin, end = x(task.started_at), x(task.started_at + task.seconds)
    width = max(end - begin, 1.5)
    text = ""
    if width > 26:
        text = (
            f'<text class="inbar" x="{begin + width / 2:.1f}" y="{y + 15}" text-anchor="middle">'
            f"{number}.{task.index}</text>"
        )
    return (
        f'<g><rect class="{colour(number)}" x="{begin:.1f}" y="{y + 2}" width="{width:.1f}" '
        f'height="{_ROW - 4}" rx="2"/>{text}{_task_title(bar.stage, task)}</g>'
    )


def _task_title(stage: StageRun, task: TaskRun) -> str:
    engine = max(task.seconds - task.read_seconds - task.write_seconds, 0.0)
    return as_title(
        f"stage {stage.stage.stage_id}, task {task.index}: {seconds_text(task.seconds)}\n"
        f"reading shuffles {seconds_text(task.read_seconds)}, computing {seconds_text(engine)}, "
        f"writing {seconds_text(task.write_seconds)}\n"
        f"{rows_text(task.rows_out)}, {size_text(task.bytes_out)} written, "
        f"peak memory {size_text(task.peak_memory_bytes)}\n{task.host}, process {task.pid}"
    )


def _slots(timed: Sequence[tuple[StageRun, TaskRun]]) -> tuple[list[str], list[_Bar]]:
    """Names of the slots, and each task in the first slot of its machine that is free.

    Which slot Spark used is not told; a machine has at least as many as there are rows here.
    """
    free: dict[str, list[float]] = {}
    placed: list[tuple[str, int, StageRun, TaskRun]] = []
    for stage, task in sorted(timed, key=lambda item: item[1].started_at):
        ends = free.setdefault(task.host, [])
        begin, end = task.started_at, task.started_at + task.seconds
        slot = next((i for i, until in enumerate(ends) if until <= begin + 0.001), len(ends))
        if slot == len(ends):
            ends.append(end)
        ends[slot] = end
        placed.append((task.host, slot, stage, task))
    names = [(host, slot) for host in sorted(free) for slot in range(len(free[host]))]
    rows = {name: number for number, name in enumerate(names)}
    several = len(free) > 1
    texts = [f"{host}, slot {slot + 1}" if several else f"slot {slot + 1}" for host, slot in names]
    return texts, [_Bar(stage, task, rows[host, slot]) for host, slot, stage, task in placed]


def _grid(seconds: float, scale: float, height: int) -> list[str]:
    step = _step(seconds)
    parts: list[str] = []
    for i in range(math.floor(seconds / step) + 1):
        at = _LABELS + i * step * scale
        parts.append(f'<line class="grid" x1="{at:.1f}" x2="{at:.1f}" y1="22" y2="{height}"/>')
        parts.append(
            f'<text class="axis" text-anchor="middle" x="{at:.1f}" y="15">{i * step:g} s</text>'
        )
    return parts


def _step(seconds: float) -> float:
    """A round number of seconds of which five to twelve fit."""
    power = 10.0 ** math.floor(math.log10(max(seconds, 1e-6) / 5))
    return next(power * m for m in (1, 2, 5, 10) if seconds / (power * m) <= 10)


def _stage_label(stage: StageRun) -> list[str]:
    """The number of a stage and what it does, in at most two lines."""
    text = f"stage {stage.stage.stage_id}: {stage_steps(stage.stage)}"
    return textwrap.wrap(text, _MOST_LABEL, max_lines=2, placeholder=" …")


def _row_label(lines: Sequence[str], title: str, y: int) -> list[str]:
    return [
        f'<text class="row" x="{_MARGIN}" y="{y + 15 + _LINE * i}">{as_text(line)}'
        f"{as_title(title)}</text>"
        for i, line in enumerate(lines)
    ]
