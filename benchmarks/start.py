"""From process start to the answer of one query: `python -m benchmarks.start`.

Each command is a process of its own, and they take turns: a query that computes everything, the
same query when all of it can be reused, `explain`, `check`, and plain Spark SQL beside them.
Seconds by the clock depend on what else the machine does. Seconds of the processor, of the process
and all that it has started, do less so. `--before` measures another checkout in the same rounds.
"""

from __future__ import annotations

import ctypes
import functools
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from benchmarks.report import document, json_option, write_document
from stagecoach.tpch import generate, write_catalog

ROOT = Path(__file__).resolve().parents[1]
AIMS_SECONDS = {"reused": 0.8, "explain": 0.6, "check": 0.6}
_SPARK = "plain Spark"
_PR_SET_CHILD_SUBREAPER = 36
# Local files by name, a session as `stagecoach query` has one: no UI, all cores.
_PROGRAM = """
import sys
from pathlib import Path
from pyspark.sql import SparkSession

tables, query = map(Path, sys.argv[1:])
spark = (
    SparkSession.builder.master("local[*]")
    .config("spark.ui.enabled", "false")
    .config("spark.sql.session.timeZone", "UTC")
    .getOrCreate()
)
for table in tables.iterdir():
    spark.read.parquet(str(table)).createOrReplaceTempView(table.name)
for row in spark.sql(query.read_text()).collect():
    print(*row, sep=",")
spark.stop()
"""


@dataclass(frozen=True, kw_only=True)
class Contender:
    """A command to measure.

    Args:
        name: What the report calls it.
        command: Its arguments.
        environment: Its environment.
        answers: Whether the last line that it prints is the answer.
        before: What to do before each of its runs.
    """

    name: str
    command: Sequence[str]
    environment: Mapping[str, str]
    answers: bool = False
    before: Callable[[], None] | None = None


@dataclass(frozen=True)
class Taken:
    """What one run took.

    Args:
        wall: Seconds by the clock until the process ended.
        cpu: Seconds of the processor, of the process and of all that it has started.
        answer: The last line that it printed.
    """

    wall: float
    cpu: float
    answer: str


