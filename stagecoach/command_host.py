"""The process that commands are forked from while a warm Spark runs.

    python -m stagecoach.command_host SOCKET PYTHONPATH

It has imported all that a query needs, and nothing of a project. Each command is a process of its
own, with the arguments, the environment, the folder and the streams of the process that has asked
for it (`stagecoach.host.handover`). The host has one thread, so that a fork takes over nothing that
runs. It ends with the watcher of the Spark, or when its own code or packages have changed.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import io
import json
import logging
import os
import random
import select
import signal
import socket
import struct
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from stagecoach.host.handover import GO, python_text, receive_request
from stagecoach.infra.config.settings import EngineSettings
from stagecoach.infra.formats.names import BY_FORMAT, BY_KIND, MADE
from stagecoach.infra.spark.connect_conf import code_digest, package_root
from stagecoach.infra.spark.likeness import likeness
from stagecoach.planner.engines.registry import PLANNER_ENGINES

PRELOADED = (
    "stagecoach.commands.main",
    "stagecoach.commands.query",
    "stagecoach.commands.explain",
    "stagecoach.commands.check",
    "stagecoach.commands.compile",
    "stagecoach.api.running",
    "stagecoach.api.query_parameters",
    "stagecoach.api.explaining",
    "stagecoach.api.head_output",
    "stagecoach.assets.in_process.run",
    "stagecoach.assets.in_process.instance",
    "stagecoach.assets.report.stage_metadata",
    "stagecoach.assets.project.dependencies",
    "stagecoach.assets.project.front_matter",
    "stagecoach.infra.catalog.catalog",
    "stagecoach.infra.catalog.stored",
    "stagecoach.infra.runtime.records.run_marks",
    "stagecoach.infra.runtime.stages.result_rows",
    "stagecoach.infra.runtime.stages.run_stage",
    "stagecoach.infra.runtime.stages.reuse",
    "stagecoach.infra.engines.spark.arbiter",
    "stagecoach.infra.spark.early_start",
    "stagecoach.planner.planning",
    "stagecoach.planner.explain.display",
    "stagecoach.planner.syntax.explain_statement",
    "stagecoach.terminal.output",
    "stagecoach.terminal.shown_values",
    "pyspark.sql.connect.session",
    "pyspark.sql.connect.client.retries",
    "pyspark.sql.connect.functions.builtin",
    "pyspark.sql.connect.udf",
    "grpc._auth",
    "grpc._channel",
    # What Dagster imports when a run begins.
    "dagster._core.definitions.external_asset",
    "dagster._core.instance.runs.run_domain",
    "dagster._core.storage.fs_io_manager",
    "dagster._core.storage.schedules.sqlite",
    "upath.implementations.local",
    "fsspec.implementations.local",
    "encodings.idna",
    "encodings.utf_8_sig",
)
_POLL_SECONDS = 1.0
_ASK_SECONDS = 2.0
_OWN_SETTINGS = ("setting master", "setting spark_conf", "user, groups and umask")

log = logging.getLogger(__name__)

Request = Mapping[str, Any]


class _Host:
    """Forks a process for each command; `serve` returns what a child is to do."""

    def __init__(self, server: socket.socket, environment: Mapping[str, str]) -> None:
        self._server = server
        self._parent = os.getppid()
        self._likeness = _likeness(environment)
        self._stamp = _stamp()

    def serve(self) -> Callable[[], int] | None:
        """Serve until the parent is gone; in a forked process return the work of that process."""
        while os.getppid() == self._parent:
            ready, _, _ = select.select([self._server], [], [], _POLL_SECONDS)
            _reap()
            if ready:
                if _stamp() != self._stamp:
                    return None  # of no use any more
                if (work := self._serve_one()) is not None:
                    return work
        return None

    def _serve_one(self) -> Callable[[], int] | None:
        client, _ = self._server.accept()
        descriptors: list[int] = []
        try:
            client.settimeout(_ASK_SECONDS)
            request, descriptors = receive_request(client)
            if (problem := self._problem(client, request)) is not None:
                log.warning("a command runs by itself: %s", problem)
                _tell(client, {"refused": problem})
            elif os.fork() == 0:
                self._server.close()
                client.settimeout(None)
                mine, files = client.dup(), list(descriptors)
                descriptors = []
                return lambda: _run(mine, request, files)
        except (OSError, ValueError, KeyError) as error:
            log.warning("a request was not served: %s", error)
        finally:
            client.close()
            for descriptor in descriptors:
                os.close(descriptor)
        return None

    def _problem(self, client: socket.socket, request: Request) -> str | None:
        """Why a process of this host would not be what the asking process is."""
        _, uid, gid = struct.unpack(
            "3i", client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        )
        if (uid, gid, request["groups"]) != (os.geteuid(), os.getegid(), sorted(os.getgroups())):
            return "another user or group"
        if request["python"] != python_text():
            return "another Python"
        theirs = _likeness(request["environment"])
        names = self._likeness.keys() | theirs.keys()
        differing = sorted(n for n in names if self._likeness.get(n) != theirs.get(n))
        return f"another {differing[0]}" if differing else None


def _likeness(environment: Mapping[str, str]) -> dict[str, str]:
    """What an asking process must have in common with this one; settings are its own business."""
    found = likeness(EngineSettings(), environment)
    return {name: value for name, value in found.items() if name not in _OWN_SETTINGS}


def _stamp() -> tuple[tuple[str, int, int], ...]:
    """What changes with the code that has been imported."""
    found: list[tuple[str, int, int]] = []
    left = [str(package_root())]
    while left:
        with os.scandir(left.pop()) as entries:
            for entry in entries:
                if entry.is_dir():
                    if entry.name != "__pycache__":
                        left.append(entry.path)
                elif entry.name.endswith(".py"):
                    state = entry.stat()
                    found.append((entry.path, state.st_size, state.st_mtime_ns))
    return tuple(sorted(found))


def _reap() -> None:
    """Take note of commands that have ended."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            continue


