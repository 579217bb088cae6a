"""How fast shuffle files are written and read: `python -m benchmarks.shuffle`.

The same table once by pyarrow as one IPC file and once by the shuffle (hashed, sorted by partition,
checksummed, read back partition by partition), with the same codec, in one process bound to one
core, in turn. A ratio is the shuffle's rows per second over pyarrow's, by the clock and by the
process's own time, which differ where the machine has other work or waits for its disk. What is
written is in the page cache when it is read, on both sides. The process is set up as Spark's Python
workers are: it keeps memory, and the garbage collector leaves out what is there from the start.
"""

from __future__ import annotations

import gc
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np
import pyarrow as pa

from benchmarks.report import document, json_option, write_document
from stagecoach.infra.shuffle.ipc_sink import write_options
from stagecoach.infra.shuffle.manifest import Manifest
from stagecoach.infra.shuffle.map_file import Codec, OutputPartitioning
from stagecoach.infra.shuffle.reader import read_partitions
from stagecoach.infra.shuffle.writer import ShuffleWriter
from stagecoach.infra.spark.worker_memory import WORKER_MEMORY, keep_worker_memory
from stagecoach.infra.storage import layout
from stagecoach.infra.storage.stores import open_store
from stagecoach.infra.worker.process import settle
from tests.stage_outputs import commit_files

WRITE_AIM, READ_AIM = 0.5, 0.7
_MB = 1 << 20
_FINGERPRINT = "b0" * 32
_WORDS = ("carefully", "final", "deposits", "sleep", "furiously", "ironic", "requests", "above")


def lineitem(num_rows: int, seed: int = 1) -> pa.Table:
    """Rows in the manner of TPC-H's lineitem: keys, numbers, dates, codes and short texts."""
    random = np.random.default_rng(seed)
    words = np.array(_WORDS)
    picks = random.integers(0, len(words), (3, num_rows))
    text = np.char.add(np.char.add(words[picks[0]], " "), words[picks[1]])
    modes = np.array(["AIR", "TRUCK", "MAIL", "SHIP", "RAIL"])[random.integers(0, 5, num_rows)]
    cents = random.integers(90_000, 10_000_000, num_rows)
    return pa.table(
        {
            "orderkey": pa.array(np.sort(random.integers(0, 4 * num_rows, num_rows))),
            "partkey": pa.array(random.integers(0, 200_000, num_rows)),
            "quantity": pa.array(random.integers(1, 51, num_rows).astype(np.int32)),
            "price": pa.array(cents / 100.0),
            "cents": pa.array(cents).cast(pa.decimal128(19, 0)),
            "shipdate": pa.array(random.integers(8000, 10_500, num_rows).astype(np.int32)).cast(
                pa.date32()
            ),
            "shipmode": pa.array(modes, pa.string()),
            "comment": pa.array(text, pa.string()),
        }
    )


@click.command(context_settings={"show_default": True})
@click.option("--rows", default="1000000,8000000", help="Rows of the tables.")
@click.option("--partitions", default="8,64,512", help="Numbers of partitions.")
@click.option("--codecs", default="lz4,zstd,none", help="Codecs.")
@click.option("--repeat", type=click.IntRange(min=1), default=3, help="Runs; the best counts.")
@click.option("--memory-mb", type=int, default=256, help="Bound of the writer.")
@json_option
@click.option("--folder", type=click.Path(file_okay=False, path_type=Path), default=None)
def main(
    rows: str,
    partitions: str,
    codecs: str,
    repeat: int,
    memory_mb: int,
    json_path: Path | None,
    folder: Path | None,
) -> None:
    """Print rows per second of the shuffle beside pyarrow's, on one core."""
    _be_a_worker()
    _use_one_core()
    settle()
    measured: list[dict[str, Any]] = []
    click.echo(f"{'rows':>10} {'MB':>6} {'codec':>5} {'parts':>5} {'spilled':>8}", nl=False)
    click.echo(f"{'pyarrow write/read s':>22} {'shuffle write/read s':>22}", nl=False)
    click.echo(f" {'write':>6} {'read':>6} {'(cpu)':>6} {'(cpu)':>6}")
    with tempfile.TemporaryDirectory(prefix="bench-shuffle-", dir=folder) as place:
        for num_rows in map(int, rows.split(",")):
            table = lineitem(num_rows)
            for codec in codecs.split(","):
                for num_partitions in map(int, partitions.split(",")):
                    row = _compare(
                        Path(place), table, codec, num_partitions, repeat, memory_mb * _MB
                    )
                    measured.append(row)
                    click.echo(_line(row))
    found = document("shuffle", writer_memory_bytes=memory_mb * _MB, measured=measured)
    # Modules in C++ take what the collector leaves out at the end for a leak.
    gc.unfreeze()
    path = write_document(found, json_path)
    click.echo(f"\nAims: write ≥ {WRITE_AIM}, read ≥ {READ_AIM}. Written to {path}")


def _be_a_worker() -> None:
    """Begin anew with the environment of a worker: allocators read it when a process begins."""
    if not WORKER_MEMORY.keys() <= os.environ.keys():
        keep_worker_memory(os.environ)
        os.execv(sys.executable, [sys.executable, "-m", "benchmarks.shuffle", *sys.argv[1:]])


