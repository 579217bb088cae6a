"""Faults by number, a log of how they ended, and a table of it."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from random import Random
from typing import Any

from benchmarks.cluster_faults.scene import Kind
from benchmarks.cluster_faults.testbed import Testbed
from benchmarks.cluster_faults.trial import Trial
from benchmarks.faults.trial import BAD as BAD_OF_ONE_MACHINE
from benchmarks.faults.trial import COLUMNS as COLUMNS_OF_ONE_MACHINE
from benchmarks.faults.trial import Tally
from benchmarks.resuming_log import logged_entries

Entry = Mapping[str, Any]

_MORE = ("hang", "computed again")
COLUMNS = (*(c for c in COLUMNS_OF_ONE_MACHINE if c != "recovered"), *_MORE)
BAD = (*BAD_OF_ONE_MACHINE, *_MORE)


def kind_of(seed: int, number: int, kinds: Sequence[Kind]) -> Kind:
    """The kind of a fault: all kinds come in turns, each turn in an order of its own."""
    turn = list(kinds)
    Random(f"{seed}/{number // len(kinds)}").shuffle(turn)
    return turn[number % len(kinds)]


def run_campaign(
    bed: Testbed,
    log: Path,
    *,
    faults: int,
    seed: int,
    kinds: Sequence[Kind],
    say: Callable[[str], None],
) -> list[Entry]:
    """Let so many faults be met, those in the log included; return all entries.

    Args:
        bed: The cluster.
        log: Gets a line for each fault.
        faults: How many.
        seed: Of the dice.
        kinds: Of faults.
        say: Told of each fault.
    """
    entries: list[Entry] = [*logged_entries(log)]
    number = max((entry["number"] for entry in entries), default=-1) + 1
    with log.open("a", encoding="utf-8") as output:
        while sum(is_met(entry) for entry in entries) < faults:
            kind = kind_of(seed, number, kinds)
            started = time.monotonic()
            verdict = Trial(bed, kind, Random(f"{seed}/{number}/{kind.name}")).play()
            took = round(time.monotonic() - started, 1)
            entry = {"number": number, "kind": kind.name, "took": took, **asdict(verdict)}
            output.write(json.dumps(entry) + "\n")
            output.flush()
            entries.append(entry)
            say(f"{number} {kind.name}: {', '.join(verdict.endings)}; {took} s {verdict.error}")
            number += 1
    return entries


def is_met(entry: Entry) -> bool:
    """Whether the fault of an entry found its run."""
    return "not met" not in entry["endings"]


def table(entries: Sequence[Entry]) -> str:
    """Kinds of faults by endings, with the median and the worst time to the end."""
    tally = Tally(columns=COLUMNS, bad=BAD)
    for entry in entries:
        for ending in entry["endings"]:
            tally.add(entry["kind"], ending, "; ".join(entry["notes"]))
    lines = tally.table().splitlines()
    seconds: dict[str, list[float]] = {}
    for entry in filter(is_met, entries):
        spent = entry["seconds"] + entry["more_seconds"]
        seconds.setdefault(entry["kind"], []).append(spent)
        seconds.setdefault("all", []).append(spent)
    found = [f"{lines[0]}  median s  worst s"]
    for name, line in zip([*tally.counts, "all"], lines[1:], strict=True):
        spent_all = seconds.get(name, [0.0])
        found.append(f"{line}  {statistics.median(spent_all):8.1f}  {max(spent_all):7.1f}")
    return "\n".join([*found, *tally.notes])


def bad_endings(entries: Sequence[Entry]) -> int:
    """How many faults ended as none may."""
    return sum(any(ending in BAD for ending in entry["endings"]) for entry in entries)
