"""Results that are lost or damaged while somebody reads them: made again in the same call."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from benchmarks.faults.local_runs import LocalRuns, tasks_here, write_tables
from stagecoach.api import head_output
from stagecoach.api.head_output import MAX_ROUNDS, HeadOutput, ResultChangedError
from stagecoach.api.session import Session
from stagecoach.infra.catalog.catalog import load_catalog
from stagecoach.infra.config.settings import EngineSettings
from stagecoach.infra.errors import InputLostError, ShuffleReadError, StorageError
from stagecoach.infra.runtime.stages.run import Run
from stagecoach.infra.runtime.stages.run_stage import run_stage
from stagecoach.infra.shuffle.commit import load_manifest
from stagecoach.infra.shuffle.manifest import Manifest
from stagecoach.infra.storage import layout
from stagecoach.infra.storage.object_store import StorageOptions
from stagecoach.planner.options import PlannerOptions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = 2000
# Each task of the scan puts out a file, each of several batches.
SCAN = "SELECT k, name FROM t"


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tables(tmp_path_factory.mktemp("tables"), ROWS)


@pytest.fixture
def settings(tmp_path: Path) -> EngineSettings:
    return EngineSettings(
        storage_root=str(tmp_path / "store"),
        storage_options=StorageOptions(fsync="never"),
        spill_dir=str(tmp_path / "spill"),
        parallelism=2,
        memory_bytes=256 << 20,
        min_task_bytes=0,
        target_task_bytes=1 << 10,
    )


class Read:
    """A run that has ended, and its result."""

    def __init__(self, runs: LocalRuns, sql: str = SCAN) -> None:
        self.graph = runs.plan("scan", sql=sql)
        self.context: Run = runs.context(self.graph)
        with tasks_here():
            for stage in self.graph.stages:
                run_stage(stage.stage_id, self.context)
        self.store = runs.store
        self.runs_again = 0
        head = self.graph.head.stage_id
        self.output = HeadOutput(
            store=self.store,
            run_id=self.context.run_id,
            stage=f"scan/stage_{head}",
            fingerprint=self.context.fingerprints[head],
            run_again=self._run_again,
        )
        self.before = self.rows()
        assert self.runs_again == 0

    def _run_again(self) -> str:
        self.runs_again += 1
        with tasks_here():
            return run_stage(self.graph.head.stage_id, self.context).fingerprint

    @property
    def manifest(self) -> Manifest:
        found = load_manifest(self.store, self.output.fingerprint)
        assert found is not None
        return found

    @property
    def folder(self) -> Path:
        return Path(self.store.uri(layout.manifest(self.output.fingerprint))).parent

    def batches(self) -> Iterator[pa.RecordBatch]:
        return self.output.batches(self.graph.result)

    def rows(self) -> list[dict[str, Any]]:
        return pa.Table.from_batches(self.batches()).to_pylist()


@pytest.fixture
def read(tables: Path, settings: EngineSettings) -> Read:
    found = Read(LocalRuns(tables, settings))
    assert len(found.manifest.files) > 2
    return found


def flip(path: Path, position: int | None = None) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2 if position is None else position] ^= 1
    path.write_bytes(content)


def the_first(read: Read) -> Path:
    return read.folder / read.manifest.files[0].name


def the_last(read: Read) -> Path:
    return read.folder / read.manifest.files[-1].name


DAMAGE: dict[str, Callable[[Read], object]] = {
    "file flipped": lambda r: flip(the_last(r)),
    "file short": lambda r: the_last(r).write_bytes(the_last(r).read_bytes()[:-5]),
    "file missing": lambda r: the_first(r).unlink(),
    "index flipped": lambda r: flip(r.folder / r.manifest.index_name),
    "index missing": lambda r: (r.folder / r.manifest.index_name).unlink(),
    # Not anywhere: the last digit of a float may stand for the same one with one bit flipped.
    "manifest flipped": lambda r: flip(r.folder / "manifest.json", 0),
    "manifest missing": lambda r: (r.folder / "manifest.json").unlink(),
    "all missing": lambda r: [path.unlink() for path in r.folder.iterdir()],
}


@pytest.mark.parametrize("name", DAMAGE)
def test_it_is_made_again(name: str, read: Read):
    DAMAGE[name](read)
    assert read.rows() == read.before
    assert read.runs_again == 1
    assert read.rows() == read.before
    assert read.runs_again == 1


@pytest.mark.parametrize("name", DAMAGE)
def test_it_is_made_again_for_who_ran_it(name: str, read: Read):
    """The process that ran the stage needs only its rows; what else is there is not looked at."""
    known = read.context.own.output(read.graph.head.stage_id)
    assert known is not None
    read.output.known, read.output.contents = known.manifest, known.contents
    DAMAGE[name](read)
    again = 1 if "file" in name or "all" in name else 0
    assert read.rows() == read.before
    assert read.runs_again == again
    assert read.rows() == read.before
    assert read.runs_again == again


def test_no_row_is_given_twice(read: Read):
    batches = read.batches()
    first = next(batches)
    flip(the_last(read))
    rest = list(batches)
    assert pa.Table.from_batches([first, *rest]).to_pylist() == read.before
    assert read.runs_again == 1


def test_the_rest_of_a_batch_is_given(read: Read, monkeypatch: pytest.MonkeyPatch):
    """The output that is made again may come in batches of other sizes."""
    real = head_output.result_batches
    sizes = itertools.cycle([3, 7, 1000])
    calls = itertools.count()

    def cut(*args: Any, **named: Any) -> Iterator[pa.RecordBatch]:
        failing = next(calls) == 0
        for batch in real(*args, **named):
            start = 0
            while start < batch.num_rows:
                piece = batch.slice(start, next(sizes))
                start += piece.num_rows
                yield piece
            if failing:
                raise ShuffleReadError("scan/stage_0", 0, 0, "uri")

    monkeypatch.setattr(head_output, "result_batches", cut)
    assert read.rows() == read.before
    assert read.runs_again == 1


def test_rows_in_another_order_are_not_mixed(read: Read, monkeypatch: pytest.MonkeyPatch):
    batches = read.batches()
    next(batches)
    flip(the_last(read))
    hashes = itertools.count()
    monkeypatch.setattr(Manifest, "content_hash", property(lambda _: f"{next(hashes)}"))
    with pytest.raises(ResultChangedError, match=r"scan/stage_0 was lost after \d+ rows had been"):
        list(batches)
    # Whoever has seen no row yet gets them all.
    assert read.rows() == read.before


def test_what_is_lost_each_time_ends(read: Read, monkeypatch: pytest.MonkeyPatch):
    def lost(*_: Any, **__: Any) -> Iterator[pa.RecordBatch]:
        raise ShuffleReadError("scan/stage_0", 0, 0, "uri")
        yield

    monkeypatch.setattr(head_output, "result_batches", lost)
    with pytest.raises(ShuffleReadError, match="lost output of scan/stage_0"):
        read.rows()
    assert read.runs_again == MAX_ROUNDS


def test_what_its_inputs_have_lost_is_made_again(tables: Path, settings: EngineSettings):
    sql = "SELECT name, sum(k) AS s FROM t GROUP BY name ORDER BY name"
    read = Read(LocalRuns(tables, settings), sql)
    assert len(read.graph.stages) > 1
    DAMAGE["all missing"](read)
    for fingerprint in read.context.fingerprints.values():
        for path in Path(read.store.uri(layout.manifest(fingerprint))).parent.glob("*.arrow"):
            path.unlink()
    assert read.rows() == read.before


def test_without_recovery_it_is_named(read: Read):
    read.output.run_again = None
    flip(the_last(read))
    with pytest.raises(ShuffleReadError, match=r"lost output of scan/stage_0 .*run scan/stage_0"):
        read.rows()
    DAMAGE["all missing"](read)
    with pytest.raises(StorageError, match="gone from storage; run the query again"):
        read.rows()


def test_a_run_that_gc_removed_is_not_made_again(read: Read):
    """Its snapshot is gone, so the rows would be those of the tables as they are now."""
    read.store.delete([layout.run_snapshot(read.context.run_id)])
    DAMAGE["all missing"](read)
    with pytest.raises(StorageError, match="gone from storage; run the query again"):
        read.rows()
    assert read.runs_again == 0


@pytest.mark.spark
def test_through_the_python_api(
    tmp_path: Path, spark_settings: EngineSettings, spark: SparkSession
):
    catalog = write_tables(tmp_path / "tables", ROWS)
    settings = dataclasses.replace(spark_settings, storage_root=str(tmp_path / "store"))
    session = Session(catalog=load_catalog(catalog), settings=settings, options=PlannerOptions())
    result = session.query("SELECT k FROM t WHERE k >= :low ORDER BY k", {"low": 10})
    expected = list(range(10, ROWS))

    def folder() -> Path:
        return Path(session.store.uri(layout.manifest(result.manifest(0).fingerprint))).parent

    for path in folder().glob("*.arrow"):
        flip(path)
    assert result.to_arrow().column("k").to_pylist() == expected
    (folder() / "manifest.json").unlink()
    assert result.num_rows == len(expected)
    for path in folder().glob("*.arrow"):
        path.unlink()
    assert [k for b in result.batches() for k in b.column(0).to_pylist()] == expected
    for path in folder().glob("*.arrow"):
        path.unlink()
    for path in (tmp_path / "tables" / "t").iterdir():
        path.unlink()
    with pytest.raises(InputLostError, match="there is no such file; start a new run"):
        result.to_arrow()


@pytest.mark.spark
def test_the_setting_recover(tmp_path: Path, spark_settings: EngineSettings, spark: SparkSession):
    catalog = write_tables(tmp_path / "tables", ROWS)
    root = str(tmp_path / "store")
    settings = dataclasses.replace(spark_settings, storage_root=root, recover=False)
    session = Session(catalog=load_catalog(catalog), settings=settings, options=PlannerOptions())
    assert session.query("SELECT 1 AS a").run_again is None
