"""How soon a result is there: from the commit of its head stage to the first batch at the client.

The time of the commit is that of its file. Two statements take turns: one whose result is a row,
and one whose first batch is full.
"""

from __future__ import annotations

import os
import statistics
import time
from pathlib import Path
from typing import Any

import click

from benchmarks.flight.running import ServeProcess
from benchmarks.flight.throughput import ticket_of
from stagecoach.infra.storage import layout
from stagecoach.infra.storage.local_store import LocalStore
from tests.stagecoach.flight.sql_client import SqlClient

_STATEMENTS = {
    "one row": "SELECT count(*) + {n} AS n, sum(l_quantity) FROM lineitem",
    "full batches": "SELECT *, {n} AS n FROM lineitem",
}


def measure(folder: Path, server: ServeProcess, repeat: int) -> dict[str, Any]:
    """Run statements that have not been run before, and print what was found."""
    store = LocalStore(str(folder / "storage"))
    found: dict[str, list[float]] = {name: [] for name in _STATEMENTS}
    told: list[float] = []
    with SqlClient(server.uri) as client:
        for number in range(repeat + 1):
            for name, text in _STATEMENTS.items():
                info = client.info(text.format(n=number))
                answered = time.time()
                client.reader(info.endpoints[0]).read_chunk()
                arrived = time.time()
                fingerprint = ticket_of(server, info).fingerprint
                committed = os.stat(store.uri(layout.manifest(fingerprint))).st_mtime
                if number:  # the first one imports what the others have
                    found[name].append(round(1000 * (arrived - committed), 1))
                    told.append(1000 * (answered - committed))
    for name, values in found.items():
        click.echo(
            f"{name}: first batch {statistics.median(values):.0f} ms after the commit "
            f"(median of {repeat}; least {min(values):.0f}, most {max(values):.0f})"
        )
    click.echo(f"the FlightInfo arrives {statistics.median(told):.0f} ms after the commit (median)")
    return {"milliseconds": found, "flight_info_milliseconds": round(statistics.median(told), 1)}
