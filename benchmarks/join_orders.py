"""Our join orders beside random ones: `python -m benchmarks.join_orders --scale-factor 3`.

Plans each query with up to so many different random orders of its joins (all the predicates, no
cross product where one can be avoided), runs each once, and compares its time with that of the
order that the planner chooses. The fastest random ones run again, in turns with ours: the best of
many single runs is lucky. Where ours loses, an estimate is wrong.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from unittest import mock

import click

from benchmarks.__main__ import WARM_UP, bench_session, queries_of
from benchmarks.contenders import Sample, Stagecoach
from benchmarks.report import (
    document,
    geometric_mean,
    json_option,
    storage_option,
    table_text,
    write_document,
)
from stagecoach.arguments.options import read_settings
from stagecoach.infra.spark.java import ensure_java
from stagecoach.planner.optimizer.join_graph import JoinGraph, JoinTree
from stagecoach.planner.optimizer.join_order import best_order
from stagecoach.terminal.streams import configure_logging, discard_log, divert_noise
from stagecoach.tpch import generate

_CHOICE = "stagecoach.planner.optimizer.reorder_joins.best_order"
_TRIES = 5  # draws for each order that is still wanted, before few orders are all there are


def random_order(graph: JoinGraph, rng: random.Random) -> JoinTree:
    """A tree of all leaves: again and again, any two trees that predicates connect are joined."""
    trees = list(graph.leaves)
    while len(trees) > 1:
        pairs = list(combinations(trees, 2))
        rng.shuffle(pairs)
        # A sort is stable, so the connected pairs come first and each kind in its random order.
        pairs.sort(key=lambda pair: not graph.connected(pair[0].mask, pair[1].mask))
        joined = next(filter(None, (graph.joined(a, b) for a, b in pairs)))
        trees = [joined, *(tree for tree in trees if not tree.mask & joined.mask)]
    return trees[0]


def order_text(tree: JoinTree) -> str:
    """Which leaves are joined when, by their positions."""
    if tree.join is None:
        return str(tree.mask.bit_length() - 1)
    left, right, kind, _ = tree.join
    link = {"inner": " ", "cross": " x "}.get(kind, f" {kind} ")
    return f"({order_text(left)}{link}{order_text(right)})"


@contextmanager
def ordered(rng: random.Random | None) -> Iterator[list[str]]:
    """Plan with random join orders, or with None in the planner's own; yield the chosen ones."""
    chosen: list[str] = []

    def choose(graph: JoinGraph) -> JoinTree:
        tree = best_order(graph) if rng is None else random_order(graph, rng)
        if len(graph.leaves) > 2:
            chosen.append(order_text(tree))
        return tree

    with mock.patch(_CHOICE, choose):
        yield chosen


@dataclass(frozen=True)
class Compared:
    """The orders of one query.

    Args:
        query: Its name.
        orders: Different random ones that ran.
        ours: Our order, leaves by position.
        best: The fastest other one.
        ours_seconds: Best time of ours.
        best_seconds: Best time of the fastest random order.
        median_seconds: Of all random orders, one run each.
        worst_seconds: Of all random orders.
    """

    query: str
    orders: int
    ours: str
    best: str
    ours_seconds: float
    best_seconds: float
    median_seconds: float
    worst_seconds: float

    @property
    def ratio(self) -> float:
        """Our time divided by that of the best order, ours among them."""
        return self.ours_seconds / min(self.ours_seconds, self.best_seconds)


