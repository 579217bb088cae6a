"""`check` and `compile` of a project whose queries read each other's tables."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from stagecoach.assets.definitions.location import build_definitions
from stagecoach.commands.main import cli

QUERIES = Path("pipelines/queries")
DAILY = "/*\nchecks: [{not_null: [born]}]\n*/\nSELECT born, count(*) AS n FROM pets GROUP BY born"
TREND = "SELECT born, n * 2 AS twice\nFROM daily"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A catalog with one table and a project of two queries, the first in the alphabet last."""
    monkeypatch.chdir(tmp_path)
    table = pa.table({"id": pa.array([1], pa.int32()), "born": pa.array([1], pa.date32())})
    (tmp_path / "pets").mkdir()
    pq.write_table(table, tmp_path / "pets" / "a.parquet")
    (tmp_path / "catalog.yaml").write_text("tables: {pets: {location: pets}, gone: {location: x}}")
    write(daily=DAILY, a_trend=TREND)
    return tmp_path


def write(**files: str) -> None:
    QUERIES.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (QUERIES / f"{name}.sql").write_text(text)


def check(*args: str) -> Result:
    return CliRunner().invoke(cli, ["check", *args, "--catalog", "catalog.yaml"])


def compiled(*args: str) -> Result:
    return CliRunner().invoke(cli, ["compile", *args, "--catalog", "catalog.yaml"])


def test_a_reader_is_checked_over_what_the_others_make(project: Path) -> None:
    assert check().stdout == "2 queries, no problems\n"
    write(b="SELECT twicee FROM a_trend", c="SELECT * FROM dailly")
    lines = check().stdout.splitlines()
    assert [line.split(": ")[0] for line in lines] == [
        "pipelines/queries/b.sql:1:8",
        "pipelines/queries/c.sql:1:15",
    ]
    assert "did you mean 'twice'?" in lines[0]
    assert "did you mean 'daily'?" in lines[1]
    # One file alone knows the tables of all others, planned or not.
    assert check(str(QUERIES / "a_trend.sql")).stdout == "1 query, no problems\n"
    alone = check(str(QUERIES / "c.sql"))
    assert "did you mean 'daily'?" in alone.stdout
    assert alone.stdout.count("\n") == 1


def test_what_reads_a_query_with_problems_is_told_once(project: Path) -> None:
    write(
        daily="SELECT nope FROM pets",
        front="-- ownrs: [me]\nSELECT 1 AS x",
        b="SELECT * FROM front",
    )
    lines = check().stdout.splitlines()
    assert [line.split(":")[0] for line in lines] == [
        "pipelines/queries/daily.sql",
        "pipelines/queries/front.sql",
    ]
    (line,) = check(str(QUERIES / "a_trend.sql")).stdout.splitlines()
    assert line.startswith("pipelines/queries/a_trend.sql:2:6: table 'daily' cannot be planned: ")
    assert "daily.sql:1:8: [UNRESOLVED_COLUMN.WITH_SUGGESTION] column 'nope' not found" in line
    (line,) = check(str(QUERIES / "b.sql")).stdout.splitlines()
    assert "the front matter of pipelines/queries/front.sql has mistakes" in line


def test_a_circle_is_told_at_each_of_its_places(project: Path) -> None:
    write(
        daily="SELECT *\nFROM pets\nJOIN a_trend USING (born)",
        own="SELECT * FROM own",
        z="SELECT * FROM daily",
    )
    for result in (check(), check("--no-tables")):
        lines = result.stdout.splitlines()
        places = [line.split(": ")[0].removeprefix("pipelines/queries/") for line in lines]
        assert places == ["a_trend.sql:2:6", "daily.sql:3:6", "own.sql:1:15"]
        assert "a_trend (pipelines/queries/a_trend.sql) ← daily" in lines[0]
        assert "reads its own output table 'own'" in lines[2]


def test_a_result_that_cannot_be_published(project: Path) -> None:
    write(twice="SELECT id, id FROM pets")
    assert "the result has the columns 'id' and 'id'" in check().stdout


def test_compiled_plans_come_with_those_of_checks(project: Path) -> None:
    done = compiled()
    assert done.exit_code == 0, done.output
    assert [line.split(": ")[0] for line in done.stdout.splitlines()] == [
        "pipelines/plans/daily.json",
        "pipelines/plans/daily.not_null_born.json",
        "pipelines/plans/a_trend.json",
    ]
    fresh = compiled("--check")
    assert (fresh.exit_code, fresh.stdout.count(": fresh\n")) == (0, 3)
    one = compiled(str(QUERIES / "a_trend.sql"), "--check")
    assert one.stdout == "pipelines/plans/a_trend.json: fresh\n"
    # Another type of a column makes the reader's plan stale, too.
    write(daily=DAILY.replace("count(*) AS n", "cast(count(*) AS int) AS n"))
    stale = compiled("--check")
    assert stale.exit_code == 1
    assert "column 'n' of table 'daily' was bigint and is int" in stale.stdout
    for args in ((), (str(QUERIES / "a_trend.sql"),), (str(QUERIES / "daily.sql"),)):
        (line,) = check(*args).stdout.splitlines()
        place = "daily.sql:1:1" if "daily" in str(args) else "a_trend.sql:2:6"
        assert line.startswith(f"pipelines/queries/{place}: column 'n' of table 'daily' was bigint")
    assert compiled().exit_code == 0
    assert compiled("--check").exit_code == check().exit_code == 0
    write(daily=DAILY.replace("checks", "tags: {}\nchecks").replace("[born]", "[n]"))
    assert "daily.not_null_born.json: stale" in compiled("--check").stdout


def test_mistakes_of_one_query_stop_its_readers_only(project: Path) -> None:
    write(daily="SELECT nope FROM pets", other="SELECT id FROM pets", circle="SELECT * FROM circle")
    done = compiled()
    assert done.exit_code == 2
    assert done.stdout == "pipelines/plans/other.json: 1 stage\n"
    assert "column 'nope' not found" in done.stderr
    assert (
        "a_trend.sql reads the table 'daily': pipelines/queries/daily.sql has no plan"
        in done.stderr
    )
    assert "circle.sql: the query reads its own output table 'circle'" in done.stderr
    write(daily="-- ownrs: [me]\nSELECT 1 AS n")
    assert "daily.sql:1:4: unknown key 'ownrs'" in compiled().stderr


def test_definitions_load_from_plans_without_a_table(project: Path) -> None:
    assert compiled().exit_code == 0
    (project / "pets" / "a.parquet").unlink()
    arguments = {"queries": QUERIES, "catalog": "catalog.yaml", "storage": project / "st"}
    found = build_definitions(**arguments, plans="pipelines/plans").resolve_asset_graph()
    names = {key.to_user_string() for key in found.get_all_asset_keys()}
    assert {"daily", "a_trend", "pets"} <= names
    assert [key.name for key in found.asset_check_keys] == ["not_null_born"]
    assert not (project / "st").exists()
