"""Scalar functions: what Spark's names mean, their types, and how each engine spells them."""

from __future__ import annotations

from planner.functions.function import Function as Function
from planner.functions.macros import MACROS as MACROS
from planner.functions.registry import REGISTRY as REGISTRY
from planner.functions.registry import make_call as make_call
