"""Many faults one after another, with a log from which a campaign that was stopped goes on."""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from benchmarks.stored_faults.trial import BAD, HOWS, KINDS, Ending, Fault, meet
from benchmarks.stored_faults.warehouse import build_warehouse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def faults(count: int, seed: int, spark_every: int) -> Iterator[Fault]:
    """Yield the faults of a campaign: every kind in turn, the same for the same seed."""
    for number in range(count):
        dice = Random(f"{seed} {number}")
        yield Fault(
            number=number,
            kind=KINDS[number % len(KINDS)],
            how=dice.choice(HOWS),
            spark=bool(spark_every) and number % spark_every == spark_every - 1,
            recover=dice.random() < 0.5,
        )


def run_campaign(
    folder: Path,
    count: int,
    seed: int,
    *,
    spark: Callable[[], SparkSession] | None = None,
    spark_every: int = 0,
    tell: Callable[[str], None] = lambda _: None,
) -> list[Ending]:
    """Meet faults and return how each of them ended.

    Args:
        folder: Where everything is kept, the log too; faults that are in it are not met again.
        count: How many faults.
        seed: The same seed gives the same faults.
        spark: Gives a session for the faults that Spark meets.
        spark_every: Every how many faults Spark meets one; 0 for never.
        tell: Told of endings that must not be.
    """
    done = {ending.fault.number: ending for ending in _read_log(folder / "log.jsonl", seed)}
    warehouse = build_warehouse(folder / f"warehouse-{len(done)}")
    expected = warehouse.answers()
    for fault in faults(count, seed, spark_every if spark else 0):
        if fault.number in done:
            continue
        warehouse.spark = spark() if spark is not None and fault.spark else None
        dice = Random(f"{seed} {fault.number} bytes")
        ending = meet(warehouse, fault, dice, expected)
        done[fault.number] = ending
        with (folder / "log.jsonl").open("a", encoding="utf-8") as log:
            log.write(json.dumps({"seed": seed, **dataclasses.asdict(ending)}) + "\n")
        if ending.ending in BAD:
            tell(f"{fault}: {ending.ending}: {ending.note}")
    return [done[number] for number in sorted(done) if number < count]


def _read_log(path: Path, seed: int) -> Iterator[Ending]:
    if not path.exists():
        return
    for line in path.read_text(encoding="utf-8").splitlines():
        values = json.loads(line)
        if values.pop("seed") == seed:
            yield Ending(Fault(**values["fault"]), values["ending"], values["note"])


def summary(endings: list[Ending], seed: int) -> dict[str, Any]:
    """What the results file holds of a campaign."""
    by_kind: dict[str, Counter[str]] = {}
    for ending in endings:
        by_kind.setdefault(ending.fault.kind, Counter())[ending.ending] += 1
    return {
        "seed": seed,
        "faults": len(endings),
        "met_by_spark": sum(ending.fault.spark for ending in endings),
        "by_damage": dict(sorted(Counter(ending.fault.how for ending in endings).items())),
        "endings": dict(sorted(Counter(ending.ending for ending in endings).items())),
        "bad": {name: sum(e.ending == name for e in endings) for name in BAD},
        "by_kind": {kind: dict(sorted(counts.items())) for kind, counts in by_kind.items()},
    }
