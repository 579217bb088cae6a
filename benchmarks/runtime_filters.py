"""What runtime filters save: `python -m benchmarks.runtime_filters --data data/tpch-sf1`.

The bytes that queries of TPC-H shuffle without runtime filters, with lists of keys, and with Bloom
filters in their place; and with what the planner chooses by itself. Once as planned by default and
once with few broadcasts, as for larger data: where the small side of a join is broadcast, its keys
filter the other side anyway.
"""

from __future__ import annotations

import json
import sys
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from benchmarks.compare import difference
from benchmarks.contenders import Sample, Stagecoach
from benchmarks.report import document, json_option, storage_option, write_document
from stagecoach.api.session import Session, connect
from stagecoach.planner.plan.stages import StageGraph
from stagecoach.terminal.streams import configure_logging, discard_log, divert_noise
from stagecoach.tpch import write_catalog

HERE = Path(__file__).resolve().parent
QUERIES = HERE.parent / "pipelines" / "queries"
PLANS: dict[str, dict[str, object]] = {
    "default": {},
    "few broadcasts": {"broadcast_bytes": 1 << 20},
}
KINDS: dict[str, dict[str, object]] = {
    "none": {"runtime_filters": False},
    "list": {"key_list_bytes": 1 << 40, "bloom_bytes": 0},
    "bloom": {"key_list_bytes": 0},
    "chosen": {},
}
_MB = 1 << 20
_WARM_UP = "q06"


@dataclass(frozen=True, kw_only=True)
class Shuffled:
    """A run of a query.

    Args:
        num_bytes: Stored bytes of all shuffles, filters included, the result not.
        num_rows: Rows of them.
        filters: Runtime filters of both kinds.
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


class Sessions:
    """Sessions over one catalog, a session for each set of planner options, till all are closed.

    Closing one stops the Spark of all others.

    Args:
        stack: Closes them.
        catalog: The catalog file.
        storage: Where shuffles are written and removed.
    """

    def __init__(self, stack: ExitStack, catalog: Path, storage: Path) -> None:
        self._stack, self._catalog, self._storage = stack, catalog, storage
        self._known: dict[str, Session] = {}

    def get(self, options: dict[str, object]) -> Session:
        """The session with these options of the planner."""
        name = json.dumps(options, sort_keys=True)
        if name not in self._known:
            made = connect(self._catalog, self._storage, options=options)
            self._known[name] = self._stack.enter_context(made)
        return self._known[name]


def measure(
    sessions: Sessions, name: str, options: dict[str, object], repeat: int
) -> tuple[dict[str, Any], list[str]]:
    """A query with each kind of filter, and what differs between the results.

    Args:
        sessions: Run it.
        name: Of the query.
        options: Of the planner, besides those of the kind.
        repeat: How often each plan runs; the fastest run counts.
    """
    sql = (QUERIES / f"{name}.sql").read_text(encoding="utf-8")
    found: dict[str, Shuffled] = {}
    samples: dict[str, Sample] = {}  # by plan: kinds that change nothing are run once
    for kind, given in KINDS.items():
        session = sessions.get({**options, **given})
        graph = session.plan(sql, name=name).graph
        if graph.plan_hash not in samples:
            samples[graph.plan_hash] = _fastest(Stagecoach(session), name, sql, repeat)
        found[kind] = shuffled(samples[graph.plan_hash], graph)
    first, *others = samples.values()
    problems = [difference(first.table, other.table, sql) for other in others]
    row = {"query": name, **{kind: vars(run) for kind, run in found.items()}}
    return row, [f"{name}: {problem}" for problem in problems if problem is not None]


def _fastest(runner: Stagecoach, name: str, sql: str, repeat: int) -> Sample:
    runs = []
    for _ in range(repeat):
        runs.append(runner.run(name, sql))
        runner.clean_up()
    return min(runs, key=lambda sample: sample.seconds)


@click.command(context_settings={"show_default": True})
@click.option("--queries", "names", default="q03,q05,q08,q17,q21", help="Which queries.")
@click.option(
    "--data",
    type=click.Path(file_okay=False, exists=True, path_type=Path),
    default=Path("data/tpch-sf1"),
    help="Folder with a folder of Parquet files per table.",
)
@json_option
@storage_option
@click.option("--repeat", type=click.IntRange(min=1), default=1, help="Runs of each plan.")
def main(names: str, data: Path, json_path: Path | None, storage: Path, repeat: int) -> None:
    """Print the bytes that queries shuffle with runtime filters and without."""
    configure_logging(debug=False)
    divert_noise()
    storage.mkdir(parents=True, exist_ok=True)
    plans: dict[str, Any] = {}
    problems: list[str] = []
    with tempfile.TemporaryDirectory(prefix="bench-", dir=storage) as root, ExitStack() as stack:
        catalog = Path(root) / "catalog.yaml"
        write_catalog(catalog, data.resolve())
        sessions = Sessions(stack, catalog, Path(root) / "storage")
        warm_up = Stagecoach(sessions.get({}))  # Spark starts
        warm_up.run(_WARM_UP, (QUERIES / f"{_WARM_UP}.sql").read_text(encoding="utf-8"))
        for plan, options in PLANS.items():
            rows = []
            click.echo("\n".join(_head(plan)))
            for name in names.split(","):
                row, wrong = measure(sessions, name, options, repeat)
                rows.append(row)
                click.echo(_line(row))
                problems += [f"{plan}, {problem}" for problem in wrong]
            plans[plan] = {"options": options, "queries": rows}
            click.echo()
    found = document("runtime_filters", data=data.name, plans=plans)
    click.echo(f"Written to {write_document(found, json_path)}")
    for problem in problems:
        click.echo(f"error: {problem}", err=True)
    discard_log()
    if problems:
        sys.exit(1)


def _head(plan: str) -> list[str]:
    kinds = "".join(f"{f'{kind} MB':>12}{'s':>8}{'filters':>9}" for kind in KINDS)
    return [f"Shuffled by plan: {plan}", f"{'query':8}{kinds}"]


def _line(row: dict[str, Any]) -> str:
    cells = (row[kind] for kind in KINDS)
    text = "".join(
        f"{c['num_bytes'] / _MB:12.2f}{c['seconds']:8.2f}{c['filters']:9}" for c in cells
    )
    return f"{row['query']:8}{text}"


if __name__ == "__main__":
    main()
