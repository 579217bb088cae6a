"""How fast a result is read: by Flight, from storage, and by pyarrow alone.

Each reader is a process of its own and reads the whole result; the files are in the page cache.

    pyarrow     opens the committed map files and decompresses all batches: no checks, no network
    pyarrow 1   the same with one thread
    storage     our own reader, which checks all checksums and has one thread
    flight 1    one stream over all files; the client decompresses the batches
    flight 2    two streams over half of them each, by one client
    flight n    one stream to a client that asks for batches without compression
    parts       file by file, one after the other, from storage and by Flight: what a task of the
                next stage would do, which reads its partition of each map file

Server and client share the cores with each other; a client of its own machine would have more. The
processor seconds of both are told beside the time.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import click
import pyarrow as pa
import pyarrow.flight as fl

from benchmarks.flight.running import ServeProcess, peak_memory
from benchmarks.measured import run_measured
from stagecoach.flight.clients import COMPRESSION_HEADER
from stagecoach.flight.messages.wire import message, pack, unpack
from stagecoach.flight.tickets import ResultTicket, TicketSigner
from stagecoach.infra.shuffle.commit import load_manifest
from stagecoach.infra.shuffle.manifest import Manifest
from stagecoach.infra.shuffle.reader import read_partitions
from stagecoach.infra.storage.local_store import LocalStore
from tests.stagecoach.flight.sql_client import SqlClient

_MB = 1 << 20
RESULT = "SELECT * FROM lineitem"


@dataclass(frozen=True)
class Job:
    """What one process reads.

    Args:
        kind: `pyarrow`, `storage` or `flight`.
        option: Threads of `pyarrow`; `parts` of `storage`; what compression a client of `flight`
            asks for, and `parts` where tickets are used one after the other.
        root: The storage root.
        fingerprint: The result.
        uri: The server.
        tickets: A stream for each, in hexadecimal.
    """

    kind: str
    root: str
    fingerprint: str
    uri: str = ""
    option: str = ""
    tickets: tuple[str, ...] = ()


def measure(folder: Path, server: ServeProcess, repeat: int) -> list[dict[str, Any]]:
    """Read a large result in all ways, and print what was found."""
    root = folder / "storage"
    with SqlClient(server.uri) as client:
        began = time.perf_counter()
        info = client.info(RESULT)
        computed = time.perf_counter() - began
    ticket = ticket_of(server, info)
    manifest = _manifest(root, ticket)
    size = len(manifest.files)
    middle = _middle([file.num_bytes for file in manifest.files])
    whole = _signed(server, ticket, range(size))
    halves = tuple(_signed(server, ticket, r) for r in (range(middle), range(middle, size)))
    singles = tuple(_signed(server, ticket, range(i, i + 1)) for i in range(size))
    click.echo(
        f"{info.total_records:,} rows, {manifest.num_bytes / _MB:,.0f} MB stored in {size} files, "
        f"{len(info.endpoints)} endpoints, computed in {computed:.1f} s"
    )
    result = str(root), ticket.fingerprint
    jobs = {
        "pyarrow": Job("pyarrow", *result, option="all"),
        "pyarrow 1": Job("pyarrow", *result, option="one"),
        "storage": Job("storage", *result),
        "flight 1": Job("flight", *result, server.uri, "stored", (whole,)),
        "flight 2": Job("flight", *result, server.uri, "stored", halves),
        "flight n": Job("flight", *result, server.uri, "none", (whole,)),
        "storage, parts": Job("storage", *result, option="parts"),
        "flight, parts": Job("flight", *result, server.uri, "parts", singles),
    }
    base = server.memory()[0]
    found = []
    for name, job in jobs.items():
        with peak_memory(server) as peak:
            used = server.cpu_seconds()
            runs = [
                run_measured("benchmarks.flight.throughput", asdict(job), name)
                for _ in range(repeat)
            ]
            used = (server.cpu_seconds() - used) / repeat
        if any(run["rows"] != info.total_records for run in runs):
            raise click.ClickException(f"{name} has other rows: {runs}")
        best = min(runs, key=lambda run: float(run["seconds"]))
        measured = {
            "reader": name,
            "seconds": [round(run["seconds"], 3) for run in runs],
            "bytes": best["bytes"],
            "mb_per_second": round(best["bytes"] / _MB / best["seconds"]),
            "client_cpu_seconds": round(best["cpu_seconds"], 2),
            "server_cpu_seconds": round(used, 2),
            "client_peak_bytes": best["peak_bytes"],
            "server_extra_bytes": peak[0] - base,
        }
        found.append(measured)
        ratio = min(found[0]["seconds"]) / min(measured["seconds"])
        click.echo(
            f"{name:14} {best['seconds']:7.2f} s {measured['mb_per_second']:6,} MB/s "
            f"{ratio:5.2f} × pyarrow; processor seconds {best['cpu_seconds']:.1f} client, "
            f"{used:.1f} server; server + {(peak[0] - base) / _MB:.0f} MB"
        )
    return found


def ticket_of(server: ServeProcess, info: fl.FlightInfo) -> ResultTicket:
    """Return what the first ticket of a result says."""
    _, found = unpack(info.endpoints[0].ticket.ticket)
    ticket = TicketSigner(server.key.encode()).read(found.statement_handle, "anonymous")
    assert isinstance(ticket, ResultTicket)
    return ticket


def _signed(server: ServeProcess, ticket: ResultTicket, files: range) -> str:
    part = replace(ticket, first=files.start, end=files.stop)
    handle = TicketSigner(server.key.encode()).sign(part)
    return pack(message("TicketStatementQuery", statement_handle=handle)).hex()


def _manifest(root: Path, ticket: ResultTicket) -> Manifest:
    found = load_manifest(LocalStore(str(root)), ticket.fingerprint, stage="the result")
    assert found is not None
    return found


def _middle(sizes: list[int]) -> int:
    done, total = 0, sum(sizes)
    for position, size in enumerate(sizes, 1):
        done += size
        if 2 * done >= total:
            return position
    return len(sizes)


# ------------------------------------------------------------------ in the process of a reader


def _run(job: Job) -> dict[str, Any]:
    from benchmarks.measured import peak_bytes

    store = LocalStore(job.root)
    manifest = load_manifest(store, job.fingerprint, stage="the result")
    assert manifest is not None
    began, used = time.perf_counter(), time.process_time()
    match job.kind:
        case "pyarrow":
            options = pa.ipc.IpcReadOptions(use_threads=job.option == "all")
            counts = [_count_file(store.uri(manifest.file_key(f)), options) for f in manifest.files]
        case "storage":
            every = range(len(manifest.files))
            parts = [range(i, i + 1) for i in every] if job.option == "parts" else [every]
            counts = [_count_files(store, manifest, files) for files in parts]
        case _:
            counts = _streams(job)
    seconds = time.perf_counter() - began
    rows, size = (sum(values) for values in zip(*counts, strict=True))
    return {
        "rows": rows,
        "bytes": size,
        "seconds": seconds,
        "cpu_seconds": time.process_time() - used,
        "peak_bytes": peak_bytes(),
    }


def _count_file(path: str, options: pa.ipc.IpcReadOptions) -> tuple[int, int]:
    with pa.memory_map(path) as source, pa.ipc.open_file(source, options=options) as reader:
        return _count(reader.get_batch(i) for i in range(reader.num_record_batches))


def _count_files(store: LocalStore, manifest: Manifest, files: range) -> tuple[int, int]:
    _, batches = read_partitions(store, manifest, 0, manifest.num_partitions, files=files)
    return _count(batches)


def _count(batches: Any) -> tuple[int, int]:
    rows = size = 0
    for batch in batches:
        rows += batch.num_rows
        size += batch.nbytes
    return rows, size


def _streams(job: Job) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []

    wanted = "none" if job.option == "none" else "stored"
    header = (COMPRESSION_HEADER.encode(), wanted.encode())
    options = fl.FlightCallOptions(headers=[header])

    def read(tickets: Sequence[str]) -> None:
        with fl.FlightClient(job.uri) as client:
            for text in tickets:
                ticket = fl.Ticket(bytes.fromhex(text))
                found.append(_count(c.data for c in client.do_get(ticket, options)))

    shares = [job.tickets] if job.option == "parts" else [(ticket,) for ticket in job.tickets]
    threads = [threading.Thread(target=read, args=(share,)) for share in shares]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


@click.command()
@click.option("--job", required=True)
def main(job: str) -> None:
    """Read what a job says; for `measure`."""
    values = json.loads(job)
    click.echo(json.dumps(_run(Job(**{**values, "tickets": tuple(values["tickets"])}))))


if __name__ == "__main__":
    main()
