"""The driver's own credentials, as they are sent to tasks."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from stagecoach.infra.errors import CredentialsError
from stagecoach.infra.storage.forwarding import completed, is_forwarded, marked
from stagecoach.infra.storage.object_store import StorageOptions

S3 = {"url": "s3://bucket/root"}


@pytest.fixture(autouse=True)
def no_credentials(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


def options(values: dict[str, object]) -> StorageOptions:
    found = values.get("options", {})
    assert isinstance(found, dict)
    return StorageOptions.from_dict(found)


def test_nothing_is_added_for_the_role_of_executors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "drivers-key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "drivers-secret")
    store = marked(S3, "executor")
    assert not is_forwarded(store)
    assert completed(store) == S3


def test_what_the_driver_would_look_up_is_added(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "drivers-key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "drivers-secret")
    monkeypatch.setenv("AWS_SESSION_TOKEN", "drivers-token")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    store = {**S3, "options": {"retry_seconds": 3.0}}
    found = completed(marked(store, "forward"))
    assert is_forwarded(found)
    assert found["url"] == S3["url"]
    assert options(found) == StorageOptions(
        access_key="drivers-key",
        secret_key="drivers-secret",
        session_token="drivers-token",
        endpoint_url="http://127.0.0.1:9",
        region="eu-central-1",
        path_style=True,
        retry_seconds=3.0,
    )
    assert completed(found) == found


def test_keys_of_the_settings_come_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "drivers-key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "drivers-secret")
    given = {"access_key": "given-key", "secret_key": "given-secret"}
    assert completed(marked({**S3, "options": given}, "forward"))["options"] == given


def test_a_profile_becomes_its_keys(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "credentials"
    file.write_text("[team]\naws_access_key_id = team-key\naws_secret_access_key = team-secret\n")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(file))
    found = options(completed(marked({**S3, "options": {"profile": "team"}}, "forward")))
    assert (found.profile, found.access_key, found.secret_key) == (None, "team-key", "team-secret")


def test_credentials_that_expire_are_renewed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = tmp_path / "give.py"
    count = tmp_path / "count"
    # As STS gives them; the first ones are about to expire.
    program.write_text(
        "import datetime, json, pathlib\n"
        f"count = pathlib.Path({str(count)!r})\n"
        "number = int(count.read_text()) + 1 if count.exists() else 1\n"
        "count.write_text(str(number))\n"
        "end = datetime.datetime.now(datetime.UTC) + datetime.timedelta(minutes=1 if number == 1 else 60)\n"
        "print(json.dumps({'Version': 1, 'AccessKeyId': f'key-{number}', 'SecretAccessKey':"
        " 'secret', 'SessionToken': f'token-{number}', 'Expiration': end.isoformat()}))\n"
    )
    config = tmp_path / "config"
    config.write_text(f"[default]\ncredential_process = {sys.executable} {program}\n")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(config))
    tokens = [options(completed(marked(S3, "forward"))).session_token for _ in range(3)]
    assert tokens == ["token-2"] * 3, "one that is about to expire is not sent"
    assert json.loads(count.read_text()) == 2


@pytest.mark.parametrize("url", ["s3://bucket/root", "s3a://bucket/root"])
def test_a_driver_without_credentials_says_so(url: str) -> None:
    with pytest.raises(CredentialsError, match=r"no credentials to forward: this machine, the dri"):
        completed(marked({"url": url}, "forward"))


def test_local_storage_needs_none() -> None:
    store = marked({"url": "/srv/shuffles"}, "forward")
    assert completed(store) == store


def test_what_cannot_be_found_is_refused() -> None:
    with pytest.raises(CredentialsError, match=r"credentials of gs://: only those of S3"):
        completed(marked({"url": "gs://bucket/root"}, "forward"))
    given = {"url": "gs://bucket/root", "options": {"filesystem_options": {"token": "t"}}}
    assert completed(marked(given, "forward"))["options"] == given["options"]
    user = {"url": "sftp://me:password@host/folder"}
    assert completed(marked(user, "forward"))["url"] == user["url"]
