"""How the rows of an operator are spread over tasks.

single      one task holds all rows
hash(keys)  rows with equal keys are in the same task; a key is a set of equal columns
any         rows are spread over tasks in no useful way
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal as OneOf

from stagecoach.planner.plan.expressions import ColumnRef
from stagecoach.planner.plan.logical import NamedExpression
from stagecoach.planner.plan.physical import (
    ExpandExec,
    HashJoinExec,
    PhysicalPlan,
)

KeySets = tuple[frozenset[int], ...]


@dataclass(frozen=True)
class Distribution:
    """How the rows of an operator are spread over tasks."""

    kind: OneOf["single", "hash", "any"]
    keys: KeySets = ()
    num_partitions: int = 1


SINGLE = Distribution("single")
ANY = Distribution("any")
Distributed = tuple[PhysicalPlan, Distribution]


def key_sets(ids: tuple[int, ...]) -> KeySets:
    """Keys of one column each."""
    return tuple(frozenset({i}) for i in ids)


def colocated(delivered: Distribution, groups: frozenset[int]) -> bool:
    """Whether all rows of a group are in one task."""
    return (
        delivered.kind == "hash"
        and bool(delivered.keys)
        and all(k & groups for k in delivered.keys)
    )


def alignment(
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


def renamed(delivered: Distribution, names: dict[int, int]) -> Distribution:
    """What is delivered under other column numbers."""
    if delivered.kind != "hash":
        return delivered
    keys = tuple(frozenset(names[i] for i in key if i in names) for key in delivered.keys)
    return replace(delivered, keys=keys) if all(keys) else ANY


def projected(delivered: Distribution, items: tuple[NamedExpression, ...]) -> Distribution:
    """What is delivered above a projection."""
    if delivered.kind != "hash":
        return delivered
    names: dict[int, set[int]] = {}
    for column, expr in items:
        if isinstance(expr, ColumnRef):
            names.setdefault(expr.id, set()).add(column.id)
    keys = tuple(frozenset().union(*(names.get(i, set()) for i in key)) for key in delivered.keys)
    return replace(delivered, keys=keys) if all(keys) else ANY


def expanded(delivered: Distribution, plan: ExpandExec) -> Distribution:
    """What copies of rows deliver: columns that all copies share stay where they are."""
    columns = zip(*plan.projections, strict=True)
    shared = [
        (column, options[0])
        for column, options in zip(plan.outputs, columns, strict=True)
        if len(set(options)) == 1
    ]
    return projected(delivered, tuple(shared))


def kept_by_join(left: Distribution, plan: HashJoinExec) -> Distribution:
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
