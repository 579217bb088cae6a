"""Streams that are opened and never read, by clients that then go, or stay."""

from __future__ import annotations

import time
from typing import Any

import click
import pyarrow as pa
import pyarrow.flight as fl

from benchmarks.flight.running import ServeProcess
from benchmarks.flight.throughput import RESULT
from tests.stagecoach.flight.sql_client import SqlClient

_MB = 1 << 20
_PER_CLIENT = 50


def abandon(server: ServeProcess, streams: int) -> dict[str, Any]:
    """Open many streams and read none; then the server must be what it was."""
    with SqlClient(server.uri) as client:
        info = client.info(RESULT)
        whole = client.reader(info.endpoints[0]).read_all().num_rows
    base, most = server.memory()[0], 0
    opened = refused = 0
    began = time.perf_counter()
    while opened + refused < streams:
        with SqlClient(server.uri) as client:
            readers = []
            for _ in range(min(_PER_CLIENT, streams - opened - refused)):
                try:
                    # The call is answered with the schema, so it has arrived.
                    reader = client.reader(info.endpoints[0])
                    assert reader.schema
                    readers.append(reader)
                    opened += 1
                except (fl.FlightError, pa.ArrowException):
                    refused += 1
            most = max(most, server.memory()[0])
            del readers
    seconds = time.perf_counter() - began
    deadline = time.monotonic() + 60
    rows = None
    while rows is None and time.monotonic() < deadline:
        try:
            with SqlClient(server.uri) as client:
                rows = client.reader(info.endpoints[0]).read_all().num_rows
        except fl.FlightUnavailableError:
            time.sleep(0.1)
    time.sleep(2)
    after = server.memory()[0]
    click.echo(
        f"{opened} streams abandoned and {refused} refused in {seconds:.1f} s; memory "
        f"{base / _MB:.0f} MB before, {most / _MB:.0f} at most, {after / _MB:.0f} after"
    )
    if rows != whole:
        raise click.ClickException(f"{rows} rows afterwards instead of {whole}")
    return {"opened": opened, "refused": refused, "bytes": [base, most, after]}
