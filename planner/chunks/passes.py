"""The rules over chunks, in order.

In: the naive plan of a scan. Out: a plan that gives the same rows, in which only rows that may have
a twin are compared, and predicates and columns stand at the chunks.

The order is that of seed 003: scope of deduplication, grouping, predicates, projections; within it
stands what the seed's successor learned. Unions are tidied before each rule. The whole sequence is
repeated until nothing changes, so it is idempotent by construction; each rule is so by itself.
"""

from __future__ import annotations

from collections.abc import Callable

from planner.chunks.context import ChunkContext
from planner.chunks.plan import ChunkPlan
from planner.chunks.rules.choose_key_order import choose_key_order
from planner.chunks.rules.drop_dedup import drop_dedup
from planner.chunks.rules.drop_delete_filters import drop_delete_filters
from planner.chunks.rules.drop_empty_scans import drop_empty_scans
from planner.chunks.rules.drop_null_keys import drop_null_keys
from planner.chunks.rules.fuse_groups import fuse_groups
from planner.chunks.rules.group_by_sort_order import group_by_sort_order
from planner.chunks.rules.group_by_store import group_by_store
from planner.chunks.rules.merge_projections import merge_projections
from planner.chunks.rules.push_filters_into_parquet import push_filters_into_parquet
from planner.chunks.rules.push_filters_through_dedup import push_filters_through_dedup
from planner.chunks.rules.push_filters_through_unions import push_filters_through_unions
from planner.chunks.rules.push_projections_into_parquet import push_projections_into_parquet
from planner.chunks.rules.push_projections_into_record_batches import (
    push_projections_into_record_batches,
)
from planner.chunks.rules.push_projections_through_dedup import push_projections_through_dedup
from planner.chunks.rules.push_projections_through_filters import (
    push_projections_through_filters,
)
from planner.chunks.rules.push_projections_through_unions import push_projections_through_unions
from planner.chunks.rules.split_by_partition import split_by_partition
from planner.chunks.rules.split_by_time import split_by_time
from planner.chunks.rules.unnest_unions import unnest_unions
from planner.chunks.rules.unwrap_unions import unwrap_unions
from planner.errors import InternalPlanError

ChunkRule = Callable[[ChunkPlan, ChunkContext], ChunkPlan]
"""A rewrite that keeps the rows of a plan; the same object where nothing changed."""

UNION_RULES: tuple[ChunkRule, ...] = (unnest_unions, unwrap_unions)
"""Tidy up after the others: run before each of them and at the end."""

RULES: tuple[ChunkRule, ...] = (
    drop_empty_scans,
    # Scope of deduplication. `drop_dedup` needs groups as small as the splits make them;
    # `fuse_groups` comes after it, for what is left is what may be too much.
    split_by_partition,
    split_by_time,
    drop_dedup,
    fuse_groups,
    drop_null_keys,
    choose_key_order,
    # Grouping: only what is read whole may be parted and put together, so before predicates.
    group_by_store,
    group_by_sort_order,
    # Predicates: through unions first, so that each deduplication has its own.
    push_filters_through_unions,
    drop_delete_filters,
    push_filters_through_dedup,
    push_filters_through_unions,
    push_filters_into_parquet,
    # Projections: last, for they keep what the predicates read.
    push_projections_through_unions,
    push_projections_through_filters,
    push_projections_through_dedup,
    push_projections_through_filters,
    push_projections_through_unions,
    merge_projections,
    push_projections_into_parquet,
    push_projections_into_record_batches,
)

_MAX_ROUNDS = 10


def run_passes(plan: ChunkPlan, context: ChunkContext) -> ChunkPlan:
    """The plan after all rules.

    Args:
        plan: A plan of `initial_plan`, or one that rules have been run on.
        context: The table and limits.

    Raises:
        InternalPlanError: The rules do not come to an end.
    """
    for _ in range(_MAX_ROUNDS):
        before = plan
        tidied = plan = _tidy(plan, context)
        for rule in RULES:
            plan = rule(plan, context)
            if plan is not tidied:
                tidied = plan = _tidy(plan, context)
        if plan == before:
            return plan
    raise InternalPlanError(f"the plan of table '{context.table.name}' does not settle")


def _tidy(plan: ChunkPlan, context: ChunkContext) -> ChunkPlan:
    for rule in UNION_RULES:
        plan = rule(plan, context)
    return plan
