"""The page on optimizer rules, followed: what it lists is what makes a rule act."""

from __future__ import annotations

from pathlib import Path

from tests.contributor_guide.changes import PlannerCopy, read_changes
from tests.planner.optimizer.optimizer_cases import read_cases

PLAN = """
from stagecoach.planner.optimizer.rules import RULES
from tests.planner.optimizer.test_optimizer import built, optimize
from stagecoach.planner.explain.display import render_plan

plan, context = built({sql!r})
print([rule.__name__ for rule in RULES].count("eliminate_distinct"))
print(repr(render_plan(optimize(plan, context, RULES[:14]))))
"""


def test_following_the_page_adds_a_rule(tmp_path: Path) -> None:
    changes = read_changes("rules.md")
    rule, imported, place, about, case = changes
    (shown, *_) = read_cases("eliminate_distinct")
    assert shown.sql in case.text
    code = PLAN.format(sql=shown.sql)
    copy = PlannerCopy(tmp_path, changes)
    without = copy.run(code)
    assert "gby=[status, n]" in without
    copy.add(rule)
    copy.add(imported)
    assert copy.run(code) == without
    copy.add(place)
    acting = copy.run(code)
    assert acting != without
    assert "gby=[status, n]" not in acting
    copy.add(about)
    assert copy.run(code) == acting
