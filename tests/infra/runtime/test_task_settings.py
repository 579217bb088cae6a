"""Settings: the file, then the environment, then what the caller says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from stagecoach.infra.config.settings import EngineSettings, load_configuration, load_settings
from stagecoach.infra.errors import ConfigError
from stagecoach.planner.errors import OptionError


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
    assert isinstance(caught.value, ConfigError)
    assert "(argument)" in str(caught.value)


@pytest.mark.parametrize("zone", ["Asia/Tokyo", "+02:00", "-1130", "UTC+3", "Z", "PST"])
def test_time_zones_that_spark_has_are_taken(zone: str) -> None:
    assert load_settings(environment={}, overrides={"time_zone": zone}).time_zone == zone


def test_a_folder_is_taken_as_a_path(tmp_path: Path) -> None:
    found = load_settings(
        environment={}, overrides={"storage_root": tmp_path, "spill_dir": tmp_path}
    )
    assert (found.storage_root, found.spill_dir) == (str(tmp_path), str(tmp_path))


@pytest.mark.parametrize(
    ("name", "written", "allowed"),
    [
        ("time_zone", "Nowhere", "give an IANA name such as UTC or Europe/Berlin"),
        ("passing_share", ".nan", "give a number from 0 on"),
        ("skew_factor", ".inf", "give a number from 0 on"),
        ("parallelism", "2.7", "give a whole number from 0 on"),
        ("parallelism", "true", "give a whole number from 0 on"),
        ("memory_bytes", "lots", "give a number of bytes from 0 on, such as 1048576 or 64MB"),
        ("connect_seconds", "0", "give a number above 0"),
        ("codec", "gzip", "use lz4, zstd or none"),
        ("recover", "maybe", "give true or false"),
        ("spill_dir", "5", "give a text"),
        ("planner.num_partitions", "2.7", "give a whole number from 0 to 65535"),
        ("planner.bloom_bytes", "-1", "give a number of bytes from 0 on"),
        ("planner.time_zone", "Nowhere", "give an IANA name"),
    ],
)
def test_a_refusal_names_value_source_and_what_is_allowed(
    tmp_path: Path, name: str, written: str, allowed: str
) -> None:
    path = tmp_path / "settings.yaml"
    section, _, last = name.rpartition(".")
    path.write_text(f"{section}: {{{last}: {written}}}" if section else f"{name}: {written}")
    text = written.removeprefix(".")
    variable = f"STAGECOACH_{name.replace('.', '__').upper()}"
    sources: list[tuple[str, dict[str, Any]]] = [
        (f"file {path}", {"path": path, "environment": {}}),
        (f"variable {variable}", {"environment": {variable: text}}),
        ("argument", {"environment": {}, "overrides": {name: text}}),
    ]
    # As text, a number is as good a folder as any.
    for source, arguments in sources[:1] if name == "spill_dir" else sources:
        with pytest.raises((ConfigError, OptionError)) as caught:
            load_configuration(**arguments)
        said = str(caught.value)
        assert f"{name} is " in said
        assert text.lower() in said.lower()
        assert f"({source}); {allowed}" in said


def test_what_there_is_not_is_named_with_its_source(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    for content, said in (
        ("nonsense: 1", "unknown setting 'nonsense' (file"),
        ("planner: {nonsense: 1}", "unknown option planner.nonsense (file"),
        ("planner: 5", "section 'planner' of the settings in"),
        ("storage_options: {nonsense: 1}", "unknown storage option 'nonsense'"),
        ("storage_options: {part_bytes: much}", "part_bytes: give a number of bytes above 0"),
    ):
        path.write_text(content)
        with pytest.raises((ConfigError, OptionError)) as caught:
            load_configuration(path, environment={})
        assert said in str(caught.value)
        assert str(path) in str(caught.value)
    with pytest.raises(OptionError, match=r"planner\.bogus \(variable STAGECOACH_PLANNER__BOGUS\)"):
        load_configuration(environment={"STAGECOACH_PLANNER__BOGUS": "1"})


def test_planner_options_are_of_the_same_model(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text("time_zone: Asia/Tokyo\nplanner: {num_partitions: 5, engine: spark}\n")
    found = load_configuration(
        path,
        environment={"STAGECOACH_PLANNER__NUM_PARTITIONS": "6"},
        overrides={"planner.exact_math": False},
    )
    options = found.planner
    assert (options.num_partitions, options.engine, options.exact_math) == (6, "spark", False)
    # The zone is that of the run unless it is given.
    assert options.time_zone == "Asia/Tokyo"
    overrides = {"planner.time_zone": "UTC"}
    assert load_configuration(path, environment={}, overrides=overrides).planner.time_zone == "UTC"


def test_the_conf_of_spark_is_merged_name_by_name() -> None:
    settings = EngineSettings(spark_conf={"a": "1", "b": "2"})
    assert settings.updated({"spark_conf": {"b": 3, "c": True}}).spark_conf == {
        "a": "1",
        "b": "3",
        "c": "true",
    }


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
    with pytest.raises(ConfigError, match="not a mapping"):
        load_settings(path, environment={})
