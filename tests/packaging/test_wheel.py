"""The wheel, installed beside a project whose modules have the names of our folders."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

ROOT = Path(__file__).parents[2]

DEFINITIONS = """
import assets
from stagecoach import build_definitions

assert assets.NAME == "a module of the project"
defs = build_definitions(queries="queries", catalog="catalog.yaml", storage="storage")
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from the source distribution as `make dist` does."""
    source, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("dist")
    files = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout.split("\0")  # fmt: skip
    for name in filter(None, files):
        if not os.path.lexists(ROOT / name) or name.startswith("tests/"):
            continue
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, source / name, follow_symlinks=False)
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out)]
    done = subprocess.run(command, cwd=source, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(list(out.glob("*.tar.gz"))) == 1
    (found,) = out.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Python of an environment with the wheel, and nothing of this checkout.

    The packages it depends on are those of this environment: a `.pth` file adds their folder, in
    which `.pth` files, such as that of the editable install, are not read.
    """
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, symlinks=True, with_pip=True)
    python = folder / "bin" / "python"
    command = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    command += ["--no-deps", "--no-index", str(wheel)]
    subprocess.run(command, check=True)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    site = folder / "lib" / version / "site-packages"
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return python


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with an `assets.py`, a `planner.py` and an `infra/` of its own."""
    for name in ("assets.py", "planner.py", "infra/__init__.py"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text('NAME = "a module of the project"\n')
    (tmp_path / "definitions.py").write_text(DEFINITIONS)
    (tmp_path / "queries").mkdir()
    (tmp_path / "queries" / "sums.sql").write_text("SELECT k, sum(v) AS s FROM t GROUP BY k")
    table = pa.table({"k": [1, 2, 1, None], "v": [10, 20, 30, 40]})
    pq.write_table(table, tmp_path / "t.parquet")
    catalog = "tables:\n  t: {location: t.parquet, format: parquet}\n"
    (tmp_path / "catalog.yaml").write_text(catalog)
    return tmp_path


def run(python: Path, folder: Path, *arguments: str) -> str:
    # Neither PYTHONPATH nor a settings variable of this process reaches the environment under test.
    kept = {"HOME": str(folder), "PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
    kept |= {k: v for k, v in os.environ.items() if k in ("JAVA_HOME", "SPARK_LOCAL_IP")}
    done = subprocess.run(
        [python, *arguments], cwd=folder, env=kept, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_wheel_installs_one_name(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    tops = {name.split("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"stagecoach"}
    packages = {name.split("/")[1] for name in names if name.endswith("/__init__.py")}
    assert {"planner", "infra", "assets", "example"} <= packages
    assert "stagecoach/example/queries/q03.sql" in names
    assert "stagecoach/infra/spark/guard/PlanGuard.java" in names


def test_the_wheel_has_every_file_of_the_packages(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    expected = {
        f"stagecoach/{path.relative_to(ROOT / 'stagecoach')}"
        for folder in ("planner", "infra", "assets", "example", "")
        for path in (ROOT / "stagecoach" / folder).rglob("*.py")
    }
    assert len(expected) > 500
    assert not expected - names


@pytest.mark.slow
def test_a_project_is_started_from_the_wheel(python: Path, tmp_path: Path) -> None:
    run(python, tmp_path, "-m", "stagecoach", "init", "shop")
    template = ROOT / "stagecoach" / "scaffold" / "templates" / "project"
    expected = {path.relative_to(template) for path in template.rglob("*") if path.is_file()}
    made = {
        path.relative_to(tmp_path / "shop")
        for path in (tmp_path / "shop").rglob("*")
        if path.is_file()
    }
    kept = {path for path in expected if "__pycache__" not in path.parts}
    editor = {path for path in made if path.parts[0] == ".vscode"}  # made, not copied
    assert Path(".vscode/settings.json") in editor
    assert {path.with_name(path.name.lstrip(".")) for path in made - editor} == kept
    assert run(python, tmp_path / "shop", "-m", "stagecoach", "check") == "1 query, no problems\n"


@pytest.mark.slow
def test_a_query_runs_beside_modules_of_the_same_names(python: Path, project: Path) -> None:
    shown = run(python, project, "-m", "stagecoach", "query", "--catalog", "catalog.yaml",
                "--format", "csv", "queries/sums.sql")  # fmt: skip
    assert sorted(shown.splitlines()) == [",40", "1,40", "2,20", "k,s"]


@pytest.mark.slow
def test_dagster_validates_definitions_of_the_project(python: Path, project: Path) -> None:
    run(python, project, "-m", "dagster", "definitions", "validate", "-f", "definitions.py")


@pytest.mark.slow
def test_commands_name_the_extra_that_they_need(python: Path, tmp_path: Path) -> None:
    code = (
        "import importlib.util, sys\n"
        "find = importlib.util.find_spec\n"
        "importlib.util.find_spec = lambda n, *a: None if n == 'dagster_webserver' else find(n, *a)\n"
        "sys.argv = ['stagecoach', 'ui']\n"
        "from stagecoach.__main__ import main\n"
        "try: main()\n"
        "except SystemExit as end: assert end.code != 0, end.code\n"
    )
    done = subprocess.run(
        [python, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert "the web UI needs the extra 'ui': pip install 'stagecoach[ui]'" in done.stderr
