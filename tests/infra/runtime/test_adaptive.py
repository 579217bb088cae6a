"""Decisions when a stage starts: what may be split or left unread, and that rows stay the same."""

from __future__ import annotations

import dataclasses
import itertools
import random
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stagecoach.infra.catalog.catalog import load_catalog
from stagecoach.infra.config.settings import EngineSettings
from stagecoach.infra.runtime.adaptive.empty import find_empty
from stagecoach.infra.runtime.adaptive.estimator import (
    InputSizes,
    PartitionPiece,
    PartitionRange,
    assign_tasks,
)
from stagecoach.infra.runtime.adaptive.skew import (
    HotPartition,
    SkewRule,
    cut_pieces,
    hot_partitions,
    makespan,
    splittable_leaves,
)
from stagecoach.infra.runtime.adaptive.tasks import divide_stage
from stagecoach.planner.options import PlannerOptions
from stagecoach.planner.plan.expressions import TRUE, Column, SortKey
from stagecoach.planner.plan.operators import JoinKind
from stagecoach.planner.plan.physical import (
    AggregateExec,
    AggregateMode,
    FilterExec,
    HashJoinExec,
    LimitExec,
    PhysicalPlan,
    SortExec,
    StageInputExec,
    UnionExec,
    WindowExec,
)
from stagecoach.planner.plan.stages import Branch, Stage, StageOutput
from stagecoach.planner.planning import plan_query
from stagecoach.planner.types import BIGINT, Field
from tests.infra.spark_runs import make_views, run, run_on_duckdb

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_NUMBERS = itertools.count()
KINDS: tuple[JoinKind, ...] = ("inner", "left", "right", "full", "semi", "anti")


def leaf(kind: Any = "shuffle") -> StageInputExec:
    return StageInputExec(next(_NUMBERS), kind, (Column(next(_NUMBERS), "k", BIGINT),))


def join(left: PhysicalPlan, right: PhysicalPlan, kind: JoinKind = "inner") -> HashJoinExec:
    return HashJoinExec(left, right, kind, (left.columns[0].ref,), (right.columns[0].ref,), TRUE)


def aggregate(child: PhysicalPlan, mode: AggregateMode, *, keys: bool = True) -> AggregateExec:
    groups = ((Column(next(_NUMBERS), "g", BIGINT), child.columns[0].ref),) if keys else ()
    return AggregateExec(child, mode, groups, ())


def stage_of(fragment: PhysicalPlan, output: Any = "shuffle") -> Stage:
    stage = Stage(
        stage_id=0,
        title="test",
        fragment=fragment,
        branches=(),
        output=StageOutput(output),
        schema=(Field("k", BIGINT),),
        engine="duckdb",
        engine_reason="",
    )
    leaves = [i for i, x in enumerate(stage.leaves) if getattr(x, "kind", "") == "shuffle"]
    return dataclasses.replace(stage, branches=(Branch("partitions", tuple(leaves)),))


# ---------------------------------------------------------------- skew


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("inner", {0, 1}),
        ("left", {0}),
        ("right", {1}),
        ("full", set()),
        ("semi", {0}),
        ("anti", {0}),
    ],
)
def test_only_the_side_that_streams_is_split(kind: JoinKind, expected: set[int]) -> None:
    plain = join(leaf(), leaf(), kind)
    assert splittable_leaves(stage_of(plain), is_head=False) == expected
    # What works row by row or is merged later does not matter, what needs all rows forbids it.
    fine = aggregate(FilterExec(plain, TRUE), "partial")
    assert splittable_leaves(stage_of(fine), is_head=False) == expected
    for mode in ("final", "single"):
        assert not splittable_leaves(stage_of(aggregate(plain, mode)), is_head=False)
    assert not splittable_leaves(stage_of(WindowExec(plain, ())), is_head=False)


