"""Appends, compactions, gc and readers at once: `python -m benchmarks.chunk_stress --seconds 120`.

It works on a table in a temporary folder, and prints what each process did and whether a reader
ever saw a row too many, too few, or half of an append. Writers are killed at random moments and
start again. With `--queries` rows are also read through Stagecoach's own queries.

What makes a snapshot checkable: append `n` of a writer gives all of its `HOT` rows the value `n`,
in two chunks, adds a row `n` of its own, and marks row `n - KEPT` as deleted. So of each writer a
snapshot holds hot rows of one value `n`, the rows `n - KEPT + 1` to `n`, and `n` never falls.
"""

from __future__ import annotations

import json
import multiprocessing
import random
import signal
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import click
import pyarrow as pa
import pyarrow.parquet as pq

from stagecoach.infra.catalog.catalog import FileCatalog, load_catalog
from stagecoach.infra.formats.deduplicated.compaction import compact
from stagecoach.infra.formats.deduplicated.key_order import latest_rows
from stagecoach.infra.formats.deduplicated.operations import ChunkOperations
from stagecoach.infra.formats.deduplicated.table_format import chunk_table
from stagecoach.infra.formats.snapshot import TableSnapshot, load_or_take
from stagecoach.infra.storage.local_store import LocalStore
from stagecoach.infra.storage.object_store import StorageOptions
from stagecoach.infra.upkeep.table_gc import collect_table_garbage
from stagecoach.planner.formats.deduplicated.chunk import DedupState

HOT = 20
KEPT = 5
_CATALOG = """
tables:
  events:
    kind: deduplicated
    location: events
    primary_key: [writer, kind, t]
    time_column: t
    delete_column: gone
"""
_SCHEMA = pa.schema(
    [
        ("writer", pa.int32()),
        ("kind", pa.string()),
        ("t", pa.int64()),
        ("value", pa.int64()),
        ("gone", pa.bool_()),
    ]
)
_SQL = "SELECT writer, kind, t, value FROM events"
# Long enough for a reader between the manifest and its own snapshot, short enough to matter.
_GC_AGE = timedelta(seconds=15)
# So that processes begin at once. Not this module: where it is __main__, each child runs it anew.
# And pandas, which pyarrow imports with the first rows that it makes of objects.
_PRELOADED = [
    "stagecoach.infra.catalog.catalog",
    "stagecoach.infra.formats.snapshot",
    "stagecoach.infra.formats.deduplicated.compaction",
    "stagecoach.infra.storage.local_store",
    "pandas",
]


@dataclass
class Report:
    """What came of it.

    Attributes:
        seconds: How long it ran.
        counts: Work done, by kind of process.
        problems: What was wrong with a snapshot; empty if nothing ever was.
        final: Appends of each writer that the table holds in the end.
    """

    seconds: float
    counts: dict[str, int] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    final: dict[int, int] = field(default_factory=dict)


