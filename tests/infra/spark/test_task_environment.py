"""What a task says of a machine that lacks something, or has another version of it."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark import cloudpickle

from benchmarks.cluster.environment import make_environment
from stagecoach.infra.spark.code_archive import code_zip
from stagecoach.infra.spark.connect_conf import code_digest
from stagecoach.infra.spark.executor_packages import (
    COMPARED_PACKAGES,
    EXECUTOR_PACKAGES,
    executor_requirements,
    installed,
)
from stagecoach.infra.spark.task_environment import DIGITS, EnvironmentCheck, check_against

VERSIONS = {name: installed(name) or "" for name in COMPARED_PACKAGES}
CODE = code_digest()[:DIGITS]


def checked(check: EnvironmentCheck, python: Path, tmp_path: Path, *path: Path) -> str:
    """What the check says in a process of its own, which finds pickle and nothing of ours."""
    file = tmp_path / "check.pickle"
    file.write_bytes(cloudpickle.dumps(check))
    program = f"import pickle, sys; print(pickle.load(open({str(file)!r}, 'rb'))())"
    import pyspark

    folders = [*path, Path(pyspark.__file__).parents[1] / "none"]
    done = subprocess.run(
        [str(python), "-c", program],
        env={"PYTHONPATH": ":".join(map(str, folders))},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An interpreter that has what executors need, and pyspark for its pickle."""
    return make_environment(tmp_path_factory.mktemp("executor"), (*EXECUTOR_PACKAGES, "pyspark"))


def test_an_executor_as_it_should_be(python: Path, tmp_path: Path) -> None:
    assert checked(check_against(VERSIONS, CODE), python, tmp_path, code_zip()) == "None"


def test_it_has_neither_our_code_nor_dagster(python: Path, tmp_path: Path) -> None:
    program = "import duckdb, pyarrow\nfor name in ('stagecoach', 'dagster'):\n    try: __import__(name)\n    except ImportError: print(name)"
    done = subprocess.run(
        [str(python), "-c", program], cwd=tmp_path, env={}, capture_output=True, text=True
    )
    assert done.stdout.split() == ["stagecoach", "dagster"], done.stderr


@pytest.mark.parametrize("name", COMPARED_PACKAGES)
def test_another_version_is_named_with_both(name: str, python: Path, tmp_path: Path) -> None:
    check = check_against({**VERSIONS, name: "0.1.2"}, CODE)
    said = checked(check, python, tmp_path, code_zip())
    assert f"an executor has {name} {VERSIONS[name]}, the driver has 0.1.2" in said
    assert f"machine {socket.gethostname()}, Python {python}" in said
    assert f"pip install {' '.join(executor_requirements())}" in said


def test_a_package_that_is_missing_is_named(tmp_path: Path) -> None:
    packages = [name for name in EXECUTOR_PACKAGES if name != "duckdb"]
    python = make_environment(tmp_path / "less", (*packages, "pyspark"))
    said = checked(check_against(VERSIONS, CODE), python, tmp_path, code_zip())
    assert said.startswith("an executor lacks duckdb (machine ")
    assert f"duckdb=={VERSIONS['duckdb']}" in said


def test_code_that_has_not_arrived(python: Path, tmp_path: Path) -> None:
    said = checked(check_against(VERSIONS, CODE), python, tmp_path)
    assert said.startswith("an executor finds Stagecoach's code nowhere, not in the archive")


def test_code_of_another_version(python: Path, tmp_path: Path) -> None:
    package = tmp_path / "old" / "stagecoach"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    said = checked(check_against(VERSIONS, CODE), python, tmp_path, tmp_path / "old", code_zip())
    assert f"finds Stagecoach's code in {package}/__init__.py, not in the archive" in said
    assert CODE in said


def test_another_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "version_info", type("V", (), {"major": 3, "minor": 99})())
    check = check_against(VERSIONS, CODE)
    monkeypatch.undo()
    said = check()
    assert said is not None
    assert "has python 3.11, the driver has 3.99" in said or "the driver has 3.99" in said
    assert "use the same on both" in said
