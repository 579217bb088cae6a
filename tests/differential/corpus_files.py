"""The query corpus: one `.sql` file a thing to test, in folders by subject.

Files are `corpus/<subject>/<name>.sql`. The first comment line says what the
file tests; `-- rounded: 1, 2` names columns of floats whose last digits depend on the order of the
rows; `-- on: spark` or `-- on: some` says that the whole query, or some of its stages, run on Spark,
be it that DuckDB raises for the values of the tables and Spark runs the stage again.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent / "corpus"
NATIVE, PARTLY, FALLBACK = "duckdb", "some", "spark"


@dataclass(frozen=True)
class CorpusQuery:
    """One file of the corpus.

    Args:
        name: `<subject>/<name>`.
        title: What it tests.
        sql: The text.
        engine: Where it runs: `duckdb`, `some` stages on Spark, or wholly on `spark`.
        rounded: Positions of columns that are compared to rounding.
    """

    name: str
    title: str
    sql: str
    engine: str
    rounded: tuple[int, ...]


def subjects() -> list[str]:
    """The folders, sorted."""
    return sorted(p.name for p in FOLDER.iterdir() if p.is_dir())


def queries(subject: str) -> list[CorpusQuery]:
    """All files of a folder, sorted by name."""
    return [_read(path) for path in sorted((FOLDER / subject).glob("*.sql"))]


def _read(path: Path) -> CorpusQuery:
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines()
    if not lines or not lines[0].startswith("-- "):
        raise ValueError(f"{path}: the first line must be a comment that says what is tested")
    keys = dict(re.findall(r"^-- (on|rounded): (.*)$", text, re.M))
    rounded = tuple(int(n) for n in keys.get("rounded", "").split(",") if n.strip())
    engine = keys.get("on", NATIVE)
    if engine not in (NATIVE, PARTLY, FALLBACK):
        raise ValueError(f"{path}: '-- on:' is spark or some, not {engine}")
    body = "\n".join(line for line in lines if not line.startswith("-- ")).strip()
    name = f"{path.parent.name}/{path.stem}"
    return CorpusQuery(name, lines[0].removeprefix("-- "), body, engine, rounded)
