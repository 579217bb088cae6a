"""The page on functions, followed: what it lists is what makes a function run on DuckDB."""

from __future__ import annotations

from pathlib import Path

from tests.contributor_guide.changes import PlannerCopy, read_changes
from tests.differential.function_cases import NATIVE

PLAN = """
from stagecoach.planner.planning import plan_query
from tests.planner.catalogs import SALES

graph = plan_query("SELECT bit_count(id) AS n FROM orders", SALES)
print(graph.stages[-1].engine)
"""


def test_following_the_page_adds_a_function(tmp_path: Path) -> None:
    changes = read_changes("functions.md")
    spelling, row, case = changes
    copy = PlannerCopy(tmp_path, changes)
    assert copy.run(PLAN) == "spark"
    copy.add(spelling)
    assert copy.run(PLAN) == "spark"
    copy.add(row)
    assert copy.run(PLAN) == "duckdb"
    assert str(NATIVE["bit_count"]).replace("'", '"') in case.text
