"""PEP 249 over a session; what runs on Spark and is cancelled is in test_cancelling.py."""

from __future__ import annotations

import datetime
import threading
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest

from stagecoach import dbapi
from stagecoach.infra.errors import QueryFailedError, StorageError
from stagecoach.planner.errors import UnknownColumnError
from tests.in_memory_session import InMemorySession, open_in_memory

SALES = pa.table(
    {
        "shop": ["a", "b", "a", None],
        "amount": pa.array(
            [Decimal("1.50"), Decimal("2.25"), None, Decimal("4")], pa.decimal128(9, 2)
        ),
        "day": pa.array([datetime.date(2024, 1, d) for d in (1, 2, 3, 4)]),
        "at": pa.array([datetime.datetime(2024, 1, 1, 12)] * 4, pa.timestamp("us", "UTC")),
    }
)


@pytest.fixture
def session(tmp_path: Path) -> InMemorySession:
    return open_in_memory(tmp_path, {"sales": SALES, "numbers": pa.table({"n": range(5000)})})


@pytest.fixture
def connection(session: InMemorySession) -> Iterator[dbapi.Connection]:
    with dbapi.Connection(session) as found:
        yield found


def test_the_module_says_what_it_is() -> None:
    assert (dbapi.apilevel, dbapi.threadsafety, dbapi.paramstyle) == ("2.0", 1, "named")
    assert issubclass(dbapi.Warning, Exception)
    assert issubclass(dbapi.InterfaceError, dbapi.Error)
    kinds = ("Data", "Operational", "Integrity", "Internal", "Programming", "NotSupported")
    for kind in kinds:
        assert issubclass(getattr(dbapi, f"{kind}Error"), dbapi.DatabaseError)
        assert getattr(dbapi.Connection, f"{kind}Error") is getattr(dbapi, f"{kind}Error")
    assert dbapi.Date(2024, 1, 2) == datetime.date(2024, 1, 2)
    assert dbapi.Binary(b"x") == b"x"
    moment = datetime.datetime(2024, 1, 2, 3, 4, 5)
    ticks = moment.timestamp()
    assert dbapi.DateFromTicks(ticks) == moment.date()
    assert dbapi.TimeFromTicks(ticks) == moment.time()
    assert dbapi.TimestampFromTicks(ticks) == moment.astimezone()


def test_rows_and_their_description(connection: dbapi.Connection) -> None:
    cursor = connection.cursor()
    assert (cursor.description, cursor.rowcount) == (None, -1)
    assert cursor.execute("SELECT shop, amount, day, at FROM sales ORDER BY day") is cursor
    assert cursor.rowcount == 4
    assert cursor.description == (
        ("shop", "string", None, None, None, None, None),
        ("amount", "decimal(9,2)", None, None, 9, 2, None),
        ("day", "date", None, None, None, None, None),
        ("at", "timestamp", None, None, None, None, None),
    )
    codes = [column[1] for column in cursor.description]
    assert codes == [dbapi.STRING, dbapi.NUMBER, dbapi.DATETIME, dbapi.DATETIME]
    assert codes[0] != dbapi.NUMBER
    assert cursor.fetchone() == (
        "a",
        Decimal("1.50"),
        datetime.date(2024, 1, 1),
        datetime.datetime(2024, 1, 1, 12, tzinfo=datetime.UTC),
    )
    assert [row[0] for row in cursor.fetchmany()] == ["b"]
    assert [row[0] for row in cursor.fetchall()] == ["a", None]
    assert cursor.fetchone() is None
    assert cursor.fetchall() == cursor.fetchmany(3) == []


def test_a_date_that_python_cannot_hold_is_a_text(tmp_path: Path) -> None:
    days = pa.array([0, 2_932_897], pa.int32()).cast(pa.date32())
    session = open_in_memory(tmp_path, {"days": pa.table({"day": days})})
    with dbapi.Connection(session) as connection:
        cursor = connection.cursor().execute("SELECT day FROM days")
        assert cursor.fetchall() == [(datetime.date(1970, 1, 1),), ("+10000-01-01",)]


def test_fetching_streams(connection: dbapi.Connection) -> None:
    cursor = connection.cursor()
    cursor.arraysize = 7
    cursor.execute("SELECT n FROM numbers ORDER BY n")
    assert len(cursor.fetchmany()) == 7
    assert next(cursor) == (7,)
    assert len(list(cursor)) == 5000 - 8
    assert cursor.fetch_arrow_table().num_rows == 5000
    assert sum(batch.num_rows for batch in cursor.fetch_record_batch()) == 5000


