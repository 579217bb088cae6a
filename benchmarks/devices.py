"""A year of device metrics in a deduplicated table: `python -m benchmarks.devices --rows 50000000`.

Rows like those of TSBS are generated. A device reports every ten minutes. Some
rows come late, in fresh chunks of their own: half of them were missing, half correct what was sent.
It prints the seconds of three queries by Stagecoach, by Spark and by DuckDB alone, which read the
same rows as plain Parquet files, and find the latest of each key with `row_number()`.

With `--overlap` the same queries are run over tables of which a share has late rows, from 0 to 1:
what deduplication costs should grow with the share, not with the table.
"""

from __future__ import annotations

import json
import math
import shutil
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click
import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import stagecoach
from benchmarks.compare import rough_difference
from benchmarks.contenders import Stagecoach
from benchmarks.report import document
from stagecoach.infra.catalog.catalog import load_catalog
from stagecoach.infra.formats.deduplicated.compaction import shape
from stagecoach.infra.formats.deduplicated.table_format import chunk_table
from stagecoach.infra.spark.session import get_session

STEPS = 52_560
"""Reports of a device in a year."""
_STEP_MICROS = 600 * 1_000_000
_START = np.datetime64("2024-01-01", "us").astype(np.int64)
_CATALOG = """
tables:
  cpu:
    kind: deduplicated
    location: cpu
    primary_key: [device, ts]
    time_column: ts
"""
_COLUMNS = ("usage_user", "usage_system", "usage_idle", "usage_iowait")
QUERIES = {
    "one day": """
        SELECT device, avg(usage_user) AS user, max(usage_system) AS system, count(*) AS n
        FROM {cpu}
        WHERE ts >= TIMESTAMP '2024-06-15 00:00:00' AND ts < TIMESTAMP '2024-06-16 00:00:00'
        GROUP BY device ORDER BY device""",
    "full aggregate": """
        SELECT region, count(*) AS n, avg(usage_user) AS user, sum(usage_idle) AS idle
        FROM {cpu} GROUP BY region ORDER BY region""",
    "last value": """
        SELECT device, max(ts) AS ts, max_by(usage_user, ts) AS user
        FROM {cpu} GROUP BY device ORDER BY device""",
}
_LATEST = """(SELECT * FROM (
    SELECT *, row_number() OVER (
        PARTITION BY device, ts ORDER BY sequence DESC, position DESC) AS rn
    FROM plain) WHERE rn = 1)"""


@dataclass(frozen=True)
class Shape:
    """What is made.

    Args:
        rows: Rows that are sent in all, corrections among them, about.
        chunks: Chunks in all.
        late: Share of the rows that come late.
        overlap: Share of the year that has late rows.
    """

    rows: int
    chunks: int
    late: float
    overlap: float = 1.0

    @property
    def devices(self) -> int:
        """How many report."""
        return max(1, round(self.rows / (1 + self.late / 2) / STEPS))

    @property
    def late_chunks(self) -> int:
        """Chunks of late rows."""
        if not self.late or not self.overlap:
            return 0
        return max(1, round(self.chunks * self.late))


def main_chunks(made: Shape) -> Iterator[pa.Table]:
    """The chunks as they are sent in time."""
    for steps in np.array_split(np.arange(STEPS), made.chunks - made.late_chunks):
        device, step = _grid(made, steps)
        missing = _draw(device, step) < made.late / 2
        missing &= step >= STEPS * (1 - made.overlap)
        yield _rows(device[~missing], step[~missing], version=0)


def late_chunks(made: Shape) -> Iterator[pa.Table]:
    """Those that come late, each for a part of the year."""
    if not made.late_chunks:
        return
    first = math.ceil(STEPS * (1 - made.overlap))
    for steps in np.array_split(np.arange(first, STEPS), made.late_chunks):
        device, step = _grid(made, steps)
        late = _draw(device, step) < made.late
        order = np.random.default_rng(1).permutation(int(late.sum()))
        yield _rows(device[late][order], step[late][order], version=1)


def _grid(made: Shape, steps: Any) -> tuple[Any, Any]:
    """All reports of these steps, in the order of time."""
    return np.tile(np.arange(made.devices), len(steps)), np.repeat(steps, made.devices)


