"""Engines by name; the planner and the command line name them nowhere else.

An engine has two halves, one in `stagecoach.planner.engines` and one in `stagecoach.infra.engines`.
Each package has a registry, and only the name joins the two. The name is also what a stored plan
holds. An entry is the path of the half, which is imported when it is first needed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stagecoach.planner.errors import GraphFormatError
from stagecoach.planner.registry import Registry

if TYPE_CHECKING:
    from stagecoach.planner.engines.protocol import PlannerEngine

SPARK = "spark"
"""The engine that defines every result, and runs what no task engine may run."""

AUTO = "auto"
"""The choice of an engine for each stage."""

PLANNER_ENGINES: Registry[PlannerEngine] = Registry(
    {
        "duckdb": "stagecoach.planner.engines.duckdb.engine:ENGINE",
        SPARK: "stagecoach.planner.engines.spark.engine:ENGINE",
    }
)


def planner_engine(name: str) -> PlannerEngine:
    """Return the planner's half of the engine of that name.

    Raises:
        GraphFormatError: There is no such engine; a stored plan may name one.
    """
    found = PLANNER_ENGINES.get(name)
    if found is None:
        known = ", ".join(PLANNER_ENGINES.names)
        raise GraphFormatError(f"a stage is planned for the unknown engine '{name}' ({known})")
    return found


def task_engines() -> tuple[str, ...]:
    """Names of the engines that run inside tasks, in the order in which they are tried."""
    return tuple(name for name in PLANNER_ENGINES.names if name != SPARK)


def engine_choices() -> tuple[str, ...]:
    """Values of the option `planner.engine`."""
    return (AUTO, *PLANNER_ENGINES.names)
