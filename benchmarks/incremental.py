"""What incremental runs save: `python -m benchmarks.incremental --data data/tpch-sf10`.

Two parts, each beside a run that computes everything, with the default plan, and plain Spark:

- TPC-H with 1 % of lineitem added as a new file. Queries ran before the file was there.
- A daily aggregate over a table that gets one file a day: a run on each day.
"""

from __future__ import annotations

import datetime
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.compare import difference
from benchmarks.report import document, json_option, storage_option, write_document
from stagecoach.api.session import Session, connect
from stagecoach.infra.spark.session import get_session
from stagecoach.terminal.streams import configure_logging, discard_log, divert_noise
from stagecoach.tpch import TABLES, write_catalog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HERE = Path(__file__).resolve().parent
QUERIES = HERE.parent / "pipelines" / "queries"
DAILY = (
    "SELECT day, store, count(*) AS num_sales, sum(amount) AS revenue, max(product) AS last "
    "FROM sales GROUP BY day, store"
)
_FIRST_DAY = datetime.date(2025, 1, 1)
_INCREMENTAL: dict[str, object] = {"incremental": True}


class Runs:
    """Runs queries over one catalog in three ways.

    Args:
        stack: Ends the Spark that all runs use.
        catalog: The catalog file.
        storage: Where outputs are kept.
        tables: Folders of the tables by name, for plain Spark.
    """

    def __init__(
        self, stack: ExitStack, catalog: Path, storage: Path, tables: dict[str, Path]
    ) -> None:
        self._catalog, self._storage, self._tables = catalog, storage, tables
        self._spark: SparkSession | None = None
        # Spark stays with the session that has started it.
        self._first = stack.enter_context(self._session({}))
        self._first.query("SELECT 1 AS one", name="warm_up", fresh=True).to_arrow()

    def incremental(self, sql: str, name: str) -> tuple[float, pa.Table, dict[str, int]]:
        """Seconds and rows of an incremental run, and how many tasks were taken over."""
        with self._session(_INCREMENTAL) as session:
            start = time.perf_counter()
            planned = session.plan(sql, name=name)
            result = session.run(planned)
            table = result.to_arrow()
            seconds = time.perf_counter() - start
            told = [
                result.manifest(stage.stage_id).metrics.get("incremental", {})
                for stage in planned.graph.stages
            ]
        counts = {key: sum(t.get(key, 0) for t in told) for key in ("tasks", "taken_over")}
        return seconds, table, counts

    def whole(self, sql: str, name: str) -> tuple[float, pa.Table]:
        """Seconds and rows of a run with the default plan that computes everything."""
        with self._session({}) as session:
            return _timed(lambda: session.query(sql, name=name, fresh=True).to_arrow())

    def spark(self, sql: str) -> tuple[float, pa.Table]:
        """Seconds and rows of plain Spark, in the same JVM."""
        if self._spark is None:
            self._spark = get_session(self._first.settings).newSession()
        for table, folder in self._tables.items():
            self._spark.read.parquet(str(folder)).createOrReplaceTempView(table)
        frame = self._spark.sql(sql)
        return _timed(frame.toArrow)

    def _session(self, options: dict[str, object]) -> Session:
        """A new session: each run lists the tables anew, as a run of a schedule does."""
        return connect(self._catalog, self._storage, options=options)


def _timed(run: Callable[[], pa.Table]) -> tuple[float, pa.Table]:
    start = time.perf_counter()
    table = run()
    return time.perf_counter() - start, table


def _differs(found: pa.Table, expected: pa.Table, sql: str, name: str) -> list[str]:
    problem = difference(found, expected, sql)
    return [] if problem is None else [f"{name}: {problem}"]


# ---------------------------------------------------------------- TPC-H


def grown_lineitem(
    stack: ExitStack, data: Path, root: Path, names: list[str]
) -> tuple[list[dict[str, Any]], list[str]]:
    """Each query before and after 1 % of lineitem is added, and what differs."""
    tables = {table: root / "tpch" / table for table in TABLES}
    for table, folder in tables.items():
        folder.mkdir(parents=True)
        for path in sorted((data / table).glob("*.parquet")):
            shutil.copyfile(path, folder / path.name)
    write_catalog(root / "tpch.yaml", root / "tpch")
    runs = Runs(stack, root / "tpch.yaml", root / "storage", tables)
    texts = {name: (QUERIES / f"{name}.sql").read_text(encoding="utf-8") for name in names}
    first = {name: runs.incremental(sql, name)[0] for name, sql in texts.items()}
    _write_part(tables["lineitem"])
    rows: list[dict[str, Any]] = []
    problems: list[str] = []
    for name, sql in texts.items():
        seconds, table, counts = runs.incremental(sql, name)
        whole, expected = runs.whole(sql, name)
        spark, answer = runs.spark(sql)
        problems += _differs(table, expected, sql, f"{name}, whole")
        problems += _differs(table, answer, sql, f"{name}, Spark")
        row = {"query": name, "first": first[name], "incremental": seconds}
        rows.append({**_rounded({**row, "whole": whole, "spark": spark}), **counts})
        click.echo(_line(rows[-1]))
    return rows, problems


