"""Describe a stage in one line, such as `scan orders, filter → shuffle(o_orderkey)`."""

from __future__ import annotations

import re

from stagecoach.planner.distribution.reasons import RESULT
from stagecoach.planner.plan.physical import (
    AggregateExec,
    BloomBuildExec,
    BloomProbeExec,
    FilterExec,
    HashJoinExec,
    LimitExec,
    OneRowExec,
    PhysicalPlan,
    ProjectionExec,
    ScanExec,
    SortExec,
    SortPreservingMergeExec,
    StageInputExec,
    UnionExec,
)
from stagecoach.planner.plan.stages import StageOutput
from stagecoach.planner.tree import walk

_INNER_JOIN = "⋈"  # of the signs of joins the only one that most fonts have


def stage_title(fragment: PhysicalPlan, output: StageOutput) -> str:
    """The line, from the operators bottom-up; the last stage makes the result."""
    steps: list[str] = []
    for node in reversed(list(walk(fragment))):
        step = _step(node)
        if step and step not in steps:
            steps.append(step)
    names = [c.name for c in fragment.columns]
    keys = ", ".join(names[k] for k in output.keys)
    work = "divide" if isinstance(fragment, StageInputExec) else "compute"
    end = "result" if output.reason == RESULT else output.kind
    return f"{', '.join(steps) or work} → {end}{f'({keys})' if keys else ''}"


def _step(node: PhysicalPlan) -> str:
    match node:
        case ScanExec():
            return f"scan {node.table}"
        case FilterExec():
            return "filter"
        case HashJoinExec():
            sign = _INNER_JOIN if node.kind == "inner" else f"{node.kind} join"
            return f"{_source(node.left)} {sign} {_source(node.right)}"
        case BloomBuildExec():
            return "Bloom filter" if node.keys else "merge Bloom filters"
        case BloomProbeExec():
            return f"Bloom filter of {_source(node.right)}"
        case AggregateExec():
            return f"{node.mode} aggregate" if node.aggregates else "distinct"
        case SortExec():
            return "sort" if node.fetch is None else f"top {node.fetch}"
        case SortPreservingMergeExec():
            return "merge" if node.fetch is None else f"merge top {node.fetch}"
        case LimitExec():
            return "limit"
        case UnionExec():
            return "union"
        case ProjectionExec() | OneRowExec() | StageInputExec():
            return ""
    # Any other operator is named by its class: `WindowExec` is a window.
    words = re.findall("[A-Z][a-z]*", type(node).__name__.removesuffix("Exec"))
    return " ".join(words).lower()


def _source(node: PhysicalPlan) -> str:
    """The table or stage at the far left of a join input."""
    while node.children:
        node = node.children[0]
    if isinstance(node, ScanExec):
        return node.table
    return f"stage_{node.stage_id}" if isinstance(node, StageInputExec) else "row"