def test_a_side_that_needs_its_rows_together_is_not_split() -> None:
    grouped = join(aggregate(leaf(), "final"), leaf())
    assert splittable_leaves(stage_of(grouped), is_head=False) == {1}
    chain = join(join(leaf(), leaf(), "left"), leaf(), "anti")
    assert splittable_leaves(stage_of(chain), is_head=False) == {0}
    broadcast = dataclasses.replace(join(leaf(), leaf("broadcast")), broadcast=True)
    assert splittable_leaves(stage_of(broadcast), is_head=False) == {0}


def test_a_local_sort_or_limit_is_applied_again_by_the_next_stage() -> None:
    joined = join(leaf(), leaf())
    top = SortExec(joined, (SortKey(joined.columns[0].ref),), 10)
    for node in (top, LimitExec(joined, 10), LimitExec(top, 10)):
        assert splittable_leaves(stage_of(node, "gather"), is_head=False) == {0, 1}
        assert not splittable_leaves(stage_of(node, "gather"), is_head=True)
        assert not splittable_leaves(stage_of(node, "shuffle"), is_head=False)
    below = join(LimitExec(leaf(), 3), LimitExec(leaf(), 3))
    assert not splittable_leaves(stage_of(below, "gather"), is_head=False)
    skipping = LimitExec(joined, 10, 1)
    assert not splittable_leaves(stage_of(skipping, "gather"), is_head=False)


def test_what_is_skewed() -> None:
    rule = SkewRule(factor=4, min_bytes=100)
    sizes = {0: [10, 400, 100, 0, 100, 90], 1: [0, 500, 0, 0, 40, 0]}
    assert hot_partitions(sizes, {0, 1}, rule) == [(1, 1)]
    assert hot_partitions(sizes, {0}, rule) == [(0, 1)]
    assert hot_partitions({0: [0, 0, 120]}, {0}, rule) == [(0, 2)]
    assert hot_partitions({0: [100, 100, 399]}, {0}, rule) == []
    assert hot_partitions({0: [1, 1, 99]}, {0}, rule) == []
    assert hot_partitions(sizes, set(), rule) == []


def test_pieces_cover_every_row_once() -> None:
    rng = random.Random(1)
    for _ in range(300):
        sizes = [rng.choice([0, rng.randint(1, 1000)]) for _ in range(rng.randint(1, 12))] + [7]
        count = rng.randint(1, 9)
        seen: dict[tuple[int, int, int], int] = {}
        pieces = cut_pieces(sizes, count)
        for piece in pieces:
            assert 0 <= piece.index < piece.shares
            for position in range(piece.low, piece.high):
                key = (position, piece.index, piece.shares)
                seen[key] = seen.get(key, 0) + 1
        for position, size in enumerate(sizes):
            parts = [(i, n) for p, i, n in seen if p == position]
            assert sorted(i for i, _ in parts) == list(range(len(parts)))
            assert {n for _, n in parts} == ({len(parts)} if parts else set())
            assert parts or not size
        assert set(seen.values()) == {1}
        assert max(p.num_bytes for p in pieces) <= 1.26 * max(sum(sizes) / count, 1) + 1


def test_a_hot_partition_is_split_where_that_ends_sooner() -> None:
    stage = stage_of(join(leaf(), leaf()))
    sizes = InputSizes({}, {0: [10, 800, 10, 10], 1: [5, 5, 5, 5]})
    hot = [HotPartition(0, 1, (200, 600))]
    options: dict[str, Any] = {
        "parallelism": 4,
        "target_task_bytes": 10_000,
        "min_task_bytes": 1,
    }
    before = assign_tasks(stage, sizes, **options)
    tasks = assign_tasks(stage, sizes, **options, hot=hot)
    split = [t for t in tasks if isinstance(t.slices[0], PartitionPiece)]
    assert len(split) >= 4
    assert {t.slices[1] for t in split} == {PartitionRange(1, 2)}
    others = [t.slices for t in tasks if t not in split]
    assert all(s[0] == s[1] and isinstance(s[0], PartitionRange) for s in others)
    covered = [
        p for s in others if isinstance(s[0], PartitionRange) for p in range(s[0].low, s[0].high)
    ]
    assert sorted(covered) == [0, 2, 3]
    assert makespan([t.num_bytes for t in tasks], 4) < 0.4 * makespan(
        [t.num_bytes for t in before], 4
    )
    # The other side is as large: every piece would read it again, which ends no sooner.
    large = InputSizes({}, {0: [10, 800, 10, 10], 1: [5, 90_000, 5, 5]})
    assert assign_tasks(stage, large, **options, hot=hot) == assign_tasks(stage, large, **options)
    assert assign_tasks(stage, sizes, **{**options, "parallelism": 1}, hot=hot) == assign_tasks(
        stage, sizes, **{**options, "parallelism": 1}
    )


