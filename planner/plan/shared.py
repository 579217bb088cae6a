"""Subplans that several places of a query read, and that are planned and computed once.

A shared subplan is optimised by itself. Its readers see it as a table: a `SharedScan` whose
statistics are the estimates of the subplan. When the plan is cut, the subplan becomes a stage and
each scan an input from it. Planning time therefore grows with the number of operators in the query,
not with the tree of all copies.
"""

from __future__ import annotations

from dataclasses import dataclass

from stagecoach.planner.cached_property import cached_property
from stagecoach.planner.plan.expressions import Column
from stagecoach.planner.plan.logical import LogicalPlan


@dataclass(frozen=True)
class SharedPlan:
    """A subplan that is computed once.

    Args:
        name: The table of its scans; no table of a catalog has a colon in its name.
        plan: What it computes.
        outputs: Its columns: what its scans may read.
    """

    name: str
    plan: LogicalPlan
    outputs: tuple[Column, ...]

    @cached_property
    def columns(self) -> dict[str, Column]:
        """The columns under the names that scans read them by, each different."""
        named: dict[str, Column] = {}
        for position, column in enumerate(self.outputs):
            name = column.name
            named[f"{name}#{position}" if name in named else name] = column
        return named
