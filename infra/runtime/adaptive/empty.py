"""Finds what need not be read because another input of the stage has no rows.

t1 ⋈ nothing   ─▶  no row: t1 is not read
t1 ⟕ nothing   ─▶  t1 is read
sum(t1 ⋈ nothing) without a key  ─▶  one row, for which t1 is not read
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from stagecoach.infra.runtime.adaptive.decision import Decision
from stagecoach.planner.plan.physical import (
    AggregateExec,
    ExpandExec,
    FilterExec,
    GenerateExec,
    HashJoinExec,
    LimitExec,
    PhysicalPlan,
    ProjectionExec,
    RepartitionExec,
    ScanExec,
    SortExec,
    SortPreservingMergeExec,
    StageInputExec,
    UnionExec,
    WindowExec,
)
from stagecoach.planner.plan.stages import Stage
from stagecoach.planner.tree import walk

# Which sides of a join must be empty for it to have no row: any of them, or all of them.
_EMPTY_BY_ANY = {
    "inner": ("left", "right"),
    "cross": ("left", "right"),
    "semi": ("left", "right"),
    "left": ("left",),
    "anti": ("left",),
    "right": ("right",),
}
_ROW_BY_ROW = (
    FilterExec,
    ProjectionExec,
    GenerateExec,
    ExpandExec,
    SortExec,
    SortPreservingMergeExec,
    LimitExec,
    WindowExec,
    RepartitionExec,
)


@dataclass(frozen=True)
class Emptiness:
    """What follows from empty leaves.

    Args:
        no_rows: Whether the fragment gives no row.
        unread: Positions of leaves that are used only below operators that give no row, empty
            leaves included.
    """

    no_rows: bool
    unread: frozenset[int]


def find_empty(stage: Stage, empty: Collection[int]) -> Emptiness:
    """What the tasks of a stage need not read.

    Args:
        stage: Its fragment is looked at.
        empty: Positions in `Stage.leaves` of inputs without a row.
    """
    if not empty:
        return Emptiness(False, frozenset())
    positions = {id(leaf): i for i, leaf in enumerate(stage.leaves)}
    known: dict[int, bool] = {}
    for node in reversed(list(walk(stage.fragment))):  # children before parents
        known[id(node)] = _gives_no_row(node, known, positions, empty)
    needed = _needed(stage.fragment, known)
    unread = (i for i, leaf in enumerate(stage.leaves) if leaf not in needed)
    return Emptiness(known[id(stage.fragment)], frozenset(unread))


def _needed(fragment: PhysicalPlan, known: dict[int, bool]) -> set[PhysicalPlan]:
    """The leaves whose rows contribute to the result.

    A subplan that is used twice is computed once, from one input. That input is needed if either
    use can give rows.
    """
    needed: set[PhysicalPlan] = set()
    seen: set[int] = set()
    waiting = [fragment]
    while waiting:
        node = waiting.pop()
        if known[id(node)] or id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, ScanExec | StageInputExec):
            needed.add(node)
        waiting += node.children
    return needed


def empty_decision(stage: Stage, found: Emptiness, empty: Collection[int]) -> Decision | None:
    """What to say of leaves that are not read; None where only empty ones are not."""
    skipped = [name_of(stage, leaf) for leaf in sorted(found.unread - set(empty))]
    if not skipped:
        return None
    causes = [name_of(stage, leaf) for leaf in sorted(found.unread & set(empty))]
    what = "no row can come out: " if found.no_rows else ""
    return Decision(
        "empty",
        f"{what}{', '.join(causes)} {'is' if len(causes) == 1 else 'are'} empty, so "
        f"{', '.join(skipped)} {'is' if len(skipped) == 1 else 'are'} not read",
    )


def name_of(stage: Stage, leaf: int) -> str:
    """A leaf of a stage for people."""
    node = stage.leaves[leaf]
    return node.table if isinstance(node, ScanExec) else f"stage {node.stage_id}"


def _gives_no_row(
    node: PhysicalPlan,
    known: dict[int, bool],
    positions: dict[int, int],
    empty: Collection[int],
) -> bool:
    if isinstance(node, ScanExec | StageInputExec):
        return positions[id(node)] in empty
    if isinstance(node, HashJoinExec):
        sides = {"left": known[id(node.left)], "right": known[id(node.right)]}
        if node.kind == "full":
            return all(sides.values())
        return any(sides[side] for side in _EMPTY_BY_ANY[node.kind])
    if isinstance(node, AggregateExec):
        # Without a key there is a row for no rows, too.
        return bool(node.groups) and known[id(node.child)]
    if isinstance(node, UnionExec):
        return all(known[id(child)] for child in node.inputs)
    return isinstance(node, _ROW_BY_ROW) and known[id(node.children[0])]
