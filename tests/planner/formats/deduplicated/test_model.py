"""Rules and passes keep the rows of random chunk sets; all of them are idempotent."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stagecoach.planner.formats.deduplicated.initial import initial_plan
from stagecoach.planner.formats.deduplicated.passes import RULES, UNION_RULES, run_passes
from stagecoach.planner.formats.deduplicated.plan import DeduplicateExec
from stagecoach.planner.formats.deduplicated.yaml_text import plan_to_yaml
from stagecoach.planner.tree import walk
from tests.planner.formats.deduplicated.chunk_sets import ChunkSet, chunk_set
from tests.planner.formats.deduplicated.model import Model

_CASES = int(os.environ.get("STAGECOACH_CHUNK_CASES", "400"))
_quick = settings(
    max_examples=_CASES,
    deadline=None,
    derandomize=_CASES <= 400,
    suppress_health_check=[*HealthCheck],
)
_chunk_sets = st.integers(0, 1 << 40).map(chunk_set)


@_quick
@given(_chunk_sets)
def test_every_rule_keeps_the_rows(case: ChunkSet) -> None:
    context = case.context
    columns = case.columns or context.table.column_names
    plan = initial_plan(case.chunks, context, predicate=case.predicate, columns=case.columns)
    models = [Model(context.table, case.rows, prunes) for prunes in (False, True)]
    expected = models[0].expected(case.chunks, case.predicate, columns)
    assert models[0].rows_of(plan) == expected
    for rule in (*UNION_RULES, *(r for one in RULES for r in (one, *UNION_RULES))):
        after = rule(plan, context)
        name = rule.__name__
        if after != plan:
            assert after.columns == columns, name
            for model in models:
                assert model.rows_of(after) == expected, name
        else:
            assert after is plan, name
        assert rule(after, context) == after, f"{name} is not idempotent"
        plan = after


@_quick
@given(_chunk_sets)
def test_all_passes_keep_the_rows(case: ChunkSet) -> None:
    context = case.context
    columns = case.columns or context.table.column_names
    first = initial_plan(case.chunks, context, predicate=case.predicate, columns=case.columns)
    plan = run_passes(first, context)
    for prunes in (False, True):
        model = Model(context.table, case.rows, prunes)
        expected = model.expected(case.chunks, case.predicate, columns)
        assert model.rows_of(plan) == expected, plan_to_yaml(plan, context)
    assert run_passes(plan, context) == plan
    groups = [n for n in walk(plan) if isinstance(n, DeduplicateExec)]
    assert len(groups) <= context.max_groups
