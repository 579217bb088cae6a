"""Choose the algorithm of each operator and the hashed side of each join.

The physical plan has no exchanges and is right on a single task. This pass rewrites no algebra.
"""

from __future__ import annotations

from stagecoach.planner.aggregates import AGGREGATES
from stagecoach.planner.errors import InternalPlanError
from stagecoach.planner.estimates import match_shares
from stagecoach.planner.lowering.sizes import PlanSizes
from stagecoach.planner.lowering.windows import lower_windows, stacked_windows
from stagecoach.planner.optimizer.context import RuleContext
from stagecoach.planner.plan.expressions import (
    AggregateCall,
    Call,
    Column,
    Expression,
    conjoin,
    conjuncts,
)
from stagecoach.planner.plan.logical import (
    Aggregate,
    DedupScan,
    Expand,
    Filter,
    Generate,
    Join,
    Limit,
    LogicalPlan,
    OneRow,
    Project,
    Range,
    Repartition,
    Scan,
    SharedScan,
    Sort,
    Union,
    Values,
    Window,
)
from stagecoach.planner.plan.physical import (
    AggregateExec,
    DedupScanExec,
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
    UnionExec,
    ValuesExec,
)


class Lowering:
    """Lowers plans and notes the sizes of their operators.

    Args:
        context: Options, estimates, fresh columns.
    """

    def __init__(self, context: RuleContext) -> None:
        self.context = context
        self.sizes = PlanSizes()

    def lower(self, plan: LogicalPlan) -> PhysicalPlan:
        """The physical form of one operator and all below it."""
        lowered = self._lower(plan)
        self.sizes.note_estimate(lowered, self.context.estimator.estimate(plan))
        return lowered

    def _lower(self, plan: LogicalPlan) -> PhysicalPlan:
        match plan:
            case DedupScan():
                return DedupScanExec(plan.table, plan.outputs, plan.source, key=plan.key)
            case SharedScan():
                return SharedScanExec(plan.table, plan.outputs, plan.source)
            case Scan():
                return ScanExec(plan.table, plan.outputs, plan.source)
            case OneRow():
                return OneRowExec()
            case Filter():
                return FilterExec(self.lower(plan.child), plan.predicate)
            case Project():
                return ProjectionExec(self.lower(plan.child), plan.items)
            case Aggregate():
                return self._aggregate(plan)
            case Limit():
                return self._limit(plan)
            case Repartition():
                return RepartitionExec(self.lower(plan.child), plan.count, plan.keys, plan.at_most)
            case Sort():
                return SortExec(self.lower(plan.child), plan.keys)
            case Union():
                return UnionExec(tuple(self.lower(c) for c in plan.inputs), plan.outputs)
            case Join():
                return self._join(plan)
            case Window():
                windows = stacked_windows(plan)
                child = self.lower(windows[-1].child)
                return lower_windows(windows, child, self.context, self.sizes)
            case Values():
                return ValuesExec(plan.rows, plan.outputs)
            case Range():
                return RangeExec(plan.outputs, plan.start, plan.stop, plan.step)
            case Expand():
                return ExpandExec(self.lower(plan.child), plan.projections, plan.outputs)
            case Generate():
                child = self.lower(plan.child)
                return GenerateExec(child, plan.generator, plan.outputs, plan.outer)
        raise InternalPlanError(f"{type(plan).__name__} has no physical form")

    def _limit(self, plan: Limit) -> PhysicalPlan:
        child = plan.child
        if isinstance(child, Sort) and plan.limit is not None:
            sorted_ = SortExec(self.lower(child.child), child.keys, plan.limit + plan.offset)
            if not plan.offset:
                return sorted_
            estimate = self.context.estimator.estimate(plan)
            self.sizes.set_size(sorted_, estimate.rows, estimate.num_bytes)
            return LimitExec(sorted_, plan.limit, plan.offset)
        return LimitExec(self.lower(child), plan.limit, plan.offset)

    def _aggregate(self, plan: Aggregate) -> PhysicalPlan:
        """Replace aggregates that have an arithmetic end, such as avg, by their parts."""
        child = self.lower(plan.child)
        parts: dict[AggregateCall, Column] = {}
        results: list[tuple[Column, Expression]] = []
        for column, node in plan.aggregates:
            function = AGGREGATES[node.function]
            states = None if function.in_one_step(node) else function.states(node)
            if states is None:
                parts.setdefault(node, column)
                results.append((column, parts[node].ref))
                continue
            columns = []
            for state in states:
                call = state.partial
                if node.distinct:
                    call = AggregateCall(call.dtype, call.function, call.args, True, call.where)
                if call not in parts:
                    parts[call] = self.context.column(call.function, call.dtype)
                columns.append(parts[call])
            results.append((column, function.finish(node, tuple(columns))))
        aggregates = tuple((c, e) for e, c in parts.items())
        single = AggregateExec(child, "single", plan.groups, aggregates)
        if aggregates == plan.aggregates:
            return single
        estimate = self.context.estimator.estimate(plan)
        self.sizes.note_estimate(single, estimate)
        return ProjectionExec(single, (*((c, c.ref) for c, _ in plan.groups), *results))

    def _join(self, plan: Join) -> PhysicalPlan:
        if plan.kind == "right":
            plan = Join(plan.right, plan.left, "left", plan.condition)
        left_keys, right_keys, null_safe, residual = _split_condition(plan)
        estimate = self.context.estimator.estimate
        small = estimate(plan.right).num_bytes <= self.context.options.broadcast_bytes
        broadcast = plan.kind != "full" and (not left_keys or small)
        join = HashJoinExec(
            left=self.lower(plan.left),
            right=self.lower(plan.right),
            kind="inner" if plan.kind == "cross" else plan.kind,
            left_keys=left_keys,
            right_keys=right_keys,
            residual=residual,
            broadcast=broadcast,
            null_safe=null_safe if any(null_safe) else (),
        )
        shares = match_shares(estimate(plan.left), estimate(plan.right), plan.condition)
        self.sizes.note_match_shares(join, shares)
        return join


def _split_condition(
    plan: Join,
) -> tuple[tuple[Expression, ...], tuple[Expression, ...], tuple[bool, ...], Expression]:
    """Left keys, right keys, whether NULL equals NULL for each, and what is left over."""
    keys: list[tuple[Expression, Expression, bool]] = []
    residual: list[Expression] = []
    for part in conjuncts(plan.condition):
        pair = _key_pair(part, plan)
        if pair is None:
            residual.append(part)
        else:
            keys.append((*pair, isinstance(part, Call) and part.function == "eq_null_safe"))
    left, right = tuple(k[0] for k in keys), tuple(k[1] for k in keys)
    return left, right, tuple(k[2] for k in keys), conjoin(residual)


def _key_pair(part: Expression, plan: Join) -> tuple[Expression, Expression] | None:
    """The left and the right operand of an equality between the sides of a join."""
    if not isinstance(part, Call) or part.function not in ("eq", "eq_null_safe"):
        return None
    if not part.args[0].dtype.is_atomic:
        return None
    for first, second in (part.args, part.args[::-1]):
        if not first.column_ids or not second.column_ids:
            return None
        if first.column_ids <= plan.left.column_ids and second.column_ids <= plan.right.column_ids:
            return first, second
    return None