def test_tiny_partitions_become_a_handful_of_tasks() -> None:
    stage = stage_of(join(leaf(), leaf()))
    sizes = InputSizes({}, {0: [20_000] * 1024, 1: [1_000] * 1024})
    divided = divide_stage(
        stage, sizes, EngineSettings(), is_head=False, parallelism=4, file_bytes=no_index
    )
    assert len(divided.tasks) == 4
    assert [d.text for d in divided.decisions] == ["1,024 partitions, 21,504,000 bytes, in 4 tasks"]
    for off in ({"adaptive_coalesce": False}, {"adaptive": False}):
        settings = EngineSettings(**off)
        divided = divide_stage(
            stage, sizes, settings, is_head=False, parallelism=4, file_bytes=no_index
        )
        assert [t.slices[0] for t in divided.tasks] == [
            PartitionRange(place, place + 1) for place in range(1024)
        ]
        assert not divided.decisions


def test_a_skewed_partition_is_split_beside_partitions_with_tasks_of_their_own() -> None:
    stage = stage_of(join(leaf(), leaf()))
    sizes = InputSizes({}, {0: [10, 8000, 10, 0, 10], 1: [1] * 5})
    settings = EngineSettings(
        min_task_bytes=0,
        target_task_bytes=1000,
        skew_bytes=100,
        adaptive_coalesce=False,
        adaptive_broadcast=False,
    )
    divided = divide_stage(
        stage,
        sizes,
        settings,
        is_head=False,
        parallelism=4,
        file_bytes=lambda leaf, partition: [2000] * 4,
    )
    split = [t.slices for t in divided.tasks if isinstance(t.slices[0], PartitionPiece)]
    assert len(split) >= 4
    assert {part for _, part in split} == {PartitionRange(1, 2)}
    whole = [t.slices[0] for t in divided.tasks if t.slices not in split]
    # Nothing is joined; a task without a row of one input gives none.
    assert sorted(part.low for part in whole if isinstance(part, PartitionRange)) == [0, 2, 4]
    assert all(p.high - p.low == 1 for p in whole if isinstance(p, PartitionRange))
    assert [d.kind for d in divided.decisions] == ["skew"]


def no_index(leaf_position: int, partition: int) -> Sequence[int]:
    raise AssertionError(f"nobody asked for partition {partition} of leaf {leaf_position}")


# ---------------------------------------------------------------- empty inputs


@pytest.mark.parametrize(
    ("kind", "by_left", "by_right"),
    [
        ("inner", {0, 1}, {0, 1}),
        ("left", {0, 1}, {1}),
        ("right", {0}, {0, 1}),
        ("full", {0}, {1}),
        ("semi", {0, 1}, {0, 1}),
        ("anti", {0, 1}, {1}),
    ],
)
def test_what_an_empty_input_makes_useless(
    kind: JoinKind, by_left: set[int], by_right: set[int]
) -> None:
    stage = stage_of(aggregate(join(leaf(), leaf(), kind), "partial"))
    for empty, expected in ((0, by_left), (1, by_right)):
        found = find_empty(stage, {empty})
        assert found.unread == expected
        assert found.no_rows == (len(expected) == 2)
    assert find_empty(stage, {0, 1}).no_rows
    assert not find_empty(stage, set()).unread


