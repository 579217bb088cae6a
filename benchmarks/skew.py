"""What skew costs, and tiny partitions: `python -m benchmarks.skew`.

The same join twice, of tables with as many rows and as many matches: once with keys spread evenly,
once with one key in 80 % of the rows of the larger side. The aim is at most 1.5 times the time. And
once more without adaptivity, to see what it does. Then a join over 1,024 partitions of a few kB,
which should be read by a handful of tasks.
"""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path
from typing import Any

import click
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.contenders import Sample, Stagecoach
from benchmarks.report import document, json_option, storage_option, write_document
from stagecoach.api.session import connect
from stagecoach.planner.plan.stages import StageGraph
from stagecoach.terminal.streams import configure_logging, discard_log, divert_noise

AIM_RATIO = 1.5
SHARE = 0.8
_FILES = 4
_KEYS = 50_000
_MATCHES = 8  # rows of the dimension for each key, so that the join has something to do
_OPTIONS: dict[str, object] = {
    "force_distribution": True,
    "broadcast_bytes": 0,
    "inline_bytes": 0,
    "num_partitions": 16,
}
_SQL = """
SELECT d.c, count(*) AS n, sum(f.v + d.w) AS s, max(f.u) AS m
FROM {fact} AS f JOIN dimension AS d ON f.k = d.k GROUP BY d.c
"""


def make_tables(folder: Path, rows: int) -> Path:
    """Write an even, a skewed and a small fact table and their dimension; return the catalog."""
    random = np.random.default_rng(7)
    even = random.integers(0, _KEYS, rows)
    skewed = np.where(random.random(rows) < SHARE, 77, even)
    facts = {"even": even, "skewed": skewed, "small": even[: min(rows, 200_000)]}
    for name, keys in facts.items():
        table = pa.table(
            {
                "k": keys,
                "v": random.integers(0, 1 << 30, len(keys)),
                "u": random.integers(0, 1 << 50, len(keys)),
            }
        )
        _write(folder, name, table, _FILES)
    dimension = {
        "k": np.repeat(np.arange(_KEYS), _MATCHES),
        "c": random.integers(0, 1000, _KEYS * _MATCHES),
        "w": random.integers(0, 1 << 20, _KEYS * _MATCHES),
    }
    _write(folder, "dimension", pa.table(dimension), 1)
    entries = (
        f"  {name}:\n    location: {folder.resolve()}/{name}\n    format: parquet\n"
        for name in (*facts, "dimension")
    )
    catalog = folder / "catalog.yaml"
    catalog.write_text("tables:\n" + "".join(entries), encoding="utf-8")
    return catalog


def _write(folder: Path, name: str, table: pa.Table, files: int) -> None:
    (folder / name).mkdir()
    step = -(-table.num_rows // files)
    for number in range(files):
        part = table.slice(number * step, step)
        pq.write_table(part, folder / name / f"{number}.parquet", row_group_size=250_000)


def _join_stage(sample: Sample, graph: StageGraph) -> dict[str, Any]:
    """What is told of the stage that joins: the one that reads two others."""
    stage_id = next(stage.stage_id for stage in graph.stages if len(stage.inputs) > 1)
    return dict(sample.stages[stage_id])


def measure(
    catalog: Path, storage: Path, cases: list[tuple[str, str, dict[str, object], bool]], repeat: int
) -> dict[str, dict[str, Any]]:
    """Run each case in turn `repeat` times.

    Args:
        catalog: The tables.
        storage: Folder for shuffles.
        cases: Name, fact table, options beside the usual ones, and whether to adapt.
        repeat: How many times.

    Returns:
        For each case its samples' seconds and what its join stage did.
    """
    found: dict[str, dict[str, Any]] = {
        name: {"seconds": [], "join_seconds": []} for name, *_ in cases
    }
    for turn in range(repeat + 1):
        for name, fact, options, adaptive in cases:
            settings = {"adaptive_skew": adaptive, "adaptive_broadcast": adaptive}
            with connect(
                catalog, storage, settings=settings, options={**_OPTIONS, **options}
            ) as session:
                runner = Stagecoach(session)
                sql = _SQL.format(fact=fact)
                sample = runner.run("skew", sql)
                graph = session.plan(sql, name="skew").graph
                runner.clean_up()
            if not turn:  # the workers start
                continue
            stage = _join_stage(sample, graph)
            found[name]["seconds"].append(round(sample.seconds, 3))
            found[name]["join_seconds"].append(stage["seconds"])
            found[name]["join_tasks"] = stage["tasks"]
            found[name]["rows"] = sample.table.num_rows
    for case in found.values():
        case["median_seconds"] = statistics.median(case["seconds"])
        case["median_join_seconds"] = statistics.median(case["join_seconds"])
    return found


@click.command(context_settings={"show_default": True})
@click.option("--rows", type=click.IntRange(min=1000), default=8_000_000, help="Of the facts.")
@click.option("--repeat", type=click.IntRange(min=1), default=3, help="Runs; the median counts.")
@json_option
@storage_option
def main(rows: int, repeat: int, json_path: Path | None, storage: Path) -> None:
    """Print what a hot key costs, and how many tasks read tiny partitions."""
    configure_logging(debug=False)
    divert_noise()
    storage.mkdir(parents=True, exist_ok=True)
    tiny: dict[str, object] = {"num_partitions": 1024}
    with tempfile.TemporaryDirectory(prefix="bench-", dir=storage) as root:
        catalog = make_tables(Path(root), rows)
        cases = [
            ("even", "even", {}, True),
            ("skewed", "skewed", {}, True),
            ("skewed, not adaptive", "skewed", {}, False),
            ("tiny partitions", "small", tiny, True),
        ]
        measured = measure(catalog, Path(root) / "storage", cases, repeat)
    for line in _lines(measured):
        click.echo(line)
    found = document(
        "skew",
        rows=rows,
        share_of_one_key=SHARE,
        aim_ratio=AIM_RATIO,
        ratio=_ratio(measured, "median_seconds"),
        join_ratio=_ratio(measured, "median_join_seconds"),
        cases=measured,
    )
    click.echo(f"\nWritten to {write_document(found, json_path)}")
    discard_log()


def _ratio(measured: dict[str, dict[str, Any]], of: str, case: str = "skewed") -> float:
    return round(float(measured[case][of]) / float(measured["even"][of]), 3)


def _lines(measured: dict[str, dict[str, Any]]) -> list[str]:
    lines = [f"{'case':24}{'query s':>9}{'x even':>8}{'join s':>9}{'x even':>8}{'join tasks':>12}"]
    for name, case in measured.items():
        ratios = [""] * 2
        if name.startswith("skewed"):
            ratios = [
                f"{_ratio(measured, of, name):.2f}"
                for of in ("median_seconds", "median_join_seconds")
            ]
        lines.append(
            f"{name:24}{case['median_seconds']:9.2f}{ratios[0]:>8}"
            f"{case['median_join_seconds']:9.2f}{ratios[1]:>8}{case['join_tasks']:12}"
        )
    ratio = _ratio(measured, "median_seconds")
    verdict = "within" if ratio <= AIM_RATIO else "above"
    lines += ["", f"One key in 80 % of the rows: {ratio:.2f} x, {verdict} the aim of {AIM_RATIO}."]
    return lines


if __name__ == "__main__":
    main()
