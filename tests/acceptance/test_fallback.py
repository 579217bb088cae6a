"""What DuckDB must not run: Spark runs it, and the user sees Spark's own answer or error."""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stagecoach.infra.catalog.catalog import load_catalog
from stagecoach.infra.config.settings import EngineSettings
from stagecoach.infra.engines.spark.errors import SPARK_ERRORS
from stagecoach.infra.errors import QueryFailedError
from stagecoach.planner.options import PlannerOptions
from stagecoach.planner.plan.expressions import Literal
from stagecoach.planner.types import DATE, INT, STRING, DataType, parse_type
from tests.acceptance.comparison import Answer, Oracle, assert_same, spark_answer, to_arrow
from tests.acceptance.processes import FORCED as FORCED_TEXT
from tests.acceptance.processes import planner_arguments, run_command
from tests.acceptance.runs import Runner, store_settings
from tests.share import share
from tests.tpch import some

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark]

FORCED = PlannerOptions(force_distribution=True, broadcast_bytes=0, num_partitions=3)
DEFAULT = PlannerOptions()


# ---------------------------------------------------------------- forms of queries

# Most are staged; the rest runs as one Spark stage. The numbers are the positions of the sort keys; none: no order.
FORMS: dict[str, tuple[str, tuple[int, ...]]] = {
    "row_number": (
        "SELECT n_name, row_number() OVER (PARTITION BY n_regionkey ORDER BY n_name) AS rn "
        "FROM nation ORDER BY n_name",
        (0,),
    ),
    "running sum": (
        "SELECT c_custkey, sum(c_acctbal) OVER (PARTITION BY c_nationkey ORDER BY c_custkey "
        "ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) FROM customer WHERE c_nationkey < 3",
        (),
    ),
    "rank of groups": (
        "SELECT n_regionkey, count(*) AS n, rank() OVER (ORDER BY count(*) DESC) AS place "
        "FROM nation GROUP BY n_regionkey",
        (),
    ),
    "lag": ("SELECT r_name, lag(r_name, 1, '-') OVER (ORDER BY r_regionkey) FROM region", ()),
    "qualify": (
        "SELECT n_regionkey, n_name FROM "
        "(SELECT *, ntile(5) OVER (PARTITION BY n_regionkey ORDER BY n_name) AS t FROM nation) "
        "WHERE t = 1",
        (),
    ),
    "rollup": (
        "SELECT c_mktsegment, c_nationkey, count(*), sum(c_acctbal) FROM customer "
        "WHERE c_nationkey < 4 GROUP BY ROLLUP (c_mktsegment, c_nationkey)",
        (),
    ),
    "cube": (
        "SELECT c_mktsegment, c_nationkey, grouping_id() AS g, max(c_name) FROM customer "
        "WHERE c_nationkey < 2 GROUP BY CUBE (c_mktsegment, c_nationkey)",
        (),
    ),
    "grouping sets": (
        "SELECT n_regionkey, n_name, count(*) AS n FROM nation "
        "GROUP BY GROUPING SETS ((n_regionkey), (n_name), ())",
        (),
    ),
    "intersect": (
        "SELECT c_nationkey FROM customer INTERSECT SELECT s_nationkey FROM supplier",
        (),
    ),
    "intersect all": (
        "SELECT c_nationkey FROM customer INTERSECT ALL SELECT s_nationkey FROM supplier",
        (),
    ),
    "except": (
        "SELECT n_nationkey FROM nation EXCEPT SELECT s_nationkey FROM supplier WHERE s_suppkey < 9",
        (),
    ),
    "lateral view explode": (
        "SELECT r_name, word FROM region LATERAL VIEW explode(split(r_comment, ' ')) w AS word",
        (),
    ),
    "lateral view outer posexplode": (
        "SELECT r_name, p, x FROM region LATERAL VIEW OUTER posexplode(array(r_regionkey, 7)) t AS p, x",
        (),
    ),
    "inline in the select list": (
        "SELECT explode(sequence(1, n_regionkey + 1)) FROM nation WHERE n_nationkey < 6",
        (),
    ),
    "pivot": (
        "SELECT * FROM (SELECT n_regionkey, n_name, n_nationkey FROM nation) "
        "PIVOT (count(n_name) FOR n_regionkey IN (0 AS africa, 1 AS america)) ORDER BY n_nationkey",
        (0,),
    ),
    "unpivot": (
        "SELECT * FROM (SELECT r_regionkey AS id, r_name, r_comment FROM region) "
        "UNPIVOT (value FOR name IN (r_name, r_comment))",
        (),
    ),
    "recursive cte": (
        "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 20) "
        "SELECT n, r_name FROM t JOIN region ON r_regionkey = n % 5 ORDER BY n",
        (0,),
    ),
    "lateral join": (
        "SELECT r_name, top FROM region, LATERAL "
        "(SELECT max(n_name) AS top FROM nation WHERE n_regionkey = r_regionkey)",
        (),
    ),
    "range": ("SELECT id, r_name FROM range(5) JOIN region ON id = r_regionkey ORDER BY id", (0,)),
    "collect into arrays": (
        "SELECT n_regionkey, sort_array(collect_list(n_name)) AS names FROM nation "
        "GROUP BY n_regionkey ORDER BY n_regionkey",
        (0,),
    ),
    "struct and map": (
        "SELECT named_struct('k', r_regionkey, 'n', r_name) AS s, map(r_name, r_regionkey) AS m "
        "FROM region ORDER BY r_name",
        (),
    ),
    "higher-order functions": (
        "SELECT r_name, transform(sequence(0, r_regionkey), x -> x * 2) AS twice, "
        "aggregate(sequence(0, r_regionkey), 0L, (a, x) -> a + x) AS total FROM region",
        (),
    ),
    "approximate percentile": (
        "SELECT n_regionkey, percentile_approx(n_nationkey, array(0.1, 0.9)) FROM nation "
        "GROUP BY n_regionkey",
        (),
    ),
    "json": (
        "SELECT get_json_object(concat('{\"a\": \"', r_name, '\"}'), '$.a') AS a, "
        "from_json('{\"b\": 1}', 'b DECIMAL(3,1)').b FROM region ORDER BY a",
        (0,),
    ),
    "correlated under an inequality": (
        "SELECT s_suppkey FROM supplier s WHERE s_acctbal > "
        "(SELECT avg(t.s_acctbal) FROM supplier t WHERE t.s_nationkey = s.s_nationkey "
        "AND t.s_suppkey <= s.s_suppkey)",
        (),
    ),
    "values": ("SELECT * FROM VALUES (1, 'a'), (2, NULL) AS t(x, y) ORDER BY x", (0,)),
    "pipe syntax": (
        "FROM nation |> WHERE n_regionkey = 1 |> AGGREGATE count(*) AS n, max(n_name) AS m",
        (),
    ),
    "tablesample of everything": ("SELECT count(*) FROM nation TABLESAMPLE (100 PERCENT)", ()),
    "timestamp without zone": (
        "SELECT CAST(o_orderdate AS TIMESTAMP_NTZ) AS t, count(*) FROM orders "
        "WHERE o_orderkey < 200 GROUP BY ALL ORDER BY t",
        (0,),
    ),
}