def compare(
    ours: Stagecoach, name: str, sql: str, orders: int, repeat: int, seed: int
) -> Compared | None:
    """Time a query with the planner's join order and with random ones.

    Returns:
        None if the query has only one join order.
    """
    own, drawn = _drawn(ours, name, sql, orders, seed)
    if not drawn:
        return None

    def run(key: str) -> float:
        rng = None if key == own else random.Random(drawn[key])
        with ordered(rng):
            sample: Sample = ours.run(name, sql)
        ours.clean_up()
        return sample.seconds

    run(own)
    seconds = {key: run(key) for key in drawn}
    ranked = sorted(seconds, key=seconds.__getitem__)
    finalists: dict[str, list[float]] = {key: [] for key in (*ranked[:3], own)}
    for _ in range(repeat):
        for key, times in finalists.items():
            times.append(run(key))
    best = min(ranked[:3], key=lambda key: min(finalists[key]))
    return Compared(
        query=name,
        orders=len(drawn),
        ours=own,
        best=best,
        ours_seconds=min(finalists[own]),
        best_seconds=min(finalists[best]),
        median_seconds=seconds[ranked[len(ranked) // 2]],
        worst_seconds=seconds[ranked[-1]],
    )


def _drawn(
    ours: Stagecoach, name: str, sql: str, orders: int, seed: int
) -> tuple[str, dict[str, int]]:
    """Our order, and the seeds of different other ones, by order."""
    with ordered(None) as chosen:
        ours.session.plan(sql, name=name)
    own = "; ".join(chosen)
    drawn: dict[str, int] = {}
    for number in range(seed, seed + orders * _TRIES):
        with ordered(random.Random(number)) as chosen:
            ours.session.plan(sql, name=name)
        key = "; ".join(chosen)
        if key != own:
            drawn.setdefault(key, number)
        if len(drawn) == orders:
            break
    return own, drawn


@click.command(context_settings={"max_content_width": 100, "show_default": True})
@click.option("--scale-factor", type=click.FloatRange(min=0, min_open=True), default=3.0)
@click.option("--queries", "names", metavar="q01,q03,…", help="Which queries.  [default: all 22]")
@click.option("--orders", type=click.IntRange(min=1), default=200, help="Random orders a query.")
@click.option("--repeat", type=click.IntRange(min=1), default=3, help="Runs of the best ones.")
@click.option("--seed", default=1)
@storage_option
@json_option
def main(
    scale_factor: float,
    names: str | None,
    orders: int,
    repeat: int,
    seed: int,
    storage: Path,
    json_path: Path | None,
) -> None:
    """Compare the planner's join orders with random ones, by measured time."""
    queries = queries_of(names)
    folder = Path(f"data/tpch-sf{scale_factor:g}").resolve()
    generate(folder, scale_factor)
    ensure_java()
    configure_logging(debug=False)
    divert_noise()
    found: list[Compared] = []
    with bench_session(folder, storage, read_settings(()), s3=False) as place:
        ours = Stagecoach(place.session)
        for _ in range(2):
            ours.run("warm_up", WARM_UP)
        for name, sql in queries:
            compared = compare(ours, name, sql, orders, repeat, seed)
            if compared is None:
                continue
            found.append(compared)
            click.echo(f"{name}: {compared.ratio:.2f} of {compared.orders} orders", err=True)
    path = write_document(
        document(
            "join_orders",
            scale_factor=scale_factor,
            seed=seed,
            queries={c.query: vars(c) | {"ratio": round(c.ratio, 3)} for c in found},
        ),
        json_path,
    )
    click.echo(_table(found))
    click.echo(f"Written to {path}")
    discard_log()
    if not found:
        sys.exit("no query has a choice of join orders")


def _table(found: Sequence[Compared]) -> str:
    rows = [["query", "orders", "ours, s", "best", "median", "worst", "ours ÷ best", "best order"]]
    for one in found:
        times = (one.ours_seconds, one.best_seconds, one.median_seconds, one.worst_seconds)
        order = "ours" if one.ratio == 1.0 else f"{one.best}, not {one.ours}"
        rows.append(
            [one.query, str(one.orders), *(f"{t:.2f}" for t in times), f"{one.ratio:.2f}", order]
        )
    mean = geometric_mean(one.ratio for one in found)
    return f"{table_text(rows)}\n\ngeometric mean of ours ÷ best: {mean:.3f}"


if __name__ == "__main__":
    main()
