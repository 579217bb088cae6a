"""Rule: apply predicates on a join key to the other side's key too."""

from __future__ import annotations

from dataclasses import replace

from stagecoach.planner.functions.nested_rules import has_kind
from stagecoach.planner.optimizer.constraints import Constraints
from stagecoach.planner.optimizer.context import RuleContext
from stagecoach.planner.optimizer.join_groups import EqualColumns
from stagecoach.planner.optimizer.proofs import is_total
from stagecoach.planner.optimizer.push_down_filters import push_down_filters
from stagecoach.planner.plan.expressions import Expression, conjuncts, substitute
from stagecoach.planner.plan.logical import Join, LogicalPlan
from stagecoach.planner.plan.rewriting import filtered
from stagecoach.planner.tree import transform_up


def derive_predicates(plan: LogicalPlan, context: RuleContext) -> LogicalPlan:
    """Copy predicates on one column to all columns that join equalities make equal to it.

    Before:  Inner[a.k = b.k](Filter[k = 5] <- a, b)
    After:   Inner[a.k = b.k](Filter[k = 5] <- a, Filter[k = 5] <- b)
    Of an outer join only the side that may be missing gains a filter.
    Never:   for floating point keys, whose equal values (0.0 and -0.0) functions tell apart; for
    predicates that may raise an error; for equalities of computed keys.
    """
    known = Constraints()
    new = transform_up(plan, lambda node: _derive(node, known) if isinstance(node, Join) else node)
    return plan if new is plan else push_down_filters(new, context)


def _derive(node: Join, known: Constraints) -> LogicalPlan:
    if node.kind == "full" or not any(conjuncts(node.condition)):
        return node
    left, right = known.of(node.left), known.of(node.right)
    equal = EqualColumns([*left, *right, *conjuncts(node.condition)])
    to_left = _missing(node.left, left, right, equal) if node.kind in _TO_LEFT else []
    to_right = _missing(node.right, right, left, equal) if node.kind in _TO_RIGHT else []
    if not to_left and not to_right:
        return node
    return replace(node, left=filtered(node.left, to_left), right=filtered(node.right, to_right))


# Sides of which rows without a partner do not matter.
_TO_LEFT = ("inner", "cross", "semi", "right")
_TO_RIGHT = ("inner", "cross", "semi", "left", "anti")


def _missing(
    side: LogicalPlan,
    known: tuple[Expression, ...],
    others: tuple[Expression, ...],
    equal: EqualColumns,
) -> list[Expression]:
    """What the other side's predicates say of this side's columns and is not known yet."""
    found: dict[Expression, None] = {}
    members = {ref.id: group for group in equal.classes() for ref in group}
    already = frozenset(known)
    for predicate in others:
        if len(predicate.column_ids) != 1 or not is_total(predicate):
            continue
        (source,) = predicate.column_ids
        for target in members.get(source, ()):
            if target.id in side.column_ids and not has_kind(target.dtype, "float", "double"):
                derived = substitute(predicate, {source: target})
                if derived not in already:
                    found[derived] = None
    return list(found)
