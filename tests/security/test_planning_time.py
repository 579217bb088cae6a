"""Planning takes work in proportion to the text of a query, whatever its shape.

Work is counted, not timed: calls of Python functions from the text to the SQL of the stages.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from benchmarks.hostile_queries import HOSTILE, hostile
from stagecoach.planner.catalog import Catalog
from stagecoach.planner.plan.serde import dump_graph, load_graph
from stagecoach.planner.planning import plan_query
from stagecoach.planner.render.fragment import render_fragment

SIZES = {"joins": 40, "doubled": 8, "columns": 100, "list": 300}
# Of joins, pairs of relations are looked at: four times as many where all may be joined.
GROWTH = {"joins": 4.2, "doubled": 2.6, "columns": 2.3, "list": 2.3}


def calls_of(work: Callable[[], object]) -> int:
    """How many Python functions a piece of work calls."""
    count = 0

    def note(_: FrameType, event: str, __: Any) -> None:
        nonlocal count
        count += event == "call"

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


def prepared(sql: str, catalog: Catalog) -> None:
    """All that is done with a text before it runs."""
    graph = plan_query(sql, catalog)
    assert graph.fallback_reason is None
    assert load_graph(dump_graph(graph)).plan_hash == graph.plan_hash
    for stage in graph.stages:
        render_fragment(stage, stage.engine, {})


@pytest.mark.parametrize("name", HOSTILE)
def test_work_grows_with_the_text(name: str) -> None:
    kind = HOSTILE[name].kind
    prepared(*hostile(name, 2))  # what is computed once for a process
    small, large = (
        calls_of(functools.partial(prepared, *hostile(name, size)))
        for size in (SIZES[kind], 2 * SIZES[kind])
    )
    assert large <= GROWTH[kind] * small


def test_estimates_beyond_any_number_do_not_end_planning() -> None:
    sql = "SELECT count(*) AS n FROM t t0" + "".join(f" CROSS JOIN t t{i}" for i in range(1, 90))
    graph = plan_query(sql, hostile("terms of OR", 1)[1])
    assert graph.fallback_reason is None
    assert max(stage.estimated_rows for stage in graph.stages) < 1 << 63
