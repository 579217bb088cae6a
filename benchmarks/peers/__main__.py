"""Stagecoach beside other engines: `python -m benchmarks.peers --scale-factor 10`.

All run the 22 queries over the same Parquet files, warm, in turns, each result compared with that
of plain Spark SQL. Only Stagecoach keeps what it shuffles. An engine that cannot run a query, or
gives another result, is named; its figures are those of the queries that it runs.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click
import duckdb

from benchmarks.__main__ import bench_session, contenders, queries_of, run_all
from benchmarks.contenders import Contender
from benchmarks.peers.engines import PEERS
from benchmarks.peers.process import PeerProcess
from benchmarks.report import (
    Measurement,
    document,
    geometric_mean,
    json_option,
    storage_option,
    table_text,
    write_document,
)
from stagecoach.arguments.options import read_settings
from stagecoach.infra.spark.java import ensure_java
from stagecoach.terminal.streams import configure_logging, discard_log, divert_noise
from stagecoach.tpch import TABLES, generate

OURS = ("stagecoach", "duckdb", "spark")


@click.command(context_settings={"max_content_width": 100, "show_default": True})
@click.option("--scale-factor", type=click.FloatRange(min=0, min_open=True), default=1.0)
@click.option("--queries", "names", metavar="q01,q03,…", help="Which queries.  [default: all 22]")
@click.option("--repeat", type=click.IntRange(min=1), default=2, help="Runs; the least counts.")
@click.option(
    "--data",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder with a folder of Parquet files per table.  [default: data/tpch-sfN, generated]",
)
@click.option(
    "--environments",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(".cache/peers"),
    help="Folder for an environment of each engine.",
)
@click.option("--peers", "chosen", default=",".join(peer.name for peer in PEERS))
@click.option("--seconds", default=300.0, help="After which a query of a peer is given up.")
@storage_option
@json_option
def main(
    scale_factor: float,
    names: str | None,
    repeat: int,
    data: Path | None,
    environments: Path,
    chosen: str,
    seconds: float,
    storage: Path,
    json_path: Path | None,
) -> None:
    """Run TPC-H on Stagecoach, DuckDB, plain Spark SQL and other engines of one machine."""
    queries = queries_of(names)
    folder = (data or Path(f"data/tpch-sf{scale_factor:g}")).resolve()
    if data is None:
        generate(folder, scale_factor)
    wanted = [peer for peer in PEERS if peer.name in chosen.split(",")]
    settings = read_settings(())
    ensure_java()
    configure_logging(debug=False)
    divert_noise()
    with ExitStack() as held:
        place = held.enter_context(bench_session(folder, storage, settings, s3=False))
        peers = []
        for peer in wanted:
            tables = (
                _without_views(folder, place.spill.parent / peer.name) if peer.rewrites else folder
            )
            peers.append(PeerProcess(peer, environments, tables, seconds))
            held.callback(peers[-1].close)
        everyone: list[Contender] = [*contenders(OURS, place, folder), *peers]
        measurements = run_all(everyone, queries, repeat)
    found = [_summary(contender.name, measurements) for contender in everyone]
    report = document(
        "peers",
        scale_factor=scale_factor,
        repeat=repeat,
        versions={peer.name: peer.requirements for peer in wanted},
        contenders=found,
        queries=[m.to_dict() for m in measurements],
    )
    path = write_document(report, json_path)
    click.echo(f"{_render(found)}\n\nWritten to {path}")
    discard_log()
    if any(summary["name"] in OURS and summary["problems"] for summary in found):
        sys.exit(1)


def _without_views(folder: Path, target: Path) -> Path:
    """Return a copy of the tables whose files do not ask for string views.

    Arrow's schema, which its writers store in a Parquet file, may name types that a reader lacks.
    """
    for table in TABLES:
        place = target / table
        place.mkdir(parents=True)
        source = str(folder / table / "*.parquet").replace("'", "''")
        duckdb.execute(
            f"COPY (FROM read_parquet('{source}')) TO '{place / 'part-0.parquet'}' (FORMAT parquet)"
        )
    return target


def _summary(name: str, measurements: Sequence[Measurement]) -> dict[str, Any]:
    """What one contender did."""
    problems = {
        m.query: problem for m in measurements for problem in m.problems if problem.startswith(name)
    }
    answered = [m for m in measurements if m.seconds(name) is not None]
    ours = [m.seconds("stagecoach") or 0.0 for m in answered]
    theirs = [m.seconds(name) or 0.0 for m in answered]
    return {
        "name": name,
        "answered": len(answered),
        "seconds": round(sum(theirs), 2),
        "geometric_mean": geometric_mean(theirs),
        "stagecoach_seconds": round(sum(ours), 2),
        "stagecoach_ratio": geometric_mean(m.ratio("stagecoach", name) for m in answered),
        "problems": problems,
    }


def _render(found: Sequence[dict[str, Any]]) -> str:
    lines = [["engine", "queries", "sum", "geomean", "stagecoach's sum", "stagecoach ÷ it"]]
    for one in found:
        lines.append(
            [
                one["name"],
                str(one["answered"]),
                f"{one['seconds']:.2f}",
                *("–" if one[key] is None else f"{one[key]:.2f}" for key in ("geometric_mean",)),
                f"{one['stagecoach_seconds']:.2f}",
                "–" if one["stagecoach_ratio"] is None else f"{one['stagecoach_ratio']:.2f}",
            ]
        )
    problems = [f"{query}: {text}" for one in found for query, text in one["problems"].items()]
    return "\n".join(["Seconds, the least of all repeats.", table_text(lines), *problems])


if __name__ == "__main__":
    main()
