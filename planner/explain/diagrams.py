"""The nodes and edges that all diagrams of plans share, whatever their language."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stagecoach.planner.explain.describe import Row, Size
from stagecoach.planner.plan.physical import StageInputExec
from stagecoach.planner.plan.stages import Stage, StageGraph

_WIDTH = 60
_MOST_LINES = 6


@dataclass(frozen=True)
class PlanNode:
    """An operator: its number in the diagram and the lines of its box."""

    number: int
    lines: tuple[str, ...]


@dataclass(frozen=True)
class Edge:
    """Rows that go from one operator to another, with their estimated number and bytes."""

    source: int
    target: int
    size: Size | None


def plan_nodes(rows: Sequence[Row]) -> tuple[list[PlanNode], list[Edge]]:
    """The boxes and arrows of a plan, inputs first in each arrow."""
    nodes: list[PlanNode] = []
    edges: list[Edge] = []
    open_rows: list[tuple[int, int]] = []  # depth and number of the rows above the current one
    for number, row in enumerate(rows):
        while open_rows and open_rows[-1][0] >= row.depth:
            open_rows.pop()
        nodes.append(PlanNode(number, _box(row)))
        if open_rows:
            edges.append(Edge(number, open_rows[-1][1], row.size))
        open_rows.append((row.depth, number))
    return nodes, edges


def _box(row: Row) -> tuple[str, ...]:
    if row.whole is not None or row.is_label:
        return (row.line,)
    said = [_short(text) for part in row.parts if (text := part.text)]
    more = [f"… {len(said) - _MOST_LINES} more"] if len(said) > _MOST_LINES else []
    return (row.name, *said[:_MOST_LINES], *more)


def _short(text: str) -> str:
    return text if len(text) <= _WIDTH else f"{text[: _WIDTH - 1]}…"


def stage_edges(graph: StageGraph) -> list[tuple[int, int]]:
    """Pairs of stages of which the second one reads the first."""
    return [(i, stage.stage_id) for stage in graph.stages for i in inputs_in_order(stage)]


def inputs_in_order(stage: Stage) -> list[int]:
    """The stages that a stage reads, in the order of its leaves, each once."""
    found = (leaf.stage_id for leaf in stage.leaves if isinstance(leaf, StageInputExec))
    return list(dict.fromkeys(found))


def tables(graph: StageGraph) -> dict[str, int]:
    """A number for each base table of a query."""
    names = sorted({table for stage in graph.stages for table in stage.tables})
    return {name: number for number, name in enumerate(names)}


def edge_label(stage: Stage) -> str:
    """The output of a stage as its outgoing arrow shows it."""
    output = stage.output
    if output.kind != "shuffle":
        return output.kind
    keys = ", ".join(stage.schema[k].name for k in output.keys)
    return f"shuffle({keys}) × {output.num_partitions}"


def stage_steps(stage: Stage) -> str:
    """The title without its output, which the arrow shows."""
    return stage.title.rpartition(" → ")[0] or stage.title
