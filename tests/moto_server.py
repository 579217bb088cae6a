"""A second S3 server for tests, which honours `If-None-Match`: moto, in a process of its own.

    python -m tests.moto_server <port>

It answers one request at a time, so that the check and the write of a conditional request are one
step, as they are at Amazon's.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from infra.storage.object_store import StorageOptions

BUCKET = "conditional"
_START_SECONDS = 60.0


def main(port: int) -> None:
    """Serve until the process is ended."""
    from moto.server import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import run_simple

    application = DomainDispatcherApplication(create_backend_app)
    run_simple("127.0.0.1", port, application, threaded=False)


@pytest.fixture(scope="session")
def moto_options() -> Iterator[StorageOptions]:
    """How `open_store` reaches the server, which has one empty bucket."""
    pytest.importorskip("moto")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.moto_server", str(port)],
        cwd=Path(__file__).parents[1],
        env={**os.environ, "PYTHONWARNINGS": "ignore"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    options = StorageOptions(
        endpoint_url=f"http://127.0.0.1:{port}",
        region="us-east-1",
        access_key="motokey1",
        secret_key="motosecret1",
    )
    try:
        _wait_until_up(process, port)
        _make_bucket(options)
        yield options
    finally:
        process.kill()  # asked to end, it waits for a connection that a client keeps open
        process.wait()


def _wait_until_up(process: subprocess.Popen[bytes], port: int) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=0.5).close()
        except OSError:
            time.sleep(0.1)
        else:
            return
    pytest.fail("the moto server did not start")


def _make_bucket(options: StorageOptions) -> None:
    from infra.storage.s3 import s3_filesystem

    s3_filesystem(options).call_s3("create_bucket", Bucket=BUCKET)


if __name__ == "__main__":
    main(int(sys.argv[1]))
