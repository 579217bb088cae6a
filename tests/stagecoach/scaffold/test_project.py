"""What `stagecoach init` writes, and that it works without a change."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest
import yaml
from click.testing import CliRunner, Result
from dagster.components import load_from_defs_folder

from stagecoach.assets import build_definitions
from stagecoach.commands.main import cli
from tests.share import in_test_all

QUERY = "pipelines/queries/revenue_by_region.sql"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def call(*arguments: str) -> Result:
    return CliRunner().invoke(cli, arguments)


def files(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): path.read_text()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_a_new_project_is_complete(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = call("init", "My Shop")
    assert result.exit_code == 0, result.output
    assert "cd My Shop" in result.output
    made = files(here / "My Shop")
    assert {QUERY, "pyproject.toml", "workspace.yaml", ".gitignore", "README.md"} < set(made)
    assert ".github/workflows/stagecoach.yml" in made
    assert 'name = "my-shop"' in made["pyproject.toml"]
    assert "$ stagecoach check" in made["README.md"]
    (location,) = yaml.safe_load(made["workspace.yaml"])["load_from"]
    assert location["python_module"]["location_name"] == "my-shop"
    assert "hashFiles('pipelines/plans/*.json')" in made[".github/workflows/stagecoach.yml"]
    monkeypatch.chdir(here / "My Shop")
    checked = call("check")
    assert (checked.exit_code, checked.output) == (0, "1 query, no problems\n")
    # As a process: what DuckDB has to say when it ends would be there, too.
    command = [sys.executable, "-m", "stagecoach", "test"]
    tested = subprocess.run(command, capture_output=True, text=True, check=False)
    assert tested.returncode == 0, tested.stderr
    assert re.fullmatch(r"2 passed in [\d.]+ s\n", tested.stderr)


def test_what_is_there_stays(here: Path) -> None:
    call("init")
    (here / QUERY).write_text("SELECT 1 AS one")
    (here / "pipelines" / "catalog.yaml").unlink()
    again = call("init")
    assert "already there, left as it is" in again.output
    assert "1 file(s) written" in again.output
    assert (here / QUERY).read_text() == "SELECT 1 AS one"
    assert "nothing to do" in call("init").output


def test_a_project_of_python_gets_the_queries_alone(here: Path) -> None:
    (here / "pyproject.toml").write_text('[project]\nname = "mine"\n')
    (here / "assets.py").write_text("")
    result = call("init")
    assert result.exit_code == 0, result.output
    made = files(here)
    assert {name.split("/")[0] for name in made} == {
        "pyproject.toml",
        "assets.py",
        "pipelines",
        "data",
    }
    assert made["pyproject.toml"] == '[project]\nname = "mine"\n'
    assert "merge the definitions into yours" in result.output


def test_a_file_that_is_no_toml(here: Path) -> None:
    (here / "pyproject.toml").write_text("[project")
    result = call("init")
    assert result.exit_code == 2
    assert "pyproject.toml cannot be read" in result.output
    assert set(files(here)) == {"pyproject.toml"}


def test_a_folder_that_is_a_file(here: Path) -> None:
    (here / "shop").write_text("")
    result = call("init", "shop")
    assert result.exit_code == 2
    assert "shop" in result.output


@pytest.fixture
def forgets_modules() -> Iterator[None]:
    yield
    for name in [name for name in sys.modules if name.split(".")[0] == "scaffolded"]:
        del sys.modules[name]


# Of Dagster, which makes definitions of checks anew.
@pytest.mark.filterwarnings("ignore:Parameter `execution_type`")
@pytest.mark.usefixtures("forgets_modules")
@pytest.mark.parametrize("source", ["src", "."])
def test_a_project_of_dg_gets_a_component(
    here: Path, monkeypatch: pytest.MonkeyPatch, source: str
) -> None:
    package = here / source / "scaffolded"
    (package / "defs").mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "defs" / "__init__.py").touch()
    (here / "pyproject.toml").write_text(
        '[tool.dg]\ndirectory_type = "project"\n[tool.dg.project]\nroot_module = "scaffolded"\n'
    )
    result = call("init")
    assert result.exit_code == 0, result.output
    assert "dg check defs" in result.output
    monkeypatch.syspath_prepend(here / source)
    defs = load_from_defs_folder(path_within_project=package)
    (asset,) = defs.resolve_all_asset_specs()
    assert asset.key == dg.AssetKey("hello_stagecoach")
    storage = yaml.safe_load((package / "defs" / "stagecoach" / "defs.yaml").read_text())
    root = package / "defs" / "stagecoach" / storage["attributes"]["storage"]
    assert root.resolve() == (here / ".stagecoach" / "storage").resolve()


def test_dagster_loads_a_new_project(here: Path) -> None:
    call("init")
    definitions = build_definitions(
        queries=here / "pipelines" / "queries",
        catalog=here / "pipelines" / "catalog.yaml",
        storage=here / "storage",
    )
    dg.Definitions.validate_loadable(definitions)
    assert definitions.resolve_job_def("run_revenue_by_region")


@pytest.mark.slow
@in_test_all
def test_the_first_query_and_a_table_of_ones_own(here: Path) -> None:
    """In processes of their own, as a user runs them."""

    def run(*arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "stagecoach", *arguments],
            cwd=here, capture_output=True, text=True, check=False, timeout=240,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    run("init")
    (here / "events.jsonl").write_text('{"id": 1, "what": {"a b": "x"}}\n{"id": 2}\n')
    assert "table events added (json)" in run("tables", "add", "events.jsonl")
    catalog = yaml.safe_load((here / "pipelines" / "catalog.yaml").read_text())
    assert set(catalog["tables"]) == {"orders", "shops", "events"}
    assert catalog["tables"]["events"]["columns"]["id"] == "BIGINT"
    (here / "ids.sql").write_text("SELECT id, what.`a b` AS v FROM events ORDER BY id")
    shown = run("query", QUERY, "ids.sql", "--format", "csv", "--master", "local[1]")
    assert "2026-01-01,north,6,366.00" in shown
    assert "1,x\n2," in shown
