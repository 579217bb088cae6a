"""Checks as queries: which rows fail them, on DuckDB as the planner plans it."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stagecoach.assets.definitions.checks import describe
from stagecoach.assets.plans.check_sql import failing_rows_sql
from stagecoach.assets.project.front_matter import FrontMatter, parse_front_matter
from stagecoach.planner import plan_query
from stagecoach.planner.types import DATE, INT, STRING, Field
from tests.differential.edge_tables import EdgeTables
from tests.differential.inprocess import InProcessRunner

COLUMNS = (Field("id", INT), Field("kind", STRING), Field("a b", STRING), Field("day", DATE))


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> EdgeTables:
    folder = tmp_path_factory.mktemp("checks")
    table = pa.table(
        {
            "id": pa.array([1, 2, 2, None, 5, None], pa.int32()),
            "kind": ["new", "it's", "new", "b\\c", None, "odd"],
            "a b": ["x", None, "y", "z", "x", "y"],
            "day": pa.array([0, 0, 1, 1, 2, 2], pa.date32()),
        }
    )
    path = folder / "t" / "0.parquet"
    path.parent.mkdir()
    pq.write_table(table, path)
    return EdgeTables(folder, {"t": (str(path),)}, {"t": table.schema})


def front_matter(check: str, partitions: str = "") -> FrontMatter:
    text = f"/*\nchecks:\n  - {check}\n{partitions}\n*/ SELECT 1"
    return parse_front_matter(text)


def failing(tables: EdgeTables, check: str) -> list[tuple[object, ...]]:
    (found,) = front_matter(check).checks
    sql = failing_rows_sql(found, "t", COLUMNS)
    assert sql is not None
    graph = plan_query(sql, tables.catalog)
    assert all(stage.engine == "duckdb" for stage in graph.stages)
    rows = InProcessRunner(tables).run(graph).to_pylist()
    return sorted((tuple(row.values()) for row in rows), key=repr)


@pytest.mark.parametrize(
    ("check", "count"),
    [
        ("not_null: [id]", 2),
        ("not_null: [id, kind]", 3),
        ("not_null: [day]", 0),
        ("unique: [id]", 2),
        ("unique: [id, day]", 0),
        ("unique: [a b, day]", 0),
        ("accepted_values: {column: kind, values: [new, 'it''s', 'b\\c']}", 1),
        ("accepted_values: {column: id, values: [1, 2, 5]}", 0),
        ("accepted_values: {column: day, values: [1970-01-01, 1970-01-02]}", 1),
        ("row_count: {min: 6, max: 6}", 0),
        ("row_count: {min: 7}", 1),
        ("row_count: {max: 5}", 1),
        ("no_rows: {name: none, sql: 'SELECT * FROM t WHERE id > 4; -- comment'}", 1),
    ],
)
def test_rows_that_fail(tables: EdgeTables, check: str, count: int) -> None:
    assert len(failing(tables, check)) == count


def test_what_fails_is_told(tables: EdgeTables) -> None:
    assert failing(tables, "unique: [id]") == [(2, 2), (None, 2)]
    assert failing(tables, "row_count: {min: 7}") == [(6,)]


def test_only_the_runs_own_window_is_looked_at() -> None:
    daily = front_matter(
        "not_null: [id]", "partitions: {by: daily, start: 1970-01-01, column: day}"
    )
    sql = failing_rows_sql(daily.checks[0], "s.t", COLUMNS, daily.partitions)
    assert sql is not None
    assert "`s`.`t` WHERE `day` >= :partition_start AND `day` < :partition_end" in sql
    static = front_matter("not_null: [id]", "partitions: {by: static, keys: [a], column: kind}")
    sql = failing_rows_sql(static.checks[0], "t", COLUMNS, static.partitions)
    assert sql is not None
    assert "WHERE `kind` = :partition_key" in sql


def test_freshness_is_not_about_rows() -> None:
    (check,) = front_matter("freshness: {within: 26h}").checks
    assert failing_rows_sql(check, "t", COLUMNS) is None


@pytest.mark.parametrize(
    ("check", "text"),
    [
        ("not_null: [id, kind]", "no NULL in `id`, `kind` of `t`"),
        ("unique: [id, a b]", "no two rows of `t` are the same in `id`, `a b`"),
        ("accepted_values: {column: kind, values: [new, odd]}", "`kind` of `t` is one of new, odd"),
        ("row_count: {min: 1000}", "`t` has at least 1,000 rows"),
        ("row_count: {min: 1, max: 5}", "`t` has at least 1 and at most 5 rows"),
        ("no_rows: {name: odd, sql: SELECT 1}", "the query `odd` about `t` finds no rows"),
    ],
)
def test_a_check_says_what_it_looks_at(check: str, text: str) -> None:
    (found,) = front_matter(check).checks
    assert describe(found, "t") == text
