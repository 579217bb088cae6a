"""The wall of the plan: what Spark itself made of a text is walked, whatever our parser thought."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pyspark
import pytest
from pyspark.errors import PySparkException

from stagecoach.infra.engines.spark.project_functions import register_functions
from stagecoach.infra.engines.spark.query import query_frame
from stagecoach.infra.functions.function_set import FunctionSet
from stagecoach.infra.spark.connect_conf import TOKEN_VARIABLE, free_port
from stagecoach.infra.spark.connect_server import await_server
from stagecoach.infra.spark.guard.plan_guard import allowed_classes, check_analyzed, check_parsed
from stagecoach.infra.spark.java import ensure_java
from stagecoach.infra.spark.session import isolated_session
from stagecoach.planner.errors import ForbiddenSqlError
from stagecoach.planner.project_function import ProjectFunction
from stagecoach.planner.syntax.text import SparkText
from stagecoach.planner.types import STRING
from tests.acceptance.processes import environment
from tests.security.bypasses import BYPASSES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

HARMLESS = {
    "everything": "SELECT * FROM nation",
    "sample": "SELECT n_name FROM nation TABLESAMPLE (1 ROWS)",
    "values": "VALUES (1, 'a'), (2, 'b')",
    "CTE": "WITH c AS (SELECT 1 AS x) SELECT * FROM c, nation",
    "recursion": (
        "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < 5) "
        "SELECT * FROM r"
    ),
    "generators": "SELECT * FROM nation, LATERAL explode(array(1, 2)) AS t(x)",
    "replaceable": (
        "SELECT left(n_name, 1), nvl2(n_name, 1, 2), try_add(1, 2), from_json('{}', 'a INT'), "
        "schema_of_json('{}'), date_trunc('day', now()), url_encode('a'), try_divide(1, 0) "
        "FROM nation"
    ),
    "aggregates": (
        "SELECT percentile_approx(n_nationkey, 0.5), count_if(true), mode(n_name), "
        "listagg(n_name, ',') WITHIN GROUP (ORDER BY n_name) FROM nation"
    ),
    "windows": "SELECT lag(n_name) OVER (ORDER BY n_nationkey), rank() OVER w FROM nation "
    "WINDOW w AS (ORDER BY n_name)",
    "pivot": "SELECT * FROM (SELECT n_nationkey % 2 AS k, n_name FROM nation) "
    "PIVOT (count(n_name) FOR k IN (0, 1))",
    "unpivot": "SELECT * FROM nation UNPIVOT (v FOR k IN (n_name, n_comment))",
    "grouping sets": "SELECT n_name, count(*) FROM nation GROUP BY CUBE (n_name, n_comment)",
    "pipes": "FROM nation |> WHERE n_nationkey > 1 |> AGGREGATE count(*) GROUP BY n_name",
    "subqueries": (
        "SELECT (SELECT max(n_name) FROM nation), EXISTS (SELECT 1 FROM nation), "
        "1 IN (SELECT n_nationkey FROM nation)"
    ),
    "variant": "SELECT variant_get(parse_json('{}'), '$.a', 'int')",
    "xml": "SELECT xpath_string('<a>b</a>', 'a'), from_xml('<a/>', 'a INT')",
    "lambdas": "SELECT filter(array(1, 2), x -> x > 1), reduce(array(1), 0, (a, b) -> a + b)",
    "sets": "SELECT n_name FROM nation UNION SELECT n_comment FROM nation EXCEPT SELECT 'a'",
    "qualify": "SELECT * FROM nation QUALIFY row_number() OVER (ORDER BY n_name) = 1",
    "names": "SELECT IDENTIFIER('n_name') FROM IDENTIFIER('nation')",
    "hints": "SELECT /*+ BROADCAST(b) */ 1 FROM nation a JOIN nation b USING (n_nationkey)",
    "times": "SELECT window(now(), '1 day'), timestamp'2020-01-01', interval 1 day",
}
NATION = "n_nationkey BIGINT, n_name STRING, n_comment STRING"


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> Iterator[SparkSession]:
    with isolated_session(spark, "UTC") as isolated:
        frame = isolated.createDataFrame([(1, "a", "x"), (2, "b", "y")], NATION)
        frame.createOrReplaceTempView("nation")
        yield isolated


@pytest.mark.parametrize("case", BYPASSES)
def test_no_plan_passes_that_does_more_than_read(case: str, session: SparkSession) -> None:
    sql = BYPASSES[case]
    with pytest.raises((ForbiddenSqlError, PySparkException)):
        check_parsed(session, sql)
        # Reflection by a name that only analysis knows; nothing is run by it.
        check_analyzed(session.sql(sql))


@pytest.mark.parametrize("case", HARMLESS)
def test_plans_of_queries_pass(case: str, session: SparkSession) -> None:
    check_parsed(session, HARMLESS[case])
    check_analyzed(session.sql(HARMLESS[case]))


def test_a_function_of_a_user_is_refused(session: SparkSession) -> None:
    session.udf.register("mine", lambda x: x)
    with pytest.raises(ForbiddenSqlError, match="calls the function 'mine'"):
        check_parsed(session, "SELECT mine(n_name) FROM nation")
    with pytest.raises(ForbiddenSqlError, match="PythonUDF"):
        check_analyzed(session.sql("SELECT IDENTIFIER('mine')(n_name) FROM nation"))


SHOUT = FunctionSet(
    (ProjectFunction("shout", "udf_none:shout", (STRING,), STRING, deterministic=True),)
)


def test_a_query_calls_functions_of_the_project_and_no_others(session: SparkSession) -> None:
    text = "SELECT SHOUT(n_name) AS v FROM nation WHERE shout(n_comment) = 'X'"
    query_frame(session, SparkText(text), {}, SHOUT)  # analysed, not run
    for sql in (text, "SELECT IDENTIFIER('shout')(n_name) FROM nation"):
        with pytest.raises((ForbiddenSqlError, PySparkException), match=r"shout|PythonUDF"):
            query_frame(session, SparkText(sql), {})  # that they are registered does not suffice


def test_a_function_is_known_by_what_it_runs_not_by_its_name(session: SparkSession) -> None:
    called = register_functions(session, SHOUT)
    session.udf.register("shout", lambda x: x)  # somebody else's of that name
    text = "SELECT shout(n_name) FROM nation"
    check_parsed(session, text, ["shout"])
    with pytest.raises(ForbiddenSqlError, match="PythonUDF"):
        check_analyzed(session.sql(text), called)


@pytest.mark.parametrize("sql", [
    "SELECT * FROM shout('a')",
    "SELECT * FROM nation, LATERAL shout(n_name)",
    "SELECT * FROM nation LATERAL VIEW shout(n_name) q AS v",
    "SELECT session.shout(n_name) FROM nation",
    "SELECT system.session.shout(n_name) FROM nation",
    "CREATE TEMPORARY FUNCTION shout AS 'java.lang.String'",
    "CREATE OR REPLACE TEMPORARY FUNCTION shout(a STRING) RETURNS STRING RETURN reflect('a', 'b')",
    "DROP TEMPORARY FUNCTION shout",
    "CREATE FUNCTION f(a INT) RETURNS INT LANGUAGE PYTHON AS 'return a'",
    "SELECT transform(array(n_name), x -> shout(x)) FROM nation",
    "SELECT shout(reflect('java.lang.System', 'exit', 1)) FROM nation",
])  # fmt: skip
def test_a_function_opens_no_other_way(session: SparkSession, sql: str) -> None:
    with pytest.raises((ForbiddenSqlError, PySparkException)):
        query_frame(session, SparkText(sql), {}, SHOUT)


def test_a_table_of_spark_that_only_analysis_finds_is_refused(
    session: SparkSession, tmp_path: Path
) -> None:
    session.range(3).write.parquet(str(tmp_path / "t"))
    session.conf.set("spark.sql.runSQLOnFiles", "true")
    try:
        frame = session.sql(f"SELECT * FROM parquet.`{tmp_path / 't'}`")
    finally:
        session.conf.set("spark.sql.runSQLOnFiles", "false")
    with pytest.raises(ForbiddenSqlError, match="LogicalRelation"):
        check_analyzed(frame)


def test_every_listed_class_exists() -> None:
    jars = Path(pyspark.__path__[0], "jars")
    names: set[str] = set()
    for jar in jars.glob("spark-catalyst_*.jar"):
        with zipfile.ZipFile(jar) as archive:
            names |= {name for name in archive.namelist() if name.endswith(".class")}
    listed = allowed_classes()
    assert len(listed) > 700
    assert len(set(listed)) == len(listed)
    assert [n for n in listed if f"{n.replace('.', '/')}.class" not in names] == []


# ---------------------------------------------------------------- servers


_ROOT = Path(__file__).parents[2]


def ask(url: str, token: str, mode: str) -> dict[str, str]:
    """What becomes of every text on a Connect server, asked by a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.security.connect_texts", url, mode],
        env=environment(**({TOKEN_VARIABLE: token} if token else {})),
        cwd=_ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    answers: dict[str, str] = json.loads(done.stdout)
    return answers


