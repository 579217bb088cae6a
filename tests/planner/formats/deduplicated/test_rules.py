"""Each rule against its golden cases: the examples of the design and our own."""

from __future__ import annotations

import pytest
import yaml

from stagecoach.planner.formats.deduplicated.chunk import Chunk
from stagecoach.planner.formats.deduplicated.initial import initial_plan
from stagecoach.planner.formats.deduplicated.passes import RULES, UNION_RULES
from stagecoach.planner.formats.deduplicated.yaml_text import plan_to_data, plan_to_yaml
from stagecoach.planner.tree import walk
from tests.planner.formats.deduplicated.chunk_cases import CASES, Case, cases_of
from tests.planner.formats.deduplicated.plan_reader import plan_from_data, read_predicate

_RULES = {rule.__name__: rule for rule in (*UNION_RULES, *RULES)}
_CASES = [case for path in sorted(CASES.glob("*.yaml")) for case in cases_of(path)]


def test_each_rule_has_cases_and_the_seed_has_its_examples() -> None:
    assert {case.rule for case in _CASES} == set(_RULES)
    assert sum(case.from_design for case in _CASES) == 18


@pytest.mark.parametrize("case", _CASES, ids=lambda c: f"{c.rule}: {c.title}")
def test_rule(case: Case) -> None:
    rule = _RULES[case.rule]
    found = rule(case.before, case.context)
    assert found == case.after, plan_to_yaml(found, case.context)
    assert rule(found, case.context) == found, "the rule is not idempotent"
    if found == case.before:
        assert found is case.before


_READABLE = [
    case for case in _CASES if all(type(node).__name__ != "SomeExec" for node in walk(case.after))
]


@pytest.mark.parametrize("case", _READABLE, ids=lambda c: f"{c.rule}: {c.title}")
def test_yaml_reads_back(case: Case) -> None:
    chunks = {chunk.chunk_id: chunk for chunk in case.after.chunks}
    data = plan_to_data(case.after, case.context)
    assert plan_from_data(data, case.context, chunks) == case.after


def test_the_initial_plan_is_the_seeds() -> None:
    context = _CASES[0].context
    columns = context.table.columns
    chunks = {
        c.chunk_id: c
        for c in (
            Chunk(chunk_id="C1", kind="arrow", columns=columns),
            Chunk(chunk_id="C2", store="A", columns=columns),
            Chunk(chunk_id="C3", store="B", columns=columns),
        )
    }
    expected = """
ProjectionExec:
  keep: tag1, time
  child:
    FilterExec:
      expr: field > 1
      child:
        DeduplicateExec:
          UnionExec:
            - RecordBatchesExec:
                chunks: [C1]
            - ParquetExec:
                chunks: [C2]
                store: A
            - ParquetExec:
                chunks: [C3]
                store: B
"""
    found = initial_plan(
        tuple(chunks.values()),
        context,
        predicate=read_predicate("field > 1", context),
        columns=("tag1", "time"),
    )
    assert found == plan_from_data(yaml.safe_load(expected), context, chunks)
