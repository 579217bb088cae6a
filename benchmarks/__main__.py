"""TPC-H side by side in one process: `python -m benchmarks --scale-factor 10 --queries q01,q03`.

Stagecoach (through Dagster, every shuffle durable, nothing reused), plain Spark SQL (same session,
same files, adaptive execution as by default) and DuckDB alone. The order of the contenders changes
with every query and repeat. Every result is compared; one that differs is an error (exit 1).

With `--s3` Stagecoach has its tables and its storage on an S3 server of this machine, the others
their local files; `--latency-ms` puts that server further away. With `--workers` the session is one
of a standalone Spark cluster here, whose workers have a core each and none of our packages; plain
Spark SQL runs on the same executors.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import click

from benchmarks.cluster.standalone import HOST, StandaloneCluster
from benchmarks.compare import difference, rough_difference
from benchmarks.contenders import Contender, DuckDb, Sample, SparkSql, Stagecoach
from benchmarks.delayed import DelayedServer, Traffic
from benchmarks.rclone import RcloneServer
from benchmarks.report import (
    Measurement,
    json_option,
    ratios,
    render,
    storage_option,
    to_json,
    write,
)
from stagecoach.api.session import Session, connect
from stagecoach.arguments.options import Settings, read_settings
from stagecoach.infra.spark.java import ensure_java
from stagecoach.terminal.streams import configure_logging, discard_log, divert_noise
from stagecoach.tpch import TABLES, generate, write_catalog

HERE = Path(__file__).resolve().parent
QUERIES = HERE.parent / "pipelines" / "queries"
CONTENDERS = ("stagecoach", "spark", "duckdb")
# Starts the Python workers, compiles Spark's common code, warms Dagster's imports.
WARM_UP = """
SELECT n_name, count(*) AS suppliers, sum(o_totalprice) AS total
FROM supplier JOIN nation ON s_nationkey = n_nationkey
JOIN customer ON c_nationkey = n_nationkey JOIN orders ON o_custkey = c_custkey
WHERE s_suppkey < 10 GROUP BY n_name ORDER BY n_name
"""


@click.command(context_settings={"max_content_width": 100, "show_default": True})
@click.option("--scale-factor", type=click.FloatRange(min=0, min_open=True), default=1.0)
@click.option("--queries", "names", metavar="q01,q03,…", help="Which queries.  [default: all 22]")
@click.option("--repeat", type=click.IntRange(min=1), default=2, help="Runs; the least counts.")
@click.option(
    "--data",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder with a folder of Parquet files per table.  [default: data/tpch-sfN, generated]",
)
@storage_option
@click.option("--s3", is_flag=True, help="Stagecoach's tables and storage are on an S3 server.")
@click.option(
    "--latency-ms", type=click.FloatRange(min=0), default=0.0, help="Of the S3 server, round trip."
)
@click.option(
    "--workers",
    type=click.IntRange(min=0),
    default=0,
    help="Run on a Spark cluster of so many workers of one core; 0 for Spark in this process.",
)
@click.option(
    "--contenders", "chosen", default=",".join(CONTENDERS), help="Who runs; stagecoach must."
)
@click.option(
    "--set", "assignments", metavar="KEY=VALUE", multiple=True, help="As of `stagecoach query`."
)
@click.option(
    "--spark-memory-bytes",
    type=click.IntRange(min=1 << 29),
    default=lambda: _memory() * 3 // 10,
    show_default="30 % of the machine's",
    help="Heap of Spark, so that plain Spark SQL is not starved.",
)
@json_option
def main(
    scale_factor: float,
    names: str | None,
    repeat: int,
    data: Path | None,
    storage: Path,
    s3: bool,
    latency_ms: float,
    workers: int,
    chosen: str,
    assignments: tuple[str, ...],
    spark_memory_bytes: int,
    json_path: Path | None,
) -> None:
    """Run TPC-H on Stagecoach, plain Spark SQL and DuckDB alone, and compare times and results."""
    if latency_ms and not s3:
        raise click.BadParameter("only the server of --s3 can be further away")
    queries = queries_of(names)
    chosen_names = _contenders(chosen)
    folder = (data or Path(f"data/tpch-sf{scale_factor:g}")).resolve()
    if data is None:
        click.echo(f"TPC-H data: {folder}", err=True)
        generate(folder, scale_factor)
    settings = read_settings(assignments)
    settings.engine["spark_conf"] = {
        "spark.driver.memory": f"{spark_memory_bytes >> 20}m",
        **_texts(settings.engine.get("spark_conf")),
    }
    ensure_java()
    configure_logging(debug=False)
    divert_noise()
    with ExitStack() as held:
        if workers:
            memory = f"{(spark_memory_bytes >> 20) // workers}m"
            _join(
                held, StandaloneCluster(_temporary(held, storage), workers, memory=memory), settings
            )
        place = held.enter_context(
            bench_session(folder, storage, settings, s3=s3, latency_ms=latency_ms)
        )
        measurements = run_all(contenders(chosen_names, place, folder), queries, repeat)
        document = to_json(
            measurements,
            scale_factor=scale_factor,
            settings={
                "repeat": repeat,
                "s3": s3,
                "latency_ms": latency_ms,
                "workers": workers,
                "set": list(assignments),
                "spark_conf": settings.engine["spark_conf"],
                "shuffle_codec": place.session.settings.codec,
                "duckdb_task_memory_bytes": place.session.settings.task_memory_bytes,
            },
        )
    far = f"-{latency_ms:g}ms" if latency_ms else ""
    where = f"{'-s3' if s3 else ''}{far}{f'-{workers}-workers' if workers else ''}"
    path = json_path or HERE / "results" / f"tpch-sf{scale_factor:g}{where}.json"
    write(path, document)
    click.echo(f"{render(measurements)}\n\nWritten to {path}")
    if any(m.problems for m in measurements):
        for m in measurements:
            for problem in m.problems:
                click.echo(f"error: {m.query}: {problem}", err=True)
        sys.exit(1)
    discard_log()


class BenchSession(NamedTuple):
    """A session and what is around it.

    Args:
        session: Over the tables.
        spill: A folder in which DuckDB alone may spill.
        traffic: What has gone to and from a store that is further away.
    """

    session: Session
    spill: Path
    traffic: Callable[[], Traffic] | None


@contextmanager
def bench_session(
    folder: Path, storage: Path, settings: Settings, *, s3: bool, latency_ms: float = 0.0
) -> Iterator[BenchSession]:
    """Yield a session over the tables.

    Args:
        folder: The tables.
        storage: Folder under which everything is kept until the end.
        settings: Of the session; with `s3` it is added how to reach the server.
        s3: Whether tables and storage are on an S3 server of this machine.
        latency_ms: How much longer a round trip to that server takes.
    """
    with ExitStack() as held:
        root = _temporary(held, storage)
        tables: Path | str = folder
        stored: Path | str = root / "storage"
        traffic = None
        if s3:
            server = held.enter_context(_served(folder, root / "served"))
            tables, stored = (f"s3://{server.bucket}/{name}" for name in ("tables", "storage"))
            url = server.url
            if latency_ms:
                relay = held.enter_context(DelayedServer(url, latency_ms))
                url, traffic = relay.url, relay.traffic
            settings.engine["storage_options"] = server.options(url)
        catalog = root / "catalog.yaml"
        write_catalog(catalog, tables)
        session = connect(catalog, stored, settings=settings.engine, options=settings.planner)
        yield BenchSession(held.enter_context(session), root / "spill", traffic)


def _temporary(held: ExitStack, below: Path) -> Path:
    """A folder that is there until the end."""
    below.mkdir(parents=True, exist_ok=True)
    return Path(
        held.enter_context(tempfile.TemporaryDirectory(prefix="bench-", dir=below))
    ).resolve()


def _join(held: ExitStack, cluster: StandaloneCluster, settings: Settings) -> None:
    """Start a cluster, and let the session be one of it."""
    held.enter_context(cluster)
    os.environ["SPARK_LOCAL_IP"] = HOST
    settings.engine["master"] = cluster.master
    settings.engine["credentials"] = "forward"
    settings.engine["spark_conf"] = {
        **_texts(settings.engine.get("spark_conf")),
        "spark.executor.memory": cluster.memory,
    }


def run_all(
    contenders: Sequence[Contender], queries: Sequence[tuple[str, str]], repeat: int
) -> list[Measurement]:
    """Measure every query, after an untimed warm-up."""
    for contender in contenders:
        # The second time is for what the first one started in the background.
        for _ in range(2):
            contender.run("warm_up", WARM_UP)
        contender.clean_up()
    found: list[Measurement] = []
    for number, (name, sql) in enumerate(queries):
        measurement = Measurement(name)
        for turn in range(repeat):
            _run_turn(contenders, name, sql, number + turn, measurement)
        found.append(measurement)
        _progress(measurement, found)
    return found


def _run_turn(
    contenders: Sequence[Contender],
    name: str,
    sql: str,
    turn: int,
    measurement: Measurement,
) -> None:
    """One run of each contender, starting with another one each time."""
    first = turn % len(contenders)
    samples: dict[str, Sample] = {}
    for contender in [*contenders[first:], *contenders[:first]]:
        try:
            samples[contender.name] = contender.run(name, sql)
        except Exception as error:  # noqa: BLE001 - reported; the other queries go on
            message = str(error).splitlines()[0] if str(error) else type(error).__name__
            measurement.problems.append(f"{contender.name} failed: {message}")
        finally:
            contender.clean_up()
    measurement.problems += _compare(samples, sql)
    for contender_name, sample in samples.items():
        measurement.rows = sample.table.num_rows
        kept = replace(sample, table=None)
        measurement.samples.setdefault(contender_name, []).append(kept)


def _compare(samples: dict[str, Sample], sql: str) -> list[str]:
    """What differs from Spark's result."""
    if "spark" not in samples:
        return []
    expected = samples["spark"].table
    problems: list[str] = []
    for name, sample in samples.items():
        problem = None
        if name == "stagecoach":
            problem = difference(expected, sample.table, sql)
        elif name != "spark":
            problem = rough_difference(expected, sample.table)
        if problem:
            problems.append(f"{name}: another result than Spark's: {problem}")
    return problems


