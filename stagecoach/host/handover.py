"""Hands a command over to the command host of a warm Spark, and waits for its end.

    this process ─ arguments, environment, streams ─▶ socket ─▶ host ─ fork ─▶ a process
                 ◀─ pid ─────────────────────────────────────────────────────────┤
                 ─ go ──────────────────────────────────────────────────────────▶│ the command
                 ─ SIGINT, SIGTERM, … ──────────────────────────────────────────▶│
                 ◀─ exit code ───────────────────────────────────────────────────┘

A process that begins with nothing imports Dagster, pyspark and the planner first, which is most of
the time of a small query. The host (`stagecoach.command_host`) has imported them. It refuses where
it would not be what this process is: with other code, packages or variables. Then, and where no
host is there, this process goes on by itself.

This module is imported before every command: it imports little.
"""

from __future__ import annotations

import array
import contextlib
import json
import os
import signal
import socket
import sys
from collections.abc import Sequence
from types import FrameType
from typing import Any

from stagecoach.infra.host.umask import umask
from stagecoach.infra.spark.announcements import find_servers

COMMANDS = frozenset(["query", "explain", "check", "compile"])
"""Commands that a host runs; all others start quickly or start processes that outlive them."""

_FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
_LENGTH_BYTES = 4
_MAX_BYTES = 1 << 24
_ASK_SECONDS = 5.0
_NEVER = "never"

GO = b"!"
"""What lets the process begin."""


def hand_over(arguments: Sequence[str]) -> int | None:
    """Have a host run this process's command; return its exit code, or None if no host does.

    Args:
        arguments: `sys.argv`.
    """
    if not _is_ordinary(arguments):
        return None
    for path in filter(None, (found.announcement.host for found in find_servers())):
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as host:
            if (pid := _start(host, path, arguments)) is not None:
                return _wait(host, pid)
    return None


def _start(host: socket.socket, path: str, arguments: Sequence[str]) -> int | None:
    """Have a host fork a process, and let it begin; return its number, or None if there is none."""
    try:
        host.settimeout(_ASK_SECONDS)
        host.connect(path)
        send_request(host, _request(arguments), [0, 1, 2])
        pid = _answer(host).get("pid")
        if pid is None:
            return None
        # Only now: a process that comes too late must not run what this one runs by itself.
        host.sendall(GO)
        host.settimeout(None)
    except (OSError, ValueError):
        return None
    return int(pid)


def send_request(host: socket.socket, request: dict[str, Any], descriptors: Sequence[int]) -> None:
    """Send a request with open files."""
    text = json.dumps(request).encode()
    content = len(text).to_bytes(_LENGTH_BYTES, "big") + text
    rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))
    sent = host.sendmsg([content], [rights])
    host.sendall(content[sent:])


def receive_request(client: socket.socket) -> tuple[dict[str, Any], list[int]]:
    """Receive a request and its open files.

    Raises:
        OSError, ValueError: It does not come, or is none.
    """
    head, descriptors, _, _ = socket.recv_fds(client, _LENGTH_BYTES, 3)
    length = int.from_bytes(head, "big")
    if len(head) < _LENGTH_BYTES or length > _MAX_BYTES:
        raise ValueError("not a request")
    parts: list[bytes] = []
    while length:
        parts.append(client.recv(min(length, 1 << 16)))
        if not parts[-1]:
            raise ConnectionError("a request without an end")
        length -= len(parts[-1])
    found: dict[str, Any] = json.loads(b"".join(parts))
    return found, descriptors


def _is_ordinary(arguments: Sequence[str]) -> bool:
    """Whether a host can do what this process would: it has none of Python's own options."""
    return (
        len(arguments) > 1
        and arguments[1] in COMMANDS
        and os.environ.get("STAGECOACH_WARM") != _NEVER
        and not any("engine.warm" in argument for argument in arguments)
        and not (sys.flags.optimize or sys.flags.dev_mode or sys.flags.no_site)
        and _is_absolute(os.environ.get("PYTHONPATH"))
        and not sys.warnoptions
        and not sys._xoptions
        and sys.gettrace() is None
        and sys.getprofile() is None
        and all(stream is not None for stream in (sys.stdin, sys.stdout, sys.stderr))
    )


def _is_absolute(path: str | None) -> bool:
    """Whether a path variable means the same in the folder of a host."""
    return not path or all(map(os.path.isabs, path.split(os.pathsep)))


def _request(arguments: Sequence[str]) -> dict[str, Any]:
    return {
        "arguments": list(arguments),
        "environment": dict(os.environ),
        "folder": os.getcwd(),
        "path": sys.path,
        "python": python_text(),
        "umask": umask(),
        "groups": sorted(os.getgroups()),
        "streams": [
            {"encoding": stream.encoding, "errors": stream.errors}
            for stream in (sys.stdin, sys.stdout, sys.stderr)
        ],
        "ignored": [n for n in _FORWARDED if signal.getsignal(n) == signal.SIG_IGN],
    }


def python_text() -> str:
    """Which Python this process is, in which environment of packages."""
    return f"{sys.executable} {sys.version} {sys.prefix}"


def _answer(host: socket.socket) -> dict[str, Any]:
    """The next message of the host or of the process; empty if there is no more."""
    line = b""
    while not line.endswith(b"\n"):
        if not (received := host.recv(1)):
            return {}
        line += received
    found: dict[str, Any] = json.loads(line)
    return found


def _wait(host: socket.socket, pid: int) -> int:
    """Pass signals on to the process that runs the command, and return its exit code."""
    received: list[int] = []

    def forward(number: int, _: FrameType | None) -> None:
        received.append(number)
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)

    for number in _FORWARDED:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, forward)
    code = None
    with contextlib.suppress(OSError):  # as where it was killed
        code = _answer(host).get("code")
    if code is not None:
        return int(code)
    # It was ended by a signal: by one of ours, or it was killed.
    return 128 + (received[0] if received else signal.SIGKILL)
