"""Merge parts of one task's plan that compute the same rows.

Stages compute a part that a query has twice once, because equal exchanges become one stage. Inside
a fragment, the engine computes a part once that has been merged here: `planner/render/` writes it
as a common table expression.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

from stagecoach.planner.distribution.merge_plans import NoteSize, merge, with_merged
from stagecoach.planner.plan.physical import (
    AggregateExec,
    FilterExec,
    HashJoinExec,
    PhysicalPlan,
    ScanExec,
)
from stagecoach.planner.tree import walk

MAX_PAIRS = 64
"""Pairs of parts that are compared; more are not worth the time."""


def share_parts(
    plan: PhysicalPlan, is_worth: Callable[[PhysicalPlan], bool], note_size: NoteSize
) -> PhysicalPlan:
    """The plan with aggregates, joins and filters of the same rows merged, the largest first.

    Before:  [Aggregate(a) <- Scan(t: k, a)], [Aggregate(b) <- Scan(t: k, b)]
    After:   [Aggregate(a, b) <- Scan(t: k, a, b)] twice, below projections
    Never:   where their filters, keys or conditions differ.

    Args:
        plan: Without exchanges.
        is_worth: Whether computing a part once saves more than keeping its rows costs.
        note_size: Remembers that a new operator is as large as another one.
    """
    for _ in range(MAX_PAIRS):
        for first, second in itertools.islice(_pairs(plan, is_worth), MAX_PAIRS):
            merged = merge(first, second, note_size)
            if merged is not None:
                plan = with_merged(plan, first, second, merged, note_size)
                break
        else:
            return plan
    return plan


def alike(
    plan: PhysicalPlan,
    is_worth: Callable[[PhysicalPlan], bool],
    classes: tuple[type[PhysicalPlan], ...] = (AggregateExec, HashJoinExec),
) -> list[list[PhysicalPlan]]:
    """Different parts of a plan that may compute the same rows, outer ones first."""
    found: dict[tuple[str, ...], dict[PhysicalPlan, None]] = {}
    for node in dict.fromkeys(walk(plan)):
        if isinstance(node, classes) and is_worth(node):
            tables = sorted(n.table for n in walk(node) if isinstance(n, ScanExec))
            found.setdefault((type(node).__name__, *tables), {})[node] = None
    return [list(nodes) for nodes in found.values() if len(nodes) > 1]


def _pairs(
    plan: PhysicalPlan, is_worth: Callable[[PhysicalPlan], bool]
) -> itertools.chain[tuple[PhysicalPlan, PhysicalPlan]]:
    groups = alike(plan, is_worth, (AggregateExec, HashJoinExec, FilterExec))
    return itertools.chain.from_iterable(itertools.combinations(nodes, 2) for nodes in groups)