@pytest.mark.slow
def test_a_server_of_ours_refuses_by_itself(tmp_path: Path) -> None:
    program = (
        "import json, sys, time\nfrom pathlib import Path\n"
        "from stagecoach.infra.config.settings import EngineSettings\n"
        "from stagecoach.infra.spark.connect_server import launch\n"
        "server = launch(EngineSettings(master='local[1]'), Path(sys.argv[1]), warm_up=False)\n"
        "print(json.dumps([server.url, server.token]), flush=True)\ntime.sleep(600)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path)],
        stdout=subprocess.PIPE,
        env=environment(),
        cwd=_ROOT,
        text=True,
    ) as parent:
        try:
            assert parent.stdout is not None
            url, token = json.loads(parent.stdout.readline())
            await_server(url, 120)
            answers = ask(url, token, "raw")
        finally:
            parent.kill()
    for case in BYPASSES:
        assert answers[case] != "answered", case
    for case in HARMLESS:
        assert answers[case] == "answered", (case, answers[case])
    assert (
        "Stagecoach refuses the query: its plan has a ScriptTransformation"
        in (answers["script: transform"])
    )
    assert "CallMethodViaReflection" in answers["reflection: named by a text"]
    check_functions(answers)


@contextmanager
def foreign_server(folder: Path) -> Iterator[str]:
    """Spark's own Connect server, started as anybody would."""
    port = free_port()
    home = Path(pyspark.__path__[0])
    ensure_java()
    with (
        (folder / "server.log").open("wb") as log,
        subprocess.Popen(
            [
                str(home / "bin" / "spark-submit"),
                *("--master", "local[1]"),
                *("--class", "org.apache.spark.sql.connect.service.SparkConnectServer"),
                *("--conf", f"spark.connect.grpc.binding.port={port}"),
                *("--conf", "spark.connect.grpc.binding.address=127.0.0.1"),
                *("--conf", "spark.ui.enabled=false"),
                "spark-internal",
            ],
            env={**os.environ, "SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1"},
            cwd=folder,
            stdout=log,
            stderr=log,
        ) as server,
    ):
        try:
            yield f"sc://localhost:{port}"
        finally:
            server.kill()


@pytest.mark.slow
def test_a_server_of_others_is_asked_for_its_analysis(tmp_path: Path) -> None:
    with foreign_server(tmp_path) as url:
        await_server(url, 120)
        answers = ask(url, "", "checked")
    for case in BYPASSES:
        if case.startswith(("script", "reflection")):
            assert answers[case] != "answered", case
    for case in HARMLESS:
        assert answers[case] == "answered", (case, answers[case])
    assert answers["substitution"] == "${env:HOME}"
    check_functions(answers)


def check_functions(answers: dict[str, str]) -> None:
    assert answers["function"] == "A,B"
    assert answers["function that is missing"].startswith(
        "function 'none' (udf_none:f) cannot be used: on "
    )
