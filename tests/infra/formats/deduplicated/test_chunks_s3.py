"""A deduplicated table on S3: append, compaction, gc, racing writers, scans of tasks."""

from __future__ import annotations

import datetime
import threading
import uuid
from pathlib import Path

import pyarrow as pa
import pytest

from stagecoach.infra.catalog.catalog import FileCatalog, load_catalog
from stagecoach.infra.errors import InputLostError
from stagecoach.infra.formats.deduplicated import writer
from stagecoach.infra.formats.deduplicated.compaction import compact
from stagecoach.infra.formats.deduplicated.operations import ChunkOperations
from stagecoach.infra.formats.deduplicated.scan import plan_chunk_scan
from stagecoach.infra.formats.deduplicated.table_format import chunk_table
from stagecoach.infra.formats.requests import scan_request
from stagecoach.infra.formats.snapshot import Snapshot, take_snapshot
from stagecoach.infra.storage.fsspec_store import FsspecStore
from stagecoach.infra.storage.local_store import LocalStore
from stagecoach.infra.storage.object_store import StorageOptions
from stagecoach.infra.upkeep.table_gc import collect_table_garbage
from stagecoach.planner.formats.deduplicated import slices
from stagecoach.planner.options import PlannerOptions
from stagecoach.planner.plan.physical import DedupScanExec
from stagecoach.planner.planning import plan_query
from tests.infra.formats.deduplicated.model import visible
from tests.infra.formats.test_chunk_scans import task_values
from tests.infra.upkeep.test_gc import begin_upload, unfinished
from tests.moto_server import BUCKET
from tests.moto_server import moto_options as moto_options
from tests.s3_server import S3Server
from tests.s3_server import s3_server as s3_server

pytestmark = [pytest.mark.s3, pytest.mark.slow]


