"""`stagecoach check`: every mistake of a project as FILE:LINE:COLUMN, without running anything."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from stagecoach.assets.definitions.location import build_definitions
from stagecoach.assets.plans.query_problems import check_query
from stagecoach.assets.project.front_matter import parse_front_matter
from stagecoach.assets.project.queries import ProjectError, Query
from stagecoach.commands.main import cli
from stagecoach.planner.catalog import MappingCatalog, TableInfo
from stagecoach.planner.types import Field, parse_type

DAILY = "partitions: {by: daily, start: 2024-01-01, column: born}"
WINDOW = "born >= :partition_start AND born < :partition_end"
GOOD = f"""/*
description: Pets by day
{DAILY}
parameters: {{least: 1}}
checks:
  - not_null: [born]
  - no_rows: {{name: none, sql: SELECT * FROM good WHERE id < 0 AND born = :partition_start}}
*/
SELECT id, born FROM pets WHERE {WINDOW} AND id >= :least
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a catalog, a table and a query."""
    monkeypatch.chdir(tmp_path)
    table = pa.table({"id": pa.array([1], pa.int32()), "born": pa.array([1], pa.date32())})
    (tmp_path / "pets").mkdir()
    pq.write_table(table, tmp_path / "pets" / "a.parquet")
    (tmp_path / "catalog.yaml").write_text("tables: {pets: {location: pets}, gone: {location: x}}")
    write(good=GOOD)
    return tmp_path


def write(**files: str) -> None:
    folder = Path("pipelines/queries")
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / f"{name}.sql").write_text(text)


def run(*args: str) -> Result:
    return CliRunner().invoke(cli, ["check", *args, "--catalog", "catalog.yaml"])


def test_no_problems(project: Path) -> None:
    result = run()
    assert (result.exit_code, result.stdout) == (0, "1 query, no problems\n")


def test_every_problem_of_every_file_is_a_line(project: Path) -> None:
    write(
        keys="-- ownrs: [me]\n-- pool: a b\nSELECT (1 AS one",
        syntax="-- pool: a\nSELECT 1 +\nFROM",
        name__x="SELECT 1 AS one",
        Pets="SELECT 1 AS one",
        columns="-- checks:\n-- - unique: [oen]\nSELECT 1 AS one",
        sql="SELECT idd\nFROM pets",
        table="SELECT * FROM nothing",
        data="SELECT * FROM gone",
    )
    result = run()
    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    places = [line.split(": ", 1)[0].removeprefix("pipelines/queries/") for line in lines]
    assert places == [
        "Pets.sql:1:1", "columns.sql:2:15", "data.sql:1:1", "keys.sql:1:4", "keys.sql:2:10", "keys.sql:3:14",
        "name__x.sql:1:1", "sql.sql:1:8", "syntax.sql:3:1", "table.sql:1:15",
    ]  # fmt: skip
    for words in (
        "is also used by the table 'pets'",
        "'oen' is not in the result; did you mean 'one'?",
        "a table cannot be read: table 'gone'",
        "unknown key 'ownrs'; did you mean 'owners'?",
        "contains '__'",
        "column 'idd' not found; did you mean 'id'?",
        "syntax error",
        "'nothing' is not in the catalog",
    ):
        assert words in result.stdout
    assert result.stderr.splitlines()[-2:] == [
        "10 problems in 8 of 9 queries",
        "to check without the tables' data, use --no-tables",
    ]


@pytest.mark.parametrize(
    ("sql", "place", "words"),
    [
        ("SELECT :a AS a", "1:8", "':a' is not declared; add 'parameters: {a: …}'"),
        ("-- parameters: {limt: 1}\nSELECT :limit AS a", "2:8", "did you mean 'limt'?"),
        ("-- parameters: {a: 1, b: 2}\nSELECT :a AS a", "1:23", "'b' is declared and not used"),
        ("SELECT :partition_start AS a", "1:8", "needs the key 'partitions'"),
        ("SELECT ? AS a", "1:8", "'?' has no declared type; write :name"),
        (f"-- {DAILY}\nSELECT born FROM pets", "1:4", "every partition would hold the same rows"),
        (
            f"-- {DAILY}\n-- backfill: single_run\nSELECT born, :partition_key AS k FROM pets "
            f"WHERE {WINDOW}",
            "2:14",
            ":partition_key is one key",
        ),
        (
            "-- partitions: {by: static, keys: [a], column: k}\nSELECT :partition_end AS k",
            "2:8",
            "a static partition has :partition_key",
        ),
        (
            "-- partitions: {by: daily, start: 2024-01-01, column: id}\n"
            f"SELECT id FROM pets WHERE {WINDOW}",
            "1:55",
            "'id' is int, not a date or timestamp",
        ),
        (
            f"-- {DAILY}\nSELECT id FROM pets WHERE {WINDOW}",
            "1:55",
            "column 'born' is not in the result",
        ),
        (
            "-- checks: [{no_rows: {name: n, sql: SELECT nme FROM one}}]\nSELECT 1 AS name",
            "1:38",
            "check 'n': [UNRESOLVED_COLUMN.WITH_SUGGESTION] column 'nme' not found; did you mean 'name'?",
        ),
        (
            "-- checks: [{no_rows: {name: n, sql: DROP TABLE x}}]\nSELECT 1 AS name",
            "1:38",
            "check 'n': ",
        ),
        ("-- output: {table: good}\nSELECT 1 AS a", "1:20", "has the same name as the query"),
        ("-- output: {table: pets}\nSELECT 1 AS a", "1:20", "a table of the catalog, 'pets'"),
    ],
)
def test_one_problem(project: Path, sql: str, place: str, words: str) -> None:
    write(one=sql)
    result = run("pipelines/queries/one.sql")
    assert result.exit_code == 1, result.output
    (line,) = result.stdout.splitlines()
    assert line.startswith(f"pipelines/queries/one.sql:{place}: ")
    assert words in line


def test_files_are_checked_beside_the_others_of_the_project(project: Path) -> None:
    (project / "pipelines" / "queries" / "sub").mkdir()
    twin = "pipelines/queries/sub/good.sql"
    Path(twin).write_text("SELECT 1 AS one")
    write(bad="SELECT")
    result = run(str(project / twin))
    assert "the name 'good' is also used by" in result.stdout
    assert "bad.sql" not in result.output
    write(other="SELECT 1 AS one")
    assert run("pipelines/queries/other.sql").exit_code == 0
    Path("elsewhere.sql").write_text("SELECT 1 AS one")
    assert run("elsewhere.sql").stdout == "1 query, no problems\n"


def test_without_tables(project: Path) -> None:
    write(data="SELECT * FROM gone", undeclared="SELECT :a FROM gone")
    result = run("--no-tables")
    assert result.stdout.count("\n") == 1
    assert "undeclared.sql:1:8: parameter ':a'" in result.stdout


def test_what_cannot_be_checked(project: Path) -> None:
    for args, words in (
        (["nowhere"], "there is no file or folder nowhere"),
        (["pets"], "there are no .sql files in pets"),
    ):
        result = run(*args)
        assert result.exit_code == 2
        assert words in result.stderr
    Path("pipelines/queries/bytes.sql").write_bytes(b"SELECT '\xff'")
    assert "bytes.sql:1:1: 'utf-8' codec" in run().stdout


def test_the_schema_is_printed(project: Path) -> None:
    result = CliRunner().invoke(cli, ["check", "--schema"])
    assert result.exit_code == 0
    assert "front_matter" not in result.stdout
    assert "partitions" in json.loads(result.stdout)["properties"]


def test_the_catalog_may_be_any() -> None:
    """The tables of earlier queries can be given beside those of the catalog file."""
    made = TableInfo(name="made", columns=(Field("x", parse_type("int")),))
    query = Query(name="q", sql="SELECT x FROM made")
    assert check_query(query, MappingCatalog([made])).problems == ()
    (problem,) = check_query(query, MappingCatalog([])).problems
    assert str(problem).startswith("query 'q':1:15: ")


def test_definitions_refuse_what_the_check_refuses(project: Path) -> None:
    write(
        whole=f"-- {DAILY}\nSELECT born FROM pets",
        column="-- checks:\n-- - unique: [oen]\nSELECT 1 AS one",
    )
    with pytest.raises(ProjectError) as caught:
        build_definitions(
            queries="pipelines/queries", catalog="catalog.yaml", storage=str(project / "storage")
        )
    message = str(caught.value)
    assert "column.sql" in message
    assert "did you mean 'one'?" in message
    assert "whole.sql:1:4: the query is partitioned, but its SQL does not use" in message
    assert "good" not in message


def test_windows_are_parameters_of_a_planned_query(project: Path) -> None:
    sql = GOOD
    query = Query(name="good", sql=sql, front_matter=parse_front_matter(sql))
    table = TableInfo(
        name="pets",
        columns=(Field("id", parse_type("int")), Field("born", parse_type("date"))),
    )
    graph = check_query(query, MappingCatalog([table])).graph
    assert graph is not None
    assert [(p.name, str(p.dtype)) for p in graph.parameters] == [
        ("least", "int"),
        ("partition_start", "date"),
        ("partition_end", "date"),
    ]


def test_no_spark_is_loaded(project: Path) -> None:
    code = (
        "import sys\nfrom click.testing import CliRunner\nfrom stagecoach.commands.main import cli\n"
        "done = CliRunner().invoke(cli, ['check', '--catalog', 'catalog.yaml'])\n"
        "assert done.exit_code == 0, done.output\nassert 'pyspark' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


ODD = "SELECT id FROM pets QUALIFY rank() OVER (ORDER BY id)"
WRONG = "SELECT id,\n  id + array(1) AS x FROM pets"


def test_offline_an_sql_that_the_planner_does_not_understand_is_a_problem(project: Path) -> None:
    write(odd=ODD)
    result = run("--offline")
    assert result.exit_code == 1
    assert result.stdout.startswith("pipelines/queries/odd.sql:1:29: QUALIFY needs a boolean")


@pytest.mark.slow
def test_spark_decides_about_what_the_planner_does_not_understand(project: Path) -> None:
    write(odd=ODD, wrong=WRONG)
    # A process of its own: the command stops the Spark that it has started.
    command = [sys.executable, "-m", "stagecoach", "check", "--catalog", "catalog.yaml"]
    done = subprocess.run(
        [*command, "--set", "engine.master=local[1]"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1, done.stderr
    (line,) = done.stdout.splitlines()
    assert line.startswith("pipelines/queries/wrong.sql:2:3: [DATATYPE_MISMATCH")
    assert done.stderr.splitlines() == [
        "asking Spark about SQL that the planner does not understand (--offline does not)",
        "1 problem in 1 of 3 queries",
    ]


def test_a_code_location_leaves_the_decision_to_the_run(
    project: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write(odd=ODD)
    definitions = build_definitions(
        queries=project / "pipelines" / "queries",
        catalog=project / "catalog.yaml",
        storage=project / "storage",
    )
    (stage,) = (
        spec for spec in definitions.resolve_all_asset_specs() if spec.key.to_user_string() == "odd"
    )
    assert "spark" in stage.kinds
    assert "Spark may refuse it when it runs: QUALIFY needs a boolean" in caplog.text


def test_declared_tables_are_checked_compiled_and_explained_without_data(project: Path) -> None:
    declared = "{id: int not null, born: date}"
    Path("catalog.yaml").write_text(f"tables: {{pets: {{location: later, columns: {declared}}}}}")
    assert run().exit_code == 0
    write(other="SELECT name FROM pets", second="SELECT max(born) AS born FROM pets")
    found = run()
    assert found.exit_code == 1
    (line,) = [line for line in found.stdout.splitlines() if "other.sql" in line]
    assert "other.sql:1:8" in line
    assert "name" in line
    Path("pipelines/queries/other.sql").unlink()
    for command in (
        ["compile"],
        ["compile", "--check"],
        ["explain", "pipelines/queries/second.sql"],
    ):
        done = CliRunner().invoke(cli, [*command, "--catalog", "catalog.yaml"])
        assert done.exit_code == 0, done.output
    assert "result: born date" in done.output
    # The files may come later: the plan is of the declared columns.
    Path("later").mkdir()
    pq.write_table(pa.table({"ID": pa.array([1], pa.int16())}), "later/a.parquet")
    again = CliRunner().invoke(cli, ["compile", "--check", "--catalog", "catalog.yaml"])
    assert again.exit_code == 0, again.output
