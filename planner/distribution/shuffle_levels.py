"""Shuffle in two levels where one would make too many byte ranges.

Each of M tasks writes a range for each of N partitions, and each range is a request of the task
that reads it. Twice the data needs twice the tasks and twice the partitions, so ranges grow with
the square of the data and shrink to nothing each. Two levels make far fewer:

    M tasks ─▶ G groups of partitions ─▶ tasks of each group ─▶ its N/G partitions
    M × G ranges                         M × N/G ranges

The partition of a row is a part of the range of its hash (`infra.shuffle.partitioner`), so the
groups of the first level are whole partitions of the second if G divides N.
"""

from __future__ import annotations

import math

from stagecoach.planner.distribution.exchanges import Exchanges
from stagecoach.planner.plan.physical import ExchangeExec, PhysicalPlan
from stagecoach.planner.tree import transform_up

TASK_BYTES = 128 << 20
"""Bytes that a task reads where there are many, for estimates."""

_WORTH = 0.5
"""Of the ranges of one level that two may have at most: they write all rows twice."""


def add_levels(plan: PhysicalPlan, exchanges: Exchanges) -> PhysicalPlan:
    """Return the plan with a first level below each shuffle that needs two.

    Before:  Shuffle(k, 4096 partitions) <- Scan(t), of 10,000 tasks
    After:   Shuffle(k, 4096 partitions) <- Shuffle(k, 64 partitions) <- Scan(t)
    Never:   where rows are dealt out in turn; where the number of partitions has no divisor near
             its square root.

    Args:
        plan: A plan with exchanges.
        exchanges: Makes exchanges, and knows sizes and options.
    """
    most = exchanges.context.options.shuffle_ranges
    if not most:
        return plan

    def visit(node: PhysicalPlan) -> PhysicalPlan:
        if not isinstance(node, ExchangeExec) or not node.keys:
            return node
        tasks = _tasks(node, exchanges)
        ranges, groups = tasks * node.num_partitions, groups_of(node.num_partitions)
        two = tasks * (groups + node.num_partitions // groups)
        if ranges <= most or two > _WORTH * ranges:
            return node
        first = exchanges.shuffle(node.child, node.keys, groups, _reason(tasks, node, ranges))
        second = exchanges.shuffle(first, node.keys, node.num_partitions, node.reason)
        exchanges.sizes.note_size(second, node)
        return second

    return transform_up(plan, visit)


def groups_of(num_partitions: int) -> int:
    """Return the divisor of a number of partitions that is nearest to its square root."""
    root = math.isqrt(num_partitions)
    return next(g for g in range(root, 0, -1) if num_partitions % g == 0)


def _tasks(exchange: ExchangeExec, exchanges: Exchanges) -> int:
    """About how many tasks write the rows of an exchange, by the largest input of its stage."""
    sizes = [exchanges.sizes.size(exchange)[1]]
    stack = [exchange.child]
    while stack:
        node = stack.pop()
        sizes.append(exchanges.sizes.size(node)[1])
        if not isinstance(node, ExchangeExec):
            stack.extend(node.children)
    return math.ceil(max(sizes) / TASK_BYTES)


def _reason(tasks: int, exchange: ExchangeExec, ranges: int) -> str:
    return (
        f"the first of two levels: about {tasks:,} tasks would write {ranges:,} byte ranges for "
        f"{exchange.num_partitions:,} partitions"
    )