def test_an_aggregate_without_keys_gives_a_row_for_no_rows() -> None:
    stage = stage_of(aggregate(join(leaf(), leaf()), "partial", keys=False))
    found = find_empty(stage, {1})
    assert found.unread == {0, 1}
    assert not found.no_rows
    one_branch = stage_of(UnionExec((join(leaf(), leaf()), leaf()), (Column(0, "k", BIGINT),)))
    assert find_empty(one_branch, {0}).unread == {0, 1}
    assert not find_empty(one_branch, {0}).no_rows


def test_tasks_without_a_row_are_left_out() -> None:
    stage = stage_of(join(leaf(), leaf()))
    sizes = InputSizes({}, {0: [50, 50, 50, 50], 1: [10, 0, 0, 10]})
    settings = EngineSettings(min_task_bytes=0, target_task_bytes=50)
    options: dict[str, Any] = {"is_head": False, "parallelism": 4, "file_bytes": no_index}
    tasks = divide_stage(stage, sizes, settings, **options).tasks
    assert [t.slices[0] for t in tasks] == [PartitionRange(0, 1), PartitionRange(3, 4)]
    off = dataclasses.replace(settings, adaptive=False)
    assert len(divide_stage(stage, sizes, off, **options).tasks) == 4
    nothing = InputSizes({}, {0: [50, 50, 50, 50], 1: [0] * 4})
    divided = divide_stage(stage, nothing, settings, **options)
    assert [t.slices for t in divided.tasks] == [(PartitionRange(0, 0),) * 2]
    (decision,) = divided.decisions
    assert decision.kind == "empty"
    assert decision.text.startswith("no row can come out: stage ")


# ---------------------------------------------------------------- beside Spark

OPTIONS = PlannerOptions(
    force_distribution=True, num_partitions=4, inline_bytes=0, broadcast_bytes=0
)
_JOIN = "SELECT a.k, a.v, b.w FROM hot a {kind} JOIN facts b ON a.k = b.k AND a.v % 5 <> b.w % 5"
SPLIT = [
    _JOIN.format(kind="INNER"),
    _JOIN.format(kind="LEFT"),
    "SELECT b.k, b.w, a.v FROM facts b RIGHT JOIN hot a ON a.k = b.k",
    "SELECT a.k, a.v FROM hot a LEFT SEMI JOIN facts b ON a.k = b.k AND a.v % 5 <> b.w % 5",
    "SELECT a.k, a.v FROM hot a LEFT ANTI JOIN facts b ON a.k = b.k AND a.v % 5 <> b.w % 5",
    "SELECT b.w, count(*) AS n, sum(a.v) AS s, max(a.k) AS m FROM hot a JOIN facts b ON a.k = b.k "
    "GROUP BY b.w",
    "SELECT a.v, b.w FROM hot a JOIN facts b ON a.k = b.k ORDER BY a.v DESC, b.w LIMIT 7",
    "SELECT a.k, a.v, x.w FROM hot a JOIN facts b ON a.k = b.k LEFT JOIN facts x ON a.k = x.k",
]
_LESS = "a.k = b.k AND a.v < b.v - 1095000000000"
SELF = [  # both sides read the same shuffle, and only one of them is split
    f"SELECT a.k, a.v, b.v AS w FROM hot a JOIN hot b ON {_LESS}",
    f"SELECT a.k, a.v FROM hot a LEFT ANTI JOIN hot b ON {_LESS}",
    f"SELECT a.k, a.v, b.v AS w, f.w AS x FROM hot a JOIN hot b ON {_LESS} JOIN facts f "
    "ON f.k = a.k",
]
WHOLE = [
    _JOIN.format(kind="FULL"),
    "SELECT a.k, count(*) AS n, sum(b.w) AS s FROM hot a JOIN facts b ON a.k = b.k GROUP BY a.k",
    "SELECT a.k, a.v, row_number() OVER (PARTITION BY a.k ORDER BY a.v, b.w) AS r "
    "FROM hot a JOIN facts b ON a.k = b.k",
    "SELECT b.k, b.w FROM facts b LEFT SEMI JOIN hot a ON a.k = b.k AND a.v % 5 <> b.w % 5",
]
WHOLE_BESIDE_EMPTY = [
    "SELECT a.k, b.w FROM hot a LEFT JOIN none b ON a.k = b.k",
    "SELECT b.w, a.v FROM none b RIGHT JOIN hot a ON a.k = b.k",
]
EMPTY = [
    "SELECT a.k, b.w FROM hot a JOIN none b ON a.k = b.k",
    "SELECT a.k FROM hot a LEFT SEMI JOIN none b ON a.k = b.k",
    "SELECT count(*) AS n, max(b.w) AS m FROM none b JOIN hot a ON a.k = b.k",
    "SELECT a.k, c.w FROM hot a LEFT JOIN (SELECT f.k, f.w FROM facts f JOIN none n ON f.k = n.k) c "
    "ON a.k = c.k",
]


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("adaptive")
    rng = random.Random(3)
    keys = (7 if rng.random() < 0.8 else rng.choice([None, *range(40)]) for _ in range(3000))
    hot = [(k, rng.getrandbits(40)) for k in keys]  # not to be compressed
    facts = [(k, k * 10 + i) for k in range(0, 50, 2) for i in range(2)] + [(7, 1), (None, 5)]
    rows: dict[str, tuple[str, list[Any]]] = {
        "hot": ("v", hot),
        "facts": ("w", facts),
        "none": ("w", []),
    }
    for name, (value, content) in rows.items():
        (folder / name).mkdir()
        columns = {"k": [k for k, _ in content], value: [v for _, v in content]}
        schema = pa.schema([("k", pa.int64()), (value, pa.int64())])
        table = pa.table(columns, schema=schema)
        pq.write_table(table, folder / name / "a.parquet", row_group_size=600)
    entries = "".join(f"  {name}:\n    location: {name}\n" for name in rows)
    (folder / "catalog.yaml").write_text(f"tables:\n{entries}")
    return folder


