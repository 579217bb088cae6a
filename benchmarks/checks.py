"""What it costs to check files before they are read: `python -m benchmarks.checks`.

The same scan in DuckDB of one local Parquet file, with checks and without, in turns: each turn
reads from the page cache, and nothing is remembered of what was checked before. `files` compares
column chunks with the checksums of a table's version, `pages` compares pages with those in their
headers, `none` looks for checksums of pages that are not there.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path

import click
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from stagecoach.infra.engines.duckdb.engine import DuckDbEngine
from stagecoach.infra.engines.protocol import Fragment, Resources
from stagecoach.infra.integrity.local import FileChecks, LocalReader
from stagecoach.infra.integrity.parquet import compute_checksums
from stagecoach.infra.reading.data_file import DataFile
from stagecoach.infra.reading.inputs import LeafColumn, ParquetInput
from stagecoach.planner.types import BIGINT, DOUBLE, STRING, DataType

_COLUMNS: dict[str, DataType] = {"k": BIGINT, "n": BIGINT, "x": DOUBLE, "flag": STRING, "s": STRING}
_SCANS = {
    "sum": "SELECT sum(c0 % 2)::BIGINT AS total FROM in_0",
    "filter": "SELECT count(*) AS total FROM in_0 WHERE c1 % 7 = 3 AND c2 < 0.5",
    "aggregate": (
        "SELECT sum(a + b + c)::BIGINT AS total FROM (SELECT c3, sum(c1 % 9) AS a, avg(c2) AS b, "
        "max(length(c4)) AS c FROM in_0 GROUP BY c3)"
    ),
}


@click.command(context_settings={"show_default": True})
@click.option("--rows", default=4_000_000, help="Rows of the file.")
@click.option("--turns", default=9, help="Scans of each kind.")
def main(rows: int, turns: int) -> None:
    """Print how much longer a scan takes with checks."""
    with tempfile.TemporaryDirectory(prefix="bench-checks-") as place:
        click.echo(
            f"{'codec':>6} {'MB':>5} {'scan':>10} {'ms':>6} {'files':>7} {'pages':>7} {'none':>7}"
        )
        for codec in ("zstd", "snappy", "none"):
            folder = Path(place) / codec
            folder.mkdir()
            sealed, plain = folder / "sealed.parquet", folder / "plain.parquet"
            table = _table(rows)
            for path, checksum in ((sealed, True), (plain, False)):
                pq.write_table(
                    table,
                    path,
                    compression=codec,
                    row_group_size=1 << 20,
                    write_page_checksum=checksum,
                )
            with LocalReader(str(sealed)) as reader:
                footer, checksums = compute_checksums(reader, sealed.stat().st_size)
            own = DataFile(str(sealed), rows, footer_checksum=footer, checksums=checksums)
            others = DataFile(str(sealed), rows)
            without = DataFile(str(plain), rows)
            for name, sql in _SCANS.items():
                base, ratios = _ratios(sql, (own, others, without), turns, str(folder))
                shown = " ".join(f"{100 * (ratio - 1):>6.1f}%" for ratio in ratios)
                size = sealed.stat().st_size >> 20
                click.echo(f"{codec:>6} {size:>5} {name:>10} {1000 * base:>6.0f} {shown}")


def _ratios(
    sql: str, files: tuple[DataFile, ...], turns: int, folder: str
) -> tuple[float, list[float]]:
    """Seconds without checks, and how many times as long each file takes with them."""
    found: list[list[float]] = [[] for _ in files]
    bases = []
    for _ in range(turns):
        for number, file in enumerate(files):
            base = _seconds(sql, file, folder, checks=False)
            bases.append(base)
            found[number].append(_seconds(sql, file, folder, checks=True) / base)
    return statistics.median(bases), [statistics.median(ratios) for ratios in found]


def _seconds(sql: str, file: DataFile, folder: str, *, checks: bool) -> float:
    columns = tuple(LeafColumn(f"c{i}", n, kind) for i, (n, kind) in enumerate(_COLUMNS.items()))
    used = tuple(column for column in columns if column.name in sql)  # as a plan does
    chosen = FileChecks(files=checks, pages=checks, seconds=0.0)
    leaf = ParquetInput(used, (file,), checks=chosen)
    settings = Resources(
        time_zone="UTC", memory_bytes=1 << 30, spill_dir=f"{folder}/spill", directories=(folder,)
    )
    started = time.perf_counter()
    with DuckDbEngine().run(
        Fragment.of(sql, [leaf], pa.schema([("total", pa.int64())])), settings
    ) as batches:
        for _ in batches:
            pass
    return time.perf_counter() - started


def _table(rows: int) -> pa.Table:
    random = np.random.default_rng(1)
    words = pa.array([f"{i:08x} of some words" for i in range(100_000)])
    return pa.table(
        {
            "k": np.arange(rows),
            "n": random.integers(0, 1 << 30, rows),
            "x": random.random(rows),
            "flag": pa.array(["A", "N", "R"]).take(pa.array(random.integers(0, 3, rows))),
            "s": words.take(pa.array(random.integers(0, len(words), rows))),
        }
    )


if __name__ == "__main__":
    main()