def _draw(device: Any, step: Any) -> Any:
    """A number from 0 to 1 for each report, always the same."""
    mixed = (device.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)) ^ step.astype(np.uint64)
    mixed *= np.uint64(0xBF58476D1CE4E5B9)
    mixed ^= mixed >> np.uint64(31)
    mixed *= np.uint64(0x94D049BB133111EB)
    return (mixed >> np.uint64(40)).astype(np.float64) / float(1 << 24)


def _rows(device: Any, step: Any, version: int) -> pa.Table:
    names = pa.array([f"host_{i:05d}" for i in range(int(device.max(initial=0)) + 1)])
    regions = pa.array([f"region-{i}" for i in range(10)])
    ts = pa.array(_START + step * _STEP_MICROS).cast(pa.timestamp("us", "UTC"))
    values = {
        name: pa.array(np.round(100 * _draw(device + 7 * i + version, step), 2))
        for i, name in enumerate(_COLUMNS)
    }
    return pa.table(
        {
            "device": names.take(pa.array(device)),
            "region": regions.take(pa.array(device % 10)),
            "ts": ts,
            **values,
            "processes": pa.array((device + step) % 300),
        }
    )


def make(folder: Path, made: Shape) -> None:
    """Write the table, and the same rows as plain files, unless they are there."""
    marker = folder / "made.json"
    if marker.exists() and json.loads(marker.read_text()) == asdict(made):
        return
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "plain").mkdir(parents=True)
    (folder / "catalog.yaml").write_text(_CATALOG)
    table = chunk_table(load_catalog(folder / "catalog.yaml"), "cpu")
    number = 0

    def add(rows: pa.Table, *, sort: bool) -> None:
        nonlocal number
        number += 1
        if rows.num_rows:
            table.append([rows], sort=sort)
        extra = rows.append_column("sequence", pa.array(np.full(rows.num_rows, number)))
        extra = extra.append_column("position", pa.array(np.arange(rows.num_rows)))
        pq.write_table(extra, folder / "plain" / f"{number:05d}.parquet", compression="zstd")

    for rows in main_chunks(made):
        add(rows, sort=True)
    for rows in late_chunks(made):
        add(rows, sort=False)
    marker.write_text(json.dumps(asdict(made)))


@dataclass(frozen=True)
class Timing:
    """Seconds of a query, the median and each.

    Args:
        query: Its name.
        contender: Who ran it.
        seconds: Each run.
        problem: How its result differs from the first contender's, or which stage DuckDB did not
            run; None for neither.
    """

    query: str
    contender: str
    seconds: tuple[float, ...]
    problem: str | None = None

    @property
    def median(self) -> float:
        """The middle one."""
        return statistics.median(self.seconds)


def measure(
    folder: Path, repeats: int, contenders: Sequence[str], master: str, queries: Sequence[str]
) -> list[Timing]:
    """Run some of the queries over a table that `make` made.

    Each first run is not counted.
    """
    found: list[Timing] = []
    storage = folder / "storage"
    settings = {"master": master}
    with stagecoach.connect(folder / "catalog.yaml", storage=storage, settings=settings) as session:
        runs: dict[str, Callable[[str, str], pa.Table]] = {}
        own = Stagecoach(session)
        if "spark" in contenders:
            spark = get_session(session.settings).newSession()
            spark.conf.set("spark.sql.session.timeZone", "UTC")
            spark.read.parquet(str(folder / "plain")).createOrReplaceTempView("plain")
            runs["spark"] = lambda _, sql: spark.sql(sql.format(cpu=_LATEST)).toArrow()
        if "duckdb" in contenders:
            duck = duckdb.connect()
            duck.execute("SET TimeZone = 'UTC'")
            files = str(folder / "plain" / "*.parquet")
            duck.execute(f"CREATE VIEW plain AS SELECT * FROM read_parquet('{files}')")
            runs["duckdb"] = lambda _, sql: duck.sql(sql.format(cpu=_LATEST)).to_arrow_table()
        fallbacks: list[str] = []

        def run_own(name: str, sql: str) -> pa.Table:
            sample = own.run(name, sql.format(cpu="cpu"))
            fallbacks.extend(
                f"stage {s['stage_id']} ran on {s['engine']}: {s['fallback_reason']}"
                for s in sample.stages
                if s["engine"] != "duckdb"
            )
            return sample.table

        runs["stagecoach"] = run_own
        for query in queries:
            sql = QUERIES[query]
            expected: pa.Table | None = None
            for contender, run in runs.items():
                seconds: list[float] = []
                for _ in range(repeats + 1):
                    started = time.perf_counter()
                    result = run(query.replace(" ", "_"), sql)
                    seconds.append(time.perf_counter() - started)
                own.clean_up()
                problem = None if expected is None else rough_difference(expected, result)
                problem = problem or (fallbacks.pop() if fallbacks else None)
                expected = result if expected is None else expected
                found.append(Timing(query, contender, tuple(seconds[1:]), problem))
                click.echo(_line(found[-1]), err=True)
    return found


