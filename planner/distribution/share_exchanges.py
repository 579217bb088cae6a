"""Merge exchanges that differ only in their columns.

Pruning may leave different columns of the same rows in two exchanges. One exchange of all these
columns replaces them. Exchanges that are already equal are left to the stage cutter, which makes
one stage of them.
"""

from __future__ import annotations

from stagecoach.planner.distribution.merge_plans import Merge, NoteSize, merge, with_merged
from stagecoach.planner.estimates import default_width
from stagecoach.planner.plan.physical import ExchangeExec, PhysicalPlan, ScanExec
from stagecoach.planner.tree import walk

MAX_WIDENING = 2.0  # how many times wider a shared row may be than that of the wider exchange
_MAX_SHARED = 32  # exchanges that are looked at; more are not worth the time


def share_exchanges(plan: PhysicalPlan, note_size: NoteSize) -> PhysicalPlan:
    """The plan with exchanges of the same rows merged, the largest first.

    Before:  [Broadcast <- Scan(t: k, a)], [Broadcast <- Scan(t: k, b)]
    After:   [Broadcast <- Scan(t: k, a, b)] twice, each below a projection: computed once
    Never:   where filters, keys or numbers of partitions differ, or a row becomes far wider.

    Args:
        plan: The plan of a query.
        note_size: Remembers that a new operator is as large as another one.
    """
    for _ in range(_MAX_SHARED):
        found = _first_pair(plan, note_size)
        if found is None:
            break
        plan = with_merged(plan, *found, note_size)
    return plan


def _first_pair(
    plan: PhysicalPlan, note_size: NoteSize
) -> tuple[ExchangeExec, ExchangeExec, Merge] | None:
    groups: dict[tuple[object, ...], list[ExchangeExec]] = {}
    for node in walk(plan):  # outer exchanges first: what is below them merges along
        if isinstance(node, ExchangeExec) and node.kind != "gather":
            same = groups.setdefault(_signature(node), [])
            if all(node is not known for known in same) and len(same) < _MAX_SHARED:
                same.append(node)
    for same in groups.values():
        for i, first in enumerate(same):
            for second in same[i + 1 :]:
                merged = merge(first, second, note_size)
                if merged is not None and _pays(first, second, merged):
                    return first, second, merged
    return None


def _signature(node: ExchangeExec) -> tuple[object, ...]:
    plan: PhysicalPlan = node
    tables = sorted(n.table for n in walk(plan) if isinstance(n, ScanExec))
    return node.kind, node.num_partitions, len(node.keys), tuple(tables)


def _pays(first: ExchangeExec, second: ExchangeExec, merged: Merge) -> bool:
    """Whether the two differ in columns at all, and the shared one is not far wider."""
    if merged.plan.columns == first.columns and _in_order(second, merged):
        return False  # the cutter sees that they are the same
    one, other, both = (
        sum(default_width(c.dtype) for c in node.columns) for node in (first, second, merged.plan)
    )
    return both <= MAX_WIDENING * max(one, other)


def _in_order(second: ExchangeExec, merged: Merge) -> bool:
    return [merged.second[c.id] for c in second.columns] == [c.id for c in merged.plan.columns]
