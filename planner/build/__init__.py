"""Parsed SQL + catalog → logical plan, with every name resolved and every type known."""

from __future__ import annotations

from planner.build.built import BuiltQuery as BuiltQuery
from planner.build.built import build_logical as build_logical
