"""Tasks in-process: real DuckDB, real files, no Spark."""

from __future__ import annotations

import dataclasses
import json
import socket
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stagecoach.infra.errors import (
    InputLostError,
    QueryError,
    ShuffleReadError,
    StorageError,
    TaskFailedError,
)
from stagecoach.infra.reading.data_file import DataFile
from stagecoach.infra.reading.inputs import LeafColumn, ScanInput
from stagecoach.infra.shuffle.manifest import Manifest, ManifestError
from stagecoach.infra.shuffle.map_file import OutputPartitioning
from stagecoach.infra.shuffle.reader import read_table
from stagecoach.infra.storage import layout
from stagecoach.infra.storage.object_store import ObjectStore
from stagecoach.infra.storage.stores import open_store
from stagecoach.infra.worker.reports import TaskFailure, TaskReport
from stagecoach.infra.worker.spec import InputSpec, ShuffleInput, TaskSettings, TaskSpec
from stagecoach.infra.worker.task import output_schema, run_task
from stagecoach.planner.types import BIGINT, INT, STRING, DataType
from tests.stage_outputs import commit_files

FIRST = "a" * 64
SECOND = "b" * 64
GATHER = OutputPartitioning()


@pytest.fixture
def store(tmp_path: Path) -> ObjectStore:
    return open_store(tmp_path / "store")


@pytest.fixture
def table_file(tmp_path: Path) -> str:
    path = tmp_path / "t" / "a.parquet"
    path.parent.mkdir()
    rows = pa.table({"k": range(1000), "name": [f"n{i % 7}" for i in range(1000)]})
    pq.write_table(rows, path, row_group_size=100)
    return str(path)


def make_spec(
    store: ObjectStore,
    tmp_path: Path,
    sql: str,
    inputs: tuple[InputSpec, ...],
    types: tuple[DataType, ...],
    output: OutputPartitioning = GATHER,
    fingerprint: str = FIRST,
    stage_id: int = 0,
) -> TaskSpec:
    settings = TaskSettings(
        store=store.to_dict(),
        time_zone="UTC",
        memory_bytes=256 << 20,
        writer_memory_bytes=64 << 20,
        max_spill_bytes=0,
        spill_dir=str(tmp_path / "spill"),
        codec="lz4",
        directories=(str(tmp_path / "t"),),
    )
    return TaskSpec(
        query="q",
        stage_id=stage_id,
        fingerprint=fingerprint,
        task_index=0,
        sql=sql,
        inputs=inputs,
        types=types,
        output=output,
        settings=settings,
    )


def scan(uri: str, start: int = 0, end: int = 1000) -> ScanInput:
    columns = (LeafColumn("c5", "k", BIGINT), LeafColumn("c6", "name", STRING))
    return ScanInput(columns=columns, files=(DataFile(uri, 1000, rows=(start, end)),))


def commit(store: ObjectStore, spec: TaskSpec, report: TaskReport) -> Manifest:
    assert report.file is not None, report.failure
    return commit_files(
        store,
        spec.fingerprint,
        [report.file],
        output_schema(spec.types),
        spec.output,
        codec=spec.settings.codec,
        query=spec.query,
        stage_id=spec.stage_id,
    )


def failure_of(report: TaskReport) -> Exception:
    # The way through Spark: JSON text.
    carried = TaskReport.from_dict(json.loads(json.dumps(report.to_dict())))
    assert carried.file is None
    assert carried.failure is not None
    return carried.failure.to_error("q/stage_0", carried.task_index)


def shuffle_of(manifest: Manifest, low: int, high: int) -> ShuffleInput:
    return ShuffleInput(
        columns=(LeafColumn("c1", "", STRING), LeafColumn("c2", "", BIGINT)),
        fingerprint=manifest.fingerprint,
        manifest_hash=manifest.manifest_hash,
        stage="q/stage_0",
        low=low,
        high=high,
    )


def counts_by_name(store: ObjectStore, tmp_path: Path, uri: str) -> tuple[TaskSpec, Manifest]:
    spec = make_spec(
        store,
        tmp_path,
        "SELECT c6 AS c0, count(*) AS c1 FROM in_0 GROUP BY c6",
        (scan(uri),),
        (STRING, BIGINT),
        OutputPartitioning(kind="shuffle", keys=(0,), num_partitions=4),
    )
    return spec, commit(store, spec, run_task(spec))


def test_scan_then_shuffle_gives_every_row_once(
    store: ObjectStore, tmp_path: Path, table_file: str
) -> None:
    _, manifest = counts_by_name(store, tmp_path, table_file)
    totals = {}
    for low, high in ((0, 2), (2, 4)):
        spec = make_spec(
            store,
            tmp_path,
            "SELECT c1 AS c0, c2 AS c1 FROM in_0",
            (shuffle_of(manifest, low, high),),
            (STRING, BIGINT),
            fingerprint=SECOND[:-1] + str(low),
            stage_id=1,
        )
        report = run_task(spec)
        rows = read_table(store, commit(store, spec, report)).to_pydict()
        assert report.rows_in == (len(rows["c0"]),)
        assert not totals.keys() & set(rows["c0"])
        totals |= dict(zip(rows["c0"], rows["c1"], strict=True))
    assert totals == {f"n{i}": 143 if i < 6 else 142 for i in range(7)}


