"""Scans of deduplicated tables on real files: random chunk sets, divided among tasks, on DuckDB."""

from __future__ import annotations

import math
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stagecoach.infra.engines.duckdb.engine import DuckDbEngine
from stagecoach.infra.engines.protocol import Fragment, Resources
from stagecoach.infra.errors import InputLostError
from stagecoach.infra.formats.deduplicated import duckdb_view as chunk_engine
from stagecoach.infra.formats.deduplicated.bounds import ChunkPruner
from stagecoach.infra.formats.deduplicated.inputs import ChunkInput, ChunkPart, ChunkRows
from stagecoach.infra.formats.deduplicated.scan import ChunkScan, plan_chunk_scan, pruned_chunks
from stagecoach.infra.formats.file_pruning import bound
from stagecoach.infra.formats.requests import scan_request
from stagecoach.infra.formats.snapshot import TableSnapshot
from stagecoach.infra.formats.units import ScanSlice
from stagecoach.infra.pruning.predicates import may_hold, whole_range
from stagecoach.infra.reading import parquet
from stagecoach.infra.reading.inputs import LeafColumn, leaf_schema
from stagecoach.infra.reading.row_bounds import column_bounds
from stagecoach.infra.runtime.adaptive.estimator import InputSizes, assign_tasks
from stagecoach.infra.shuffle.map_file import OutputPartitioning
from stagecoach.infra.storage.local_store import LocalStore
from stagecoach.infra.storage.object_store import StorageOptions
from stagecoach.infra.worker.first_rows import run_in_steps
from stagecoach.infra.worker.inputs import (
    TaskMeter,
    engine_input,
    read_input,
    task_resources,
)
from stagecoach.infra.worker.spec import TaskSettings, TaskSpec
from stagecoach.planner.errors import CatalogError
from stagecoach.planner.formats.deduplicated import slices
from stagecoach.planner.formats.deduplicated.chunk import Chunk, DedupState, DedupTable
from stagecoach.planner.formats.deduplicated.context import ChunkContext
from stagecoach.planner.plan.expressions import (
    TRUE,
    Call,
    Column,
    Expression,
    Literal,
    LiteralValue,
    SortKey,
    call,
    substitute,
)
from stagecoach.planner.plan.physical import DedupScanExec, FilterExec, PhysicalPlan, SortExec
from stagecoach.planner.plan.stages import Branch, Stage, StageOutput
from stagecoach.planner.pruning.scan_filters import conjuncts_above
from stagecoach.planner.render.fragment import render_fragment
from stagecoach.planner.tree import walk
from stagecoach.planner.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DataType,
    Field,
    arrow_schema,
)
from tests.planner.formats.deduplicated.chunk_sets import FIELDS, GROUP_ROWS, ChunkSet, chunk_set
from tests.planner.formats.deduplicated.model import Model

_CASES = int(os.environ.get("STAGECOACH_CHUNK_CASES", "60"))
_FIRST_ID = 10


def written(case: ChunkSet, folder: Path) -> tuple[Chunk, ...]:
    """The chunks as files."""
    chunks = []
    for chunk in case.chunks:
        schema = arrow_schema(chunk.columns)
        rows = [{f.name: r.get(f.name) for f in chunk.columns} for r in case.rows[chunk.chunk_id]]
        table = pa.Table.from_pylist(rows, schema=schema)
        path = folder / f"{chunk.chunk_id}.{chunk.kind}"
        if chunk.kind == "parquet":
            pq.write_table(table, path, row_group_size=GROUP_ROWS)
        else:
            with pa.ipc.new_file(path, schema) as writer:
                writer.write_table(table, max_chunksize=GROUP_ROWS)
        chunks.append(replace(chunk, uri=str(path), num_bytes=path.stat().st_size))
    return tuple(chunks)


def scan_of(
    case: ChunkSet, chunks: tuple[Chunk, ...], predicate: Expression
) -> tuple[PhysicalPlan, DedupScanExec, TableSnapshot]:
    """A fragment that filters a scan of all columns, and what it reads."""
    table = case.context.table
    snapshot = TableSnapshot(
        table="t",
        columns=table.columns,
        files=(),
        format="deduplicated",
        detail=DedupState(table, chunks),
    )
    columns = tuple(Column(_FIRST_ID + i, f.name, f.dtype) for i, f in enumerate(table.columns))
    leaf = DedupScanExec("t", columns, table.column_names, key=table.primary_key)
    refs: dict[int, Expression] = {i: c.ref for i, c in enumerate(columns)}
    if predicate == TRUE:
        return leaf, leaf, snapshot
    return FilterExec(leaf, substitute(predicate, refs)), leaf, snapshot


