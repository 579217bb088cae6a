"""Functions of a project give what plain Spark gives for the same functions, on both engines."""

from __future__ import annotations

import datetime
import re
import shutil
import warnings
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from stagecoach.infra.catalog.catalog import FileCatalog, load_catalog
from stagecoach.infra.config.settings import EngineSettings
from stagecoach.infra.errors import FunctionError, QueryFailedError
from stagecoach.planner import plan_query
from stagecoach.planner.errors import UnsupportedSqlError
from stagecoach.planner.options import PlannerOptions
from stagecoach.planner.plan.stages import StageGraph
from tests.contexts import new_context, run_stages
from tests.differential import project_code
from tests.differential.query_check import SHUFFLED
from tests.infra.spark_runs import rows_of
from tests.share import share

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

UTC = datetime.UTC
NAN = float("nan")


def _table() -> pa.Table:
    moment = datetime.datetime(2024, 3, 31, 1, 30, 0, 5)
    pair = pa.struct([("a", pa.int32()), ("b", pa.string())])
    return pa.table(
        {
            "i": pa.array([1, 2, None, 3, 5, 5], pa.int32()),
            "l": pa.array([10, None, -3, 4, 7, 7], pa.int64()),
            "s": pa.array(["one two", None, "", "ünï", "five", "five"]),
            "d": pa.array([1.5, NAN, None, -0.0, float("inf"), 2.0]),
            "e": pa.array([0.5, 1.0, NAN, 4.0, 5.0, None]),
            "c": pa.array([Decimal("1.05"), None, Decimal("-0.01"), Decimal("99999999.99"), Decimal("0.00"), Decimal("7.77")], pa.decimal128(10, 2)),
            "dt": pa.array([datetime.date(2024, 2, 29), None, datetime.date(1900, 1, 1), datetime.date(1999, 12, 31), datetime.date(2038, 1, 19), datetime.date(2038, 1, 19)]),
            "ts": pa.array([moment.replace(tzinfo=UTC), None, datetime.datetime(1970, 1, 1, tzinfo=UTC), datetime.datetime(1969, 12, 31, 23, 59, 59, 999999, UTC), moment.replace(tzinfo=UTC), None], pa.timestamp("us", "UTC")),
            "tn": pa.array([moment, None, moment, moment, None, moment], pa.timestamp("us")),
            "arr": pa.array([[1, 2], None, [], [None, 3], [5], [5]], pa.list_(pa.int32())),
            "st": pa.array([{"a": 1, "b": "x"}, None, {"a": None, "b": None}, {"a": 3, "b": ""}, {"a": 5, "b": "y"}, {"a": 5, "b": "y"}], pair),
            "m": pa.array([[("x", 1)], None, [], [("x", None), ("y", 2)], [("x", 5)], [("x", 5)]], pa.map_(pa.string(), pa.int32())),
            "bin": pa.array([b"ab", None, b"", b"\x00\xff", b"abc", b"abc"]),
        }
    )  # fmt: skip


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> FileCatalog:
    folder = tmp_path_factory.mktemp("project")
    shutil.copy(project_code.__file__, folder / "project_functions.py")
    (folder / "t").mkdir()
    table = _table()
    for number, (start, length) in enumerate(((0, 2), (2, 0), (2, 4))):
        pq.write_table(table.slice(start, length), folder / "t" / f"{number}.parquet")
    functions = {
        name: {
            "python": f"project_functions:{code.__name__}",
            "arguments": arguments,
            "returns": returns,
            "kind": kind,
            "deterministic": True,
        }
        for name, (code, kind, arguments, returns) in project_code.DECLARED.items()
    }
    functions["changing"] = {**functions["shout"], "deterministic": False}
    functions["skipping"] = {**functions["inverse"], "null_input": "return_null"}
    body = {"tables": {"t": {"location": "t"}}, "functions": functions}
    (folder / "catalog.yaml").write_text(yaml.safe_dump(body), encoding="utf-8")
    return load_catalog(folder / "catalog.yaml")


@pytest.fixture(scope="module")
def plain(spark: SparkSession, catalog: FileCatalog) -> SparkSession:
    """Plain Spark with the same functions, registered as its own documentation says."""
    from pyspark import cloudpickle
    from pyspark.sql.functions import ArrowUDFType, PandasUDFType, arrow_udf, pandas_udf, udf

    cloudpickle.register_pickle_by_value(project_code)
    session = spark.newSession()
    session.conf.set("spark.sql.ansi.enabled", "true")
    session.conf.set("spark.sql.session.timeZone", "UTC")
    session.read.parquet(str(Path(catalog.origin).parent / "t")).createOrReplaceTempView("t")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a function without type hints needs its kind instead
        for name, (code, kind, _, returns) in project_code.DECLARED.items():
            made = {
                "scalar": lambda f, r: udf(f, r),
                "pandas": lambda f, r: pandas_udf(f, r, PandasUDFType.SCALAR),
                "arrow": lambda f, r: arrow_udf(f, r, ArrowUDFType.SCALAR),
            }[kind](code, returns)
            session.udf.register(name, made)
    return session