@pytest.mark.spark
@pytest.mark.parametrize("kind", ["skew", "empty"])
def test_rows_are_sparks_whatever_is_decided(
    tables: Path, spark_settings: EngineSettings, spark: SparkSession, tmp_path: Path, kind: str
) -> None:
    catalog = load_catalog(tables / "catalog.yaml")
    settings = dataclasses.replace(
        spark_settings,
        storage_root=str(tmp_path),
        min_task_bytes=0,
        skew_bytes=1,
        skew_factor=2.0,
        late_broadcast_bytes=0,
        parallelism=8,
    )
    make_views(spark, tables, "hot", "facts", "none")
    kept = WHOLE if kind == "skew" else WHOLE_BESIDE_EMPTY
    # Where the keys of an empty input are known already, the other one is not even shuffled.
    wanted = {"skew"} if kind == "skew" else {"empty", "prune"}
    for sql in [*([*SPLIT, *SELF] if kind == "skew" else EMPTY), *kept]:
        graph = plan_query(sql, catalog, OPTIONS, name="q")
        manifests = run_on_duckdb(sql, graph, catalog, settings, spark)
        decided = {d["kind"] for m in manifests for d in m.metrics.get("adaptive", ())}
        assert bool(wanted & decided) == (sql not in kept), (sql, decided)


@pytest.mark.spark
def test_spark_does_not_read_what_is_useless_either(
    tables: Path, spark_settings: EngineSettings, spark: SparkSession, tmp_path: Path
) -> None:
    catalog = load_catalog(tables / "catalog.yaml")
    settings = dataclasses.replace(spark_settings, storage_root=str(tmp_path))
    options = dataclasses.replace(OPTIONS, engine="spark")
    graph = plan_query(EMPTY[0], catalog, options, name="q")
    rows, manifests = run(graph, catalog, settings, spark)
    assert rows == []
    assert {m.engine for m in manifests} == {"spark"}
    told = [d["kind"] for m in manifests for d in m.metrics.get("adaptive", ())]
    assert {"empty", "prune"} & set(told)
    off = dataclasses.replace(
        settings, storage_root=str(tmp_path / "off"), adaptive_empty=False, adaptive_prune=False
    )
    rows, manifests = run(graph, catalog, off, spark)
    assert rows == []
    assert not [d for m in manifests for d in m.metrics.get("adaptive", ())]
