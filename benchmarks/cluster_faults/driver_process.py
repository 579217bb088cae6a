"""A driver as the campaign sees it: a process that can be asked, waited for and killed."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.cluster.sessions import end_sessions

_ROOT = Path(__file__).parents[2]
_READY_SECONDS = 120.0

Event = Mapping[str, Any]


class DriverEndedError(Exception):
    """The process has ended, and says nothing more."""


class DriverProcess:
    """One driver; it starts with the object.

    Args:
        module: What it runs.
        folder: Its home.
        log: What it prints goes there.
        environment: Its variables beside those of this process.
    """

    def __init__(
        self, module: str, folder: Path, log: Path, environment: Mapping[str, str]
    ) -> None:
        changing = ("STAGECOACH_", "SPARK_", "PYSPARK_", "AWS_")
        kept = {k: v for k, v in os.environ.items() if not k.startswith(changing)}
        folder.mkdir(parents=True, exist_ok=True)
        with open(log, "ab") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-m", module],
                cwd=folder,
                env={**kept, "PYTHONPATH": str(_ROOT), **environment},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=output,
                start_new_session=True,
                text=True,
            )
        self._events: queue.Queue[Event | None] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()
        self.next_event(_READY_SECONDS)

    @property
    def is_running(self) -> bool:
        """Whether it has not ended."""
        return self._process.poll() is None

    @property
    def pid(self) -> int:
        """Of the process, which leads a session of its own."""
        return self._process.pid

    def ask(self, request: Mapping[str, Any]) -> None:
        """Have it run a query.

        Raises:
            DriverEndedError: It has ended.
        """
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
        except OSError as error:
            raise DriverEndedError from error

    def next_event(self, seconds: float) -> Event | None:
        """The next thing that it tells; None if there is none in time.

        Raises:
            DriverEndedError: It has ended.
        """
        try:
            event = self._events.get(timeout=max(seconds, 0.0))
        except queue.Empty:
            return None
        if event is None:
            raise DriverEndedError
        return event

    def show_threads(self) -> None:
        """Have it print where its threads are."""
        os.kill(self.pid, signal.SIGUSR1)
        time.sleep(1)

    def kill(self) -> None:
        """Kill it with its JVM, at the same moment."""
        end_sessions([self.pid])
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()

    def _read(self) -> None:
        assert self._process.stdout is not None
        try:
            for line in self._process.stdout:
                self._events.put(json.loads(line))
        except ValueError:  # closed meanwhile, or a line that was cut off
            pass
        self._events.put(None)
