"""Aggregate functions: what Spark's names mean, their types, states and spellings."""

from __future__ import annotations

from stagecoach.planner.aggregates.function import AggregateFunction as AggregateFunction
from stagecoach.planner.aggregates.function import State as State
from stagecoach.planner.aggregates.registry import AGGREGATE_ALIASES as AGGREGATE_ALIASES
from stagecoach.planner.aggregates.registry import AGGREGATES as AGGREGATES
from stagecoach.planner.aggregates.registry import is_aggregate as is_aggregate
from stagecoach.planner.aggregates.registry import make_aggregate as make_aggregate
from stagecoach.planner.aggregates.registry import splits as splits
