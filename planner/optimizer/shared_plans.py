"""A query with shared subplans: all rules for each plan, then columns that nothing reads go.

In: a plan and the shared subplans that it scans. Out: the same, optimised. Subplans that nothing
reads any more are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from planner.catalog import TableInfo
from planner.logical import LogicalPlan, SharedScan
from planner.optimizer import optimize
from planner.optimizer.context import RuleContext
from planner.optimizer.prune_columns import prune
from planner.shared import SharedPlan
from planner.tree import walk


def optimize_shared(
    plan: LogicalPlan,
    shared: Sequence[SharedPlan],
    context: RuleContext,
    tables: dict[str, TableInfo],
) -> tuple[LogicalPlan, tuple[SharedPlan, ...]]:
    """The optimised plan, and the shared subplans that it reads, each after those that it reads.

    Args:
        plan: The plan of a query.
        shared: Its shared subplans, each after those that it reads.
        context: Options and estimates.
        tables: What the estimates of the context are made from; the subplans are added to it.
    """
    optimized: list[SharedPlan] = []
    for part in shared:
        part = replace(part, plan=optimize(part.plan, context))
        tables[part.name] = part.as_table(context.estimator.estimate(part.plan))
        optimized.append(part)
    plan = optimize(plan, context)
    read = _Reads()
    read.note(plan)
    kept: list[SharedPlan] = []
    for part in reversed(optimized):
        names = read.names.get(part.name)
        if names is None:
            continue
        needed = frozenset(part.columns[name].id for name in names)
        part = replace(part, plan=prune(part.plan, needed, narrow=True))
        read.note(part.plan)
        kept.append(part)
    return plan, tuple(reversed(kept))


class _Reads:
    """Which columns of which subplans are read."""

    def __init__(self) -> None:
        self.names: dict[str, set[str]] = {}

    def note(self, plan: LogicalPlan) -> None:
        for node in walk(plan):
            if isinstance(node, SharedScan):
                self.names.setdefault(node.table, set()).update(node.source)
