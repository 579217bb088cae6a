"""The archive of Spark's classes: who uses it, and that a Spark of tests maps it."""

from __future__ import annotations

import os
import subprocess
import sys
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from stagecoach.infra.spark import class_data
from stagecoach.infra.spark.class_data import archive_options
from stagecoach.infra.spark.java import find_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A JAVA_HOME, a Spark with one jar, and an empty cache folder."""
    library = tmp_path / "java" / "lib" / "server" / "libjvm.so"
    library.parent.mkdir(parents=True)
    library.write_text("a virtual machine")
    (tmp_path / "spark" / "jars").mkdir(parents=True)
    (tmp_path / "spark" / "jars" / "spark.jar").write_text("classes")
    monkeypatch.setenv("SPARK_HOME", str(tmp_path / "spark"))
    (tmp_path / "cache" / "stagecoach").mkdir(mode=0o700, parents=True)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("HOME")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "none"))
    return tmp_path / "java"


def make_file(home: Path, content: str = "classes") -> Path:
    place = next(class_data._places(home))
    place.write_text(content)
    return place


def test_without_an_archive_there_is_no_option(home: Path) -> None:
    assert archive_options(home) == ""


def test_an_archive_is_used(home: Path) -> None:
    archive = make_file(home)
    expected = f"-XX:SharedArchiveFile={archive} -Xshare:auto "
    assert archive_options(home).startswith(expected)


def test_a_java_that_made_none_is_left_alone(home: Path) -> None:
    make_file(home, "")
    assert archive_options(home) == ""


@pytest.mark.parametrize("changed", ["java/lib/server/libjvm.so", "spark/jars/spark.jar"])
def test_another_java_or_another_spark_needs_another_archive(home: Path, changed: str) -> None:
    make_file(home)
    (home.parent / changed).write_text("a newer version")
    assert archive_options(home) == ""


def test_no_java_there_is_no_error(home: Path) -> None:
    assert archive_options(home.parent / "elsewhere") == ""


def test_a_folder_that_others_can_write_is_not_used(home: Path) -> None:
    archive = make_file(home)
    archive.parent.chmod(0o777)
    assert archive_options(home) == ""


def test_an_archive_is_made_once(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recorded: list[Path] = []

    def record(archive: Path) -> None:
        recorded.append(archive)
        archive.write_text("classes")

    monkeypatch.setattr(class_data, "ensure_java", lambda: home)
    monkeypatch.setattr(class_data, "_record", record)
    left = next(class_data._places(home)).parent / f".{class_data._name(home)}-killed"
    left.write_text("half of one")
    old = left.with_name("spark-of-last-year.jsa")
    old.write_text("classes")
    os.utime(old, (0, 0))
    made = class_data.make_archive()
    assert made is not None
    assert made.read_text() == "classes"
    assert class_data.make_archive() == made
    assert len(recorded) == 1
    assert not recorded[0].exists()
    assert not left.exists()
    assert not old.exists()
    assert archive_options(home)


def test_a_java_that_cannot_is_asked_once(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Path] = []
    monkeypatch.setattr(class_data, "ensure_java", lambda: home)
    monkeypatch.setattr(class_data, "_record", asked.append)
    assert class_data.make_archive() is None
    assert class_data.make_archive() is None
    assert len(asked) == 1
    assert archive_options(home) == ""


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_archive_has_the_classes_of_sessions_and_of_servers(tmp_path: Path) -> None:
    made = subprocess.run(
        [sys.executable, "-P", "-m", "stagecoach.infra.spark.class_data"],
        env={**os.environ, "XDG_CACHE_HOME": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=True,
    )
    (archive,) = (tmp_path / "stagecoach").glob("spark-*.jsa")
    assert f"Spark's classes: {archive}" in made.stdout
    names = (
        b"org/apache/spark/sql/classic/SparkSession",
        b"org/apache/spark/sql/connect/planner/SparkConnectPlanner",
    )
    with archive.open("rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as content:
        assert [name for name in names if content.find(name) < 0] == [], made.stdout


@pytest.mark.spark
def test_spark_maps_the_archive_of_this_machine(spark: SparkSession) -> None:
    archive = next((p for p in class_data._places(find_java()) if class_data._is_there(p)), None)
    if archive is None:
        pytest.skip("`python -m stagecoach.infra.spark.class_data` has made none here")
    handle = spark._jvm.java.lang.ProcessHandle.current()  # type: ignore[union-attr]
    assert str(archive) in Path(f"/proc/{handle.pid()}/maps").read_text()
