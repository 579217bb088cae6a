"""What the planner says of wrong SQL: the class, the text, the place."""

from __future__ import annotations

import pytest

from stagecoach.planner.aggregates import AGGREGATES
from stagecoach.planner.catalog import MappingCatalog, TableInfo
from stagecoach.planner.errors import (
    AnalysisError,
    CatalogError,
    ForbiddenSqlError,
    OptionError,
    ParseError,
    SqlError,
    StagecoachError,
    UnsupportedSqlError,
)
from stagecoach.planner.functions import REGISTRY
from stagecoach.planner.functions.builtin import is_builtin
from stagecoach.planner.options import PlannerOptions
from stagecoach.planner.plan.stages import ParameterSpec
from stagecoach.planner.planning import plan_query
from stagecoach.planner.syntax.parse import parse_query
from stagecoach.planner.types import INT
from tests.planner.catalogs import SALES

NAMES = {
    "SELECT nme FROM customers": "column 'nme' not found; did you mean 'name'? (available: id, name, city, rating) (line 1, column 8)",
    "SELECT c.nme FROM customers c": "column 'nme' in 'c' not found; did you mean 'name'? (available: id, name, city, rating)",
    "SELECT id\nFROM orders\nWHERE  totl > 5": "column 'totl' not found; did you mean 'total'? (available: id, customer, total, status, day) (line 3, column 8)",
    "SELECT k.name FROM customers c": "table or alias 'k.name' not found (available: c)",
    "SELECT x.* FROM orders": "table or alias 'x' not found",
    "SELECT *": "* needs a FROM clause",
    "SELECT id FROM orders o JOIN customers c ON o.customer = c.id": "column 'id' is ambiguous; it could be o.id, c.id (line 1, column 8)",
    "SELECT * FROM custmers": "table 'custmers' is not in the catalog; did you mean 'customers'? (tables: orders, lines, customers, products, odd) (line 1, column 15)",
    "SELECT id FROM orders JOIN customers USING (city)": "column 'city' not found (available: id, customer, total, status, day)",
    "SELECT id FROM orders ORDER BY nope": "column 'nope' not found",
    "SELECT t.a FROM (SELECT id FROM orders) AS t(a, b)": "alias 't' names 2 of 1 columns",
    "SELECT :least FROM orders": "parameter ':least' has no value; given are: :most",
    "SELECT ? FROM orders": "parameter ? number 1 has no value; give it as '1' (given are: :most)",
}
GROUPS = {
    "SELECT id FROM orders WHERE sum(total) > 5": "aggregates are not allowed in WHERE; use HAVING",
    "SELECT id, sum(total) FROM orders": "column 'id' is neither aggregated nor in GROUP BY",
    "SELECT customer, status FROM orders GROUP BY customer": "column 'status' is neither aggregated nor in GROUP BY",
    "SELECT customer FROM orders GROUP BY customer ORDER BY total": "column 'total' is neither aggregated nor in GROUP BY",
    "SELECT name FROM customers HAVING rating > 3": "is neither aggregated nor in GROUP BY",
    "SELECT customer FROM orders GROUP BY sum(total)": "aggregates are not allowed in GROUP BY",
    "SELECT customer FROM orders GROUP BY 3": "GROUP BY position 3 is not in the select list",
    "SELECT customer FROM orders ORDER BY 0": "ORDER BY position 0 is not in the select list",
    "SELECT sum(total) FROM orders GROUP BY 1": "GROUP BY position 1 is an aggregate",
    "SELECT sum(max(total)) FROM orders": "an aggregate cannot be nested inside the aggregate 'sum' (line 1, column 8)",
    "SELECT DISTINCT id FROM orders ORDER BY total": "ORDER BY of a DISTINCT query must use its select items",
}
TYPES = {
    "SELECT id FROM orders WHERE total": "WHERE needs a boolean, found decimal(12,2)",
    "SELECT id FROM orders JOIN lines ON id": "ON needs a boolean, found bigint",
    "SELECT count(*) FROM orders HAVING DATE '2020-01-01'": "HAVING needs a boolean, found date",
    "SELECT max(id) FILTER (WHERE total) FROM orders": "FILTER needs a boolean, found decimal(12,2)",
    "SELECT id FROM orders WHERE id AND true": "and: expected a boolean, found bigint (line 1, column 29)",
    "SELECT NOT id FROM orders": "not: expected a boolean, found bigint",
    "SELECT CASE WHEN id THEN 1 END FROM orders": "case: expected a boolean, found bigint",
    "SELECT flag + 1 FROM odd": "add: arithmetic on boolean and int",
    "SELECT sum(flag) FROM odd": "sum of boolean",
    "SELECT id FROM orders WHERE day > 5": "gt: cannot compare date with int",
    "SELECT tags = 5 FROM odd": "eq: cannot compare array<string> with int",
    "SELECT year(id) FROM orders": "year: expected a date, found bigint",
    "SELECT coalesce(day, 5) FROM orders": "COALESCE mixes date and int",
    "SELECT substring(status) FROM orders": "function 'substring' takes 2 to 3 arguments, not 1",
    "SELECT sum(id, total) FROM orders": "aggregate 'sum' takes 1 argument, not 2",
    "SELECT id FROM orders UNION ALL SELECT id, name FROM customers": "UNION of 1 columns with 2 columns",
    "SELECT id FROM orders UNION ALL SELECT day FROM orders": "UNION mixes bigint and date",
    "SELECT id FROM orders WHERE customer IN (SELECT id, name FROM customers)": "IN compares 1 values with 2 columns",
    "SELECT (SELECT id, name FROM customers) FROM orders": "a scalar subquery must have one column, not 2",
}
SYNTAX = {
    "": "the text contains no statement",
    "-- only a comment": "the text contains no statement",
    "SELECT 1; SELECT 2": "found 2 statements; a query file holds exactly one SELECT",
    "SELEC id FROM orders": "syntax error at 'SELEC'; did you mean SELECT?",
    "SELECT id FROM": "syntax error near 'FROM'",
    "SELECT 'open FROM orders": "syntax error",
    "SELECT " + "(" * 10_000 + "1" + ")" * 10_000: "the query is nested too deeply for the parser",
}
FORBIDDEN = {
    "INSERT INTO orders VALUES (1)": "INSERT is not a query; only a SELECT can be planned",
    "DROP TABLE orders": "DROP is not a query",
    "CREATE TABLE t AS SELECT 1": "CREATE is not a query",
    "SET spark.x = 1": "SET is not a query",
    "SELECT * FROM parquet.`/etc/x`": "'parquet.`/etc/x`' reads a path; add the files to the catalog and name the table",
    "SELECT * FROM `s3://bucket/x`": "reads a path",
    "SELECT id FROM orders WHERE id IN (SELECT * FROM csv.`/etc/passwd`)": "reads a path",
    "SELECT reflect('java.lang.System', 'exit') FROM orders": "function 'reflect' reaches outside the query and is not allowed (line 1, column 8)",
    "SELECT * FROM read_files('/x')": "table function 'read_files' is not allowed; name a table of the catalog",
}
CASES = [
    (kind, sql, text)
    for kind, cases in (
        (AnalysisError, NAMES),
        (AnalysisError, GROUPS),
        (AnalysisError, TYPES),
        (ParseError, SYNTAX),
        (ForbiddenSqlError, FORBIDDEN),
    )
    for sql, text in cases.items()
]
PARAMETERS = (ParameterSpec("most", INT),)


