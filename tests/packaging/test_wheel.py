"""The wheel: what is in it, and the first hour of its users as two pages of the documentation tell it.

The commands by which the first page installs it make the environment of all tests here.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from docs.tutorial_steps import CommandStep, Step, steps
from tests.private_cache import private_cache
from tests.share import in_test_all

ROOT = Path(__file__).parents[2]
LEARN = ROOT / "docs" / "learn"
NEW_PROJECT, OLD_PROJECT = LEARN / "first-project.md", LEARN / "existing-project.md"
INSTALLED_BY = "pip install "

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


@dataclass(frozen=True)
class Reader:
    """Somebody who does what pages tell, in one shell after the other.

    Args:
        folder: The folder of the first project.
        variables: Of the shell.
    """

    folder: Path
    variables: dict[str, str]

    @property
    def environment(self) -> Path:
        """The Python environment that the first page makes."""
        return self.folder / ".venv"

    def follow(self, wanted: list[Step], folder: Path) -> None:
        """Write files and run commands of a page."""
        for step in wanted:
            if isinstance(step, CommandStep):
                step.run(folder, self.variables)
            else:
                step.write(folder)


def install_steps() -> list[Step]:
    """The steps of the first page up to that by which the wheel is installed."""
    found = steps(NEW_PROJECT)
    commands = [step.command if isinstance(step, CommandStep) else "" for step in found]
    return found[: 1 + next(i for i, c in enumerate(commands) if c.startswith(INSTALLED_BY))]


@pytest.fixture(scope="module")
def reader(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    """A reader of the first page who has installed the wheel, and has nothing of this checkout.

    The packages that it depends on are those of this environment: a `.pth` file adds their folder,
    in which `.pth` files, such as that of the editable install, are not read.
    """
    home = tmp_path_factory.mktemp("home")
    (home / "stagecoach").mkdir()
    (home / "stagecoach" / "dist").symlink_to(wheel.parent)
    for folder in ("shop", "dagster"):
        (home / folder).mkdir()
    kept = {
        name: os.environ[name] for name in ("JAVA_HOME", "SPARK_LOCAL_IP") if name in os.environ
    }
    reader = Reader(
        home / "shop",
        {
            **kept,
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
            "HOME": str(home),
            "XDG_CACHE_HOME": str(private_cache(home)),
            "DAGSTER_HOME": str(home / "dagster"),  # which a project that is there has
            "LANG": "C.UTF-8",
            "PYTHONWARNINGS": "ignore",
            "STAGECOACH_MASTER": "local[2]",
            # No package is downloaded.
            "PIP_NO_DEPS": "1",
            "PIP_NO_INDEX": "1",
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        },
    )
    reader.follow(install_steps(), reader.folder)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    site = reader.environment / "lib" / version / "site-packages"
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    dagster = reader.environment / "bin" / "dagster"  # as pip would write it
    dagster.write_text(f"#!{dagster.with_name('python')}\nfrom dagster._cli import main\nmain()\n")
    dagster.chmod(0o755)
    yield reader
    stop = CommandStep(command="stagecoach warm --stop", output=(), fails=False)
    stop.run(reader.folder, reader.variables)


@pytest.fixture(scope="module")
def python(reader: Reader) -> Path:
    """Python of an environment with the wheel, and nothing of this checkout."""
    return reader.environment / "bin" / "python"


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
@pytest.mark.spark
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "page", [NEW_PROJECT, pytest.param(OLD_PROJECT, marks=in_test_all)], ids=lambda page: page.stem
)
def test_a_page_is_followed_from_the_wheel(reader: Reader, page: Path, tmp_path: Path) -> None:
    followed = steps(page)
    text = page.read_text(encoding="utf-8")
    assert sum(isinstance(step, CommandStep) for step in followed) == text.count("\n$ ") > 15
    if page == NEW_PROJECT:
        reader.follow(followed[len(install_steps()) :], reader.folder)
    else:
        reader.follow(followed, tmp_path)


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