def planned(fragment: PhysicalPlan, leaf: DedupScanExec, snapshot: TableSnapshot) -> ChunkScan:
    return plan_chunk_scan(scan_request(fragment, leaf, "deduplicated", {}, "UTC"), snapshot)


def task_rows(fragment: PhysicalPlan, scan: ChunkScan, tasks: int, folder: Path) -> list[str]:
    """The rows of all tasks of a stage with one scan, as sorted texts."""
    return sorted(repr(row) for row in task_values(fragment, scan, tasks, folder)[0])


def task_values(
    fragment: PhysicalPlan,
    scan: ChunkScan,
    tasks: int,
    folder: Path,
    storage: StorageOptions | None = None,
) -> tuple[list[list[Any]], int]:
    """The rows of all tasks of a stage with one scan, and how many rows were left unread."""
    options = {} if storage is None else storage.to_dict()
    columns = fragment.columns
    fields = tuple(Field(c.name, c.dtype) for c in columns)
    stage = Stage(
        0, "", fragment, (Branch("splits", (0,)),), StageOutput("gather"), fields, "duckdb", ""
    )
    sizes = InputSizes({0: scan.units}, {})
    assigned = assign_tasks(
        stage,
        sizes,
        parallelism=tasks,
        target_task_bytes=1 if tasks > 1 else 1 << 40,
        min_task_bytes=1,
    )
    schema = leaf_schema(tuple(LeafColumn(f"c{i}", "", c.dtype) for i, c in enumerate(columns)))
    sql = render_fragment(stage, "duckdb", {})
    settings = Resources(
        time_zone="UTC",
        memory_bytes=1 << 28,
        spill_dir=str(folder / "spill"),
        directories=(str(folder),),
    )
    rows: list[list[Any]] = []
    unread = 0
    for task in assigned:
        share = task.slices[0]
        assert isinstance(share, ScanSlice)
        leaf = replace(ChunkInput.from_dict(scan.bind(share).to_dict()), storage_options=options)
        needed: list[int] = []
        fragment = Fragment.of(sql, [leaf], schema)
        with run_in_steps(DuckDbEngine(), fragment, settings, read=needed.append) as batches:
            rows += [list(r.values()) for b in batches for r in b.to_pylist()]
        unread += leaf.num_rows - needed[-1] if needed else 0
    return rows, unread


def in_both(predicate: Expression) -> Expression:
    """The predicate, if it has none of the functions that only the model knows."""
    own = {"half", "sign_text"}
    found = any(isinstance(n, Call) and n.function in own for n in walk(predicate))
    return TRUE if found else predicate


@pytest.mark.parametrize("part", range(4))
def test_tasks_give_the_rows_of_the_model(
    part: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slices, "SHARE_BYTES", 1500 if part % 2 else 1000)
    monkeypatch.setattr(slices, "RANGE_BYTES", 500 if part % 2 else 1 << 20)
    for seed in range(part, _CASES, 4):
        case = chunk_set(seed)
        folder = tmp_path / str(seed % 8)
        folder.mkdir(exist_ok=True)
        chunks = written(case, folder)
        predicate = in_both(case.predicate)
        fragment, leaf, snapshot = scan_of(case, chunks, predicate)
        scan = planned(fragment, leaf, snapshot)
        model = Model(case.context.table, case.rows, prunes=False)
        expected = model.expected(case.chunks, predicate, case.context.table.column_names)
        for tasks in (1, 3):
            assert task_rows(fragment, scan, tasks, folder) == expected, seed


