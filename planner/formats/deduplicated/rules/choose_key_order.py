"""Rule: a deduplication sorts as its chunks are sorted already."""

from __future__ import annotations

from dataclasses import replace

from stagecoach.planner.formats.deduplicated.context import ChunkContext
from stagecoach.planner.formats.deduplicated.plan import ChunkPlan, DeduplicateExec, plain_chunks
from stagecoach.planner.tree import transform_up


def choose_key_order(plan: ChunkPlan, context: ChunkContext) -> ChunkPlan:
    """Order a key by what most chunks are sorted by, one column after the other.

    Before:  Deduplicate[a, b, time](c1[sorted by b, a, time], c2[sorted by b, time])
    After:   Deduplicate[b, a, time](c1, c2)
    A chunk votes for a column that comes next in its order, or does not occur in it: then the
    column may stand anywhere. Of equal votes the order so far decides. The set of columns stays.
    Source:  influxdb3_core, `dedup/dedup_sort_order.rs`.
    """
    del context
    return transform_up(plan, _order)


def _order(node: ChunkPlan) -> ChunkPlan:
    if not isinstance(node, DeduplicateExec):
        return node
    chunks = plain_chunks(node.child)
    if not chunks:
        return node
    orders = [[c for c in chunk.sort_order if c in node.key] for chunk in chunks]
    rest = list(node.key)
    chosen: list[str] = []
    while rest:
        # `max` takes the first of equals.
        best = max(rest, key=lambda column: sum(_may_be_next(column, o) for o in orders))
        rest.remove(best)
        chosen.append(best)
        orders = [[c for c in order if c != best] for order in orders]
    key = tuple(chosen)
    return node if key == node.key else replace(node, key=key)


def _may_be_next(column: str, order: list[str]) -> bool:
    return column not in order or order[0] == column
