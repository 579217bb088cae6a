"""Measurements → a table for people and JSON for the next comparison."""

from __future__ import annotations

import datetime
import importlib.metadata
import json
import math
import os
import platform
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import click

from benchmarks.contenders import Sample
from benchmarks.delayed import Traffic
from benchmarks.timing import PARTS, Breakdown

_F = TypeVar("_F", bound=Callable[..., Any])
_PACKAGES = ("stagecoach", "pyspark", "duckdb", "dagster", "pyarrow", "sqlglot")


@dataclass
class Measurement:
    """What was seen of one query.

    Args:
        query: Its name.
        samples: By contender; the rows of a sample are not kept.
        problems: Results that differ and runs that failed.
    """

    query: str
    samples: dict[str, list[Sample]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    rows: int = 0

    def best(self, contender: str) -> Sample | None:
        """The fastest sample."""
        return min(self.samples.get(contender, ()), key=lambda s: s.seconds, default=None)

    def seconds(self, contender: str) -> float | None:
        """Its time."""
        best = self.best(contender)
        return best.seconds if best else None

    def ratio(self, contender: str, other: str) -> float | None:
        """Time of one divided by that of the other."""
        a, b = self.seconds(contender), self.seconds(other)
        return a / b if a is not None and b else None

    @property
    def breakdown(self) -> Breakdown | None:
        """Where the fastest Stagecoach run spent its time."""
        best = self.best("stagecoach")
        return best.breakdown if best else None

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        best = self.best("stagecoach")
        return {
            "query": self.query,
            "rows": self.rows,
            "seconds": {k: [round(s.seconds, 3) for s in v] for k, v in self.samples.items()},
            "ratio_spark": _rounded(self.ratio("stagecoach", "spark")),
            "ratio_duckdb": _rounded(self.ratio("stagecoach", "duckdb")),
            "breakdown": self.breakdown.to_dict() if self.breakdown else None,
            "stages": list(best.stages) if best else [],
            "traffic": best.traffic._asdict() if best and best.traffic else None,
            "problems": self.problems,
        }


def geometric_mean(values: Iterable[float | None]) -> float | None:
    """The geometric mean of what is there; None for nothing."""
    found = [value for value in values if value]
    return math.exp(sum(map(math.log, found)) / len(found)) if found else None


def ratios(measurements: Sequence[Measurement]) -> dict[str, float | None]:
    """Geometric means of Stagecoach's time divided by another's."""
    return {
        other: geometric_mean(m.ratio("stagecoach", other) for m in measurements)
        for other in ("spark", "duckdb")
    }


def render(measurements: Sequence[Measurement]) -> str:
    """Two tables: the times side by side, and where Stagecoach's go."""
    header = ["query", "stagecoach", "spark", "duckdb", "÷ spark", "÷ duckdb", "rows", "stages"]
    lines = [header]
    for m in measurements:
        best = m.best("stagecoach")
        lines.append(
            [
                m.query,
                *(_text(m.seconds(name)) for name in ("stagecoach", "spark", "duckdb")),
                _text(m.ratio("stagecoach", "spark")),
                _text(m.ratio("stagecoach", "duckdb")),
                f"{m.rows:,}",
                _engines(best) if best else "",
            ]
        )
    means = ratios(measurements)
    total = ["geomean", "", "", "", _text(means["spark"]), _text(means["duckdb"]), "", ""]
    seconds = [
        "sum",
        *(_text(sum(m.seconds(n) or 0.0 for m in measurements)) for n in header[1:4]),
        *[""] * 4,
    ]
    parts = [["query", *PARTS, "total"]]
    known = [(m.query, m.breakdown) for m in measurements if m.breakdown]
    parts += [[query, *_parts(found)] for query, found in known]
    everything = sum((found for _, found in known), Breakdown())
    text = "Seconds, the least of all repeats.\n" + table_text([*lines, seconds, total])
    if known:
        text += "\n\nWhere Stagecoach's seconds go, along the critical path.\n"
        text += table_text([*parts, ["sum", *_parts(everything)]])
        share = [f"{getattr(everything, p) / everything.total:.0%}" for p in PARTS]
        text += "\n" + table_text([["share ", *share, "100%"]], widths=_widths(parts))
    moved = [(m.query, best.traffic) for m in measurements if (best := m.best("stagecoach"))]
    rows = [[query, *_traffic(found)] for query, found in moved if found]
    if rows:
        text += "\n\nWhat Stagecoach asks the store for.\n"
        text += table_text([["query", "requests", "MB received", "MB sent"], *rows])
    return text


def to_json(
    measurements: Sequence[Measurement], *, scale_factor: float, settings: dict[str, Any]
) -> str:
    """Everything, with what it was measured on."""
    means = ratios(measurements)
    document = {
        "benchmark": "tpch",
        "scale_factor": scale_factor,
        "measured_at": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "machine": machine(),
        "settings": settings,
        "geomean_ratio_spark": _rounded(means["spark"]),
        "geomean_ratio_duckdb": _rounded(means["duckdb"]),
        "queries": [m.to_dict() for m in measurements],
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def machine() -> dict[str, Any]:
    """What it was measured on."""
    return {
        "cores": os.cpu_count(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "platform": platform.platform(),
        "python": platform.python_version(),
        "packages": {name: importlib.metadata.version(name) for name in _PACKAGES},
    }


def json_option(command: _F) -> _F:
    """`--json`: another file than `results/NAME.json`."""
    return click.option("--json", "json_path", type=click.Path(dir_okay=False, path_type=Path))(
        command
    )


def storage_option(command: _F) -> _F:
    """`--storage`: where there is room."""
    return click.option(
        "--storage",
        type=click.Path(file_okay=False, path_type=Path),
        default=Path(".stagecoach"),
        help="Local folder under which tables and shuffles are written and removed.",
    )(command)


def document(name: str, **values: Any) -> dict[str, Any]:
    """A report: what was measured, on what, and how busy that was just now."""
    return {"benchmark": name, "machine": machine(), "load": os.getloadavg()[0], **values}


def write_document(found: Mapping[str, Any], path: Path | None) -> Path:
    """Write a report to a file, or among the results that are committed; return where."""
    path = path or Path(__file__).resolve().parent / "results" / f"{found['benchmark']}.json"
    write(path, json.dumps(found, indent=2) + "\n")
    return path


def write(path: Path, text: str) -> None:
    """Write a report."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def _engines(sample: Sample) -> str:
    names = [str(stage["engine"]) for stage in sample.stages]
    spark = names.count("spark")
    return f"{len(names)}" if not spark else f"{len(names)}, {spark} on spark"


def _traffic(found: Traffic) -> list[str]:
    megabytes = (f"{num / 1e6:.1f}" for num in (found.received_bytes, found.sent_bytes))
    return [f"{found.requests:,}", *megabytes]


def _parts(found: Breakdown) -> list[str]:
    return [*(f"{getattr(found, part):.2f}" for part in PARTS), f"{found.total:.2f}"]


def _text(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


def _widths(rows: Sequence[Sequence[str]]) -> list[int]:
    return [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]


def table_text(rows: Sequence[Sequence[str]], widths: Sequence[int] | None = None) -> str:
    """Rows of cells in columns; the first is the header, the first column is text."""
    sizes = widths or _widths(rows)
    return "\n".join(
        "  ".join(
            f"{cell:<{size}}" if i == 0 else f"{cell:>{size}}"
            for i, (cell, size) in enumerate(zip(row, sizes, strict=True))
        ).rstrip()
        for row in rows
    )
