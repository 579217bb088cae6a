"""What a stage costs that does nothing: `python -m benchmarks.overhead`.

A chain of stages over one row, in a warm session: what is left is Dagster (steps, events), Spark
(one job of one task) and storage (fingerprint, manifest, pointer). Chains of different length give
the cost of one more stage, apart from what a run costs once. The aim is 0.04 s per stage.
"""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path
from typing import Any

import click
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.contenders import Sample, Stagecoach
from benchmarks.report import document, json_option, storage_option, write_document
from benchmarks.timing import PARTS, Breakdown
from stagecoach.api.session import connect
from stagecoach.terminal.streams import configure_logging, discard_log, divert_noise

AIM_SECONDS = 0.04
_OPTIONS: dict[str, object] = {
    "force_distribution": True,
    "num_partitions": 2,
    "broadcast_bytes": 0,
}
# Where the driver waits for others: the part of a stage that is overhead.
_OVERHEAD = ("spark", "storage", "dagster")


def chain(length: int) -> str:
    """A query whose plan is a chain of about so many stages: each GROUP BY has another key."""
    sql = "SELECT k, v FROM one_row"
    for level in range(length - 1):
        sql = f"SELECT k + v AS k, sum(v) AS v FROM ({sql}) AS t{level} GROUP BY k + v"
    return sql


@click.command(context_settings={"show_default": True})
@click.option("--lengths", default="1,3,6", help="Chain lengths.")
@click.option("--repeat", type=click.IntRange(min=1), default=5, help="Runs; the median counts.")
@json_option
@storage_option
def main(lengths: str, repeat: int, json_path: Path | None, storage: Path) -> None:
    """Print what Dagster, Spark and storage cost per stage in a warm session."""
    configure_logging(debug=False)
    divert_noise()
    storage.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="bench-", dir=storage) as root:
        catalog = _one_row(Path(root))
        with connect(catalog, Path(root) / "storage", options=_OPTIONS) as session:
            runner = Stagecoach(session)
            # Until the workers of all cores have run something.
            for _ in range(3):
                runner.run("warm_up", chain(3))
            measured = [_measure(runner, int(length), repeat) for length in lengths.split(",")]
    for line in _lines(measured):
        click.echo(line)
    path = write_document(document("overhead", chains=measured), json_path)
    click.echo(f"\nWritten to {path}")
    discard_log()


def _one_row(folder: Path) -> Path:
    table = pa.table({"k": pa.array([1], pa.int64()), "v": pa.array([1], pa.int64())})
    (folder / "one_row").mkdir()
    pq.write_table(table, folder / "one_row" / "part.parquet")
    catalog = folder / "catalog.yaml"
    catalog.write_text(
        f"tables:\n  one_row:\n    location: {folder.resolve()}/one_row\n    format: parquet\n",
        encoding="utf-8",
    )
    return catalog


def _measure(runner: Stagecoach, length: int, repeat: int) -> dict[str, Any]:
    samples: list[Sample] = [runner.run("chain", chain(length)) for _ in range(repeat)]
    stages = len(samples[0].stages)
    parts = [sample.breakdown or Breakdown() for sample in samples]
    middle = {name: statistics.median(getattr(p, name) for p in parts) for name in PARTS}
    return {
        "length": length,
        "stages": stages,
        "seconds": [round(sample.seconds, 4) for sample in samples],
        "median_seconds": statistics.median(s.seconds for s in samples),
        "median": {name: round(value, 4) for name, value in middle.items()},
        "overhead_per_stage": sum(middle[name] for name in _OVERHEAD) / stages,
    }


def _lines(measured: list[dict[str, Any]]) -> list[str]:
    lines = ["Seconds of a chain of stages over one row, warm session (medians).", ""]
    columns = ("wall", "tasks", "spark", "storage", "dagster", "plan", "result")
    lines.append("stages" + "".join(f"{name:>9}" for name in columns))
    for row in measured:
        middle = row["median"]
        values = {
            **middle,
            "wall": row["median_seconds"],
            "tasks": middle["compute"] + middle["read"] + middle["write"],
        }
        lines.append(f"{row['stages']:>6}" + "".join(f"{values[name]:>9.3f}" for name in columns))
    first, last = measured[0], measured[-1]
    more = last["stages"] - first["stages"]
    if more > 0:
        each = {name: (last["median"][name] - first["median"][name]) / more for name in _OVERHEAD}
        total = sum(each.values())
        split = ", ".join(f"{name} {value:.3f}" for name, value in each.items())
        verdict = "within" if total <= AIM_SECONDS else "above"
        lines += [
            "",
            f"One more stage costs {total:.3f} s ({split}): {verdict} the aim of {AIM_SECONDS} s.",
        ]
    return lines


if __name__ == "__main__":
    main()
