"""Parsed SQL + catalog → logical plan, with every name resolved and every type known."""

from __future__ import annotations

from stagecoach.planner.analysis.queries.built import BuiltQuery as BuiltQuery
from stagecoach.planner.analysis.queries.built import build_logical as build_logical
