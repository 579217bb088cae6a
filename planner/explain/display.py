"""Render stage graphs and plans as text, JSON, YAML, Mermaid or DOT.

The drawing has the head first and each stage below its consumer, in the manner of
datafusion-distributed's `display_plan_ascii`:

    ┌───── Stage 1 ── engine=duckdb ── Gather ── ~10 rows, 240 B
    │ -- gather: one order over all rows, of which each task sends its first 10
    │ SortExec: [revenue DESC] fetch=10  (~10 rows, 240 B)
    │   [Stage 0] => Shuffle: keys=[l_orderkey], partitions=4  (~1,200 rows, 28.1 KiB)
    └──────────────────────────────────────────────────
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from stagecoach.planner.distribution.reasons import RESULT
from stagecoach.planner.distribution.work import work_seconds
from stagecoach.planner.engines.registry import planner_engine
from stagecoach.planner.errors import OptionError
from stagecoach.planner.explain.describe import Plan, Sizer, column_names, sizes_in_order
from stagecoach.planner.explain.diagrams import inputs_in_order
from stagecoach.planner.explain.dot import graph_dot, plan_dot
from stagecoach.planner.explain.mermaid import graph_mermaid, plan_mermaid
from stagecoach.planner.explain.plan_data import plan_data
from stagecoach.planner.explain.plan_text import estimate_text, plan_lines
from stagecoach.planner.explain.plan_text import render_plan as render_plan
from stagecoach.planner.limits.deep_stack import on_deep_stack, run_deep
from stagecoach.planner.plan.physical import PhysicalPlan, ScanExec
from stagecoach.planner.plan.repeated import repeated_parts
from stagecoach.planner.plan.stages import Stage, StageGraph
from stagecoach.planner.render.fragment import render_fragment
from stagecoach.planner.staging.engines import PROVEN
from stagecoach.planner.text.yaml_text import to_documents, to_yaml
from stagecoach.planner.types import Field

EXPLAIN_VERSION = 2
FORMATS = ("text", "json", "yaml", "mermaid", "dot")

_TOP = "┌─────"
_SIDE = "│"
_BOTTOM = "└" + "─" * 50
_INDENT = "  "
_TITLES = {
    "logical": "Logical plan",
    "optimized": "Optimized plan",
    "physical": "Physical plan",
    "stages": "Stages",
}


@on_deep_stack
def render_graph(graph: StageGraph, format: str = "text", *, details: bool = False) -> str:
    """A planned query in one of the formats, ending in a newline.

    Args:
        graph: The query.
        format: One of `FORMATS`.
        details: Whether text tells the SQL of each stage and the reason for its engine, too; JSON
            and YAML always do.

    Raises:
        OptionError: For another format.
    """
    match _known(format):
        case "json":
            return json.dumps(graph_data(graph), indent=2, ensure_ascii=False) + "\n"
        case "yaml":
            return to_yaml(graph_data(graph))
        case "mermaid":
            return graph_mermaid(graph)
        case "dot":
            return graph_dot(graph)
    return _text(graph, details)


def render_phases(
    phases: Mapping[str, Plan | StageGraph],
    format: str = "text",
    *,
    sizes: Sizer | None = None,
    details: bool = False,
) -> str:
    """Plans of several phases of one query, ending in a newline.

    Args:
        phases: Plans by the name of their phase, at least one.
        format: One of `FORMATS`; diagrams show one phase at a time.
        sizes: The estimated size of an operator of a logical or physical plan.
        details: As `render_graph`.

    Raises:
        OptionError: For another format, a diagram of several phases, or a plan that is nested too
            deeply for the format.
    """
    _known(format)
    if format in ("mermaid", "dot") and len(phases) > 1:
        raise OptionError(f"{format} shows one plan at a time; choose one with --plan")
    try:
        return run_deep(lambda: _render_phases(phases, format, sizes, details))
    except RecursionError:
        raise OptionError(f"the plan is nested too deeply for {format}; use text") from None


def _render_phases(
    phases: Mapping[str, Plan | StageGraph], format: str, sizes: Sizer | None, details: bool
) -> str:
    if format in ("json", "yaml"):
        data = {
            name: graph_data(plan) if isinstance(plan, StageGraph) else plan_data(plan, sizes=sizes)
            for name, plan in phases.items()
        }
        if format == "yaml":
            return to_documents(data) if len(data) > 1 else to_yaml(next(iter(data.values())))
        shown = data if len(data) > 1 else next(iter(data.values()))
        return json.dumps(shown, indent=2, ensure_ascii=False) + "\n"
    texts = {
        name: render_graph(plan, format, details=details)
        if isinstance(plan, StageGraph)
        else _plan(plan, format, sizes)
        for name, plan in phases.items()
    }
    if len(texts) == 1:
        return next(iter(texts.values()))
    return "\n".join(f"== {_TITLES.get(name, name)} ==\n{text}" for name, text in texts.items())


def _plan(plan: Plan, format: str, sizes: Sizer | None) -> str:
    if format == "mermaid":
        return plan_mermaid(plan, sizes)
    return plan_dot(plan, sizes) if format == "dot" else render_plan(plan, sizes) + "\n"


def _known(format: str) -> str:
    if format not in FORMATS:
        raise OptionError(f"unknown plan format '{format}'; there are {', '.join(FORMATS)}")
    return format


# ---------------------------------------------------------------- text


def _text(graph: StageGraph, details: bool) -> str:
    count = len(graph.stages)
    lines = [f"query {graph.query}: {count} stage{'s' if count != 1 else ''}"]
    if graph.fallback_reason is not None:
        lines.append(f"not staged: {graph.fallback_reason}")
    if graph.result:
        lines.append(f"result: {_fields(graph.result)}{', ordered' if graph.ordered else ''}")
    lines += [
        f"function {f.signature} {f.returns}: {f.python}, {f.kind}"
        f"{', deterministic' if f.deterministic else ''}"
        for f in graph.functions
    ]
    drawn: set[int] = set()
    stack = [(graph.head.stage_id, 0)]
    while stack:
        stage_id, depth = stack.pop()
        margin = _INDENT * depth
        if stage_id in drawn:
            lines.append(f"{margin}(Stage {stage_id}: see above)")
            continue
        drawn.add(stage_id)
        stage = graph.stages[stage_id]
        lines.extend(margin + line for line in _box(graph, stage, details))
        stack.extend((i, depth + 1) for i in reversed(inputs_in_order(stage)))
    return "\n".join(lines) + "\n"


def _box(graph: StageGraph, stage: Stage, details: bool) -> list[str]:
    head = f"Stage {stage.stage_id} ── engine={stage.engine} ── {exchange_text(stage)}"
    if stage.estimated_rows:
        head += f" ── {estimate_text((stage.estimated_rows, stage.estimated_bytes))}"
    body: list[str] = []
    if stage.output.reason and (details or stage.output.reason != RESULT):
        body.append(f"-- {stage.output.kind}: {stage.output.reason}")
    if details or stage.engine_reason != PROVEN:
        body.append(f"-- {stage.engine}: {stage.engine_reason}")
    if stage.cores > 1:
        body.append(f"-- {stage.cores} cores{_duration(stage)}")
    body += _incremental_lines(stage)
    body += _operator_lines(graph, stage)
    if details and stage.sql is None:
        body += ["SQL:", *(_INDENT + line for line in stage_sql(stage).splitlines())]
    return [f"{_TOP} {head}", *(f"{_SIDE} {line}" for line in body), _BOTTOM]


def _incremental_lines(stage: Stage) -> list[str]:
    """Whether a run computes only what is new, where the plan is to be incremental."""
    if stage.whole_reason:
        return [f"-- computed whole: {stage.whole_reason}"]
    if not stage.incremental:
        return []
    others = [f"stage {i}" for i in stage.inputs]
    others += [
        leaf.table for leaf in stage.leaves if isinstance(leaf, ScanExec) and leaf.read == "all"
    ]
    verb = "stays as it is" if len(others) == 1 else "stay as they are"
    condition = f", while {' and '.join(others)} {verb}" if others else ""
    return [f"-- incremental: only new and changed files are computed{condition}"]


def _operator_lines(graph: StageGraph, stage: Stage) -> list[str]:
    if stage.sql is not None:
        indented = (_INDENT + line for line in stage.sql.strip().splitlines())
        return ["SparkSqlExec:", *indented]
    return plan_lines(stage.fragment, _said(graph, stage), _sizes(stage), _once(stage))


def _operator_data(graph: StageGraph, stage: Stage) -> dict[str, Any] | str:
    if stage.sql is not None:
        return {"SparkSqlExec": {"sql": stage.sql}}
    said, sizes = _said(graph, stage), _sizes(stage)
    return plan_data(stage.fragment, inputs=said, sizes=sizes, once=_once(stage))


def _once(stage: Stage) -> frozenset[PhysicalPlan]:
    """What the engine of a stage computes once for all places that need it."""
    keeps = planner_engine(stage.engine).dialect.keeps_parts
    return repeated_parts(stage.fragment) if keeps else frozenset()


def _said(graph: StageGraph, stage: Stage) -> dict[int, str]:
    return {i: exchange_text(graph.stages[i]) for i in stage.inputs}


def _sizes(stage: Stage) -> Sizer | None:
    if not stage.operator_rows:
        return None
    return sizes_in_order(stage.operator_rows, stage.operator_bytes)


def _duration(stage: Stage) -> str:
    """How long the only task of a stage is taken to need."""
    sizes = stage.operator_sizes
    if not sizes:
        return ""
    seconds = work_seconds(sizes, sizes.__getitem__) / stage.cores
    return (
        f": an estimated {seconds:.1f} s without exchanges, which planner.max_lost_seconds allows"
    )


def stage_sql(stage: Stage) -> str:
    """What the stage's engine runs; parameters stay by name."""
    return stage.sql if stage.sql is not None else render_fragment(stage, stage.engine, None)


