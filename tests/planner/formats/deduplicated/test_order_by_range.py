"""Progressive evaluation: inputs in the order of their times."""

from __future__ import annotations

import yaml

from stagecoach.planner.formats.deduplicated.chunk import Chunk, DedupTable
from stagecoach.planner.formats.deduplicated.context import ChunkContext
from stagecoach.planner.formats.deduplicated.initial import initial_plan
from stagecoach.planner.formats.deduplicated.passes import run_passes
from stagecoach.planner.formats.deduplicated.plan import ProgressiveExec
from stagecoach.planner.formats.deduplicated.rules.order_by_range import order_by_range
from stagecoach.planner.formats.deduplicated.yaml_text import plan_to_data, plan_to_yaml
from stagecoach.planner.types import BIGINT, Field
from tests.planner.formats.deduplicated.chunk_sets import chunk_set
from tests.planner.formats.deduplicated.model import Model
from tests.planner.formats.deduplicated.plan_reader import plan_from_data

TABLE = DedupTable(
    name="t",
    columns=(Field("tag", BIGINT), Field("time", BIGINT)),
    primary_key=("tag", "time"),
    time_column="time",
)
CONTEXT = ChunkContext(TABLE)


def chunk(name: str, low: int | None, high: int | None) -> Chunk:
    return Chunk(
        chunk_id=name,
        num_rows=5,
        time_min=low,
        time_max=high,
        columns=TABLE.columns,
        sequence=int(name[1:]),
        may_contain_duplicates=False,
    )


CHUNKS = (chunk("c1", 1, 5), chunk("c2", 6, 9), chunk("c3", 10, 12), chunk("c4", 11, 14))


def test_the_newest_chunks_come_first() -> None:
    plan = run_passes(initial_plan(CHUNKS, CONTEXT), CONTEXT)
    found = order_by_range(plan, CONTEXT, descending=True)
    expected = """
ProgressiveExec:
  order: time DESC
  inputs:
    - DeduplicateExec:
        ParquetExec:
          files: [[c3], [c4]]
    - ParquetExec:
        files: [[c2]]
    - ParquetExec:
        files: [[c1]]
"""
    chunks = {c.chunk_id: c for c in CHUNKS}
    assert found == plan_from_data(yaml.safe_load(expected), CONTEXT, chunks)
    assert plan_from_data(plan_to_data(found, CONTEXT), CONTEXT, chunks) == found
    assert order_by_range(found, CONTEXT, descending=True) == found, plan_to_yaml(found, CONTEXT)
    upwards = order_by_range(plan, CONTEXT)
    assert isinstance(upwards, ProgressiveExec)
    assert upwards.inputs == found.children[::-1]


def test_not_where_a_time_is_unknown() -> None:
    chunks = (*CHUNKS, chunk("c5", None, None))
    plan = run_passes(initial_plan(chunks, CONTEXT), CONTEXT)
    assert order_by_range(plan, CONTEXT) is plan


def test_rows_stay_and_times_are_in_order() -> None:
    fired = 0
    for seed in range(300):
        case = chunk_set(seed)
        context = case.context
        first = initial_plan(case.chunks, context, predicate=case.predicate, columns=case.columns)
        plan = run_passes(first, context)
        ordered = order_by_range(plan, context)
        model = Model(context.table, case.rows, prunes=True)
        assert model.rows_of(ordered) == model.rows_of(plan)
        if not isinstance(ordered, ProgressiveExec):
            continue
        fired += 1
        last = -1
        for node in ordered.inputs:
            times = [r["time"] for c in node.chunks for r in case.rows[c.chunk_id]]
            assert min(times) > last
            last = max(times)
    assert fired > 20
