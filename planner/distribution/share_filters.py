"""Split a filter whose conditions include those of another one over the same table.

    Before:  filter a (t), filter a and b (t)
    After:   filter a (t), filter b (filter a (t))
    Never:   where conditions that might raise an error would be evaluated in another order.

Both then have a part of the same rows, which is computed once (`share_parts`).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace

from stagecoach.planner.distribution.merge_plans import replaced
from stagecoach.planner.distribution.share_parts import MAX_PAIRS
from stagecoach.planner.lowering.sizes import PlanSizes
from stagecoach.planner.optimizer.proofs import is_total
from stagecoach.planner.plan.expressions import conjoin, conjuncts, substitute
from stagecoach.planner.plan.physical import FilterExec, PhysicalPlan, ScanExec
from stagecoach.planner.tree import walk


def split_filters(
    plan: PhysicalPlan, is_worth: Callable[[PhysicalPlan], bool], sizes: PlanSizes
) -> PhysicalPlan:
    """The plan in which filters stand on those that have some of their conditions.

    Args:
        plan: Without exchanges.
        is_worth: Whether computing a part once saves more than keeping its rows costs.
        sizes: Knows the sizes of operators, and remembers those of new ones.
    """
    filters = [node for node in dict.fromkeys(walk(plan)) if isinstance(node, FilterExec)]
    split: dict[PhysicalPlan, PhysicalPlan] = {}
    for wide, narrow in itertools.islice(itertools.permutations(filters, 2), MAX_PAIRS):
        new = None if narrow in split else _split(wide, narrow, sizes)
        if new is not None and is_worth(new.child):
            sizes.note_size(wide, new.child)
            split[narrow] = new
    return replaced(plan, split, sizes.note_size) if split else plan


def _split(wide: FilterExec, narrow: FilterExec, sizes: PlanSizes) -> FilterExec | None:
    """The narrow filter over one with the conditions of the wide one; None if it lacks some."""
    scan, other = narrow.child, wide.child
    if not isinstance(scan, ScanExec) or not isinstance(other, ScanExec):
        return None
    if scan.table != other.table or scan.read != other.read or not is_total(narrow.predicate):
        return None
    places = {name: column.ref for column, name in zip(scan.outputs, scan.source, strict=True)}
    pairs = zip(other.outputs, other.source, strict=True)
    names = {column.id: places[name] for column, name in pairs if name in places}
    conditions = tuple(conjuncts(narrow.predicate))
    common = {substitute(condition, names) for condition in conjuncts(wide.predicate)}
    rest = tuple(condition for condition in conditions if condition not in common)
    if not rest or not common.issubset(conditions):
        return None
    kept = tuple(condition for condition in conditions if condition in common)
    below = FilterExec(scan, conjoin(kept))
    sizes.note_shared(below, wide, scan)
    new = replace(narrow, child=below, predicate=conjoin(rest))
    sizes.note_size(new, narrow)
    return new
