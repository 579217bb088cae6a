"""Each rule on its fixtures: the plan that it is given and the plan that it makes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from stagecoach.planner.analysis.queries import build_logical
from stagecoach.planner.catalog import Catalog
from stagecoach.planner.estimates import Estimator
from stagecoach.planner.explain.display import render_plan
from stagecoach.planner.optimizer.context import RuleContext, first_free_id
from stagecoach.planner.optimizer.rules import ABOUT, RULES, optimize
from stagecoach.planner.options import PlannerOptions
from stagecoach.planner.plan.logical import LogicalPlan
from stagecoach.planner.syntax.parse import parse_query
from stagecoach.planner.tree import walk
from tests.planner.catalogs import SALES
from tests.planner.optimizer.optimizer_cases import FOLDER, Case, read_cases, write_cases
from tests.planner.tpch import NAMES, query_text, sf10_catalog

RULE_NAMES = [rule.__name__ for rule in RULES]


def built(sql: str, catalog: Catalog = SALES) -> tuple[LogicalPlan, RuleContext]:
    query = build_logical(parse_query(sql), catalog, {})
    estimator = Estimator({t.name: t for t in query.tables})
    return query.plan, RuleContext(PlannerOptions(), estimator, first_free_id(query.plan))


def around(rule: str, sql: str) -> tuple[LogicalPlan, LogicalPlan]:
    """The plans before and after a rule, which runs behind all rules that stand before it."""
    plan, context = built(sql)
    position = RULE_NAMES.index(rule)
    before = optimize(plan, context, RULES[:position])
    return before, RULES[position](before, context)


def all_cases() -> list[Case]:
    files = [rule for rule in RULE_NAMES if (FOLDER / f"{rule}.sql").exists()]
    return [case for rule in files for case in read_cases(rule)]


def test_every_rule_has_a_fixture() -> None:
    files = sorted(file.stem for file in FOLDER.glob("*.sql"))
    assert files == sorted(RULE_NAMES)


@pytest.mark.parametrize("rule", RULE_NAMES)
def test_rule_makes_the_plan_of_its_fixture(rule: str, updates_golden: bool) -> None:
    cases = read_cases(rule)
    done = []
    for case in cases:
        before, after = around(rule, case.sql)
        done.append(replace(case, before=render_plan(before), after=render_plan(after)))
    if updates_golden:
        write_cases(rule, done)
    assert updates_golden or done == cases


@pytest.mark.parametrize("case", all_cases(), ids=lambda c: f"{c.rule}: {c.title}")
def test_fixture_shows_what_the_rule_does(case: Case) -> None:
    """A case whose plan the rule leaves alone would pass without the rule."""
    before, after = around(case.rule, case.sql)
    assert (before != after) == case.acts


@pytest.mark.parametrize("rule", RULE_NAMES)
def test_rule_has_cases_where_it_acts(rule: str) -> None:
    assert any(case.acts for case in read_cases(rule))


def plans_of_queries() -> Iterator[tuple[LogicalPlan, RuleContext]]:
    yield from (built(case.sql) for case in all_cases())
    yield from (built(query_text(name), sf10_catalog()) for name in NAMES)


def test_a_rule_that_is_left_out_would_change_nothing() -> None:
    left_out = 0
    for plan, context in plans_of_queries():
        for position, rule in enumerate(RULES):
            before = optimize(plan, context, RULES[:position])
            if rule in ABOUT and not any(isinstance(n, ABOUT[rule]) for n in walk(before)):
                assert rule(before, context) is before, rule.__name__
                left_out += 1
    assert left_out > 100


@pytest.mark.parametrize("case", all_cases(), ids=lambda c: f"{c.rule}: {c.title}")
def test_rule_leaves_its_own_result_alone(case: Case) -> None:
    plan, context = built(case.sql)
    position = RULE_NAMES.index(case.rule)
    once = optimize(plan, context, RULES[: position + 1])
    assert render_plan(RULES[position](once, context)) == render_plan(once)


@pytest.mark.parametrize("name", NAMES)
def test_every_rule_is_idempotent_on_tpch(name: str) -> None:
    plan, context = built(query_text(name), sf10_catalog())
    for rule in RULES:
        plan = rule(plan, context)
        assert render_plan(rule(plan, context)) == render_plan(plan), rule.__name__


@pytest.mark.parametrize("name", NAMES)
def test_rules_keep_the_columns_of_the_result(name: str) -> None:
    plan, context = built(query_text(name), sf10_catalog())
    wanted = [(c.name, c.dtype) for c in plan.columns]
    for rule in RULES:
        plan = rule(plan, context)
        assert [(c.name, c.dtype) for c in plan.columns] == wanted, rule.__name__
        assert not plan.free_ids, rule.__name__


def test_a_plan_that_needs_nothing_is_the_same_object() -> None:
    plan, context = built("SELECT id, name FROM customers WHERE rating > 3")
    plan = optimize(plan, context)
    for rule in RULES:
        assert rule(plan, context) == plan, rule.__name__
