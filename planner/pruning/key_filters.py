"""Find the scans whose rows a finished input can filter.

    fact ⋈ (stage 3)  on fact.day = d        rows of `fact` whose day stage 3 does not have are
      │        └─ all rows are there         dropped by the join: files without such a day need
      └─ scan                                not be read

Only operators that treat the rows of each key independently may lie between the scan and the join:
their results for other keys must not change when the rows of one key are missing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from stagecoach.planner.optimizer.proofs import is_total
from stagecoach.planner.plan.expressions import Cast, Column, ColumnRef, Expression
from stagecoach.planner.plan.logical import NamedExpression
from stagecoach.planner.plan.physical import (
    AggregateExec,
    BloomProbeExec,
    DedupScanExec,
    ExpandExec,
    FilterExec,
    GenerateExec,
    HashJoinExec,
    LimitExec,
    PhysicalPlan,
    ProjectionExec,
    ScanExec,
    SortExec,
    SortPreservingMergeExec,
    StageInputExec,
    UnionExec,
    WindowExec,
)
from stagecoach.planner.plan.stages import Stage
from stagecoach.planner.tree import walk

_DROPS_LEFT = ("inner", "semi")  # joins without the left rows that have no partner
_KEEPS_LEFT = ("inner", "left", "semi", "anti")  # joins that look at each left row by itself
_KEEPS_RIGHT = ("inner", "right")


@dataclass(frozen=True)
class KeyFilter:
    """Rows of a scan count only if a column of a finished input has their key.

    Args:
        scan: Position in `Stage.leaves` of the scan.
        column: Position of the key in the scan's outputs.
        source: Position in `Stage.leaves` of the input.
        key: Position of the key in the input's outputs.
        null_safe: Whether NULL is a key like others.
    """

    scan: int
    column: int
    source: int
    key: int
    null_safe: bool


def key_filters(stage: Stage) -> tuple[KeyFilter, ...]:
    """All of a stage, each once, in the order of its joins; none where rows are left to chance."""
    if not stage.deterministic:
        return ()
    leaves = stage.leaves
    # A node that stands twice in a tree is read by two operators, of which one may need all rows.
    times = Counter(leaves)
    positions = {leaf: i for i, leaf in enumerate(leaves) if times[leaf] == 1}
    found: dict[KeyFilter, None] = {}
    for join in walk(stage.fragment):
        if not isinstance(join, HashJoinExec) or join.kind not in _DROPS_LEFT:
            continue
        for left, right, null_safe in join.key_pairs:
            probe, build = key_column(left), key_column(right)
            source = None if build is None else _finished(join.right, build)
            if probe is None or source is None or source[0] not in positions:
                continue
            for scan, column in scans_of(join.left, probe):
                if scan in positions:
                    place = positions[scan], column
                    input_ = positions[source[0]], source[1]
                    found[KeyFilter(*place, *input_, null_safe)] = None
    return tuple(found)


def key_column(expr: Expression) -> int | None:
    """The column that a join key is, perhaps in a wider type of exact numbers; None if another."""
    while isinstance(expr, Cast) and not expr.safe and is_total(expr):
        kinds = expr.dtype, expr.arg.dtype
        if not all(kind.is_integral or kind.is_decimal for kind in kinds):
            return None
        expr = expr.arg
    return expr.id if isinstance(expr, ColumnRef) else None


def scans_of(plan: PhysicalPlan, column: int) -> Iterator[tuple[ScanExec, int]]:
    """The scans that need not give rows of a key which is dropped above the plan anyway.

    Args:
        plan: What lies below the join.
        column: Number of the key among the plan's columns.

    Yields:
        Scans, each with the position of the key in its outputs.
    """
    stack: list[tuple[PhysicalPlan, int]] = [(plan, column)]
    while stack:
        node, name = stack.pop()
        match node:
            case DedupScanExec():  # rows of one key hide each other, whatever other columns are
                continue
            case ScanExec():
                yield node, _position(node.outputs, name)
            case UnionExec():
                place = _position(node.outputs, name)
                stack += [(child, child.columns[place].id) for child in node.inputs]
            case HashJoinExec():
                stack += _sides(node, name)
            case _:
                stack += _below(node, name)


def _sides(node: HashJoinExec, column: int) -> list[tuple[PhysicalPlan, int]]:
    """The side of a join that a column comes from, if the join keeps its rows apart."""
    if any(c.id == column for c in node.left.columns):
        return [(node.left, column)] if node.kind in _KEEPS_LEFT else []
    return [(node.right, column)] if node.kind in _KEEPS_RIGHT else []


def _below(node: PhysicalPlan, column: int) -> list[tuple[PhysicalPlan, int]]:
    """The input of an operator that keeps rows of different keys apart."""
    match node:
        case FilterExec():
            return [(node.child, column)]
        case BloomProbeExec():
            return [(node.left, column)]
        case SortExec() if node.fetch is None:
            return [(node.child, column)]
        case ProjectionExec():
            return _renamed(node.child, node.items, column)
        case AggregateExec():
            return _renamed(node.child, node.groups, column)
        case GenerateExec():
            return _kept(node.child, column)
        case WindowExec():
            keys = [{p.id for p in c.partition if isinstance(p, ColumnRef)} for _, c in node.calls]
            return _kept(node.child, column) if all(column in k for k in keys) else []
        case ExpandExec():
            place = _position(node.outputs, column)
            copies = {projection[place] for projection in node.projections}
            name = key_column(copies.pop()) if len(copies) == 1 else None
            return [] if name is None else [(node.child, name)]
    return []


def _finished(plan: PhysicalPlan, column: int) -> tuple[StageInputExec, int] | None:
    """The input, whole in every task, with all values that a column of the plan has, and more."""
    node, name = plan, column
    while not isinstance(node, StageInputExec):
        match node:
            case HashJoinExec():
                below = _sides(node, name)
            case LimitExec() | SortExec() | SortPreservingMergeExec():
                below = [(node.child, name)]
            case WindowExec():
                below = _kept(node.child, name)
            case _:
                below = _below(node, name)
        if not below:
            return None
        ((node, name),) = below
    return None if node.kind == "shuffle" else (node, _position(node.outputs, name))


def _renamed(
    child: PhysicalPlan, items: Iterable[NamedExpression], column: int
) -> list[tuple[PhysicalPlan, int]]:
    expr = next((expr for made, expr in items if made.id == column), None)
    name = None if expr is None else key_column(expr)
    return [] if name is None else [(child, name)]


def _kept(child: PhysicalPlan, column: int) -> list[tuple[PhysicalPlan, int]]:
    """The child where the column is one of its own."""
    return [(child, column)] if any(c.id == column for c in child.columns) else []


def _position(columns: tuple[Column, ...], column: int) -> int:
    return next(i for i, c in enumerate(columns) if c.id == column)
