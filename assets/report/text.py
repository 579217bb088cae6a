"""An analysed run as text, JSON or YAML."""

import json
from collections.abc import Sequence
from typing import Any

from stagecoach.assets.plans.estimates import FAR_OFF
from stagecoach.assets.report.analysis import ANALYSIS_VERSION, Analysis, Comparison, StageRun
from stagecoach.planner.distribution.reasons import size_text
from stagecoach.planner.explain.plan_text import rows_text
from stagecoach.planner.text.yaml_text import to_yaml

HEADINGS = (
    "stage",
    "engine",
    "how",
    "time",
    "share",
    "tasks",
    "min / median / max",
    "rows",
    "estimated",
    "stored",
    "skew",
)
_MARK = "  <<< estimate "
_INDENT = "  "


def analysis_text(analysis: Analysis) -> str:
    """The run as text, ending in a newline."""
    lines = [summary(analysis), ""]
    lines += _aligned([HEADINGS, *(stage_cells(stage) for stage in analysis.stages)])
    for stage in reversed(analysis.stages):
        lines += ["", *_stage_lines(stage)]
    lines += ["", *verdict_lines(analysis)]
    return "\n".join(lines) + "\n"


def summary(analysis: Analysis) -> str:
    """The run in one line, with the name of the query."""
    return f"{analysis.graph.query}: {how_it_ran(analysis)}"


def how_it_ran(analysis: Analysis) -> str:
    """How long it took, and over how many stages and tasks."""
    reused = sum(stage.reused for stage in analysis.stages)
    tasks = sum(len(stage.tasks) for stage in analysis.stages if not stage.reused)
    count = len(analysis.stages)
    waited = f", the first after {seconds_text(analysis.waited)}" if tasks else ""
    ended = "failed" if analysis.failed else rows_text(analysis.num_rows)
    return (
        f"{ended} in {analysis.seconds:.2f} s, "
        f"{count} stage{'' if count == 1 else 's'}{f' ({reused} reused)' if reused else ''}, "
        f"{tasks} task{'' if tasks == 1 else 's'}{waited}"
    )


def stage_cells(stage: StageRun) -> tuple[str, ...]:
    """A stage as a row of the table below `HEADINGS`."""
    times = stage.task_seconds()
    verdict = stage.rows.verdict
    return (
        str(stage.stage.stage_id),
        stage.engine,
        stage.how,
        "" if stage.reused or stage.missing else f"{stage.seconds:.2f} s",
        "" if stage.reused or stage.missing else f"{stage.share:.0%}",
        str(len(stage.tasks)) if stage.tasks else "",
        " / ".join(seconds_text(t) for t in times) if times else "",
        _count(stage.rows.actual),
        f"{_count(stage.rows.estimated)}{f' ({verdict})' if verdict else ''}",
        "" if stage.num_bytes.actual is None else size_text(stage.num_bytes.actual),
        "" if stage.skew is None else f"{stage.skew:.1f}",
    )


def seconds_text(seconds: float) -> str:
    """A duration for people, such as `35 ms` or `1.20 s`."""
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.2f} s"


def rows_compared(rows: Comparison) -> str:
    """Actual and estimated rows in a few words; empty where neither is known."""
    estimated = None if rows.estimated is None else f"estimated {rows.estimated:,}"
    if rows.actual is None:
        return estimated or ""
    return ", ".join(filter(None, (rows_text(rows.actual), estimated)))


def verdict_lines(analysis: Analysis) -> list[str]:
    """The estimates that were far off, one a line."""
    found = analysis.far_off()
    if not found:
        return [f"No estimate of rows was off by more than {FAR_OFF:.0f}x."]
    lines = [f"Estimates of rows that were off by more than {FAR_OFF:.0f}x:"]
    for stage, operator, rows in found:
        what = operator.line if operator is not None else "the whole stage"
        lines.append(
            f"{_INDENT}stage {stage.stage.stage_id}: {rows_compared(rows)}, {rows.verdict}: {what}"
        )
    return lines


