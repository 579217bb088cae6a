"""`python -m benchmarks.stage_costs`: see the package."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import click

from benchmarks.report import document, json_option, write_document
from benchmarks.stage_costs.fit import MODELS, Fit, fit
from benchmarks.stage_costs.measure import Shuffle, bench
from stagecoach.terminal.streams import configure_logging, discard_log, divert_noise


@click.command(context_settings={"show_default": True})
@click.option("--tasks", default="4,8,16,32", help="Numbers of map tasks.")
@click.option("--partitions", default="4,8,16,32", help="Numbers of partitions.")
@json_option
def main(tasks: str, partitions: str, json_path: Path | None) -> None:
    """Measure shuffles of each number of tasks and partitions on S3, and fit the model."""
    configure_logging(debug=False)
    divert_noise()
    points = [(int(m), int(n)) for m in tasks.split(",") for n in partitions.split(",")]
    found: list[Shuffle] = []
    with (
        tempfile.TemporaryDirectory(prefix="stage-costs-") as folder,
        bench(Path(folder), points) as server,
    ):
        for point in points:
            found.append(server.shuffle(*point))
            click.echo(f"{found[-1].to_dict()}")
    fits = [fit(name, found) for name in MODELS]
    for line in _lines(fits):
        click.echo(line)
    for each in fits:
        click.echo("\n" + _chart(each, found))
    path = write_document(
        document(
            "stage_costs", points=[s.to_dict() for s in found], fits=[asdict(f) for f in fits]
        ),
        json_path,
    )
    click.echo(f"\nWritten to {path}")
    discard_log()


def _lines(fits: Sequence[Fit]) -> list[str]:
    """The table of `docs/scale.md`."""
    lines = ["", "| what | base | each | largest deviation |", "|---|---|---|---|"]
    for f in fits:
        each = ", ".join(f"{value:.2f} a {term}" for term, value in f.each.items())
        lines.append(f"| {_words(f.name)} | {f.base:.0f} | {each} | {f.worst:.1%} |")
    return lines


def _words(name: str) -> str:
    return name.replace("_", " ")


def _chart(line: Fit, shuffles: Sequence[Shuffle]) -> str:
    """Points as bars and the fit as a line, as a chart of mermaid."""
    points = sorted(shuffles, key=lambda s: (line.at(s), s.tasks))
    name = _words(line.name)
    labels = ", ".join(f'"{s.tasks}×{s.partitions}"' for s in points)
    return "\n".join(
        (
            "```mermaid",
            "xychart-beta",
            f'  title "{name}, by map tasks × partitions: measured (bars) and fitted (line)"',
            f"  x-axis [{labels}]",
            f'  y-axis "{name}"',
            f"  bar [{', '.join(str(getattr(s, line.name)) for s in points)}]",
            f"  line [{', '.join(f'{line.at(s):.0f}' for s in points)}]",
            "```",
        )
    )


if __name__ == "__main__":
    main()
