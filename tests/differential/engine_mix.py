"""A planned query with some of its stages, or all, on Spark: a plan must be right on every engine."""

from __future__ import annotations

import random
from dataclasses import replace

from stagecoach.planner.plan.stages import StageGraph


def on_spark(graph: StageGraph) -> StageGraph:
    """The graph with each of its stages on Spark."""
    return replace(graph, stages=tuple(replace(s, engine="spark") for s in graph.stages))


def mixed(graph: StageGraph, seed: object) -> StageGraph:
    """The graph with about half of its DuckDB stages on Spark; a seed always chooses the same."""
    rng = random.Random(str(seed))
    stages = (replace(s, engine="spark") if rng.random() < 0.5 else s for s in graph.stages)
    return replace(graph, stages=tuple(stages))
