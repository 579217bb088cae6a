"""Plan Spark SQL: parse a query, optimise it, and cut it into the stages that tasks run.

Everything here is a pure function of the text, the catalog and the options; nothing does I/O. The
public names are loaded on first use, because executors import modules such as `types` and must not
wait for the parser.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if __name__ != "stagecoach.planner":
    # The folder is linked into stagecoach/: under two names its classes would exist twice.
    raise ImportError("import stagecoach.planner: 'planner' is its folder in the repository")

if TYPE_CHECKING:
    from stagecoach.planner.plan.stages import StageGraph as StageGraph
    from stagecoach.planner.planning import plan_query as plan_query
    from stagecoach.planner.planning import plan_until as plan_until

__all__ = ["StageGraph", "plan_query", "plan_until"]


def __getattr__(name: str) -> object:
    if name in ("plan_query", "plan_until"):
        from stagecoach.planner import planning

        return getattr(planning, name)
    if name == "StageGraph":
        from stagecoach.planner.plan.stages import StageGraph

        return StageGraph
    raise AttributeError(f"module 'stagecoach.planner' has no attribute '{name}'")
