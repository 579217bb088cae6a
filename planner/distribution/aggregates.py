"""Distribute aggregates: split each in two where it can be merged, else move its rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from stagecoach.planner.aggregates import AGGREGATES, splits
from stagecoach.planner.distribution.delivered import (
    SINGLE,
    Distributed,
    Distribution,
    colocated,
    key_sets,
    renamed,
)
from stagecoach.planner.distribution.exchanges import Exchanges
from stagecoach.planner.distribution.partition_keys import PartitionWishes
from stagecoach.planner.distribution.reasons import (
    group_reason,
)
from stagecoach.planner.distribution.share_sets import MAX_SHARE, share_sets
from stagecoach.planner.errors import InternalPlanError
from stagecoach.planner.plan.expressions import TRUE, AggregateCall, Column, ColumnRef, Expression
from stagecoach.planner.plan.logical import NamedExpression
from stagecoach.planner.plan.physical import (
    AggregateExec,
    AggregateMode,
    ExpandExec,
    PhysicalPlan,
    ProjectionExec,
)
from stagecoach.planner.tree import walk
from stagecoach.planner.types import BOOLEAN

Visit = Callable[[PhysicalPlan], Distributed]


class AggregateDistributor:
    """Distributes aggregates: in place, in two phases, or over exchanged rows.

    Args:
        exchanges: Makes exchanges.
        wishes: Which keys would save an exchange further up.
        visit: Distributes an input.
    """

    def __init__(self, exchanges: Exchanges, wishes: PartitionWishes, visit: Visit) -> None:
        self._exchanges = exchanges
        self._wishes = wishes
        self._visit = visit

    def aggregate(self, plan: AggregateExec) -> Distributed:
        """The aggregate and what it delivers."""
        child, delivered = self._visit(plan.child)
        groups = {e.id: c.id for c, e in plan.groups if isinstance(e, ColumnRef)}
        if delivered.kind == "single":
            return replace(plan, child=child), SINGLE
        if colocated(delivered, frozenset(groups)):
            fused = replace(plan, child=child)
            return fused, renamed(delivered, groups)
        if all(splits(call) for _, call in plan.aggregates):
            return self._two_phases(plan, child)
        return self._whole_groups(plan, child)

    def _two_phases(self, plan: AggregateExec, child: PhysicalPlan) -> Distributed:
        """Partial aggregate per task, exchange on the group columns, final aggregate."""
        states: list[tuple[Column, AggregateCall]] = []
        merges: list[tuple[Column, AggregateCall]] = []
        for column, call in plan.aggregates:
            found = AGGREGATES[call.function].states(call)
            if found is None:
                raise InternalPlanError(f"{call.function} has no partial form")
            (state,) = found
            partial = self._exchanges.context.column(column.name, call.dtype)
            states.append((partial, state.partial))
            merges.append((column, AggregateCall(call.dtype, state.merge, (partial.ref,))))
        keys = tuple(self._exchanges.context.column(c.name, c.dtype) for c, _ in plan.groups)
        partial_groups = tuple((k, e) for k, (_, e) in zip(keys, plan.groups, strict=True))
        first = AggregateExec(child, "partial", partial_groups, tuple(states))
        first = self._over_groups(first, plan)
        self._exchanges.sizes.note_size(first, plan)
        return self._above_exchange(first, keys, plan, "final", merges)

    def _over_groups(self, first: AggregateExec, plan: AggregateExec) -> AggregateExec:
        """A partial aggregate of grouping sets over the groups of all keys, where they are few."""
        if not isinstance(first.child, ExpandExec):
            return first
        rows, groups = (
            self._exchanges.sizes.size(first.child.child)[0],
            self._exchanges.sizes.size(plan)[0],
        )
        if groups > MAX_SHARE * rows:
            return first
        shared = share_sets(first, lambda c: self._exchanges.context.column(c.name, c.dtype))
        if shared is None:
            return first
        root: PhysicalPlan = shared
        for node in walk(root):
            if node is first.child.child:
                break
            self._exchanges.sizes.note_size(node, plan)
        return shared

    def _whole_groups(self, plan: AggregateExec, child: PhysicalPlan) -> Distributed:
        """Exchange the rows themselves: an aggregate needs all rows of its group at once.

        Where all aggregates count distinct values of the same arguments, each task first drops its
        own repetitions.
        """
        keys = tuple(self._exchanges.context.column(c.name, c.dtype) for c, _ in plan.groups)
        items: list[NamedExpression] = [(k, e) for k, (_, e) in zip(keys, plan.groups, strict=True)]
        known: dict[Expression, Column] = {}
        aggregates: list[tuple[Column, AggregateCall]] = []
        for column, call in plan.aggregates:
            operands: list[Expression] = []
            for operand in call.children:
                if not operand.column_ids:  # some arguments must stay constants
                    operands.append(operand)
                    continue
                if operand not in known:
                    known[operand] = self._exchanges.context.column("value", operand.dtype)
                    items.append((known[operand], operand))
                operands.append(known[operand].ref)
            aggregates.append((column, call.with_children(tuple(operands))))
        below: PhysicalPlan
        if not items:  # aggregates of constants: only the number of rows counts
            items.append((self._exchanges.context.column("row", BOOLEAN), TRUE))
            below = ProjectionExec(child, tuple(items))
        elif all(call.distinct for _, call in plan.aggregates):
            below = AggregateExec(child, "partial", tuple(items), ())
        else:
            below = ProjectionExec(child, tuple(items))
        self._exchanges.sizes.note_size(below, child)
        return self._above_exchange(below, keys, plan, "single", aggregates)

    def _above_exchange(
        self,
        below: PhysicalPlan,
        keys: tuple[Column, ...],
        plan: AggregateExec,
        mode: AggregateMode,
        aggregates: list[tuple[Column, AggregateCall]],
    ) -> Distributed:
        """The groups of `plan`, over rows of `below` that are exchanged by their keys."""
        exchange, delivered = self._exchange_groups(below, keys, plan)
        groups = tuple((c, k.ref) for (c, _), k in zip(plan.groups, keys, strict=True))
        names = {k.id: c.id for k, (c, _) in zip(keys, plan.groups, strict=True)}
        return AggregateExec(exchange, mode, groups, tuple(aggregates)), renamed(delivered, names)

    def _exchange_groups(
        self, child: PhysicalPlan, keys: tuple[Column, ...], plan: AggregateExec
    ) -> Distributed:
        if not keys or not all(k.dtype.is_atomic for k in keys):
            return self._exchanges.gather(child, group_reason(keys)), SINGLE
        count = self._exchanges.partitions(plan)
        order = self._wishes.positions(plan, plan, count, tuple(c.id for c, _ in plan.groups))
        ids = tuple(keys[i].id for i in order)
        exchange = self._exchanges.shuffle(child, ids, count, group_reason(keys))
        return exchange, Distribution("hash", key_sets(ids), count)