def test_parameters_of_both_styles(connection: dbapi.Connection) -> None:
    cursor = connection.cursor()
    sql = "SELECT count(*) FROM sales WHERE shop = :shop AND day <= :day"
    cursor.execute(sql, {"shop": "a", "day": datetime.date(2024, 1, 2)})
    assert cursor.fetchall() == [(1,)]
    cursor.execute("SELECT ? AS a, ? AS b", ("5", 5))
    assert cursor.description is not None
    assert [column[1] for column in cursor.description] == ["string", "int"]
    assert cursor.fetchall() == [("5", 5)]
    for text in ("it's", "a'' OR 1 = 1", "\\", "NULL", "DATE '2024-01-01'", "", "ü\n"):
        cursor.execute("SELECT :x AS x", {"x": text})
        assert cursor.fetchone() == (text,)
    with pytest.raises(dbapi.ProgrammingError, match="parameter 'shop' has no value"):
        cursor.execute(sql, {"day": None})
    with pytest.raises(dbapi.ProgrammingError, match="not a text"):
        cursor.execute("SELECT ?", "x")
    with pytest.raises(dbapi.ProgrammingError, match="is a bytes"):
        cursor.execute("SELECT ?", [b"x"])  # type: ignore[list-item]


def test_pandas_reads_a_connection(connection: dbapi.Connection) -> None:
    with pytest.warns(UserWarning, match="SQLAlchemy"):
        frame = pd.read_sql(
            "SELECT shop, sum(amount) AS total FROM sales WHERE shop = :shop GROUP BY shop",
            connection,
            params={"shop": "a"},
        )
    assert frame.to_dict("list") == {"shop": ["a"], "total": [Decimal("1.50")]}
    with pytest.warns(UserWarning, match="SQLAlchemy"):
        chunks = pd.read_sql("SELECT n FROM numbers", connection, chunksize=2000)
        assert [len(chunk) for chunk in chunks] == [2000, 2000, 1000]
    with (
        pytest.warns(UserWarning),
        pytest.raises(pd.errors.DatabaseError, match="'nope' not found"),
    ):
        pd.read_sql("SELECT nope FROM numbers", connection)


def test_errors_are_those_of_pep_249(
    connection: dbapi.Connection, session: InMemorySession
) -> None:
    cursor = connection.cursor()
    with pytest.raises(dbapi.ProgrammingError, match="column 'nope' not found") as caught:
        cursor.execute("SELECT nope FROM sales")
    assert isinstance(caught.value.__cause__, UnknownColumnError)
    assert caught.value.__cause__.column == 8
    with pytest.raises(dbapi.NotSupportedError, match="INSERT is not a query"):
        cursor.execute("INSERT INTO sales VALUES (1)")
    with pytest.raises(dbapi.NotSupportedError):
        cursor.executemany("SELECT ?", [(1,), (2,)])
    with pytest.raises(dbapi.ProgrammingError, match="execute a query first"):
        cursor.fetchone()
    raised = {
        QueryFailedError("q", "DIVIDE_BY_ZERO", "zero. SQLSTATE: 22012"): dbapi.DataError,
        QueryFailedError("q", "NO_TABLE", "table. SQLSTATE: 42P01"): dbapi.ProgrammingError,
        QueryFailedError("q", "OTHER", "strange"): dbapi.DatabaseError,
        StorageError("no space"): dbapi.OperationalError,
    }
    for error, kind in raised.items():

        def fail(error: Exception = error) -> None:
            raise error

        session.before_run = fail
        with pytest.raises(kind) as told:
            cursor.execute("SELECT 1")
        assert type(told.value) is kind
        assert told.value.__cause__ is error
    with pytest.raises(dbapi.ProgrammingError, match=r"none\.yaml"):
        dbapi.connect("none.yaml")
    with pytest.raises(dbapi.OperationalError, match="unknown setting"):
        dbapi.connect("none.yaml", settings={"nothing": 1})


def test_explain_has_rows(connection: dbapi.Connection) -> None:
    cursor = connection.cursor().execute("EXPLAIN SELECT n FROM numbers")
    row = cursor.fetchone()
    assert row is not None
    assert row[0].startswith("query query: 1 stage")


def test_what_is_closed_says_so(session: InMemorySession) -> None:
    connection = dbapi.Connection(session)
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    with pytest.raises(dbapi.InterfaceError, match="cursor is closed"):
        cursor.fetchone()
    other = connection.cursor().execute("SELECT 1")
    connection.commit()
    connection.rollback()
    connection.close()
    connection.close()
    for call in (connection.cursor, connection.commit, connection.rollback):
        with pytest.raises(dbapi.InterfaceError, match="connection is closed"):
            call()
    with pytest.raises(dbapi.InterfaceError, match="cursor is closed"):
        other.execute("SELECT 1")


def test_another_thread_cancels(connection: dbapi.Connection, session: InMemorySession) -> None:
    cursor = connection.cursor()
    cursor.cancel()  # nothing runs
    runs, may_go_on = threading.Event(), threading.Event()

    def wait() -> None:
        runs.set()
        assert may_go_on.wait(30)

    session.before_run = wait

    def cancel() -> None:
        assert runs.wait(30)
        cursor.cancel()
        may_go_on.set()

    thread = threading.Thread(target=cancel)
    thread.start()
    with pytest.raises(dbapi.OperationalError, match="the query was cancelled"):
        cursor.execute("SELECT n FROM numbers")
    thread.join()
    session.before_run = lambda: None
    assert cursor.execute("SELECT 1").fetchall() == [(1,)]
