"""How long planning takes: `python -m benchmarks.planning`.

It plans the TPC-H queries over statistics of scale 10, generated joins of many relations, and texts
that are hostile to a planner (`hostile_queries.py`). It prints the best time of each, in ms, from
text to stage graph, and of the first two in the optimiser alone. The exit code is 1 if an aim is
missed. No data is read and no engine starts.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from benchmarks.hostile_queries import HOSTILE, hostile
from benchmarks.report import document, json_option, write_document
from stagecoach.planner.analysis.queries import build_logical
from stagecoach.planner.catalog import Catalog, ColumnStats, MappingCatalog, TableInfo, TableStats
from stagecoach.planner.estimates import Estimator
from stagecoach.planner.optimizer.context import RuleContext, first_free_id
from stagecoach.planner.optimizer.rules import optimize
from stagecoach.planner.options import PlannerOptions
from stagecoach.planner.plan.stages import StageGraph
from stagecoach.planner.planning import plan_query
from stagecoach.planner.syntax.parse import parse_query
from stagecoach.planner.types import BIGINT, Field
from tests.planner.tpch import sf10_catalog

ROOT = Path(__file__).resolve().parents[1]
AIM_TPCH_MS = 150.0
AIM_JOIN_MS = 1000.0
AIM_HOSTILE_MS = 5000.0
SHAPES = ("chain", "star", "cycle", "clique")


def many_joins(shape: str, count: int) -> tuple[str, Catalog]:
    """An inner join of `count` relations whose predicates form a chain, star, cycle or clique."""
    columns = (*(Field(f"k{i}", BIGINT) for i in range(count)), Field("v", BIGINT))
    tables = []
    for i in range(count):
        rows = 1000 * (1 + (i * 7919) % 97)
        stats = {f.name: ColumnStats(0, rows, 0, rows // (1 + i % 5) or 1, 8.0) for f in columns}
        tables.append(TableInfo(f"t{i}", columns, TableStats(rows, rows * 64, 1, stats)))
    links = {
        "chain": [(i, i + 1) for i in range(count - 1)],
        "star": [(0, i) for i in range(1, count)],
        "cycle": [(i, (i + 1) % count) for i in range(count)],
        "clique": [(i, j) for i in range(count) for j in range(i + 1, count)],
    }[shape]
    where = " AND ".join(f"t{i}.k{j} = t{j}.k{i}" for i, j in links)
    tables_text = ", ".join(f"t{i}" for i in range(count))
    return f"SELECT sum(t0.v) FROM {tables_text} WHERE {where}", MappingCatalog(tables)


def optimizer_time(sql: str, catalog: Catalog, repeat: int) -> float:
    """The best time of all rules over a query's logical plan, in ms."""

    def once() -> float:
        built = build_logical(parse_query(sql), catalog, {})
        estimator = Estimator({t.name: t for t in built.tables})
        context = RuleContext(PlannerOptions(), estimator, first_free_id(built.plan))
        start = time.perf_counter()
        optimize(built.plan, context)
        return time.perf_counter() - start

    return min(once() for _ in range(repeat)) * 1000


def _best(call: Callable[[], object], repeat: int) -> float:
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times) * 1000


def measure(name: str, sql: str, catalog: Catalog, aim: float, repeat: int) -> dict[str, Any]:
    """What planning one query takes, and whether that meets the aim."""
    whole = _best(lambda: plan_query(sql, catalog, name="query"), repeat)
    inner = optimizer_time(sql, catalog, repeat)
    return {
        "query": name,
        "optimize_ms": round(inner, 1),
        "plan_ms": round(whole, 1),
        "aim_ms": aim,
        "met": whole <= aim,
    }


def measure_hostile(name: str) -> dict[str, Any]:
    """What planning one hostile text takes, once, and whether that meets the aim."""
    shape = HOSTILE[name]
    sql, catalog = hostile(name, shape.size)
    graphs: list[StageGraph] = []
    whole = _best(lambda: graphs.append(plan_query(sql, catalog, name="query")), 1)
    return {
        "query": f"{shape.size:,} {name}",
        "stages": len(graphs[0].stages),
        "fallback_reason": graphs[0].fallback_reason,
        "plan_ms": round(whole, 1),
        "aim_ms": AIM_HOSTILE_MS,
        "met": whole <= AIM_HOSTILE_MS,
    }


@click.command(context_settings={"show_default": True})
@click.option("--repeat", type=click.IntRange(min=1), default=3, help="Runs; the best counts.")
@click.option("--relations", type=click.IntRange(min=2), default=20, help="Relations of a join.")
@json_option
def main(repeat: int, relations: int, json_path: Path | None) -> None:
    """Print how long it takes to plan TPC-H, joins of many relations, and hostile texts."""
    catalog = sf10_catalog()
    queries = sorted((ROOT / "pipelines" / "queries").glob("q[0-9][0-9].sql"))
    rows = [
        measure(q.stem, q.read_text(encoding="utf-8"), catalog, AIM_TPCH_MS, repeat)
        for q in queries
    ]
    for count in sorted({10, relations}):
        for shape in SHAPES:
            sql, tables = many_joins(shape, count)
            rows.append(measure(f"{shape} of {count}", sql, tables, AIM_JOIN_MS, repeat))
    for row in rows:
        mark = "" if row["met"] else "   MISSED"
        click.echo(
            f"{row['query']:>14}  optimise {row['optimize_ms']:8.1f} ms   "
            f"plan {row['plan_ms']:8.1f} ms   aim {row['aim_ms']:6.0f} ms{mark}"
        )
    worst = [measure_hostile(name) for name in HOSTILE]
    for row in worst:
        mark = "" if row["met"] else "   MISSED"
        click.echo(
            f"{row['query']:>28}  plan {row['plan_ms']:8.1f} ms   aim {row['aim_ms']:6.0f} ms   "
            f"{row['stages']} stages{mark}"
        )
    path = write_document(document("planning", queries=rows, hostile=worst), json_path)
    click.echo(f"\nWritten to {path}")
    if not all(row["met"] for row in (*rows, *worst)):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
