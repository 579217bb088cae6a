"""Estimates of rows where statistics hold what cannot be reckoned with."""

from __future__ import annotations

import math

import pytest

from stagecoach.planner.catalog import ColumnStats, MappingCatalog, TableInfo, TableStats
from stagecoach.planner.planning import plan_query
from stagecoach.planner.types import DOUBLE, Field

FILTERS = ["x < 5", "NOT (x < 5)", "NOT (x > 5 OR x < 2)", "5 >= x", "x BETWEEN 1 AND double('Infinity')", "NOT (x <= double('NaN'))"]  # fmt: skip


@pytest.mark.parametrize("low", [-math.inf, -1.7e308, 0.0])
@pytest.mark.parametrize("high", [math.inf, 1.7e308, 0.0])
def test_bounds_of_doubles_may_be_infinite_or_that_far_apart(low: float, high: float) -> None:
    stats = TableStats(1000, 8000, 1, {"x": ColumnStats(low, high, 0, None, 8.0)})
    catalog = MappingCatalog([TableInfo("t", (Field("x", DOUBLE),), stats)])
    for text in FILTERS:
        graph = plan_query(f"SELECT x FROM t WHERE {text}", catalog)
        assert 0 <= graph.head.estimated_rows <= 1000