def test_a_table_on_s3(moto_options: StorageOptions, tmp_path: Path) -> None:
    # Where conditional writes are ignored, two appends at the same moment may lose one.
    root = f"s3://{BUCKET}/{uuid.uuid4().hex}"
    (tmp_path / "catalog.yaml").write_text(
        f"tables: {{t: {{kind: deduplicated, location: '{root}', primary_key: [k]}}}}"
    )
    catalog = load_catalog(tmp_path / "catalog.yaml", moto_options)
    table = chunk_table(catalog, "t")

    def append(value: int) -> None:
        own = chunk_table(load_catalog(tmp_path / "catalog.yaml", moto_options), "t")
        own.append([pa.table({"k": [0, value], "v": [value, value]})], sort=value % 2 == 0)

    threads = [threading.Thread(target=append, args=(value,)) for value in range(1, 4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expected = visible(table)
    assert set(expected) == {(0,), (1,), (2,), (3,)}
    info = catalog.state("t").info
    assert {chunk.store for chunk in info.detail.chunks} == {f"s3://{root.split('/')[2]}"}
    assert all(chunk.uri.startswith("s3://") for chunk in info.detail.chunks)
    assert [f.uri for f in take_snapshot(catalog, ["t"]).table("t").files] == [
        chunk.uri for chunk in info.detail.chunks
    ]
    report = compact(table)
    assert (report.before.num_files, report.after.num_files, report.after.rows) == (3, 1, 4)
    assert visible(table) == expected
    now = datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=30)
    age = datetime.timedelta(days=7)
    (found,) = collect_table_garbage(
        LocalStore(str(tmp_path)), [ChunkOperations(table)], older_than=age, now=now
    )
    assert len(found.replaced) == 3
    assert len(list(table.store.list("chunks"))) == 1
    assert visible(table) == expected


def test_uploads_of_killed_writers_are_aborted(s3_server: S3Server, tmp_path: Path) -> None:
    root = s3_server.new_root()
    (tmp_path / "catalog.yaml").write_text(
        f"tables: {{t: {{kind: deduplicated, location: '{root}', primary_key: [k]}}}}"
    )
    table = chunk_table(load_catalog(tmp_path / "catalog.yaml", s3_server.options), "t")
    table.append([pa.table({"k": [1]})])
    store = FsspecStore(root, s3_server.options)
    begin_upload(root, store, "chunks/20240101T000000-0123456789ab-00000.parquet")
    whose = begin_upload(root, store, "chunks/notes.parquet")
    age = datetime.timedelta(hours=1)

    def collect(hours: int, *, dry_run: bool = False) -> int:
        now = datetime.datetime.now(datetime.UTC) + datetime.timedelta(hours=hours)
        runs = LocalStore(str(tmp_path))
        found = collect_table_garbage(
            runs, [ChunkOperations(table)], older_than=age, dry_run=dry_run, now=now
        )
        return sum(len(expired.uploads) for expired in found)

    assert collect(23) == 0  # a writer may be at it for a day
    assert collect(25, dry_run=True) == 1
    assert len(unfinished(root, store)) == 2
    assert collect(25) == 1
    assert unfinished(root, store) == [whose]
    assert set(visible(table)) == {(1,)}


def read_by_tasks(
    catalog: FileCatalog, snapshot: Snapshot, folder: Path, options: StorageOptions
) -> tuple[list[list[int]], int]:
    """What three tasks read of a filtered scan, and how many rows they open of all chunks."""
    sql = "SELECT k, v FROM t WHERE k < 90"
    graph = plan_query(sql, catalog, PlannerOptions(force_distribution=True))
    (stage,) = graph.stages
    (leaf,) = stage.leaves
    assert isinstance(leaf, DedupScanExec)
    request = scan_request(stage.fragment, leaf, "deduplicated", {}, "UTC")
    scan = plan_chunk_scan(request, snapshot.table("t"))
    rows, _ = task_values(stage.fragment, scan, 3, folder, options)
    opened = sum(
        end - start
        for parts in scan.slices
        for part in parts
        for start, end in map(part.rows_of, part.chunks)
    )
    return sorted(rows), opened


@pytest.mark.parametrize("version", ["", "version_column: v"])
def test_tasks_read_ranges_of_chunks_on_s3(
    version: str, s3_server: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "ROW_GROUP_ROWS", 10)
    monkeypatch.setattr(slices, "RANGE_BYTES", 500)
    root = s3_server.new_root()
    (tmp_path / "catalog.yaml").write_text(
        f"tables: {{t: {{kind: deduplicated, location: '{root}', primary_key: [k], {version}}}}}"
    )
    catalog = load_catalog(tmp_path / "catalog.yaml", s3_server.options)
    table = chunk_table(catalog, "t")
    table.append([pa.table({"k": [*range(100)], "v": [7] * 100})], sort=True)
    table.append([pa.table({"k": [3, 50, 3, 200], "v": [9, 1, 8, 9]})])
    table.append([pa.table({"k": [51, 52, 89, 91], "v": [1, 9, 1, 9]})], sort=True)
    expected = sorted([r["k"], r["v"]] for r in visible(table).values() if r["k"] < 90)
    before = take_snapshot(catalog, ["t"])
    rows, opened = read_by_tasks(catalog, before, tmp_path, s3_server.options)
    assert rows == expected
    parts = len(range(0, 100, 10))
    assert 100 <= opened < parts * 108  # sorted chunks are read in ranges, the other whole
    compact(table)
    after = take_snapshot(catalog, ["t"])
    assert len(after.table("t").detail.chunks) == 1
    assert read_by_tasks(catalog, after, tmp_path, s3_server.options)[0] == expected
    assert read_by_tasks(catalog, before, tmp_path, s3_server.options)[0] == expected
    now = datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=30)
    age = datetime.timedelta(days=7)
    collect_table_garbage(
        LocalStore(str(tmp_path)), [ChunkOperations(table)], older_than=age, now=now
    )
    assert read_by_tasks(catalog, after, tmp_path, s3_server.options)[0] == expected
    with pytest.raises(InputLostError):
        read_by_tasks(catalog, before, tmp_path, s3_server.options)