def rows_of(writer: int, number: int) -> list[pa.Table]:
    """The two tables of one append."""
    hot = [(writer, "hot", t, number, None) for t in range(HOT)]
    row = (writer, "row", number, number, None)
    marked = [(writer, "row", number - KEPT, None, True)] if number > KEPT else []
    halves = ([*hot[: HOT // 2], row], [*hot[HOT // 2 :], *marked])
    return [
        pa.Table.from_pylist([dict(zip(_SCHEMA.names, r, strict=True)) for r in half], _SCHEMA)
        for half in halves
    ]


def check(rows: list[tuple[int, str, int, int]], seen: dict[int, int]) -> list[str]:
    """What is wrong with a snapshot.

    Args:
        rows: Its rows: writer, kind, time and value.
        seen: The latest append of each writer that this reader has seen; brought up to date.
    """
    problems = []
    if len({row[:3] for row in rows}) != len(rows):
        problems.append("a key is there twice")
    for writer in sorted({row[0] for row in rows} | seen.keys()):
        hot = [row for row in rows if row[:2] == (writer, "hot")]
        values = {row[3] for row in hot}
        if len(values) != 1 or len(hot) != HOT:
            problems.append(f"writer {writer}: {len(hot)} hot rows with values {sorted(values)}")
            continue
        number = values.pop()
        found = sorted(row[2] for row in rows if row[:2] == (writer, "row"))
        if found != list(range(max(1, number - KEPT + 1), number + 1)):
            problems.append(f"writer {writer}: rows {found} after append {number}")
        if number < seen.get(writer, 0):
            problems.append(f"writer {writer}: append {number} after {seen[writer]}")
        seen[writer] = number
    return problems


def read_snapshot(table: TableSnapshot) -> list[tuple[int, str, int, int]]:
    """The rows that a snapshot shows, by pyarrow alone."""
    state: DedupState = table.detail
    parts = []
    for chunk in sorted(state.chunks, key=lambda c: c.sequence):
        if chunk.kind == "parquet":
            parts.append(pq.read_table(chunk.uri, partitioning=None))
        else:
            with pa.ipc.open_file(chunk.uri) as reader:
                parts.append(reader.read_all())
    rows = pa.concat_tables([part.select(_SCHEMA.names) for part in parts])
    latest, _ = latest_rows(rows, state.table.primary_key, None)
    return [
        (row["writer"], row["kind"], row["t"], row["value"])
        for row in latest.to_pylist()
        if not row["gone"]
    ]


class _Process:
    """One process of the stress."""

    def __init__(self, folder: str, name: str, seed: int, end: float) -> None:
        self.catalog: FileCatalog = load_catalog(
            Path(folder, "catalog.yaml"), StorageOptions(fsync="never")
        )
        self.root = LocalStore(f"{folder}/storage", StorageOptions(fsync="never"))
        self.random = random.Random(f"{seed}-{name}")
        self.name, self.end = name, end
        self.problems: list[str] = []
        self.done = 0

    @property
    def table(self) -> Any:
        return chunk_table(self.catalog, "events")

    def run(self, step: Callable[[], None]) -> None:
        while time.time() < self.end and len(self.problems) < 5:
            try:
                step()
                self.done += 1
            # Whatever a step raises is a finding, and others go on to find more.
            except Exception as error:  # noqa: BLE001
                self.problems.append(f"{self.name}: {type(error).__name__}: {error}")

    def append(self, writer: int) -> None:
        # A writer that was killed asks the table how far it came.
        taken = load_or_take(self.root, f"w-{self.name}-{time.time_ns()}", self.catalog, ["events"])
        rows = read_snapshot(taken.table("events")) if taken.table("events").files else []
        number = max((row[3] for row in rows if row[0] == writer), default=0) + 1
        while time.time() < self.end:
            sort = self.random.random() < 0.3
            self.table.append(rows_of(writer, number), sort=sort)
            number += 1
            self.done += 1
            time.sleep(self.random.random() * 0.05)  # so that other writers come in between

    def compact(self) -> None:
        compact(self.table, target_rows=self.random.choice([20, 60, 1 << 20]))
        time.sleep(self.random.random() * 0.2)  # so that there is something to compact again

    def collect(self) -> None:
        collect_table_garbage(self.root, [ChunkOperations(self.table)], older_than=_GC_AGE)
        time.sleep(0.5)  # as often as finds something each time

    def read(self, seen: dict[int, int]) -> None:
        run = f"r-{self.name}-{time.time_ns()}"
        table = load_or_take(self.root, run, self.catalog, ["events"]).table("events")
        time.sleep(self.random.random() * 0.3)  # meanwhile the world goes on
        self.problems += [f"{self.name}: {text}" for text in check(read_snapshot(table), seen)]
        self.root.delete([f"runs/{run}/snapshot.json"])


@dataclass(frozen=True)
class _Clock:
    """When processes begin and end; they take a while to start.

    Args:
        ready: Where the first processes and the parent meet.
        begun: Set when `end` is known.
        end: When all is over, seconds since 1970.
    """

    ready: Any
    begun: Any
    end: Any

    def begin(self, seconds: float) -> float:
        """Wait for all processes, let them begin, and return when they end."""
        self.ready.wait(120)
        self.end.value = time.time() + seconds
        self.begun.set()
        return float(self.end.value)

    def await_begin(self) -> None:
        """Wait until all others are ready; one that is started later begins at once."""
        if not self.begun.is_set():
            self.ready.wait(120)
            self.begun.wait(120)


def _work(folder: str, kind: str, number: int, seed: int, clock: _Clock) -> None:
    """The body of a process; its findings go to a file of its own."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    clock.await_begin()
    process = _Process(folder, f"{kind}{number}", seed, clock.end.value)
    seen: dict[int, int] = {}
    steps: dict[str, Callable[[], None]] = {
        "append": lambda: process.append(number),
        "compact": process.compact,
        "collect": process.collect,
        "read": lambda: process.read(seen),
    }
    process.run(steps[kind])
    path = Path(folder, "found", f"{kind}-{number}-{time.time_ns()}.json")
    path.write_text(json.dumps({"kind": kind, "done": process.done, "problems": process.problems}))


def stress(
    seconds: float,
    seed: int,
    *,
    writers: int = 3,
    compactors: int = 2,
    readers: int = 2,
    kills: bool = True,
    queries: bool = False,
    folder: str | None = None,
) -> Report:
    """Run it and return what came of it.

    Args:
        seconds: How long.
        seed: Of all random choices; timing makes each run another one all the same.
        writers: Processes that append.
        compactors: Processes that compact.
        readers: Processes that read.
        kills: Whether the first writer is killed again and again.
        queries: Whether the table is also read by Stagecoach's queries, in this process.
        folder: Where the table is made; a temporary folder by default.
    """
    kinds = {"append": writers, "compact": compactors, "read": readers, "collect": 1}
    with tempfile.TemporaryDirectory(prefix="stagecoach-stress-", dir=folder) as place:
        _make_table(place, writers)
        session = _warm_session(place) if queries else None
        clock, start = _prepare(place, seed, sum(kinds.values()))
        running = {(k, n): start(k, n) for k, count in kinds.items() for n in range(count)}
        end = clock.begin(seconds)
        report = Report(seconds)
        asking = threading.Thread(target=_query, args=(session, end, report), daemon=True)
        if session is not None:
            asking.start()
        chance = random.Random(seed)
        report.counts["killed"] = _kill_first_writer(running, start, end, chance) if kills else 0
        time.sleep(max(0.0, end - time.time()))
        for process in running.values():
            process.join(60)
        if session is not None:
            asking.join(120)
            session.close()
        return _gather(place, running, report)


def _make_table(place: str, writers: int) -> None:
    """A table with the first append of each writer."""
    Path(place, "catalog.yaml").write_text(_CATALOG)
    Path(place, "found").mkdir()
    catalog = load_catalog(Path(place, "catalog.yaml"))
    for writer in range(writers):
        chunk_table(catalog, "events").append(rows_of(writer, 1))


def _prepare(place: str, seed: int, count: int) -> tuple[_Clock, Callable[[str, int], Any]]:
    """A clock for that many processes, and what starts one."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_PRELOADED)
    clock = _Clock(context.Barrier(count + 1), context.Event(), context.Value("d", 0.0))

    def start(kind: str, number: int) -> Any:
        process = context.Process(target=_work, args=(place, kind, number, seed, clock))
        process.start()
        return process

    return clock, start


def _kill_first_writer(
    running: dict[tuple[str, int], Any],
    start: Callable[[str, int], Any],
    end: float,
    chance: random.Random,
) -> int:
    """Kill the first writer again and again until the end, start another, and return how often."""
    killed = 0
    while time.time() < end:
        # A writer that is killed has had time to start and to append.
        time.sleep(min(2 + chance.random() * 4, max(0.1, end - time.time())))
        if time.time() < end - 2:
            running["append", 0].kill()
            running["append", 0].join()
            running["append", 0] = start("append", 0)
            killed += 1
    return killed


def _warm_session(place: str) -> Any:
    """A session that has run the query once, so that Spark is there before the clock starts."""
    import stagecoach

    session = stagecoach.connect(Path(place, "catalog.yaml"), storage=f"{place}/storage")
    session.query(_SQL)
    return session


def _query(session: Any, end: float, report: Report) -> None:
    """Read by queries until the end, and count them."""
    seen: dict[int, int] = {}
    try:
        while time.time() < end:
            rows = session.query(_SQL).to_arrow().to_pylist()
            found = [(r["writer"], r["kind"], r["t"], r["value"]) for r in rows]
            report.problems += [f"query: {text}" for text in check(found, seen)]
            report.counts["query"] = report.counts.get("query", 0) + 1
    # A query that fails beside writers is what is looked for; the rest of the stress goes on.
    except Exception as error:  # noqa: BLE001
        report.problems.append(f"query: {type(error).__name__}: {error}")


def _gather(place: str, running: dict[tuple[str, int], Any], report: Report) -> Report:
    for (kind, number), process in running.items():
        if process.exitcode != 0:
            report.problems.append(f"{kind}{number} ended with {process.exitcode}")
            process.kill()
    for path in Path(place, "found").iterdir():
        found = json.loads(path.read_text())
        report.counts[found["kind"]] = report.counts.get(found["kind"], 0) + found["done"]
        report.problems += found["problems"]
    catalog = load_catalog(Path(place, "catalog.yaml"))
    compact(chunk_table(catalog, "events"))
    root = LocalStore(f"{place}/storage")
    table = load_or_take(root, "final", catalog, ["events"]).table("events")
    report.problems += [f"in the end: {text}" for text in check(read_snapshot(table), report.final)]
    report.counts["versions"] = chunk_table(catalog, "events").read().number
    return report


@click.command()
@click.option("--seconds", default=120.0, show_default=True)
@click.option("--seed", default=1, show_default=True)
@click.option("--writers", default=3, show_default=True)
@click.option("--readers", default=2, show_default=True)
@click.option("--queries", is_flag=True, help="Also read by Stagecoach's queries.")
def main(seconds: float, seed: int, writers: int, readers: int, queries: bool) -> None:
    """Run the stress; exit with 1 if anything was wrong."""
    report = stress(seconds, seed, writers=writers, readers=readers, queries=queries)
    click.echo(json.dumps(asdict(report), indent=2))
    raise SystemExit(1 if report.problems else 0)


if __name__ == "__main__":
    main()
