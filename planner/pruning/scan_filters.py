"""Collect the predicates right above a scan.

Rows that fail them are never used, so they decide what has to be read.
"""

from __future__ import annotations

from stagecoach.planner.plan.expressions import Expression, conjuncts
from stagecoach.planner.plan.physical import FilterExec, PhysicalPlan, ScanExec
from stagecoach.planner.tree import walk


def conjuncts_above(fragment: PhysicalPlan, scan: ScanExec) -> tuple[Expression, ...]:
    """What all readers of the scan ask of its rows.

    Equal parts of a fragment are one part that several operators read. A filter counts up to the
    first part that different operators read.

    Args:
        fragment: A stage's fragment.
        scan: A node of the fragment.
    """
    operators = set(walk(fragment))
    found: tuple[Expression, ...] = ()
    below: PhysicalPlan = scan
    while True:
        readers = [node for node in operators if below in node.children]
        if len(readers) != 1 or not isinstance(readers[0], FilterExec):
            return found
        found = (*conjuncts(readers[0].predicate), *found)
        below = readers[0]