QUICK = ("row_number", "rollup", "intersect", "lateral view explode", "pivot", "recursive cte")


@pytest.mark.parametrize("case", some([f for f in FORMS if f in {*QUICK, *share(FORMS, 5)}], QUICK))
def test_what_cannot_be_staged_has_sparks_answer(case: str, runner: Runner, oracle: Oracle) -> None:
    sql, keys = FORMS[case]
    ran = runner.run(sql, FORCED)
    assert_same(ran.table, spark_answer(oracle.spark, sql, keys=keys))
    for stage, plan in zip(ran.stages, ran.graph.stages, strict=True):
        assert stage.engine == "spark" or plan.engine == "duckdb"
    if ran.graph.fallback_reason is not None:
        assert ran.engines == ["spark"]


def test_only_these_are_one_spark_stage(runner: Runner) -> None:
    from stagecoach.planner.planning import plan_query

    graphs = {name: plan_query(sql, runner.catalog, FORCED) for name, (sql, _) in FORMS.items()}
    whole = {n for n, g in graphs.items() if g.fallback_reason and len(g.stages) == 1}
    assert whole == {"recursive cte", "tablesample of everything"}


# ---------------------------------------------------------------- one stage on Spark, others not


def test_an_unproven_function_moves_one_stage_to_spark(runner: Runner, oracle: Oracle) -> None:
    sql = (
        "SELECT c_mktsegment, count(*) AS n, sum(o_totalprice) AS s FROM orders "
        "JOIN (SELECT c_custkey, c_mktsegment FROM customer "
        "WHERE length(aes_encrypt(c_mktsegment, '0123456789abcdef', 'CBC', 'DEFAULT', '0123456789abcdef')) <> 7) "
        "ON o_custkey = c_custkey GROUP BY c_mktsegment ORDER BY c_mktsegment"
    )
    ran = runner.run(sql, FORCED)
    assert ran.graph.fallback_reason is None
    assert [s.engine for s in ran.graph.stages].count("spark") == 1
    assert sorted(set(ran.engines)) == ["duckdb", "spark"]
    assert ran.engines == [s.engine for s in ran.graph.stages]
    reason = next(s.engine_reason for s in ran.graph.stages if s.engine == "spark")
    assert "aes_encrypt" in reason
    assert_same(ran.table, oracle.answer(sql))


