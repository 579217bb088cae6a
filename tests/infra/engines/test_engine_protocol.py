"""docs/contributor-guide/engines.md, followed: a new engine, through a scan, a shuffle and a refusal."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stagecoach.infra.engines import registry
from stagecoach.infra.engines.registry import register_engine, task_engine
from stagecoach.infra.errors import ConfigError, QueryError
from stagecoach.infra.reading.data_file import DataFile
from stagecoach.infra.reading.inputs import LeafColumn, ScanInput
from stagecoach.infra.shuffle.map_file import OutputPartitioning
from stagecoach.infra.shuffle.reader import read_table
from stagecoach.infra.storage.object_store import ObjectStore
from stagecoach.infra.storage.stores import open_store
from stagecoach.infra.worker.reports import TaskFailure, TaskReport
from stagecoach.infra.worker.spec import InputSpec, ShuffleInput, TaskSettings, TaskSpec
from stagecoach.infra.worker.task import output_schema, run_task
from stagecoach.planner.types import BIGINT, STRING, DataType
from tests.stage_outputs import commit_files

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "contributor-guide" / "engines.md"
NAMES = [f"n{i % 7}" for i in range(1000)]


@pytest.fixture(params=["sqlite", "duckdb"])
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The new engine, and as a reference the one that is there."""
    monkeypatch.setattr(registry, "_ENGINES", dict(registry._ENGINES))
    register_engine("sqlite", "tests.infra.engines.sqlite_engine:SqliteEngine")
    yield request.param
    task_engine.cache_clear()


@pytest.fixture
def store(tmp_path: Path) -> ObjectStore:
    return open_store(tmp_path / "store")


def make_spec(
    store: ObjectStore,
    folder: Path,
    engine: str,
    sql: str,
    leaf: InputSpec,
    types: tuple[DataType, ...],
    stage_id: int = 0,
) -> TaskSpec:
    return TaskSpec(
        query="q",
        stage_id=stage_id,
        fingerprint="ab"[stage_id] * 64,
        task_index=0,
        sql=sql,
        inputs=(leaf,),
        types=types,
        output=OutputPartitioning(kind="shuffle", keys=(0,), num_partitions=4),
        settings=TaskSettings(
            store=store.to_dict(),
            time_zone="UTC",
            memory_bytes=256 << 20,
            writer_memory_bytes=64 << 20,
            max_spill_bytes=0,
            spill_dir=str(folder / "spill"),
            codec="lz4",
            directories=(str(folder),),
        ),
        engine=engine,
    )


def counted(store: ObjectStore, folder: Path, engine: str, sql: str) -> tuple[TaskSpec, TaskReport]:
    pq.write_table(pa.table({"name": NAMES}), folder / "a.parquet")
    leaf = ScanInput(
        columns=(LeafColumn("c6", "name", STRING),),
        files=(DataFile(str(folder / "a.parquet"), 1000, rows=(0, 700)),),
    )
    spec = make_spec(store, folder, engine, sql, leaf, (STRING, BIGINT))
    return spec, run_task(TaskSpec.from_dict(spec.to_dict()))


def test_a_scan_and_the_stage_above_it(tmp_path: Path, store: ObjectStore, engine: str) -> None:
    sql = "SELECT c6 AS c0, count(*) AS c1 FROM in_0 GROUP BY c6"
    spec, report = counted(store, tmp_path, engine, sql)
    assert report.failure is None, report.failure
    assert report.file is not None
    assert report.rows_in == (700,)
    manifest = commit_files(
        store, spec.fingerprint, [report.file], output_schema(spec.types), spec.output
    )

    leaf = ShuffleInput(
        columns=(LeafColumn("c1", "", STRING), LeafColumn("c2", "", BIGINT)),
        fingerprint=manifest.fingerprint,
        manifest_hash=manifest.manifest_hash,
        stage="q/stage_0",
        low=0,
        high=4,
    )
    sql = "SELECT c1 AS c0, c2 * 2 AS c1 FROM in_0 WHERE c1 <> 'n0'"
    above = make_spec(store, tmp_path, engine, sql, leaf, (STRING, BIGINT), stage_id=1)
    done = run_task(above)
    assert done.file is not None, done.failure
    found = read_table(
        store,
        commit_files(
            store, above.fingerprint, [done.file], output_schema(above.types), above.output
        ),
    )
    rows = sorted(zip(*found.to_pydict().values(), strict=True))
    assert rows == [(f"n{i}", 200) for i in range(1, 7)]


def test_what_an_engine_refuses_is_left_to_spark(
    tmp_path: Path, store: ObjectStore, engine: str
) -> None:
    _, report = counted(store, tmp_path, engine, "SELECT no_such_column FROM in_0")
    assert isinstance(report.failure, TaskFailure)
    error = report.failure.to_error("q/stage_0", 0)
    assert isinstance(error, QueryError)
    assert "no_such_column" in str(error)


def test_an_unknown_engine_names_those_that_are_known(engine: str) -> None:
    with pytest.raises(ConfigError, match="'none' is not a task engine; engines: duckdb, sqlite"):
        task_engine("none")


def test_the_page_names_files_that_exist() -> None:
    paths = re.findall(r"`((?:planner|infra|tests|docs)/[\w./]+)`", PAGE.read_text("utf-8"))
    assert len(paths) >= 6
    assert [path for path in paths if not (ROOT / path).exists()] == []
