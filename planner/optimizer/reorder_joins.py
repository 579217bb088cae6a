"""Rule: the order of inner joins, from estimated sizes."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

from planner.estimates import Estimate, joined
from planner.expressions import TRUE, Expression, conjoin, conjuncts
from planner.logical import Filter, Join, LogicalPlan
from planner.optimizer.context import RuleContext

MAX_EXHAUSTIVE = 10


@dataclass(frozen=True)
class _Candidate:
    """A join tree over some of the relations."""

    plan: LogicalPlan
    estimate: Estimate
    cost: float


def reorder_joins(plan: LogicalPlan, context: RuleContext) -> LogicalPlan:
    """Choose the cheapest order for each group of inner joins, the smaller input on the right.

    Exhaustive over connected subsets up to ten relations (dynamic programming over subsets,
    Moerkotte and Neumann 2006), greedy beyond. Cost: rows that each join reads (twice for the
    side that is hashed) and gives. Cross products are taken only where nothing connects.
    Before:  Inner(Inner(customer, lineitem: no key), orders)
    After:   Inner(lineitem, Inner(orders, customer))
    """
    if isinstance(plan, Join) and plan.kind in ("inner", "cross"):
        relations, predicates = _flatten(plan)
        return _Order([reorder_joins(r, context) for r in relations], predicates, context).best()
    return plan.with_children(tuple(reorder_joins(child, context) for child in plan.children))


def _flatten(plan: LogicalPlan) -> tuple[list[LogicalPlan], list[Expression]]:
    relations: list[LogicalPlan] = []
    predicates: list[Expression] = []
    stack = [plan]
    while stack:
        node = stack.pop()
        if isinstance(node, Join) and node.kind in ("inner", "cross"):
            predicates.extend(conjuncts(node.condition))
            stack.extend((node.right, node.left))
        elif (
            isinstance(node, Filter)
            and isinstance(node.child, Join)
            and node.child.kind in ("inner", "cross")
        ):
            predicates.extend(conjuncts(node.predicate))
            stack.append(node.child)
        else:
            relations.append(node)
    return relations, predicates


class _Order:
    def __init__(
        self, relations: list[LogicalPlan], predicates: list[Expression], context: RuleContext
    ) -> None:
        # Sorted, so that the result depends on what is joined and not on how it was written.
        relations = sorted(relations, key=lambda r: sorted(r.column_ids))
        self._predicates = sorted(dict.fromkeys(predicates), key=lambda p: sorted(p.column_ids))
        self._leaves = [_Candidate(r, context.estimator.estimate(r), 0.0) for r in relations]
        self._masks = [self._mask(p) for p in self._predicates]

    def _mask(self, predicate: Expression) -> int:
        mask = 0
        for position, leaf in enumerate(self._leaves):
            if predicate.column_ids & leaf.plan.column_ids:
                mask |= 1 << position
        return mask

    def best(self) -> LogicalPlan:
        if len(self._leaves) <= MAX_EXHAUSTIVE:
            return self._exhaustive().plan
        return self._greedy().plan

    def _exhaustive(self) -> _Candidate:
        count = len(self._leaves)
        best = {1 << i: leaf for i, leaf in enumerate(self._leaves)}
        for size in range(2, count + 1):
            for members in combinations(range(count), size):
                subset = sum(1 << m for m in members)
                found = self._cheapest(subset, best)
                if found is not None:
                    best[subset] = found
        full = (1 << count) - 1
        return best[full] if full in best else self._greedy()

    def _cheapest(self, subset: int, best: dict[int, _Candidate]) -> _Candidate | None:
        cheapest: _Candidate | None = None
        part = (subset - 1) & subset
        while part:
            other = subset ^ part
            both = part > other and part in best and other in best
            if both and self._connecting(part, other):
                candidate = self._join(best[part], part, best[other], other)
                if cheapest is None or candidate.cost < cheapest.cost:
                    cheapest = candidate
            part = (part - 1) & subset
        return cheapest

    def _greedy(self) -> _Candidate:
        trees = {1 << i: leaf for i, leaf in enumerate(self._leaves)}
        while len(trees) > 1:
            pairs = list(combinations(trees, 2))
            linked = [p for p in pairs if self._connecting(*p)] or pairs
            options = [(self._join(trees[a], a, trees[b], b), a, b) for a, b in linked]
            candidate, a, b = min(options, key=lambda o: o[0].estimate.rows)
            del trees[a], trees[b]
            trees[a | b] = candidate
        return next(iter(trees.values()))

    def _connecting(self, left: int, right: int) -> list[Expression]:
        """Predicates over both sides and nothing else."""
        both = left | right
        return [
            p
            for p, mask in zip(self._predicates, self._masks, strict=True)
            if mask & left and mask & right and not mask & ~both
        ]

    def _join(self, a: _Candidate, mask_a: int, b: _Candidate, mask_b: int) -> _Candidate:
        if a.estimate.num_bytes < b.estimate.num_bytes:
            a, b = b, a
        predicates = self._connecting(mask_a, mask_b)
        condition = conjoin(predicates) if predicates else TRUE
        kind = "inner" if predicates else "cross"
        estimate = joined(a.estimate, b.estimate, kind, condition)
        cost = a.cost + b.cost + a.estimate.rows + 2 * b.estimate.rows + estimate.rows
        plan = Join(a.plan, b.plan, "inner" if predicates else "cross", condition)
        return _Candidate(plan, estimate, cost)
