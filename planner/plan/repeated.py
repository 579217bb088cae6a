"""Find the parts of a fragment that an engine need compute only once."""

from __future__ import annotations

from collections import Counter

from stagecoach.planner.plan.physical import (
    AggregateExec,
    FilterExec,
    HashJoinExec,
    LimitExec,
    PhysicalPlan,
    SortExec,
)
from stagecoach.planner.tree import walk

_COMPUTING = (
    *(AggregateExec, HashJoinExec, FilterExec),
    *(SortExec, LimitExec),  # of equal rows, an engine may choose others each time
)


def repeated_parts(fragment: PhysicalPlan) -> frozenset[PhysicalPlan]:
    """Return the subplans that a fragment has in several places and that do more than read rows.

    A subplan inside a repeated one is left out, unless it is also used elsewhere.
    """
    places: Counter[PhysicalPlan] = Counter()
    waiting = [fragment]
    while waiting:
        for child in waiting.pop().children:
            places[child] += 1
            if places[child] == 1:
                waiting.append(child)
    return frozenset(node for node, count in places.items() if count > 1 and _computes(node))


def _computes(node: PhysicalPlan) -> bool:
    """Whether there is more to a part than reading rows."""
    return any(isinstance(part, _COMPUTING) for part in walk(node))
