"""Drop groups in the tasks that read their rows, where no other task has rows of them.

    before:  Filter(s > 300) <- Aggregate(final) <- Exchange <- Aggregate(partial)
    after:   Filter(s > 300) <- Aggregate(final) <- Exchange <-
             Filter(s > 300 or not complete_in_task(k)) <- Aggregate(partial)

Many tables are stored in the order of a key, such as a date or an order number, and then the row
groups of a task have a range of keys for themselves. Which range it is, the task is told when the
stage starts (`stagecoach.infra.runtime.planning.complete_groups`). A task that is told nothing
keeps all groups.
"""

from __future__ import annotations

from stagecoach.planner.distribution.merge_plans import merge
from stagecoach.planner.lowering.sizes import PlanSizes
from stagecoach.planner.optimizer.context import RuleContext
from stagecoach.planner.plan.early_filters import COMPLETE, divided_column
from stagecoach.planner.plan.expressions import (
    Call,
    ColumnRef,
    Expression,
    Literal,
    call,
    conjoin,
    conjuncts,
)
from stagecoach.planner.plan.physical import (
    AggregateExec,
    ExchangeExec,
    FilterExec,
    PhysicalPlan,
)
from stagecoach.planner.tree import walk
from stagecoach.planner.types import BOOLEAN

MIN_BYTES = 8 << 20
"""Estimated bytes of the groups of all tasks below which nothing is dropped."""
_MOST_KEPT = 0.5  # of the groups, by the estimate, from which dropping the others is not worth it

_KINDS = ("tinyint", "smallint", "int", "bigint")
_COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
_SAME_FOR_ONE_STATE = ("sum", "min", "max")


def drop_complete_groups(
    plan: PhysicalPlan, sizes: PlanSizes, context: RuleContext
) -> PhysicalPlan:
    """The plan in which partial aggregates drop complete groups that a filter above them refuses.

    Never: where another operator reads the same exchange, or where the tasks of an incremental
    stage are taken over by a later run, for which other tasks have other ranges.

    Args:
        plan: A plan with exchanges.
        sizes: Knows the sizes of operators.
        context: Options.
    """
    if context.options.incremental:
        return plan
    exchanges = [node for node in walk(plan) if isinstance(node, ExchangeExec)]

    def visit(node: PhysicalPlan) -> PhysicalPlan:
        if isinstance(node, FilterExec):
            node = _with_early_filter(node, exchanges, sizes)
        return sizes.with_children(node, tuple(map(visit, node.children)))

    return visit(plan)


def _with_early_filter(
    node: FilterExec, exchanges: list[ExchangeExec], sizes: PlanSizes
) -> FilterExec:
    final = node.child
    if not isinstance(final, AggregateExec) or final.mode != "final":
        return node
    exchange = final.child
    if not isinstance(exchange, ExchangeExec):
        return node
    partial = exchange.child
    if not isinstance(partial, AggregateExec) or partial.mode != "partial":
        return node
    (rows, _), (kept, _) = sizes.size(final), sizes.size(node)
    if sizes.size(partial)[1] < MIN_BYTES or kept > rows * _MOST_KEPT:
        return node
    key = _clustered_key(partial, sizes)
    refused = _on_states(node.predicate, final)
    if key is None or refused is None or _is_read_elsewhere(exchange, exchanges, sizes):
        return node
    complete = call(COMPLETE, BOOLEAN, key)
    predicate = call("or", BOOLEAN, refused, call("not", BOOLEAN, complete))
    early = sizes.note_size(FilterExec(partial, predicate), partial)
    moved = sizes.note_size(exchange.with_children((early,)), exchange)
    merged = sizes.note_size(final.with_children((moved,)), final)
    result = node.with_children((merged,))
    sizes.note_size(result, node)
    return result


def _is_read_elsewhere(
    exchange: ExchangeExec, exchanges: list[ExchangeExec], sizes: PlanSizes
) -> bool:
    """Whether another operator reads the same rows, which one stage computes for both."""
    others = [other for other in exchanges if other is not exchange]
    return len(others) < len(exchanges) - 1 or any(
        merge(exchange, other, sizes.note_size) is not None for other in others
    )


def _clustered_key(partial: AggregateExec, sizes: PlanSizes) -> ColumnRef | None:
    """The key with the most values of those that may be sorted in the files, or None."""
    found = [
        (sizes.distinct(partial.child, expression.column_ids), -place, column.ref)
        for place, (column, expression) in enumerate(partial.groups)
        if column.dtype.kind in _KINDS and divided_column(partial.child, expression) is not None
    ]
    return max(found)[2] if found else None


def _on_states(predicate: Expression, final: AggregateExec) -> Expression | None:
    """What of a predicate holds for the one state of a complete group, over the states; or None.

    Only comparisons with constants: they raise no error, and groups that are not complete are
    compared as well.
    """
    states: dict[int, ColumnRef] = {}
    for column, merging in final.aggregates:
        plain = not merging.distinct and merging.where is None and len(merging.args) == 1
        if plain and merging.function in _SAME_FOR_ONE_STATE:
            (state,) = merging.args
            if isinstance(state, ColumnRef) and state.dtype == column.dtype:
                states[column.id] = state
    parts = (_part_on_states(part, states) for part in conjuncts(predicate))
    known = [part for part in parts if part is not None]
    return conjoin(known) if known else None


def _part_on_states(part: Expression, states: dict[int, ColumnRef]) -> Expression | None:
    if not isinstance(part, Call) or part.function not in _COMPARISONS:
        return None
    operands: list[Expression] = []
    for operand in part.args:
        if isinstance(operand, ColumnRef):
            if operand.id not in states:
                return None
            operands.append(states[operand.id])
        elif isinstance(operand, Literal):
            operands.append(operand)
        else:
            return None
    return part.with_children(tuple(operands))
