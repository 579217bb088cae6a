"""Which task reads what: all of it, once, evenly, in order."""

from __future__ import annotations

import itertools
import random
import time

import pytest

from stagecoach.infra.formats.units import ScanSlice, ScanUnit, join_neighbours
from stagecoach.infra.runtime.adaptive.coalesce import cut_evenly
from stagecoach.infra.runtime.adaptive.estimator import (
    InputSizes,
    PartitionRange,
    TaskAssignment,
    assign_tasks,
)
from stagecoach.planner.errors import InternalPlanError
from stagecoach.planner.plan.expressions import Column
from stagecoach.planner.plan.physical import PhysicalPlan, ScanExec, StageInputExec, UnionExec
from stagecoach.planner.plan.stages import Branch, Stage, StageOutput
from stagecoach.planner.types import BIGINT, Field

MB = 1 << 20
COLUMN = Column(0, "k", BIGINT)


def make_stage(leaves: list[PhysicalPlan], branches: tuple[Branch, ...]) -> Stage:
    return Stage(
        stage_id=0,
        title="test",
        fragment=UnionExec(tuple(leaves), (COLUMN,)),
        branches=branches,
        output=StageOutput("gather"),
        schema=(Field("k", BIGINT),),
        engine="duckdb",
        engine_reason="",
    )


def scan() -> ScanExec:
    return ScanExec("t", (COLUMN,), ("k",))


def shuffle() -> StageInputExec:
    return StageInputExec(0, "shuffle", (COLUMN,))


def file(name: str, *group_bytes: int) -> ScanUnit:
    return ScanUnit(name, tuple((100, size) for size in group_bytes))


def tasks_of(
    stage: Stage, sizes: InputSizes, parallelism: int = 4, target: int = 512 * MB, minimum: int = 0
) -> tuple[TaskAssignment, ...]:
    return assign_tasks(
        stage,
        sizes,
        parallelism=parallelism,
        target_task_bytes=target,
        min_task_bytes=minimum,
    )


def split_scan(files: list[ScanUnit], **options: int) -> list[ScanSlice]:
    stage = make_stage([scan()], (Branch("splits", (0,)),))
    found = []
    for task in tasks_of(stage, InputSizes({0: files}, {}), **options):
        assert isinstance(task.slices[0], ScanSlice)
        found.append(task.slices[0])
    return found


def rows_of(slices: list[ScanSlice]) -> list[tuple[str, int]]:
    rows = []
    for part in slices:
        for piece in part.units:
            rows += [(piece.uri, row) for row in range(piece.row_start, piece.row_end)]
    return rows


def test_whole_files_are_preferred() -> None:
    files = [file(f"f{i}", 10 * MB, 10 * MB) for i in range(8)]
    slices = split_scan(files)
    assert [len(s.units) for s in slices] == [2, 2, 2, 2]
    assert all(unit in files for s in slices for unit in s.units)


def test_one_large_file_is_cut_at_row_groups() -> None:
    slices = split_scan([file("f", *[10 * MB] * 10)])
    ranges = [(s.units[0].row_start, s.units[0].row_end) for s in slices]
    assert ranges == [(0, 200), (200, 500), (500, 700), (700, 1000)]


def test_a_large_file_among_small_ones_is_cut() -> None:
    slices = split_scan([file("big", *[20 * MB] * 8), file("small", MB)], parallelism=2)
    assert len(slices) == 2
    assert sorted(rows_of(slices)) == sorted(
        [("big", r) for r in range(800)] + [("small", r) for r in range(100)]
    )


def test_little_data_is_one_task() -> None:
    assert len(split_scan([file("a", MB), file("b", MB)], minimum=4 * MB)) == 1


def test_much_data_is_more_tasks_than_slots() -> None:
    assert len(split_scan([file("f", *[100 * MB] * 40)], parallelism=2)) == 8


def test_nothing_still_is_one_task() -> None:
    assert split_scan([]) == [ScanSlice()]
    assert split_scan([ScanUnit("empty", ())]) == [ScanSlice()]
    assert split_scan([ScanUnit("empty", ((0, 0),))]) == [ScanSlice()]


@pytest.mark.parametrize("seed", range(30))
def test_every_row_is_read_once(seed: int) -> None:
    rng = random.Random(seed)
    files = [
        ScanUnit(
            f"f{i}",
            tuple((rng.choice([0, 1, 50]), rng.randrange(MB)) for _ in range(rng.randrange(6))),
        )
        for i in range(rng.randrange(1, 9))
    ]
    slices = split_scan(files, parallelism=rng.randrange(1, 6), target=2 * MB)
    expected = [(f.uri, row) for f in files for row in range(f.num_rows)]
    assert sorted(rows_of(slices)) == sorted(expected)


