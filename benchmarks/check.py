"""How long `stagecoach check` takes for a project of 100 queries: `python -m benchmarks.check`.

Of the queries, 90 are from the corpus, and 10 are of a kind that the planner does not understand,
so Spark is asked. `check` runs in a fresh process, with a Spark that it starts, and with a warm one
(`stagecoach warm`). It tells that some results have columns that no published table can have.
The exit code is 1 if the aim with a warm Spark is missed.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import click

from benchmarks.report import document, json_option, write_document
from tests.differential.corpus_files import queries, subjects
from tests.differential.edge_tables import write_edge_tables
from tests.differential.relation_tables import write_relation_tables
from tests.differential.shop_tables import write_shop_tables

AIM_SECONDS = 10.0
COUNT, ASKED = 100, 10
ODD = "odd names"  # a table of the corpus that a catalog cannot have


def write_project(folder: Path) -> None:
    """Write the tables, the catalog and the queries."""
    tables = folder / "tables"
    parts = (
        write_edge_tables(tables),
        write_relation_tables(tables, {"n": "tree"}),
        write_shop_tables(tables),
    )
    lines = ["tables:"]
    for name, paths in (item for part in parts for item in part.files.items()):
        if name == ODD:
            continue
        location = paths[0] if len(paths) == 1 else str(Path(paths[0]).parent)
        lines.append(f"  {name}: {{location: {location}}}")
    (folder / "catalog.yaml").write_text("\n".join(lines), encoding="utf-8")
    (folder / "queries").mkdir()
    for number, sql in enumerate(_texts()):
        (folder / "queries" / f"query_{number:03}.sql").write_text(sql, encoding="utf-8")


def _texts() -> list[str]:
    found = [q.sql for subject in subjects() for q in queries(subject) if ODD not in q.sql]
    planned = COUNT - ASKED
    asked = [
        f"SELECT id, k FROM x WHERE k > {n} QUALIFY rank() OVER (ORDER BY id)" for n in range(ASKED)
    ]
    return [*found[:: len(found) // planned][:planned], *asked]


def check(folder: Path, *options: str) -> float:
    """Seconds of `stagecoach check` of the project, from process start to end.

    Raises:
        click.ClickException: It has failed.
    """
    command = [sys.executable, "-m", "stagecoach", "check", str(folder / "queries")]
    command += ["--catalog", str(folder / "catalog.yaml"), *options]
    began = time.perf_counter()
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - began
    if done.returncode not in (0, 1) or f" of {COUNT} queries" not in done.stdout + done.stderr:
        raise click.ClickException(done.stdout + done.stderr)
    return seconds


@click.command(context_settings={"show_default": True})
@click.option("--repeat", type=click.IntRange(min=1), default=3, help="The best counts.")
@json_option
def main(repeat: int, json_path: Path | None) -> None:
    """Print how long a check of 100 queries takes."""
    with tempfile.TemporaryDirectory(prefix="bench-check-") as place:
        write_project(Path(place))
        rows = [{"spark": "started by check", "seconds": round(check(Path(place)), 2)}]
        warm = [sys.executable, "-m", "stagecoach", "warm"]
        subprocess.run(warm, check=True, capture_output=True)
        try:
            best = min(check(Path(place)) for _ in range(repeat))
        finally:
            subprocess.run([*warm, "--stop"], check=True, capture_output=True)
        rows.append({"spark": "warm", "seconds": round(best, 2), "aim_s": AIM_SECONDS})
    for row in rows:
        click.echo(f"{row['spark']:>20}  {row['seconds']:6.2f} s")
    facts = {"queries": COUNT, "asked": ASKED, "ways": rows}
    click.echo(f"\nWritten to {write_document(document('check', **facts), json_path)}")
    if best > AIM_SECONDS:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
