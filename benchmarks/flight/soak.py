"""Many clients for a while, some of which are killed, and so is the server.

A client is a process that runs statements whose answers are known and checks them. It lives until
it is killed in the middle of something. A statement may fail while the server is away; a failure at
any other time, and a wrong answer at any time, is a finding. When the time is over, every statement
is asked once more: nothing that was committed may be lost.

Clients write what they find to files of their own: one that is killed must not take a lock with it.
"""

from __future__ import annotations

import json
import multiprocessing
import random
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import click
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.flight as fl

from tests.stagecoach.flight.sql_client import SqlClient

_MB = 1 << 20
_STATEMENTS = (
    "SELECT * FROM lineitem WHERE l_orderkey % {n} = 0",
    "SELECT l_returnflag, count(*) AS n, sum(l_quantity) FROM lineitem WHERE l_orderkey % {n} = 0 "
    "GROUP BY l_returnflag ORDER BY l_returnflag",
    "SELECT o_orderkey, o_totalprice FROM orders WHERE o_orderkey % {n} = 0 ORDER BY o_orderkey",
)
_VARIANTS = range(3, 9)
_GRACE_SECONDS = 15.0
"""After a start of the server, clients may still find that it was away."""


class Server(Protocol):
    """A server that can be killed."""

    uri: str

    def kill(self) -> None:
        """End it at once."""
        ...

    def start(self) -> None:
        """Start it again at the same address, and wait until it answers."""
        ...

    def memory(self) -> tuple[int, int]:
        """Return its resident bytes: of its own, and of files that it has mapped."""
        ...


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What happens.

    Args:
        statements: What clients run.
        seconds: How long.
        clients: How many at a time.
        rate: Statements in a second, of all clients together; 0 for as many as they can.
        kill_client_seconds: A client is killed so often.
        kill_server_seconds: The server is killed so often; 0 for never.
        look_seconds: Memory is looked at so often.
        seed: Of chance.
    """

    statements: Sequence[str]
    seconds: float
    clients: int
    rate: float
    kill_client_seconds: float
    kill_server_seconds: float
    look_seconds: float
    seed: int


def tpch_statements() -> list[str]:
    """Statements over the tables of TPC-H."""
    return [text.format(n=n) for text in _STATEMENTS for n in _VARIANTS]


@dataclass
class _Events:
    """What has happened, in a file and in memory.

    Args:
        path: The file.
    """

    path: Path
    memory: list[tuple[float, int]] = field(default_factory=list)
    away: list[tuple[float, float]] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)

    def tell(self, what: str, **values: Any) -> None:
        """Append a line."""
        with open(self.path, "a", encoding="utf-8") as log:
            log.write(json.dumps({"at": round(time.time(), 3), "what": what, **values}) + "\n")


class _Clients:
    """The processes of the clients."""

    def __init__(self, plan: Plan, uri: str, folder: Path) -> None:
        self._context = multiprocessing.get_context("spawn")
        self._plan = plan
        self._uri = uri
        self._folder = folder
        self._number = 0
        self._running = [self._start() for _ in range(plan.clients)]

    def replace(self, position: int) -> None:
        """Kill a client and start another one."""
        self._running[position].kill()
        self._running[position].join()
        self._running[position] = self._start()

    def kill(self) -> None:
        """Kill all of them."""
        for process in self._running:
            process.kill()
        for process in self._running:
            process.join()

    def _start(self) -> Any:
        self._number += 1
        plan = self._plan
        pause = plan.clients / plan.rate if plan.rate else 0.0
        chance = random.Random(f"{plan.seed}-{self._number}").randrange(1 << 30)
        arguments = (self._uri, str(self._folder), self._number, pause, chance)
        process = self._context.Process(target=_client, args=arguments, daemon=True)
        process.start()
        return process


def soak(folder: Path, server: Server, plan: Plan, log: Path) -> dict[str, Any]:
    """Run clients against a server, killing one or the other now and then.

    Args:
        folder: Gets what clients find.
        server: The server, which runs.
        plan: What happens.
        log: Gets a line for each event.

    Raises:
        click.ClickException: An answer was wrong, a statement failed without reason, or an answer
            is lost.
    """
    with SqlClient(server.uri) as client:
        expected = {sql: _summary(client.query(sql)) for sql in plan.statements}
    (folder / "expected.json").write_text(json.dumps(expected), encoding="utf-8")
    click.echo(
        f"{len(expected)} statements computed; {plan.clients} clients for {plan.seconds:.0f} s"
    )
    events = _Events(log)
    events.tell("begin", seed=plan.seed, clients=plan.clients, seconds=plan.seconds)
    clients = _Clients(plan, server.uri, folder)
    try:
        _watch(server, clients, plan, events)
    finally:
        clients.kill()
    problems = list(_judge(folder, events))
    # A server may have been away until just now.
    with SqlClient(server.uri) as client:
        for sql, answer in expected.items():
            if _summary(client.query(sql)) != answer:
                problems.append(f"lost: {sql}")
    for problem in problems:
        events.tell("problem", text=problem)
    curve = [round(value / _MB) for _, value in events.memory]
    events.tell("end", counts=dict(events.counts), memory_mb=curve)
    click.echo(", ".join(f"{count} {what}" for what, count in sorted(events.counts.items())))
    click.echo(f"memory of the server, MB: {', '.join(map(str, curve))}")
    if problems or not events.counts["right"]:
        raise click.ClickException("\n".join([*problems[:20], f"{len(problems)} problems"]))
    return {
        "seed": plan.seed,
        "seconds": plan.seconds,
        "clients": plan.clients,
        "counts": dict(events.counts),
        "server_mb": [[round(at), round(value / _MB)] for at, value in events.memory],
    }


def _watch(server: Server, clients: _Clients, plan: Plan, events: _Events) -> None:
    """Look at memory, and kill, until the time is over."""
    chance = random.Random(plan.seed)
    began = time.monotonic()
    end = began + plan.seconds
    next_look, next_client = began, began + plan.kill_client_seconds
    next_server = began + plan.kill_server_seconds if plan.kill_server_seconds else end
    while (now := time.monotonic()) < end:
        if now >= next_look:
            events.memory.append((now - began, server.memory()[0]))
            events.tell("memory", bytes=events.memory[-1][1])
            next_look = now + plan.look_seconds
        if now >= next_client:
            position = chance.randrange(plan.clients)
            clients.replace(position)
            events.tell("client killed", client=position)
            events.counts["killed clients"] += 1
            next_client = now + plan.kill_client_seconds
        if now >= next_server:
            away = time.time()
            server.kill()
            server.start()
            events.away.append((away, time.time() + _GRACE_SECONDS))
            events.tell("server killed", back_seconds=round(time.time() - away, 1))
            events.counts["killed servers"] += 1
            next_server = time.monotonic() + plan.kill_server_seconds
        time.sleep(0.1)


def _judge(folder: Path, events: _Events) -> Iterator[str]:
    """Count what clients have found, and yield what is wrong."""
    for path in sorted(folder.glob("client-*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            try:
                found = json.loads(line)
            except ValueError:  # killed in the middle of a line
                continue
            events.counts[found["what"]] += 1
            if found["what"] == "wrong":
                yield f"wrong: {found['sql']}"
            if found["what"] == "failed" and not any(
                began <= found["at"] and found["since"] <= end for began, end in events.away
            ):
                yield f"failed while the server was there: {found['sql']}: {found['error']}"


def _client(uri: str, folder: str, number: int, pause: float, seed: int) -> None:
    """Run statements at random until this process is killed."""
    expected = json.loads((Path(folder) / "expected.json").read_text(encoding="utf-8"))
    chance = random.Random(seed)
    with open(Path(folder) / f"client-{number}.jsonl", "a", buffering=1, encoding="utf-8") as log:
        while True:
            sql = chance.choice(list(expected))
            since = time.time()
            found: dict[str, Any] = {"sql": sql, "since": since}
            try:
                with SqlClient(uri) as client:
                    is_right = _summary(client.query(sql)) == expected[sql]
                found["what"] = "right" if is_right else "wrong"
            except (fl.FlightError, pa.ArrowException) as error:
                found |= {"what": "failed", "error": str(error)[:300]}
                time.sleep(0.5)
            log.write(json.dumps({"at": time.time(), **found}) + "\n")
            if pause:
                time.sleep(chance.expovariate(1 / pause))


def _summary(table: pa.Table) -> list[Any]:
    """What tells a result from another one: rows, and sums of what adds up."""
    sums = [
        str(pc.sum(table.column(i)).as_py())
        for i, kind in enumerate(table.schema.types)
        if pa.types.is_integer(kind) or pa.types.is_decimal(kind)
    ]
    return [table.num_rows, *sums]