def _progress(measurement: Measurement, found: Sequence[Measurement]) -> None:
    texts = []
    for name in measurement.samples:
        texts.append(f"{name} {measurement.seconds(name):.2f} s")
    mean = ratios(found)["spark"]
    so_far = f"  (÷ spark so far {mean:.2f})" if mean else ""
    click.echo(f"{measurement.query}: {', '.join(texts)}{so_far}", err=True)
    for problem in measurement.problems:
        click.echo(f"  {problem}", err=True)


def contenders(names: Sequence[str], place: BenchSession, folder: Path) -> list[Contender]:
    """Return those contenders that run in this process."""
    session = place.session
    memory = session.settings.task_memory_bytes * (os.cpu_count() or 1)
    makers: dict[str, Callable[[], Contender]] = {
        "stagecoach": lambda: Stagecoach(session, place.traffic),
        "spark": lambda: SparkSql(session, folder),
        "duckdb": lambda: DuckDb(folder, memory, place.spill),
    }
    return [makers[name]() for name in names]


def _served(folder: Path, place: Path) -> RcloneServer:
    """An S3 server, not started yet, over a copy of the tables."""
    server = RcloneServer(place, "bench")
    for table in TABLES:
        shutil.copytree(folder / table, place / server.bucket / "tables" / table)
    return server


def queries_of(names: str | None) -> list[tuple[str, str]]:
    known = {path.stem: path for path in sorted(QUERIES.glob("q[0-9][0-9].sql"))}
    wanted = [name.strip() for name in names.split(",")] if names else list(known)
    if unknown := [name for name in wanted if name not in known]:
        raise click.BadParameter(f"no query {unknown[0]}; there are {', '.join(known)}")
    return [(name, known[name].read_text(encoding="utf-8")) for name in wanted]


def _contenders(chosen: str) -> list[str]:
    names = [name.strip() for name in chosen.split(",")]
    if unknown := [name for name in names if name not in CONTENDERS]:
        raise click.BadParameter(f"no contender {unknown[0]}; there are {', '.join(CONTENDERS)}")
    if "stagecoach" not in names:
        raise click.BadParameter("stagecoach must be among the contenders")
    return names


def _texts(value: object) -> dict[str, str]:
    return {str(k): str(v) for k, v in value.items()} if isinstance(value, dict) else {}


def _memory() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


if __name__ == "__main__":
    main()
