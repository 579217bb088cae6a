"""How long a task takes for each unit of work: `python -m benchmarks.work --data data/tpch-sf10`.

Each query of TPC-H, and some that do little but one thing, as one task of all cores. The seconds of
a unit are fitted to what these tasks took. They are the constants of
`planner/distribution/work.py`, from which the planner estimates whether one task computes something
in a moment.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import click
import numpy as np

from benchmarks.report import document, json_option, storage_option, write_document
from stagecoach.api.session import Session, connect
from stagecoach.planner.distribution.work import SECONDS, work_units
from stagecoach.terminal.streams import configure_logging, discard_log, divert_noise
from stagecoach.tpch import write_catalog

QUERIES = Path(__file__).resolve().parent.parent / "pipelines" / "queries"
MORE = {
    "sort": "SELECT o_orderkey, o_totalprice FROM orders ORDER BY o_totalprice, o_orderkey",
    "groups": "SELECT l_partkey, count(*) AS n, max(l_shipdate) AS m FROM lineitem GROUP BY ALL",
    "ranges": "SELECT l_orderkey, max(l_shipdate) AS m FROM lineitem GROUP BY l_orderkey "
    "HAVING count(*) > 7",
    "build": "SELECT count(*) AS n FROM lineitem JOIN orders ON l_orderkey = o_orderkey",
    "joined": "SELECT max(l_shipdate) AS m, max(s_name) AS s FROM lineitem JOIN supplier "
    "ON l_suppkey = s_suppkey",
}
"""Of these each does one thing that TPC-H does little of."""

_OPTIONS: dict[str, object] = {"max_lost_seconds": 1_000}
_PRIOR = 0.1
"""How much a factor of e between constants counts beside one between seconds."""
_STEPS = 400


@dataclass(frozen=True)
class Point:
    """A query as one task.

    Args:
        query: Its name.
        seconds: What its engine took, times the cores.
        units: What it did, as the planner estimates.
    """

    query: str
    seconds: float
    units: Mapping[str, float]


def measure(session: Session, name: str, sql: str, repeat: int) -> Point | None:
    """A query, the fastest of some runs; None if it is not one task of several cores."""
    planned = session.plan(sql, name=name)
    stage = planned.graph.stages[0]
    if len(planned.graph.stages) > 1 or stage.cores == 1:
        return None
    found = []
    for _ in range(repeat):
        manifest = session.run(planned, fresh=True).manifest(0)
        found.append(sum(task["engine_seconds"] for task in manifest.metrics["tasks"]))
    units = work_units(stage.operator_sizes, stage.operator_sizes.__getitem__)
    return Point(name, min(found) * stage.cores, units)


def fit(points: Sequence[Point], known: Mapping[str, float] = SECONDS) -> dict[str, float]:
    """Seconds of each unit, by Gauss-Newton steps: the least squared logarithms of ratios.

    Ratios, because the times span magnitudes and a constant is never negative. What the points say
    little of stays near the known constants, scaled to the points on the whole.

    Args:
        points: What was measured.
        known: The constants so far.
    """
    units = np.array([[point.units[name] for name in known] for point in points])
    seconds = np.log([point.seconds for point in points])
    constants = np.array(list(known.values()))
    centre = float(np.mean(seconds - np.log(units @ constants)))
    factors = np.full(len(constants), centre)
    for _ in range(_STEPS):
        parts = units * constants * np.exp(factors)
        total = parts.sum(axis=1)
        slopes = parts / total[:, None]
        gradient = slopes.T @ (np.log(total) - seconds) + _PRIOR * (factors - centre)
        curvature = slopes.T @ slopes + _PRIOR * np.eye(len(constants))
        factors -= np.linalg.solve(curvature, gradient) / 2
    return dict(zip(known, (constants * np.exp(factors)).tolist(), strict=True))


def deviation(points: Sequence[Point], constants: Mapping[str, float]) -> float:
    """The root of the mean squared logarithm of estimate over measurement."""
    logs = [math.log(estimate(point, constants) / point.seconds) for point in points]
    return math.sqrt(sum(log * log for log in logs) / len(logs))


def estimate(point: Point, constants: Mapping[str, float]) -> float:
    """Seconds of one core that a query takes by some constants."""
    return sum(units * constants[name] for name, units in point.units.items())


@click.command(context_settings={"show_default": True})
@click.option(
    "--data",
    type=click.Path(file_okay=False, exists=True, path_type=Path),
    default=Path("data/tpch-sf10"),
    help="Folder with a folder of Parquet files per table.",
)
@click.option("--repeat", type=click.IntRange(min=1), default=3, help="Runs of each query.")
@json_option
@storage_option
def main(data: Path, repeat: int, json_path: Path | None, storage: Path) -> None:
    """Print what each query takes as one task, and the constants that fit best."""
    configure_logging(debug=False)
    divert_noise()
    storage.mkdir(parents=True, exist_ok=True)
    texts = {file.stem: file.read_text("utf-8") for file in sorted(QUERIES.glob("q*.sql"))} | MORE
    points: list[Point] = []
    with tempfile.TemporaryDirectory(prefix="bench-", dir=storage) as root:
        catalog = Path(root, "tpch.yaml")
        write_catalog(catalog, data.resolve())
        with connect(catalog, Path(root, "storage"), options=_OPTIONS) as session:
            for name, sql in texts.items():
                if (point := measure(session, name, sql, repeat)) is None:
                    click.echo(f"{name:8} is not one task of several cores")
                    continue
                points.append(point)
                now = estimate(point, SECONDS)
                click.echo(f"{name:8}{point.seconds:8.2f} s of one core, estimated {now:.2f}")
    fitted = fit(points)
    for name, seconds in fitted.items():
        click.echo(f"{name:14}{seconds * 1e9:8.2f} ns, now {SECONDS[name] * 1e9:.2f}")
    both = [round(deviation(points, constants), 3) for constants in (SECONDS, fitted)]
    click.echo(f"deviation {both[1]}, now {both[0]}")
    rows = [vars(point) for point in points]
    path = write_document(
        document("work", data=data.name, points=rows, fitted=fitted, deviation=both), json_path
    )
    click.echo(f"Written to {path}")
    discard_log()


if __name__ == "__main__":
    main()
