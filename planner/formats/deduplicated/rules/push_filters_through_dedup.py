"""Rule: what a query asks of the primary key is asked before deduplication."""

from __future__ import annotations

from dataclasses import replace

from stagecoach.planner.formats.deduplicated.context import ChunkContext
from stagecoach.planner.formats.deduplicated.plan import ChunkPlan, DeduplicateExec, FilterExec
from stagecoach.planner.plan.expressions import (
    Call,
    ColumnRef,
    Expression,
    Literal,
    conjoin,
    conjuncts,
)
from stagecoach.planner.tree import transform_down, walk

_CHANGING = frozenset(
    {"rand", "randn", "random", "randstr", "uniform", "uuid", "shuffle",
     "monotonically_increasing_id", "spark_partition_id"}
)  # fmt: skip
_COMPARISONS = frozenset(
    {"eq", "ne", "lt", "le", "gt", "ge", "eq_null_safe", "in", "is_null", "is_not_null"}
)


def push_filters_through_dedup(plan: ChunkPlan, context: ChunkContext) -> ChunkPlan:
    """Push the conjuncts that read only columns of the primary key below a deduplication.

    Before:  Filter[field = 1 AND tag > 0](Deduplicate(a))
    After:   Filter[field = 1](Deduplicate(Filter[tag > 0](a)))
    Such a conjunct is alike for all rows of a key, so it drops all of them or none. A filter that
    loses all its conjuncts goes.
    Never:   a conjunct that reads another column, not even within an OR; one that may tell 0.0 from
    -0.0, which are one key; one that is not deterministic.
    """

    def push(node: ChunkPlan) -> ChunkPlan:
        if not isinstance(node, FilterExec) or not isinstance(node.child, DeduplicateExec):
            return node
        parts = tuple(conjuncts(node.predicate))
        below = tuple(part for part in parts if passes_dedup(part, context))
        if not below:
            return node
        child = replace(node.child, child=FilterExec(node.child.child, conjoin(below)))
        above = tuple(part for part in parts if part not in below)
        return FilterExec(child, conjoin(above)) if above else child

    return transform_down(plan, push)


def passes_dedup(part: Expression, context: ChunkContext) -> bool:
    """Whether a conjunct has the same value for all rows that have the same primary key."""
    key = frozenset(context.table.primary_key)
    if not context.names(part) <= key or not _is_deterministic(part):
        return False
    return _is_alike_for_zeros(part)


def _is_deterministic(part: Expression) -> bool:
    return not any(isinstance(n, Call) and n.function in _CHANGING for n in walk(part))


def _is_alike_for_zeros(part: Expression) -> bool:
    """Whether 0.0 and -0.0 are alike to it: floats stand in comparisons with constants only."""
    allowed: set[int] = set()
    for node in walk(part):
        is_float = isinstance(node, ColumnRef) and node.dtype.is_floating
        if is_float and id(node) not in allowed:
            return False
        compares = isinstance(node, Call) and node.function in _COMPARISONS
        if compares and all(isinstance(arg, ColumnRef | Literal) for arg in node.children):
            allowed.update(id(arg) for arg in node.children)
    return True
