"""Adds exchanges where the partitioning that an operator needs is not the one it is given.

In: a physical plan that is right on one task. Out: the same operators, with `ExchangeExec` nodes,
aggregates split in two and local sorts or limits added, so that it is right on many tasks.

What an operator delivers:
    single      one task holds all rows
    hash(keys)  rows with equal keys are in the same task; a key is a set of equal columns
    any         rows are spread over tasks in no useful way
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal as OneOf

from planner.aggregates import AGGREGATES, splits
from planner.errors import InternalPlanError
from planner.estimates import default_width
from planner.expressions import TRUE, AggregateCall, Column, ColumnRef, Expression
from planner.logical import NamedExpression
from planner.lower import Lowering
from planner.optimizer.context import RuleContext
from planner.physical import (
    AggregateExec,
    ExchangeExec,
    FilterExec,
    HashJoinExec,
    LimitExec,
    OneRowExec,
    PhysicalPlan,
    ProjectionExec,
    ScanExec,
    SortExec,
    SortPreservingMergeExec,
    UnionExec,
)
from planner.tree import transform_up, walk

KeySets = tuple[frozenset[int], ...]


@dataclass(frozen=True)
class Distribution:
    """How the rows of an operator are spread over tasks."""

    kind: OneOf["single", "hash", "any"]
    keys: KeySets = ()
    num_partitions: int = 1


@dataclass(frozen=True)
class _Sides:
    """The inputs of a partitioned join and the columns that they are hashed by."""

    plan: HashJoinExec
    left: PhysicalPlan
    right: PhysicalPlan
    left_keys: tuple[int, ...]
    right_keys: tuple[int, ...]
    num_partitions: int


SINGLE = Distribution("single")
ANY = Distribution("any")
Distributed = tuple[PhysicalPlan, Distribution]

_DROPS_RIGHT = ("inner", "left", "semi", "anti")
_FILTER_SHARE = 0.5  # a filter that keeps more than half of the rows costs more than it saves
_FILTER_GAIN = 2.0  # how many times larger than its source a filtered side must be


def distribute(plan: PhysicalPlan, lowering: Lowering, context: RuleContext) -> PhysicalPlan:
    """The plan with exchanges.

    A plan over little stored data is left as it is: one task reads and computes everything.
    """
    options = context.options
    tables = {n.table for n in walk(plan) if isinstance(n, ScanExec)}
    stored = sum(context.estimator.stored_bytes(table) for table in tables)
    if stored < options.single_task_bytes and not options.force_distribution:
        return _read_whole(plan)
    return _Distributor(lowering, context).visit(plan)[0]


def _read_whole(plan: PhysicalPlan) -> PhysicalPlan:
    return transform_up(plan, lambda n: replace(n, read="all") if isinstance(n, ScanExec) else n)


class _Distributor:
    def __init__(self, lowering: Lowering, context: RuleContext) -> None:
        self._lowering = lowering
        self._context = context
        self._options = context.options

    def visit(self, plan: PhysicalPlan) -> Distributed:
        new, delivered = self._visit(plan)
        if new is not plan:
            self._lowering.note_size(new, plan)
        return new, delivered

    def _visit(self, plan: PhysicalPlan) -> Distributed:
        match plan:
            case ScanExec():
                return plan, ANY
            case OneRowExec():
                return plan, SINGLE
            case FilterExec():
                child, delivered = self.visit(plan.child)
                return plan.with_children((child,)), delivered
            case ProjectionExec():
                child, delivered = self.visit(plan.child)
                return plan.with_children((child,)), _projected(delivered, plan.items)
            case AggregateExec():
                return self._aggregate(plan)
            case SortExec():
                return self._sort(plan)
            case LimitExec():
                return self._limit(plan)
            case UnionExec():
                return self._union(plan)
            case HashJoinExec():
                return self._join(plan)
        raise InternalPlanError(f"{type(plan).__name__} cannot be distributed")

    # ------------------------------------------------------------ exchanges

    def _partitions(self, *plans: PhysicalPlan) -> int:
        if self._options.num_partitions:
            return self._options.num_partitions
        largest = max(self._lowering.size(p)[1] for p in plans)
        wanted = math.ceil(largest / self._options.partition_bytes)
        return min(max(wanted, 8), 512)

    def _shuffle(self, child: PhysicalPlan, keys: tuple[int, ...], count: int) -> PhysicalPlan:
        exchange = ExchangeExec(child, "shuffle", keys, count)
        return self._lowering.note_size(exchange, child)

    def _gather(self, child: PhysicalPlan) -> PhysicalPlan:
        return self._lowering.note_size(ExchangeExec(child, "gather"), child)

    def _to_single(self, child: PhysicalPlan, delivered: Distribution) -> PhysicalPlan:
        return child if delivered.kind == "single" else self._gather(child)

    # ------------------------------------------------------------ aggregates

    def _aggregate(self, plan: AggregateExec) -> Distributed:
        child, delivered = self.visit(plan.child)
        groups = {e.id: c.id for c, e in plan.groups if isinstance(e, ColumnRef)}
        if delivered.kind == "single":
            return replace(plan, child=child), SINGLE
        if _colocated(delivered, frozenset(groups)):
            fused = replace(plan, child=child)
            return fused, _renamed(delivered, groups)
        if all(splits(call) for _, call in plan.aggregates):
            return self._two_phases(plan, child)
        return self._whole_groups(plan, child)

    def _two_phases(self, plan: AggregateExec, child: PhysicalPlan) -> Distributed:
        """Partial aggregate per task, exchange on the group columns, final aggregate."""
        states: list[tuple[Column, AggregateCall]] = []
        merges: list[tuple[Column, AggregateCall]] = []
        for column, call in plan.aggregates:
            states_of = AGGREGATES[call.function].states
            if states_of is None:
                raise InternalPlanError(f"{call.function} has no partial form")
            (state,) = states_of(call)
            partial = self._context.column(column.name, call.dtype)
            states.append((partial, state.partial))
            merges.append((column, AggregateCall(call.dtype, state.merge, (partial.ref,))))
        keys = tuple(self._context.column(c.name, c.dtype) for c, _ in plan.groups)
        partial_groups = tuple((k, e) for k, (_, e) in zip(keys, plan.groups, strict=True))
        first = AggregateExec(child, "partial", partial_groups, tuple(states))
        self._lowering.note_size(first, plan)
        exchange, delivered = self._exchange_groups(first, keys, plan)
        groups = tuple((c, k.ref) for (c, _), k in zip(plan.groups, keys, strict=True))
        final = AggregateExec(exchange, "final", groups, tuple(merges))
        return final, _renamed(
            delivered, {k.id: c.id for k, (c, _) in zip(keys, plan.groups, strict=True)}
        )

    def _whole_groups(self, plan: AggregateExec, child: PhysicalPlan) -> Distributed:
        """Exchange the rows themselves: an aggregate needs all rows of its group at once.

        Where all aggregates count distinct values of the same arguments, each task first drops its
        own repetitions.
        """
        keys = tuple(self._context.column(c.name, c.dtype) for c, _ in plan.groups)
        items: list[NamedExpression] = [(k, e) for k, (_, e) in zip(keys, plan.groups, strict=True)]
        known: dict[Expression, Column] = {}
        aggregates: list[tuple[Column, AggregateCall]] = []
        for column, call in plan.aggregates:
            operands = []
            for operand in call.children:
                if operand not in known:
                    known[operand] = self._context.column("value", operand.dtype)
                    items.append((known[operand], operand))
                operands.append(known[operand].ref)
            aggregates.append((column, call.with_children(tuple(operands))))  # type: ignore[arg-type]  # same class
        below: PhysicalPlan
        if all(call.distinct for _, call in plan.aggregates):
            below = AggregateExec(child, "partial", tuple(items), ())
        else:
            below = ProjectionExec(child, tuple(items))
        self._lowering.note_size(below, child)
        exchange, delivered = self._exchange_groups(below, keys, plan)
        groups = tuple((c, k.ref) for (c, _), k in zip(plan.groups, keys, strict=True))
        whole = AggregateExec(exchange, "single", groups, tuple(aggregates))
        return whole, _renamed(
            delivered, {k.id: c.id for k, (c, _) in zip(keys, plan.groups, strict=True)}
        )

    def _exchange_groups(
        self, child: PhysicalPlan, keys: tuple[Column, ...], plan: AggregateExec
    ) -> Distributed:
        if not keys or not all(k.dtype.is_atomic for k in keys):
            return self._gather(child), SINGLE
        count = self._partitions(plan)
        ids = tuple(k.id for k in keys)
        return self._shuffle(child, ids, count), Distribution("hash", _sets(ids), count)

    # ------------------------------------------------------------ sort, limit, union

    def _sort(self, plan: SortExec) -> Distributed:
        child, delivered = self.visit(plan.child)
        local = self._lowering.note_size(replace(plan, child=child), plan)
        if delivered.kind == "single":
            return local, SINGLE
        return SortPreservingMergeExec(self._gather(local), plan.keys, plan.fetch), SINGLE

    def _limit(self, plan: LimitExec) -> Distributed:
        child, delivered = self.visit(plan.child)
        if delivered.kind == "single":
            return replace(plan, child=child), SINGLE
        if plan.limit is not None:
            local = LimitExec(child, plan.limit + plan.offset)
            child = self._lowering.note_size(local, plan)
        return LimitExec(self._gather(child), plan.limit, plan.offset), SINGLE

    def _union(self, plan: UnionExec) -> Distributed:
        parts = [self.visit(child) for child in plan.inputs]
        if all(delivered.kind == "single" for _, delivered in parts):
            return replace(plan, inputs=tuple(p for p, _ in parts)), SINGLE
        # An input that one task computes (it may give a row for no rows) is a stage of its own.
        inputs = tuple(
            self._shuffle(child, (), 1) if delivered.kind == "single" else child
            for child, delivered in parts
        )
        return replace(plan, inputs=inputs), ANY

    # ------------------------------------------------------------ joins

    def _join(self, plan: HashJoinExec) -> Distributed:
        left, left_has = self.visit(plan.left)
        if plan.broadcast and self._inlines(plan.right):
            right = _read_whole(plan.right)
            return replace(plan, left=left, right=right, build_inline=True), _kept(left_has, plan)
        right, right_has = self.visit(plan.right)
        if left_has.kind == "single" and (plan.broadcast or right_has.kind == "single"):
            right = self._to_single(right, right_has)
            return replace(plan, left=left, right=right, broadcast=True), SINGLE
        if plan.broadcast:
            exchange = self._lowering.note_size(ExchangeExec(right, "broadcast"), right)
            return replace(plan, left=left, right=exchange), _kept(left_has, plan)
        if not plan.left_keys:
            left, right = self._to_single(left, left_has), self._to_single(right, right_has)
            return replace(plan, left=left, right=right), SINGLE
        return self._partitioned(plan, (left, left_has), (right, right_has))

    def _inlines(self, build: PhysicalPlan) -> bool:
        """Whether each task may as well scan the build side's tables itself."""
        if self._options.force_distribution:
            return False
        nodes = list(walk(build))
        if not all(
            isinstance(n, ScanExec | FilterExec | ProjectionExec | HashJoinExec) for n in nodes
        ):
            return False
        tables = [n.table for n in nodes if isinstance(n, ScanExec)]
        return (
            sum(self._context.estimator.stored_bytes(t) for t in tables)
            <= self._options.inline_bytes
        )

    def _partitioned(
        self, plan: HashJoinExec, left: Distributed, right: Distributed
    ) -> Distributed:
        """Both sides by key hash; a side that already is keeps its partitions if they fit."""
        shares = self._lowering.match_shares(plan)
        plan, left_plan, right_plan = self._key_columns(plan, left[0], right[0])
        left_ids = tuple(k.id for k in plan.left_keys if isinstance(k, ColumnRef))
        right_ids = tuple(k.id for k in plan.right_keys if isinstance(k, ColumnRef))
        moves_left = moves_right = True
        if (order := _alignment(left[1], left_ids)) is not None:
            count, moves_left = left[1].num_partitions, False
            wanted = tuple(right_ids[i] for i in order)
            aligned = _alignment(right[1], wanted, exact=True) is not None
            moves_right = not (aligned and right[1].num_partitions == count)
        elif (order := _alignment(right[1], right_ids)) is not None:
            count, moves_right = right[1].num_partitions, False
        else:
            order = tuple(range(len(left_ids)))
            count = self._partitions(left_plan, right_plan)
        keys, wanted = (tuple(ids[i] for i in order) for ids in (left_ids, right_ids))
        sides = _Sides(plan, left_plan, right_plan, keys, wanted, count)
        left_plan, right_plan = self._moved(sides, shares, moves_left, moves_right)
        joined = replace(plan, left=left_plan, right=right_plan)
        if plan.kind == "full":
            return joined, ANY
        return joined, _kept(Distribution("hash", _sets(keys), count), plan)

    def _moved(
        self, sides: _Sides, shares: tuple[float, float], moves_left: bool, moves_right: bool
    ) -> tuple[PhysicalPlan, PhysicalPlan]:
        """The sides of a partitioned join behind their exchanges, the larger one filtered first."""
        plan, left, right = sides.plan, sides.left, sides.right
        count = sides.num_partitions
        left_bytes, right_bytes = (self._lowering.size(side)[1] for side in (left, right))
        if moves_left and left_bytes >= right_bytes and plan.kind in ("inner", "semi"):
            right = self._shuffle(right, sides.right_keys, count) if moves_right else right
            if self._filter_pays(right, sides.right_keys, shares[0], left_bytes):
                left = self._key_filter(left, sides.left_keys, right, sides.right_keys)
            return self._shuffle(left, sides.left_keys, count), right
        if moves_right and right_bytes >= left_bytes and plan.kind in _DROPS_RIGHT:
            left = self._shuffle(left, sides.left_keys, count) if moves_left else left
            if self._filter_pays(left, sides.left_keys, shares[1], right_bytes):
                right = self._key_filter(right, sides.right_keys, left, sides.left_keys)
            return left, self._shuffle(right, sides.right_keys, count)
        left = self._shuffle(left, sides.left_keys, count) if moves_left else left
        right = self._shuffle(right, sides.right_keys, count) if moves_right else right
        return left, right

    def _filter_pays(
        self, source: PhysicalPlan, keys: tuple[int, ...], share: float, filtered_bytes: float
    ) -> bool:
        """Whether to send one side's keys to the tasks that scan the other, larger side."""
        rows, source_bytes = self._lowering.size(source)
        dtypes = {c.id: c.dtype for c in source.columns}
        key_bytes = rows * (1 + sum(default_width(dtypes[k]) for k in keys))
        return (
            isinstance(source, ExchangeExec)
            and share <= _FILTER_SHARE
            and key_bytes <= self._options.broadcast_bytes
            and filtered_bytes >= _FILTER_GAIN * source_bytes
        )

    def _key_filter(
        self,
        side: PhysicalPlan,
        keys: tuple[int, ...],
        source: PhysicalPlan,
        source_keys: tuple[int, ...],
    ) -> PhysicalPlan:
        """A runtime filter: only rows whose key the other side has are shuffled at all.

        The key list is a stage of its own that reads the other side's shuffle; it is part of the
        graph and always applied, so the filtered stage computes the same in every run.
        """
        columns = {c.id: c for c in source.columns}
        groups = tuple(
            (self._context.column(columns[k].name, columns[k].dtype), columns[k].ref)
            for k in source_keys
        )
        distinct = AggregateExec(source, "single", groups, ())
        self._lowering.note_size(distinct, source)
        listed = self._lowering.note_size(ExchangeExec(distinct, "broadcast"), distinct)
        mine = {c.id: c for c in side.columns}
        filtered = HashJoinExec(
            left=side,
            right=listed,
            kind="semi",
            left_keys=tuple(mine[k].ref for k in keys),
            right_keys=tuple(c.ref for c, _ in groups),
            residual=TRUE,
            broadcast=True,
        )
        return self._lowering.note_size(filtered, source)

    def _key_columns(
        self, plan: HashJoinExec, left: PhysicalPlan, right: PhysicalPlan
    ) -> tuple[HashJoinExec, PhysicalPlan, PhysicalPlan]:
        """Computed keys become columns, because rows are hashed by columns."""
        left, left_keys = self._computed(left, plan.left_keys)
        right, right_keys = self._computed(right, plan.right_keys)
        return replace(plan, left_keys=left_keys, right_keys=right_keys), left, right

    def _computed(
        self, side: PhysicalPlan, keys: tuple[Expression, ...]
    ) -> tuple[PhysicalPlan, tuple[Expression, ...]]:
        if all(isinstance(k, ColumnRef) for k in keys):
            return side, keys
        items: list[NamedExpression] = [(c, c.ref) for c in side.columns]
        columns: list[Expression] = []
        for key in keys:
            if isinstance(key, ColumnRef):
                columns.append(key)
                continue
            column = self._context.column("key", key.dtype)
            items.append((column, key))
            columns.append(column.ref)
        projected = self._lowering.note_size(ProjectionExec(side, tuple(items)), side)
        return projected, tuple(columns)


