"""A project with packages of our names, first on `sys.path`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize(
    ("name", "statement"),
    [("assets", "import stagecoach"), ("planner", "import stagecoach"), ("infra", "import assets")],
)
def test_a_shadowed_name_is_told(tmp_path: Path, name: str, statement: str) -> None:
    (tmp_path / name).mkdir()
    (tmp_path / name / "__init__.py").write_text("")
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); {statement}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    last = done.stderr.splitlines()[-1]
    assert last.startswith(f"ImportError: Stagecoach needs its package '{name}' of ")
    assert f"finds another one first: {tmp_path / name}. Rename that package" in last


def test_a_folder_that_is_no_package_shadows_nothing(tmp_path: Path) -> None:
    (tmp_path / "assets").mkdir()
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import stagecoach\n"
        "assert 'assets' not in sys.modules and 'pyarrow' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
