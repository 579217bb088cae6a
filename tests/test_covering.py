"""`make test-for FILE=…` finds tests for every module."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.covering import ROOT, covering, module_of, modules


def names(module: str) -> set[str]:
    return {path.name for path in covering(module)}


def test_files_have_the_names_of_imports() -> None:
    assert module_of(str(ROOT / "planner/types.py")) == "stagecoach.planner.types"
    assert module_of(str(ROOT / "infra/__init__.py")) == "stagecoach.infra"
    assert module_of(str(ROOT / "stagecoach/commands/ui.py")) == "stagecoach.commands.ui"
    with pytest.raises(ValueError, match="not a Python file of planner"):
        module_of(str(ROOT / "pyproject.toml"))


def test_tests_that_import_a_module_cover_it() -> None:
    assert "test_layering.py" not in names("stagecoach.planner.types")
    assert "test_error_places.py" in names("stagecoach.planner.types")


def test_helpers_of_tests_pass_on_what_they_import() -> None:
    # tests/planner/tpch.py imports the planner for those who import it.
    assert "test_golden_plans.py" in names("stagecoach.planner.planning")


def test_every_module_is_covered() -> None:
    found = {module_of(str(path)) for path in modules() if path.name != "__init__.py"}
    assert len(found) > 400
    assert not sorted(module for module in found if not covering(module))


def test_a_file_that_is_not_there_is_told() -> None:
    command = [sys.executable, "-m", "tests.covering", "README.md"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "README.md is not a Python file of planner, infra, assets, stagecoach" in done.stderr
