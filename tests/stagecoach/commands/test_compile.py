"""Compiled plans: what is written, what makes one stale, what is refused, and running one."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

import stagecoach
from stagecoach.commands.main import cli
from stagecoach.planner.errors import GraphFormatError, ParameterError
from stagecoach.planner.plan.serde import load_graph, seal
from stagecoach.planner.plan.stages import PLANNER_VERSION

SQL = "SELECT kind, count(*) AS n FROM pets GROUP BY kind"
WITH_DAY = "-- parameters: {day: {type: date}}\nSELECT id FROM pets WHERE born < :day"


def write_pets(folder: Path, rows: int = 6, *, extra: bool = False, wide: bool = False) -> None:
    columns = {
        "id": pa.array(range(rows), pa.int64() if wide else pa.int32()),
        "kind": [f"kind {i % 3}" for i in range(rows)],
        "born": pa.array([19_722 + i % 5 for i in range(rows)], pa.date32()),
    }
    if extra:
        columns["extra"] = pa.array([1.5] * rows)
    (folder / "pets").mkdir(exist_ok=True)
    pq.write_table(pa.table(columns), folder / "pets" / "a.parquet")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a catalog, a table and two queries, all of them compiled."""
    monkeypatch.chdir(tmp_path)
    write_pets(tmp_path)
    (tmp_path / "catalog.yaml").write_text("tables:\n  pets: {location: pets}\n")
    (tmp_path / "queries").mkdir()
    (tmp_path / "queries" / "kinds.sql").write_text(SQL)
    (tmp_path / "queries" / "young.sql").write_text(WITH_DAY)
    done = run("queries")
    assert done.exit_code == 0, done.output
    assert done.stdout.splitlines() == [
        "plans/kinds.json: 1 stage",
        "plans/young.json: 1 stage",
    ]
    return tmp_path


def run(*args: str) -> Result:
    return CliRunner().invoke(cli, ["compile", *args, "--catalog", "catalog.yaml"])


def check(*args: str) -> tuple[int, dict[str, str]]:
    """The exit code, and by plan file its status with the reasons."""
    result = run("queries", "--check", *args)
    found: dict[str, str] = {}
    name = ""
    for line in result.stdout.splitlines():
        if line.startswith("  "):
            found[name] += f" | {line.strip()}"
        else:
            name, status = line.split(": ", 1)
            found[name] = status
    return result.exit_code, found


def test_what_is_written_is_a_plan(project: Path) -> None:
    text = (project / "plans" / "young.json").read_text()
    graph = load_graph(text)
    assert graph.query == "young"
    assert [(p.name, str(p.dtype)) for p in graph.parameters] == [("day", "date")]
    assert text.endswith("}\n")
    assert json.loads(text)["compiled"]["options"]["engine"] == "auto"


def test_plans_that_are_as_they_should_be_are_left_alone(project: Path) -> None:
    before = (project / "plans" / "kinds.json").stat().st_mtime_ns
    assert check() == (0, {"plans/kinds.json": "fresh", "plans/young.json": "fresh"})
    assert run("queries").stdout.splitlines()[0] == "plans/kinds.json: unchanged"
    assert (project / "plans" / "kinds.json").stat().st_mtime_ns == before
    assert run("queries", "--force").exit_code == 0
    assert (project / "plans" / "kinds.json").stat().st_mtime_ns > before


def test_changed_sql_is_stale_and_names_the_line(project: Path) -> None:
    (project / "queries" / "kinds.sql").write_text(f"{SQL}\nHAVING count(*) > 1")
    code, found = check()
    assert code == 1
    assert found["plans/kinds.json"] == "stale | the SQL has changed, first in line 2"
    assert found["plans/young.json"] == "fresh"
    assert run("queries").exit_code == 0
    assert check()[0] == 0


def test_changed_columns_are_stale(project: Path) -> None:
    write_pets(project, extra=True, wide=True)
    code, found = check()
    assert code == 1
    assert "column 'id' of table 'pets' was int and is bigint" in found["plans/kinds.json"]
    assert "column 'extra' of table 'pets' is new" in found["plans/kinds.json"]
    assert "stale" in found["plans/young.json"]


