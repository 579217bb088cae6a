"""The sizes of physical operators, as the exchange pass needs them.

A physical plan has no statistics. Lowering notes what was estimated of each logical operator for
the physical one that it makes of it; passes that put operators in place of others pass it on.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from stagecoach.planner.estimates import Estimate
from stagecoach.planner.plan.physical import PhysicalPlan
from stagecoach.planner.tree import walk


class PlanSizes:
    """Remembers estimates by operator."""

    def __init__(self) -> None:
        self._sizes: dict[PhysicalPlan, tuple[float, float]] = {}
        self._estimates: dict[PhysicalPlan, Estimate] = {}
        self._shares: dict[PhysicalPlan, tuple[float, float]] = {}

    def size(self, plan: PhysicalPlan) -> tuple[float, float]:
        """Estimated rows and bytes of an operator; of its largest input if it is a new one."""
        for node in walk(plan):
            if (known := self._sizes.get(node)) is not None:
                return known
        return 1.0, 1.0

    def match_shares(self, join: PhysicalPlan) -> tuple[float, float]:
        """Expected shares of a join's left and right rows that find a partner."""
        return self._shares.get(join, (1.0, 1.0))

    def distinct(self, plan: PhysicalPlan, columns: Iterable[int]) -> float:
        """Expected different values of some columns together; 1 for an operator that is new."""
        known = self._estimates.get(plan)
        if known is None:
            return 1.0
        found = [known.columns[i].distinct for i in columns if i in known.columns]
        return min(math.prod(found), known.rows)

    def note_estimate(self, plan: PhysicalPlan, estimate: Estimate) -> None:
        """Remember the estimate of the logical operator that the physical one is made of."""
        self._estimates[plan] = estimate
        self.set_size(plan, estimate.rows, estimate.num_bytes)

    def note_match_shares(self, join: PhysicalPlan, shares: tuple[float, float]) -> None:
        """Remember the shares of a join's rows that find a partner."""
        self._shares[join] = shares

    def note_size(self, plan: PhysicalPlan, like: PhysicalPlan) -> PhysicalPlan:
        """Remember that a rewritten operator is as large as the original."""
        return self.set_size(plan, *self.size(like))

    def note_shared(
        self, plan: PhysicalPlan, like: PhysicalPlan, source: PhysicalPlan
    ) -> PhysicalPlan:
        """Remember that an operator leaves as many rows of its source as a like one.

        Both become one part with the columns of both, so it is as wide as the wider of them.
        """
        rows, num_bytes = self.size(like)
        source_rows, source_bytes = self.size(source)
        return self.set_size(
            plan, rows, max(num_bytes, source_bytes * rows / max(source_rows, 1.0))
        )

    def with_children(self, plan: PhysicalPlan, children: tuple[PhysicalPlan, ...]) -> PhysicalPlan:
        """The operator over other inputs, as large as before; itself if they are the same."""
        new = plan.with_children(children)
        return plan if new is plan else self.note_size(new, plan)

    def set_size(self, plan: PhysicalPlan, rows: float, num_bytes: float) -> PhysicalPlan:
        """Remember the estimated rows and bytes of a new operator."""
        self._sizes[plan] = (rows, num_bytes)
        return plan
