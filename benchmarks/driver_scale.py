"""Time and memory of the driver at size: `python -m benchmarks.driver_scale`.

Each step runs in a process of its own over made-up files and reports of tasks, with the real
snapshot, pruning, division, manifest and index:

- `snapshot`: a table of many files is listed in a run's snapshot, written, read back, pruned by
  the bounds of a column, and shared out among tasks.
- `commit`: the reports of the tasks of the first level of a shuffle become an index and a manifest,
  which are read back as a reader of one partition does.
- `one-level`: the same with a range for each partition instead of each group, at a tenth of the
  tasks: what two levels avoid.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import numpy as np
import pyarrow as pa

from benchmarks.measured import peak_bytes, run_measured
from benchmarks.report import document, json_option, write_document
from stagecoach.infra.config.settings import EngineSettings
from stagecoach.infra.formats.snapshot import Snapshot, TableSnapshot
from stagecoach.infra.reading.data_file import DataFile
from stagecoach.infra.runtime.planning.fingerprint import stage_fingerprints
from stagecoach.infra.runtime.planning.plan_tasks import StageReads, build_specs
from stagecoach.infra.shuffle.commit import commit_manifest, load_index, load_manifest
from stagecoach.infra.shuffle.encoding import plain_schema, schema_hash
from stagecoach.infra.shuffle.map_file import MapFile, OutputPartitioning
from stagecoach.infra.shuffle.partition_ranges import RANGE, PartitionRanges
from stagecoach.infra.storage import layout
from stagecoach.infra.storage.stores import open_store
from stagecoach.planner.catalog import ColumnStats, MappingCatalog, TableInfo, TableStats
from stagecoach.planner.distribution.shuffle_levels import groups_of
from stagecoach.planner.options import PlannerOptions
from stagecoach.planner.planning import plan_query
from stagecoach.planner.types import BIGINT, STRING, Field

FILE_BYTES, FILE_ROWS = 16 << 20, 100_000
SQL = "SELECT k, max(v) AS m FROM facts WHERE day < {day} GROUP BY k"
AIM_BYTES, AIM_SECONDS = 2 << 30, 120


@click.command()
@click.option("--files", default=1_000_000, help="Files of the table.", show_default=True)
@click.option("--tasks", default=100_000, help="Map tasks.", show_default=True)
@click.option("--partitions", default=10_000, help="Partitions.", show_default=True)
@click.option("--job", hidden=True)
@json_option
def main(files: int, tasks: int, partitions: int, job: str | None, json_path: Path | None) -> None:
    """Measure the driver over made-up files, reports and manifests."""
    if job is not None:
        values = json.loads(job)
        found = _JOBS[values.pop("step")](**values)
        click.echo(json.dumps({**found, "peak_bytes": peak_bytes()}))
        return
    groups = groups_of(partitions)
    jobs = {
        f"snapshot of {files:,} files": {"step": "snapshot", "files": files, "tasks": tasks},
        f"commit of {tasks:,} tasks x {groups:,} groups": {
            "step": "commit", "tasks": tasks, "ranges": groups, "partitions": groups
        },
        f"commit of {tasks:,} tasks x {partitions // groups:,} of {partitions:,} partitions": {
            "step": "commit", "tasks": tasks, "ranges": partitions // groups,
            "partitions": partitions,
        },
        f"one level: {tasks // 10:,} tasks x {partitions // 10:,} partitions": {
            "step": "commit", "tasks": tasks // 10, "ranges": partitions // 10,
            "partitions": partitions // 10,
        },
    }  # fmt: skip
    rows: dict[str, Any] = {}
    for name, values in jobs.items():
        rows[name] = run_measured("benchmarks.driver_scale", values, name)
        seconds = ", ".join(f"{k} {v:.1f}" for k, v in rows[name]["seconds"].items())
        click.echo(f"{name}: {rows[name]['peak_bytes'] / 2**20:,.0f} MiB; seconds: {seconds}")
    missed = [
        name
        for name, row in rows.items()
        if row["peak_bytes"] > AIM_BYTES or sum(row["seconds"].values()) > AIM_SECONDS
    ]
    write_document(document("driver_scale", steps=rows, missed=missed), json_path)
    raise SystemExit(1 if missed else 0)


class _Clock:
    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        started = time.perf_counter()
        yield
        self.seconds[name] = time.perf_counter() - started


def _snapshot(files: int, tasks: int) -> dict[str, Any]:
    """A run's first stage over a table of many files, half of which its filter leaves out."""
    clock = _Clock()
    columns = (Field("k", BIGINT), Field("day", BIGINT), Field("v", STRING))
    with clock.step("make"):
        table = TableSnapshot(
            table="facts",
            columns=columns,
            files=tuple(_table_file(number) for number in range(files)),
        )
    stats = {
        "k": ColumnStats(0, 10**12, 0, 10**10, 8.0),
        "day": ColumnStats(0, files, 0, files, 8.0),
        "v": ColumnStats(None, None, 0, 10**6, 20.0),
    }
    info = TableInfo("facts", columns, TableStats(files * FILE_ROWS, files * FILE_BYTES, 1, stats))
    with clock.step("plan"):
        sql = SQL.format(day=files // 2)
        graph = plan_query(sql, MappingCatalog([info]), PlannerOptions(), name="q")
    with tempfile.TemporaryDirectory() as folder:
        store = open_store(folder)
        with clock.step("write"):
            store.write_bytes("runs/r/snapshot.json", Snapshot({"facts": table}).to_json())
        del table
        with clock.step("read"):
            snapshot = Snapshot.from_json(store.read_bytes("runs/r/snapshot.json"))
        size = store.size("runs/r/snapshot.json")
        with clock.step("fingerprint"):
            fingerprints = stage_fingerprints(graph, snapshot, {}, root_run_id="r")
        with clock.step("share out"):
            reads = StageReads(graph, graph.stages[0], snapshot, {}, {})
            settings = EngineSettings(
                storage_root=folder, target_task_bytes=files * FILE_BYTES // 2 // tasks
            )
            specs = build_specs(
                reads, settings, store, sql="", fingerprint=fingerprints[0], parallelism=1000
            ).specs
    return {"seconds": clock.seconds, "tasks": len(specs), "snapshot_bytes": size}


def _table_file(number: int) -> DataFile:
    return DataFile(
        f"s3://bucket/lake/facts/part-{number:08d}.zstd.parquet",
        FILE_ROWS,
        num_bytes=FILE_BYTES,
        version=f"etag:{number:032x}",
        footer_checksum=f"{number:032x}",
        row_groups=(FILE_ROWS,),
        bounds=((0, 0, 10**12), (0, number, number + 1), (0, None, None)),
    )


def _commit(tasks: int, ranges: int, partitions: int) -> dict[str, Any]:
    """Task reports of so many ranges each, of a shuffle into so many partitions."""
    clock = _Clock()
    schema = plain_schema(pa.schema([("k", pa.int64()), ("v", pa.string())]))
    hashed = schema_hash(schema)
    with clock.step("make"):
        texts = _reports(tasks, ranges, partitions, hashed)
        files = [MapFile.from_dict(json.loads(text)) for text in texts]
    with tempfile.TemporaryDirectory() as folder:
        store = open_store(folder)
        with clock.step("commit"):
            manifest = commit_manifest(
                store,
                "ab" * 32,
                files,
                plan_hash="0" * 64,
                query="q",
                stage_id=0,
                engine="duckdb",
                schema=schema,
                partitioning=OutputPartitioning(
                    kind="shuffle", keys=(0,), num_partitions=partitions
                ),
                codec="lz4",
                created_at="",
            )
        del files
        size = store.size(layout.manifest("ab" * 32))
        with clock.step("read manifest"):
            found = load_manifest(store, "ab" * 32)
        assert found is not None
        with clock.step("read one partition"):
            index = load_index(store, found, 1, 2)
    return {
        "seconds": clock.seconds,
        "manifest_bytes": size,
        "index_bytes": manifest.index_bytes,
        "files_of_a_partition": index.num_rows,
    }


def _reports(tasks: int, ranges: int, partitions: int, hashed: str) -> Iterator[str]:
    """What tasks report, as text; each has rows of neighbouring partitions."""
    random = np.random.default_rng(1)
    for task in range(tasks):
        first = task * ranges % partitions
        there = np.zeros(min(ranges, partitions - first), dtype=RANGE)
        there["partition"] = np.arange(first, first + len(there))
        there["length"] = random.integers(1, 1 << 20, len(there))
        there["offset"] = np.cumsum(there["length"]) - there["length"]
        there["rows"] = random.integers(1, 1 << 14, len(there))
        there["checksum"] = there["length"]
        file = MapFile(
            name=f"{task:06d}-{os.urandom(8).hex()}.arrow",
            task_index=task,
            attempt=f"{task:016x}",
            num_bytes=int(there["length"].sum()),
            num_rows=int(there["rows"].sum()),
            checksum=task,
            content_checksum=task,
            schema_hash=hashed,
            ranges=PartitionRanges(partitions, there.tobytes()),
        )
        yield json.dumps(file.to_dict())


_JOBS: dict[str, Callable[..., dict[str, Any]]] = {"snapshot": _snapshot, "commit": _commit}

if __name__ == "__main__":
    main()
