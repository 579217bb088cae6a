"""The planner's half of DuckDB."""

from __future__ import annotations

from stagecoach.planner.engines.duckdb.dialect import DuckDbDialect
from stagecoach.planner.engines.duckdb.proofs import refusal
from stagecoach.planner.engines.protocol import Conditions, PlannerEngine
from stagecoach.planner.plan.physical import PhysicalPlan


class DuckDb:
    """DuckDB: it runs what the registries of functions say is proven."""

    label = "DuckDB"
    dialect = DuckDbDialect()

    def refusal(self, fragment: PhysicalPlan, conditions: Conditions) -> str | None:
        """Why DuckDB must not run the fragment; None if it may."""
        return refusal(fragment, conditions)


ENGINE: PlannerEngine = DuckDb()
