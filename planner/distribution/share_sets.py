"""Compute grouping sets from partial groups instead of rows.

Grouping by all keys first reads the rows once instead of once per set, and usually leaves few
groups to copy. Source of the idea: Gray et al., "Data Cube", 1997.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from stagecoach.planner.aggregates import AGGREGATES
from stagecoach.planner.plan.expressions import (
    AggregateCall,
    Column,
    ColumnRef,
    Expression,
    Literal,
    substitute_operands,
)
from stagecoach.planner.plan.physical import AggregateExec, ExpandExec, PhysicalPlan

NewColumn = Callable[[Column], Column]

MAX_SHARE = 0.5  # of the rows that the groups of all sets may be, for the detour to pay


@dataclass(frozen=True)
class _Copies:
    """Copies of rows, column by column.

    Args:
        shared: Value of the columns that are the same in all copies, by number.
        keys: Value of the columns that are a key in some copies and constant in the others.
        constant: Numbers of the columns that are constant in each copy.
    """

    shared: dict[int, Expression]
    keys: dict[int, Expression]
    constant: frozenset[int]


def share_sets(partial: AggregateExec, new_column: NewColumn) -> AggregateExec | None:
    """The partial aggregate over the groups of all keys; None where its states do not allow it.

    Before:  Partial[a, b, set: sum(v)] <- Expand[(a, b, 0), (a, NULL, 1)] <- t
    After:   Partial[a, b, set: sum(s)] <- Expand[(a, b, 0), (a, NULL, 1)]
             <- Partial[a, b: sum(v) AS s] <- t
    Never:   where an aggregate reads a column that differs between the copies.

    Args:
        partial: A partial aggregate over `ExpandExec`.
        new_column: A column like another one under a new number.
    """
    expand = partial.child
    if not isinstance(expand, ExpandExec) or len(expand.projections) < 2:
        return None
    copies = _copies(expand)
    groups = [e for _, e in partial.groups]
    refs = [e for e in groups if isinstance(e, ColumnRef)]
    known = copies.shared.keys() | copies.keys.keys() | copies.constant
    if len(refs) < len(groups) or not {r.id for r in refs} <= known:
        return None
    if any(not call.column_ids <= copies.shared.keys() for _, call in partial.aggregates):
        return None
    finest = {
        ref.id: new_column(Column(ref.id, ref.name, ref.dtype))
        for ref in refs
        if ref.id not in copies.constant
    }
    if not finest:  # without keys an aggregate of no rows would be a row
        return None
    below = _finest(partial, expand.child, copies, finest, new_column)
    states = [column for column, _ in below.aggregates]
    again = _again(expand, finest, below, {r.id for r in refs})
    merges = []
    for (column, call), state in zip(partial.aggregates, states, strict=True):
        found = AGGREGATES[call.function].states(call) or ()
        if len(found) != 1:
            return None
        merges.append((column, AggregateCall(call.dtype, found[0].merge, (state.ref,))))
    return AggregateExec(again, "partial", partial.groups, tuple(merges))


def _copies(expand: ExpandExec) -> _Copies:
    shared: dict[int, Expression] = {}
    keys: dict[int, Expression] = {}
    constant: set[int] = set()
    for column, options in zip(expand.outputs, zip(*expand.projections, strict=True), strict=True):
        different = set(options)
        values = [e for e in different if not isinstance(e, Literal)]
        if not values:
            constant.add(column.id)
        elif len(different) == 1:
            shared[column.id] = values[0]
        elif len(values) == 1:
            keys[column.id] = values[0]
    return _Copies(shared, keys, frozenset(constant))


def _finest(
    partial: AggregateExec,
    child: PhysicalPlan,
    copies: _Copies,
    finest: dict[int, Column],
    new_column: NewColumn,
) -> AggregateExec:
    values = copies.shared | copies.keys
    groups = tuple((column, values[i]) for i, column in finest.items())
    calls = []
    for column, call in partial.aggregates:
        calls.append((new_column(column), substitute_operands(call, copies.shared)))
    return AggregateExec(child, "partial", groups, tuple(calls))


def _again(
    expand: ExpandExec, finest: dict[int, Column], below: AggregateExec, used: set[int]
) -> ExpandExec:
    """The copies of the groups: keys and constants as before, then the states."""
    kept = [i for i, c in enumerate(expand.outputs) if c.id in used]
    states = tuple(c for c, _ in below.aggregates)
    projections = []
    for row in expand.projections:
        items: list[Expression] = []
        for i in kept:
            is_literal = isinstance(row[i], Literal)
            items.append(row[i] if is_literal else finest[expand.outputs[i].id].ref)
        projections.append((*items, *(s.ref for s in states)))
    outputs = (*(expand.outputs[i] for i in kept), *states)
    return ExpandExec(below, tuple(projections), outputs)
