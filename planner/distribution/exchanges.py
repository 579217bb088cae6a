"""New exchanges, of the right number of partitions.

In: a child and why it must move. Out: the exchange, its size noted.
"""

from __future__ import annotations

import math
from dataclasses import replace

from planner.distribution.delivered import (
    Distribution,
)
from planner.lower import Lowering
from planner.optimizer.context import RuleContext
from planner.physical import (
    ExchangeExec,
    PhysicalPlan,
    ScanExec,
)
from planner.tree import transform_up, walk


class Exchanges:
    """Makes exchanges.

    Args:
        lowering: Knows the sizes of operators.
        context: Options and new columns.
    """

    def __init__(self, lowering: Lowering, context: RuleContext) -> None:
        self.lowering = lowering
        self.context = context

    def partitions(self, *plans: PhysicalPlan) -> int:
        """How many partitions a shuffle of these plans writes."""
        if self.context.options.num_partitions:
            return self.context.options.num_partitions
        largest = max(self.lowering.size(p)[1] for p in plans)
        wanted = math.ceil(largest / self.context.options.partition_bytes)
        return min(max(wanted, 8), 512)

    def shuffle(
        self, child: PhysicalPlan, keys: tuple[int, ...], count: int, reason: str = ""
    ) -> ExchangeExec:
        """The rows by key hash."""
        exchange = ExchangeExec(child, "shuffle", keys, count, reason)
        self.lowering.note_size(exchange, child)
        return exchange

    def gather(self, child: PhysicalPlan, reason: str = "") -> ExchangeExec:
        """All rows in one task."""
        exchange = ExchangeExec(child, "gather", reason=reason)
        self.lowering.note_size(exchange, child)
        return exchange

    def to_single(
        self, child: PhysicalPlan, delivered: Distribution, reason: str = ""
    ) -> PhysicalPlan:
        """All rows in one task, where they are not yet."""
        return child if delivered.kind == "single" else self.gather(child, reason)


def read_whole(plan: PhysicalPlan, lowering: Lowering) -> PhysicalPlan:
    """The plan for one task that reads all tables whole."""
    whole = transform_up(plan, lambda n: replace(n, read="all") if isinstance(n, ScanExec) else n)
    for new, old in zip(walk(whole), walk(plan), strict=True):
        lowering.note_size(new, old)
    return whole
