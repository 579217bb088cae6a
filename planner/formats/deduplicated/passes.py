"""The rules over chunks, in order.

They turn the naive plan of a scan into one that gives the same rows, in which only rows that may
have a twin are compared, and predicates and columns stand at the chunks.

First come rules about the scope of deduplication, then grouping, predicates and projections. Unions
are tidied before each rule. The whole sequence is
repeated until nothing changes, so it is idempotent by construction; each rule is so by itself.
"""

from __future__ import annotations

from collections.abc import Callable

from stagecoach.planner.errors import InternalPlanError
from stagecoach.planner.formats.deduplicated.context import ChunkContext
from stagecoach.planner.formats.deduplicated.plan import ChunkPlan
from stagecoach.planner.formats.deduplicated.rules.choose_key_order import choose_key_order
from stagecoach.planner.formats.deduplicated.rules.drop_dedup import drop_dedup
from stagecoach.planner.formats.deduplicated.rules.drop_delete_filters import drop_delete_filters
from stagecoach.planner.formats.deduplicated.rules.drop_empty_scans import drop_empty_scans
from stagecoach.planner.formats.deduplicated.rules.drop_null_keys import drop_null_keys
from stagecoach.planner.formats.deduplicated.rules.fuse_groups import fuse_groups
from stagecoach.planner.formats.deduplicated.rules.group_by_sort_order import group_by_sort_order
from stagecoach.planner.formats.deduplicated.rules.group_by_store import group_by_store
from stagecoach.planner.formats.deduplicated.rules.merge_projections import merge_projections
from stagecoach.planner.formats.deduplicated.rules.push_filters_into_parquet import (
    push_filters_into_parquet,
)
from stagecoach.planner.formats.deduplicated.rules.push_filters_through_dedup import (
    push_filters_through_dedup,
)
from stagecoach.planner.formats.deduplicated.rules.push_filters_through_unions import (
    push_filters_through_unions,
)
from stagecoach.planner.formats.deduplicated.rules.push_projections_into_parquet import (
    push_projections_into_parquet,
)
from stagecoach.planner.formats.deduplicated.rules.push_projections_into_record_batches import (
    push_projections_into_record_batches,
)
from stagecoach.planner.formats.deduplicated.rules.push_projections_through_dedup import (
    push_projections_through_dedup,
)
from stagecoach.planner.formats.deduplicated.rules.push_projections_through_filters import (
    push_projections_through_filters,
)
from stagecoach.planner.formats.deduplicated.rules.push_projections_through_unions import (
    push_projections_through_unions,
)
from stagecoach.planner.formats.deduplicated.rules.split_by_partition import split_by_partition
from stagecoach.planner.formats.deduplicated.rules.split_by_time import split_by_time
from stagecoach.planner.formats.deduplicated.rules.unnest_unions import unnest_unions
from stagecoach.planner.formats.deduplicated.rules.unwrap_unions import unwrap_unions

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