@pytest.fixture
def settings(spark_settings: EngineSettings, tmp_path: Path) -> EngineSettings:
    return replace(spark_settings, storage_root=str(tmp_path / "store"))


QUERIES = (
    "SELECT i, shout(s, i) AS v, half(c) AS h, day_after(dt) AS n, is_long(s) AS b FROM t",
    "SELECT i, later(ts) AS v, later_ntz(tn) AS n, mirrored(bin) AS b FROM t",
    "SELECT i, total(arr) AS a, words(s) AS w, label(st) AS l, pair_of(i, s) AS p FROM t",
    "SELECT i, to_json(tally(s)) AS v, worth(m, 'x') AS w FROM t",
    "SELECT i, pandas_sum(d, e) AS v, pandas_upper(s) AS u, pandas_swap(st) AS p FROM t",
    "SELECT i, pandas_noon(ts) AS v, arrow_negate(l) AS n, arrow_join(s, s) AS j, arrow_or_zero(d) AS z FROM t",
    "SELECT i FROM t WHERE is_long(s) AND total(arr) > 2",
    "SELECT a.i, b.l FROM t a JOIN t b ON shout(a.s, 1) = shout(b.s, 1)",
    "SELECT a.i, b.l FROM t a LEFT JOIN t b ON arrow_negate(a.l) = b.l",
    "SELECT shout(s, 1) AS k, count(*) AS n, sum(total(arr)) AS s FROM t GROUP BY shout(s, 1)",
    "SELECT is_long(s) AS k, max(pandas_upper(s)) AS m FROM t GROUP BY 1 HAVING max(arrow_negate(l)) < 5",
    "SELECT i, l, s FROM t ORDER BY shout(s, 1), l, i LIMIT 4",
    "SELECT i, sum(total(arr)) OVER (PARTITION BY is_long(s) ORDER BY i, l) AS v FROM t",
    "SELECT i, CASE WHEN i > 1 THEN shout(s, i) ELSE pandas_upper(s) END AS v FROM t",
    "SELECT kind_of(CAST(i AS DOUBLE)) AS k, shout('x', 2) AS c FROM t WHERE i IS NOT NULL",
    "SELECT i FROM t WHERE i IN (SELECT total(arr) FROM t)",
    "SELECT i, one_as_text(i) AS o, text_as_number(i) AS n, truth(i) AS t, odd_half(c) AS h FROM t",
    "SELECT i FROM t WHERE i = 1 AND total(arr) > 100",
)  # fmt: skip


def _run(
    graph: StageGraph, catalog: FileCatalog, settings: EngineSettings, spark: SparkSession
) -> tuple[list[str], set[str]]:
    context = new_context(graph, settings, catalog, lambda: spark, code_path=catalog.code_path)
    table, results = run_stages(context)
    return rows_of(_as_text(table)), {result.engine for result in results}


def _as_text(table: pa.Table) -> pa.Table:
    """Values that JSON has no form for as text."""
    columns = {
        name: [None if v is None else v if isinstance(v, int | bool) else repr(v) for v in values]
        for name, values in table.to_pydict().items()
    }
    return pa.table(columns)


@pytest.mark.parametrize("sql", share(QUERIES, 2))
def test_both_engines_give_plain_sparks_rows(
    spark: SparkSession,
    plain: SparkSession,
    catalog: FileCatalog,
    settings: EngineSettings,
    sql: str,
) -> None:
    expected = rows_of(_as_text(plain.sql(sql).toArrow()))
    for engine, options in (
        ("duckdb", PlannerOptions()),
        ("duckdb", SHUFFLED[3]),
        ("spark", SHUFFLED[3]),
    ):
        graph = plan_query(sql, catalog, replace(options, engine=engine))
        found, engines = _run(graph, catalog, settings, spark)
        assert found == expected, (engine, options)
        assert engines == {engine}


def test_a_function_that_may_change_runs_on_spark_with_the_whole_query(
    spark: SparkSession, plain: SparkSession, catalog: FileCatalog, settings: EngineSettings
) -> None:
    sql = "SELECT i, changing(s, l) AS v FROM t WHERE l < 1000000"
    graph = plan_query(sql, catalog)
    assert graph.fallback_reason == "function 'changing' is not declared deterministic"
    assert not graph.head.deterministic
    found, engines = _run(graph, catalog, settings, spark)
    # Spark casts nothing for a Python function, so the BIGINT becomes the declared INT here.
    expected = plain.sql(sql.replace("changing(s, l)", "shout(s, CAST(l AS INT))"))
    assert found == rows_of(_as_text(expected.toArrow()))
    assert engines == {"spark"}
    wide = plan_query("SELECT changing(s, l * 1000000000000) AS v FROM t", catalog)
    with pytest.raises(
        QueryFailedError, match=r"takes int as argument 2, not int64: .*not in range"
    ):
        _run(wide, catalog, settings, spark)


