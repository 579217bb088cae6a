"""First rows of a scan by a column: which a fragment wants, and in what order parts are read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stagecoach.planner.plan.expressions import ColumnRef
from stagecoach.planner.plan.physical import (
    FilterExec,
    PhysicalPlan,
    ProjectionExec,
    ScanExec,
    SortExec,
)

_MAX_ROWS = 100_000  # which a task holds in memory


@dataclass(frozen=True)
class FirstRows:
    """The first rows in the order of a column.

    Args:
        column: The column's name in the table.
        num_rows: How many.
        descending: Whether the highest values come first.
    """

    column: str
    num_rows: int
    descending: bool


def first_rows(fragment: PhysicalPlan, leaf: ScanExec) -> FirstRows | None:
    """Return what a fragment wants of its only scan, if that is `ORDER BY column ... LIMIT n`.

    There may be filters below the order.

    Args:
        fragment: The stage's fragment.
        leaf: The scan.
    """
    node = fragment
    while isinstance(node, ProjectionExec):
        node = node.child
    if not isinstance(node, SortExec) or node.fetch is None or not 0 < node.fetch <= _MAX_ROWS:
        return None
    key = node.keys[0]
    wanted = key.expr
    below = node.child
    while isinstance(below, FilterExec | ProjectionExec):
        if isinstance(below, ProjectionExec):
            if not isinstance(wanted, ColumnRef):
                return None
            number = wanted.id
            wanted = next((e for c, e in below.items if c.id == number), wanted)
        below = below.child
    if below is not leaf or not isinstance(wanted, ColumnRef):
        return None
    sources = {c.id: s for c, s in zip(leaf.outputs, leaf.source, strict=True)}
    if wanted.id not in sources:
        return None
    return FirstRows(sources[wanted.id], node.fetch, not key.ascending)


def steps_of(ranges: Sequence[tuple[int, int]], *, descending: bool) -> list[list[int]]:
    """Positions of ranges in groups that do not overlap each other, in order.

    Ranges that share a bound overlap: all values of a step lie before those of the next.
    """
    steps: list[list[int]] = []
    end = 0
    for i in sorted(range(len(ranges)), key=lambda i: (ranges[i], i)):
        low, high = ranges[i]
        if steps and low <= end:
            steps[-1].append(i)
            end = max(end, high)
        else:
            steps.append([i])
            end = high
    return steps[::-1] if descending else steps