def exchange_text(stage: Stage) -> str:
    """The output of a stage as its consumers see it: `Shuffle: keys=[…], partitions=4`."""
    output = stage.output
    if output.kind != "shuffle":
        return output.kind.capitalize()
    keys = f"keys=[{', '.join(_keys(stage))}], " if output.keys else ""
    return f"Shuffle: {keys}partitions={output.num_partitions}"


def _keys(stage: Stage) -> list[str]:
    names = column_names(stage.fragment)
    return [names[stage.fragment.columns[k].id] for k in stage.output.keys]


def _fields(fields: tuple[Field, ...]) -> str:
    return ", ".join(f"{f.name} {f.dtype}" for f in fields)


# ---------------------------------------------------------------- data


def graph_data(graph: StageGraph) -> dict[str, Any]:
    """What the JSON and YAML formats hold: plain data, the same for both."""
    return {
        "format_version": EXPLAIN_VERSION,
        "query": graph.query,
        "fallback_reason": graph.fallback_reason,
        "result": [_field_data(f) for f in graph.result],
        "stages": [_stage_data(graph, stage) for stage in graph.stages],
    }


def _field_data(field: Field) -> dict[str, Any]:
    return {"name": field.name, "type": str(field.dtype)}


def _stage_data(graph: StageGraph, stage: Stage) -> dict[str, Any]:
    return {
        "stage_id": stage.stage_id,
        "title": stage.title,
        "engine": stage.engine,
        "engine_reason": stage.engine_reason,
        "inputs": list(stage.inputs),
        "tables": list(stage.tables),
        "output": {
            "kind": stage.output.kind,
            "keys": [stage.schema[k].name for k in stage.output.keys],
            "num_partitions": stage.output.num_partitions,
            "reason": stage.output.reason,
        },
        "schema": [_field_data(f) for f in stage.schema],
        "plan_hash": stage.plan_hash,
        "sql": stage_sql(stage),
        "plan": _operator_data(graph, stage),
        "estimated_rows": stage.estimated_rows,
        "estimated_bytes": stage.estimated_bytes,
        "incremental": stage.incremental,
        "whole_reason": stage.whole_reason or None,
    }