@pytest.mark.parametrize("engine", ["duckdb", "spark"])
def test_rows_with_a_null_are_left_out_where_that_is_declared(
    spark: SparkSession, catalog: FileCatalog, settings: EngineSettings, engine: str
) -> None:
    options = PlannerOptions(engine=engine)
    graph = plan_query("SELECT skipping(i) AS v FROM t", catalog, options)
    found, engines = _run(graph, catalog, settings, spark)
    assert found == [
        '{"v": 100}',
        '{"v": 20}',
        '{"v": 20}',
        '{"v": 33}',
        '{"v": 50}',
        '{"v": null}',
    ]
    assert engines == {engine}


@pytest.mark.parametrize("engine", ["duckdb", "spark"])
def test_what_a_function_raises_reaches_the_user_with_its_traceback(
    spark: SparkSession, catalog: FileCatalog, settings: EngineSettings, engine: str
) -> None:
    options = PlannerOptions(engine=engine)
    graph = plan_query("SELECT inverse(i - 2) AS v FROM t WHERE i = 2", catalog, options, name="q9")
    with pytest.raises(QueryFailedError) as caught:
        _run(graph, catalog, settings, spark)
    lines = str(caught.value).splitlines()
    assert lines[0] == (
        "function 'inverse' (project_functions:inverse) raised ZeroDivisionError: integer division "
        "or modulo by zero, in q9/stage_0"
    )
    assert lines[1] == "Traceback (most recent call last):"
    assert re.search(r'project_functions\.py", line \d+, in inverse$', lines[2]), lines[2]
    assert not caught.value.retryable
    assert "stagecoach" not in "".join(lines[2:])


def test_duckdb_guards_a_call_by_case_where_spark_calls_it_for_all_rows(
    spark: SparkSession, plain: SparkSession, catalog: FileCatalog, settings: EngineSettings
) -> None:
    sql = "SELECT i, CASE WHEN i > 2 THEN inverse(i - 2) END AS v FROM t WHERE i IS NOT NULL"
    with pytest.raises(Exception, match="ZeroDivisionError"):
        plain.sql(sql).collect()
    graph = plan_query(sql, catalog, PlannerOptions(engine="duckdb"))
    found, engines = _run(graph, catalog, settings, spark)
    assert engines == {"duckdb"}
    assert found.count('{"i": 5, "v": 33}') == 2


def test_duckdb_joins_outer_rows_by_a_function_of_both_sides(
    spark: SparkSession, plain: SparkSession, catalog: FileCatalog, settings: EngineSettings
) -> None:
    sql = "SELECT a.i, b.l FROM t a LEFT JOIN t b ON arrow_join(a.s, b.s) = 'five-five'"
    with pytest.raises(Exception, match="PYTHON_UDF_IN_ON_CLAUSE"):
        plain.sql(sql).collect()
    found, _ = _run(plan_query(sql, catalog), catalog, settings, spark)
    matched = plain.sql(sql.replace("LEFT JOIN", "JOIN"))
    outer = plain.sql("SELECT i, CAST(NULL AS BIGINT) AS l FROM t WHERE s <> 'five' OR s IS NULL")
    assert found == rows_of(_as_text(matched.union(outer).toArrow()))
    with pytest.raises(QueryFailedError, match="PYTHON_UDF_IN_ON_CLAUSE"):
        _run(plan_query(sql, catalog, PlannerOptions(engine="spark")), catalog, settings, spark)


@pytest.mark.parametrize("engine", ["duckdb", "spark"])
def test_timestamps_are_wall_clocks_of_the_sessions_time_zone(
    spark: SparkSession, catalog: FileCatalog, settings: EngineSettings, engine: str
) -> None:
    sql = (
        "SELECT CAST(pandas_noon(ts) AS STRING) AS p, CAST(later(ts) AS STRING) AS l "
        "FROM t WHERE i = 1"
    )
    graph = plan_query(sql, catalog, PlannerOptions(engine="auto", time_zone="Asia/Tokyo"))
    sources = replace(graph, stages=tuple(replace(s, engine=engine) for s in graph.stages))
    found, _ = _run(sources, catalog, settings, spark)
    # 10:30 in Tokyo
    assert found == [
        """{"l": "'2024-03-31 11:30:00.000006'", "p": "'2024-03-31 12:00:00'"}"""
    ] or found == ["""{"p": "'2024-03-31 12:00:00'", "l": "'2024-03-31 11:30:00.000006'"}"""]