def test_keys_of_both_engines_meet_in_the_same_partition(runner: Runner, oracle: Oracle) -> None:
    sql = (
        "SELECT o_orderpriority, n_name, count(*) AS n FROM "
        "(SELECT *, crc32(aes_encrypt(o_clerk, '0123456789abcdef', 'CBC', 'DEFAULT', '0123456789abcdef')) AS code FROM orders) JOIN customer ON o_custkey = c_custkey "
        "JOIN nation ON c_nationkey = n_nationkey WHERE code <> 0 "
        "GROUP BY o_orderpriority, n_name ORDER BY n DESC, o_orderpriority, n_name"
    )
    ran = runner.run(sql, FORCED)
    assert set(ran.engines) == {"duckdb", "spark"}
    assert_same(ran.table, oracle.answer(sql))


# ---------------------------------------------------------------- errors at run time


@pytest.fixture(scope="module")
def numbers(
    tmp_path_factory: pytest.TempPathFactory, spark_settings: EngineSettings, spark: SparkSession
) -> Iterator[Numbers]:
    """A table of numbers at the edges, and an empty one."""
    yield Numbers(tmp_path_factory.mktemp("numbers"), spark_settings, spark)


class Numbers:
    """Tables `t` (four files) and `nothing` (one file without rows), for us and for plain Spark."""

    def __init__(self, folder: Path, settings: EngineSettings, spark: SparkSession) -> None:
        self.folder = folder
        self._write()
        self.catalog_file = folder / "catalog.yaml"
        self.catalog_file.write_text(
            "tables:\n  t: {location: t}\n  nothing: {location: nothing}\n"
        )
        self.oracle = spark.newSession()
        for name in ("t", "nothing"):
            self.oracle.read.parquet(str(folder / name)).createOrReplaceTempView(name)
        catalog = load_catalog(self.catalog_file)
        self.runner = Runner(catalog, store_settings(settings, folder), spark)

    def _write(self) -> None:
        schema = pa.schema(
            {
                "id": pa.int32(),
                "big": pa.int64(),
                "price": pa.decimal128(12, 2),
                "text": pa.string(),
                "day": pa.date32(),
                "x": pa.float64(),
            }
        )
        for name in ("t", "nothing"):
            (self.folder / name).mkdir()
        for part in range(4):
            ids = list(range(part * 5, part * 5 + 5))
            rows = {
                "id": ids,
                "big": [2**63 - 1 - i for i in ids],
                "price": [decimal.Decimal(i) / 4 for i in ids],
                "text": [None if i == 3 else f"t{i % 4}" if i else "7" for i in ids],
                "day": [datetime.date(2024, 1, 31) + datetime.timedelta(i * 30) for i in ids],
                "x": [i / 8 for i in ids],
            }
            pq.write_table(pa.table(rows, schema=schema), self.folder / "t" / f"{part}.parquet")
        pq.write_table(schema.empty_table(), self.folder / "nothing" / "0.parquet")


