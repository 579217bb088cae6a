"""What a shuffle costs an object store: objects of a stage, requests of a task that reads it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from stagecoach.infra.reading.inputs import LeafColumn
from stagecoach.infra.shuffle import broadcast_cache
from stagecoach.infra.shuffle.manifest import Manifest
from stagecoach.infra.shuffle.map_file import OutputPartitioning
from stagecoach.infra.storage.object_store import ObjectStore
from stagecoach.infra.storage.stores import open_store
from stagecoach.infra.worker import pinned_manifests
from stagecoach.infra.worker.spec import ShuffleInput, TaskSettings, TaskSpec
from stagecoach.infra.worker.task import run_task
from stagecoach.planner.types import BIGINT, STRING
from tests.acceptance.processes import ROOT
from tests.fault_proxy import Fault, FaultProxy
from tests.s3_server import S3Server, s3_server
from tests.stage_outputs import commit_files, write_map_file

__all__ = ["s3_server"]

# A Python worker: runs a task when it is told to, says its rows, and stays as a worker does.
WORKER = """
import json, sys
from stagecoach.infra.worker.task import run_task
from stagecoach.infra.worker.spec import TaskSpec
spec = TaskSpec.from_dict(json.loads(sys.stdin.readline()))
print("ready", flush=True)
sys.stdin.readline()
report = run_task(spec)
print(report.rows_in[0] if report.failure is None else report.failure, flush=True)
sys.stdin.read()
"""

UPSTREAM, OUTPUT = "1c" * 32, "2d" * 32
NUM_TASKS, NUM_PARTITIONS = 5, 16
TYPES = (BIGINT, STRING)

pytestmark = pytest.mark.s3


@pytest.fixture(autouse=True)
def nothing_kept() -> None:
    """As in a new process."""
    broadcast_cache.SHARED.clear()
    pinned_manifests.KEPT.clear()


def commit(store: ObjectStore, partitioning: OutputPartitioning) -> Manifest:
    """A stage of five map tasks."""
    schema = pa.schema([("c0", pa.int64()), ("c1", pa.string())])
    files = []
    for task in range(NUM_TASKS):
        rows = range(1000 * task, 1000 * task + 1000)
        texts = pa.array([f"row {n}" for n in rows])
        batch = pa.record_batch([pa.array(rows), texts], schema=schema)
        files.append(write_map_file(store, UPSTREAM, [batch], schema, partitioning, task=task))
    return commit_files(store, UPSTREAM, files, schema, partitioning)


def reduce_spec(
    store: ObjectStore, manifest: Manifest, low: int, high: int, tmp_path: Path, **settings: Any
) -> TaskSpec:
    """A task that reads some partitions."""
    leaf = ShuffleInput(
        columns=(LeafColumn("c0", "", BIGINT), LeafColumn("c1", "", STRING)),
        fingerprint=UPSTREAM,
        manifest_hash=manifest.manifest_hash,
        stage="q/stage_0",
        low=low,
        high=high,
        num_bytes=sum(manifest.partition_bytes[low:high]),
    )
    return TaskSpec(
        query="q",
        stage_id=1,
        fingerprint=OUTPUT,
        task_index=0,
        sql="SELECT c0, c1 FROM in_0",
        inputs=(leaf,),
        types=TYPES,
        output=OutputPartitioning(),
        settings=TaskSettings(
            store=store.to_dict(),
            time_zone="UTC",
            memory_bytes=256 << 20,
            writer_memory_bytes=32 << 20,
            max_spill_bytes=0,
            spill_dir=str(tmp_path / "spill"),
            codec="lz4",
            **settings,
        ),
    )


def reduce_task(
    store: ObjectStore, manifest: Manifest, low: int, high: int, tmp_path: Path, **settings: Any
) -> int:
    """Run a task that reads some partitions; returns its rows."""
    report = run_task(reduce_spec(store, manifest, low, high, tmp_path, **settings))
    assert report.failure is None, report.failure
    return report.rows_in[0]


def reads(proxy: FaultProxy) -> Counter[str]:
    """Reading requests since the last call, by the kind of object."""
    found: Counter[str] = Counter()
    for method, path in proxy.requests:
        if method in ("GET", "HEAD") and UPSTREAM in path:
            name = path.split("?")[0].rsplit("/", 1)[-1]
            kind = "manifest" if name == "manifest.json" else "index" if "index" in name else "map"
            found[f"{method} {kind}"] += 1
    proxy.requests.clear()
    return found


def test_one_request_a_map_file_and_one_for_the_index(s3_server: S3Server, tmp_path: Path) -> None:
    proxy = FaultProxy(s3_server.endpoint_url)
    with proxy.running():
        options = {**s3_server.options.to_dict(), "endpoint_url": proxy.url}
        store = open_store(s3_server.new_root(), options)
        partitioning = OutputPartitioning(kind="shuffle", keys=(0,), num_partitions=NUM_PARTITIONS)
        manifest = commit(store, partitioning)
        assert len(list(store.list("shuffle"))) == NUM_TASKS + 2
        reads(proxy)

        rows, total = 0, Counter[str]()
        for partition in range(NUM_PARTITIONS):
            rows += reduce_task(store, manifest, partition, partition + 1, tmp_path)
            found = reads(proxy)
            first = {"GET manifest": 1} if partition == 0 else {}  # then this process keeps it
            assert found == {**first, "GET index": 1, "GET map": NUM_TASKS}
            total += found
        assert rows == manifest.num_rows

        # The same partitions in two tasks: an eighth of the requests.
        half = NUM_PARTITIONS // 2
        coalesced = Counter[str]()
        for low in (0, half):
            reduce_task(store, manifest, low, low + half, tmp_path)
            coalesced += reads(proxy)
        assert coalesced.total() * half == total.total() - 1


def test_a_broadcast_is_read_once_a_process(s3_server: S3Server, tmp_path: Path) -> None:
    proxy = FaultProxy(s3_server.endpoint_url)
    with proxy.running():
        options = {**s3_server.options.to_dict(), "endpoint_url": proxy.url}
        store = open_store(s3_server.new_root(), options)
        manifest = commit(store, OutputPartitioning(kind="broadcast"))
        reads(proxy)
        cache = {"broadcast_cache_bytes": 32 << 20}
        assert reduce_task(store, manifest, 0, 1, tmp_path, **cache) == manifest.num_rows
        assert reads(proxy) == {"GET manifest": 1, "GET index": 1, "GET map": NUM_TASKS}
        assert reduce_task(store, manifest, 0, 1, tmp_path, **cache) == manifest.num_rows
        assert reads(proxy) == {}
        # Without it, each task reads for itself.
        broadcast_cache.SHARED.clear()
        for _ in range(2):
            task = reduce_task(store, manifest, 0, 1, tmp_path, broadcast_cache_bytes=0)
            assert task == manifest.num_rows
            assert reads(proxy) == {"GET index": 1, "GET map": NUM_TASKS}


def run_in_processes(spec: TaskSpec, count: int) -> list[str]:
    """Run a task in so many processes at the same time; returns what each says."""
    with ExitStack() as started:
        workers = [
            started.enter_context(
                subprocess.Popen(
                    [sys.executable, "-c", WORKER],
                    cwd=ROOT,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                )
            )
            for _ in range(count)
        ]
        said: list[str] = []
        for sent in (json.dumps(spec.to_dict()), ""):
            for worker in workers:
                assert worker.stdin is not None
                worker.stdin.write(sent + "\n")
                worker.stdin.flush()
            said = [worker.stdout.readline().strip() for worker in workers if worker.stdout]
        return said


def test_a_broadcast_is_read_once_a_host(s3_server: S3Server, tmp_path: Path) -> None:
    proxy = FaultProxy(s3_server.endpoint_url)
    with proxy.running():
        options = {**s3_server.options.to_dict(), "endpoint_url": proxy.url}
        store = open_store(s3_server.new_root(), options)
        manifest = commit(store, OutputPartitioning(kind="broadcast"))
        # So that each comes while another still reads.
        proxy.add(Fault("slow", method="GET", path="index", seconds=0.3))
        reads(proxy)
        settings = {"broadcast_cache_bytes": 32 << 20, "num_readers": 2}
        spec = reduce_spec(store, manifest, 0, 1, tmp_path, **settings)
        assert run_in_processes(spec, 2) == [str(manifest.num_rows)] * 2
        assert reads(proxy) == {"GET manifest": 2, "GET index": 1, "GET map": NUM_TASKS}
    assert list((tmp_path / "spill").glob("stagecoach-shared-*")) == []
