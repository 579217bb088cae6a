"""Texts that are short to write and were slow to plan: long lists, wide tables, many joins, CTEs
that double.

Each shape takes a size, so that tests can count how the work of planning grows with it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from stagecoach.planner.catalog import Catalog, ColumnStats, MappingCatalog, TableInfo, TableStats
from stagecoach.planner.types import BIGINT, Field

_ROWS = 1_000_000


@dataclass(frozen=True)
class Hostile:
    """A shape of text.

    Args:
        kind: What there are many of.
        size: How many of them the benchmark plans.
        text: The text for a size.
        joined: Whether each of its relations is a table of its own.
    """

    kind: Literal["list", "columns", "joins", "doubled"]
    size: int
    text: Callable[[int], str]
    joined: bool = False


def _table(name: str, columns: list[str], rows: int = _ROWS) -> TableInfo:
    stats = {c: ColumnStats(0, rows, 0, max(rows // 2, 1), 8.0) for c in columns}
    fields = tuple(Field(c, BIGINT) for c in columns)
    return TableInfo(name, fields, TableStats(rows, rows * 64, columns=stats))


def _each(count: int, text: str, between: str) -> str:
    return between.join(text.format(i=i, before=i - 1) for i in range(count))


def _doubled(step: str) -> Callable[[int], str]:
    def text(levels: int) -> str:
        ctes = ["c0 AS (SELECT a, b FROM t)"]
        ctes += [f"c{i} AS ({step.format(c=f'c{i - 1}')})" for i in range(1, levels + 1)]
        return f"WITH {', '.join(ctes)} SELECT * FROM c{levels}"

    return text


def _joins(on: str) -> Callable[[int], str]:
    return lambda n: (
        "SELECT sum(t0.v) AS s FROM t0"
        + "".join(f" JOIN t{i} ON {on.format(i=i, before=i - 1)}" for i in range(1, n))
    )


HOSTILE = {
    "values of IN": Hostile(
        "list", 50_000, lambda n: f"SELECT a FROM t WHERE a IN ({_each(n, '{i}', ', ')})"
    ),
    "terms of OR": Hostile(
        "list", 20_000, lambda n: f"SELECT a FROM t WHERE {_each(n, 'a = {i}', ' OR ')}"
    ),
    "terms of AND": Hostile(
        "list", 20_000, lambda n: f"SELECT a FROM t WHERE {_each(n, 'a <> {i}', ' AND ')}"
    ),
    # Each > once had the whole text searched for a < that it may close as a type.
    "comparisons": Hostile(
        "list", 20_000, lambda n: f"SELECT a FROM t WHERE {_each(n, 'a > {i}', ' OR ')}"
    ),
    "branches of CASE": Hostile(
        "list", 5_000, lambda n: f"SELECT CASE {_each(n, 'WHEN a = {i} THEN {i}', ' ')} END FROM t"
    ),
    "rows of VALUES": Hostile(
        "list", 10_000, lambda n: f"SELECT * FROM VALUES {_each(n, '({i}, {i})', ', ')} AS v(a, b)"
    ),
    "columns of *": Hostile("columns", 5_000, lambda n: "SELECT * FROM wide"),
    "columns of a join": Hostile(
        "columns", 5_000, lambda n: "SELECT * FROM wide x JOIN wide y ON x.c0 = y.c1"
    ),
    "computed columns": Hostile(
        "columns", 5_000, lambda n: f"SELECT {_each(n, 'c{i} + 1 AS d{i}', ', ')} FROM wide"
    ),
    "aggregates": Hostile(
        "columns",
        5_000,
        lambda n: f"SELECT c0, {_each(n, 'sum(c{i}) AS d{i}', ', ')} FROM wide GROUP BY c0",
    ),
    "group keys": Hostile(
        "columns",
        5_000,
        lambda n: (
            f"SELECT {_each(n, 'c{i}', ', ')}, count(*) FROM wide GROUP BY {_each(n, 'c{i}', ', ')}"
        ),
    ),
    "joins, a chain": Hostile("joins", 300, _joins("t{before}.k = t{i}.l"), joined=True),
    "joins on one key": Hostile("joins", 300, _joins("t0.k = t{i}.k"), joined=True),
    "joins by commas": Hostile(
        "joins",
        300,
        lambda n: (
            f"SELECT sum(t0.v) AS s FROM {_each(n, 't{i}', ', ')} WHERE t0.k > 0"
            + "".join(f" AND t{i - 1}.k = t{i}.l" for i in range(1, n))
        ),
        joined=True,
    ),
    "doublings by a join": Hostile(
        "doubled", 20, _doubled("SELECT x.a, y.b FROM {c} x JOIN {c} y ON x.a = y.b")
    ),
    "doublings by UNION ALL": Hostile(
        "doubled", 20, _doubled("SELECT * FROM {c} UNION ALL SELECT * FROM {c}")
    ),
    "doublings by groups": Hostile(
        "doubled",
        20,
        _doubled("SELECT x.a, count(*) AS b FROM {c} x JOIN {c} y ON x.a = y.b GROUP BY x.a"),
    ),
    "doublings by IN": Hostile(
        "doubled", 20, _doubled("SELECT a, b FROM {c} WHERE a IN (SELECT b FROM {c})")
    ),
    "doublings by a scalar": Hostile(
        "doubled", 20, _doubled("SELECT a + (SELECT max(b) FROM {c}) AS a, b FROM {c}")
    ),
}


def hostile(name: str, size: int) -> tuple[str, Catalog]:
    """The text of a shape, and the catalog that it reads."""
    shape = HOSTILE[name]
    tables = [_table("t", ["a", "b"])]
    if shape.kind == "columns":
        tables.append(_table("wide", [f"c{i}" for i in range(size)]))
    if shape.joined:
        sizes = (1000 * (1 + (i * 7919) % 97) for i in range(size))
        tables += [_table(f"t{i}", ["k", "l", "v"], rows) for i, rows in enumerate(sizes)]
    return shape.text(size), MappingCatalog(tables)
