"""Merge two plans that compute the same rows, perhaps with other columns, into one plan.

Pruning leaves each place of a query the columns that it needs. So two parts may compute the same
rows and differ only in which columns they keep, and in the numbers of these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple, TypeVar

from stagecoach.planner.plan.expressions import (
    TRUE,
    AggregateCall,
    Column,
    ColumnRef,
    Expression,
    conjuncts,
    substitute,
)
from stagecoach.planner.plan.physical import (
    AggregateExec,
    ExchangeExec,
    FilterExec,
    HashJoinExec,
    PhysicalPlan,
    ProjectionExec,
    ScanExec,
)

E = TypeVar("E", bound=Expression)
NoteSize = Callable[[PhysicalPlan, PhysicalPlan], PhysicalPlan]
"""Remembers that a new operator is as large as another one, and returns the new one."""


class Merge(NamedTuple):
    """One plan for two: where the columns of the first and of the second are in it."""

    plan: PhysicalPlan
    first: dict[int, int]
    second: dict[int, int]


def same_rows(first: PhysicalPlan, second: PhysicalPlan) -> bool:
    """Whether two plans compute the same rows, if perhaps other columns of them."""
    return merge(first, second, lambda new, _: new) is not None


def merge(first: PhysicalPlan, second: PhysicalPlan, note_size: NoteSize) -> Merge | None:
    """A plan that computes the rows of both with the columns of both; None if they differ.

    Args:
        first: Its columns keep their numbers.
        second: The other plan.
        note_size: Called for each operator that is made.
    """
    first, first_names = _core(first)
    second, second_names = _core(second)
    found = _cores(first, second, note_size)
    if found is None:
        return None
    note_size(found.plan, first)
    return Merge(
        found.plan,
        {outer: found.first[inner] for outer, inner in first_names.items()},
        {outer: found.second[inner] for outer, inner in second_names.items()},
    )


def with_merged(
    plan: PhysicalPlan,
    first: PhysicalPlan,
    second: PhysicalPlan,
    merged: Merge,
    note_size: NoteSize,
) -> PhysicalPlan:
    """A plan in which one plan stands in both places, under the columns of each.

    Args:
        plan: Has the two parts.
        first: One part.
        second: The other.
        merged: What `merge` made of them.
        note_size: Called for each operator that is made.
    """
    for new, old in zip(merged.plan.children, first.children, strict=True):
        note_size(new, old)
    note_size(merged.plan, first)
    replacements: dict[PhysicalPlan, PhysicalPlan] = {
        old: note_size(_restored(merged.plan, old.columns, names), old)
        for old, names in ((first, merged.first), (second, merged.second))
    }
    return replaced(plan, replacements, note_size)


def replaced(
    plan: PhysicalPlan, replacements: Mapping[PhysicalPlan, PhysicalPlan], note_size: NoteSize
) -> PhysicalPlan:
    """The plan with some of its parts replaced by parts of the same columns."""
    if plan in replacements:
        return replacements[plan]
    children = tuple(replaced(child, replacements, note_size) for child in plan.children)
    new = plan.with_children(children)
    return plan if new is plan else note_size(new, plan)


def _restored(
    merged: PhysicalPlan, columns: tuple[Column, ...], names: Mapping[int, int]
) -> PhysicalPlan:
    """The merged plan under the columns of one of those that it replaces."""
    if merged.columns == columns:
        return merged
    return ProjectionExec(merged, tuple((c, _ref(c, names)) for c in columns))


def _ref(column: Column, names: Mapping[int, int]) -> ColumnRef:
    return ColumnRef(column.dtype, names[column.id], column.name)


def _core(plan: PhysicalPlan) -> tuple[PhysicalPlan, dict[int, int]]:
    """The plan below projections that only choose columns, and where the columns are in it."""
    names = {c.id: c.id for c in plan.columns}
    while isinstance(plan, ProjectionExec):
        below = {c.id: e.id for c, e in plan.items if isinstance(e, ColumnRef)}
        if len(below) < len(plan.items):
            break
        names = {outer: below[inner] for outer, inner in names.items()}
        plan = plan.child
    return plan, names


def _cores(first: PhysicalPlan, second: PhysicalPlan, note_size: NoteSize) -> Merge | None:
    if first is second:
        names = {c.id: c.id for c in first.columns}
        return Merge(first, names, dict(names))
    match first, second:
        case ScanExec(), ScanExec():
            return _scans(first, second)
        case FilterExec(), FilterExec():
            return _filters(first, second, note_size)
        case ProjectionExec(), ProjectionExec():
            return _projections(first, second, note_size)
        case AggregateExec(), AggregateExec():
            return _aggregates(first, second, note_size)
        case HashJoinExec(), HashJoinExec():
            return _joins(first, second, note_size)
        case ExchangeExec(), ExchangeExec():
            return _exchanges(first, second, note_size)
    return None


def _scans(first: ScanExec, second: ScanExec) -> Merge | None:
    if first.table != second.table or first.read != second.read:
        return None
    places = {name: c.id for c, name in zip(first.outputs, first.source, strict=True)}
    pairs = list(zip(second.outputs, second.source, strict=True))
    more = [(c, name) for c, name in pairs if name not in places]
    merged = replace(
        first,
        outputs=(*first.outputs, *(c for c, _ in more)),
        source=(*first.source, *(name for _, name in more)),
    )
    places.update({name: c.id for c, name in more})
    return Merge(
        merged if more else first,
        {c.id: c.id for c in first.outputs},
        {c.id: places[name] for c, name in pairs},
    )


def _renamed(expr: Expression, names: Mapping[int, int], plan: PhysicalPlan) -> Expression:
    columns = {c.id: c.ref for c in plan.columns}
    return substitute(expr, {old: columns[new] for old, new in names.items() if old != new})


def _filters(first: FilterExec, second: FilterExec, note_size: NoteSize) -> Merge | None:
    below = merge(first.child, second.child, note_size)
    if below is None:
        return None
    predicate = _renamed(first.predicate, below.first, below.plan)
    other = _renamed(second.predicate, below.second, below.plan)
    if set(conjuncts(predicate)) != set(conjuncts(other)):
        return None
    return below._replace(plan=replace(first, child=below.plan, predicate=predicate))


def _projections(
    first: ProjectionExec, second: ProjectionExec, note_size: NoteSize
) -> Merge | None:
    below = merge(first.child, second.child, note_size)
    if below is None:
        return None
    items = [(c, _renamed(e, below.first, below.plan)) for c, e in first.items]
    others = [(c, _renamed(e, below.second, below.plan)) for c, e in second.items]
    items, names = _united(items, others)
    return Merge(replace(first, child=below.plan, items=tuple(items)), _identity(first), names)


def _identity(plan: PhysicalPlan) -> dict[int, int]:
    return {c.id: c.id for c in plan.columns}


def _united(
    items: Iterable[tuple[Column, E]], more: Iterable[tuple[Column, E]]
) -> tuple[list[tuple[Column, E]], dict[int, int]]:
    """All items, equal ones once, and where the columns of `more` are among them."""
    united = list(items)
    known = {e: c for c, e in reversed(united)}
    names: dict[int, int] = {}
    for column, expr in more:
        if expr not in known:
            known[expr] = column
            united.append((column, expr))
        names[column.id] = known[expr].id
    return united, names


def _aggregates(first: AggregateExec, second: AggregateExec, note_size: NoteSize) -> Merge | None:
    below = merge(first.child, second.child, note_size)
    if below is None or first.mode != second.mode:
        return None
    groups = tuple((c, _renamed(e, below.first, below.plan)) for c, e in first.groups)
    others = tuple((c, _renamed(e, below.second, below.plan)) for c, e in second.groups)
    if {e for _, e in groups} != {e for _, e in others}:
        return None
    mine = _calls(first, below.first, below.plan)
    calls, call_names = _united(mine, _calls(second, below.second, below.plan))
    _, group_names = _united(groups, others)
    merged = replace(first, child=below.plan, groups=groups, aggregates=tuple(calls))
    return Merge(merged, _identity(first), {**group_names, **call_names})


def _calls(
    plan: AggregateExec, names: Mapping[int, int], below: PhysicalPlan
) -> list[tuple[Column, AggregateCall]]:
    renamed = ((c, _renamed(call, names, below)) for c, call in plan.aggregates)
    return [(c, call) for c, call in renamed if isinstance(call, AggregateCall)]


def _joins(first: HashJoinExec, second: HashJoinExec, note_size: NoteSize) -> Merge | None:
    same = replace(
        second,
        left=first.left,
        right=first.right,
        left_keys=first.left_keys,
        right_keys=first.right_keys,
        residual=first.residual,
        null_safe=first.null_safe,
    )
    if same != first:
        return None
    left = merge(first.left, second.left, note_size)
    right = merge(first.right, second.right, note_size)
    if left is None or right is None:
        return None
    if {c.id for c in left.plan.columns} & {c.id for c in right.plan.columns}:
        return None  # both sides read one exchange, and what told them apart is gone
    bare = replace(first, left=left.plan, right=right.plan)
    both = HashJoinExec(left.plan, right.plan, "inner", (), (), TRUE)  # sees all columns
    names = {**left.first, **right.first}
    others = {**left.second, **right.second}
    mine = _condition(first, names, both)
    if {*mine[0]} != {*_condition(second, others, both)[0]}:
        return None
    if set(conjuncts(mine[1])) != set(conjuncts(_condition(second, others, both)[1])):
        return None
    merged = replace(
        bare,
        left_keys=tuple(key for key, _, _ in mine[0]),
        right_keys=tuple(key for _, key, _ in mine[0]),
        residual=mine[1],
    )
    if first.kind in ("semi", "anti"):
        return Merge(merged, left.first, left.second)
    return Merge(merged, names, others)


def _condition(
    plan: HashJoinExec, names: Mapping[int, int], both: PhysicalPlan
) -> tuple[list[tuple[Expression, Expression, bool]], Expression]:
    """The key pairs and the residual of a join in the columns of the merged inputs."""
    keys = [
        (_renamed(a, names, both), _renamed(b, names, both), null_safe)
        for a, b, null_safe in plan.key_pairs
    ]
    return keys, _renamed(plan.residual, names, both)


def _exchanges(first: ExchangeExec, second: ExchangeExec, note_size: NoteSize) -> Merge | None:
    if first.kind != second.kind or first.num_partitions != second.num_partitions:
        return None
    below = merge(first.child, second.child, note_size)
    if below is None:
        return None
    keys = tuple(below.first[k] for k in first.keys)
    if keys != tuple(below.second[k] for k in second.keys):
        return None
    columns = {c.id: c for c in below.plan.columns}
    wanted = [below.first[c.id] for c in first.columns]
    wanted += [below.second[c.id] for c in second.columns]
    kept = tuple(columns[i] for i in dict.fromkeys(wanted))
    child = below.plan
    if kept != child.columns:
        child = ProjectionExec(child, tuple((c, c.ref) for c in kept))
    return below._replace(plan=replace(first, child=child, keys=keys))
