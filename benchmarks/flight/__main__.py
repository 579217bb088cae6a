"""The commands; see the package."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from benchmarks.flight.running import ServeProcess, make_tables, serving
from benchmarks.report import document, json_option, storage_option, write_document


@click.group(context_settings={"show_default": True})
def main() -> None:
    """Results over Flight SQL."""


@contextmanager
def _server(
    storage: Path, scale_factor: float, *options: str
) -> Iterator[tuple[Path, ServeProcess]]:
    storage.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="bench-flight-", dir=storage.resolve()) as place:
        folder = Path(place)
        make_tables(folder, scale_factor)
        with serving(folder, *options) as server:
            yield folder, server


@main.command()
@click.option("--scale-factor", default=1.0, help="1 is a result of about 1 GB.")
@click.option("--repeat", type=click.IntRange(min=1), default=3, help="Runs; the best counts.")
@json_option
@storage_option
def throughput(scale_factor: float, repeat: int, json_path: Path | None, storage: Path) -> None:
    """Read a result by Flight, from storage and with pyarrow."""
    from benchmarks.flight.throughput import measure

    with _server(storage, scale_factor) as (folder, server):
        readers = measure(folder, server, repeat)
    found = document("flight", scale_factor=scale_factor, readers=readers)
    click.echo(f"\nWritten to {write_document(found, json_path)}")


@main.command()
@click.option("--scale-factor", default=0.1, help="Of the tables.")
@click.option("--repeat", type=click.IntRange(min=1), default=20, help="Statements.")
@json_option
@storage_option
def first_batch(scale_factor: float, repeat: int, json_path: Path | None, storage: Path) -> None:
    """Time from the commit of the head stage to the first batch at the client."""
    from benchmarks.flight.first_batch import measure

    with _server(storage, scale_factor) as (folder, server):
        found = measure(folder, server, repeat)
    found = document("flight_first_batch", scale_factor=scale_factor, **found)
    click.echo(f"\nWritten to {write_document(found, json_path)}")


@main.command()
@click.option("--seconds", default=1800.0, help="How long.")
@click.option("--clients", default=20, help="Clients at a time.")
@click.option("--rate", default=4.0, help="Statements in a second; 0 for as many as possible.")
@click.option("--kill-server-seconds", default=450.0, help="Kill the server so often; 0: never.")
@click.option("--kill-client-seconds", default=20.0, help="Kill a client so often.")
@click.option("--seed", default=1, help="Of chance.")
@click.option("--scale-factor", default=0.1, help="Of the tables.")
@click.option(
    "--log",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("build/flight_soak.jsonl"),
    help="Gets a line for each event.",
)
@json_option
@storage_option
def soak(
    seconds: float,
    clients: int,
    rate: float,
    kill_server_seconds: float,
    kill_client_seconds: float,
    seed: int,
    scale_factor: float,
    log: Path,
    json_path: Path | None,
    storage: Path,
) -> None:
    """Run many clients, killing some of them and the server now and then."""
    from benchmarks.flight.soak import Plan, tpch_statements
    from benchmarks.flight.soak import soak as run

    log.parent.mkdir(parents=True, exist_ok=True)
    plan = Plan(
        statements=tpch_statements(),
        seconds=seconds,
        clients=clients,
        rate=rate,
        kill_client_seconds=kill_client_seconds,
        kill_server_seconds=kill_server_seconds,
        look_seconds=max(1.0, seconds / 60),
        seed=seed,
    )
    with _server(storage, scale_factor, "--streams", "256") as (folder, server):
        found = run(folder, server, plan, log)
    click.echo(f"\nWritten to {write_document(document('flight_soak', **found), json_path)}")


@main.command()
@click.option("--streams", default=10_000, help="Streams that are opened and abandoned.")
@click.option("--tickets", default=5_000, help="Tickets that are not right.")
@click.option("--connections", default=2_000, help="Half-open connections.")
@click.option("--seed", default=1, help="Of chance.")
@click.option("--scale-factor", default=0.1, help="Of the tables.")
@json_option
@storage_option
def abuse(
    streams: int,
    tickets: int,
    connections: int,
    seed: int,
    scale_factor: float,
    json_path: Path | None,
    storage: Path,
) -> None:
    """Abandon streams, forge tickets, keep connections half open, send what is too large."""
    from benchmarks.flight.abuse import Target, measure

    with _server(storage, scale_factor) as (_, server):
        target = Target(
            uri=server.uri,
            key=server.key.encode(),
            memory=lambda: server.memory()[0],
            sql="SELECT * FROM lineitem",
            other="SELECT * FROM orders",
        )
        found = measure(
            target, streams=streams, tickets=tickets, connections=connections, seed=seed
        )
    click.echo(f"\nWritten to {write_document(document('flight_abuse', **found), json_path)}")


@main.command()
@click.option("--scale-factor", default=0.1, help="Of the tables.")
@json_option
@storage_option
def tpch(scale_factor: float, json_path: Path | None, storage: Path) -> None:
    """Compare the 22 queries of TPC-H by ADBC with plain Spark SQL."""
    from benchmarks.flight.queries import compare

    with _server(storage, scale_factor) as (folder, server):
        found = compare(folder, server)
    found = document("flight_tpch", scale_factor=scale_factor, **found)
    click.echo(f"\nWritten to {write_document(found, json_path)}")


if __name__ == "__main__":
    main()
