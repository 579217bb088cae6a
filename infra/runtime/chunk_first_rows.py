"""Whether a fragment asks for the first rows of a scan by time: in, both; out, how many."""

from __future__ import annotations

from dataclasses import dataclass

from planner.expressions import ColumnRef
from planner.physical import DedupScanExec, FilterExec, PhysicalPlan, ProjectionExec, SortExec

_MAX_ROWS = 100_000  # which a task holds in memory


@dataclass(frozen=True)
class FirstRows:
    """The first rows by time.

    Args:
        num_rows: How many.
        descending: Whether the latest come first.
    """

    num_rows: int
    descending: bool


def first_rows(
    fragment: PhysicalPlan, leaf: DedupScanExec, time_column: str | None
) -> FirstRows | None:
    """What a fragment wants of its only scan, if that is `ORDER BY time LIMIT n`, with filters.

    Args:
        fragment: The stage's fragment.
        leaf: The scan.
        time_column: Name of the table's time column, or None.
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
    if time_column is None or sources.get(wanted.id) != time_column:
        return None
    return FirstRows(node.fetch, not key.ascending)
