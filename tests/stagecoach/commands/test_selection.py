"""`--select` and `--exclude` of `check`, `compile`, `test` and `query`."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from stagecoach.commands import query as query_command
from stagecoach.commands.main import cli

CATALOG = "tables: {orders: {location: data/orders, columns: {id: int, amount: bigint}}}"
QUERIES = {
    "paid": "-- tags: [finance]\nSELECT id, twice(amount) AS amount FROM orders",
    "sums": "SELECT sum(amount) AS total FROM paid",
    "ids": "SELECT id FROM orders",
}
TEST = "tests: [{name: a test, given: {orders: []}, expect: []}]"


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for folder in ("queries", "macros", "tests"):
        (tmp_path / "pipelines" / folder).mkdir(parents=True)
    Path("pipelines/catalog.yaml").write_text(CATALOG)
    write_macro("x + x")
    for name, sql in QUERIES.items():
        write(name, sql)
    for name in ("paid", "ids"):
        Path(f"pipelines/tests/{name}.yaml").write_text(TEST)


def write(name: str, sql: str) -> None:
    Path(f"pipelines/queries/{name}.sql").write_text(sql)


def write_macro(body: str) -> None:
    Path("pipelines/macros/m.sql").write_text(f"CREATE FUNCTION twice(x BIGINT) RETURN {body}")


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, list(arguments))


def test_check() -> None:
    write("ids", "SELECT wrong FROM orders")
    assert run("check", "--select", "tag:finance+").output == "2 queries, no problems\n"
    assert run("check", "--exclude", "ids").output == "2 queries, no problems\n"
    assert "wrong" in run("check", "--select", "orders+").output
    done = run("check", "--select", "tag:finanse")
    assert done.exit_code == 2
    assert "did you mean 'finance'?" in done.output


def test_compile_and_what_is_modified() -> None:
    assert run("compile", "--select", "paid+").exit_code == 0
    plans = Path("pipelines/plans")
    assert sorted(path.stem for path in plans.iterdir()) == ["paid", "sums"]
    assert run("check", "--select", "state:modified").output == "1 query, no problems\n"
    assert run("compile").exit_code == 0
    done = run("check", "--select", "state:modified")
    assert (done.exit_code, done.stderr) == (0, "no query is selected\n")
    write_macro("x * 2")  # which `paid` uses
    assert run("check", "--select", "state:modified").output == "1 query, no problems\n"
    assert run("check", "--select", "state:modified+").output == "2 queries, no problems\n"
    done = run("compile", "--check", "--select", "sums")
    assert done.exit_code == 0, done.output
    assert run("compile", "--check", "--select", "+sums").exit_code == 1


def test_tests() -> None:
    done = run("test", "--select", "tag:finance")
    assert "PASS paid" in done.output
    assert "ids" not in done.output
    assert "PASS ids" in run("test", "--exclude", "paid").output


def test_query_runs_what_is_selected_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[str] = []

    def note(session: object, path: str, source: object, request: object) -> int:
        ran.append(Path(path).stem)
        return 0

    monkeypatch.setattr(query_command, "_run_file", note)
    run("query", "--select", "+sums", "--select", "ids")
    assert sorted(ran) == ["ids", "paid", "sums"]
    assert ran.index("paid") < ran.index("sums")
    done = run("query", "a.sql", "--select", "ids")
    assert done.exit_code == 2
    assert "only one of these" in done.output