def test_the_first_rows_by_time_are_found_in_the_first_chunks(tmp_path: Path) -> None:
    unread = 0
    for seed in range(_CASES):
        case = chunk_set(seed)
        if case.context.table.time_column is None:
            continue
        folder = tmp_path / str(seed % 8)
        folder.mkdir(exist_ok=True)
        predicate = in_both(case.predicate)
        fragment, leaf, snapshot = scan_of(case, written(case, folder), predicate)
        time = next(c for c in leaf.outputs if c.name == "time")
        place, fetch, ascending = leaf.outputs.index(time), 1 + seed % 4, seed % 3 == 0
        top = SortExec(fragment, (SortKey(time.ref, ascending, ascending),), fetch)
        scan = planned(top, leaf, snapshot)
        assert scan.wanted is not None
        all_rows, _ = task_values(fragment, replace(scan, wanted=None), 1, folder)
        known = {repr(row) for row in all_rows}

        def order(row: list[Any], place: int = place) -> tuple[bool, int]:
            return row[place] is not None, row[place] or 0

        expected = sorted(map(order, all_rows), reverse=not ascending)[:fetch]
        for tasks in (1, 3):
            rows, saved = task_values(top, scan, tasks, folder)
            unread += saved
            assert {repr(row) for row in rows} <= known, seed
            assert sorted(map(order, rows), reverse=not ascending)[:fetch] == expected, seed
    assert unread > 50


def test_chunks_outside_a_time_filter_are_not_read(tmp_path: Path) -> None:
    case = chunk_set(next(s for s in range(1000) if _is_by_time(chunk_set(s))))
    chunks = tuple(c for c in written(case, tmp_path) if c.time_range is not None)
    low = min(c.time_min for c in chunks if c.time_min is not None)
    wanted = call("le", BOOLEAN, case.context.ref("time"), _literal(low))
    fragment, leaf, snapshot = scan_of(case, chunks, wanted)
    found = pruned_chunks(scan_request(fragment, leaf, "deduplicated", {}, "UTC"), snapshot)
    assert {c.chunk_id for c in found} == {c.chunk_id for c in chunks if c.time_min == low}
    assert len(found) < len(chunks)


def test_times_rule_out_no_chunk_that_all_bounds_would_not() -> None:
    pruned = kept = 0
    for seed in range(300):
        case = chunk_set(seed)
        time = case.context.ref("time")
        for function in ("lt", "le", "gt", "ge", "eq"):
            for value in (seed % 40, 2 * seed):
                one = call(function, BOOLEAN, time, _literal(value))
                other = call(function, BOOLEAN, _literal(value + 9), time)
                fragment, leaf, snapshot = scan_of(
                    case, case.chunks, call("and", BOOLEAN, one, other)
                )
                parts = [bound(p, {}, "UTC") for p in conjuncts_above(fragment, leaf)]
                pruner = ChunkPruner(leaf, case.context.table, parts)
                found = pruner.matching(snapshot.detail.chunks)
                assert found == tuple(c for c in snapshot.detail.chunks if pruner.may_match(c)), (
                    seed
                )
                kept += len(found)
                pruned += len(snapshot.detail.chunks) - len(found)
    assert kept > 500
    assert pruned > 500


@pytest.mark.parametrize(
    ("dtype", "text", "number"),
    [
        (TIMESTAMP, "1969-12-31 23:59:59.999999", -1),
        (TIMESTAMP_NTZ, "2024-06-15 00:00:00.000000", 1_718_409_600_000_000),
        (DATE, "1970-02-01", 31),
        (DATE, "1969-12-31", -1),
        (INT, -7, -7),
    ],
)
@pytest.mark.parametrize("function", ["lt", "le", "gt", "ge", "eq"])
def test_the_times_of_a_comparison_are_those_that_bounds_rule_in(
    dtype: DataType, text: LiteralValue, number: int, function: str
) -> None:
    time, constant = Column(1, "time", dtype).ref, Literal(dtype, text)
    sides: tuple[tuple[Expression, Expression], ...] = ((time, constant), (constant, time))
    for left, right in sides:
        predicate = call(function, BOOLEAN, left, right)
        found = whole_range(predicate)
        assert found is not None
        for low in range(number - 2, number + 3):
            for high in range(low, number + 3):
                known = {1: column_bounds(dtype, 9, (0, low, high))}
                meets = high >= found[1] and low <= found[2]
                assert meets == may_hold(predicate, known), (low, high)


def test_other_predicates_tell_no_times() -> None:
    time, null = Column(1, "time", TIMESTAMP).ref, Literal(TIMESTAMP, None)
    odd = Literal(TIMESTAMP, "+12024-01-01 00:00:00.000000")
    day = Literal(DATE, "2024-01-01")
    for predicate in (
        time,
        call("is_null", BOOLEAN, time),
        call("ne", BOOLEAN, time, Literal(TIMESTAMP, "2024-01-01 00:00:00.000000")),
        *(call("lt", BOOLEAN, time, other) for other in (null, odd, day, time)),
    ):
        assert whole_range(predicate) is None