ERRORS = {
    "integer overflow": ("SELECT id + 2147483647 FROM t", "ARITHMETIC_OVERFLOW"),
    "overflow in a filter": ("SELECT id FROM t WHERE big + id * 2 > 0", "ARITHMETIC_OVERFLOW"),
    "overflow of a product": ("SELECT big * 2 AS d FROM t ORDER BY d", "ARITHMETIC_OVERFLOW"),
    "overflow of a sum": ("SELECT text, sum(big) FROM t GROUP BY text", "ARITHMETIC_OVERFLOW"),
    "division by zero": ("SELECT 1 / id FROM t", "DIVIDE_BY_ZERO"),
    "decimal division by zero": ("SELECT sum(1 / price) FROM t", "DIVIDE_BY_ZERO"),
    "whole division by zero": ("SELECT big DIV id FROM t", "DIVIDE_BY_ZERO"),
    "remainder by zero": (
        "SELECT a.id FROM t a JOIN t b ON a.id = b.id WHERE 5 % b.id = 1",
        "REMAINDER_BY_ZERO",
    ),
    "cast of text": ("SELECT CAST(text AS INT) + 1 FROM t", "CAST_INVALID_INPUT"),
    "cast that overflows": ("SELECT CAST(big AS INT) FROM t", "CAST_OVERFLOW"),
    "decimal out of range": (
        "SELECT CAST(price * 1000 AS DECIMAL(4, 2)) FROM t",
        "NUMERIC_VALUE_OUT_OF_RANGE.WITH_SUGGESTION",
    ),
    "subquery of two rows": (
        "SELECT id, (SELECT big FROM t WHERE id < 2) FROM t",
        "SCALAR_SUBQUERY_TOO_MANY_ROWS",
    ),
    "raised by the query": ("SELECT raise_error('no luck') FROM t", "USER_RAISED_EXCEPTION"),
}


@pytest.mark.parametrize("options", [DEFAULT, FORCED], ids=["default", "forced"])
@pytest.mark.parametrize("case", some(tuple(ERRORS), ("overflow of a sum", "division by zero")))
def test_an_error_at_run_time_is_sparks(
    case: str, options: PlannerOptions, numbers: Numbers
) -> None:
    sql, condition = ERRORS[case]
    with pytest.raises(SPARK_ERRORS, match=rf"\[{condition}\]"):
        numbers.oracle.sql(sql).toArrow()
    with pytest.raises(QueryFailedError) as ours:
        numbers.runner.run(sql, options)
    assert ours.value.condition == condition
    assert f"[{condition}]" in str(ours.value)


def test_an_overflow_that_an_optimizer_can_avoid_is_raised(numbers: Numbers) -> None:
    sql = "SELECT count(*) FROM t WHERE big + 1 > 0"
    with pytest.raises(SPARK_ERRORS, match="ARITHMETIC_OVERFLOW"):
        numbers.oracle.sql(sql).toArrow()
    with pytest.raises(QueryFailedError, match="ARITHMETIC_OVERFLOW"):
        numbers.runner.run(sql, DEFAULT)


# Rows that Spark never evaluates must not raise for us either.
HARMLESS = {
    "guarded by a filter": "SELECT id, 1 / id AS q FROM t WHERE id <> 0 ORDER BY id",
    "guarded by a case": "SELECT id, CASE WHEN id = 0 THEN 0 ELSE 1 / id END AS q FROM t ORDER BY id",
    "guarded by an and": "SELECT id FROM t WHERE id <> 0 AND 10 % id = 0 ORDER BY id",
    "try functions": "SELECT id, try_divide(1, id), try_add(big, id) FROM t ORDER BY id",
    "guarded by a join": (
        "SELECT a.id, 6 / b.id AS q FROM t a JOIN (SELECT id FROM t WHERE id > 0) b "
        "ON a.id = b.id ORDER BY a.id"
    ),
    "cast of what fits": "SELECT id, CAST(text AS INT) FROM t WHERE id = 0",
}


@pytest.mark.parametrize("options", [DEFAULT, FORCED], ids=["default", "forced"])
@pytest.mark.parametrize("sql", HARMLESS.values(), ids=HARMLESS)
def test_rows_that_are_not_evaluated_do_not_raise(
    sql: str, options: PlannerOptions, numbers: Numbers
) -> None:
    ran = numbers.runner.run(sql, options)
    assert_same(ran.table, spark_answer(numbers.oracle, sql, keys=(0,)))


# ---------------------------------------------------------------- names, order, emptiness


NAMED = {
    "generated": "SELECT count(*), sum(id), id % 2 = 0, -id, CAST(id AS BIGINT) + 1 FROM t GROUP BY id",
    "duplicates": "SELECT id, id, big AS id, text AS `a b`, text AS `ä.\"'` FROM t",
    "of two tables": "SELECT * FROM t a JOIN t b ON a.id = b.id",
    "literals": "SELECT 1, 'x', 1.50, NULL, true, DATE'2024-01-02', TIMESTAMP'2024-01-02 03:04:05' FROM t LIMIT 1",
    "functions": "SELECT upper(text), substring(text, 1, 1), coalesce(text, '-'), year(day) FROM t",
    "case": "SELECT CASE WHEN id > 3 THEN 'big' ELSE 'small' END, id IN (1, 2), id BETWEEN 2 AND 5 FROM t",
    "aggregates": "SELECT avg(price), min(text), max(day), count(DISTINCT text), sum(x) FROM t",
    "filtered aggregate": "SELECT count(*) FILTER (WHERE id > 3), sum(price) FILTER (WHERE id < 2) FROM t",
    "star of a subquery": "SELECT *, id + 1 FROM (SELECT id, price * 2 FROM t)",
    "union": "SELECT id AS a, text AS b FROM t UNION ALL SELECT big, text FROM t",
}


