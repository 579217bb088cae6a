"""The component in a project of `dg`, by `dg` itself."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

PYPROJECT = """
[project]
name = "shop"
version = "0.1.0"

[tool.dg]
directory_type = "project"

[tool.dg.project]
root_module = "shop"
"""
DEFINITIONS = """
from pathlib import Path

from dagster import definitions, load_from_defs_folder


@definitions
def defs():
    return load_from_defs_folder(path_within_project=Path(__file__).parent)
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    package = tmp_path / "src" / "shop"
    (package / "defs").mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "definitions.py").write_text(DEFINITIONS)
    (tmp_path / "pyproject.toml").write_text(PYPROJECT)
    return tmp_path


def dg(project: Path, *arguments: str) -> str:
    tool = Path(sys.executable).with_name("dg")
    environment = {
        **os.environ,
        "PATH": f"{tool.parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(project / "src"),
        "DG_CLI_CONFIG": str(project / "dg.toml"),
        "DAGSTER_TELEMETRY_ENABLED": "false",
    }
    done = subprocess.run(
        [tool, *arguments],
        cwd=project,
        env=environment,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_scaffolded_component_is_checked_and_listed(project: Path) -> None:
    dg(project, "scaffold", "defs", "stagecoach.StagecoachProject", "sales")
    folder = project / "src" / "shop" / "defs" / "sales"
    made = {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()}
    assert made == {"defs.yaml", "catalog.yaml", "queries/hello_stagecoach.sql"}
    assert "storage: ../../../../.stagecoach/storage" in (folder / "defs.yaml").read_text()
    assert "loaded successfully" in dg(project, "check", "defs")
    listed = json.loads(dg(project, "list", "defs", "--json"))
    assert [asset["asset_key"] for asset in listed["assets"]] == ["hello_stagecoach"]
