"""What a new project has for VS Code."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from click.testing import CliRunner

from stagecoach.assets.project.front_matter import KNOWN_KEYS
from stagecoach.commands.main import cli
from stagecoach.infra.catalog.catalog import load_catalog
from stagecoach.infra.catalog.schema import catalog_schema
from stagecoach.planner.errors import CatalogError

ROOT = Path(__file__).parents[3]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    result = CliRunner().invoke(cli, ["init", str(tmp_path / "shop")])
    assert result.exit_code == 0, result.output
    monkeypatch.chdir(tmp_path / "shop")
    return tmp_path / "shop"


def read(path: Path) -> Any:
    return json.loads(path.read_text())


def test_the_files_of_a_project_fit_their_schemas(project: Path) -> None:
    for schema, (pattern,) in read(project / ".vscode/settings.json")["yaml.schemas"].items():
        validator = jsonschema.Draft202012Validator(read(project / schema))
        files = list(project.glob(pattern))
        assert files
        for file in files:
            validator.validate(yaml.safe_load(file.read_text()))


@pytest.mark.parametrize(
    ("table", "wrong"),
    [
        ("{location: t}", False),
        ("{location: t, columns: {a: int}}", False),
        ("{location: t, format: csv, options: {header: true}, columns: {a: int}}", False),
        ("{kind: deduplicated, location: t, primary_key: [a], time_column: b}", False),
        ("{location: t, format: delta}", False),
        ("{location: t, options: {header: true}}", True),
        ("{location: t, primary_key: [a]}", True),
        ("{location: t, format: cvs}", True),
        ("{kind: deduplicated, location: t, format: csv}", True),
        ("{locaton: t}", True),
    ],
)
def test_the_schema_of_catalogs_knows_the_keys_of_each_format(
    tmp_path: Path, table: str, wrong: bool
) -> None:
    text = f"tables: {{t: {table}}}"
    validator = jsonschema.Draft202012Validator(catalog_schema())
    assert bool(list(validator.iter_errors(yaml.safe_load(text)))) is wrong
    # What the loader says about the keys is the same.
    (tmp_path / "catalog.yaml").write_text(text)
    try:
        load_catalog(tmp_path / "catalog.yaml")
    except CatalogError as error:
        assert wrong, error


def test_front_matter_has_snippets(project: Path) -> None:
    snippets = read(project / ".vscode/stagecoach.code-snippets").values()
    assert {s["prefix"] for s in snippets} == {"stagecoach", *KNOWN_KEYS}
    assert {s["scope"] for s in snippets} == {"sql"}
    assert all(len(s["description"]) > 10 for s in snippets)


def test_the_task_finds_the_problems_that_check_prints(project: Path) -> None:
    (task,) = read(project / ".vscode/tasks.json")["tasks"]
    (project / "pipelines/queries/bad.sql").write_text("-- descripton: x\nSELECT 1 AS one")
    done = CliRunner().invoke(cli, task["command"].split()[1:])
    pattern = task["problemMatcher"]["pattern"]["regexp"]
    found = [m.groups() for line in done.output.splitlines() if (m := re.match(pattern, line))]
    assert found[0][:2] == ("pipelines/queries/bad.sql", "1")
    assert "did you mean 'description'" in found[0][3]
