"""How much memory a scan from S3 takes, and how many requests: `python -m benchmarks.scans`.

A fragment in DuckDB counts and sums one Parquet file on a local S3 server, in a process of its own.
The files have the same rows in row groups of other sizes. The base is the same scan of a thousand
rows.
"""

from __future__ import annotations

import io
import json
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import click
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.measured import peak_bytes, run_measured
from benchmarks.rclone import RcloneServer
from stagecoach.infra.engines.duckdb.engine import DuckDbEngine
from stagecoach.infra.engines.protocol import Fragment, Resources
from stagecoach.infra.reading.data_file import DataFile
from stagecoach.infra.reading.inputs import LeafColumn, ParquetInput
from stagecoach.infra.storage.fsspec_files import FsspecFiles
from stagecoach.infra.storage.stores import open_store
from stagecoach.planner.types import BIGINT, DOUBLE, STRING, DataType

_MB = 1 << 20
_BASE = "base.parquet"
_COLUMNS: dict[str, DataType] = {"n": BIGINT, "x": DOUBLE, "s": STRING}
_TESTS = {"n": "sum(c0 % 7)", "x": "sum(c1)::BIGINT", "s": "sum(length(c2))"}


@dataclass(frozen=True)
class Scan:
    """What one process measures.

    Args:
        root: Where the file is.
        key: The file.
        num_rows: Its rows.
        columns: Those to read, of `_COLUMNS`.
        options: How to reach the server.
        memory_bytes: DuckDB's limit.
        reader_bytes: Bound of what is fetched and not yet decoded.
    """

    root: str
    key: str
    num_rows: int
    columns: tuple[str, ...]
    options: dict[str, Any]
    memory_bytes: int
    reader_bytes: int


@click.command(context_settings={"show_default": True})
@click.option("--rows", default=8_000_000, help="Rows of each file.")
@click.option("--group-rows", default="20000,250000,2000000,4000000", help="Rows of a row group.")
@click.option("--memory-mb", default=256, help="DuckDB's limit.")
@click.option("--reader-mb", default=128, help="reader_memory_bytes.")
@click.option("--json", "json_path", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--job", hidden=True, default=None)
def main(
    rows: int,
    group_rows: str,
    memory_mb: int,
    reader_mb: int,
    json_path: Path | None,
    job: str | None,
) -> None:
    """Print peak resident memory and requests of scans of Parquet files on S3."""
    if job is not None:
        click.echo(json.dumps(_run(Scan(**json.loads(job)))))
        return
    # Not in the processes that are measured: it imports Spark and Dagster.
    from benchmarks.report import document, write_document

    measured = []
    with (
        tempfile.TemporaryDirectory(prefix="bench-scans-") as place,
        RcloneServer(Path(place), "bench") as server,
    ):
        root = f"s3://{server.bucket}/t"
        options = server.options()

        def scan(key: str, num_rows: int, columns: tuple[str, ...]) -> dict[str, Any]:
            bounds = (memory_mb * _MB, reader_mb * _MB)
            asked = Scan(root, key, num_rows, columns, options.to_dict(), *bounds)
            return run_measured("benchmarks.scans", asdict(asked), f"the scan of {key}")

        store = open_store(root, options)
        store.write_bytes(_BASE, _file(1000, 1000))
        base = scan(_BASE, 1000, tuple(_COLUMNS))["peak_bytes"]
        click.echo(f"base {base / _MB:.0f} MB\n")
        click.echo(f"{'file MB':>7} {'group MB':>8} columns {'peak MB':>7} requests seconds")
        for size in map(int, group_rows.split(",")):
            content = _file(rows, size)
            store.write_bytes("t.parquet", content)
            for columns in (("n",), tuple(_COLUMNS)):
                found = {
                    "file_bytes": len(content),
                    "row_group_bytes": len(content) * size // rows,
                    "columns": len(columns),
                    "base_bytes": base,
                    **scan("t.parquet", rows, columns),
                }
                measured.append(found)
                click.echo(
                    f"{len(content) / _MB:>7.0f} {found['row_group_bytes'] / _MB:>8.1f} "
                    f"{len(columns):>7} {found['peak_bytes'] / _MB:>7.0f} "
                    f"{found['requests']:>8} {found['seconds']:>7.1f}"
                )
    path = write_document(document("scans", measured=measured), json_path)
    click.echo(f"\nWritten to {path}")


def _file(num_rows: int, group_rows: int) -> bytes:
    random = np.random.default_rng(1)
    words = pa.array([f"{i:08x} of some words" for i in range(100_000)])
    table = pa.table(
        {
            "n": random.integers(0, 1 << 60, num_rows),
            "x": random.random(num_rows),
            "s": words.take(pa.array(random.integers(0, len(words), num_rows))),
        }
    )
    sink = io.BytesIO()
    pq.write_table(table, sink, row_group_size=group_rows, use_dictionary=False)
    return sink.getvalue()


def _run(scan: Scan) -> dict[str, Any]:
    columns = tuple(
        LeafColumn(f"c{i}", name, dtype)
        for i, (name, dtype) in enumerate(_COLUMNS.items())
        if name in scan.columns
    )
    file = DataFile(f"{scan.root}/{scan.key}", scan.num_rows)
    leaf = ParquetInput(
        columns, (file,), storage_options=scan.options, memory_bytes=scan.reader_bytes
    )
    tests = [_TESTS[name] for name in scan.columns]
    sql = f"SELECT count(*) AS rows, {' + '.join(tests)} AS total FROM in_0"
    schema = pa.schema([("rows", pa.int64()), ("total", pa.int64())])
    with tempfile.TemporaryDirectory(prefix="bench-scan-") as spill:
        database = Resources(time_zone="UTC", memory_bytes=scan.memory_bytes, spill_dir=spill)
        started = time.perf_counter()
        with (
            _counted_reads() as reads,
            DuckDbEngine().run(Fragment.of(sql, [leaf], schema), database) as batches,
        ):
            rows = pa.Table.from_batches(batches)["rows"].to_pylist()
        seconds = time.perf_counter() - started
    if rows != [scan.num_rows]:
        raise click.ClickException(f"the scan has {rows} rows instead of {scan.num_rows}")
    return {"seconds": seconds, "peak_bytes": peak_bytes(), "requests": len(reads)}


@contextmanager
def _counted_reads() -> Iterator[list[str]]:
    """A list that gets an item for each request for bytes of this process, while the block runs."""
    reads: list[str] = []
    call = FsspecFiles._call

    def counted(self: FsspecFiles, action: str, *rest: Any, **options: Any) -> Any:
        if action == "read":
            reads.append(action)
        return call(self, action, *rest, **options)

    with mock.patch.object(FsspecFiles, "_call", counted):
        yield reads


if __name__ == "__main__":
    main()
