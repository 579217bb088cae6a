"""Expressions that hold a plan: scalar subqueries, EXISTS and IN.

They stand apart from the other expressions because a plan is made of those. The optimiser turns
all of them into joins, so no physical plan and no engine ever sees one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from stagecoach.planner.plan.expressions import Expression
from stagecoach.planner.plan.logical import LogicalPlan
from stagecoach.planner.tree import same


@dataclass(frozen=True)
class SubqueryExpression(Expression):
    """Base of expressions that hold a plan; only the optimiser sees them, never an engine."""

    plan: LogicalPlan

    @property
    def own_ids(self) -> frozenset[int]:
        """The columns of outer queries that the plan reads."""
        return self.plan.free_ids


@dataclass(frozen=True)
class ScalarSubquery(SubqueryExpression):
    """The single value of a subquery, NULL if it has no row."""


@dataclass(frozen=True)
class Exists(SubqueryExpression):
    """Whether a subquery has a row."""


@dataclass(frozen=True)
class InSubquery(SubqueryExpression):
    """Whether the operands equal a row of a subquery, with SQL's NULL rules."""

    args: tuple[Expression, ...] = ()

    @property
    def children(self) -> tuple[Expression, ...]:
        """The operands on the left of IN."""
        return self.args

    def with_children(self, new: tuple[Expression, ...]) -> Expression:
        """The same membership test of other operands."""
        return self if same(self.args, new) else replace(self, args=new)
