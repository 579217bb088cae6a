"""An S3 server that can be killed: in, a folder; out, its address, the same after each start."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

from infra.storage.object_store import StorageOptions

BUCKET = "faults"
_KEYS = ("faultskey1", "faultssecret1")


class RcloneServer:
    """`rclone serve s3` on the loopback address."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / BUCKET).mkdir(parents=True)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = int(probe.getsockname()[1])
        self._process: subprocess.Popen[bytes] | None = None

    @staticmethod
    def command() -> str | None:
        """The program, or None where it is not installed."""
        beside = Path(sys.executable).parent / "rclone"
        return str(beside) if beside.exists() else shutil.which("rclone")

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}"

    def options(self, url: str, *, retry_seconds: float) -> StorageOptions:
        """How a store reaches it, perhaps through a proxy."""
        return StorageOptions(
            endpoint_url=url,
            region="us-east-1",
            access_key=_KEYS[0],
            secret_key=_KEYS[1],
            timeout_seconds=0.5,
            retry_seconds=retry_seconds,
        )

    def start(self) -> None:
        """Start it and wait until it listens."""
        arguments = ["serve", "s3", "--addr", f"127.0.0.1:{self.port}"]
        arguments += ["--auth-key", ",".join(_KEYS), str(self.folder)]
        self._process = subprocess.Popen(
            [str(self.command()), *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=0.5).close()
            except OSError:
                time.sleep(0.02)
            else:
                return
        raise RuntimeError("rclone serve s3 did not start")

    def kill(self) -> None:
        """Kill it, as `kill -9` does."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None
