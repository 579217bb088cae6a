"""Aggregate functions: what Spark's names mean, their types, states and spellings."""

from __future__ import annotations

from planner.aggregates.function import AggregateFunction as AggregateFunction
from planner.aggregates.function import State as State
from planner.aggregates.registry import AGGREGATE_ALIASES as AGGREGATE_ALIASES
from planner.aggregates.registry import AGGREGATES as AGGREGATES
from planner.aggregates.registry import make_aggregate as make_aggregate
from planner.aggregates.registry import splits as splits
