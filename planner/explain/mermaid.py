"""Render stage graphs and plans as Mermaid flowcharts, which GitHub draws inside Markdown."""

from __future__ import annotations

from stagecoach.planner.explain.describe import Plan, Sizer, describe
from stagecoach.planner.explain.diagrams import (
    Edge,
    PlanNode,
    edge_label,
    plan_nodes,
    stage_edges,
    stage_steps,
    tables,
)
from stagecoach.planner.explain.plan_text import estimate_text
from stagecoach.planner.plan.stages import StageGraph

_SPECIAL = {"#": "#35;", "&": "#38;", '"': "#34;", "<": "#60;", ">": "#62;", "`": "#96;"}


def graph_mermaid(graph: StageGraph) -> str:
    """Tables, stages and the exchanges between them."""
    lines = ["flowchart TD"]
    numbers = tables(graph)
    lines += [f'  table{n}[("{escaped(name)}")]' for name, n in numbers.items()]
    for stage in graph.stages:
        label = f"Stage {stage.stage_id} · {stage.engine}<br/>{escaped(stage_steps(stage))}"
        lines.append(f'  stage{stage.stage_id}["{label}"]')
    for stage in graph.stages:
        lines += [f"  table{numbers[t]} --> stage{stage.stage_id}" for t in stage.tables]
    for source, target in stage_edges(graph):
        label = escaped(edge_label(graph.stages[source]))
        lines.append(f'  stage{source} -->|"{label}"| stage{target}')
    lines += ["  result([result])", f"  stage{graph.head.stage_id} --> result"]
    return "\n".join(lines) + "\n"


def plan_mermaid(plan: Plan, sizes: Sizer | None = None) -> str:
    """The operators of a plan, each above the one that reads it."""
    nodes, edges = plan_nodes(describe(plan, sizes=sizes))
    lines = ["flowchart TD", *(_node(node) for node in nodes), *(_edge(edge) for edge in edges)]
    return "\n".join(lines) + "\n"


def escaped(text: str) -> str:
    """Text inside a quoted label, where quotes, markup and `#` have a meaning."""
    return "".join(_SPECIAL.get(c, c) for c in text)


def _node(node: PlanNode) -> str:
    label = "<br/>".join(escaped(line) for line in node.lines)
    return f'  op{node.number}["{label}"]'


def _edge(edge: Edge) -> str:
    label = "" if edge.size is None else f'|"{escaped(estimate_text(edge.size))}"|'
    return f"  op{edge.source} -->{label} op{edge.target}"
