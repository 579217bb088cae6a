"""Settings: the file, then the environment, then what the caller says."""

from __future__ import annotations

from pathlib import Path

import pytest

from infra.errors import ConfigError
from infra.settings import EngineSettings, load_settings


def test_the_environment_wins_over_the_file_and_the_caller_over_both(tmp_path: Path) -> None:
    path = tmp_path / "stagecoach.yaml"
    path.write_text("codec: zstd\nmemory_bytes: 1000\nspark_conf: {spark.x: true}\n")
    settings = load_settings(
        path,
        environment={"STAGECOACH_MEMORY_BYTES": "2000", "STAGECOACH_OTHER": "?"},
        overrides={"parallelism": "3", "remote": ""},
    )
    assert (settings.codec, settings.memory_bytes, settings.parallelism) == ("zstd", 2000, 3)
    assert settings.spark_conf == {"spark.x": "true"}
    assert settings.remote is None
    assert settings.task_memory_bytes == 2000


def test_zero_is_a_share_of_the_machine() -> None:
    assert EngineSettings().task_memory_bytes >= 256 << 20


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("nonsense", "1"),
        ("memory_bytes", "much"),
        ("memory_bytes", "-1"),
        ("target_task_bytes", "0"),
        ("codec", "gzip"),
        ("spark_conf", "not json"),
        ("storage_options", '{"secret": "x"}'),
    ],
)
def test_what_does_not_fit_is_named(name: str, value: str) -> None:
    with pytest.raises(Exception, match=r"setting|option") as caught:
        load_settings(environment={}, overrides={name: value})
    assert isinstance(caught.value, ConfigError) or "storage option" in str(caught.value)


def test_secrets_are_not_shown() -> None:
    text = '{"secret_key": "hush", "access_key": "hush"}'
    settings = load_settings(environment={"STAGECOACH_STORAGE_OPTIONS": text})
    assert settings.storage_options.secret_key == "hush"
    assert "hush" not in repr(settings)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    with pytest.raises(ConfigError, match=r"x\.yaml"):
        load_settings(path, environment={})
    path.write_text("- a list")
    with pytest.raises(ConfigError, match="no mapping"):
        load_settings(path, environment={})
