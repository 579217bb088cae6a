"""Slices and layers: what tasks read of a group gives the rows of the group."""

from __future__ import annotations

import dataclasses
import os
from unittest.mock import patch

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stagecoach.planner.formats.deduplicated import slices
from stagecoach.planner.formats.deduplicated.chunk import Chunk, DedupTable
from stagecoach.planner.formats.deduplicated.context import ChunkContext
from stagecoach.planner.formats.deduplicated.explain import reading_text
from stagecoach.planner.formats.deduplicated.initial import initial_plan
from stagecoach.planner.formats.deduplicated.layers import layers_of
from stagecoach.planner.formats.deduplicated.passes import run_passes
from stagecoach.planner.formats.deduplicated.reading import Group, reading_of
from stagecoach.planner.formats.deduplicated.slices import Slice, joined, slices_of
from stagecoach.planner.plan.expressions import TRUE
from stagecoach.planner.types import BIGINT, Field
from tests.planner.formats.deduplicated.chunk_sets import ChunkSet, chunk_set
from tests.planner.formats.deduplicated.model import Model, Row, grouped

_CASES = int(os.environ.get("STAGECOACH_CHUNK_CASES", "400"))


class _Reader:
    def __init__(self, case: ChunkSet) -> None:
        self.case = case
        self.table = case.context.table
        self.model = Model(self.table, case.rows, prunes=False)

    def rows(self, chunks: tuple[Chunk, ...], part: Slice) -> list[Row]:
        found = []
        for chunk in chunks:
            start, end = part.rows_of(chunk)
            found += self.model.scan(chunk, self.table.column_names)[start:end]
        return [r for r in found if self._inside(r, part)]

    def _inside(self, row: Row, part: Slice) -> bool:
        if part.keys is not None:
            value, low, high = row.values[part.keys.column], part.keys.low, part.keys.high
            if low is not None and (value is None or value < low):
                return False
            if high is not None and value is not None and value >= high:
                return False
        if part.low is None and part.high is None:
            return True
        time = row.values[self.table.time_column or ""]
        return (part.low is None or time >= part.low) and (part.high is None or time < part.high)

    def key(self, row: Row, key: tuple[str, ...]) -> tuple[object, ...]:
        return tuple(grouped(row.values[c]) for c in key)

    def slice_rows(self, part: Slice, key: tuple[str, ...]) -> list[Row]:
        layers = layers_of(part, self.case.context)
        assert not {*layers.plain} & {*layers.base} and not {*layers.base} & {*layers.newer}
        newer = {self.key(r, key): r for r in self.model.latest(self.rows(layers.newer, part), key)}
        shown = []
        for row in self.rows(layers.base, part):
            twin = newer.pop(self.key(row, key), None)
            assert twin is None or twin.sequence > row.sequence
            shown.append(row if twin is None else self.model.latest([row, twin], key)[0])
        return [*self.rows(layers.plain, part), *shown, *newer.values()]


@settings(
    max_examples=_CASES,
    deadline=None,
    derandomize=_CASES <= 400,
    suppress_health_check=[*HealthCheck],
)
@given(st.integers(0, 1 << 40).map(chunk_set))
def test_slices_and_layers_give_the_rows(case: ChunkSet) -> None:
    reader = _Reader(case)
    plan = run_passes(initial_plan(case.chunks, case.context), case.context)
    reading = reading_of(plan, case.context)
    found = reader.rows(reading.plain, Slice(reading.plain))
    together = list(found)
    for group in reading.groups:
        with patch.object(slices, "RANGE_BYTES", 40):
            parts = slices_of(group.chunks, group.key, case.context)
        assert {c for s in parts for c in s.chunks} == set(group.chunks)
        for part in parts:
            found += reader.slice_rows(part, group.key)
        cut = len(parts) * case.context.target_partitions // 4
        for part in (*joined(parts[:cut]), *joined(parts[cut:])):
            together += reader.slice_rows(part, group.key)
        assert len(joined(parts)) == 1
    columns = case.context.table.column_names
    expected = reader.model.expected(case.chunks, TRUE, columns)
    for rows in (found, together):
        assert reader.model.texts(reader.model.undeleted(rows), columns) == expected


_TIMED = DedupTable(
    name="t", columns=(Field("time", BIGINT),), primary_key=("time",), time_column="time"
)


def _chunk(name: str, low: int, high: int, sequence: int, duplicates: bool = False) -> Chunk:
    return Chunk(
        chunk_id=name,
        num_rows=10,
        time_min=low,
        time_max=high,
        sequence=sequence,
        may_contain_duplicates=duplicates,
    )


def test_a_late_chunk_hides_rows_of_the_chunks_that_it_overlaps_only() -> None:
    context = ChunkContext(_TIMED)
    days = [_chunk(f"day{i}", 10 * i, 10 * i + 9, i) for i in range(5)]
    late = _chunk("late", 15, 34, 9, duplicates=True)
    group = Group((*days[1:4], late), ("time",), "")
    parts = slices_of(group.chunks, group.key, context)
    assert [(s.low, s.high) for s in parts] == [(None, 20), (20, 30), (30, None)]
    assert all(late in s.chunks for s in parts)
    layers = layers_of(parts[1], context)
    assert (layers.plain, layers.base, layers.newer) == ((), (days[2],), (late,))
    whole = layers_of(joined(parts)[0], context)
    assert (whole.base, whole.newer) == (tuple(days[1:4]), (late,))
    assert round(parts[1].share(late), 2) == 0.5


def test_people_are_told_what_is_compared_and_why() -> None:
    days = tuple(_chunk(f"day{i}", 10 * i, 10 * i + 9, i) for i in range(5))
    late = _chunk("late", 15, 34, 9, duplicates=True)
    context = ChunkContext(_TIMED)
    plan = run_passes(initial_plan((*days, late), context), context)
    text = reading_text(reading_of(plan, context), context, num_chunks=8)
    assert text.splitlines() == [
        "t: 6 of 8 chunks, 60 rows; 2 read as they are, 40 rows (67 %) are compared in 1 group",
        "  group 1 by time: their times overlap; up to 3 tasks may share it, cut by time",
        "    older rows: day1, day2, day3 (30 rows); newer rows hide theirs",
        "    newer rows: late (10 rows)",
    ]
    untimed = ChunkContext(dataclasses.replace(_TIMED, time_column=None))
    plan = run_passes(initial_plan(days[:2], untimed), untimed)
    text = reading_text(reading_of(plan, untimed), untimed, num_chunks=2)
    assert "group 1 by time: the table has no time column" in text
    assert "older rows: day0 (10 rows); newer rows hide theirs" in text