@pytest.mark.parametrize(("kind", "sql", "text"), CASES, ids=[s[:60] for _, s, _ in CASES])
def test_wrong_sql_is_refused_with_what_to_do(kind: type[SqlError], sql: str, text: str) -> None:
    with pytest.raises(StagecoachError) as caught:
        plan_query(sql, SALES, parameters=PARAMETERS)
    assert isinstance(caught.value, kind)
    assert text in str(caught.value)
    assert not caught.value.retryable
    assert "\n" not in str(caught.value)


UNSTAGED = {
    "SELECT collate(id, 'UNICODE') FROM orders": "function 'collate' is not known to the planner",
    "SELECT id FROM orders TABLESAMPLE (10 PERCENT)": "TABLESAMPLE",
    "WITH RECURSIVE r AS (SELECT 1 AS n) SELECT * FROM r": "recursive CTEs are not staged",
    "SELECT id FROM orders UNION BY NAME SELECT id FROM customers": "UNION BY NAME is not SQL of Spark",
    "SELECT length(to_avro(named_struct('a', id))) FROM orders": "function 'to_avro' is not known to the planner",
    "SELECT count(DISTINCT *) FROM orders": "count(DISTINCT *)",
    "SELECT id FROM orders WHERE id IN (SELECT id FROM customers TABLESAMPLE (5 ROWS))": "TABLESAMPLE",
    "SELECT INTERVAL 1 MONTH AS i FROM orders": "interval",
}


