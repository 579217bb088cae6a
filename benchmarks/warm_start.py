"""From process start to the answer, beside a warm Spark: `python -m benchmarks.warm_start`.

A `stagecoach warm` is started first, and ended at last. Each command is a process of its own, which
hands its work over to the command host, and they take turns.
"""

from __future__ import annotations

import contextlib
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import click

from benchmarks.report import document, json_option, write_document
from benchmarks.start import ROOT, Contender, Taken, environment, make_class_data, measure
from stagecoach.infra.spark.announcements import Found, find_servers
from stagecoach.tpch import generate, write_catalog

AIM_SECONDS = 0.15
_END_SECONDS = 30.0
# Of the processor, at most, by a process that has handed its command over.
_HANDED_OVER_SECONDS = 0.3
_COMPUTES = "query"


@click.command(context_settings={"show_default": True})
@click.option("--repeat", type=click.IntRange(min=1), default=15, help="Rounds; medians count.")
@click.option("--scale-factor", type=float, default=1.0, help="Size of the TPC-H tables.")
@click.option("--query", "name", default="q06", help="Which TPC-H query.")
@json_option
def main(repeat: int, scale_factor: float, name: str, json_path: Path | None) -> None:
    """Print and keep what commands take beside a warm Spark."""
    tables = Path(f"data/tpch-sf{scale_factor:g}").resolve()
    generate(tables, scale_factor)
    query = ROOT / "pipelines" / "queries" / f"{name}.sql"
    runs: dict[str, list[Taken]] = {}
    # Python workers of the Spark that ends may still be writing bytecode.
    with tempfile.TemporaryDirectory(
        prefix="stagecoach-start-", ignore_cleanup_errors=True
    ) as place:
        folder = Path(place)
        write_catalog(folder / "catalog.yaml", tables)
        make_class_data(folder)
        variables = environment(ROOT, folder, warm="always")
        with _warm_spark(folder, variables):
            # The first round compiles modules and fills the storage of the reused query.
            for round_number in range(repeat + 1):
                for contender in _contenders(query, variables):
                    taken = measure(contender, folder)
                    click.echo(f"{contender.name} {taken.wall:.2f}", err=True)
                    if taken.cpu > _HANDED_OVER_SECONDS:
                        raise click.ClickException(
                            f"{contender.name} was not handed over: its own process took "
                            f"{taken.cpu:.2f} s of the processor"
                        )
                    if round_number:
                        runs.setdefault(contender.name, []).append(taken)
    medians = {key: statistics.median(t.wall for t in found) for key, found in runs.items()}
    found = document(
        "warm_start",
        query=name,
        scale_factor=scale_factor,
        rounds=repeat,
        aim_seconds={_COMPUTES: AIM_SECONDS},
        commands={
            key: {
                "wall_seconds": medians[key],
                "least_wall_seconds": min(t.wall for t in found),
                "cpu_seconds": statistics.median(t.cpu for t in found),
            }
            for key, found in runs.items()
        },
    )
    for key, seconds in medians.items():
        click.echo(f"{key:16} {seconds:6.2f}s")
    click.echo(f"\nWritten to {write_document(found, json_path)}")


def _contenders(query: Path, variables: Mapping[str, str]) -> Iterator[Contender]:
    options = ("--format", "csv", "--quiet", "--storage", "storage")
    for name, arguments in {
        _COMPUTES: ("query", str(query), *options, "--fresh"),
        "reused": ("query", str(query), *options),
        "explain": ("explain", str(query)),
    }.items():
        command = (sys.executable, "-m", "stagecoach", *arguments, "--catalog", "catalog.yaml")
        yield Contender(name=name, command=command, environment=variables)


@contextlib.contextmanager
def _warm_spark(folder: Path, variables: Mapping[str, str]) -> Iterator[None]:
    """A warm Spark of its own while the block runs; those of the user are left alone."""
    before = _watchers().keys()
    command = [sys.executable, "-m", "stagecoach", "warm", "--ttl", "1h"]
    # The folder of bytecode is a variable of ours alone: no other warm Spark is of its like.
    subprocess.run(command, cwd=folder, env=dict(variables), check=True)
    ours = [server for pid, server in _watchers().items() if pid not in before]
    try:
        yield
    finally:
        for server in ours:
            server.end(_END_SECONDS)


def _watchers() -> dict[int, Found]:
    return {found.announcement.watcher_pid: found for found in find_servers()}


if __name__ == "__main__":
    main()
