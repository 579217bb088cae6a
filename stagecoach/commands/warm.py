"""`stagecoach warm`: a warm Spark for the commands of this user, which ends when it is not used.

The command starts a server in the background and returns when it can be used. Later commands find
it by the file of `stagecoach.infra.spark.announcements`.
"""

from __future__ import annotations

import contextlib
import datetime
import fcntl
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from stagecoach.arguments.ages import AgeType
from stagecoach.arguments.options import debug_option, read_settings
from stagecoach.terminal.streams import configure_logging

if TYPE_CHECKING:
    from stagecoach.infra.config.settings import EngineSettings
    from stagecoach.infra.spark.announcements import Found

_POLL_SECONDS = 0.1
_END_SECONDS = 20.0
_SHOWN_LINES = 15
_SERVER = "server-"
# Logs of servers that failed are kept so long.
_KEEP_SECONDS = 7 * 24 * 3600


@click.command()
@click.option(
    "--ttl",
    type=AgeType(),
    default="30m",
    show_default=True,
    metavar="TIME",
    help="End it after this time without use: a number with s, m, h, d or w.",
)
@click.option("--status", is_flag=True, help="List the warm Sparks of this user on this machine.")
@click.option("--stop", is_flag=True, help="End those that this command has started.")
@click.option(
    "--master", metavar="MASTER", help="Spark master of the warm Spark.  [default: local[*]]"
)
@click.option(
    "--set",
    "assignments",
    metavar="KEY=VALUE",
    multiple=True,
    help="Set engine.NAME or a Spark setting spark.…, as for the commands that are to use it; "
    "may be repeated.",
)
@debug_option
def warm(
    ttl: datetime.timedelta,
    status: bool,
    stop: bool,
    master: str | None,
    assignments: tuple[str, ...],
    debug: bool,
) -> None:
    """Start a Spark in the background, which later commands use instead of one of their own.

    They find it by themselves, and use it only where it computes the same: with the same code,
    packages, environment variables, master and Spark settings. It ends after a time without use.
    """
    from stagecoach.infra.config.settings import load_settings

    configure_logging(debug=debug)
    if status and stop:
        raise click.UsageError("--status and --stop cannot be used together; choose one")
    settings = load_settings(overrides=read_settings(assignments, master=master).engine)
    if status:
        _show(settings)
    elif stop:
        _stop()
    else:
        _start(settings, ttl)


def _show(settings: EngineSettings) -> None:
    from stagecoach.infra.spark.announcements import find_servers
    from stagecoach.infra.spark.likeness import likeness
    from stagecoach.infra.spark.warm_client import mismatch

    servers = find_servers()
    if not servers:
        click.echo("no warm Spark is running")
    mine = likeness(settings, os.environ) if servers else {}
    for found in servers:
        problem = mismatch(found.announcement, mine)
        fits = "commands here use it" if problem is None else f"not used here: {problem}"
        use = "in use" if found.is_in_use() else "not in use"
        click.echo(f"{_describe(found)}, {use}; {fits}")


def _stop() -> None:
    from stagecoach.infra.spark.announcements import find_servers

    mine = [found for found in find_servers() if found.announcement.owner == "warm"]
    if not mine:
        click.echo("no warm Spark of `stagecoach warm` is running", err=True)
    late = [found for found in mine if not found.end(_END_SECONDS)]
    for found in mine:
        if found not in late:
            click.echo(f"ended {_describe(found)}", err=True)
    if late:
        pids = ", ".join(str(found.announcement.watcher_pid) for found in late)
        raise click.ClickException(f"still ending after {_END_SECONDS:.0f} s: process {pids}")


def _start(settings: EngineSettings, ttl: datetime.timedelta) -> None:
    from stagecoach.infra.spark.announcements import server_folder
    from stagecoach.infra.spark.connect_server import launch
    from stagecoach.infra.spark.warm_client import matching_server

    if settings.remote:
        raise click.UsageError(
            "the setting `remote` names a Spark that all commands use; a warm one would not be used"
        )
    folder = server_folder()
    with _alone(folder):
        if (found := matching_server(settings)) is not None:
            click.echo(f"warm already: {_describe(found)}", err=True)
            return
        _sweep(folder)
        began = time.monotonic()
        place = Path(tempfile.mkdtemp(prefix=_SERVER, dir=folder))
        server = launch(settings, place, announced=True, ttl_seconds=ttl.total_seconds())
        click.echo("starting Spark…", err=True)
        try:
            found = _await_announcement(server.watcher_pid)
        except KeyboardInterrupt:
            os.kill(server.watcher_pid, signal.SIGTERM)
            raise
    if found is None:
        lines = server.log.read_text(encoding="utf-8", errors="replace").splitlines()
        shown = "\n".join(lines[-_SHOWN_LINES:])
        raise click.ClickException(f"Spark has not become warm; see {server.log}\n{shown}")
    click.echo(f"warm after {time.monotonic() - began:.0f} s: {_describe(found)}", err=True)


def _await_announcement(watcher_pid: int) -> Found | None:
    """The announcement of a server whose watcher is a child of this process; None if it ends."""
    from stagecoach.infra.spark.announcements import find_servers

    while True:
        ended, _ = os.waitpid(watcher_pid, os.WNOHANG)
        for found in find_servers():
            if found.announcement.watcher_pid == watcher_pid:
                return found
        if ended:
            return None
        time.sleep(_POLL_SECONDS)


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Of commands that come together one starts a server, and the others find it."""
    with open(folder / "starting.lock", "wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _sweep(folder: Path) -> None:
    """Remove what servers that ended long ago have left."""
    from stagecoach.infra.spark.announcements import find_servers

    kept = {Path(found.announcement.log).parent for found in find_servers()}
    old = time.time() - _KEEP_SECONDS
    for left in folder.glob(f"{_SERVER}*"):
        with contextlib.suppress(OSError):
            if left not in kept and left.stat().st_mtime < old:
                shutil.rmtree(left)


def _describe(found: Found) -> str:
    server = found.announcement
    ends = (
        "ends with its UI"
        if server.ttl_seconds is None
        else f"ends after {_time_text(server.ttl_seconds)} without use"
    )
    return f"Spark of `stagecoach {server.owner}` (process {server.watcher_pid}, {ends})"


def _time_text(seconds: float) -> str:
    for unit, length in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds >= length and seconds % length == 0:
            return f"{seconds // length:.0f} {unit}"
    return f"{seconds:g} s"