@pytest.mark.parametrize("sql", NAMED.values(), ids=NAMED)
def test_names_and_types_are_sparks(sql: str, numbers: Numbers) -> None:
    expected = Answer(to_arrow(numbers.oracle, sql), None, ())
    for options in (DEFAULT, FORCED):
        assert_same(numbers.runner.run(sql, options).table, expected)


ORDERS = {
    "nulls first": ("SELECT text, id FROM t ORDER BY text, id", (0, 1)),
    "nulls last": ("SELECT text, id FROM t ORDER BY text DESC, id DESC", (0, 1)),
    "nulls where they are asked for": (
        "SELECT text, id FROM t ORDER BY text ASC NULLS LAST, id DESC NULLS FIRST",
        (0, 1),
    ),
    "by position": ("SELECT id % 3, id FROM t ORDER BY 1 DESC, 2", (0, 1)),
    "by what is not selected": ("SELECT text FROM t ORDER BY id % 7, id", (0,)),
    "of groups": ("SELECT text, count(*) AS n FROM t GROUP BY text ORDER BY n DESC, text", (1, 0)),
    "with offset": ("SELECT id FROM t ORDER BY id DESC LIMIT 5 OFFSET 3", (0,)),
    "all rows, one key": ("SELECT id % 2 AS k, id FROM t ORDER BY k", (0,)),
}


@pytest.mark.parametrize("sql_keys", ORDERS.values(), ids=ORDERS)
def test_order_is_sparks(sql_keys: tuple[str, tuple[int, ...]], numbers: Numbers) -> None:
    sql, keys = sql_keys
    expected = spark_answer(numbers.oracle, sql, keys=keys)
    for options in (DEFAULT, FORCED):
        assert_same(numbers.runner.run(sql, options).table, expected)


EMPTY = {
    "rows": "SELECT * FROM nothing ORDER BY id",
    "aggregate": "SELECT count(*), sum(id), max(text), avg(price) FROM nothing",
    "groups": "SELECT text, count(*) FROM nothing GROUP BY text ORDER BY text LIMIT 3",
    "inner join": "SELECT t.id FROM t JOIN nothing ON t.id = nothing.id",
    "left join": "SELECT t.id, n.big FROM t LEFT JOIN nothing n ON t.id = n.id ORDER BY t.id",
    "full join": "SELECT t.id, n.id FROM nothing n FULL JOIN t ON t.id = n.id",
    "not in": "SELECT count(*) FROM t WHERE id NOT IN (SELECT id FROM nothing)",
    "exists": "SELECT count(*) FROM t WHERE EXISTS (SELECT 1 FROM nothing WHERE nothing.id = t.id)",
    "scalar": "SELECT id, (SELECT max(big) FROM nothing) AS m FROM t ORDER BY id",
    "union": "SELECT id FROM nothing UNION ALL SELECT id FROM t WHERE id > 100",
    "window": "SELECT id, rank() OVER (ORDER BY id) FROM nothing",
}


@pytest.mark.parametrize("sql", EMPTY.values(), ids=EMPTY)
def test_empty_tables(sql: str, numbers: Numbers) -> None:
    expected = spark_answer(numbers.oracle, sql)
    for options in (DEFAULT, FORCED):
        assert_same(numbers.runner.run(sql, options).table, expected)


# ---------------------------------------------------------------- parameters


