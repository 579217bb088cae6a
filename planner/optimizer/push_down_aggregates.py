"""Rule: aggregate rows before a join moves or multiplies them.

Source: Yan and Larson, "Eager Aggregation and Lazy Aggregation", VLDB 1995 (eager group-by and
eager count).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from stagecoach.planner.aggregates import AGGREGATES, splits
from stagecoach.planner.estimates import Estimate, match_shares
from stagecoach.planner.optimizer.context import RuleContext
from stagecoach.planner.optimizer.convert_outer_joins import null_rejected
from stagecoach.planner.optimizer.proofs import is_total, is_unique, joined_columns
from stagecoach.planner.plan.expressions import (
    AggregateCall,
    Call,
    Column,
    ColumnRef,
    Expression,
    Literal,
    call,
    conjuncts,
    substitute,
)
from stagecoach.planner.plan.logical import (
    Aggregate,
    Filter,
    Join,
    LogicalPlan,
    NamedExpression,
    Project,
    Scan,
)
from stagecoach.planner.tree import transform_up, walk
from stagecoach.planner.types import BIGINT

MAX_SHARE = 0.25  # of the rows that may be left for the join, lest the detour costs more
MIN_ROWS = 100_000  # fewer rows are joined as they are
_MULTIPLIES = 4.0  # times the rows of its larger side that a join gives, to be called large
_KINDS = ("inner", "left", "right", "semi", "anti")
# Aggregates of aggregates are the same, whatever the order of the rows and however often a join
# repeats a group: it repeats each of its rows alike.
_SPLITTABLE = frozenset(
    ("count", "sum", "avg", "min", "max", "bool_and", "bool_or", "bit_and", "bit_or", "bit_xor")
)


def push_down_aggregates(plan: LogicalPlan, context: RuleContext) -> LogicalPlan:
    """Aggregate one side of a join by all of its columns that anything above reads, then merge.

    Before:  Aggregate[gby c.city, sum(o.total)] <- Inner[o.customer = c.id](o, c)
    After:   Aggregate[gby c.city, sum(s)] <-
             Inner[o.customer = c.id](Aggregate[gby o.customer, sum(o.total) AS s] <- o, c)
    Where all final groups are of one partial group at most, there is nothing to merge.
    Only where the estimates say that a quarter of the rows is left, and these are shuffled for the
    join or multiplied by it. How many are left depends on the number of tasks, so
    `optimize_for_one_task` applies the rule again.
    Never:   for DISTINCT, for aggregates of both sides or of the order of rows; where an argument
    or a condition may raise an error for a row that the join drops; below a full join.
    """
    return transform_up(plan, lambda node: _pushed(node, context))


def _pushed(node: LogicalPlan, context: RuleContext) -> LogicalPlan:
    if not isinstance(node, Aggregate) or not node.aggregates:
        return node
    if not all(_is_splittable(e) for _, e in node.aggregates):
        return node
    opened = _opened(node)
    if opened is None or not isinstance(opened.child, Join | Filter):
        return node
    read = frozenset[int]().union(*(e.column_ids for _, e in opened.aggregates))
    best: tuple[float, _Place, _Partial] | None = None
    for place in _places(opened.child, read, (), (), False):
        partial = _partial(opened, place, context)
        gain = None if partial is None else _gain(opened, place, partial.plan, context)
        if partial is not None and gain is not None and (best is None or gain > best[0]):
            best = (gain, place, partial)
    if best is None:
        return node
    _, place, partial = best
    child = _replaced(opened.child, place.path, partial.plan, context)
    return _merged(opened, child, partial, context)


def _is_splittable(node: AggregateCall) -> bool:
    if node.function not in _SPLITTABLE or not splits(node) or node.order:
        return False
    # A sum of rows without a partner must not overflow where that of the joined ones does not.
    exact = not node.args or not node.args[0].dtype.is_decimal or is_total(node)
    return exact and all(is_total(operand) for operand in node.children)


def _opened(node: Aggregate) -> Aggregate | None:
    """The aggregate with the projections below it written into its expressions."""
    while isinstance(node.child, Project):
        project = node.child
        if not all(is_total(e) for e in project.expressions):
            return None
        items = {c.id: e for c, e in project.items}
        expressions = tuple(substitute(e, items) for e in node.expressions)
        moved = node.with_expressions(expressions)
        assert isinstance(moved, Aggregate)
        node = replace(moved, child=project.child)
    return node


# ---------------------------------------------------------------- where


@dataclass(frozen=True)
class _Place:
    """A side of a join below which a partial aggregate may go.

    Args:
        plan: The side.
        join: The join.
        path: The way from the aggregate's input to the side, as positions of children.
        conditions: What joins and filters on that way ask of the rows.
        padded: Whether a join on the way gives rows in which all columns of the side are NULL.
    """

    plan: LogicalPlan
    join: Join
    path: tuple[int, ...]
    conditions: tuple[Expression, ...]
    padded: bool


def _places(
    plan: LogicalPlan,
    read: frozenset[int],
    path: tuple[int, ...],
    conditions: tuple[Expression, ...],
    padded: bool,
) -> Iterator[_Place]:
    """The sides of all joins below that have all columns that the aggregates read."""
    if isinstance(plan, Filter) and is_total(plan.predicate):
        yield from _places(plan.child, read, (*path, 0), (*conditions, plan.predicate), padded)
    if not isinstance(plan, Join) or plan.kind not in _KINDS or not is_total(plan.condition):
        return
    sides = plan.children[:1] if plan.kind in ("semi", "anti") else plan.children
    for position, side in enumerate(sides):
        if read <= side.column_ids:
            pads = padded or (plan.kind, position) in (("left", 1), ("right", 0))
            way = ((*path, position), (*conditions, plan.condition), pads)
            yield _Place(side, plan, *way)
            yield from _places(side, read, *way)


# ---------------------------------------------------------------- what


@dataclass(frozen=True)
class _Merge:
    """How one aggregate is made of partial ones.

    Args:
        states: The merging calls.
        arguments: Their arguments: what a group that needs no merging has.
        counts: Positions of the states that are counts.
    """

    states: tuple[AggregateCall, ...]
    arguments: tuple[Expression, ...]
    counts: frozenset[int]


@dataclass(frozen=True)
class _Partial:
    """A partial aggregate and what is left to do above.

    Args:
        plan: The partial aggregate.
        groups: Group expressions of the final one.
        merges: How each of its aggregates is made.
        padded: As in `_Place`.
    """

    plan: Aggregate
    groups: tuple[NamedExpression, ...]
    merges: tuple[_Merge, ...]
    padded: bool


def _partial(node: Aggregate, place: _Place, context: RuleContext) -> _Partial | None:
    """The partial aggregate at a place; None where it would not have the same meaning."""
    ids = place.plan.column_ids
    if place.padded and not all(_ignores_padding(e) for _, e in node.aggregates):
        return None
    computed: dict[Expression, Column] = {}
    groups: list[NamedExpression] = []
    kept = frozenset[int]().union(*(e.column_ids for e in place.conditions))
    for column, expr in node.groups:
        if _moves(expr, ids) and not place.padded:
            if expr not in computed:
                computed[expr] = context.column(column.name, expr.dtype)
            groups.append((column, computed[expr].ref))
        else:
            kept |= expr.column_ids
            groups.append((column, expr))
    keys = [(c, c.ref) for c in place.plan.columns if c.id in kept]
    below: tuple[NamedExpression, ...] = (*keys, *((c, e) for e, c in computed.items()))
    # A group shows one of its values: zeros of both signs, and NaN, are told apart by some uses.
    if not below or not all(c.dtype.is_atomic and not c.dtype.is_floating for c, _ in below):
        return None
    states: dict[AggregateCall, Column] = {}
    merges = tuple(_merge(e, states, place.padded, context) for _, e in node.aggregates)
    calls = tuple((c, e) for e, c in states.items())
    return _Partial(Aggregate(place.plan, below, calls), tuple(groups), merges, place.padded)


def _moves(expr: Expression, ids: frozenset[int]) -> bool:
    """Whether a group expression is computed below rather than its columns be kept."""
    computed = not isinstance(expr, ColumnRef) and bool(expr.column_ids)
    return computed and expr.column_ids <= ids and is_total(expr)


def _ignores_padding(node: AggregateCall) -> bool:
    """Whether a row of NULLs is nothing to an aggregate, or one more row to a count of all rows."""
    if node.function == "count" and not node.args:
        return node.where is None
    # IS NOT NULL is what `null_rejected` looks for in a condition; as a value it is never NULL.
    return any(
        bool(null_rejected(arg)) and not (isinstance(arg, Call) and arg.function == "is_not_null")
        for arg in node.args
    )


def _merge(
    node: AggregateCall, known: dict[AggregateCall, Column], padded: bool, context: RuleContext
) -> _Merge:
    states = AGGREGATES[node.function].states(node)
    assert states is not None  # `splits` looked
    merging: list[AggregateCall] = []
    arguments: list[Expression] = []
    counts = set()
    for position, state in enumerate(states):
        partial = state.partial
        if partial not in known:
            known[partial] = context.column(partial.function, partial.dtype)
        argument: Expression = known[partial].ref
        if partial.function == "count":
            counts.add(position)
            if padded and not partial.args:  # the row of NULLs itself counts
                argument = call("coalesce", BIGINT, argument, Literal(BIGINT, 1))
        arguments.append(argument)
        merging.append(AggregateCall(partial.dtype, state.merge, (argument,)))
    return _Merge(tuple(merging), tuple(arguments), frozenset(counts))


def _merged(
    node: Aggregate, child: LogicalPlan, partial: _Partial, context: RuleContext
) -> LogicalPlan:
    """The final aggregate, and what is computed from its parts."""
    names = [e for _, e in partial.groups if isinstance(e, ColumnRef)]
    keys = frozenset(ref.id for ref in names)
    whole = bool(names) and len(names) == len(partial.groups) and is_unique(child, keys)
    # Of no rows, or of rows of NULLs only, a count is 0 and a sum of counts NULL.
    may_be_null = partial.padded or not node.groups
    finals: dict[AggregateCall, Column] = {}
    items: list[NamedExpression] = []
    for (column, original), merge in zip(node.aggregates, partial.merges, strict=True):
        parts: list[Column] = []
        values: dict[int, Expression] = {}
        for position, (state, argument) in enumerate(
            zip(merge.states, merge.arguments, strict=True)
        ):
            if state not in finals:
                finals[state] = context.column(state.function, state.dtype)
            part = finals[state]
            value: Expression = argument if whole else part.ref
            if position in merge.counts and may_be_null:
                value = call("coalesce", BIGINT, value, Literal(BIGINT, 0))
            values[part.id] = value
            parts.append(part)
        finish = AGGREGATES[original.function].finish(original, tuple(parts))
        items.append((column, substitute(finish, values)))
    if whole:
        return Project(child, (*partial.groups, *items))
    final = Aggregate(child, partial.groups, tuple((c, e) for e, c in finals.items()))
    return _named(final, items)


def _named(final: Aggregate, items: list[NamedExpression]) -> LogicalPlan:
    """The aggregate under the columns that were asked for, without a projection if it can be."""
    wanted = {e.id: c for c, e in items if isinstance(e, ColumnRef)}
    if len(wanted) == len(items) == len(final.aggregates):
        calls = tuple((wanted[c.id], e) for c, e in final.aggregates)
        return replace(final, aggregates=calls)
    return Project(final, (*((c, c.ref) for c, _ in final.groups), *items))


def _replaced(
    plan: LogicalPlan, path: tuple[int, ...], new: LogicalPlan, context: RuleContext
) -> LogicalPlan:
    """The plan with another operator at the end of a path; the smaller input of a join right."""
    if not path:
        return new
    children = list(plan.children)
    children[path[0]] = _replaced(children[path[0]], path[1:], new, context)
    if isinstance(plan, Join) and plan.kind == "inner":
        left, right = (context.estimator.estimate(c).num_bytes for c in children)
        if left < right:
            children.reverse()
    return plan.with_children(tuple(children))


# ---------------------------------------------------------------- whether it pays


def _gain(node: Aggregate, place: _Place, partial: Aggregate, context: RuleContext) -> float | None:
    """Estimated bytes that the join need not be given; None where it does not pay."""
    join, position = place.join, place.path[-1]
    estimate = context.estimator.estimate
    below, after = estimate(place.plan), estimate(partial)
    if below.rows < MIN_ROWS:
        return None
    sent = _rows_sent(place.plan, below.rows, after.rows, context)
    left, right = estimate(join.left), estimate(join.right)
    # Columns that only filters below the join read will not be moved.
    used = frozenset[int]().union(*(e.column_ids for e in (*node.expressions, *place.conditions)))
    kept = 1.0
    if estimate(join).rows < _MULTIPLIES * max(left.rows, right.rows):
        build = left if join.kind == "right" else right
        small = build.rows * _row_bytes(build, used) <= context.options.broadcast_bytes
        if small or not _is_hashed(join):
            return None
        if join.kind in ("inner", "semi") or place.padded:
            # What the join drops need not be aggregated: the other side's keys may filter it.
            kept = match_shares(left, right, join.condition)[position]
    if sent > MAX_SHARE * kept * below.rows:
        return None
    return kept * below.rows * _row_bytes(below, used) - sent * after.row_bytes


def _row_bytes(side: Estimate, used: frozenset[int]) -> float:
    return 1.0 + sum(column.width for i, column in side.columns.items() if i in used)


def _is_hashed(join: Join) -> bool:
    return any(
        isinstance(part, Call) and part.function in ("eq", "eq_null_safe")
        for part in conjuncts(join.condition)
    ) and bool(joined_columns(join, join.left))


def _rows_sent(plan: LogicalPlan, rows: float, groups: float, context: RuleContext) -> float:
    """Partial groups of all tasks together.

    A task that draws `n` of the rows meets `groups * (1 - exp(-n / groups))` of the groups: many
    groups that few rows of a task have each are no fewer rows to send.
    """
    if context.one_task:
        return min(rows, groups)
    stored = [context.estimator.stored_bytes(n.table) for n in walk(plan) if isinstance(n, Scan)]
    tasks = max(math.ceil(max(stored, default=0) / context.options.partition_bytes), 1)
    each = rows / tasks
    return min(rows, tasks * groups * -math.expm1(-each / max(groups, 1.0)))