def _write_part(folder: Path) -> None:
    """Add 1 % of the rows of a table as a new file."""
    files = sorted(folder.glob("*.parquet"))
    wanted = sum(pq.read_metadata(path).num_rows for path in files) // 100
    batches = pq.ParquetFile(files[0]).iter_batches(batch_size=100_000)
    rows, kept = 0, []
    for batch in batches:
        kept.append(batch.slice(0, wanted - rows))
        rows += kept[-1].num_rows
        if rows >= wanted:
            break
    pq.write_table(pa.Table.from_batches(kept), folder / "added.parquet")


# ---------------------------------------------------------------- a file a day


def daily_table(
    stack: ExitStack, root: Path, days: int, rows_per_day: int, every: int
) -> tuple[list[dict[str, Any]], list[str]]:
    """A run on each day; on some days beside a whole run and plain Spark, and what differs."""
    folder = root / "sales"
    folder.mkdir()
    catalog = root / "daily.yaml"
    catalog.write_text(f"tables:\n  sales: {{location: {folder}}}\n", encoding="utf-8")
    runs = Runs(stack, catalog, root / "storage", {"sales": folder})
    rows: list[dict[str, Any]] = []
    problems: list[str] = []
    for day in range(days):
        _write_day(folder, day, rows_per_day)
        seconds, table, counts = runs.incremental(DAILY, "daily")
        row: dict[str, Any] = {"day": day + 1, "incremental": seconds, **counts}
        if (day + 1) % every == 0 or day + 1 == days:
            row["whole"], expected = runs.whole(DAILY, "daily")
            row["spark"], answer = runs.spark(DAILY)
            problems += _differs(table, expected, DAILY, f"day {day + 1}, whole")
            problems += _differs(table, answer, DAILY, f"day {day + 1}, Spark")
            click.echo(_line({"query": f"day {day + 1}", **_rounded(row)}))
        rows.append(_rounded(row))
    return rows, problems


def _write_day(folder: Path, day: int, count: int) -> None:
    rng = np.random.default_rng(day)
    date = _FIRST_DAY + datetime.timedelta(day)
    amounts = pa.array(rng.integers(1, 100_000, count)).cast(pa.decimal128(21, 2))
    columns = {
        "day": pa.array([date] * count, pa.date32()),
        "store": pa.array(rng.integers(0, 100, count), pa.int32()),
        "product": pa.array(rng.integers(0, 50_000, count)),
        "amount": amounts.cast(pa.decimal128(14, 2)),
    }
    pq.write_table(pa.table(columns), folder / f"{date}.parquet")


# ---------------------------------------------------------------- report


def _rounded(row: dict[str, Any]) -> dict[str, Any]:
    return {k: round(v, 3) if isinstance(v, float) else v for k, v in row.items()}


def _line(row: dict[str, Any]) -> str:
    cells = "".join(f"{row[name]:13.2f}" for name in ("incremental", "whole", "spark"))
    return f"{row['query']:10}{cells}{row['taken_over']:8} of {row['tasks']} tasks taken over"


@click.command(context_settings={"show_default": True})
@click.option("--queries", "names", default="q01,q03,q05,q06,q10,q12,q14,q18", help="Which.")
@click.option(
    "--data",
    type=click.Path(file_okay=False, exists=True, path_type=Path),
    default=None,
    help="Folder with a folder of Parquet files per table; without it, only the daily table.",
)
@click.option("--days", type=click.IntRange(min=0), default=365, help="Days; 0 for none.")
@click.option("--rows-per-day", type=click.IntRange(min=1), default=1_000_000)
@click.option("--every", type=click.IntRange(min=1), default=73, help="Days between comparisons.")
@json_option
@storage_option
def main(
    names: str,
    data: Path | None,
    days: int,
    rows_per_day: int,
    every: int,
    json_path: Path | None,
    storage: Path,
) -> None:
    """Print the seconds of incremental runs beside those of whole runs and of plain Spark."""
    configure_logging(debug=False)
    divert_noise()
    storage.mkdir(parents=True, exist_ok=True)
    found: dict[str, Any] = {}
    problems: list[str] = []
    with (
        tempfile.TemporaryDirectory(prefix="bench-", dir=storage.resolve()) as root,
        ExitStack() as stack,
    ):
        head = "".join(f"{f'{name} s':>13}" for name in ("incremental", "whole", "spark"))
        click.echo(f"{'':10}{head}")
        if data is not None:
            asked = names.split(",")
            found["lineitem"], wrong = grown_lineitem(stack, data.resolve(), Path(root), asked)
            problems += wrong
        if days:
            found["daily"], wrong = daily_table(stack, Path(root), days, rows_per_day, every)
            problems += wrong
    written = document("incremental", data=data.name if data else None, **found)
    click.echo(f"Written to {write_document(written, json_path)}")
    for problem in problems:
        click.echo(f"error: {problem}", err=True)
    discard_log()
    if problems:
        sys.exit(1)


if __name__ == "__main__":
    main()
