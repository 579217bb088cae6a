"""Scalar functions: what Spark's names mean, their types, and how each engine spells them."""

from __future__ import annotations

from stagecoach.planner.functions.function import Function as Function
from stagecoach.planner.functions.macros import MACROS as MACROS
from stagecoach.planner.functions.registry import REGISTRY as REGISTRY
from stagecoach.planner.functions.registry import make_call as make_call
