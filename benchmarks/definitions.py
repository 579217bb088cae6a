"""How long a code location takes to load: `python -m benchmarks.definitions`.

A generated project has 200 queries, whose plans have 1,000 stages in total, over tables with almost
no data. The time is that of a fresh process from its start to definitions that Dagster can serve,
with plans that are compiled, kept in storage, or made anew. From compiled plans it loads with the
tables' files gone. The exit code is 1 if the aim is missed.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import click
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.report import document, json_option, write_document

AIM_SECONDS = 3.0
READ_EARLIER = 4
NUM_PARTITIONS = 8

# One after the other: what a process that serves or runs a code location does before anything else.
LOAD = """
import json, sys, time
started = time.perf_counter()
from stagecoach.assets import build_definitions
from stagecoach.planner.options import PlannerOptions
imported = time.perf_counter()
arguments = json.loads(sys.argv[1])
options = PlannerOptions().updated(arguments.pop("options"))
found = build_definitions(**arguments, options=options)
built = time.perf_counter()
repository = found.get_repository_def()
keys = repository.asset_graph.executable_asset_keys
resolved = time.perf_counter()
jobs = repository.get_all_jobs()
done = time.perf_counter()
print(json.dumps({
    "import_s": imported - started, "build_s": built - imported, "resolve_s": resolved - built,
    "jobs_s": done - resolved, "assets": len(keys), "jobs": len(jobs),
}))
"""


def write_project(folder: Path, count: int) -> None:
    """A project of `count` queries of five stages each; every fourth reads another one's table."""
    ids = pa.array(range(10), pa.int64())
    columns = {"id": ids, "key": ids, "day": pa.array([19_700] * 10, pa.date32())}
    columns |= {"amount": pa.array([1.5] * 10), "kind": ["a", "b"] * 5}
    lines = ["tables:"]
    for name in ("orders", "items", "parts"):
        (folder / "data" / name).mkdir(parents=True)
        pq.write_table(pa.table(columns), folder / "data" / name / "a.parquet")
        lines.append(f"  {name}: {{location: data/{name}}}")
    (folder / "catalog.yaml").write_text("\n".join(lines))
    (folder / "queries").mkdir()
    for number in range(count):
        (folder / "queries" / f"query_{number:03}.sql").write_text(query_text(number))


def query_text(number: int) -> str:
    """A query with a description, a schedule, partitions, two checks and a join of three tables."""
    left = f"query_{number - 1:03}" if number % READ_EARLIER == READ_EARLIER - 1 else "orders"
    return f"""/*
description: |
  Amounts by key and kind, number {number}.
  Made for the benchmark of definitions.
owners: ["team:data"]
tags: {{area: benchmark}}
schedule: 0 5 * * *
partitions: {{by: daily, start: 2024-01-01, column: day}}
checks:
  - not_null: [key, kind]
  - row_count: {{min: {number % 3}}}
*/
SELECT l.day, l.key, r.kind, sum(l.amount * r.amount) AS amount, count(*) AS n
FROM {left} l
JOIN items r ON l.key = r.key
JOIN parts p ON r.id = p.id
WHERE l.day >= :partition_start AND l.day < :partition_end AND r.amount > {number}
GROUP BY l.day, l.key, r.kind
ORDER BY amount DESC
"""


def load(arguments: dict[str, Any]) -> dict[str, Any]:
    """What a fresh process takes to load the project, in seconds of wall and of CPU time."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", LOAD, json.dumps(arguments)],
        capture_output=True,
        text=True,
        check=False,
    )
    wall = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        raise click.ClickException(done.stderr)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    found = json.loads(done.stdout.splitlines()[-1])
    times = {k: round(v, 2) if k.endswith("_s") else v for k, v in found.items()}
    return {"wall_s": round(wall, 2), "cpu_s": round(cpu, 2), **times}


def compile_plans(folder: Path, options: dict[str, str]) -> None:
    """`stagecoach compile` of the project."""
    command = [sys.executable, "-m", "stagecoach.commands.main", "compile", str(folder / "queries")]
    command += ["--catalog", str(folder / "catalog.yaml")]
    for name, value in options.items():
        command += ["--set", f"planner.{name}={value}"]
    subprocess.run(command, check=True, capture_output=True)


def measure(folder: Path, count: int, repeat: int) -> list[dict[str, Any]]:
    """Loading the project in each way; the best of some times."""
    options = {"force_distribution": "true", "num_partitions": str(NUM_PARTITIONS)}
    write_project(folder, count)
    arguments: dict[str, Any] = {
        "queries": str(folder / "queries"),
        "catalog": str(folder / "catalog.yaml"),
        "storage": str(folder / "storage"),
        "options": options,
    }
    rows = [{"plans": "made anew", **load(arguments)}]
    rows.append({"plans": "kept", **_best(arguments, repeat)})
    compile_plans(folder, options)
    for path in (folder / "data").rglob("*.parquet"):
        path.unlink()
    arguments |= {"plans": str(folder / "plans"), "storage": str(folder / "empty")}
    rows.append({"plans": "compiled", "aim_s": AIM_SECONDS, **_best(arguments, repeat)})
    return rows


def _best(arguments: dict[str, Any], repeat: int) -> dict[str, Any]:
    return min((load(arguments) for _ in range(repeat)), key=lambda row: float(row["wall_s"]))


@click.command(context_settings={"show_default": True})
@click.option("--repeat", type=click.IntRange(min=1), default=3, help="Loads; the best counts.")
@click.option("--queries", type=click.IntRange(min=1), default=200, help="Queries of the project.")
@json_option
@click.option("--keep", type=click.Path(file_okay=False, path_type=Path), help="Keep the project.")
def main(repeat: int, queries: int, json_path: Path | None, keep: Path | None) -> None:
    """Print how long a code location of many queries takes to load."""
    with tempfile.TemporaryDirectory() as temporary:
        rows = measure(keep or Path(temporary), queries, repeat)
    for row in rows:
        click.echo(
            f"{row['plans']:>10}  {row['assets']} stages, {row['jobs']} jobs   "
            f"{row['wall_s']:6.2f} s   CPU {row['cpu_s']:6.2f} s   (import {row['import_s']:.2f}, "
            f"build {row['build_s']:.2f}, resolve {row['resolve_s']:.2f}, "
            f"jobs {row['jobs_s']:.2f})"
        )
    compiled = rows[-1]
    compiled["met"] = compiled["wall_s"] <= AIM_SECONDS
    path = write_document(document("definitions", queries=queries, ways=rows), json_path)
    click.echo(f"\nWritten to {path}")
    if not compiled["met"]:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
