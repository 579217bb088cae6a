"""Rule: where no row is marked as deleted, no mark is looked at."""

from __future__ import annotations

from stagecoach.planner.formats.deduplicated.context import ChunkContext
from stagecoach.planner.formats.deduplicated.plan import ChunkPlan, FilterExec
from stagecoach.planner.plan.expressions import TRUE, conjoin, conjuncts
from stagecoach.planner.tree import transform_down


def drop_delete_filters(plan: ChunkPlan, context: ChunkContext) -> ChunkPlan:
    """Leave the test of the mark out of filters over chunks without marked rows.

    Before:  Filter[NOT deleted <=> true AND field > 0](c1[has_deletes: false])
    After:   Filter[field > 0](c1)
    Never:   over a deduplication one of whose chunks has marked rows.
    """
    mark = context.not_deleted
    if mark == TRUE:
        return plan

    def drop(node: ChunkPlan) -> ChunkPlan:
        if not isinstance(node, FilterExec) or any(c.has_deletes for c in node.chunks):
            return node
        parts = tuple(conjuncts(node.predicate))
        kept = tuple(part for part in parts if part != mark)
        if len(kept) == len(parts):
            return node
        return FilterExec(node.child, conjoin(kept)) if kept else node.child

    return transform_down(plan, drop)