def _line(timing: Timing) -> str:
    text = f"{timing.query:<16} {timing.contender:<11} {timing.median:8.3f} s"
    return text if timing.problem is None else f"{text}  WRONG: {timing.problem}"


def _report(folder: Path, made: Shape, timings: Sequence[Timing]) -> dict[str, Any]:
    table = chunk_table(load_catalog(folder / "catalog.yaml"), "cpu")
    lies = shape(table, table.read())
    rows: dict[str, dict[str, float]] = {}
    for timing in timings:
        rows.setdefault(timing.query, {})[timing.contender] = round(timing.median, 3)
    for seconds in rows.values():
        for other in ("spark", "duckdb"):
            if other in seconds:
                seconds[f"{other} / stagecoach"] = round(seconds[other] / seconds["stagecoach"], 2)
    return {
        "made": asdict(made),
        "devices": made.devices,
        "table": asdict(lies),
        "seconds": rows,
        "problems": [f"{t.query}, {t.contender}: {t.problem}" for t in timings if t.problem],
    }


def _growth(reports: Sequence[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Stagecoach's time by share of the year with late rows, over that of the first report."""
    first = reports[0]["seconds"]
    return {
        query: {
            f"{report['made']['overlap']:g}": round(
                report["seconds"][query]["stagecoach"] / seconds["stagecoach"], 2
            )
            for report in reports
        }
        for query, seconds in first.items()
    }


@click.command()
@click.option("--rows", default=50_000_000, show_default=True, help="Rows that are sent.")
@click.option("--chunks", default=400, show_default=True)
@click.option("--late", default=0.05, show_default=True, help="Share of rows that come late.")
@click.option("--overlap", default="", help="Shares of the year with late rows: 0,0.01,0.05,0.2,1")
@click.option("--queries", default=",".join(QUERIES), show_default=True, help="Which are run.")
@click.option("--repeats", default=3, show_default=True)
@click.option("--contenders", default="spark,duckdb,stagecoach", show_default=True)
@click.option("--master", default="local[*]", show_default=True)
@click.option("--folder", type=click.Path(path_type=Path), default=Path("data/devices"))
@click.option("--output", type=click.Path(path_type=Path), help="JSON file of the results.")
def main(
    rows: int,
    chunks: int,
    late: float,
    overlap: str,
    queries: str,
    repeats: int,
    contenders: str,
    master: str,
    folder: Path,
    output: Path | None,
) -> None:
    """Make the table, run the queries, and show seconds."""
    reports = []
    shares = [float(share) for share in overlap.split(",")] if overlap else [1.0]
    for share in shares:
        made = Shape(rows, chunks, late, share)
        place = folder / f"{rows}-{chunks}-{late}-{share}"
        started = time.perf_counter()
        make(place, made)
        click.echo(f"overlap {share:g}: made in {time.perf_counter() - started:.1f} s", err=True)
        timings = measure(place, repeats, contenders.split(","), master, queries.split(","))
        reports.append(_report(place, made, timings))
    growth = {"over the first": _growth(reports)} if len(reports) > 1 else {}
    text = json.dumps(document("devices", reports=reports, **growth), indent=2)
    click.echo(text)
    if output is not None:
        output.write_text(text)
    raise SystemExit(1 if any(report["problems"] for report in reports) else 0)


if __name__ == "__main__":
    main()