def test_arguments_are_cast_where_plain_spark_passes_what_there_is(
    spark: SparkSession, plain: SparkSession, catalog: FileCatalog, settings: EngineSettings
) -> None:
    sql = "SELECT kind_of(i) AS v FROM t WHERE i = 1"
    assert plain.sql(sql).collect()[0]["v"] == "int"
    for engine in ("duckdb", "spark"):
        graph = plan_query(sql, catalog, PlannerOptions(engine=engine))
        assert _run(graph, catalog, settings, spark)[0] == ["""{"v": "'float'"}"""]


def test_a_scalar_function_sees_the_clock_of_the_session_not_of_the_machine(
    spark: SparkSession, plain: SparkSession, catalog: FileCatalog, settings: EngineSettings
) -> None:
    sql = "SELECT clock(ts) AS v FROM t WHERE i = 1"
    graph = plan_query(sql, catalog, PlannerOptions(time_zone="Asia/Tokyo"))
    ours = """{"v": "'2024-03-31 10:30:00.000005'"}"""
    assert _run(graph, catalog, settings, spark)[0] == [ours]
    plain.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        theirs = plain.sql(sql).collect()[0]["v"]
    finally:
        plain.conf.set("spark.sql.session.timeZone", "UTC")
    # The machine's own, whatever it is.
    moment = datetime.datetime(2024, 3, 31, 1, 30, 0, 5, UTC).astimezone()
    assert theirs == str(moment.replace(tzinfo=None))


@pytest.mark.parametrize("sql", [
    "SELECT transform(arr, x -> shout('a', x)) AS v FROM t",
    "SELECT sum(shout(s, i)) OVER () AS v, shout(s, i) OVER () FROM t",
    "SELECT shout(*) FROM t",
])  # fmt: skip
def test_what_spark_refuses_is_left_to_spark(catalog: FileCatalog, sql: str) -> None:
    with pytest.raises(UnsupportedSqlError):
        plan_query(sql, catalog, PlannerOptions(engine="duckdb"))


def test_changed_code_is_run_again_also_by_workers_that_have_loaded_it(
    spark: SparkSession, settings: EngineSettings, tmp_path: Path
) -> None:
    pq.write_table(pa.table({"i": [1]}), tmp_path / "u.parquet")
    code, helper = tmp_path / "changed_code.py", tmp_path / "changed_helper.py"
    code.write_text("from changed_helper import STEP\ndef step(i): return i + STEP\n")
    helper.write_text("STEP = 1\n")
    (tmp_path / "catalog.yaml").write_text(
        "tables: {u: {location: u.parquet}}\n"
        "functions: {step: {python: 'changed_code:step', arguments: [BIGINT], returns: BIGINT, "
        "deterministic: true}}\n"
    )
    catalog = load_catalog(tmp_path / "catalog.yaml")
    sql = "SELECT step(i) AS v FROM u"

    def run() -> tuple[list[str], bool, StageGraph]:
        graph = plan_query(sql, catalog)
        context = new_context(graph, settings, catalog, lambda: spark, code_path=catalog.code_path)
        table, results = run_stages(context)
        assert {r.engine for r in results} == {"duckdb"}
        return rows_of(table), results[0].reused, graph

    rows, is_reused, first = run()
    assert (rows, is_reused) == (['{"v": 2}'], False)
    assert run()[:2] == (['{"v": 2}'], True)
    helper.write_text("STEP = 2\n")  # the same size, and perhaps the same second
    assert run()[:2] == (['{"v": 3}'], False)
    # A plan of the code as it was never runs that of today: a worker has the old one, or refuses.
    for engine in ("duckdb", "spark"):
        graph = replace(first, stages=(replace(first.head, engine=engine),))
        context = new_context(
            graph, settings, catalog, lambda: spark, code_path=catalog.code_path, fresh=True
        )
        try:
            assert rows_of(run_stages(context)[0]) == ['{"v": 2}']
        except FunctionError as error:
            assert "not the one that the query was planned with" in str(error)


@pytest.mark.parametrize("engine", ["duckdb", "spark"])
def test_a_module_that_workers_lack_is_a_clear_error(
    spark: SparkSession, catalog: FileCatalog, settings: EngineSettings, engine: str
) -> None:
    options = PlannerOptions(engine=engine)
    graph = plan_query("SELECT shout(s, i) AS v FROM t", catalog, options)
    context = new_context(graph, settings, catalog, lambda: spark)  # without its path
    with pytest.raises(FunctionError) as caught:
        run_stages(context)
    assert caught.value.function == "shout"
    assert "module 'project_functions' was not found on Python's path" in str(caught.value)
    assert not caught.value.retryable