def test_parameters_are_bound_in_every_engine(numbers: Numbers) -> None:
    sql = (
        "SELECT text, count(*) AS n, max(price) AS p, :label AS label FROM t "
        "WHERE id >= :low AND day < :day AND price < :price {more} GROUP BY text ORDER BY text"
    )
    values = {
        "low": Literal(value=1, dtype=INT),
        "day": Literal(value="2025-01-01", dtype=DATE),
        "price": Literal(value="4.50", dtype=parse_type("decimal(3,2)")),
        "label": Literal(value="it's", dtype=STRING),
    }
    arguments = {
        "low": 1,
        "day": datetime.date(2025, 1, 1),
        "price": decimal.Decimal("4.50"),
        "label": "it's",
    }
    for more, engines in (
        ("", {"duckdb"}),
        (
            "AND length(aes_encrypt(text, '0123456789abcdef', 'CBC', 'DEFAULT', '0123456789abcdef')) <> :low",
            {"duckdb", "spark"},
        ),
        ("AND length(collate(text, 'UNICODE')) >= :low", {"spark"}),
    ):
        text = sql.format(more=more)
        expected = numbers.oracle.sql(text, args=arguments).toArrow()
        ran = numbers.runner.run(text, FORCED, parameters=values)
        assert set(ran.engines) == engines
        assert_same(ran.table, Answer(expected, None, (0,)))


# The columns' names or types follow from the value: a query, its parameter's type, two values.
SHAPED: dict[str, tuple[str, DataType, tuple[int | str, int | str]]] = {
    "name": ("SELECT id + :n FROM t", INT, (1, 2)),
    "inner name": ("SELECT * FROM (SELECT id % :n, count(*) AS c FROM t GROUP BY 1)", INT, (2, 3)),
    "filtered name": ("SELECT count(*) FILTER (WHERE id > :n) FROM t", INT, (1, 2)),
    "type": ("SELECT round(price, :n) AS p FROM t", INT, (0, 1)),
    "type of JSON": (
        "SELECT from_json('{\"a\": 1}', :n) AS j FROM t",
        STRING,
        ("a INT", "a BIGINT, b STRING"),
    ),
}


@pytest.mark.parametrize(("sql", "dtype", "values"), SHAPED.values(), ids=SHAPED)
def test_columns_are_those_of_the_values_of_each_run(
    sql: str, dtype: DataType, values: tuple[int | str, int | str], numbers: Numbers
) -> None:
    for value in values:
        expected = numbers.oracle.sql(sql, args={"n": value}).toArrow()
        ran = numbers.runner.run(sql, DEFAULT, parameters={"n": Literal(value=value, dtype=dtype)})
        assert_same(ran.table, Answer(expected, None, ()))


# ---------------------------------------------------------------- through the command line


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_command_line_shows_sparks_errors_and_answers(numbers: Numbers, tmp_path: Path) -> None:
    queries = {
        "overflow": ERRORS["overflow of a sum"][0],
        "division": "SELECT text, sum(1 / id) AS s FROM t GROUP BY text ORDER BY text",
        "fine": NAMED["duplicates"] + " ORDER BY t.id",
        "mixed": "SELECT soundex(text) AS s, count(*) FROM t GROUP BY 1 ORDER BY s",
        "window": EMPTY["window"].replace("nothing", "t"),
    }
    for name, sql in queries.items():
        (tmp_path / f"{name}.sql").write_text(sql)
    options = ["--catalog", str(numbers.catalog_file), "--master", "local[2]"]
    options += planner_arguments(FORCED_TEXT)
    files = [f"{name}.sql" for name in queries]
    done = run_command(["query", *files, *options, "--output-dir", "out"], tmp_path)
    assert done.returncode == 1, done.stderr
    assert "ARITHMETIC_OVERFLOW" in done.stderr
    assert "DIVIDE_BY_ZERO" in done.stderr
    assert "2 of 5 queries failed: overflow, division" in done.stderr
    assert "division.sql" in done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.stdout + done.stderr
    written = sorted(p.name for p in (tmp_path / "out").iterdir())
    assert written == ["fine.parquet", "mixed.parquet", "window.parquet"]
    for name in ("fine", "mixed", "window"):
        # Not read_table, which refuses duplicate names.
        with pq.ParquetFile(tmp_path / "out" / f"{name}.parquet") as file:
            found = file.read()
        assert_same(found, spark_answer(numbers.oracle, queries[name], keys=(0,)))


def test_make_lists_its_targets_and_would_run_the_demo(tmp_path: Path) -> None:
    import subprocess

    from tests.acceptance.processes import ROOT

    def make(*arguments: str) -> str:
        return subprocess.run(
            ["make", *arguments], cwd=ROOT, capture_output=True, text=True, check=True
        ).stdout

    listed = make("help")
    for target in ("install", "demo", "ui", "test", "check", "bench", "golden"):
        assert f"  {target} " in listed
    assert "stagecoach demo" in make("-n", "demo")
