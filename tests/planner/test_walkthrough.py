"""docs/learn/how-a-query-becomes-stages.md shows what the planner does today."""

from __future__ import annotations

import re

from stagecoach.planner.explain.display import render_graph, render_plan
from stagecoach.planner.plan.logical import LogicalPlan
from stagecoach.planner.plan.stages import Stage
from stagecoach.planner.planning import plan_until
from tests.planner.tpch import DEFAULT, FORCED, ROOT, query_text, sf10_catalog, tpch_graph

PAGE = ROOT / "docs" / "learn" / "how-a-query-becomes-stages.md"
BLOCK = re.compile(r"<!-- generated: (?P<what>.+) -->\n```(?P<kind>\w+)\n(?P<text>(?:.*\n)*?)```\n")


def generated(what: str) -> str:
    match what.split():
        case ["sql"]:
            return query_text("q03").rstrip() + "\n"
        case [("logical" | "optimized") as phase]:
            plan = plan_until(query_text("q03"), sf10_catalog(), phase, FORCED)
            assert isinstance(plan, LogicalPlan)
            return render_plan(plan) + "\n"
        case ["diagram"]:
            return render_graph(tpch_graph("q03", FORCED), "mermaid")
        case ["stages", "default"]:
            return render_graph(tpch_graph("q03", DEFAULT))
        case ["stage", which]:
            return box(stage(which))
    raise AssertionError(f"the page asks for '{what}'")


def stage(which: str) -> Stage:
    graph = tpch_graph("q03", FORCED)
    if which == "head":
        return graph.head
    for candidate in graph.stages:
        if candidate.tables == (which,):
            return candidate
    first, second = (s for s in graph.stages[:-1] if not s.tables)
    return {"first-join": first, "second-join": second}[which]


def box(wanted: Stage) -> str:
    """The drawing of one stage out of that of the whole query."""
    lines = render_graph(tpch_graph("q03", FORCED)).splitlines()
    start = next(i for i, text in enumerate(lines) if f"┌───── Stage {wanted.stage_id} " in text)
    indent = lines[start].index("┌")
    end = next(i for i in range(start, len(lines)) if lines[i][indent] == "└")
    return "".join(f"{line[indent:]}\n" for line in lines[start : end + 1])


def test_walkthrough_is_current(updates_golden: bool) -> None:
    page = PAGE.read_text(encoding="utf-8")
    current = BLOCK.sub(
        lambda m: f"<!-- generated: {m['what']} -->\n```{m['kind']}\n{generated(m['what'])}```\n",
        page,
    )
    if updates_golden:
        PAGE.write_text(current, encoding="utf-8")
    assert len(BLOCK.findall(page)) == page.count("<!-- generated:") == 11
    assert updates_golden or page == current, "run `make golden` and read the page again"


def test_walkthrough_tells_the_truth_about_the_topology() -> None:
    forced, default = tpch_graph("q03", FORCED), tpch_graph("q03", DEFAULT)
    assert (len(forced.stages), len(default.stages)) == (6, 5)
    drawn = render_graph(forced)
    assert drawn.count("AggregateExec") == drawn.count("AggregateExec: mode=single") == 1
    kinds = [s.output.kind for s in default.stages]
    assert kinds == ["broadcast", "broadcast", "shuffle", "gather", "gather"]
