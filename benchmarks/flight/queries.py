"""TPC-H by the ADBC driver beside plain Spark SQL over the same files: names, types, rows."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import adbc_driver_flightsql.dbapi as flight_sql
import click

from benchmarks.compare import difference
from benchmarks.flight.running import ServeProcess
from stagecoach.infra.config.settings import load_settings
from stagecoach.infra.spark.session import get_session, stop_sessions
from stagecoach.tpch import TABLES

QUERIES = Path(__file__).resolve().parents[2] / "pipelines" / "queries"


def compare(folder: Path, server: ServeProcess) -> dict[str, Any]:
    """Run all 22 queries both ways.

    Args:
        folder: Has `tables`.
        server: Over these tables.

    Raises:
        click.ClickException: A result differs.
    """
    texts = {path.stem: path.read_text(encoding="utf-8") for path in sorted(QUERIES.glob("q*.sql"))}
    found, seconds = {}, {}
    with flight_sql.connect(server.uri, autocommit=True) as connection:
        for name, sql in texts.items():
            began = time.perf_counter()
            with connection.cursor() as cursor:
                cursor.execute(sql)
                found[name] = cursor.fetch_arrow_table()
            seconds[name] = round(time.perf_counter() - began, 3)
    server.stop()  # its Spark leaves the cores to this one
    session = get_session(load_settings()).newSession()
    for table in TABLES:
        session.read.parquet(str(folder / "tables" / table)).createOrReplaceTempView(table)
    problems = {}
    for name, sql in texts.items():
        expected = session.sql(sql).toArrow()
        problem = difference(expected, found[name], sql)
        rows = found[name].num_rows
        click.echo(f"{name}: {problem or 'equal'}, {rows} rows, {seconds[name]:.2f} s")
        if problem:
            problems[name] = problem
    stop_sessions()
    click.echo(f"{len(texts) - len(problems)} of {len(texts)} are equal to Spark's")
    if problems:
        raise click.ClickException(f"{', '.join(problems)} differ from Spark")
    return {"equal": len(texts), "queries": len(texts), "seconds": seconds}