def test_changed_functions_are_stale(project: Path) -> None:
    catalog, code = project / "catalog.yaml", project / "compiled_code.py"
    declared = "python: 'compiled_code:f', arguments: [INT], returns: INT, deterministic: true"
    catalog.write_text(f"tables: {{pets: {{location: pets}}}}\nfunctions: {{f: {{{declared}}}}}\n")
    code.write_text("def f(x): return x\n")
    (project / "queries" / "young.sql").write_text("SELECT f(id) AS id FROM pets")
    assert run("queries").exit_code == 0
    assert check()[0] == 0
    code.write_text("def f(x): return -x\n")
    code_, found = check()
    assert code_ == 1
    assert found["plans/young.json"] == "stale | the code of function 'f' has changed"
    assert found["plans/kinds.json"] == "fresh"
    catalog.write_text(catalog.read_text().replace("returns: INT", "returns: INT, kind: pandas"))
    assert check()[1]["plans/young.json"] == "stale | the declaration of function 'f' has changed"
    catalog.write_text("tables: {pets: {location: pets}}\n")
    result = run("queries", "--check")
    assert result.exit_code != 0
    assert "function 'f' does not exist" in result.output


def test_other_options_are_stale(project: Path) -> None:
    code, found = check("--set", "planner.num_partitions=3")
    assert (code, found["plans/kinds.json"]) == (1, "stale | planner.num_partitions was 0 and is 3")


def test_missing_and_orphaned_plans_are_listed(project: Path) -> None:
    (project / "queries" / "more.sql").write_text("SELECT 1 AS one")
    (project / "queries" / "young.sql").unlink()
    code, found = check()
    assert code == 1
    assert found["plans/more.json"] == "missing | the query is not compiled"
    assert found["plans/young.json"].startswith("stale | query 'young' no longer exists")
    # One query alone says nothing about the other plans.
    result = run("queries/kinds.sql", "--check")
    assert (result.exit_code, result.stdout) == (0, "plans/kinds.json: fresh\n")


def test_plans_of_checks_that_are_gone_are_removed(project: Path) -> None:
    query = project / "queries" / "kinds.sql"
    query.write_text(f"-- checks: [not_null: [kind], row_count: {{min: 1}}]\n{SQL}")
    assert run("queries").exit_code == 0
    query.write_text(f"-- checks: [row_count: {{min: 1}}]\n{SQL}")
    (project / "plans" / "other.json").write_text("{}")
    result = run("queries", "--check")
    assert "plans/kinds.not_null_kind.json: stale\n  its query has no such check" in result.stdout
    assert "run `stagecoach compile`" in result.stderr
    assert run("queries/kinds.sql").exit_code == 0
    assert (project / "plans" / "kinds.not_null_kind.json").exists()
    done = run("queries")
    assert "plans/kinds.not_null_kind.json: removed; its query has no such" in done.stdout
    assert {path.stem for path in (project / "plans").glob("kinds*")} == {
        "kinds", "kinds.row_count"
    }  # fmt: skip
    # Not ours to remove, and compiling again does not help.
    result = run("queries", "--check")
    assert "query 'other' no longer exists; delete the file" in result.stdout
    assert "run `stagecoach compile`" not in result.stderr


def test_moved_statistics_alone_make_nothing_stale(project: Path) -> None:
    small = ("--set", "planner.single_task_bytes=2000", "--set", "planner.task_cores=1")
    assert run("queries", "--force", *small).exit_code == 0
    write_pets(project, rows=5000)
    code, found = check(*small)
    assert code == 0
    assert found["plans/kinds.json"].startswith("would change | the statistics have changed: 1 → ")
    code, found = check("--strict", *small)
    assert code == 1
    assert found["plans/kinds.json"].startswith("stale | the statistics have changed")


def test_a_changed_planner_is_stale(project: Path) -> None:
    file = project / "plans" / "kinds.json"
    body = json.loads(file.read_text())
    del body["checksum"]  # as whoever edits the file by hand does
    body["graph"]["stages"][0]["fragment"]["items"].reverse()
    file.write_text(json.dumps(body))
    assert check()[1]["plans/kinds.json"] == (
        "stale | the planner makes a different plan now: stage 0: its operators"
    )
    body["graph"]["planner_version"] = 0
    file.write_text(json.dumps(body))
    assert "planner version 0 made it" in check()[1]["plans/kinds.json"]


