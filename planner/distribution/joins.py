"""Distribute joins: broadcast one side, or hash both by the join keys."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from stagecoach.planner.distribution.bloom import MAX_SHARE, bloom_pays, bloom_probe, list_fits
from stagecoach.planner.distribution.delivered import (
    ANY,
    SINGLE,
    Distributed,
    Distribution,
    alignment,
    kept_by_join,
    key_sets,
)
from stagecoach.planner.distribution.exchanges import Exchanges, read_whole
from stagecoach.planner.distribution.key_sources import key_source
from stagecoach.planner.distribution.partition_keys import PartitionWishes
from stagecoach.planner.distribution.reasons import (
    broadcast_reason,
    filter_reason,
    one_task_join_reason,
    partitioned_join_reason,
    prune_reason,
)
from stagecoach.planner.plan.expressions import TRUE, ColumnRef, Expression
from stagecoach.planner.plan.logical import NamedExpression
from stagecoach.planner.plan.physical import (
    AggregateExec,
    ExchangeExec,
    FilterExec,
    HashJoinExec,
    PhysicalPlan,
    ProjectionExec,
    ScanExec,
)
from stagecoach.planner.pruning.key_filters import key_column, scans_of
from stagecoach.planner.tree import walk

_DROPS_RIGHT = ("inner", "left", "semi", "anti")
_PRUNED_BYTES = 32 << 20  # of columns of a table: what takes as long to read as a stage to start
_FILTER_GAIN = 2.0  # how many times larger than its source a filtered side must be

_Keyed = tuple[PhysicalPlan, tuple[int, ...]]  # a side, and numbers of its key columns
Visit = Callable[[PhysicalPlan], Distributed]


@dataclass(frozen=True)
class _Sides:
    """The inputs of a partitioned join and the columns that they are hashed by."""

    plan: HashJoinExec
    left: PhysicalPlan
    right: PhysicalPlan
    left_keys: tuple[int, ...]
    right_keys: tuple[int, ...]
    num_partitions: int
    reason: str = ""


class JoinDistributor:
    """Distributes joins: broadcast, in place, or both sides by key hash.

    Args:
        exchanges: Makes exchanges.
        wishes: Which keys would save an exchange further up.
        visit: Distributes an input.
    """

    def __init__(self, exchanges: Exchanges, wishes: PartitionWishes, visit: Visit) -> None:
        self._exchanges = exchanges
        self._wishes = wishes
        self._visit = visit

    def join(self, plan: HashJoinExec) -> Distributed:
        """The join and what it delivers."""
        left, left_has = self._visit(plan.left)
        pruned = self._pruned_table(plan, left) if plan.broadcast else None
        if plan.broadcast and pruned is None and self._inlines(plan.right):
            right = read_whole(plan.right, self._exchanges.sizes)
            return replace(plan, left=left, right=right, build_inline=True), kept_by_join(
                left_has, plan
            )
        right, right_has = self._visit(plan.right)
        if left_has.kind == "single" and (plan.broadcast or right_has.kind == "single"):
            right = self._exchanges.to_single(right, right_has, one_task_join_reason(plan))
            return replace(plan, left=left, right=right, broadcast=True), SINGLE
        if plan.broadcast:
            size = self._exchanges.sizes.size(plan.right)[1]
            reason = (
                broadcast_reason(plan, size, self._exchanges.context.options.broadcast_bytes)
                if pruned is None
                else prune_reason(plan, pruned)
            )
            exchange = self._exchanges.sizes.note_size(
                ExchangeExec(right, "broadcast", reason=reason), right
            )
            return replace(plan, left=left, right=exchange), kept_by_join(left_has, plan)
        if not plan.left_keys:
            reason = one_task_join_reason(plan)
            left = self._exchanges.to_single(left, left_has, reason)
            right = self._exchanges.to_single(right, right_has, reason)
            return replace(plan, left=left, right=right), SINGLE
        return self._partitioned(plan, (left, left_has), (right, right_has))

    def _inlines(self, build: PhysicalPlan) -> bool:
        """Whether each task may as well scan the build side's tables itself."""
        if self._exchanges.context.options.force_distribution:
            return False
        nodes = list(walk(build))
        if not all(
            isinstance(n, ScanExec | FilterExec | ProjectionExec | HashJoinExec) for n in nodes
        ):
            return False
        tables = [n.table for n in nodes if isinstance(n, ScanExec)]
        return (
            sum(self._exchanges.context.estimator.stored_bytes(t) for t in tables)
            <= self._exchanges.context.options.inline_bytes
        )

    def _pruned_table(self, plan: HashJoinExec, left: PhysicalPlan) -> str | None:
        """A table of the left side of which much need not be read once the right side is there.

        The build side must be a stage of its own for that, which costs about as much as reading
        `_PRUNED_BYTES`.
        """
        if plan.kind not in ("inner", "semi"):
            return None
        for probe, build, _ in plan.key_pairs:
            column, key = key_column(probe), key_column(build)
            if column is None or key is None:
                continue
            keys = self._exchanges.sizes.distinct(plan.right, [key])
            for scan, position in scans_of(left, column):
                spread = self._exchanges.context.estimator.spread(scan.table, scan.source[position])
                num_bytes = self._exchanges.sizes.size(scan)[1]
                if num_bytes * (1.0 - min(keys * spread, 1.0)) >= _PRUNED_BYTES:
                    return scan.table
        return None

    def _partitioned(
        self, plan: HashJoinExec, left: Distributed, right: Distributed
    ) -> Distributed:
        """Both sides by key hash; a side that already is keeps its partitions if they fit."""
        shares, asked = self._exchanges.sizes.match_shares(plan), plan
        plan, left_plan, right_plan = self._key_columns(plan, left[0], right[0])
        left_ids = tuple(k.id for k in plan.left_keys if isinstance(k, ColumnRef))
        right_ids = tuple(k.id for k in plan.right_keys if isinstance(k, ColumnRef))
        moves_left = moves_right = True
        if (order := alignment(left[1], left_ids)) is not None:
            count, moves_left = left[1].num_partitions, False
            wanted = tuple(right_ids[i] for i in order)
            aligned = alignment(right[1], wanted, exact=True) is not None
            moves_right = not (aligned and right[1].num_partitions == count)
        elif (order := alignment(right[1], right_ids)) is not None:
            count, moves_right = right[1].num_partitions, False
        else:
            count = self._exchanges.partitions(left_plan, right_plan)
            order = self._wishes.positions(asked, asked.left, count, left_ids, right_ids)
        keys, wanted = (tuple(ids[i] for i in order) for ids in (left_ids, right_ids))
        reason = partitioned_join_reason(
            asked,
            (moves_left, moves_right),
            count,
            self._exchanges.sizes.size(asked.right)[1],
            self._exchanges.context.options.broadcast_bytes,
        )
        sides = _Sides(plan, left_plan, right_plan, keys, wanted, count, reason)
        left_plan, right_plan = self._moved(sides, shares, moves_left, moves_right)
        joined = replace(plan, left=left_plan, right=right_plan)
        if plan.kind == "full":
            return joined, ANY
        return joined, kept_by_join(Distribution("hash", key_sets(keys), count), plan)

    def _moved(
        self, sides: _Sides, shares: tuple[float, float], moves_left: bool, moves_right: bool
    ) -> tuple[PhysicalPlan, PhysicalPlan]:
        """The sides of a partitioned join behind their exchanges, the larger one filtered first."""
        plan, left, right = sides.plan, sides.left, sides.right
        count, why = sides.num_partitions, sides.reason
        left_bytes, right_bytes = (self._exchanges.sizes.size(side)[1] for side in (left, right))
        if moves_left and left_bytes >= right_bytes and plan.kind in ("inner", "semi"):
            right = (
                self._exchanges.shuffle(right, sides.right_keys, count, why)
                if moves_right
                else right
            )
            left = self._filtered(
                (left, sides.left_keys), (right, sides.right_keys), shares[0], left_bytes, plan
            )
            return self._exchanges.shuffle(left, sides.left_keys, count, why), right
        if moves_right and right_bytes >= left_bytes and plan.kind in _DROPS_RIGHT:
            left = (
                self._exchanges.shuffle(left, sides.left_keys, count, why) if moves_left else left
            )
            source, keys = key_source(left, sides.left_keys)
            share = shares[1] * self._growth(left, source)
            right = self._filtered(
                (right, sides.right_keys), (source, keys), share, right_bytes, plan
            )
            return left, self._exchanges.shuffle(right, sides.right_keys, count, why)
        left = self._exchanges.shuffle(left, sides.left_keys, count, why) if moves_left else left
        right = (
            self._exchanges.shuffle(right, sides.right_keys, count, why) if moves_right else right
        )
        return left, right

    def _growth(self, side: PhysicalPlan, source: PhysicalPlan) -> float:
        """How many times more rows the source of a key list has than the side itself."""
        return max(
            self._exchanges.sizes.size(source)[0] / max(self._exchanges.sizes.size(side)[0], 1.0),
            1.0,
        )

    def _filtered(
        self,
        side: _Keyed,
        source: _Keyed,
        share: float,
        filtered_bytes: float,
        plan: HashJoinExec,
    ) -> PhysicalPlan:
        """A side that is to be shuffled, without rows that a runtime filter rules out."""
        if self._filter_pays(*source, share, filtered_bytes):
            return self._key_filter(*side, *source, share, bool(plan.null_safe))
        if bloom_pays(self._exchanges, *source, share, filtered_bytes):
            return bloom_probe(self._exchanges, *side, *source, share)
        return side[0]

    def _filter_pays(
        self, source: PhysicalPlan, keys: tuple[int, ...], share: float, filtered_bytes: float
    ) -> bool:
        """Whether to send one side's keys to the tasks that scan the other, larger side."""
        _, source_bytes = self._exchanges.sizes.size(source)
        return (
            self._exchanges.context.options.runtime_filters
            and isinstance(source, ExchangeExec)
            and share <= MAX_SHARE
            and list_fits(self._exchanges, source, keys)
            and filtered_bytes >= _FILTER_GAIN * source_bytes
        )

    def _key_filter(
        self,
        side: PhysicalPlan,
        keys: tuple[int, ...],
        source: PhysicalPlan,
        source_keys: tuple[int, ...],
        share: float,
        null_safe: bool = False,
    ) -> PhysicalPlan:
        """A runtime filter: only rows whose key the other side has are shuffled at all.

        The key list is a stage of its own that reads the other side's shuffle; it is part of the
        graph and always applied, so the filtered stage computes the same in every run.
        """
        columns = {c.id: c for c in source.columns}
        groups = tuple(
            (self._exchanges.context.column(columns[k].name, columns[k].dtype), columns[k].ref)
            for k in source_keys
        )
        distinct = AggregateExec(source, "single", groups, ())
        self._exchanges.sizes.note_size(distinct, source)
        names = [columns[k].name for k in source_keys]
        reason = filter_reason(names, share, self._exchanges.sizes.size(source)[1])
        exchange = ExchangeExec(distinct, "broadcast", reason=reason)
        listed = self._exchanges.sizes.note_size(exchange, distinct)
        mine = {c.id: c for c in side.columns}
        filtered = HashJoinExec(
            left=side,
            right=listed,
            kind="semi",
            left_keys=tuple(mine[k].ref for k in keys),
            right_keys=tuple(c.ref for c, _ in groups),
            residual=TRUE,
            broadcast=True,
            null_safe=(True,) * len(keys) if null_safe else (),
        )
        return self._exchanges.sizes.note_size(filtered, source)

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
            column = self._exchanges.context.column("key", key.dtype)
            items.append((column, key))
            columns.append(column.ref)
        projected = self._exchanges.sizes.note_size(ProjectionExec(side, tuple(items)), side)
        return projected, tuple(columns)