@pytest.mark.parametrize(("start", "end"), [(0, 1000), (0, 100), (250, 730), (999, 1000)])
def test_a_range_of_rows_is_exactly_that(
    store: ObjectStore, tmp_path: Path, table_file: str, start: int, end: int
) -> None:
    spec = make_spec(
        store, tmp_path, "SELECT c5 AS c0 FROM in_0", (scan(table_file, start, end),), (BIGINT,)
    )
    rows = read_table(store, commit(store, spec, run_task(spec)))
    assert rows["c0"].to_pylist() == list(range(start, end))


def test_an_empty_input_gives_the_row_of_a_global_aggregate(
    store: ObjectStore, tmp_path: Path
) -> None:
    empty = ScanInput(columns=(LeafColumn("c5", "k", BIGINT),))
    spec = make_spec(
        store,
        tmp_path,
        "SELECT count(*) AS c0, sum(c5) AS c1 FROM in_0",
        (empty,),
        (BIGINT, BIGINT),
    )
    rows = read_table(store, commit(store, spec, run_task(spec)))
    assert rows.to_pylist() == [{"c0": 0, "c1": None}]


def test_a_scan_without_columns_still_has_rows(
    store: ObjectStore, tmp_path: Path, table_file: str
) -> None:
    leaf = dataclasses.replace(scan(table_file), columns=())
    spec = make_spec(store, tmp_path, "SELECT count(*) AS c0 FROM in_0", (leaf,), (BIGINT,))
    rows = read_table(store, commit(store, spec, run_task(spec)))
    assert rows["c0"].to_pylist() == [1000]


@pytest.mark.parametrize(
    ("sql", "types"),
    [
        ("SELECT nonsense(c5) AS c0 FROM in_0", (BIGINT,)),
        ("SELECT CAST(c6 AS INTEGER) AS c0 FROM in_0", (INT,)),
        ("SELECT c5 + 9223372036854775000 AS c0 FROM in_0", (BIGINT,)),
        ("SELECT c5 * 10000000000 AS c0 FROM in_0", (INT,)),  # the pin does not hold the value
        ("SELECT c5 AS c0, c6 AS c1 FROM in_0", (BIGINT,)),
        ("SELECT * FROM read_parquet('/etc/passwd')", (BIGINT,)),
        ("SET threads = 4", (BIGINT,)),
    ],
)
def test_what_duckdb_refuses_is_a_query_error_and_leaves_no_file(
    store: ObjectStore, tmp_path: Path, table_file: str, sql: str, types: tuple[DataType, ...]
) -> None:
    report = run_task(make_spec(store, tmp_path, sql, (scan(table_file),), types))
    assert isinstance(failure_of(report), QueryError)
    assert not [key for key in store.list("shuffle") if key.endswith(".arrow")]


def test_a_missing_table_file_is_named(store: ObjectStore, tmp_path: Path, table_file: str) -> None:
    Path(table_file).unlink()
    spec = make_spec(store, tmp_path, "SELECT c5 AS c0 FROM in_0", (scan(table_file),), (BIGINT,))
    error = failure_of(run_task(spec))
    assert isinstance(error, InputLostError)
    assert table_file in str(error)


def test_lost_shuffle_data_names_the_stage_to_run_again(
    store: ObjectStore, tmp_path: Path, table_file: str
) -> None:
    first, manifest = counts_by_name(store, tmp_path, table_file)
    spec = make_spec(
        store,
        tmp_path,
        "SELECT c1 AS c0 FROM in_0 ORDER BY 1",
        (shuffle_of(manifest, 0, 4),),
        (STRING,),
        fingerprint=SECOND,
    )
    key = layout.shuffle_file(first.fingerprint, manifest.files[0].name)
    store.delete([key])
    error = failure_of(run_task(spec))
    assert isinstance(error, ShuffleReadError)
    assert (error.stage, error.task) == ("q/stage_0", 0)
    assert "run q/stage_0 again" in str(error)


def test_a_commit_that_the_run_did_not_pin_is_refused(
    store: ObjectStore, tmp_path: Path, table_file: str
) -> None:
    _, manifest = counts_by_name(store, tmp_path, table_file)
    leaf = dataclasses.replace(shuffle_of(manifest, 0, 4), manifest_hash="f" * 64)
    spec = make_spec(
        store, tmp_path, "SELECT c1 AS c0 FROM in_0", (leaf,), (STRING,), fingerprint=SECOND
    )
    assert isinstance(failure_of(run_task(spec)), ManifestError)


def test_a_spec_survives_json(store: ObjectStore, tmp_path: Path, table_file: str) -> None:
    spec, manifest = counts_by_name(store, tmp_path, table_file)
    spec = dataclasses.replace(spec, inputs=(*spec.inputs, shuffle_of(manifest, 1, 2)))
    assert TaskSpec.from_dict(json.loads(json.dumps(spec.to_dict()))) == spec


def test_failures_keep_their_class() -> None:
    machine = f"this is on machine {socket.gethostname()}, in a task"
    storage = TaskFailure.of(StorageError("no space"))
    assert isinstance(storage.to_error("s", 1), StorageError)
    assert str(storage.to_error("q/stage_0", 3)) == f"no space; {machine}"
    disk = TaskFailure.of(OSError(28, "No space left on device", "/tmp/spilled"))
    assert machine in str(disk.to_error("q/stage_0", 3)), "it may be the disk of one machine"
    bug = TaskFailure.of(KeyError("x")).to_error("q/stage_0", 3)
    assert isinstance(bug, TaskFailedError)
    assert str(bug) == "q/stage_0, task 3 failed: KeyError: 'x'"