def test_an_older_format_is_stale_and_an_unknown_one_is_refused(project: Path) -> None:
    file = project / "plans" / "kinds.json"
    body = json.loads(file.read_text())
    del body["checksum"]
    file.write_text(json.dumps({**body, "format_version": 1}))
    assert "it has format version 1" in check()[1]["plans/kinds.json"]
    file.write_text(json.dumps({**body, "format_version": 99}))
    assert "format version 99" in check()[1]["plans/kinds.json"]
    file.write_text("not JSON")
    assert "is not JSON" in check()[1]["plans/kinds.json"]
    assert run("queries").exit_code == 0
    assert check()[0] == 0


def test_mistakes_have_a_place(project: Path) -> None:
    (project / "queries" / "bad.sql").write_text("SELECT id\nFROM pets WHERE knd = 'cat'")
    (project / "queries" / "free.sql").write_text("SELECT id FROM pets\nWHERE id = :x")
    result = run("queries")
    assert result.exit_code == 2
    assert "queries/bad.sql:2:17" in result.stderr
    assert "parameter 'x' has no declared type" in result.stderr
    assert "queries/free.sql:2" in result.stderr
    assert "plans/kinds.json: unchanged" in result.stdout


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("nowhere",), "there is no file or folder nowhere"),
        (("plans",), "there are no .sql files in plans"),
        (("queries", "--strict"), "--strict needs --check"),
        (("queries", "--check", "--force"), "--check writes nothing"),
        (("queries", "other/kinds.sql"), "would be the same plan file"),
    ],
)
def test_usage(project: Path, args: tuple[str, ...], message: str) -> None:
    (project / "other").mkdir()
    (project / "other" / "kinds.sql").write_text(SQL)
    result = run(*args)
    assert result.exit_code == 2
    assert message in result.stderr


def test_a_plan_is_loaded_with_its_parameters(project: Path) -> None:
    session = stagecoach.connect("catalog.yaml")
    planned = session.load("plans/young.json", {"day": "2024-01-02"})
    assert planned.graph.query == "young"
    assert planned.parameters["day"].text == "2024-01-02"
    with pytest.raises(ParameterError, match="'day' has no value"):
        session.load("plans/young.json")
    with pytest.raises(ParameterError, match="unknown parameter 'dya'; did you mean 'day'"):
        session.load("plans/young.json", {"dya": "2024-01-02"})
    with pytest.raises(GraphFormatError, match="cannot read"):
        session.load("plans/nothing.json")
    text = (project / "plans" / "kinds.json").read_text()
    newer = text.replace(f'"planner_version": {PLANNER_VERSION}', '"planner_version": 99')
    (project / "newer.json").write_text(seal(newer))
    with pytest.raises(GraphFormatError, match="planner version 99 made the plan"):
        session.load("newer.json")


def test_query_takes_sql_or_plans(project: Path) -> None:
    both = CliRunner().invoke(cli, ["query", "queries/kinds.sql", "--plan", "plans/kinds.json"])
    neither = CliRunner().invoke(cli, ["query"])
    assert both.exit_code == neither.exit_code == 2
    assert "name SQL files, or compiled plans with --plan" in both.stderr
    assert "a compiled plan is given with --plan" in neither.stderr
    arguments = ["query", "--plan", "plans/nothing.json", "--catalog", "catalog.yaml"]
    missing = CliRunner().invoke(cli, arguments)
    assert missing.exit_code == 2
    assert "cannot read plans/nothing.json" in missing.stderr


def test_check_notes_plans_that_were_made_for_other_amounts_of_data(project: Path) -> None:
    def notes() -> tuple[int, list[str]]:
        result = CliRunner().invoke(cli, ["check", "queries", "--catalog", "catalog.yaml"])
        return result.exit_code, result.stderr.splitlines()

    assert notes() == (0, [])
    write_pets(project, rows=50)
    assert notes() == (0, [])
    write_pets(project, rows=5000)
    code, found = notes()
    assert code == 0
    assert found[0] == (
        "note: plans/kinds.json: table 'pets' has 5,000 rows; the plan was made for 6 and may be "
        "slow: run `stagecoach compile`"
    )
    assert [line.split(":")[1] for line in found] == [" plans/kinds.json", " plans/young.json"]
    assert run("queries", "--force").exit_code == 0
    assert notes() == (0, [])