@pytest.mark.parametrize("seed", range(30))
def test_ranges_cover_everything_once_and_are_even(seed: int) -> None:
    rng = random.Random(seed)
    weights = [rng.choice([0, 1, 10, 10, 10, 1000]) for _ in range(rng.randrange(1, 60))]
    count = rng.randrange(1, 10)
    ranges = cut_evenly(weights, count)
    assert ranges[0][0] == 0
    assert ranges[-1][1] == len(weights)
    assert all(a[1] == b[0] for a, b in itertools.pairwise(ranges))
    assert all(low < high for low, high in ranges)
    assert len(ranges) <= count
    limit = sum(weights) / count + max(weights)
    assert all(sum(weights[low:high]) <= limit for low, high in ranges)


def test_partitions_of_joined_inputs_go_together() -> None:
    stage = make_stage([shuffle(), shuffle()], (Branch("partitions", (0, 1)),))
    sizes = InputSizes({}, {0: [MB] * 6, 1: [0, 0, 0, 0, 0, 6 * MB]})
    tasks = tasks_of(stage, sizes, parallelism=2)
    assert [t.slices for t in tasks] == [
        (PartitionRange(0, 5), PartitionRange(0, 5)),
        (PartitionRange(5, 6), PartitionRange(5, 6)),
    ]
    assert sum(t.num_bytes for t in tasks) == 12 * MB


def test_partitions_that_do_not_fit_are_a_bug() -> None:
    stage = make_stage([shuffle(), shuffle()], (Branch("partitions", (0, 1)),))
    with pytest.raises(InternalPlanError, match="partitions"):
        tasks_of(stage, InputSizes({}, {0: [1, 1], 1: [1]}))


def test_empty_partitions_still_are_a_task() -> None:
    stage = make_stage([shuffle()], (Branch("partitions", (0,)),))
    tasks = tasks_of(stage, InputSizes({}, {0: [0, 0, 0]}))
    assert [t.slices for t in tasks] == [(PartitionRange(0, 3),)]


def test_a_leaf_of_no_branch_is_read_whole_by_every_task() -> None:
    stage = make_stage([scan(), shuffle(), scan()], (Branch("splits", (0,)),))
    sizes = InputSizes({0: [file("a", *[9 * MB] * 4)], 2: [file("b", MB)]}, {1: [MB]})
    tasks = tasks_of(stage, sizes, parallelism=2)
    assert len(tasks) == 2
    for task in tasks:
        assert task.slices[1] == PartitionRange(0, 1)
        assert task.slices[2] == sizes.whole(2)


def test_a_task_of_a_union_reads_one_branch() -> None:
    stage = make_stage([scan(), shuffle()], (Branch("splits", (0,)), Branch("partitions", (1,))))
    sizes = InputSizes({0: [file("a", *[30 * MB] * 3)]}, {1: [10 * MB, 10 * MB]})
    tasks = tasks_of(stage, sizes)
    assert len(tasks) == 4
    for task in tasks:
        empty = [s in (ScanSlice(), PartitionRange(0, 0)) for s in task.slices]
        assert sum(empty) == 1
    assert [isinstance(t.slices[0], ScanSlice) and bool(t.slices[0].units) for t in tasks] == [
        True,
        True,
        True,
        False,
    ]


def test_single_is_one_task() -> None:
    stage = make_stage([scan(), shuffle()], (Branch("single", (0, 1)),))
    sizes = InputSizes({0: [file("a", *[300 * MB] * 9)]}, {1: [MB] * 4})
    tasks = tasks_of(stage, sizes)
    assert [t.slices for t in tasks] == [(sizes.whole(0), PartitionRange(0, 4))]


def test_a_stage_without_leaves_is_one_task() -> None:
    assert len(tasks_of(make_stage([], ()), InputSizes({}, {}))) == 1


def test_split_and_joined_a_unit_is_the_same() -> None:
    unit = ScanUnit("f", ((5, 50), (0, 7), (3, 30)), row_start=2, rows_after=4)
    pieces = list(unit.split())
    assert [(p.row_start, p.row_end, p.rows_after) for p in pieces] == [
        (2, 7, 7),
        (7, 7, 7),
        (7, 10, 4),
    ]
    assert join_neighbours(pieces) == (unit,)
    other = ScanUnit("g", ((1, 1),), row_start=7)
    assert join_neighbours([pieces[0], other, pieces[2]]) == (pieces[0], other, pieces[2])
    assert join_neighbours([]) == ()


def test_a_file_of_many_row_groups_is_cut_at_once() -> None:
    started = time.monotonic()
    slices = split_scan([file("f", *[MB] * 20_000)], parallelism=2, target=20_000 * MB)
    assert [s.units[0].num_rows for s in slices] == [1_000_000, 1_000_000]
    assert time.monotonic() - started < 5  # joined one by one they would take 20 s
