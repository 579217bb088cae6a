"""The process that runs are forked from, so that a run need not import everything first.

    python -m stagecoach.host.run_host SOCKET PARENT

A process of a run that begins with nothing imports Dagster, the planner, pyarrow and pyspark first,
which is two seconds of every run. This one has imported them, and nothing of any project: a run
still loads the code location as it is now.

    daemon ─ WarmRunLauncher ─▶ socket ─▶ host ─ fork ─▶ run ─▶ (its end) ─▶ host: died? say so

It has one thread and never opens Dagster's storage, so that a fork takes over nothing that runs. It
ends with the process that started it, its runs interrupted.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import logging
import os
import select
import shutil
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from stagecoach.host import side_process
from stagecoach.infra.spark.connect_conf import code_digest

HOST_VARIABLE = "STAGECOACH_RUN_HOST"
"""Socket of the host, in the environment of Dagster's processes."""

PRELOADED = (
    "dagster._cli.api",
    "dagster._grpc.impl",
    "dagster._core.storage.event_log.sqlite",
    "dagster._core.storage.runs.sqlite",
    "stagecoach.assets",
    "stagecoach.assets.report.page",
    "stagecoach.assets.report.stage_metadata",
    "stagecoach.infra.runtime.stages.run_stage",
    "stagecoach.infra.publishing.publish",
    "stagecoach.planner.planning",
    "stagecoach.planner.explain.display",
    "stagecoach.planner.explain.lineage",
    "pyspark.sql.connect.session",
    "pyspark.sql.connect.functions.builtin",
    "pyspark.sql.connect.udf",
)
# numpy would start threads when it is imported, which no fork takes over.
_ENVIRONMENT = {"OPENBLAS_NUM_THREADS": "1"}
_POLL_SECONDS = 0.2
_ASK_SECONDS = 20.0
_GRACE_SECONDS = 15.0
_MAX_MESSAGE = 1 << 20

log = logging.getLogger(__name__)

Message = Mapping[str, Any]


def launch(log_file: Path, environment: Mapping[str, str]) -> dict[str, str]:
    """Start the host in the background and return at once; it ends with this process.

    Args:
        log_file: What the host itself has to say.
        environment: Of runs: what Dagster's processes have.

    Returns:
        What the environment of Dagster's processes must have; empty where processes cannot be
        forked with what they have loaded.
    """
    if sys.platform != "linux":
        return {}
    # Not in the folder of Dagster's state: the path of a socket is at most 107 bytes long.
    path = Path(tempfile.mkdtemp(prefix="stagecoach-runs-")) / "host.sock"
    # In the terminal of the UI: Ctrl-C there interrupts the runs, too.
    side_process.launch(
        "stagecoach.host.run_host",
        str(path),
        log=log_file,
        environment={**environment, **_ENVIRONMENT},
        in_terminal=True,
    )
    return {HOST_VARIABLE: str(path)}


