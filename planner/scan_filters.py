"""What a fragment asks of the rows of one of its scans: in, both; out, conjuncts of predicates.

Only filters right above the scan count: what they let through is all that is ever read of it.
"""

from __future__ import annotations

from planner.expressions import Expression, conjuncts
from planner.physical import FilterExec, PhysicalPlan, ScanExec
from planner.tree import walk


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
