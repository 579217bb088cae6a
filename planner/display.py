"""Stage graphs and plans for people and tools: text, JSON, YAML, Mermaid, DOT.

In: a `StageGraph`, or a logical or physical plan. Out: text. The drawing has the head first and
each stage below its consumer, in the manner of datafusion-distributed's `display_plan_ascii`:

    ┌───── Stage 1 ── engine=duckdb ── Gather ── ~10 rows
    │ SortExec: [revenue DESC] fetch=10
    │   [Stage 0] => Shuffle: keys=[l_orderkey], partitions=4
    └──────────────────────────────────────────────────
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from planner.engines import PROVEN
from planner.errors import OptionError
from planner.fragment_sql import render_fragment
from planner.physical import StageInputExec
from planner.plan_text import column_names, plan_lines
from planner.plan_text import render_plan as render_plan
from planner.stages import Stage, StageGraph
from planner.types import Field
from planner.yaml_text import to_yaml

EXPLAIN_VERSION = 1

_TOP = "┌─────"
_SIDE = "│"
_BOTTOM = "└" + "─" * 50
_INDENT = "  "


def render_graph(graph: StageGraph, format: str = "text") -> str:
    """A planned query in one of the formats, ending in a newline.

    Args:
        graph: The query.
        format: `text`, `json`, `yaml`, `mermaid` or `dot`.

    Raises:
        OptionError: For another format.
    """
    renderer = _FORMATS.get(format)
    if renderer is None:
        raise OptionError(f"unknown plan format '{format}'; there are {', '.join(_FORMATS)}")
    return renderer(graph)


# ---------------------------------------------------------------- text


def _text(graph: StageGraph) -> str:
    count = len(graph.stages)
    lines = [f"query {graph.query}: {count} stage{'s' if count != 1 else ''}"]
    if graph.fallback_reason is not None:
        lines.append(f"not staged: {graph.fallback_reason}")
    if graph.result:
        lines.append(f"result: {_fields(graph.result)}{', ordered' if graph.ordered else ''}")
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
        lines.extend(margin + line for line in _box(graph, stage))
        stack.extend((i, depth + 1) for i in reversed(_inputs_in_order(stage)))
    return "\n".join(lines) + "\n"


def _box(graph: StageGraph, stage: Stage) -> list[str]:
    head = f"Stage {stage.stage_id} ── engine={stage.engine} ── {exchange_text(stage)}"
    if stage.estimated_rows:
        head += f" ── ~{stage.estimated_rows:,} rows, {_size(stage.estimated_bytes)}"
    body = _operator_lines(graph, stage)
    if stage.engine_reason != PROVEN:
        body.insert(0, f"-- {stage.engine}: {stage.engine_reason}")
    return [f"{_TOP} {head}", *(f"{_SIDE} {line}" for line in body), _BOTTOM]


def _operator_lines(graph: StageGraph, stage: Stage) -> list[str]:
    if stage.sql is not None:
        indented = (_INDENT + line for line in stage.sql.strip().splitlines())
        return ["SparkSqlExec:", *indented]
    said = {i: exchange_text(graph.stages[i]) for i in stage.inputs}
    return plan_lines(stage.fragment, said)


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


def _inputs_in_order(stage: Stage) -> list[int]:
    """The stages that a stage reads, in the order of its leaves, each once."""
    found = (leaf.stage_id for leaf in stage.leaves if isinstance(leaf, StageInputExec))
    return list(dict.fromkeys(found))


def _fields(fields: tuple[Field, ...]) -> str:
    return ", ".join(f"{f.name} {f.dtype}" for f in fields)


def _size(num_bytes: int) -> str:
    value, units = float(num_bytes), ["B", "KiB", "MiB", "GiB", "TiB"]
    while value >= 1024 and len(units) > 1:
        value /= 1024
        units.pop(0)
    return f"{value:.0f} {units[0]}" if units[0] == "B" else f"{value:.1f} {units[0]}"


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
        },
        "schema": [_field_data(f) for f in stage.schema],
        "plan_hash": stage.plan_hash,
        "sql": stage.sql if stage.sql is not None else render_fragment(stage, stage.engine, None),
        "plan": _operator_lines(graph, stage),
        "estimated_rows": stage.estimated_rows,
        "estimated_bytes": stage.estimated_bytes,
    }


def _json(graph: StageGraph) -> str:
    return json.dumps(graph_data(graph), indent=2, ensure_ascii=False) + "\n"


def _yaml(graph: StageGraph) -> str:
    return to_yaml(graph_data(graph))


# ---------------------------------------------------------------- diagrams


def _edges(graph: StageGraph) -> list[tuple[int, int]]:
    return [(i, stage.stage_id) for stage in graph.stages for i in _inputs_in_order(stage)]


def _table_numbers(graph: StageGraph) -> dict[str, int]:
    names = sorted({table for stage in graph.stages for table in stage.tables})
    return {name: number for number, name in enumerate(names)}


def _edge_label(stage: Stage) -> str:
    output = stage.output
    if output.kind != "shuffle":
        return output.kind
    keys = ", ".join(stage.schema[k].name for k in output.keys)
    return f"shuffle({keys}) × {output.num_partitions}"


def _steps(stage: Stage) -> str:
    """The title without its output, which the edge shows."""
    return stage.title.rpartition(" → ")[0] or stage.title


def _mermaid(graph: StageGraph) -> str:
    lines = ["flowchart TD"]
    tables = _table_numbers(graph)
    lines += [f'  table{n}[("{_html(name)}")]' for name, n in tables.items()]
    for stage in graph.stages:
        label = f"Stage {stage.stage_id} · {stage.engine}<br/>{_html(_steps(stage))}"
        lines.append(f'  stage{stage.stage_id}["{label}"]')
    for stage in graph.stages:
        lines += [f"  table{tables[t]} --> stage{stage.stage_id}" for t in stage.tables]
    for source, target in _edges(graph):
        label = _html(_edge_label(graph.stages[source]))
        lines.append(f'  stage{source} -->|"{label}"| stage{target}')
    lines += ["  result([result])", f"  stage{graph.head.stage_id} --> result"]
    return "\n".join(lines) + "\n"


def _html(text: str) -> str:
    """Text inside a quoted Mermaid label, where quotes, markup and `#` have a meaning."""
    special = {"#": "#35;", "&": "#38;", '"': "#34;", "<": "#60;", ">": "#62;", "`": "#96;"}
    return "".join(special.get(c, c) for c in text)


def _dot(graph: StageGraph) -> str:
    lines = [f"digraph {_quoted(graph.query)} {{", '  node [shape=box, fontname="monospace"];']
    tables = _table_numbers(graph)
    lines += [f"  table{n} [shape=cylinder, label={_quoted(t)}];" for t, n in tables.items()]
    for stage in graph.stages:
        label = _quoted(f"Stage {stage.stage_id} · {stage.engine}\n{_steps(stage)}")
        lines.append(f"  stage{stage.stage_id} [label={label}];")
    for stage in graph.stages:
        lines += [f"  table{tables[t]} -> stage{stage.stage_id};" for t in stage.tables]
    for source, target in _edges(graph):
        label = _quoted(_edge_label(graph.stages[source]))
        lines.append(f"  stage{source} -> stage{target} [label={label}];")
    lines += ["  result [shape=oval];", f"  stage{graph.head.stage_id} -> result;", "}"]
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


_FORMATS: dict[str, Callable[[StageGraph], str]] = {
    "text": _text,
    "json": _json,
    "yaml": _yaml,
    "mermaid": _mermaid,
    "dot": _dot,
}