def _stage_lines(stage: StageRun) -> list[str]:
    head = f"Stage {stage.stage.stage_id} ── {stage.engine}, {stage.how} ── {stage.exchange}"
    said = [f"-- {stage.engine}: {stage.engine_reason}"]
    if stage.stage.output.reason:
        said.append(f"-- {stage.stage.output.kind}: {stage.stage.output.reason}")
    said += [f"-- {kind}: {text}" for kind, text in stage.decisions]
    if stage.deferred:
        said.append(f"-- deferred to the last stage: {stage.deferred}")
    said.append(f"-- output: {_output(stage)}")
    body = [
        f"{_INDENT * operator.depth}{operator.line}{_end(operator.rows)}"
        for operator in stage.operators
    ]
    if not body:
        body = [_INDENT + line for line in stage.sql.strip().splitlines()]
    return [f"┌───── {head}", *(f"│ {line}" for line in [*said, *body]), "└" + "─" * 50]


def _output(stage: StageRun) -> str:
    parts = [rows_compared(stage.rows)]
    if stage.num_bytes.actual is not None:
        guess = stage.num_bytes.estimated
        estimated = "" if guess is None else f" (estimated {size_text(guess)} in memory)"
        parts.append(f"{size_text(stage.num_bytes.actual)} stored{estimated}")
    if stage.skew is not None:
        parts.append(f"skew {stage.skew:.1f}")
    return ", ".join(filter(None, parts)) or "none"


def _end(rows: Comparison) -> str:
    said = rows_compared(rows)
    mark = f"{_MARK}{rows.verdict}" if rows.verdict else ""
    return f"  ({said}){mark}" if said else ""


def _count(number: int | None) -> str:
    return "" if number is None else f"{number:,}"


def _aligned(table: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(row[i]) for row in table) for i in range(len(table[0]))]
    # Words to the left, numbers to the right.
    words = {0, 1, 2}
    return [
        "  ".join(
            cell.ljust(width) if i in words else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in table
    ]


# ---------------------------------------------------------------- data


def analysis_json(analysis: Analysis) -> str:
    """The run as JSON, ending in a newline."""
    return json.dumps(analysis_data(analysis), indent=2, ensure_ascii=False) + "\n"


def analysis_yaml(analysis: Analysis) -> str:
    """The run as YAML, ending in a newline."""
    return to_yaml(analysis_data(analysis))


def analysis_data(analysis: Analysis) -> dict[str, Any]:
    """The run as plain data; times are seconds, since 1970 or long."""
    return {
        "format_version": ANALYSIS_VERSION,
        "query": analysis.graph.query,
        "run_id": analysis.run_id,
        "started_at": analysis.started_at,
        "seconds": analysis.seconds,
        "rows": analysis.num_rows,
        "stages": [_stage_data(stage) for stage in analysis.stages],
    }


def _stage_data(stage: StageRun) -> dict[str, Any]:
    return {
        "stage_id": stage.stage.stage_id,
        "title": stage.stage.title,
        "engine": stage.engine,
        "engine_reason": stage.engine_reason,
        "how": stage.how,
        "deferred": stage.deferred,
        "output": {"text": stage.exchange, "reason": stage.stage.output.reason},
        "started_at": stage.started_at,
        "seconds": stage.seconds,
        "waited_seconds": stage.waited,
        "task_time_share": stage.share,
        "rows": _comparison_data(stage.rows),
        "stored_bytes": stage.num_bytes.actual,
        "estimated_bytes": stage.num_bytes.estimated,
        "partition_bytes": list(stage.partition_bytes),
        "skew": stage.skew,
        "decisions": [{"kind": kind, "text": text} for kind, text in stage.decisions],
        "tasks": [dict(vars(task)) for task in stage.tasks],
        "operators": [
            {"depth": op.depth, "operator": op.line, "rows": _comparison_data(op.rows)}
            for op in stage.operators
        ],
        "sql": stage.sql,
    }


def _comparison_data(rows: Comparison) -> dict[str, Any]:
    return {
        "estimated": rows.estimated,
        "actual": rows.actual,
        "factor": rows.factor,
        "far_off": rows.is_far_off,
    }
