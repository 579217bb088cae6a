"""Clients that mean no good, many times over; then the server must be what it was.

    streams      opened and abandoned: unread or read a little, cancelled, dropped, or cut off with
                 their connection
    connections  that say nothing, half of a greeting, or something else, and stay
    tickets      changed in a byte, cut, of another user, expired, of another result
    messages     larger than the server takes

Nobody may get a row that is not theirs, and nothing may stay behind: streams, memory, threads.
"""

from __future__ import annotations

import random
import socket
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import click
import pyarrow as pa
import pyarrow.flight as fl

from stagecoach.flight.messages.wire import message, pack, unpack
from stagecoach.flight.tickets import ResultTicket, TicketSigner
from tests.stagecoach.flight.sql_client import SqlClient, command, field

_MB = 1 << 20
_STREAMS_PER_CLIENT = 20
_CONNECTIONS_AT_ONCE = 200
_GREETINGS = (b"", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01")
_REFUSED = (fl.FlightError, pa.ArrowException)


@dataclass(frozen=True, kw_only=True)
class Target:
    """A server, and what the test knows of it.

    Args:
        uri: Where it is.
        key: Of its tickets.
        memory: Gives its resident bytes.
        sql: A statement with a result of more than one message.
        other: Another one, with another number of rows.
    """

    uri: str
    key: bytes
    memory: Callable[[], int]
    sql: str
    other: str


def abuse(
    target: Target, *, streams: int, tickets: int, connections: int, seed: int
) -> Counter[str]:
    """Do all of it, and return what happened how often.

    Args:
        target: The server.
        streams: Streams that are abandoned.
        tickets: Tickets that are not right.
        connections: Half-open connections.
        seed: Of chance.

    Raises:
        click.ClickException: The server gave away rows, or is not what it was.
    """
    chance = random.Random(seed)
    counts: Counter[str] = Counter()
    with SqlClient(target.uri) as client:
        rows = client.query(target.sql).num_rows
        info, other = client.info(target.sql), client.info(target.other)
    _abandon(target, info, streams, chance, counts)
    _forge(target, info, other, tickets, chance, counts)
    _half_open(target, connections, chance, counts)
    _oversize(target, counts)
    deadline = time.monotonic() + 60
    while True:
        try:
            with SqlClient(target.uri) as client:
                found = client.query(target.sql).num_rows
            break
        except fl.FlightUnavailableError:  # streams of clients that have gone are still ending
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)
    if found != rows:
        raise click.ClickException(f"{found} rows afterwards instead of {rows}")
    return counts


def measure(target: Target, **campaign: int) -> dict[str, Any]:
    """Do it a little, so that the server has all it needs, then as much as asked; tell memory."""
    little = {name: min(200, many) for name, many in campaign.items() if name != "seed"}
    abuse(target, seed=0, **little)
    time.sleep(3)
    base = target.memory()
    began = time.perf_counter()
    counts = abuse(target, **campaign)
    seconds = time.perf_counter() - began
    time.sleep(3)  # idle servers give memory back
    after = target.memory()
    click.echo(", ".join(f"{count} {what}" for what, count in sorted(counts.items())))
    click.echo(f"{seconds:.1f} s; memory {base / _MB:.0f} MB before, {after / _MB:.0f} MB after")
    return {**campaign, "counts": dict(counts), "seconds": round(seconds), "bytes": [base, after]}


def _abandon(
    target: Target, info: fl.FlightInfo, streams: int, chance: random.Random, counts: Counter[str]
) -> None:
    left = streams
    while left:
        many = min(_STREAMS_PER_CLIENT, left)
        left -= many
        client = SqlClient(target.uri)
        readers = []
        for _ in range(many):
            try:
                # The call is answered with the schema, so it has arrived.
                reader = client.reader(chance.choice(info.endpoints))
                assert reader.schema
                if chance.random() < 0.3:
                    reader.read_chunk()
            except fl.FlightUnavailableError:
                counts["streams refused"] += 1
                continue
            counts["streams abandoned"] += 1
            match chance.randrange(3):
                case 0:
                    reader.cancel()
                case 1:
                    readers.append(reader)
        if chance.random() < 0.5:
            client.flight.close()
        del readers, client


def _forge(
    target: Target,
    info: fl.FlightInfo,
    other: fl.FlightInfo,
    tickets: int,
    chance: random.Random,
    counts: Counter[str],
) -> None:
    signer = TicketSigner(target.key)
    handles = [unpack(i.endpoints[0].ticket.ticket)[1].statement_handle for i in (info, other)]
    mine, theirs = (signer.read(handle, "anonymous") for handle in handles)
    assert isinstance(mine, ResultTicket)
    assert isinstance(theirs, ResultTicket)
    with SqlClient(target.uri) as client:
        for _ in range(tickets):
            content = bytearray(handles[0])
            match kind := chance.choice(("changed", "cut", "swapped", "expired", "another's")):
                case "changed":
                    content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
                case "cut":
                    del content[chance.randrange(len(content)) :]
                case "swapped":
                    # The signature of one with what another one says.
                    start = chance.randrange(1, 33)
                    content = bytearray(handles[0][:start] + handles[1][start:])
                case "expired":
                    past = time.time() - chance.randrange(1, 10**6)
                    content = bytearray(signer.sign(replace(mine, expires=past)))
                case "another's":
                    content = bytearray(signer.sign(replace(mine, user="mallory")))
            if bytes(content) in handles:
                continue
            ticket = fl.Ticket(
                pack(message("TicketStatementQuery", statement_handle=bytes(content)))
            )
            try:
                rows = client.flight.do_get(ticket).read_all().num_rows
            except _REFUSED:
                counts[f"tickets {kind}"] += 1
                continue
            raise click.ClickException(f"a ticket that was {kind} gave {rows} rows")
        # A right signature over parts of two results.
        mixed = signer.sign(replace(mine, fingerprint=theirs.fingerprint))
        ticket = fl.Ticket(pack(message("TicketStatementQuery", statement_handle=mixed)))
        try:
            client.flight.do_get(ticket).read_all()
        except _REFUSED:
            counts["tickets of two results"] += 1
            return
    raise click.ClickException("a ticket of two results gave rows")


def _half_open(
    target: Target, connections: int, chance: random.Random, counts: Counter[str]
) -> None:
    host, _, port = target.uri.partition("://")[2].rpartition(":")
    with SqlClient(target.uri) as client:
        while connections:
            many = min(_CONNECTIONS_AT_ONCE, connections)
            connections -= many
            silent = [socket.create_connection((host, int(port)), 30) for _ in range(many)]
            for found in silent:
                found.sendall(chance.choice(_GREETINGS))
            client.query(command("CommandGetTableTypes"))
            counts["half-open connections"] += many
            for found in silent:
                found.close()


def _oversize(target: Target, counts: Counter[str]) -> None:
    with SqlClient(target.uri) as client:
        for megabytes in (5, 17):
            huge = "SELECT '" + "x" * (megabytes * _MB) + "'"
            for call in (
                lambda huge=huge: client.info(huge),
                lambda huge=huge: client.flight.do_get(fl.Ticket(huge.encode())).read_all(),
                lambda huge=huge: client.action(
                    "CreatePreparedStatement",
                    command("ActionCreatePreparedStatementRequest", field(1, huge.encode())),
                ),
            ):
                try:
                    call()
                except _REFUSED:
                    counts["oversized messages"] += 1
                    continue
                raise click.ClickException(f"a message of {megabytes} MB was answered")
