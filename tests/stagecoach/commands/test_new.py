"""`stagecoach new`: a file that is valid as it stands and shows every key, and overwrites nothing."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from stagecoach.assets.project.front_matter import KNOWN_KEYS, parse_front_matter
from stagecoach.assets.project.front_matter.checks import CHECKS
from stagecoach.commands.main import cli
from stagecoach.commands.query_template import KINDS, Template


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a catalog and a table."""
    monkeypatch.chdir(tmp_path)
    table = pa.table(
        {
            "odd name": pa.array([1], pa.int32()),
            "kind": ["a"],
            "born": pa.array([1], pa.date32()),
            "seen": pa.array([1], pa.timestamp("us", "UTC")),
        }
    )
    (tmp_path / "pets").mkdir()
    pq.write_table(table, tmp_path / "pets" / "a.parquet")
    (tmp_path / "catalog.yaml").write_text("tables: {pets: {location: pets}}")
    return tmp_path


def run(*args: str) -> Result:
    return CliRunner().invoke(cli, [*args, "--catalog", "catalog.yaml"])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("table", ["", "pets"])
def test_what_is_written_has_no_problems(kind: str, table: str) -> None:
    options = [] if kind == "none" else [f"--{kind}"]
    options += ["--table", table] if table else []
    result = run("new", "fresh", *options)
    assert result.exit_code == 0, result.output
    path = Path("pipelines/queries/fresh.sql")
    assert result.stdout.startswith(f"{path}: written; ")
    checked = run("check")
    assert checked.exit_code == 0, f"{checked.output}\n{path.read_text()}"
    found = parse_front_matter(path.read_text())
    assert (found.partitions.by if found.partitions else "none") == kind


def test_two_partitionings_are_refused() -> None:
    result = run("new", "fresh", "--weekly", "--daily")
    assert result.exit_code == 2
    assert "--daily and --weekly cannot be used together" in result.output
    assert not Path("pipelines/queries/fresh.sql").exists()


@pytest.mark.parametrize("kind", KINDS)
def test_all_keys_are_explained_and_right_when_used(kind: str) -> None:
    text = Template(name="fresh", kind=kind).text
    lines = [line for line in text.splitlines() if line.startswith("--")]
    words = {line.split(":")[0].strip("-# ") for line in lines}
    assert set(KNOWN_KEYS) <= words
    assert set(CHECKS) <= words
    # `# key: …` is taken into use; two triggers exclude each other.
    used = [
        re.sub(r"^(-- *)# ((?:  )*(?:- )?(?!automation|Or)\w+:( |$))", r"\1\2", x) for x in lines
    ]
    found = parse_front_matter("\n".join([*used, "SELECT 1"]), "fresh.sql")
    assert set(KNOWN_KEYS) - found.model_fields_set == {"automation"}
    assert {check.kind for check in found.checks} == set(CHECKS)


def test_nothing_is_overwritten() -> None:
    assert run("new", "fresh").exit_code == 0
    path = Path("pipelines/queries/fresh.sql")
    path.write_text("mine")
    for name in ("fresh", "FRESH", "fresh.sql"):
        result = run("new", name)
        assert result.exit_code == 2
        assert "already exists and is not changed" in result.stderr
    assert path.read_text() == "mine"


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["a-b"], "'a-b' cannot be the name of an asset; use letters"),
        (["a__b"], "'a__b' contains '__'"),
        (["../x"], "cannot be the name"),
        (["Pets"], "'pets' is a table of catalog.yaml; give the query another name"),
        (["fresh", "--table", "pet"], "did you mean 'pets'?"),
    ],
)
def test_what_is_refused(args: list[str], words: str) -> None:
    result = run("new", *args)
    assert result.exit_code == 2
    assert words in result.stderr
    assert not list(Path().rglob("*.sql"))


def test_another_folder() -> None:
    assert run("new", "fresh", "--daily", "--folder", "queries/sales").exit_code == 0
    assert run("check", "queries").exit_code == 0


def test_a_fresh_folder_gets_a_catalog(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path_factory.mktemp("fresh"))
    done = CliRunner().invoke(cli, ["new", "rev"])
    assert done.output.splitlines() == [
        "pipelines/catalog.yaml: written; `stagecoach tables add PATH` adds a table to it",
        "pipelines/queries/rev.sql: written; edit it, then run `stagecoach check "
        "pipelines/queries/rev.sql`",
    ]
    checked = CliRunner().invoke(cli, ["check", "pipelines/queries/rev.sql"])
    assert checked.output == "1 query, no problems\n"
    Path("pipelines/catalog.yaml").write_text("tables: {}\n")
    assert "catalog.yaml" not in CliRunner().invoke(cli, ["new", "other"]).output
