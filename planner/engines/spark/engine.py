"""The planner's half of Spark SQL."""

from __future__ import annotations

from stagecoach.planner.engines.protocol import Conditions, PlannerEngine
from stagecoach.planner.engines.spark.dialect import SparkDialect
from stagecoach.planner.plan.physical import PhysicalPlan


class SparkSql:
    """Spark SQL, which defines the result of every query."""

    label = "Spark"
    dialect = SparkDialect()

    def refusal(self, fragment: PhysicalPlan, conditions: Conditions) -> str | None:
        """None: it runs everything."""
        del fragment, conditions
        return None


ENGINE: PlannerEngine = SparkSql()
