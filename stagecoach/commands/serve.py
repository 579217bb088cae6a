"""`stagecoach serve`: a Flight SQL server over a catalog and a storage root."""

from __future__ import annotations

import datetime
import logging
import os
import secrets
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING

import click

from stagecoach.api.session import connect
from stagecoach.arguments.ages import AgeType
from stagecoach.arguments.options import (
    catalog_option,
    debug_option,
    planner_options,
    read_settings,
    remote_option,
    storage_option,
)
from stagecoach.infra.host.extras import require_extra
from stagecoach.terminal.interrupts import leave_to_caller
from stagecoach.terminal.streams import configure_logging, divert_noise, logs_are_json
from stagecoach.web.policy import is_loopback

if TYPE_CHECKING:
    from stagecoach.api.session import Session
    from stagecoach.flight.serving import ServeOptions, Serving

_KEY_VARIABLE = "STAGECOACH_SERVE_TICKET_KEY"
_LINES = "stagecoach.flight"


@click.command()
@click.option(
    "--host",
    metavar="ADDRESS",
    default="127.0.0.1",
    show_default=True,
    help="Address to listen on.",
)
@click.option(
    "--port",
    metavar="N",
    type=click.IntRange(0, 65535),
    default=31337,
    show_default=True,
    help="Port to listen on.",
)
@click.option(
    "--tokens",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File of users and hashes of their tokens, without which nothing is answered.",
)
@click.option(
    "--new-token",
    metavar="NAME",
    help="Add a new token for a user to the file of --tokens, print it, and end.",
)
@click.option(
    "--user-header",
    metavar="HEADER",
    help="Header in which a proxy names the user; only for a server that only the proxy reaches.",
)
@click.option(
    "--tls-cert",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Certificate of the server, as PEM.",
)
@click.option(
    "--tls-key",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Its key, as PEM.",
)
@click.option(
    "--insecure",
    is_flag=True,
    help="Listen on an address that other machines reach without --tokens or without TLS: a proxy "
    "or the network provides what is missing.",
)
@click.option(
    "--ticket-key",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="File with the key that signs tickets, the same for all servers of a storage root; or "
    f"${_KEY_VARIABLE}.  [default: a new key]",
)
@click.option(
    "--location",
    "locations",
    metavar="URL",
    multiple=True,
    help="A server of this storage root as clients reach it, grpc://host:port; may be repeated. "
    "Results are read from all of them.",
)
@click.option(
    "--running",
    metavar="N",
    type=click.IntRange(1),
    default=4,
    show_default=True,
    help="Statements that are computed at once.",
)
@click.option(
    "--waiting",
    metavar="N",
    type=click.IntRange(0),
    default=64,
    show_default=True,
    help="Statements that may wait for it; further ones are refused.",
)
@click.option(
    "--timeout",
    type=AgeType(),
    metavar="TIME",
    help="Cancel statements that take longer: a number with s, m, h, d or w.  [default: no limit]",
)
@click.option(
    "--streams",
    metavar="N",
    type=click.IntRange(1),
    default=64,
    show_default=True,
    help="Streams of rows that are open at once.",
)
@click.option(
    "--ticket-ttl",
    type=AgeType(),
    default="1h",
    show_default=True,
    metavar="TIME",
    help="How long a result can be read; gc keeps it meanwhile.",
)
@click.option(
    "--health-port",
    metavar="N",
    type=click.IntRange(0, 65535),
    help="Serve /healthz, /readyz and /metrics by HTTP on this port.  [default: none]",
)
@click.option(
    "--drain",
    type=AgeType(),
    default="30s",
    show_default=True,
    metavar="TIME",
    help="How long SIGTERM lets statements and streams go on.",
)
@catalog_option
@storage_option
@planner_options
@click.option(
    "--master", metavar="MASTER", help="Spark master of this process.  [default: local[*]]"
)
@remote_option
@debug_option
def serve(
    host: str,
    port: int,
    tokens: Path | None,
    new_token: str | None,
    user_header: str | None,
    tls_cert: Path | None,
    tls_key: Path | None,
    insecure: bool,
    ticket_key: Path | None,
    locations: tuple[str, ...],
    running: int,
    waiting: int,
    timeout: datetime.timedelta | None,
    streams: int,
    ticket_ttl: datetime.timedelta,
    health_port: int | None,
    drain: datetime.timedelta,
    catalog: str,
    storage: str | None,
    engine: str | None,
    time_zone: str | None,
    assignments: tuple[str, ...],
    master: str | None,
    remote: str | None,
    debug: bool,
) -> None:
    """Serve SQL over Arrow Flight SQL: to ADBC, BI tools and programs in any language.

    Ends with Ctrl-C or SIGTERM: statements and streams may go on for a while then; a second signal
    ends it at once.
    """
    for package in ("grpc", "google.protobuf"):
        require_extra("serve", package, "stagecoach serve")
    from stagecoach.flight.limits import Limits
    from stagecoach.flight.serving import ServeOptions
    from stagecoach.flight.tokens import TokenFile, add_token

    if new_token is not None:
        if tokens is None:
            raise click.UsageError("--new-token needs --tokens FILE")
        click.echo(add_token(tokens, new_token))
        click.echo(f"added a token of {new_token} to {tokens}; it is not shown again", err=True)
        return
    configure_logging(debug=debug)
    _check_exposure(host, tokens, tls_cert, tls_key, user_header, insecure=insecure)
    options = ServeOptions(
        host=host,
        port=port,
        tokens=None if tokens is None else TokenFile(tokens),
        user_header=user_header,
        tls=None if not (tls_cert and tls_key) else (tls_cert.read_bytes(), tls_key.read_bytes()),
        ticket_key=_ticket_key(ticket_key),
        locations=locations,
        limits=Limits(
            running=running,
            waiting=waiting,
            timeout_seconds=timeout.total_seconds() if timeout else 0.0,
            streams=streams,
            ticket_seconds=ticket_ttl.total_seconds(),
        ),
    )
    settings = read_settings(
        assignments, engine=engine, time_zone=time_zone, master=master, remote=remote
    )
    if not debug:
        divert_noise()

    def open_session() -> Session:
        return connect(catalog, storage, settings=settings.engine, options=settings.planner)

    _serve(open_session, options, health_port, drain.total_seconds())


