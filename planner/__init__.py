"""SQL text → StageGraph: parse, build, optimise, lower, distribute, cut. Pure functions, no I/O.

The names are loaded when they are first used: executors import `planner.types` and its like, and
must not wait for the parser.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from planner.planning import plan_query as plan_query
    from planner.planning import plan_until as plan_until
    from planner.stages import StageGraph as StageGraph

__all__ = ["StageGraph", "plan_query", "plan_until"]


def __getattr__(name: str) -> object:
    if name in ("plan_query", "plan_until"):
        from planner import planning

        return getattr(planning, name)
    if name == "StageGraph":
        from planner.stages import StageGraph

        return StageGraph
    raise AttributeError(f"module 'planner' has no attribute '{name}'")
