"""A second S3 server for tests, which honours `If-None-Match`: moto, in a process of its own.

    python -m tests.moto_server [SECONDS]

Its clock is so many seconds ahead. It says its port and answers one request at a time, so that the check and the write of a conditional
request are one step, as they are at Amazon's.
"""

from __future__ import annotations

import datetime
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from stagecoach.infra.storage.object_store import StorageOptions

BUCKET = "conditional"


def main() -> None:
    """Serve until the process is ended."""
    from moto.s3 import models
    from moto.server import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import make_server

    right, ahead = models.utcnow, datetime.timedelta(seconds=float(sys.argv[1]))
    models.utcnow = lambda: right() + ahead
    application = DomainDispatcherApplication(create_backend_app)
    # A port that its parent had chosen could be somebody else's by now: the imports take long.
    server = make_server("127.0.0.1", 0, application, threaded=False)
    sys.stdout.write(f"{server.server_port}\n")
    sys.stdout.flush()
    server.serve_forever()


@pytest.fixture(scope="session")
def moto_options() -> Iterator[StorageOptions]:
    """How `open_store` reaches the server, which has one empty bucket."""
    with moto_server() as options:
        yield options


@contextmanager
def moto_server(ahead_seconds: float = 0.0) -> Iterator[StorageOptions]:
    """Start a server with one empty bucket; yields how `open_store` reaches it.

    Args:
        ahead_seconds: How wrong its clock is, which dates objects.
    """
    pytest.importorskip("moto")
    with subprocess.Popen(
        [sys.executable, "-m", "tests.moto_server", str(ahead_seconds)],
        cwd=Path(__file__).parents[1],
        env={**os.environ, "PYTHONWARNINGS": "ignore"},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdout is not None
        try:
            port = process.stdout.readline().strip()
            assert port, "the moto server did not start"
            options = StorageOptions(
                endpoint_url=f"http://127.0.0.1:{port}",
                region="us-east-1",
                access_key="motokey1",
                secret_key="motosecret1",
            )
            _make_bucket(options)
            yield options
        finally:
            process.kill()  # asked to end, it waits for a connection that a client keeps open


def _make_bucket(options: StorageOptions) -> None:
    from stagecoach.infra.storage.s3 import s3_filesystem

    s3_filesystem(options).call_s3("create_bucket", Bucket=BUCKET)


if __name__ == "__main__":
    main()