def _serve(
    open_session: Callable[[], Session],
    options: ServeOptions,
    health_port: int | None,
    drain_seconds: float,
) -> None:
    """Serve until a signal arrives."""
    from stagecoach.flight.metrics import ServeMetrics
    from stagecoach.flight.serving import Serving
    from stagecoach.infra.spark.session import stop_sessions

    with _signals() as arrived, _lines_shown():
        # Spark takes longest to start, and the first statement should not wait for it.
        starter = open_session()
        starter.expect_spark(fresh=True)
        metrics = ServeMetrics(wanted=health_port is not None)
        try:
            serving = Serving(open_session, options, metrics)
        except BaseException:
            starter.close()
            raise
        with _health(options.host, health_port, serving):
            click.echo(f"Flight SQL: {serving.uri}  (Ctrl-C ends it)", err=True)
            arrived.wait()
            arrived.clear()
            click.echo("ending: statements and streams may go on for a while…", err=True)
            Thread(target=_drain, args=(serving, drain_seconds, arrived), daemon=True).start()
            arrived.wait()  # by then, or by a second signal
            serving.close()
        stop_sessions()
    # gRPC may still wait for a client that reads nothing.
    logging.shutdown()
    os._exit(0)


def _drain(serving: Serving, seconds: float, is_over: Event) -> None:
    """Let the server come to an end, and say so."""
    serving.drain(seconds)
    is_over.set()


@contextmanager
def _health(host: str, port: int | None, serving: Serving) -> Iterator[None]:
    """Serve health and metrics while the block runs, if a port is given."""
    from stagecoach.flight.health import HealthServer

    if port is None:
        yield
        return
    with HealthServer(host, port, lambda: serving.is_ready, serving.metrics.text) as health:
        click.echo(f"health: http://{host}:{health.port}/readyz", err=True)
        yield


@contextmanager
def _signals() -> Iterator[Event]:
    """Yield an event that is set when SIGINT or SIGTERM arrives."""
    arrived = Event()
    leave_to_caller()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: arrived.set())
    yield arrived


@contextmanager
def _lines_shown() -> Iterator[None]:
    """Show the line of each statement, also where only warnings of others are shown."""
    from stagecoach.infra.telemetry.stderr_handler import StderrHandler

    lines = logging.getLogger(_LINES)
    lines.setLevel(logging.INFO)
    if logs_are_json():
        yield
        return
    handler = StderrHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    lines.addHandler(handler)
    lines.propagate = False
    try:
        yield
    finally:
        lines.removeHandler(handler)
        lines.propagate = True


def _check_exposure(
    host: str,
    tokens: Path | None,
    tls_cert: Path | None,
    tls_key: Path | None,
    user_header: str | None,
    *,
    insecure: bool,
) -> None:
    """Refuse to be open to a network by mistake."""
    if (tls_cert is None) != (tls_key is None):
        raise click.UsageError("--tls-cert and --tls-key belong together; give both")
    if is_loopback(host) or insecure:
        return
    missing = []
    if tokens is None:
        missing.append("--tokens")
    if tls_cert is None:
        missing.append("--tls-cert and --tls-key")
    if missing:
        raise click.UsageError(
            f"other machines can reach {host}: give {' and '.join(missing)}, or --insecure where a "
            "proxy or the network provides that"
        )
    if user_header is not None:
        raise click.UsageError(
            f"other machines can reach {host} and could send {user_header} themselves; listen on "
            "127.0.0.1 behind the proxy, or give --insecure where only the proxy can connect"
        )


def _ticket_key(path: Path | None) -> bytes:
    """The key of tickets: of the file, else of the environment, else a new one."""
    from stagecoach.flight.tickets import MIN_KEY_BYTES

    given = os.environ.pop(_KEY_VARIABLE, None)
    if path is not None:
        key = path.read_bytes().strip()
    elif given is not None:
        key = given.encode()
    else:
        return secrets.token_bytes(MIN_KEY_BYTES)
    if len(key) < MIN_KEY_BYTES:
        raise click.UsageError(
            f"the key of tickets is shorter than {MIN_KEY_BYTES} bytes; make one with: "
            "openssl rand -hex 32"
        )
    return key
