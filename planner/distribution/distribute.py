"""Add exchanges where an operator needs another partitioning than its input has.

The plan that comes in is right on one task. Exchanges, split aggregates, and local sorts and limits
make it right on many.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from stagecoach.planner.distribution.aggregates import AggregateDistributor
from stagecoach.planner.distribution.complete_groups import drop_complete_groups
from stagecoach.planner.distribution.delivered import (
    ANY,
    SINGLE,
    Distributed,
    Distribution,
    expanded,
    key_sets,
    projected,
)
from stagecoach.planner.distribution.exchanges import Exchanges, read_whole
from stagecoach.planner.distribution.joins import JoinDistributor
from stagecoach.planner.distribution.partition_keys import PartitionWishes
from stagecoach.planner.distribution.reasons import (
    SHARED,
    WHOLE_INPUT,
    limit_reason,
    order_reason,
)
from stagecoach.planner.distribution.repartition import asks_for_tasks, repartition
from stagecoach.planner.distribution.share_exchanges import share_exchanges
from stagecoach.planner.distribution.shuffle_levels import add_levels
from stagecoach.planner.distribution.wide_tasks import WideTasks
from stagecoach.planner.distribution.windows import (
    limited,
    next_window,
    rank_limit,
    restored,
    window_chain,
    window_reason,
)
from stagecoach.planner.errors import InternalPlanError
from stagecoach.planner.lowering.sizes import PlanSizes
from stagecoach.planner.optimizer.context import RuleContext
from stagecoach.planner.plan.expressions import Column
from stagecoach.planner.plan.physical import (
    AggregateExec,
    ExchangeExec,
    ExpandExec,
    FilterExec,
    GenerateExec,
    HashJoinExec,
    LimitExec,
    OneRowExec,
    PhysicalPlan,
    ProjectionExec,
    RangeExec,
    RepartitionExec,
    ScanExec,
    SharedScanExec,
    SortExec,
    SortPreservingMergeExec,
    UnionExec,
    ValuesExec,
    WindowExec,
)
from stagecoach.planner.pruning.scan_filters import conjuncts_above
from stagecoach.planner.tree import walk


def distribute(
    plan: PhysicalPlan,
    sizes: PlanSizes,
    context: RuleContext,
    *,
    one_task: bool | None = None,
) -> PhysicalPlan:
    """The plan with exchanges.

    Args:
        plan: The plan of a query, or that of a shared subplan.
        sizes: Knows the sizes of operators.
        context: Options and estimates.
        one_task: Whether one task reads and computes everything, so that the plan is left as it is;
            `fits_one_task` of this plan alone by default.
    """
    if fits_one_task((plan,), context) if one_task is None else one_task:
        return read_whole(plan, sizes)
    distributed = _Distributor(plan, sizes, context).visit(plan)[0]
    shared = share_exchanges(distributed, sizes.note_size)
    dropped = drop_complete_groups(shared, sizes, context)
    return add_levels(dropped, Exchanges(sizes, context))


def distribute_shared(
    plan: PhysicalPlan, sizes: PlanSizes, context: RuleContext, *, one_task: bool
) -> ExchangeExec:
    """A shared subplan with exchanges, and above it the one through which all places read it.

    Its rows are dealt out in turn, since every place may need them by other keys.
    """
    new = distribute(plan, sizes, context, one_task=one_task)
    exchanges = Exchanges(sizes, context)
    if one_task:
        return exchanges.gather(new, SHARED)
    return exchanges.shuffle(new, (), exchanges.partitions(new), SHARED)


def fits_one_task(plans: Sequence[PhysicalPlan], context: RuleContext) -> bool:
    """Whether one task may read all that the plans of a query read.

    There is little stored data, and no hint asks for a number of tasks.
    """
    options = context.options
    scans = [
        (node, partial(conjuncts_above, plan, node))
        for plan in plans
        for node in dict.fromkeys(n for n in walk(plan) if isinstance(n, ScanExec))
        if not isinstance(node, SharedScanExec)
    ]
    small = context.estimator.scan_bytes(scans) < options.single_task_bytes
    if options.force_distribution or not small:
        return False
    return not any(asks_for_tasks(plan) for plan in plans)


def fits_wide_task(plan: PhysicalPlan, sizes: PlanSizes, context: RuleContext) -> bool:
    """Whether one task on several cores may compute a plan, so that it needs no exchange."""
    return WideTasks(plan, sizes, context).fits(plan)


class _Distributor:
    def __init__(self, plan: PhysicalPlan, sizes: PlanSizes, context: RuleContext) -> None:
        self._sizes = sizes
        self._context = context
        self._exchanges = Exchanges(sizes, context)
        self._wide = WideTasks(plan, sizes, context)
        self._suits = True  # whether a wide task may compute the operators above, as far as a side
        wishes = PartitionWishes(plan, sizes.distinct)
        self._aggregates = AggregateDistributor(self._exchanges, wishes, self.visit)
        self._joins = JoinDistributor(self._exchanges, wishes, self._visit_side)

    def visit(self, plan: PhysicalPlan) -> Distributed:
        suits = self._suits
        # What fits as a whole needs no look at its parts, each of which would fit, too.
        if suits and _gathers(plan) and (task := self._wide.task_plan(plan)) is not None:
            return read_whole(task, self._sizes), SINGLE
        self._suits = suits and self._wide.suits(plan)
        new, delivered = self._visit(plan)
        self._suits = suits
        if suits and _has_exchange(new) and (task := self._wide.task_plan(plan)) is not None:
            return read_whole(task, self._sizes), SINGLE
        if new is not plan:
            self._sizes.note_size(new, plan)
        return new, delivered

    def _visit_side(self, plan: PhysicalPlan) -> Distributed:
        """An input of a join; what one task computes of it is a stage of its own.

        Otherwise the task would compute the join as well, for longer than it may.
        """
        new, delivered = self.visit(plan)
        return new, ANY if delivered is SINGLE and self._wide.fits(plan) else delivered

    def _visit(self, plan: PhysicalPlan) -> Distributed:
        match plan:
            case ScanExec():
                return plan, ANY
            case OneRowExec():
                return plan, SINGLE
            case FilterExec() if isinstance(plan.child, WindowExec):
                child, delivered = self._windows(plan.child, plan)
                return plan.with_children((child,)), delivered
            case FilterExec():
                child, delivered = self.visit(plan.child)
                return plan.with_children((child,)), delivered
            case WindowExec():
                return self._windows(plan, None)
            case ProjectionExec():
                child, delivered = self.visit(plan.child)
                return plan.with_children((child,)), projected(delivered, plan.items)
            case AggregateExec():
                return self._aggregates.aggregate(plan)
            case SortExec():
                return self._sort(plan)
            case LimitExec():
                return self._limit(plan)
            case RepartitionExec():
                return repartition(plan, self.visit(plan.child), self._exchanges)
            case UnionExec():
                return self._union(plan)
            case HashJoinExec():
                return self._joins.join(plan)
            case ValuesExec() | RangeExec():
                return plan, SINGLE
            case GenerateExec():
                child, delivered = self.visit(plan.child)
                return plan.with_children((child,)), delivered
            case ExpandExec():
                child, delivered = self.visit(plan.child)
                return plan.with_children((child,)), expanded(delivered, plan)
        raise InternalPlanError(f"{type(plan).__name__} cannot be distributed")

    # ------------------------------------------------------------ windows

    def _windows(self, plan: WindowExec, above: FilterExec | None) -> Distributed:
        """Stacked windows, in the order that needs the fewest exchanges."""
        below, waiting = window_chain(plan)
        child, delivered = self.visit(below)
        while waiting:
            position, choice = next_window(waiting, child, delivered)
            del waiting[position]
            window = choice.window
            if choice.keys is not None:
                limit = rank_limit(above.predicate, window) if above and not waiting else None
                if limit is not None:
                    child, kept = limited(child, limit, self._context)
                    self._sizes.note_size(kept, above or kept)
                reason = window_reason(choice.keys, window, limit and limit[1])
                child, delivered = self._exchange_windows(child, choice.keys, reason)
            child = self._sizes.note_size(replace(window, child=child), child)
        return restored(child, plan.columns), delivered

    def _exchange_windows(
        self, child: PhysicalPlan, keys: tuple[Column, ...], reason: str
    ) -> Distributed:
        if not keys:
            return self._exchanges.gather(child, reason), SINGLE
        count, ids = self._exchanges.partitions(child), tuple(k.id for k in keys)
        exchange = self._exchanges.shuffle(child, ids, count, reason)
        return exchange, Distribution("hash", key_sets(ids), count)

    # ------------------------------------------------------------ sort, limit, union

    def _sort(self, plan: SortExec) -> Distributed:
        child, delivered = self.visit(plan.child)
        local = self._sizes.note_size(replace(plan, child=child), plan)
        if delivered.kind == "single":
            return local, SINGLE
        gathered = self._exchanges.gather(local, order_reason(plan.fetch))
        return SortPreservingMergeExec(gathered, plan.keys, plan.fetch), SINGLE

    def _limit(self, plan: LimitExec) -> Distributed:
        child, delivered = self.visit(plan.child)
        if delivered.kind == "single":
            return replace(plan, child=child), SINGLE
        if plan.limit is not None:
            local = LimitExec(child, plan.limit + plan.offset)
            child = self._sizes.note_size(local, plan)
        gathered = self._exchanges.gather(child, limit_reason(plan.limit, plan.offset))
        return LimitExec(gathered, plan.limit, plan.offset), SINGLE

    def _union(self, plan: UnionExec) -> Distributed:
        parts = [self.visit(child) for child in plan.inputs]
        if all(delivered.kind == "single" for _, delivered in parts):
            return replace(plan, inputs=tuple(p for p, _ in parts)), SINGLE
        # An input that one task computes (it may give a row for no rows) is a stage of its own.
        inputs = tuple(
            self._exchanges.shuffle(child, (), 1, WHOLE_INPUT)
            if delivered.kind == "single"
            else child
            for child, delivered in parts
        )
        return replace(plan, inputs=inputs), ANY


def _gathers(plan: PhysicalPlan) -> bool:
    """Whether a plan surely has exchanges if several tasks read its tables."""
    return isinstance(plan, AggregateExec | SortExec | LimitExec) and any(
        isinstance(node, ScanExec) for node in walk(plan)
    )


def _has_exchange(plan: PhysicalPlan) -> bool:
    return any(isinstance(node, ExchangeExec) for node in walk(plan))
