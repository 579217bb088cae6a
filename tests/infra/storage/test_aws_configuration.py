"""Where endpoint, region, credentials and addressing style come from: options, environment, files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from stagecoach.infra.errors import StorageError, StorageRefusedError
from stagecoach.infra.storage.fsspec_store import FsspecStore
from stagecoach.infra.storage.object_store import ObjectStore, StorageOptions
from stagecoach.infra.storage.stores import open_store
from tests.s3_server import ACCESS_KEY, SECRET_KEY, S3Server, s3_server

__all__ = ["s3_server"]

pytestmark = pytest.mark.s3


class Aws:
    """AWS's shared files and environment, with nothing in them at first."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.patch = patch
        for name in (
            "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE",
            "AWS_DEFAULT_PROFILE", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_REGION",
            "AWS_DEFAULT_REGION",
        ):  # fmt: skip
            patch.delenv(name, raising=False)
        patch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        self.write("config", "")
        self.write("credentials", "")

    def write(self, name: str, text: str) -> None:
        # A file of its own each time: what is read once is kept.
        path = self.folder / f"{name}-{len(list(self.folder.iterdir()))}"
        path.write_text(text)
        variable = {"config": "AWS_CONFIG_FILE", "credentials": "AWS_SHARED_CREDENTIALS_FILE"}
        self.patch.setenv(variable[name], str(path))

    def set(self, **variables: str) -> None:
        for name, value in variables.items():
            self.patch.setenv(name, value)


@pytest.fixture
def aws(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Aws:
    return Aws(tmp_path, monkeypatch)


KEYS = f"aws_access_key_id = {ACCESS_KEY}\naws_secret_access_key = {SECRET_KEY}\n"


def works(store: ObjectStore) -> bool:
    store.write_bytes("k", b"v")
    return store.read_bytes("k") == b"v"


def client_of(store: ObjectStore) -> Any:
    assert isinstance(store, FsspecStore)
    return store.filesystem.s3


def test_environment(aws: Aws, s3_server: S3Server) -> None:
    aws.set(
        AWS_ENDPOINT_URL="http://127.0.0.1:9",
        AWS_ENDPOINT_URL_S3=s3_server.endpoint_url,  # the one for S3 is meant before that for all
        AWS_ACCESS_KEY_ID=ACCESS_KEY,
        AWS_SECRET_ACCESS_KEY=SECRET_KEY,
        AWS_DEFAULT_REGION="eu-west-3",
    )
    store = open_store(s3_server.new_root())
    assert works(store)
    assert store.to_dict()["options"] == {}, "no secret travels"
    assert client_of(store).meta.region_name == "eu-west-3"


def test_shared_files_and_profile(aws: Aws, s3_server: S3Server) -> None:
    aws.write("credentials", f"[lake]\n{KEYS}[default]\naws_access_key_id = wrong1\naws_secret_access_key = wrong2\n")  # fmt: skip
    aws.write(
        "config",
        "[profile lake]\nregion = eu-central-1\nservices = local\n"
        f"[services local]\ns3 =\n  endpoint_url = {s3_server.endpoint_url}\n",
    )
    aws.set(AWS_PROFILE="lake")
    store = open_store(s3_server.new_root())
    assert works(store)
    assert client_of(store).meta.region_name == "eu-central-1"


def test_profile_of_the_options(aws: Aws, s3_server: S3Server) -> None:
    aws.write("credentials", f"[other]\n{KEYS}")
    aws.write("config", f"[profile other]\nregion = us-east-1\nendpoint_url = {s3_server.endpoint_url}\n")  # fmt: skip
    options = StorageOptions(profile="other")
    store = open_store(s3_server.new_root(), options)
    assert works(store)
    assert store.to_dict()["options"] == {"profile": "other"}


def test_options_win(aws: Aws, s3_server: S3Server) -> None:
    aws.set(
        AWS_ENDPOINT_URL_S3="http://127.0.0.1:9",
        AWS_ACCESS_KEY_ID="wrong1",
        AWS_SECRET_ACCESS_KEY="wrong2",
        AWS_DEFAULT_REGION="eu-west-3",
    )
    store = open_store(s3_server.new_root(), s3_server.options)
    assert works(store)
    assert client_of(store).meta.region_name == "us-east-1"


def test_profile_that_is_not_there(aws: Aws, s3_server: S3Server) -> None:
    with pytest.raises(StorageError, match=r"profile \(nowhere\).*AWS_PROFILE.*add the profile"):
        open_store("s3://b/p", StorageOptions(profile="nowhere"))


def test_wrong_keys_of_the_environment_are_not_shown(aws: Aws, s3_server: S3Server) -> None:
    aws.set(
        AWS_ENDPOINT_URL_S3=s3_server.endpoint_url,
        AWS_ACCESS_KEY_ID="marked-key-id",
        AWS_SECRET_ACCESS_KEY="marked-secret",
        AWS_DEFAULT_REGION="us-east-1",
    )
    with pytest.raises(
        StorageRefusedError, match=r"correct the credentials|access denied"
    ) as error:
        open_store(s3_server.new_root()).write_bytes("k", b"v")
    assert "marked" not in str(error.value)
    assert error.value.__cause__ is None, "a traceback would show the server's own words"


@pytest.mark.parametrize(
    ("options", "config", "style"),
    [
        (StorageOptions(region="us-east-1"), "", None),
        (StorageOptions(endpoint_url="http://minio:9000"), "", "path"),
        (StorageOptions(endpoint_url="http://minio:9000", path_style=False), "", "auto"),
        (StorageOptions(path_style=True), "", "path"),
        (StorageOptions(endpoint_url="http://h:1"), "s3 =\n  addressing_style = virtual\n", None),
    ],
)
def test_addressing_style(
    options: StorageOptions, config: str, style: str | None, aws: Aws
) -> None:
    aws.write("config", f"[default]\n{config}")
    store = open_store("s3://b/p", options)
    assert isinstance(store, FsspecStore)
    given = store.filesystem.config_kwargs.get("s3", {}).get("addressing_style")
    assert given == style
