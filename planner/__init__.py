"""SQL text → StageGraph: parse, build, optimise, lower, distribute, cut. Pure functions, no I/O."""

from __future__ import annotations

from planner.planning import plan_query as plan_query
from planner.planning import plan_until as plan_until
from planner.stages import StageGraph as StageGraph
