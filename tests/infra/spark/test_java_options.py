"""Options of Spark's JVMs: before the user's, once, and only while a JVM is started."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from stagecoach.infra.spark.class_data import SUBMIT_VARIABLE
from stagecoach.infra.spark.java import ensure_java
from stagecoach.infra.spark.java_options import (
    COMPILE_LATER,
    java_options_set,
    set_java_options,
)


def options(home: Path, given: str | None = None) -> str:
    environment = {} if given is None else {SUBMIT_VARIABLE: given}
    set_java_options(environment, home)
    return environment[SUBMIT_VARIABLE]


def test_what_was_given_comes_last_and_nothing_comes_twice(tmp_path: Path) -> None:
    assert options(tmp_path) == COMPILE_LATER
    once = options(tmp_path, "-Da=b")
    assert once == f"{COMPILE_LATER} -Da=b"
    assert options(tmp_path, once) == once


@pytest.mark.parametrize("before", [None, "-Da=b"])
def test_the_environment_is_as_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: str | None
) -> None:
    monkeypatch.delenv(SUBMIT_VARIABLE, raising=False)
    if before is not None:
        monkeypatch.setenv(SUBMIT_VARIABLE, before)
    with pytest.raises(RuntimeError), java_options_set(tmp_path):
        assert os.environ[SUBMIT_VARIABLE].startswith(COMPILE_LATER)
        raise RuntimeError
    assert os.environ.get(SUBMIT_VARIABLE) == before


def test_this_java_has_all_of_them() -> None:
    java = ensure_java() / "bin" / "java"
    command = [str(java), *COMPILE_LATER.split(), "-XX:+PrintFlagsFinal", "-version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    flags = {line.split()[1]: line.split()[3] for line in done.stdout.splitlines() if " = " in line}
    for option in COMPILE_LATER.split()[1:]:
        name, value = option.removeprefix("-XX:").split("=")
        assert flags[name] == value


def test_a_java_without_them_starts_all_the_same() -> None:
    java = ensure_java() / "bin" / "java"
    unknown = COMPILE_LATER.replace("Tier4", "NoSuchTier")
    subprocess.run([str(java), *unknown.split(), "-version"], capture_output=True, check=True)
