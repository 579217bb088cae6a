"""Collections beside runs that commit, reuse and read: nobody ever loses a file."""

from __future__ import annotations

import datetime
import random
import threading
import time
from collections import Counter
from pathlib import Path

import pyarrow as pa

from stagecoach.infra.errors import ShuffleReadError
from stagecoach.infra.runtime.records.pointers import StagePointer, write_pointer
from stagecoach.infra.runtime.records.run_marks import mark_begun, mark_ended
from stagecoach.infra.shuffle.commit import load_manifest
from stagecoach.infra.shuffle.manifest import Manifest
from stagecoach.infra.shuffle.map_file import MapFile, OutputPartitioning
from stagecoach.infra.shuffle.reader import read_table
from stagecoach.infra.storage import layout
from stagecoach.infra.storage.object_store import ObjectMissingError, ObjectStore
from stagecoach.infra.storage.stores import open_store
from stagecoach.infra.upkeep.gc import collect_garbage
from stagecoach.infra.upkeep.usage import storage_usage
from tests.stage_outputs import commit_files, write_map_file

SECONDS = 4.0
SCHEMA = pa.schema([("c0", pa.int64())])
PARTITIONING = OutputPartitioning(kind="shuffle", keys=(0,), num_partitions=3)
NUM_STAGES, NUM_TASKS, ROWS = 6, 2, 300


def fingerprint(number: int) -> str:
    return f"{number:02x}" * 32


def compute(store: ObjectStore, number: int) -> Manifest:
    """A stage of two tasks; now and then an attempt that is never committed."""
    files: list[MapFile] = []
    for task in range(NUM_TASKS):
        for attempt in range(random.choice((1, 1, 2))):
            rows = pa.array(range(ROWS * task, ROWS * task + ROWS))
            file = write_map_file(
                store,
                fingerprint(number),
                [pa.record_batch([rows], schema=SCHEMA)],
                SCHEMA,
                PARTITIONING,
                task=task,
                attempt=layout.new_attempt(attempt),
            )
        files.append(file)
    return commit_files(store, fingerprint(number), files, SCHEMA, PARTITIONING, stage_id=number)


def pinned(store: ObjectStore, run_id: str, number: int, counts: Counter[str]) -> Manifest:
    """A stage's commit as a run gets it: found or computed, pinned, and looked at once more."""
    while True:
        manifest = load_manifest(store, fingerprint(number))
        if manifest is None:
            manifest = compute(store, number)
            counts["computed"] += 1
        else:
            counts["reused"] += 1
        pointer = StagePointer(
            expected=fingerprint(number),
            fingerprint=fingerprint(number),
            manifest_hash=manifest.manifest_hash,
        )
        write_pointer(store, run_id, number, pointer)
        again = load_manifest(store, fingerprint(number))
        if again is not None and again.manifest_hash == manifest.manifest_hash:
            return manifest
        counts["collected before it was pinned"] += 1


def one_run(store: ObjectStore, run_id: str, counts: Counter[str]) -> None:
    mark_begun(store, run_id, run_id)
    numbers = random.sample(range(NUM_STAGES), 3)
    manifests = [pinned(store, run_id, number, counts) for number in numbers]
    for manifest in manifests:
        time.sleep(random.random() * 0.02)
        found = read_table(store, manifest)
        assert sorted(found.column("c0").to_pylist()) == list(range(ROWS * NUM_TASKS))
    mark_ended(store, run_id, run_id)
    counts["runs"] += 1


def test_runs_and_collections_beside_each_other(tmp_path: Path) -> None:
    store = open_store(tmp_path / "root", {"fsync": "never"})
    stop = threading.Event()
    counts: Counter[str] = Counter()
    failures: list[BaseException] = []

    def run(worker: int) -> None:
        number = 0
        while not stop.is_set() and not failures:
            try:
                one_run(store, f"run-{worker}-{number}", counts)
            except (ShuffleReadError, ObjectMissingError, AssertionError) as error:
                failures.append(error)
            number += 1

    def collect() -> None:
        while not stop.is_set() and not failures:
            try:
                # Everything that no run in progress needs, however new it is.
                report = collect_garbage(store, older_than=datetime.timedelta())
                counts["expired"] += len(report.expired)
                counts["orphans"] += len(report.orphans)
                counts["expired runs"] += len(report.runs)
            except Exception as error:  # noqa: BLE001 -- told to the test
                failures.append(error)
            time.sleep(random.random() * 0.05)

    threads = [threading.Thread(target=run, args=(worker,)) for worker in range(3)]
    threads.append(threading.Thread(target=collect))
    for thread in threads:
        thread.start()
    time.sleep(SECONDS)
    stop.set()
    for thread in threads:
        thread.join()
    assert not failures, (failures, counts)
    for what in ("runs", "computed", "reused", "expired", "orphans", "expired runs"):
        assert counts[what] > 0, counts

    # When all is over, everything goes.
    later = datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=2)
    collect_garbage(store, older_than=datetime.timedelta(hours=1), now=later)
    collect_garbage(store, older_than=datetime.timedelta(hours=1), now=later)
    assert storage_usage(store).total.num_objects == 0
