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
    """Read a result by Flight, from storage and with pyarrow, and time the first batch."""
    from benchmarks.flight.throughput import first_batches, measure

    with _server(storage, scale_factor) as (folder, server):
        readers = measure(folder, server, repeat)
        first = first_batches(folder, server, 10)
    found = document("flight", scale_factor=scale_factor, readers=readers, first_batch=first)
    click.echo(f"\nWritten to {write_document(found, json_path)}")


@main.command()
@click.option("--seconds", default=1800.0, help="How long.")
@click.option("--clients", default=20, help="Clients at a time.")
@click.option("--kill-seconds", default=300.0, help="Kill the server so often; 0 for never.")
@click.option("--scale-factor", default=0.1, help="Of the tables.")
@json_option
@storage_option
def soak(
    seconds: float,
    clients: int,
    kill_seconds: float,
    scale_factor: float,
    json_path: Path | None,
    storage: Path,
) -> None:
    """Run many clients, killing some of them and the server now and then."""
    from benchmarks.flight.soak import soak as run

    with _server(storage, scale_factor, "--streams", "256") as (folder, server):
        found = run(folder, server, seconds, clients, kill_seconds)
    click.echo(f"\nWritten to {write_document(document('flight_soak', **found), json_path)}")


@main.command()
@click.option("--streams", default=10_000, help="How many.")
@click.option("--scale-factor", default=0.1, help="Of the tables.")
@json_option
@storage_option
def abandon(streams: int, scale_factor: float, json_path: Path | None, storage: Path) -> None:
    """Open streams that nobody reads."""
    from benchmarks.flight.abandon import abandon as run

    with _server(storage, scale_factor) as (_, server):
        found = run(server, streams)
    click.echo(f"\nWritten to {write_document(document('flight_abandon', **found), json_path)}")


if __name__ == "__main__":
    main()
