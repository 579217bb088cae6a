"""Create exchanges with a suitable number of partitions and note their sizes."""

from __future__ import annotations

import math
from dataclasses import replace

from stagecoach.planner.distribution.delivered import (
    Distribution,
)
from stagecoach.planner.lowering.sizes import PlanSizes
from stagecoach.planner.optimizer.context import RuleContext
from stagecoach.planner.plan.physical import (
    ExchangeExec,
    PhysicalPlan,
    ScanExec,
)
from stagecoach.planner.tree import transform_up, walk

_FEW = 8
_MANY = 512  # partitions up to which they have the size that is asked for
_LARGER = 8  # how many times larger they may be beyond that, before there are more of them
_MOST = 16_384


class Exchanges:
    """Makes exchanges.

    Args:
        sizes: Knows the sizes of operators.
        context: Options and new columns.
    """

    def __init__(self, sizes: PlanSizes, context: RuleContext) -> None:
        self.sizes = sizes
        self.context = context

    def partitions(self, *plans: PhysicalPlan) -> int:
        """How many partitions a shuffle of these plans writes."""
        if self.context.options.num_partitions:
            return self.context.options.num_partitions
        largest = max(self.sizes.size(p)[1] for p in plans)
        size = self.context.options.partition_bytes
        wanted = math.ceil(largest / size)
        if wanted <= _MANY:
            return max(wanted, _FEW)
        # Fewer and larger partitions, up to what a task still computes in memory. A power of two
        # can be divided into levels.
        large = math.ceil(largest / size / _LARGER)
        return min(max(_MANY, 1 << (large - 1).bit_length()), _MOST)

    def shuffle(
        self, child: PhysicalPlan, keys: tuple[int, ...], count: int, reason: str = ""
    ) -> ExchangeExec:
        """The rows by key hash."""
        exchange = ExchangeExec(child, "shuffle", keys, count, reason)
        self.sizes.note_size(exchange, child)
        return exchange

    def gather(self, child: PhysicalPlan, reason: str = "") -> ExchangeExec:
        """All rows in one task."""
        exchange = ExchangeExec(child, "gather", reason=reason)
        self.sizes.note_size(exchange, child)
        return exchange

    def to_single(
        self, child: PhysicalPlan, delivered: Distribution, reason: str = ""
    ) -> PhysicalPlan:
        """All rows in one task, where they are not yet."""
        return child if delivered.kind == "single" else self.gather(child, reason)


def read_whole(plan: PhysicalPlan, sizes: PlanSizes) -> PhysicalPlan:
    """The plan for one task that reads all tables whole."""
    whole = transform_up(plan, lambda n: replace(n, read="all") if isinstance(n, ScanExec) else n)
    for new, old in zip(walk(whole), walk(plan), strict=True):
        sizes.note_size(new, old)
    return whole