def ask(path: str, message: Message) -> Message:
    """Ask the host at a socket for something and return its answer.

    Raises:
        OSError: It does not answer.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        client.settimeout(_ASK_SECONDS)
        client.connect(path)
        client.sendall(json.dumps(message).encode() + b"\n")
        with client.makefile("rb") as lines:
            answer = lines.readline(_MAX_MESSAGE)
    if not answer:
        raise ConnectionError("the run host has not answered")
    found: Message = json.loads(answer)
    return found


class _Host:
    """Forks a process for each run and looks after it; `serve` returns what a child is to do."""

    def __init__(self, server: socket.socket, parent: int) -> None:
        self._server = server
        self._parent = parent
        self._runs: dict[int, Message] = {}

    def serve(self) -> Callable[[], None] | None:
        """Serve until the parent is gone; in a forked process return the work of that process."""
        while os.getppid() == self._parent:
            ready, _, _ = select.select([self._server], [], [], _POLL_SECONDS)
            if ready and (work := self._serve_one()) is not None:
                return work
            if (work := self._look_after_runs()) is not None:
                return work
        self._end_runs()
        return None

    def _end_runs(self) -> None:
        """Interrupt what runs, and kill what then does not end."""
        for pid in self._runs:
            _signal(pid)
        deadline = time.monotonic() + _GRACE_SECONDS
        while self._runs and time.monotonic() < deadline:
            for pid in list(self._runs):
                if os.waitpid(pid, os.WNOHANG)[0]:
                    del self._runs[pid]
            time.sleep(_POLL_SECONDS)
        for pid in self._runs:
            _signal(pid, signal.SIGKILL)

    def _serve_one(self) -> Callable[[], None] | None:
        client, _ = self._server.accept()
        with client, contextlib.suppress(OSError, ValueError):
            client.settimeout(_ASK_SECONDS)
            with client.makefile("rb") as lines:
                message = json.loads(lines.readline(_MAX_MESSAGE))
            if "cancel" in message:
                answer: Message = {"found": self._cancel(message["cancel"])}
            else:
                if (pid := self._fork()) == 0:
                    return lambda: _execute(message)
                self._runs[pid] = message
                answer = {"pid": pid}
            client.sendall(json.dumps(answer).encode() + b"\n")
        return None

    def _cancel(self, run_id: str) -> bool:
        pid = next((p for p, run in self._runs.items() if run["run_id"] == run_id), None)
        return pid is not None and _signal(pid)

    def _look_after_runs(self) -> Callable[[], None] | None:
        """Take note of runs that have ended; of one that died, have a process tell Dagster."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return None
            if pid == 0:
                return None
            run = self._runs.pop(pid, None)
            if run is not None and status != 0 and self._fork() == 0:
                code = os.waitstatus_to_exitcode(status)
                return lambda: _tell_death(run, code)

    def _fork(self) -> int:
        sys.stdout.flush()
        sys.stderr.flush()
        pid = os.fork()
        if pid == 0:
            self._server.close()
            # Like any new process: the host itself leaves interrupts to its runs.
            signal.signal(signal.SIGINT, signal.default_int_handler)
            # What the run says goes where that of Dagster's other processes goes.
            os.dup2(1, 2)
        return pid


def _signal(pid: int, number: int = signal.SIGINT) -> bool:
    """Send a signal to a run, by default the one with which Dagster interrupts runs."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    return True


def _execute(message: Message) -> None:
    """Run a run, in a process of its own."""
    from dagster import DagsterInstance
    from dagster._cli.api import _execute_run_command_body
    from dagster._core.instance.ref import InstanceRef
    from dagster._serdes import deserialize_value
    from dagster._utils.interrupts import capture_interrupts

    reference = deserialize_value(message["instance_ref"], InstanceRef)
    with capture_interrupts(), DagsterInstance.from_ref(reference) as instance:
        _execute_run_command_body(
            message["run_id"], instance, lambda event: None, set_exit_code_on_failure=False
        )


def _tell_death(message: Message, exit_code: int) -> None:
    """Tell Dagster of a run whose process ended before the run did."""
    from dagster import DagsterInstance
    from dagster._core.instance.ref import InstanceRef
    from dagster._serdes import deserialize_value
    from dagster._utils import get_run_crash_explanation

    reference = deserialize_value(message["instance_ref"], InstanceRef)
    with DagsterInstance.from_ref(reference) as instance:
        run = instance.get_run_by_id(message["run_id"])
        if run is None or run.is_finished:
            return
        prefix = f"Run execution process for {run.run_id}"
        instance.report_engine_event(
            get_run_crash_explanation(prefix=prefix, exit_code=exit_code), run
        )
        instance.report_run_failed(run)


def main(path: str, parent: str) -> int:
    """Serve at a socket until the process that started this one has ended."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for name in PRELOADED:
        try:
            importlib.import_module(name)
        except ImportError:  # such as another version of Dagster: then a run imports it
            log.warning("%s was not loaded", name, exc_info=True)
    from stagecoach.infra.formats.registry import stored_formats

    for item in stored_formats():
        item.preload()
    # Of the code that was loaded, whatever becomes of its files.
    code_digest()
    # As in a process that begins with `python -m dagster`: modules of the project come first.
    sys.path.insert(0, os.getcwd())
    folder = Path(path).parent
    host_pid = os.getpid()
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server:
            server.bind(path)
            server.listen(64)
            work = _Host(server, int(parent)).serve()
    finally:
        if os.getpid() == host_pid:
            shutil.rmtree(folder, ignore_errors=True)
    if work is not None:
        work()
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
