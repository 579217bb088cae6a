"""A project with packages that are named like folders of our repository."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = """
import assets, infra, planner
from stagecoach.assets import Project
from stagecoach.infra.errors import ConfigError
from stagecoach.planner.types import DataType

assert (assets.NAME, planner.NAME, infra.NAME) == ("mine", "mine", "mine")
"""


def run(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=False
    )


def test_a_project_may_have_modules_of_our_folders_names(tmp_path: Path) -> None:
    (tmp_path / "assets.py").write_text("NAME = 'mine'\n")
    (tmp_path / "planner.py").write_text("NAME = 'mine'\n")
    (tmp_path / "infra").mkdir()
    (tmp_path / "infra" / "__init__.py").write_text("NAME = 'mine'\n")
    done = run(PROJECT, tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", ["planner", "infra", "assets"])
def test_a_folder_of_the_repository_is_no_package_of_its_own(name: str) -> None:
    # Under two names, classes would exist twice: isinstance and pickles would go wrong.
    done = run(f"import {name}.types", ROOT)
    assert done.stderr.splitlines()[-1].startswith(f"ImportError: import stagecoach.{name}: ")


def test_the_top_package_imports_nothing_heavy(tmp_path: Path) -> None:
    heavy = ("pyarrow", "pyspark", "dagster", "stagecoach.infra", "stagecoach.planner")
    done = run(f"import sys, stagecoach\nassert not set(sys.modules) & set({heavy!r})", tmp_path)
    assert done.returncode == 0, done.stderr
