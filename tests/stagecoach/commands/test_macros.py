"""Macros of a project through `check`, `compile`, `test`, `explain` and Dagster's definitions."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from stagecoach.api.session import connect
from stagecoach.assets.definitions.location import build_definitions
from stagecoach.assets.plans.files import read_plan
from stagecoach.commands.main import cli
from stagecoach.planner.errors import SqlError

CATALOG = """
tables:
  orders:
    location: data/orders
    columns: {id: int, amount: bigint, status: string, day: date}
"""
MACROS = """
CREATE FUNCTION net(price BIGINT) RETURN price * 2;  -- a comment
CREATE FUNCTION shown(words STRING) RETURN soundex(words);
CREATE VIEW paid AS SELECT id, net(amount) AS amount FROM orders WHERE status = :status;
"""
QUERY = """/*
parameters: {status: paid}
checks:
  - no_rows: {name: none_is_negative, sql: SELECT * FROM totals WHERE net(total) < 0}
*/
SELECT id % 2 AS odd,
  sum(amount) AS total
FROM paid GROUP BY 1
"""
TESTS = """
given:
  orders: [{id: 1, amount: 3, status: paid}, {id: 3, amount: 1, status: paid}, {id: 2, amount: 9}]
tests:
  - name: paid orders, doubled
    expect: [{odd: 1, total: 8}]
  - name: the shared query as the unit
    cte: paid
    expect: [{id: 1, amount: 6}, {id: 3, amount: 2}]
"""


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for folder in ("queries", "macros", "tests"):
        (tmp_path / "pipelines" / folder).mkdir(parents=True)
    Path("pipelines/catalog.yaml").write_text(CATALOG)
    Path("pipelines/macros/prices.sql").write_text(MACROS)
    write(QUERY)
    Path("pipelines/tests/totals.yaml").write_text(TESTS)
    return tmp_path


def write(sql: str, name: str = "totals") -> None:
    Path(f"pipelines/queries/{name}.sql").write_text(sql)


def change(old: str, new: str) -> None:
    path = Path("pipelines/macros/prices.sql")
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, list(arguments))


def test_check_finds_no_problems() -> None:
    done = run("check")
    assert done.output == "1 query, no problems\n"


def test_tests_run_over_macros() -> None:
    done = run("test")
    assert done.exit_code == 0, done.output
    assert "2 passed" in done.output
    change("* 2", "* 3")
    assert "12" in run("test").output


def test_check_tells_places_in_the_query_and_in_the_macro() -> None:
    write(QUERY.replace("sum(amount) AS", "net(id), sum(wrong) AS"))
    assert run("check").output.startswith("pipelines/queries/totals.sql:7:16: ")
    write(QUERY.replace("sum(amount)", "sum(net(amount, 1))"))
    assert run("check").output.startswith(
        "pipelines/queries/totals.sql:7:7: macro 'net' takes 1 argument (price BIGINT), not 2"
    )
    write(QUERY.replace("net(total)", "net()"))
    assert run("check").output.startswith(
        "pipelines/queries/totals.sql:4:44: check 'none_is_negative': macro 'net' takes"
    )
    write(QUERY)
    change("amount) AS amount FROM orders", "amount) AS amount, nowhere FROM orders")
    output = run("check").output
    assert output.startswith("pipelines/queries/totals.sql:8:6: ")
    assert "(in macro 'paid', pipelines/macros/prices.sql:4:55)" in output.replace("\n", " ")


def test_a_mistake_in_a_file_of_macros() -> None:
    change("price * 2", "cost * 2")
    done = run("check")
    assert done.exit_code == 2
    assert "prices.sql: macro 'net' names 'cost', which is not an argument of it" in done.output


def test_a_query_with_the_name_of_a_shared_query() -> None:
    write("SELECT 1 AS a", "paid")
    assert "the name 'paid' is also used by the macro in pipelines/macros" in run("check").output


def test_plans_are_stale_when_the_expansion_changes() -> None:
    assert run("compile").exit_code == 0
    assert run("compile", "--check").exit_code == 0
    assert "net(" not in read_plan(Path("pipelines/plans/totals.json")).graph.sql.partition("*/")[2]
    change("-- a comment", "-- another comment\n")
    change("soundex(words)", "upper(words)")
    assert run("compile", "--check").exit_code == 0
    change("* 2", "* 3")
    done = run("compile", "--check")
    assert done.exit_code == 1
    assert (
        "the SQL, or a macro that it uses (net, paid), has changed, first in line 6" in done.output
    )


def test_definitions_use_them() -> None:
    definitions = build_definitions(
        queries="pipelines/queries", catalog="pipelines/catalog.yaml", storage="storage"
    )
    keys = {key.to_user_string() for key in definitions.resolve_all_asset_keys()}
    assert {"totals", "orders"} <= keys


def test_a_query_that_only_spark_runs_gets_the_expanded_text() -> None:
    with connect("pipelines/catalog.yaml", "storage", offline=True) as session:
        graph = session.plan("SELECT shown(status) AS s, rand() AS r FROM orders").graph
        assert graph.fallback_reason is not None
        assert graph.stages[0].sql == (
            "SELECT (soundex((CAST((status) AS STRING)))) AS s, rand() AS r FROM orders"
        )
        with pytest.raises(SqlError, match=r"net.*not 2 \(line 2, column 2\)"):
            session.explain("EXPLAIN SELECT\n net(1, 2)")
        assert "staged" not in session.explain("EXPLAIN SELECT net(id) AS n FROM orders")
