"""A `stagecoach serve` in a process of its own, over TPC-H tables."""

from __future__ import annotations

import os
import re
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import click

from stagecoach import tpch

KEY_VARIABLE = "STAGECOACH_SERVE_TICKET_KEY"
_START_SECONDS = 120.0


class ServeProcess:
    """The server; it can be killed and started again at the same address.

    Args:
        folder: Has `catalog.yaml`, and gets `storage` and `serve.log`.
        options: Further options of the command.
    """

    def __init__(self, folder: Path, *options: str) -> None:
        with socket.create_server(("127.0.0.1", 0)) as probe:
            self.port = int(probe.getsockname()[1])
        self.key = secrets.token_hex(32)
        self.uri = f"grpc://127.0.0.1:{self.port}"
        self.log = folder / "serve.log"
        self._folder = folder
        self._options = options
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """Of the process that runs now."""
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        """Start it and wait until it answers."""
        command = [sys.executable, "-m", "stagecoach", "serve", "--port", str(self.port)]
        command += ["--catalog", "catalog.yaml", "--storage", "storage", *self._options]
        with open(self.log, "ab") as log:
            self._process = subprocess.Popen(
                command,
                cwd=self._folder,
                env={**os.environ, KEY_VARIABLE: self.key},
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        deadline = time.monotonic() + _START_SECONDS
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                raise click.ClickException(f"the server ended: {self.log.read_text()[-2000:]}")
            try:
                socket.create_connection(("127.0.0.1", self.port), 1.0).close()
                return
            except OSError:
                time.sleep(0.1)
        raise click.ClickException("the server does not answer")

    def kill(self) -> None:
        """End it and its JVM at once, as a machine that fails would."""
        assert self._process is not None
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def stop(self) -> int:
        """End it in an orderly way; return its exit code."""
        assert self._process is not None
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
        code = self._process.wait(120)
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        return code

    def cpu_seconds(self) -> float:
        """Return the processor seconds that it has used, without its JVM."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def memory(self) -> tuple[int, int]:
        """Return its resident bytes: of its own, and of files that it has mapped."""
        text = Path(f"/proc/{self.pid}/status").read_text()
        found = {k: int(v) * 1024 for k, v in re.findall(r"(RssAnon|RssFile):\s+(\d+) kB", text)}
        return found["RssAnon"], found["RssFile"]


@contextmanager
def serving(folder: Path, *options: str) -> Iterator[ServeProcess]:
    """A server that runs while the block does."""
    server = ServeProcess(folder, *options)
    server.start()
    try:
        yield server
    finally:
        server.stop()


@contextmanager
def peak_memory(server: ServeProcess) -> Iterator[list[int]]:
    """Yield a list whose one item is the highest memory of the server's own during the block."""
    peak = [server.memory()[0]]
    is_over = threading.Event()

    def look() -> None:
        while not is_over.wait(0.02):
            peak[0] = max(peak[0], server.memory()[0])

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield peak
    finally:
        is_over.set()
        thread.join()


def make_tables(folder: Path, scale_factor: float) -> None:
    """Make TPC-H tables and a catalog over them."""
    tpch.generate(folder / "tables", scale_factor, parts=8)
    tpch.write_catalog(folder / "catalog.yaml", folder / "tables")
