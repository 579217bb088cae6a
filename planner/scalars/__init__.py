"""sqlglot scalar trees → typed expressions."""

from __future__ import annotations

from planner.scalars import (
    calls,
    generators,
    grouping,
    literals,
    members,
    operators,
    ordered_sets,
    subqueries,
    time_windows,
    times,
)
from planner.scalars.handlers import Names as Names
from planner.scalars.handlers import build_scalar as build_scalar

__all__ = [
    "Names",
    "build_scalar",
    "calls",
    "generators",
    "grouping",
    "literals",
    "members",
    "operators",
    "ordered_sets",
    "subqueries",
    "time_windows",
    "times",
]
