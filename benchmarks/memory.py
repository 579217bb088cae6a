"""How much memory a map task and a reduce task take: `python -m benchmarks.memory`.

A map task runs a fragment in DuckDB over rows that are generated while it reads them, and writes
its map file; a reduce task reads that file back through a fragment that groups it. Each runs in a
process of its own, and its peak resident memory is compared with the bound:

    map task     base + DuckDB's limit + writer_memory_bytes
    reduce task  base + DuckDB's limit + writer_memory_bytes + reader_memory_bytes

The base is what a worker process takes after it has run such a task over a thousand rows: Python,
pyarrow, DuckDB and its extensions. The aim is at most 1.5 times the bound, however much data.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import click
import numpy as np
import pyarrow as pa

from benchmarks.measured import peak_bytes, run_measured
from stagecoach.infra.engines.duckdb.engine import DuckDbEngine
from stagecoach.infra.engines.protocol import Fragment, Resources
from stagecoach.infra.reading.inputs import ArrowInput, LeafColumn
from stagecoach.infra.shuffle.commit import load_manifest
from stagecoach.infra.shuffle.map_file import OutputPartitioning
from stagecoach.infra.storage import layout
from stagecoach.infra.storage.stores import open_store
from stagecoach.infra.worker.spec import ShuffleInput, TaskSettings, TaskSpec
from stagecoach.infra.worker.task import open_writer, output_schema, run_task
from stagecoach.planner.types import BIGINT, STRING
from tests.stage_outputs import commit_files

AIM = 1.5
_MB, _GB = 1 << 20, 1 << 30
_FINGERPRINT = "3e" * 32
_TYPES = (BIGINT, BIGINT, BIGINT, STRING)
_COLUMNS = tuple(LeafColumn(f"c{i}", "", dtype) for i, dtype in enumerate(_TYPES))
_MAP_SQL = "SELECT c0, c1, c2 + 1 AS c2, c3 FROM in_0 WHERE c1 >= 0"
_REDUCE_SQL = """
SELECT c0 % 1000 AS c0, count(*) AS c1, sum(c2)::BIGINT AS c2, max(left(c3, 16)) AS c3 FROM in_0
GROUP BY c0 % 1000
"""


@dataclass(frozen=True)
class Case:
    """A shape of data.

    Args:
        name: What it is called.
        num_partitions: Of the shuffle.
        text_bytes: Length of the text in each row.
        one_key: Whether all rows go to one partition.
    """

    name: str
    num_partitions: int = 64
    text_bytes: int = 72
    one_key: bool = False


CASES = (
    Case("usual"),
    Case("wide rows", text_bytes=10_000),
    Case("1,024 partitions", num_partitions=1024),
    Case("one partition", one_key=True),
)


@dataclass(frozen=True, kw_only=True)
class Job:
    """What one process measures.

    Args:
        case: The shape of the data.
        num_bytes: How much of it.
        root: Storage root.
        memory_bytes: DuckDB's limit.
        writer_bytes: Bound of the writer.
        reader_bytes: Bound of the reader.
    """

    case: Case
    num_bytes: int
    root: str
    memory_bytes: int
    writer_bytes: int
    reader_bytes: int

    @property
    def settings(self) -> TaskSettings:
        """What the tasks run with."""
        return TaskSettings(
            store=open_store(self.root).to_dict(),
            time_zone="UTC",
            memory_bytes=self.memory_bytes,
            writer_memory_bytes=self.writer_bytes,
            reader_memory_bytes=self.reader_bytes,
            max_spill_bytes=0,
            spill_dir=f"{tempfile.gettempdir()}/bench-memory-{os.getppid()}",
            codec="lz4",
        )


@click.command(context_settings={"show_default": True})
@click.option("--sizes", default="1,4,16", help="Sizes of the data in GB, before compression.")
@click.option("--cases", default=",".join(c.name.replace(",", "") for c in CASES))
@click.option("--memory-mb", type=int, default=512, help="DuckDB's limit.")
@click.option("--writer-mb", type=int, default=256, help="writer_memory_bytes.")
@click.option("--reader-mb", type=int, default=128, help="reader_memory_bytes.")
@click.option("--json", "json_path", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--storage", default=None, help="Folder or URL; a temporary folder by default.")
@click.option("--job", hidden=True, default=None)
def main(
    sizes: str,
    cases: str,
    memory_mb: int,
    writer_mb: int,
    reader_mb: int,
    json_path: Path | None,
    storage: str | None,
    job: str | None,
) -> None:
    """Print peak resident memory of tasks while their data grows."""
    if job is not None:
        _run_job(job)
        return
    # Not in the processes that are measured: it imports Spark and Dagster.
    from benchmarks.report import document, write_document

    wanted = {name.strip() for name in cases.split(",")}
    measured: list[dict[str, Any]] = []
    click.echo(
        f"{'case':<17} {'GB':>5} {'task':<7} {'seconds':>7} {'bound MB':>9} {'peak MB':>8} ratio"
    )
    with tempfile.TemporaryDirectory(prefix="bench-memory-") as place:
        for case in CASES:
            if case.name.replace(",", "") not in wanted:
                continue
            small = Job(
                case=case,
                num_bytes=100_000,
                root=storage or place,
                memory_bytes=memory_mb * _MB,
                writer_bytes=writer_mb * _MB,
                reader_bytes=reader_mb * _MB,
            )
            base = {kind: _measured(small, kind)["peak_bytes"] for kind in ("map", "reduce")}
            for size in map(float, sizes.split(",")):
                for row in _curve(replace(small, num_bytes=int(size * _GB)), size, base):
                    measured.append(row)
                    click.echo(_line(row))
    path = write_document(document("memory", measured=measured), json_path)
    worst = max(row["ratio"] for row in measured)
    verdict = "within" if worst <= AIM else "above"
    click.echo(f"\nAt most {worst:.2f} × the bound: {verdict} the aim of {AIM}. Written to {path}")


def _curve(job: Job, size: float, base: dict[str, int]) -> Iterator[dict[str, Any]]:
    for kind in ("map", "reduce"):
        bound = base[kind] + job.memory_bytes + job.writer_bytes
        bound += job.reader_bytes if kind == "reduce" else 0
        found = _measured(job, kind)
        yield {
            "case": job.case.name,
            "gigabytes": size,
            "task": kind,
            "bound_bytes": bound,
            "base_bytes": base[kind],
            "ratio": round(found["peak_bytes"] / bound, 3),
            **found,
        }


def _line(row: dict[str, Any]) -> str:
    return (
        f"{row['case']:<17} {row['gigabytes']:>5g} {row['task']:<7} {row['seconds']:>7.1f} "
        f"{row['bound_bytes'] / _MB:>9.0f} {row['peak_bytes'] / _MB:>8.0f} {row['ratio']:>5.2f}"
    )


def _measured(job: Job, kind: str) -> dict[str, Any]:
    """Run one task in a process of its own; what it says of itself."""
    asked = {"kind": kind, **asdict(job)}
    return run_measured("benchmarks.memory", asked, f"the {kind} task")


def _run_job(text: str) -> None:
    values = json.loads(text)
    kind = values.pop("kind")
    job = Job(**{**values, "case": Case(**values["case"])})
    started = time.perf_counter()
    told = _map(job) if kind == "map" else _reduce(job)
    seconds = time.perf_counter() - started
    click.echo(json.dumps({"seconds": seconds, "peak_bytes": peak_bytes(), **told}))


def _map(job: Job) -> dict[str, Any]:
    store, settings = open_store(job.root), job.settings
    store.delete([layout.manifest(_FINGERPRINT)])
    for key in list(store.list(layout.shuffle_prefix(_FINGERPRINT))):
        store.delete([key])
    partitioning = OutputPartitioning(
        kind="shuffle", keys=(0,), num_partitions=job.case.num_partitions
    )
    schema = output_schema(_TYPES)
    database = Resources(
        time_zone="UTC", memory_bytes=job.memory_bytes, spill_dir=settings.spill_dir
    )
    leaf = ArrowInput(_COLUMNS, lambda: _rows(job), job.num_bytes)
    with (
        DuckDbEngine().run(Fragment.of(_MAP_SQL, [leaf], schema), database) as batches,
        open_writer(
            store, _FINGERPRINT, 0, layout.new_attempt(), schema, partitioning, settings
        ) as writer,
    ):
        for batch in batches:
            writer.write(batch)
        file = writer.close()
    commit_files(store, _FINGERPRINT, [file], schema, partitioning, query="benchmark")
    return {"rows": file.num_rows, "bytes": file.num_bytes, "spilled_bytes": file.spilled_bytes}


def _reduce(job: Job) -> dict[str, Any]:
    manifest = load_manifest(open_store(job.root), _FINGERPRINT)
    if manifest is None:
        raise click.ClickException("there is no map file")
    leaf = ShuffleInput(
        columns=_COLUMNS,
        fingerprint=_FINGERPRINT,
        manifest_hash=manifest.manifest_hash,
        stage="benchmark/stage_0",
        low=0,
        high=manifest.num_partitions,
        num_bytes=manifest.num_bytes,
    )
    spec = TaskSpec(
        query="benchmark",
        stage_id=1,
        fingerprint="4f" * 32,
        task_index=0,
        sql=_REDUCE_SQL,
        inputs=(leaf,),
        types=_TYPES,
        output=OutputPartitioning(),
        settings=job.settings,
    )
    report = run_task(spec)
    if report.failure is not None:
        raise report.failure.to_error(spec.stage_name, 0)
    return {"rows": report.rows_in[0], "bytes": manifest.num_bytes}


def _rows(job: Job) -> Iterator[pa.RecordBatch]:
    """Rows of the case, made while they are read: about `num_bytes` before compression."""
    random = np.random.default_rng(1)
    width = 24 + 4 + job.case.text_bytes
    step = max(256, min(100_000, (4 << 20) // width))
    left = max(1, job.num_bytes // width)
    # Texts that LZ4 halves: half of each is random, the rest the same.
    noise = random.integers(32, 127, 8 << 20, dtype=np.uint8)
    start = 0
    while left:
        count = min(step, left)
        left -= count
        text = np.full((count, job.case.text_bytes), ord("x"), dtype=np.uint8)
        half = job.case.text_bytes // 2
        first = int(random.integers(0, len(noise) - half * min(count, 64) - 1))
        block = noise[first : first + half * min(count, 64)].reshape(-1, half)
        text[:, :half] = block[np.arange(count) % len(block)]
        text[:, :8] = random.integers(32, 127, (count, 8), dtype=np.uint8)
        keys = np.full(count, 7) if job.case.one_key else random.integers(0, 1 << 40, count)
        yield pa.record_batch(
            [
                pa.array(keys),
                pa.array(np.arange(start, start + count)),
                pa.array(random.integers(0, 1000, count)),
                _texts(text),
            ],
            names=["c0", "c1", "c2", "c3"],
        )
        start += count


def _texts(characters: Any) -> pa.Array:
    count, length = characters.shape
    offsets = (np.arange(count + 1) * length).astype(np.int32)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(characters.tobytes())]
    return pa.StringArray.from_buffers(count, buffers[1], buffers[2])


if __name__ == "__main__":
    main()