def _use_one_core() -> None:
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)


def _compare(
    place: Path,
    table: pa.Table,
    codec: Any,
    num_partitions: int,
    repeat: int,
    memory_bytes: int,
) -> dict[str, Any]:
    """Measure all four in turn, so that a slow moment of the machine hits them alike."""
    file = place / "table.arrow"
    times: dict[str, list[_Time]] = {"pa_write": [], "pa_read": [], "write": [], "read": []}
    for _ in range(repeat):
        times["pa_write"].append(_timed(_write_file, file, table, codec)[0])
        times["pa_read"].append(_timed(_read_file, file, table.num_rows)[0])
        arguments = place, table, codec, num_partitions, memory_bytes
        spent, manifest = _timed(_write_shuffle, *arguments)
        times["write"].append(spent)
        times["read"].append(_timed(_read_shuffle, place, manifest)[0])
        size = file.stat().st_size
        file.unlink()
        shutil.rmtree(place / "root")
    best = {name: min(t.wall for t in values) for name, values in times.items()}
    cpu = {name: min(t.cpu for t in values) for name, values in times.items()}
    return {
        "rows": table.num_rows,
        "bytes": table.nbytes,
        "codec": codec,
        "partitions": num_partitions,
        "spilled_bytes": manifest.metrics["spilled_bytes"],
        "file_bytes": size,
        "shuffle_bytes": manifest.num_bytes,
        "seconds": {k: [round(t.wall, 4) for t in v] for k, v in times.items()},
        "best_seconds": {k: round(v, 4) for k, v in best.items()},
        "cpu_seconds": {k: round(v, 4) for k, v in cpu.items()},
        "write_ratio": round(best["pa_write"] / best["write"], 3),
        "read_ratio": round(best["pa_read"] / best["read"], 3),
        "cpu_write_ratio": round(cpu["pa_write"] / cpu["write"], 3),
        "cpu_read_ratio": round(cpu["pa_read"] / cpu["read"], 3),
    }


@dataclass(frozen=True)
class _Time:
    """Seconds on the clock, and of this process's work alone."""

    wall: float
    cpu: float


def _timed(function: Callable[..., Any], *arguments: Any) -> tuple[_Time, Any]:
    wall, cpu = time.perf_counter(), time.process_time()
    result = function(*arguments)
    return _Time(time.perf_counter() - wall, time.process_time() - cpu), result


def _write_file(path: Path, table: pa.Table, codec: Codec) -> None:
    with (
        pa.OSFile(str(path), "wb") as sink,
        pa.ipc.new_file(sink, table.schema, options=write_options(codec)) as writer,
    ):
        # In the batches in which DuckDB gives a task its rows.
        writer.write_table(table, max_chunksize=128 << 10)


def _read_file(path: Path, num_rows: int) -> None:
    # Read, not mapped: where nothing is compressed a map would read nothing at all.
    with pa.OSFile(str(path), "rb") as source:
        reader = pa.ipc.open_file(source)
        found = sum(reader.get_batch(i).num_rows for i in range(reader.num_record_batches))
    assert found == num_rows


def _write_shuffle(
    place: Path, table: pa.Table, codec: Codec, num_partitions: int, memory_bytes: int
) -> Manifest:
    store = open_store(place / "root")
    partitioning = OutputPartitioning(kind="shuffle", keys=(0,), num_partitions=num_partitions)
    with ShuffleWriter(
        store,
        layout.map_file(_FINGERPRINT, 0, layout.new_attempt()),
        table.schema,
        partitioning,
        codec=codec,
        memory_bytes=memory_bytes,
        spill_dir=str(place / "spill"),
    ) as writer:
        for batch in table.to_batches(max_chunksize=128 << 10):
            writer.write(batch)
        file = writer.close()
    metrics = {"spilled_bytes": file.spilled_bytes}
    schema = table.schema
    return commit_files(
        store, _FINGERPRINT, [file], schema, partitioning, codec=codec, metrics=metrics
    )


def _read_shuffle(place: Path, manifest: Manifest) -> None:
    _, batches = read_partitions(open_store(place / "root"), manifest, 0, manifest.num_partitions)
    assert sum(batch.num_rows for batch in batches) == manifest.num_rows


def _line(row: dict[str, Any]) -> str:
    best = row["best_seconds"]
    pyarrow = f"{best['pa_write']:.3f} / {best['pa_read']:.3f}"
    shuffle = f"{best['write']:.3f} / {best['read']:.3f}"
    return (
        f"{row['rows']:>10,} {row['bytes'] / 1e6:>6.0f} {row['codec']:>5} {row['partitions']:>5} "
        f"{row['spilled_bytes'] / 1e6:>5.0f} MB {pyarrow:>22} {shuffle:>22} "
        f"{row['write_ratio']:>6.2f} {row['read_ratio']:>6.2f} "
        f"{row['cpu_write_ratio']:>6.2f} {row['cpu_read_ratio']:>6.2f}"
    )


if __name__ == "__main__":
    main()