# ------------------------------------------------------------------ in the process of a command


def _run(client: socket.socket, request: Request, files: Sequence[int]) -> int:
    """Become what the asking process is, run its command, and tell how it ended."""
    _become(request, files)
    _tell(client, {"pid": os.getpid()})
    if client.recv(len(GO)) != GO:
        return 1  # the asking process has not waited
    is_over = threading.Event()
    watch = threading.Thread(target=_end_with, args=(client, is_over), name="client", daemon=True)
    watch.start()
    from stagecoach.commands.main import main

    try:
        main()
        code: object = 0
    except SystemExit as ended:
        code = ended.code
    number = code if isinstance(code, int) else int(code is not None)
    # As a process ends that nobody has forked.
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    is_over.set()  # the asking process ends now, and this one by itself
    _tell(client, {"code": number})
    return number


def _become(request: Request, files: Sequence[int]) -> None:
    for target, opened in enumerate(files):
        os.dup2(opened, target)
        os.close(opened)
    os.setpgid(0, 0)
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["folder"])
    os.umask(request["umask"])
    sys.argv[:] = request["arguments"]
    sys.path[:] = request["path"]
    random.seed()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        default = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
        signal.signal(number, signal.SIG_IGN if number in request["ignored"] else default)
    modes = ("r", "w", "w")
    streams = [_stream(i, modes[i], **told) for i, told in enumerate(request["streams"])]
    for name, stream in zip(("stdin", "stdout", "stderr"), streams, strict=True):
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)


def _stream(descriptor: int, mode: str, *, encoding: str, errors: str) -> io.TextIOWrapper:
    """A standard stream as Python makes it at its start."""
    is_terminal = os.isatty(descriptor)
    opened = open(descriptor, f"{mode}b", closefd=False)  # noqa: SIM115 -- as long as the process
    return io.TextIOWrapper(
        opened, encoding=encoding, errors=errors, line_buffering=is_terminal or descriptor == 2
    )


def _end_with(client: socket.socket, is_over: threading.Event) -> None:
    """End this process when the one that has asked for it is gone."""
    with contextlib.suppress(OSError):
        client.recv(1)
        if not is_over.is_set():
            os.kill(os.getpid(), signal.SIGTERM)


def _tell(client: socket.socket, message: Mapping[str, object]) -> None:
    with contextlib.suppress(OSError):  # the asking process is gone
        client.sendall(json.dumps(message).encode() + b"\n")


def main(path: str, python_path: str) -> int:
    """Serve at a socket until the process that started this one has ended."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    environment = {**os.environ, "PYTHONPATH": python_path}
    if not python_path:
        del environment["PYTHONPATH"]
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # no fork takes over threads
    for name in PRELOADED:
        importlib.import_module(name)
    for registry in (BY_FORMAT, BY_KIND, MADE, PLANNER_ENGINES):
        for name in registry.names:
            registry.get(name)  # which imports it
    code_digest()  # of the code that was loaded, whatever becomes of its files
    gc.collect()
    gc.freeze()  # what is shared with all commands need not be copied for them
    host_pid = os.getpid()
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server:
            server.bind(path)
            server.listen(64)
            work = _Host(server, environment).serve()
    finally:
        if os.getpid() == host_pid:
            Path(path).unlink(missing_ok=True)
    if work is not None:
        os._exit(work())
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
