"""Many clients for a while, some of which are killed, and so is the server.

A client is a process that runs statements whose answers are known and checks every row. It lives
until it is killed in the middle of something. A statement may fail while the server is away; a
wrong answer never is right.
"""

from __future__ import annotations

import json
import multiprocessing
import queue
import random
import time
from collections import Counter
from pathlib import Path
from typing import Any

import click
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.flight as fl

from benchmarks.flight.running import ServeProcess
from tests.stagecoach.flight.sql_client import SqlClient

_MB = 1 << 20
_STATEMENTS = (
    "SELECT * FROM lineitem WHERE l_orderkey % {n} = 0",
    "SELECT l_returnflag, count(*) AS n, sum(l_quantity) FROM lineitem WHERE l_orderkey % {n} = 0 "
    "GROUP BY l_returnflag ORDER BY l_returnflag",
    "SELECT o_orderkey, o_totalprice FROM orders WHERE o_orderkey % {n} = 0 ORDER BY o_orderkey",
)
_VARIANTS = range(3, 9)


def statements() -> list[str]:
    """All statements that clients run."""
    return [text.format(n=n) for text in _STATEMENTS for n in _VARIANTS]


def soak(
    folder: Path, server: ServeProcess, seconds: float, clients: int, kill_seconds: float
) -> dict[str, Any]:
    """Run clients against a server, killing one or the other now and then.

    Args:
        folder: Of the server.
        server: The server, which runs.
        seconds: How long.
        clients: How many at a time.
        kill_seconds: The server is killed about every so often; 0 for never.
    """
    context = multiprocessing.get_context("spawn")
    told: Any = context.Queue()
    with SqlClient(server.uri) as client:
        expected = {sql: _summary(client.query(sql)) for sql in statements()}
    click.echo(f"{len(expected)} statements computed; {clients} clients for {seconds:.0f} s")
    path = folder / "expected.json"
    path.write_text(json.dumps(expected), encoding="utf-8")
    chance = random.Random(1)

    def start() -> Any:
        process = context.Process(target=_client, args=(server.uri, str(path), told), daemon=True)
        process.start()
        return process

    running = [start() for _ in range(clients)]
    counts: Counter[str] = Counter()
    memory: list[int] = []
    began = time.monotonic()
    next_kill = began + kill_seconds if kill_seconds else float("inf")
    next_look = began
    while time.monotonic() - began < seconds:
        _take(told, counts)
        if time.monotonic() >= next_look:
            memory.append(server.memory()[0])
            next_look += max(1.0, seconds / 60)
            victim = chance.randrange(clients)
            running[victim].kill()
            running[victim].join()
            running[victim] = start()
            counts["killed clients"] += 1
        if time.monotonic() >= next_kill:
            server.kill()
            counts["killed servers"] += 1
            server.start()
            next_kill = time.monotonic() + kill_seconds
    for process in running:
        process.kill()
        process.join()
    _take(told, counts)
    click.echo(", ".join(f"{count} {what}" for what, count in sorted(counts.items())))
    shown = ", ".join(f"{value / _MB:.0f}" for value in memory)
    click.echo(f"memory of the server, MB: {shown}")
    if counts["wrong"] or not counts["right"]:
        raise click.ClickException(f"{counts['wrong']} wrong and {counts['right']} right answers")
    return {"counts": dict(counts), "server_bytes": memory}


def _take(told: Any, counts: Counter[str]) -> None:
    """Count what clients have told."""
    try:
        while True:
            counts[told.get(timeout=0.2)] += 1
    except queue.Empty:
        return


def _client(uri: str, path: str, told: Any) -> None:
    """Run statements at random until this process is killed."""
    expected = json.loads(Path(path).read_text(encoding="utf-8"))
    chance = random.Random()
    while True:
        sql = chance.choice(list(expected))
        try:
            with SqlClient(uri) as client:
                told.put("right" if _summary(client.query(sql)) == expected[sql] else "wrong")
        except (fl.FlightError, pa.ArrowException):
            told.put("failed")  # while the server is away
            time.sleep(0.5)


def _summary(table: pa.Table) -> list[Any]:
    """What tells a result from another one: rows, and sums of what adds up."""
    sums = [
        str(pc.sum(table.column(i)).as_py())
        for i, kind in enumerate(table.schema.types)
        if pa.types.is_integer(kind) or pa.types.is_decimal(kind)
    ]
    return [table.num_rows, *sums]