@pytest.mark.parametrize(("sql", "reason"), UNSTAGED.items(), ids=UNSTAGED)
def test_valid_sql_that_is_not_staged_is_one_spark_stage(sql: str, reason: str) -> None:
    graph = plan_query(sql, SALES, name="q")
    (stage,) = graph.stages
    assert graph.fallback_reason is not None
    assert reason in graph.fallback_reason
    assert (stage.engine, stage.engine_reason, stage.sql) == ("spark", graph.fallback_reason, sql)
    assert stage.tables == tuple(sorted(t for t, _ in graph.tables))
    with pytest.raises(UnsupportedSqlError):
        plan_query(sql, SALES, PlannerOptions(engine="duckdb"))


def test_a_stage_that_duckdb_must_not_run_is_an_error_with_engine_duckdb() -> None:
    with pytest.raises(
        UnsupportedSqlError, match="stage 0 cannot run on DuckDB: function 'aes_encrypt'"
    ):
        plan_query(
            "SELECT aes_encrypt(name, '0123456789abcdef', 'CBC', 'DEFAULT', '0123456789abcdef') FROM customers",
            SALES,
            PlannerOptions(engine="duckdb"),
        )


def test_a_query_that_is_too_deep_is_an_error_with_engine_duckdb() -> None:
    sql = "SELECT " + " + ".join(["id"] * 1000) + " AS s FROM orders"
    with pytest.raises(UnsupportedSqlError, match="nested too deeply to be staged"):
        plan_query(sql, SALES, PlannerOptions(engine="duckdb"))


def test_a_table_without_columns_is_the_catalogs_fault() -> None:
    with pytest.raises(CatalogError, match="table 'empty' has no columns"):
        plan_query("SELECT 1 FROM empty", MappingCatalog([TableInfo("empty", ())]))


def test_an_unknown_table_of_an_unstaged_query_is_named_too() -> None:
    with pytest.raises(AnalysisError, match="table 'nope' is not in the catalog"):
        plan_query("SELECT collate(id, 'UNICODE') FROM orders JOIN nope", SALES)


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"partitions": "4"}, "unknown option planner.partitions; did you mean num_partitions?"),
        (
            {"num_partitions": "many"},
            "planner.num_partitions is 'many'; give a whole number from 0",
        ),
        ({"num_partitions": "-1"}, "planner.num_partitions is '-1'; give a whole number from 0"),
        (
            {"num_partitions": "70000"},
            "planner.num_partitions is '70000'; give a whole number from",
        ),
        (
            {"partition_bytes": "0"},
            "planner.partition_bytes is '0'; give a number of bytes above 0",
        ),
        ({"force_distribution": "yes"}, "planner.force_distribution is 'yes'; give true or false"),
        ({"broadcast_bytes": "64XB"}, "give a number of bytes from 0 on, such as 1048576 or 64MB"),
        ({"time_zone": "Nowhere"}, "planner.time_zone is 'Nowhere'; give an IANA name such as UTC"),
        ({"engine": "ray"}, "planner.engine is 'ray'; use auto, duckdb or spark"),
    ],
)
def test_wrong_options_are_refused(settings: dict[str, str], text: str) -> None:
    with pytest.raises(OptionError) as caught:
        PlannerOptions().updated(settings)
    assert text in str(caught.value)


def test_options_are_read_from_text() -> None:
    settings = {"num_partitions": "7", "force_distribution": "TRUE", "engine": "spark"}
    assert PlannerOptions().updated({**settings, "bloom_bytes": "1.5 GiB"}) == PlannerOptions(
        num_partitions=7, force_distribution=True, engine="spark", bloom_bytes=3 << 29
    )


def test_options_are_checked_however_they_are_made() -> None:
    with pytest.raises(OptionError, match="num_partitions is -1; give a whole number"):
        PlannerOptions(num_partitions=-1)
    with pytest.raises(OptionError, match=r"planner\.exact_math is 'no' \(file x\); give true or"):
        PlannerOptions().updated({"exact_math": "no"}, "file x")
    with pytest.raises(OptionError, match=r"unknown option planner\.x \(file x\); there are num_"):
        PlannerOptions().updated({"x": 1}, "file x")


def test_a_missing_table_name_is_told_in_words() -> None:
    with pytest.raises(ParseError, match="Expected table name but got the end of the text"):
        parse_query("SELECT id FROM")


def test_steps_of_the_planner_are_not_functions() -> None:
    own = [n for n in {**REGISTRY, **AGGREGATES} if not is_builtin(n) and n != "case"]
    assert {"add", "multiply_narrow", "hll_codes"} <= set(own)
    for name in own:
        with pytest.raises(SqlError, match=f"function '{name}' does not exist"):
            plan_query(f"SELECT {name}(id, id) FROM orders", SALES)
