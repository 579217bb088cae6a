"""`stagecoach config` and `stagecoach storage`."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from stagecoach.api.storage_root import DEFAULT_STORAGE
from stagecoach.commands.main import cli
from stagecoach.infra.config.described import bytes_text, described_fields
from stagecoach.infra.config.effective import effective_options, effective_settings
from stagecoach.infra.config.settings import EngineSettings, load_configuration, load_settings
from stagecoach.infra.storage.object_store import StorageOptions
from stagecoach.planner.options import PlannerOptions


def run(*arguments: str, **environment: str) -> Result:
    return CliRunner().invoke(cli, arguments, env=environment)


@pytest.fixture(autouse=True)
def settings_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in [v for v in os.environ if v.startswith(("STAGECOACH_", "AWS_"))]:
        monkeypatch.delenv(name)
    path = tmp_path / "settings.yaml"
    path.write_text("codec: zstd\nmemory_bytes: 2GB\nstorage_root: elsewhere\n")
    return path


def shown(result: Result) -> dict[str, tuple[object, str]]:
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)["settings"]
    return {item["name"]: (item["value"], item["source"]) for item in found}


def test_every_setting_says_where_it_came_from(settings_file: Path) -> None:
    result = run(
        *("config", "--format", "json", "--settings", str(settings_file)),
        *("--set", "engine.memory_bytes=512MB", "--set", "spark.ui.enabled=false"),
        STAGECOACH_CODEC="none",
        STAGECOACH_WRITER_MEMORY_BYTES="64 MiB",
        STAGECOACH_STORAGE="there",
    )
    found = shown(result)
    assert found["codec"] == ("none", "variable STAGECOACH_CODEC")
    assert found["memory_bytes"] == (512 << 20, "argument")
    assert found["writer_memory_bytes"] == (64 << 20, "variable STAGECOACH_WRITER_MEMORY_BYTES")
    assert found["storage_root"] == ("there", "variable STAGECOACH_STORAGE")
    assert found["reader_memory_bytes"] == (128 << 20, "default")
    assert found["spark_conf"] == ({"spark.ui.enabled": "false"}, "argument")
    names = {field.name for field in described_fields(EngineSettings)}
    assert set(found) == names


def test_every_planner_option_says_where_it_came_from() -> None:
    arguments = ("config", "--set", "planner.broadcast_bytes=0", "--set", "planner.engine=spark")
    result = run(*arguments, "--format", "json", STAGECOACH_TIME_ZONE="Europe/Berlin")
    found = options_of(result)
    assert set(found) == {f"planner.{field.name}" for field in described_fields(PlannerOptions)}
    assert found["planner.broadcast_bytes"] == (0, "argument")
    assert found["planner.engine"] == ("spark", "argument")
    assert found["planner.time_zone"] == ("Europe/Berlin", "variable STAGECOACH_TIME_ZONE")
    assert found["planner.num_partitions"] == (0, "default")


def options_of(result: Result) -> dict[str, tuple[object, str]]:
    assert result.exit_code == 0, result.output
    return {o["name"]: (o["value"], o["source"]) for o in json.loads(result.stdout)["options"]}


def test_planner_options_come_from_file_and_environment(settings_file: Path) -> None:
    settings_file.write_text(
        "planner:\n  broadcast_bytes: 128MB\n  inline_bytes: 2MB\n  bloom_bytes: 4MB\n"
    )
    found = options_of(
        run(
            *("config", "--format", "json", "--settings", str(settings_file)),
            *("--set", "planner.bloom_bytes=8MB"),
            STAGECOACH_PLANNER__INLINE_BYTES="1KB",
            STAGECOACH_PLANNER__BLOOM_BYTES="1",
        )
    )
    assert found["planner.broadcast_bytes"] == (128 << 20, f"file {settings_file}")
    assert found["planner.inline_bytes"] == (1024, "variable STAGECOACH_PLANNER__INLINE_BYTES")
    assert found["planner.bloom_bytes"] == (8 << 20, "argument")


def test_the_conf_of_spark_is_merged(settings_file: Path) -> None:
    settings_file.write_text("spark_conf: {spark.a: 1, spark.b: 2}\n")
    result = run(
        *("config", "--format", "json", "--settings", str(settings_file)),
        *("--set", "spark.b=3", "--set", "spark.c=4"),
    )
    conf = {"spark.a": "1", "spark.b": "3", "spark.c": "4"}
    assert shown(result)["spark_conf"] == (conf, f"file {settings_file}, argument")


def test_the_older_name_of_the_storage_is_read_where_the_other_is_not_set() -> None:
    for variables, expected in (
        ({"STAGECOACH_STORAGE": "old"}, ("old", "variable STAGECOACH_STORAGE")),
        (
            {"STAGECOACH_STORAGE": "old", "STAGECOACH_STORAGE_ROOT": "new"},
            ("new", "variable STAGECOACH_STORAGE_ROOT"),
        ),
        ({"STAGECOACH_STORAGE": "", "STAGECOACH_STORAGE_ROOT": ""}, (DEFAULT_STORAGE, "default")),
    ):
        result = run("config", "--format", "json", **variables)
        assert shown(result)["storage_root"] == expected
        told = "STAGECOACH_STORAGE is not read, because STAGECOACH_STORAGE_ROOT is set"
        assert (told in result.stderr) == (expected[0] == "new")


def test_what_comes_from_the_variables_of_aws_is_shown() -> None:
    aws = {
        "AWS_ENDPOINT_URL_S3": "http://me:hush1@one",
        "AWS_ENDPOINT_URL": "http://two",
        "AWS_PROFILE": "dev",
        "AWS_DEFAULT_REGION": "north",
        "AWS_ACCESS_KEY_ID": "hush2",
        "AWS_SECRET_ACCESS_KEY": "hush3",
        "AWS_SESSION_TOKEN": "hush4",
    }
    result = run("config", "--format", "json", **aws)
    found = {k: v for k, v in shown(result).items() if k.startswith("storage_options.")}
    assert found == {
        "storage_options.endpoint_url": ("http://***@one", "variable AWS_ENDPOINT_URL_S3"),
        "storage_options.region": ("north", "variable AWS_DEFAULT_REGION"),
        "storage_options.profile": ("dev", "variable AWS_PROFILE"),
    }
    assert "hush" not in result.output
    options = json.dumps({"endpoint_url": "http://own", "profile": "own", "region": "own"})
    result = run("config", "--format", "json", STAGECOACH_STORAGE_OPTIONS=options, **aws)
    assert not [name for name in shown(result) if name.startswith("storage_options.")]
    result = run("config", "-v", AWS_IGNORE_CONFIGURED_ENDPOINT_URLS="true", **aws)
    assert "storage_options.endpoint_url" not in result.stdout
    assert "storage_options.profile" in result.stdout


def test_an_option_that_there_is_not_is_an_error() -> None:
    for assignment, said in (("bogus=1", "planner.bogus"), ("bloom_bytes=-1", "from 0 on")):
        result = run("config", "--set", f"planner.{assignment}")
        assert result.exit_code == 2
        assert said in result.stderr


def test_the_file_is_the_one_that_the_environment_names(settings_file: Path) -> None:
    found = shown(run("config", "--format", "json", STAGECOACH_SETTINGS=str(settings_file)))
    assert found["memory_bytes"] == (2 << 30, f"file {settings_file}")
    assert found["storage_root"] == ("elsewhere", f"file {settings_file}")
    environment = {"STAGECOACH_SETTINGS": str(settings_file)}
    assert load_settings(environment=environment).codec == "zstd"


def test_text_has_a_line_each_and_what_it_means() -> None:
    result = run("config", "-v")
    assert result.exit_code == 0, result.output
    for prefix, model in (("", EngineSettings), ("planner.", PlannerOptions)):
        for field in described_fields(model):
            assert f"\n{prefix}{field.name} " in f"\n{result.stdout}"
            assert field.meaning in result.stdout
    assert "256 MiB" in result.stdout


def test_secrets_are_masked() -> None:
    secrets = {"access_key": "hush1", "secret_key": "hush2", "session_token": "hush3"}
    options = {**secrets, "endpoint_url": "http://me:hush4@host", "region": "here"}
    conf = {"spark.hadoop.fs.s3a.secret.key": "hush5", "spark.x.password": "hush6", "spark.y": "z"}
    for format_ in ("text", "json"):
        result = run(
            *("config", "--format", format_, "--set", "engine.remote=sc://h:1/;token=hush7;x=y"),
            STAGECOACH_STORAGE_OPTIONS=json.dumps(options),
            STAGECOACH_SPARK_CONF=json.dumps(conf),
            STAGECOACH_STORAGE="s3://me:hush8@bucket/x",
        )
        assert result.exit_code == 0, result.output
        assert "hush" not in result.output
        assert "here" in result.stdout
        assert '"spark.y": "z"' in result.stdout
    # ... nor are those in a text that cannot be read.
    result = run("config", STAGECOACH_STORAGE_OPTIONS='{"secret_key": "hush"')
    assert result.exit_code == 2
    assert "hush" not in result.output
    assert "storage_options" in result.stderr


@pytest.mark.parametrize("text", ["foo", "3", '["a"]', "{'a': 1}", '"a"', ""])
@pytest.mark.parametrize("name", ["SPARK_CONF", "STORAGE_OPTIONS"])
def test_a_setting_that_is_no_json_object(name: str, text: str) -> None:
    result = run("config", **{f"STAGECOACH_{name}": text})
    assert result.exit_code == 2
    assert f"setting {name.lower()} has an invalid value (variable STAGECOACH_{name}): " in (
        result.stderr
    )
    assert 'give a JSON object, such as {"' in result.stderr


def test_a_variable_with_a_slip_is_told() -> None:
    result = run("config", STAGECOACH_MEMORY_BYTE="1")
    assert "STAGECOACH_MEMORY_BYTE is not a setting; did you mean STAGECOACH_MEMORY_BYTES" in (
        result.stderr
    )


@pytest.mark.parametrize(
    ("text", "expected"), [("1024", 1024), ("1k", 1024), ("1.5 GiB", 3 << 29), ("2TB", 2 << 40)]
)
def test_sizes_may_have_a_unit(text: str, expected: int) -> None:
    assert EngineSettings().updated({"max_spill_bytes": text}).max_spill_bytes == expected


def test_sizes_are_written_with_one() -> None:
    assert [bytes_text(n) for n in (0, 5, 1 << 20, 3 << 29)] == ["0", "5", "1 MiB", "1536 MiB"]


@pytest.mark.parametrize("model", [EngineSettings, StorageOptions, PlannerOptions])
def test_models_say_what_their_fields_mean(model: type[object]) -> None:
    fields = described_fields(model)
    assert len(fields) > 5
    assert all(field.meaning.endswith(".") for field in fields)


def test_effective_settings_are_the_loaded_ones(settings_file: Path) -> None:
    environment = {"STAGECOACH_PARALLELISM": "3"}
    overrides = {"claim_seconds": "1"}
    loaded = load_settings(settings_file, environment=environment, overrides=overrides)
    found = load_configuration(settings_file, environment=environment, overrides=overrides)
    assert {s.name: s.value for s in effective_settings(found, environment)} == vars(loaded)
    options = {s.name.removeprefix("planner."): s.value for s in effective_options(found)}
    assert options == vars(found.planner)


def test_storage_of_nothing_and_of_a_folder(tmp_path: Path) -> None:
    result = run("storage")
    assert result.exit_code == 0, result.output
    assert "total" in result.stdout
    (tmp_path / "root" / "runs" / "r").mkdir(parents=True)
    (tmp_path / "root" / "runs" / "r" / "snapshot.json").write_text("{}")
    result = run("storage", "--storage", str(tmp_path / "root"))
    assert "1 runs" in result.stdout
    found = json.loads(
        run("storage", "--storage", str(tmp_path / "root"), "--format", "json").stdout
    )
    assert (found["total"]["objects"], found["total"]["bytes"]) == (1, 2)


@pytest.mark.parametrize("command", [("storage",), ("storage", "verify")])
def test_a_storage_that_is_misspelt_is_no_empty_one(
    command: tuple[str, ...], tmp_path: Path
) -> None:
    folder = tmp_path / "typo"
    result = run(*command, "--storage", str(folder))
    assert result.exit_code != 0
    assert f"the storage folder {folder} does not exist" in f"{result.output}{result.exception}"
    assert not folder.exists()


@pytest.mark.parametrize(
    ("setting", "part"),
    [
        ("spark.sql.ansi.enabled=false", "ANSI mode"),
        ("spark.sql.session.timeZone=Asia/Tokyo", "set time_zone instead"),
    ],
)
def test_what_every_session_sets_cannot_be_changed(setting: str, part: str) -> None:
    result = run("config", "--set", setting)
    assert part in f"{result.output}{result.exception}"
    assert result.exit_code != 0


def test_what_every_session_sets_may_be_said() -> None:
    conf = {"spark.sql.ansi.enabled": "True", "spark.sql.session.timeZone": "Asia/Tokyo"}
    assert EngineSettings(spark_conf=conf, time_zone="Asia/Tokyo").spark_conf == conf
