"""Find the parts of a fragment that an engine need compute only once."""

from __future__ import annotations

from collections import Counter

from stagecoach.planner.plan.physical import AggregateExec, HashJoinExec, PhysicalPlan


def repeated_parts(fragment: PhysicalPlan) -> frozenset[PhysicalPlan]:
    """The aggregates and joins that stand in several places of a fragment."""
    places: Counter[PhysicalPlan] = Counter()
    waiting = [fragment]
    while waiting:
        for child in waiting.pop().children:
            places[child] += 1
            if places[child] == 1:
                waiting.append(child)
    return frozenset(
        node
        for node, count in places.items()
        if count > 1 and isinstance(node, AggregateExec | HashJoinExec)
    )
