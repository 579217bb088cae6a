"""Render stage graphs and plans for Graphviz; rows flow downwards."""

from __future__ import annotations

from stagecoach.planner.explain.describe import Plan, Sizer, describe
from stagecoach.planner.explain.diagrams import (
    Edge,
    edge_label,
    plan_nodes,
    stage_edges,
    stage_steps,
    tables,
)
from stagecoach.planner.explain.plan_text import estimate_text
from stagecoach.planner.plan.stages import StageGraph

_STYLE = '  node [shape=box, fontname="monospace"];'


def graph_dot(graph: StageGraph) -> str:
    """Tables, stages and the exchanges between them."""
    lines = [f"digraph {quoted(graph.query)} {{", _STYLE]
    numbers = tables(graph)
    lines += [f"  table{n} [shape=cylinder, label={quoted(t)}];" for t, n in numbers.items()]
    for stage in graph.stages:
        label = quoted(f"Stage {stage.stage_id} · {stage.engine}\n{stage_steps(stage)}")
        lines.append(f"  stage{stage.stage_id} [label={label}];")
    for stage in graph.stages:
        lines += [f"  table{numbers[t]} -> stage{stage.stage_id};" for t in stage.tables]
    for source, target in stage_edges(graph):
        label = quoted(edge_label(graph.stages[source]))
        lines.append(f"  stage{source} -> stage{target} [label={label}];")
    lines += ["  result [shape=oval];", f"  stage{graph.head.stage_id} -> result;", "}"]
    return "\n".join(lines) + "\n"


def plan_dot(plan: Plan, sizes: Sizer | None = None) -> str:
    """The operators of a plan, each above the one that reads it."""
    nodes, edges = plan_nodes(describe(plan, sizes=sizes))
    lines = [f"digraph {quoted('plan')} {{", _STYLE]
    lines += [f"  op{n.number} [label={quoted(chr(10).join(n.lines))}];" for n in nodes]
    return "\n".join([*lines, *(_edge(edge) for edge in edges), "}"]) + "\n"


def quoted(text: str) -> str:
    """Text as a quoted identifier."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _edge(edge: Edge) -> str:
    label = "" if edge.size is None else f" [label={quoted(estimate_text(edge.size))}]"
    return f"  op{edge.source} -> op{edge.target}{label};"
