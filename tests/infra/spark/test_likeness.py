"""Which differences keep a process from using the Spark that another one has started."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from stagecoach.infra.config.settings import EngineSettings
from stagecoach.infra.spark import likeness as likeness_module
from stagecoach.infra.spark.likeness import difference, digests, likeness

SETTINGS = EngineSettings(master="local[2]", spark_conf={"spark.driver.memory": "1g"})
ENVIRONMENT = {"PATH": "/bin", "AWS_PROFILE": "dev", "HOME": "/nowhere", "TERM": "xterm"}


def found(settings: EngineSettings = SETTINGS, **variables: str) -> str | None:
    """What differs from a server with the settings and the environment above."""
    server = digests(likeness(SETTINGS, ENVIRONMENT), "token")
    return difference(digests(likeness(settings, ENVIRONMENT | variables), "token"), server)


def test_the_same_surroundings_are_the_same() -> None:
    assert found() is None


@pytest.mark.parametrize(
    "name",
    [
        *("AWS_PROFILE", "AWS_SECRET_ACCESS_KEY", "AWS_ENDPOINT_URL", "HTTPS_PROXY"),
        *("GOOGLE_APPLICATION_CREDENTIALS", "PYTHONPATH", "PATH", "JAVA_HOME", "TMPDIR", "TZ"),
        *("SPARK_CONF_DIR", "LD_LIBRARY_PATH", "SOMETHING_OF_A_LIBRARY"),
    ],
)
def test_a_variable_that_a_task_could_read_counts(name: str) -> None:
    told = found(**{name: "other"})
    # The folder of the configuration is also compared by what is in it.
    assert told in (f"variable {name}", "Spark")


def test_a_missing_variable_counts() -> None:
    server = digests(likeness(SETTINGS, ENVIRONMENT), "token")
    fewer = {name: value for name, value in ENVIRONMENT.items() if name != "AWS_PROFILE"}
    mine = digests(likeness(SETTINGS, fewer), "token")
    assert difference(mine, server) == "variable AWS_PROFILE"


@pytest.mark.parametrize(
    "name",
    [
        "TERM",
        "SSH_CONNECTION",
        "PWD",
        "VSCODE_PID",
        "STAGECOACH_REMOTE",
        "DAGSTER_HOME",
        "SPARK_REMOTE",
    ],
)
def test_variables_of_terminals_and_of_our_own_settings_do_not_count(name: str) -> None:
    assert found(**{name: "other"}) is None


def test_a_relative_path_is_another_one_in_another_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = likeness(SETTINGS, ENVIRONMENT | {"PYTHONPATH": "lib"})
    monkeypatch.chdir(tmp_path)
    assert likeness(SETTINGS, ENVIRONMENT | {"PYTHONPATH": "lib"}) != here


def test_settings_of_a_spark_count_and_those_of_a_run_do_not() -> None:
    assert found(EngineSettings(master="local[1]", spark_conf=SETTINGS.spark_conf)) == (
        "setting master"
    )
    assert found(EngineSettings(master="local[2]")) == "setting spark_conf"
    assert found(SETTINGS.updated({"time_zone": "Asia/Tokyo", "memory_bytes": "1GB"})) is None


def test_code_and_packages_count(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    server = digests(likeness(SETTINGS, ENVIRONMENT), "token")

    def told() -> str | None:
        return difference(digests(likeness(SETTINGS, ENVIRONMENT), "token"), server)

    with monkeypatch.context() as patch:
        patch.setattr(likeness_module, "code_digest", lambda: "other")
        assert told() == "version of Stagecoach's code"
    with monkeypatch.context() as patch:
        patch.setattr(likeness_module, "_package_folders", lambda: [tmp_path])
        assert told() == "installed packages"
    assert told() is None


def test_an_installation_changes_the_packages(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(likeness_module, "_package_folders", lambda: [tmp_path])
    os.utime(tmp_path, (1, 1))
    before = likeness(SETTINGS, ENVIRONMENT)
    (tmp_path / "duckdb-9.9.dist-info").mkdir()
    assert likeness(SETTINGS, ENVIRONMENT) != before


def test_rotated_credentials_count(tmp_path: Path) -> None:
    def values() -> dict[str, str]:
        return likeness(SETTINGS, ENVIRONMENT | {"HOME": str(tmp_path)})

    none = values()
    (tmp_path / ".aws").mkdir()
    (tmp_path / ".aws" / "credentials").write_text("[default]\n")
    assert difference(digests(none, "t"), digests(values(), "t")) == "credentials files of AWS"


def test_rights_of_new_files_count() -> None:
    before = likeness(SETTINGS, ENVIRONMENT)
    mask = os.umask(0o037)
    try:
        assert likeness(SETTINGS, ENVIRONMENT) != before
    finally:
        os.umask(mask)
    assert likeness(SETTINGS, ENVIRONMENT) == before


def test_digests_tell_nothing_without_their_key() -> None:
    values = {"variable PASSWORD": "hunter2"}
    assert "hunter2" not in str(digests(values, "one"))
    assert digests(values, "one") != digests(values, "two")
    assert digests(values, "one") == digests(values, "one")
