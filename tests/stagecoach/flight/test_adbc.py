"""The ADBC driver of Flight SQL as a client: rows, types, parameters, metadata, errors."""

from __future__ import annotations

import datetime
import decimal
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import adbc_driver_flightsql.dbapi as flight_sql
import pyarrow as pa
import pytest
from adbc_driver_manager import DatabaseError

from stagecoach.api.session import Session
from stagecoach.flight.serving import Serving
from tests.stagecoach.flight.conftest import ROWS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.slow, pytest.mark.spark]

TYPES = (
    "SELECT *, id = 1 AS b, CAST(id AS TINYINT) AS i8, CAST(id AS SMALLINT) AS i16, "
    "CAST(id AS FLOAT) AS f, CAST(name AS BINARY) AS bin, CAST(seen AS TIMESTAMP_NTZ) AS ntz, "
    "map('k', id) AS m, named_struct('x', id, 'y', name) AS s FROM pets ORDER BY id"
)


@pytest.fixture(scope="module")
def connection(spark: SparkSession, serving: Serving) -> Iterator[flight_sql.Connection]:
    with flight_sql.connect(serving.uri, autocommit=True) as found:
        yield found


def test_rows_have_the_names_and_types_of_a_session(
    connection: flight_sql.Connection, open_session: Callable[[], Session]
) -> None:
    with connection.cursor() as cursor:
        cursor.execute(TYPES)
        found = cursor.fetch_arrow_table()
    expected = open_session().query(TYPES).to_arrow()
    assert found.schema == expected.schema
    assert found.equals(expected)


def test_a_result_of_several_files_is_read_whole_and_in_order(
    connection: flight_sql.Connection,
) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT id, text FROM numbers ORDER BY id")
        found = cursor.fetch_arrow_table()
        assert found["id"].to_pylist() == list(range(ROWS))
        cursor.execute("SELECT id FROM numbers ORDER BY id LIMIT 3")
        assert cursor.fetchall() == [(0,), (1,), (2,)]
        cursor.execute("SELECT id, text FROM numbers WHERE id < 10")
        assert sorted(cursor.fetch_df()["id"]) == list(range(10))


def test_parameters_have_types(connection: flight_sql.Connection) -> None:
    values = (
        7,
        2.5,
        "it's 'quoted'",
        True,
        decimal.Decimal("1.50"),
        datetime.date(2024, 2, 29),
        datetime.datetime(2024, 2, 29, 1, 2, 3, 4, tzinfo=datetime.UTC),
    )
    names = ", ".join(f"? AS p{i}, typeof(?) AS t{i}" for i in range(len(values)))
    doubled = tuple(value for value in values for _ in range(2))
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {names}", doubled)
        row = cursor.fetchone()
    assert row[::2] == values
    kinds = ("bigint", "double", "string", "boolean", "decimal(3,2)", "date", "timestamp")
    assert row[1::2] == kinds


def test_a_prepared_statement_runs_again_with_other_values(
    connection: flight_sql.Connection,
) -> None:
    with connection.cursor() as cursor:
        for wanted in (5, 17):
            cursor.execute("SELECT id FROM numbers WHERE id = ?", (wanted,))
            assert cursor.fetchall() == [(wanted,)]
        named = pa.record_batch({"b": pa.array([4], pa.int64()), "a": pa.array([2], pa.int64())})
        cursor.execute("SELECT id FROM numbers WHERE id > :a AND id < :b", named)
        assert cursor.fetchall() == [(3,)]


def test_metadata(connection: flight_sql.Connection) -> None:
    assert connection.adbc_get_info()["vendor_name"] == "Stagecoach"
    assert connection.adbc_get_table_types() == ["TABLE"]
    schema = connection.adbc_get_table_schema("pets")
    assert schema.field("price").type == pa.decimal128(3, 2)
    (catalog,) = connection.adbc_get_objects().read_all().to_pylist()
    tables = [t for s in catalog["catalog_db_schemas"] for t in s["db_schema_tables"]]
    assert [t["table_name"] for t in tables] == ["numbers", "pets"]
    remarks = connection.adbc_get_table_schema("numbers").field("id").metadata
    assert remarks[b"ARROW:FLIGHT:SQL:REMARKS"] == b"From 0 on."
    columns = {c["column_name"]: c for c in tables[1]["table_columns"]}
    assert columns["seen"]["xdbc_type_name"] == "timestamp"
    only = connection.adbc_get_objects(table_name_filter="pe%").read_all().to_pylist()
    assert [t["table_name"] for t in only[0]["catalog_db_schemas"][0]["db_schema_tables"]] == [
        "pets"
    ]


def test_columns_are_known_without_running(connection: flight_sql.Connection) -> None:
    with connection.cursor() as cursor:
        schema = cursor.adbc_execute_schema("SELECT count(*) AS n FROM numbers")
    assert schema == pa.schema([("n", pa.int64())])


def test_explain_is_a_statement(connection: flight_sql.Connection) -> None:
    with connection.cursor() as cursor:
        cursor.execute("EXPLAIN SELECT id FROM pets")
        assert "Stage 0" in cursor.fetchone()[0]
        cursor.execute("EXPLAIN SELECT id FROM pets WHERE id < ?", (2,))
        assert "Stage 0" in cursor.fetchone()[0]


@pytest.mark.parametrize(
    ("sql", "text"),
    [
        ("SELECT idd FROM pets", r"line 1:8: .*column 'idd' not found; did you mean 'id'"),
        ("DELETE FROM pets", "DELETE is not a query"),
        ("SELECT * FROM nowhere", "nowhere"),
        ("SELECT 1 / (id - id) FROM pets", "DIVIDE_BY_ZERO"),
    ],
)
def test_errors_say_what_is_wrong(connection: flight_sql.Connection, sql: str, text: str) -> None:
    with connection.cursor() as cursor, pytest.raises(DatabaseError, match=text) as caught:
        cursor.execute(sql)
    assert "Traceback" not in str(caught.value)


def test_wrong_parameters_are_refused(connection: flight_sql.Connection) -> None:
    with connection.cursor() as cursor:
        with pytest.raises(DatabaseError, match="1 parameters were bound; the query has 2"):
            cursor.execute("SELECT ? + ?", (1,))
        with pytest.raises(DatabaseError, match="parameter '1' is NULL"):
            cursor.execute("SELECT ?", (None,))


def test_several_clients_at_once(spark: SparkSession, serving: Serving) -> None:
    found: dict[int, object] = {}

    def ask(number: int) -> None:
        with (
            flight_sql.connect(serving.uri, autocommit=True) as connection,
            connection.cursor() as cursor,
        ):
            # Some of them ask the same at the same time.
            cursor.execute("SELECT count(*), max(id) FROM numbers WHERE id < ?", (number % 4,))
            found[number] = cursor.fetchone()

    threads = [threading.Thread(target=ask, args=(i,)) for i in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {i: (i % 4, i % 4 - 1 if i % 4 else None) for i in range(12)}
