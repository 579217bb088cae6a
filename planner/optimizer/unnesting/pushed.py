"""The result of pushing D down: a plan, and which of its columns holds which outer value."""

from __future__ import annotations

from dataclasses import dataclass

from stagecoach.planner.functions import make_call
from stagecoach.planner.optimizer.unnesting.domain import Bound, Domain
from stagecoach.planner.plan.expressions import Expression
from stagecoach.planner.plan.logical import LogicalPlan


@dataclass(frozen=True)
class Pushed:
    """A plan without references to the outer query.

    Args:
        plan: The plan; besides its columns it gives those of `bound`.
        bound: The column that holds the value of each outer column.
        strict: Outer columns whose column here is never NULL, so that `=` finds what `<=>` would.
        at_most_one: Whether there is at most one row for each value, by a LIMIT.
    """

    plan: LogicalPlan
    bound: Bound
    strict: frozenset[int] = frozenset()
    at_most_one: bool = False

    @property
    def refs(self) -> dict[int, Expression]:
        """What to write for each outer column."""
        return {old: column.ref for old, column in self.bound.items()}

    @property
    def ids(self) -> frozenset[int]:
        """Numbers of the columns in `bound`."""
        return frozenset(c.id for c in self.bound.values())

    def matches(self, domain: Domain) -> list[Expression]:
        """The equalities with the outer columns that each value stands for."""
        return [
            make_call(equality(c.id in self.strict), c.ref, self.bound[c.id].ref)
            for c in domain.columns(frozenset(self.bound))
        ]


def equality(strict: bool) -> str:
    """The function that compares two values of D, one of which is never NULL if `strict`."""
    return "eq" if strict else "eq_null_safe"