def _is_by_time(case: ChunkSet) -> bool:
    starts = {c.time_min for c in case.chunks if c.time_range is not None}
    return case.context.table.splits_by_time and len(starts) > 2


def _literal(value: int) -> Expression:
    return Literal(BIGINT, value)


def test_a_chunk_that_is_gone_is_a_lost_input(tmp_path: Path) -> None:
    case = chunk_set(next(s for s in range(100) if len(chunk_set(s).chunks) == 2))
    chunks = written(case, tmp_path)
    fragment, leaf, snapshot = scan_of(case, chunks, TRUE)
    scan = planned(fragment, leaf, snapshot)
    os.remove(chunks[0].uri)
    with pytest.raises(InputLostError, match=chunks[0].uri):
        task_rows(fragment, scan, 1, tmp_path)


def test_another_key_than_planned_asks_for_a_new_plan() -> None:
    case = chunk_set(1)
    fragment, leaf, snapshot = scan_of(case, (), TRUE)
    other = replace(leaf, key=("f",))
    with pytest.raises(CatalogError, match="compile the query again"):
        planned(fragment, other, snapshot)


def test_rows_with_nan_are_compared_as_spark_does(tmp_path: Path) -> None:
    # NaN is above all numbers, and the bounds of a row group do not tell of it.
    table = DedupTable(name="t", columns=FIELDS[:2], primary_key=("k",))
    chunk = Chunk(chunk_id="c", may_contain_duplicates=False, columns=FIELDS[:2], num_rows=2)
    rows = {"c": [{"k": 1, "ratio": 0.0}, {"k": 2, "ratio": math.nan}]}
    case = ChunkSet(ChunkContext(table), (chunk,), rows, TRUE, None)
    chunks = written(case, tmp_path)
    for function, expected in (("lt", ["[1, 0.0]"]), ("gt", ["[2, nan]"])):
        one = Literal(DOUBLE, 1.0)
        wanted = call(function, BOOLEAN, case.context.ref("ratio"), one)
        fragment, leaf, snapshot = scan_of(case, chunks, wanted)
        scan = planned(fragment, leaf, snapshot)
        assert task_rows(fragment, scan, 1, tmp_path) == expected


def test_a_remote_chunk_is_read_within_the_bound_of_the_task(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By DuckDB, and where DuckDB deduplicates for another engine."""
    pq.write_table(pa.table({"k": range(10)}), tmp_path / "a.parquet")
    read_groups, bounds = parquet.read_row_groups, []

    def noted(*args: Any) -> Any:
        bounds.append(args[4])
        return read_groups(*args)

    monkeypatch.setattr(parquet, "read_row_groups", noted)
    there = LocalStore(str(tmp_path))
    monkeypatch.setattr(parquet, "opened_unchanged", lambda *_: there.open_input("a.parquet"))
    monkeypatch.setattr(chunk_engine, "check_file", lambda *_: None)
    remote = ChunkRows(
        uri="s3://b/t/a.parquet",
        kind="parquet",
        num_rows=10,
        num_bytes=100,
        version="",
        sequence=1,
        stored=(("k", "bigint"),),
    )
    columns = (LeafColumn("c0", "k", BIGINT),)
    settings = TaskSettings(
        store=LocalStore(str(tmp_path)).to_dict(),
        time_zone="UTC",
        memory_bytes=1 << 28,
        writer_memory_bytes=1 << 20,
        reader_memory_bytes=3 << 20,
        max_spill_bytes=0,
        spill_dir=str(tmp_path / "spill"),
        codec="none",
    )
    spec = TaskSpec(
        query="q",
        stage_id=0,
        fingerprint="0" * 64,
        task_index=0,
        sql="SELECT c0 FROM in_0",
        inputs=(ChunkInput(columns=columns, parts=(ChunkPart(plain=(remote,)),)),),
        types=(BIGINT,),
        output=OutputPartitioning(),
        settings=settings,
    )
    spec = TaskSpec.from_dict(spec.to_dict())
    leaf = engine_input(LocalStore(str(tmp_path)), spec.inputs[0], settings, 0, TaskMeter([0]))
    with DuckDbEngine().run(
        Fragment.of(spec.sql, [leaf], leaf_schema(columns)), task_resources(settings)
    ) as found:
        assert sum(batch.num_rows for batch in found) == 10
    assert sum(batch.num_rows for batch in read_input(spec, 0)) == 10
    assert bounds == [3 << 20, 3 << 20]
