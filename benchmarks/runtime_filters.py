"""What runtime filters save: `python -m benchmarks.runtime_filters --data data/tpch-sf1`.

The bytes that queries of TPC-H shuffle with runtime filters and without, by the option
`planner.runtime_filters`: once as planned by default and once with few broadcasts, as for larger
data. Where the small side of a join is broadcast, its keys filter the other side anyway.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from benchmarks.compare import difference
from benchmarks.contenders import Sample, Stagecoach
from benchmarks.report import machine, write
from planner.stages import StageGraph
from stagecoach.session import connect
from stagecoach.terminal import configure_logging, discard_log, divert_noise
from stagecoach.tpch import write_catalog

HERE = Path(__file__).resolve().parent
QUERIES = HERE.parent / "pipelines" / "queries"
PLANS: dict[str, dict[str, object]] = {
    "default": {},
    "few broadcasts": {"broadcast_bytes": 1 << 20},
}
_MB = 1 << 20


@dataclass(frozen=True, kw_only=True)
class Shuffled:
    """A run of a query.

    Args:
        num_bytes: Stored bytes of all shuffles, key lists included, the result not.
        num_rows: Rows of them.
        filters: Stages that list keys.
        seconds: Of the query.
    """

    num_bytes: int
    num_rows: int
    filters: int
    seconds: float


def shuffled(sample: Sample, graph: StageGraph) -> Shuffled:
    """What a run wrote for its own stages to read."""
    stages = [s for s in sample.stages if s["stage_id"] != graph.head.stage_id]
    reasons = [stage.output.reason for stage in graph.stages]
    return Shuffled(
        num_bytes=sum(int(s["bytes"] or 0) for s in stages),
        num_rows=sum(int(s["rows"] or 0) for s in stages),
        filters=sum(reason.startswith("runtime filter") for reason in reasons),
        seconds=round(sample.seconds, 3),
    )


def measure(
    catalog: Path, storage: Path, name: str, options: dict[str, object]
) -> tuple[dict[str, Any], str | None]:
    """A query with filters and without, and what differs between the results."""
    sql = (QUERIES / f"{name}.sql").read_text(encoding="utf-8")
    found: dict[str, Shuffled] = {}
    samples: dict[str, Sample] = {}  # by plan: one without filters is run once
    tables = []
    for filters in (True, False):
        given = {**options, "runtime_filters": filters}
        with connect(catalog, storage, options=given) as session:
            graph = session.plan(sql, name=name).graph
            if graph.plan_hash not in samples:
                runner = Stagecoach(session)
                samples[graph.plan_hash] = runner.run(name, sql)
                runner.clean_up()
            sample = samples[graph.plan_hash]
            found["with" if filters else "without"] = shuffled(sample, graph)
            tables.append(sample.table)
    row = {"query": name, **{side: vars(run) for side, run in found.items()}}
    return row, difference(tables[0], tables[1], sql)


@click.command(context_settings={"show_default": True})
@click.option("--queries", "names", default="q03,q05,q08,q17,q21", help="Which queries.")
@click.option(
    "--data",
    type=click.Path(file_okay=False, exists=True, path_type=Path),
    default=Path("data/tpch-sf1"),
    help="Folder with a folder of Parquet files per table.",
)
@click.option("--json", "json_path", type=click.Path(dir_okay=False, path_type=Path))
@click.option(
    "--storage",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(".stagecoach"),
    help="Local folder under which shuffles are written and removed.",
)
def main(names: str, data: Path, json_path: Path | None, storage: Path) -> None:
    """Print the bytes that queries shuffle with runtime filters and without."""
    configure_logging(debug=False)
    divert_noise()
    storage.mkdir(parents=True, exist_ok=True)
    document: dict[str, Any] = {
        "benchmark": "runtime_filters",
        "machine": machine(),
        "load": os.getloadavg()[0],
        "data": data.name,
        "plans": {},
    }
    problems: list[str] = []
    with tempfile.TemporaryDirectory(prefix="bench-", dir=storage) as root:
        catalog = Path(root) / "catalog.yaml"
        write_catalog(catalog, data.resolve())
        for plan, options in PLANS.items():
            rows = []
            for name in names.split(","):
                row, problem = measure(catalog, Path(root) / "storage", name, options)
                rows.append(row)
                problems += [] if problem is None else [f"{name}, {plan}: {problem}"]
            document["plans"][plan] = {"options": options, "queries": rows}
            click.echo("\n".join(_lines(plan, rows)))
    path = json_path or HERE / "results" / "runtime_filters.json"
    write(path, json.dumps(document, indent=2) + "\n")
    click.echo(f"Written to {path}")
    for problem in problems:
        click.echo(f"error: {problem}", err=True)
    discard_log()
    if problems:
        sys.exit(1)


def _lines(plan: str, rows: list[dict[str, Any]]) -> list[str]:
    lines = [
        f"Shuffled by plan: {plan}",
        f"{'query':8}{'filters':>8}{'with MB':>12}{'without MB':>12}{'share':>8}"
        f"{'with s':>9}{'without s':>11}",
    ]
    for row in rows:
        on, off = row["with"], row["without"]
        share = on["num_bytes"] / off["num_bytes"] if off["num_bytes"] else 1.0
        lines.append(
            f"{row['query']:8}{on['filters']:8}{on['num_bytes'] / _MB:12.1f}"
            f"{off['num_bytes'] / _MB:12.1f}{share:8.0%}{on['seconds']:9.2f}{off['seconds']:11.2f}"
        )
    return [*lines, ""]


if __name__ == "__main__":
    main()
