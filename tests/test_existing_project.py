"""The page about adding to a Dagster project holds: its files are written, its commands run."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from docs.tutorial_steps import CommandStep, steps
from tests.acceptance.processes import environment

PAGE = Path(__file__).parents[1] / "docs" / "learn" / "existing-project.md"


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_page(tmp_path: Path) -> None:
    programs = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    variables = environment(PATH=programs, PYTHONWARNINGS="ignore")
    commands = 0
    for step in steps(PAGE):
        if isinstance(step, CommandStep):
            step.run(tmp_path, variables)
            commands += 1
        else:
            step.write(tmp_path)
    assert commands == PAGE.read_text(encoding="utf-8").count("\n$ ") > 12