def _sets(ids: tuple[int, ...]) -> KeySets:
    return tuple(frozenset({i}) for i in ids)


def _colocated(delivered: Distribution, groups: frozenset[int]) -> bool:
    """Whether all rows of a group are in one task."""
    return (
        delivered.kind == "hash"
        and bool(delivered.keys)
        and all(k & groups for k in delivered.keys)
    )


def _alignment(
    delivered: Distribution, ids: tuple[int, ...], *, exact: bool = False
) -> tuple[int, ...] | None:
    """For each delivered key the position of the join key that it is, or None if one is no key.

    Args:
        delivered: What a side has.
        ids: Columns of the join keys on that side.
        exact: Whether the keys must be all of `ids`, in order.
    """
    if delivered.kind != "hash" or not delivered.keys:
        return None
    order = []
    for key in delivered.keys:
        position = next((i for i, column in enumerate(ids) if column in key), None)
        if position is None:
            return None
        order.append(position)
    if exact and order != list(range(len(ids))):
        return None
    return tuple(order)


def _renamed(delivered: Distribution, names: dict[int, int]) -> Distribution:
    if delivered.kind != "hash":
        return delivered
    keys = tuple(frozenset(names[i] for i in key if i in names) for key in delivered.keys)
    return replace(delivered, keys=keys) if all(keys) else ANY


def _projected(delivered: Distribution, items: tuple[NamedExpression, ...]) -> Distribution:
    if delivered.kind != "hash":
        return delivered
    names: dict[int, set[int]] = {}
    for column, expr in items:
        if isinstance(expr, ColumnRef):
            names.setdefault(expr.id, set()).add(column.id)
    keys = tuple(frozenset().union(*(names.get(i, set()) for i in key)) for key in delivered.keys)
    return replace(delivered, keys=keys) if all(keys) else ANY


def _kept(left: Distribution, plan: HashJoinExec) -> Distribution:
    """What a join delivers when its left side is `left`; an inner join makes its keys equal."""
    if left.kind != "hash" or plan.kind != "inner":
        return left
    equal = [
        (a.id, b.id)
        for a, b in zip(plan.left_keys, plan.right_keys, strict=True)
        if isinstance(a, ColumnRef) and isinstance(b, ColumnRef)
    ]
    keys = tuple(key | {b for a, b in equal if a in key} for key in left.keys)
    return replace(left, keys=keys)