def measure(contender: Contender, folder: Path) -> Taken:
    """Run a command and wait until nothing of it is left.

    Raises:
        click.ClickException: It failed.
    """
    if contender.before is not None:
        contender.before()
    used, begun = _used(), time.perf_counter()
    done = subprocess.run(
        contender.command,
        cwd=folder,
        env=dict(contender.environment),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    wall = time.perf_counter() - begun
    _reap()
    if done.returncode:
        raise click.ClickException(f"{contender.name} failed:\n{done.stderr[-3000:]}")
    return Taken(wall, _used() - used, (done.stdout.strip().splitlines() or [""])[-1])


def make_class_data(folder: Path) -> None:
    """Make the archive of Spark's classes if it is missing, as `stagecoach ui` and `warm` do.

    They do so in the background, for half a minute, which would be measured as well.

    Args:
        folder: Where bytecode goes.
    """
    command = [sys.executable, "-P", "-m", "stagecoach.infra.spark.class_data"]
    # Where none can be made, it says so, and commands are measured as they are: without one.
    subprocess.run(command, env=environment(ROOT, folder), check=False)


def adopt_orphans() -> None:
    """Become the parent of processes whose parent ends, so that their processor time counts.

    Spark's JVM ends after the command that has started it.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl")


def _used() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _reap() -> None:
    while True:
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def contenders(tables: Path, folder: Path, query: Path, before: Path | None) -> list[Contender]:
    """The commands, those of another checkout beside ours.

    Args:
        tables: The TPC-H tables.
        folder: Where catalogs and storage go.
        query: The query's file.
        before: The other checkout, or None.
    """
    program = folder / "plain_spark.py"
    program.write_text(_PROGRAM)
    write_catalog(folder / "catalog.yaml", tables)
    found = list(_of_checkout(ROOT, "", folder, query))
    if before is not None:
        found += _of_checkout(before, " before", folder, query)
    command = (sys.executable, str(program), str(tables), str(query))
    variables = environment(ROOT, folder)
    found.append(Contender(name=_SPARK, command=command, environment=variables, answers=True))
    return found


def _of_checkout(root: Path, suffix: str, folder: Path, query: Path) -> Iterator[Contender]:
    kept = folder / f"kept{suffix.strip()}"
    removed = folder / f"removed{suffix.strip()}"

    def contender(name: str, *arguments: str, **more: Any) -> Contender:
        command, *rest = arguments
        fixed = (sys.executable, "-m", "stagecoach", command, str(query), *rest)
        return Contender(
            name=f"{name}{suffix}",
            command=(*fixed, "--catalog", "catalog.yaml"),
            environment=environment(root, folder),
            **more,
        )

    def querying(name: str, storage: Path, **more: Any) -> Contender:
        options = ("--format", "csv", "--quiet", "--storage", str(storage))
        return contender(name, "query", *options, answers=True, **more)

    remove = functools.partial(shutil.rmtree, removed, ignore_errors=True)
    yield querying("cold", removed, before=remove)
    yield querying("reused", kept)
    yield contender("explain", "explain")
    yield contender("check", "check")


def environment(root: Path, folder: Path, warm: str = "never") -> dict[str, str]:
    """The environment without settings of ours, and with bytecode, as after `pip install`.

    Args:
        root: The checkout whose code runs.
        folder: Where bytecode goes.
        warm: Whether a warm Spark is used: `never` or `always`.
    """
    dropped = ("STAGECOACH_", "PYTHONDONTWRITEBYTECODE")
    kept = {k: v for k, v in os.environ.items() if not k.startswith(dropped)}
    return kept | {
        "PYTHONPATH": str(root),
        "PYTHONPYCACHEPREFIX": str(folder / "bytecode"),
        "STAGECOACH_WARM": warm,
    }


def summary(runs: Mapping[str, Sequence[Taken]]) -> dict[str, dict[str, float]]:
    """By command: medians, the fastest run, and medians divided by those of plain Spark."""
    medians = {
        name: (
            statistics.median(run.wall for run in found),
            statistics.median(run.cpu for run in found),
        )
        for name, found in runs.items()
    }
    spark_wall, spark_cpu = medians[_SPARK]
    return {
        name: {
            "wall_seconds": wall,
            "least_wall_seconds": min(run.wall for run in runs[name]),
            "cpu_seconds": cpu,
            "wall_ratio": wall / spark_wall,
            "cpu_ratio": cpu / spark_cpu,
        }
        for name, (wall, cpu) in medians.items()
    }


@click.command(context_settings={"show_default": True})
@click.option("--repeat", type=click.IntRange(min=1), default=5, help="Rounds; medians count.")
@click.option("--scale-factor", type=float, default=1.0, help="Size of the TPC-H tables.")
@click.option("--query", "name", default="q06", help="Which TPC-H query.")
@click.option(
    "--data",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder with a folder of Parquet files per table.  [default: data/tpch-sfN, generated]",
)
@click.option(
    "--before",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Another checkout, to be measured in the same rounds.",
)
@json_option
def main(
    repeat: int,
    scale_factor: float,
    name: str,
    data: Path | None,
    before: Path | None,
    json_path: Path | None,
) -> None:
    """Print and keep what lies between the start of a process and the answer of a query."""
    tables = (data or Path(f"data/tpch-sf{scale_factor:g}")).resolve()
    if data is None:
        generate(tables, scale_factor)
    query = ROOT / "pipelines" / "queries" / f"{name}.sql"
    adopt_orphans()
    with tempfile.TemporaryDirectory(prefix="stagecoach-start-") as place:
        folder = Path(place)
        commands = contenders(tables, folder, query, before and before.resolve())
        runs: dict[str, list[Taken]] = {command.name: [] for command in commands}
        make_class_data(folder)
        # The first round compiles modules and fills the storage of the reused query.
        for round_number in range(repeat + 1):
            taken = {command.name: measure(command, folder) for command in commands}
            answers = {taken[command.name].answer for command in commands if command.answers}
            if len(answers) > 1:
                raise click.ClickException(f"the answers differ: {', '.join(sorted(answers))}")
            click.echo(
                "  ".join(f"{k} {t.wall:.2f} ({t.cpu:.2f})" for k, t in taken.items()), err=True
            )
            if round_number:
                for key, value in taken.items():
                    runs[key].append(value)
    found = document(
        "start",
        query=name,
        scale_factor=scale_factor,
        rounds=repeat,
        aims_seconds=AIMS_SECONDS,
        commands=summary(runs),
        runs={k: [{"wall": t.wall, "cpu": t.cpu} for t in v] for k, v in runs.items()},
    )
    click.echo(f"{'':16} {'wall':>7} {'cpu':>7}   beside {_SPARK}: wall, cpu")
    for key, value in found["commands"].items():
        click.echo(
            f"{key:16} {value['wall_seconds']:6.2f}s {value['cpu_seconds']:6.2f}s   "
            f"{value['wall_ratio']:.3f}  {value['cpu_ratio']:.3f}"
        )
    click.echo(f"\nWritten to {write_document(found, json_path)}")


if __name__ == "__main__":
    main()
