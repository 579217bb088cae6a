"""Decide which part of a query one task computes on several cores instead of several stages.

A stage costs a few hundredths of a second, whatever it does, and so does each exchange that a plan
gets. What a few cores compute in a moment is therefore one stage without exchanges. How long that
moment may be is a bound on what a failure can lose (`planner.max_lost_seconds`). The rows that such
a task holds at once must fit into memory.

Several cores take the rows of an input in any order. So only operators take part whose result does
not depend on it: no sums of floats, no windows, no LIMIT without an order.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence

from stagecoach.planner.aggregates.orderless import ORDERLESS, SUMS
from stagecoach.planner.cached_property import cached_property
from stagecoach.planner.distribution.group_ranges import aggregate_by_ranges
from stagecoach.planner.distribution.merge_plans import same_rows
from stagecoach.planner.distribution.reduce_builds import reduce_builds
from stagecoach.planner.distribution.share_filters import split_filters
from stagecoach.planner.distribution.share_parts import alike, share_parts
from stagecoach.planner.distribution.share_semi_joins import share_semi_joins
from stagecoach.planner.distribution.work import Sizer, state_bytes, work_seconds
from stagecoach.planner.engines.protocol import Conditions
from stagecoach.planner.engines.registry import AUTO, SPARK, planner_engine, task_engines
from stagecoach.planner.lowering.sizes import PlanSizes
from stagecoach.planner.optimizer.context import RuleContext
from stagecoach.planner.plan.expressions import AggregateCall, ProjectCall
from stagecoach.planner.plan.physical import (
    AggregateExec,
    DedupScanExec,
    ExchangeExec,
    ExpandExec,
    FilterExec,
    HashJoinExec,
    LimitExec,
    OneRowExec,
    PhysicalPlan,
    ProjectionExec,
    RangeExec,
    ScanExec,
    SharedScanExec,
    SortExec,
    StageInputExec,
    UnionExec,
    ValuesExec,
)
from stagecoach.planner.plan.repeated import repeated_parts
from stagecoach.planner.plan.stages import Branch, Stage
from stagecoach.planner.tree import walk

MIN_SECONDS = 0.1
"""Work of a task below which more than one core gains nothing."""

MOST_STATE_BYTES = 1 << 30
"""Rows that a task may hold at once by estimate; with more, it may spill to a disk."""

_REPEATED_SECONDS = 0.25  # of work: more than what two stages cost
_SHARED_SECONDS = 0.01  # of work that is saved: with less, a task computes a part twice
_REMOTE_TIMES = 2  # as long as computing alone is reading from an object store and computing
_KEPT_BYTE = 1e-9  # seconds for writing a byte of a part into memory and reading it again
_MAX_FILTER_SHARE = 0.2  # of a table that a filter may leave, for its rows to be kept
_MOST_COPIES = 4  # of the work of a plan, before its parts are shared
_OPERATORS = (
    *(ScanExec, FilterExec, ProjectionExec, HashJoinExec, AggregateExec, SortExec, UnionExec),
    *(ExpandExec, OneRowExec, RangeExec, ValuesExec),
)


class WideTasks:
    """Knows which plans one task computes on several cores.

    Args:
        query: The whole plan.
        sizes: Knows the sizes of operators.
        context: Options and the tables.
    """

    def __init__(self, query: PhysicalPlan, sizes: PlanSizes, context: RuleContext) -> None:
        options = context.options
        self._query = query
        self._context = context
        self._sizes = sizes
        self._cores = options.task_cores
        self._seconds = float(options.task_cores * options.max_lost_seconds)
        self._enabled = (
            options.task_cores > 1
            and not options.force_distribution
            and not options.incremental  # the task would compute everything again
            and options.engine != SPARK
        )
        tables = context.estimator.tables
        self._conditions = Conditions(tables, options.time_zone, options.exact_math)
        self._engines = task_engines() if options.engine == AUTO else (options.engine,)
        self._fitting: dict[PhysicalPlan, PhysicalPlan | None] = {}

    def fits(self, plan: PhysicalPlan) -> bool:
        """Whether one task may compute a plan without exchanges, all below it included."""
        return self.task_plan(plan) is not None

    def task_plan(self, plan: PhysicalPlan) -> PhysicalPlan | None:
        """A plan as one task computes it, parts that it has twice merged; None if none may."""
        if not self._enabled:
            return None
        if plan not in self._fitting:
            self._fitting[plan] = self._fitted(plan)
        return self._fitting[plan]

    def _fitted(self, plan: PhysicalPlan) -> PhysicalPlan | None:
        operators = list(walk(plan))
        seconds = self._most_seconds(operators)
        if self._work(operators) > seconds * _MOST_COPIES:
            return None
        if not in_any_order(operators) or not all(map(self._is_by_cores, operators)):
            return None
        # What the query has elsewhere, too, stages compute once, and this task would not.
        inside = set(operators)
        if not all(inside.issuperset(self._repeated.get(node, ())) for node in operators):
            return None
        if not _only_leave_out(operators):  # else the engine may build the left sides
            plan = reduce_builds(plan, self._sizes, self._context)
        plan = share_semi_joins(plan, self._is_worth_sharing, self._sizes)
        plan = split_filters(plan, self._is_worth_sharing, self._sizes)
        shared = share_parts(plan, self._is_worth_sharing, self._sizes.note_size)
        shared = aggregate_by_ranges(shared, self._sizes, self._context)
        needed = list(walk(shared))
        if self._work(needed) > seconds or not self._is_native(shared):
            return None
        kept = sum(self._sizes.size(part)[1] for part in repeated_parts(shared))
        held = kept + state_bytes(needed, self._sizes.size)
        return shared if held <= MOST_STATE_BYTES else None

    def _most_seconds(self, operators: Iterable[PhysicalPlan]) -> float:
        """Work that one task may have.

        What reads from an object store may run on a cluster, where a task often has one core, and
        reading takes it as long again as computing.
        """
        infos = self._conditions.tables
        scans = (infos.get(node.table) for node in operators if isinstance(node, ScanExec))
        is_local = all(info is None or info.is_local for info in scans)
        return self._seconds if is_local else self._seconds / self._cores / _REMOTE_TIMES

    def _work(self, operators: Iterable[PhysicalPlan]) -> float:
        return work_seconds(operators, self._sizes.size)

    def _is_worth_sharing(self, part: PhysicalPlan) -> bool:
        """Whether a task gains by keeping the rows of a part that it needs twice."""
        rows, num_bytes = self._sizes.size(part)
        if (
            isinstance(part, FilterExec)
            and rows > _MAX_FILTER_SHARE * self._sizes.size(part.child)[0]
        ):
            return False  # an engine reads fewer rows of a scan by what it is joined with
        saved = self._work(walk(part)) - num_bytes * _KEPT_BYTE
        return saved >= _SHARED_SECONDS and num_bytes <= MOST_STATE_BYTES / 2

    def suits(self, operator: PhysicalPlan) -> bool:
        """Whether the stage of such a task may have an operator above what the task was made for.

        It would keep the task from using several cores, or from running on a task engine.
        """
        if not self._enabled or not _operator_in_any_order(operator):
            return False
        inputs = (StageInputExec(-1, "gather", child.columns) for child in operator.children)
        return self._is_native(operator.with_children(tuple(inputs)))

    def _is_native(self, plan: PhysicalPlan) -> bool:
        engines = (planner_engine(name) for name in self._engines)
        return any(engine.refusal(plan, self._conditions) is None for engine in engines)

    @cached_property
    def _repeated(self) -> Mapping[PhysicalPlan, Sequence[PhysicalPlan]]:
        """The parts that the query has more than once, each with those of the same rows."""
        groups = alike(self._query, lambda part: self._work(walk(part)) >= _REPEATED_SECONDS)
        pairs = [pair for nodes in groups for pair in itertools.permutations(nodes, 2)]
        same: dict[PhysicalPlan, list[PhysicalPlan]] = {}
        for one, other in pairs:
            if same_rows(one, other):
                same.setdefault(one, []).append(other)
        return same

    def _is_by_cores(self, node: PhysicalPlan) -> bool:
        """Whether all cores of a task read a table: of some formats one has one reader."""
        if not isinstance(node, ScanExec) or isinstance(node, SharedScanExec):
            return True
        info = self._conditions.tables.get(node.table)
        return info is not None and info.stats is not None and info.by_cores


def stage_cores(
    operators: Sequence[PhysicalPlan], branches: Sequence[Branch], size: Sizer, cores: int
) -> int:
    """Cores that the task of a stage may use.

    Args:
        operators: Those of its fragment.
        branches: What its tasks share out.
        size: Estimated rows and bytes of an operator.
        cores: What an option allows.
    """
    reads_all = any(isinstance(node, ScanExec) and node.read == "all" for node in operators)
    one_task = all(branch.kind == "single" for branch in branches)
    if not reads_all or not one_task or not in_any_order(operators):
        return 1
    return cores if work_seconds(operators, size) >= MIN_SECONDS else 1


def leaves_build_side(stage: Stage) -> bool:
    """Whether a task engine may make the hash table of the left side of a stage's joins.

    It may where joins only leave out rows of their left sides, which a plan has no operator for. Of
    other joins the planner knows better which side is smaller.
    """
    return stage.cores > 1 and _only_leave_out(walk(stage.fragment))


def _only_leave_out(operators: Iterable[PhysicalPlan]) -> bool:
    """Whether there are joins, of which each only leaves out rows of its left side."""
    joins = [node for node in operators if isinstance(node, HashJoinExec) and node.left_keys]
    return bool(joins) and all(join.kind in ("semi", "anti") for join in joins)


def in_any_order(operators: Iterable[PhysicalPlan]) -> bool:
    """Whether operators give the same rows in whatever order they take theirs."""
    return all(map(_operator_in_any_order, operators))


def _operator_in_any_order(node: PhysicalPlan) -> bool:
    if isinstance(node, LimitExec):
        return isinstance(node.child, SortExec)
    if not isinstance(node, (*_OPERATORS, ExchangeExec)) or isinstance(node, DedupScanExec):
        return False
    parts = [part for expr in node.expressions for part in walk(expr)]
    return not any(
        isinstance(part, ProjectCall)
        or (isinstance(part, AggregateCall) and not aggregate_in_any_order(part))
        for part in parts
    )


def aggregate_in_any_order(call: AggregateCall) -> bool:
    """Whether an aggregate is the same in whatever order, and in how many parts, rows come."""
    if call.order:
        return False
    if call.function in SUMS:
        return call.args[0].dtype.is_decimal or (
            call.function in ("sum", "try_sum") and call.args[0].dtype.is_integral
        )
    return call.function in ORDERLESS
