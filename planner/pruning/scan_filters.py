"""Collect the predicates right above a scan.

Rows that fail them are never used, so they decide what has to be read.
"""

from __future__ import annotations

from stagecoach.planner.plan.expressions import Expression, conjuncts
from stagecoach.planner.plan.physical import FilterExec, PhysicalPlan, ScanExec
from stagecoach.planner.tree import walk


def conjuncts_above(fragment: PhysicalPlan, scan: ScanExec) -> tuple[Expression, ...]:
    """What the one reader of the scan asks of its rows; nothing where it has several readers.

    Args:
        fragment: A stage's fragment.
        scan: The very node of the fragment.
    """
    readers = [node for node in walk(fragment) if any(c is scan for c in node.children)]
    if len(readers) != 1:
        return ()
    for node in walk(fragment):
        below: PhysicalPlan = node
        found: list[Expression] = []
        while isinstance(below, FilterExec):
            found.extend(conjuncts(below.predicate))
            below = below.child
        if below is scan and found:
            return tuple(found)
    return ()
