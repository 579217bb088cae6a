"""A query reads tables of the catalog and does nothing else: the wall of the text, by every way in."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import stagecoach
from stagecoach.assets import build_definitions
from stagecoach.commands.main import cli
from stagecoach.infra.catalog.catalog import load_catalog
from stagecoach.planner.errors import ForbiddenSqlError, ParseError, SqlError, StagecoachError
from stagecoach.planner.options import PlannerOptions
from stagecoach.planner.planning import plan_query
from stagecoach.planner.syntax.parse import parse_query, spark_text
from stagecoach.planner.syntax.text import SparkText
from tests.security.bypasses import BYPASSES


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("project")
    (folder / "nation").mkdir()
    columns = {"n_nationkey": pa.array([1, 2], pa.int64()), "n_name": ["a", "b"]}
    rows = pa.table({**columns, "n_comment": ["x", "y"]})
    pq.write_table(rows, folder / "nation" / "0.parquet")
    (folder / "catalog.yaml").write_text("tables:\n  nation: {location: nation}\n")
    return folder


@pytest.mark.parametrize("case", BYPASSES)
def test_no_text_is_planned_that_does_more_than_read(case: str, project: Path) -> None:
    catalog = load_catalog(project / "catalog.yaml")
    for options in (PlannerOptions(), PlannerOptions(engine="spark")):
        with pytest.raises(SqlError):
            plan_query(BYPASSES[case], catalog, options)


# Which tables there are is known to the planner alone.
@pytest.mark.parametrize("case", [c for c in BYPASSES if c != "file: a table of Spark's catalog"])
def test_no_such_text_is_made_into_one_for_spark(case: str) -> None:
    with pytest.raises(SqlError):
        spark_text(BYPASSES[case])


@pytest.mark.parametrize("case", [c for c in BYPASSES if c.startswith(("script", "reflection"))])
def test_tokens_alone_show_scripts_and_reflection(case: str) -> None:
    with pytest.raises((ForbiddenSqlError, ParseError)):
        SparkText(BYPASSES[case])


@pytest.mark.parametrize("case", BYPASSES)
def test_check_query_and_python_refuse_it(case: str, project: Path) -> None:
    sql = BYPASSES[case]
    file = project / "bypass.sql"
    file.write_text(sql)
    catalog = ["--catalog", str(project / "catalog.yaml")]
    for command in (
        ["check", str(file), *catalog],
        ["query", str(file), *catalog, "--storage", str(project / "store")],
        ["query", str(file), *catalog, "--storage", str(project / "store"), "--engine", "spark"],
        ["explain", str(file), *catalog],
    ):
        ended = CliRunner().invoke(cli, command)
        assert ended.exit_code in (1, 2), (command[0], ended.output)
        assert "Traceback" not in ended.output
    with (
        stagecoach.connect(
            catalog=project / "catalog.yaml", storage=str(project / "store")
        ) as session,
        pytest.raises(StagecoachError),
    ):
        session.query(sql)
    assert not list((project / "store").glob("shuffle/**/*.arrow"))


@pytest.mark.parametrize("case", BYPASSES)
def test_dagster_loads_no_such_query(case: str, project: Path, tmp_path: Path) -> None:
    (tmp_path / "bad.sql").write_text(BYPASSES[case])
    with pytest.raises(StagecoachError):
        build_definitions(
            queries=tmp_path, catalog=project / "catalog.yaml", storage=str(tmp_path / "store")
        )


@pytest.mark.parametrize(
    ("sql", "sent"),
    [
        ("SELECT 1 -- one\n, 2", "SELECT 1       \n, 2"),
        ("SELECT /* a\nb */ 1", "SELECT     \n     1"),
        ("SELECT '-- /* */' /**/", "SELECT '-- /* */'     "),
        ("SELECT /*+ BROADCAST(a) */ 1", "SELECT /*+BROADCAST(a)*/   1"),
        ("SELECT /*+ x(a), MERGE(a) */ 1", "SELECT /*+MERGE(a)*/         1"),
        ("SELECT /*+ COALESCE(1 + 1) */ 1", "SELECT                        1"),
        ("SELECT\u00a01", "SELECT 1"),
    ],
)
def test_comments_and_unknown_hints_are_not_sent(sql: str, sent: str) -> None:
    assert SparkText(sql).text == sent
    assert len(sent) == len(sql)


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELECT\n  'abc", r"no closing ' \(line 2, column 3\)"),
        ("SELECT 1\n/* /* */", r"no closing \*/ \(line 2, column 1\)"),
        ("SELECT 1 */ 2", "no comment or hint to close here"),
        ("SELECT 1 /*+ BROADCAST(a) */ FROM t", "a hint belongs right behind SELECT"),
        ("SELECT /*+ x('*/') */ 1", "a hint takes names and numbers only"),
        ("SELECT ${x}", r"'\$' is not part of Spark's SQL"),
        ("SELECT {# comment #} 1", "is not part of Spark's SQL"),
        ("SELECT é FROM t", "in backticks"),
        ("SELECT \u200b1", "is not part of Spark's SQL"),
        ("SELECT * FROM s3://a/b", "a path is not a table"),
        ("SELECT f(`` => 1)", "cannot be read as a query"),
    ],
)
def test_a_text_that_could_be_read_differently_is_refused_with_its_place(
    sql: str, message: str
) -> None:
    with pytest.raises(ParseError, match=message) as caught:
        parse_query(sql)
    assert caught.value.line is not None


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 'TRANSFORM(a) USING ''sh''' AS `reflect(`",
        "SELECT a USING_ FROM t JOIN u USING (a)",
        "SELECT reflect FROM t",
        "SELECT transform(array(1), x -> x + 1)",
        "SELECT \"it's\", 'say \"x\"', r'\\', 'it''s', `a``b` FROM t",
        "SELECT x'1F', date'2020-01-01' -- end",
        "SELECT /*+ a */ /*+ b(c) */ 1",
    ],
)
def test_what_only_looks_forbidden_is_read(sql: str) -> None:
    assert parse_query(sql) is not None
    assert spark_text(sql).text
