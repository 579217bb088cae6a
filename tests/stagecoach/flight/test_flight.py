"""`pyarrow.flight` as a client: endpoints, tickets, cancellation, progress, limits, abuse."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.flight as fl
import pytest

from stagecoach.api.session import Session
from stagecoach.flight.limits import Limits
from stagecoach.flight.messages.wire import message, pack
from stagecoach.flight.serving import Serving
from stagecoach.flight.tickets import TicketSigner
from stagecoach.infra.storage.object_store import ObjectStore
from stagecoach.infra.upkeep.gc import collect_garbage
from tests.stagecoach.flight.conftest import KEY, ROWS, MakeServing
from tests.stagecoach.flight.sql_client import SqlClient, command, field
from tests.waiting import wait_for

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.slow, pytest.mark.spark]

ORDERED = "SELECT id, text FROM numbers ORDER BY id"
MANY = "SELECT id, text FROM numbers"
# More than gRPC buffers for a client that does not read.
BIG = "SELECT id, repeat(text, 40) AS text FROM numbers"
# Takes longer than any test waits.
ENDLESS = "SELECT count(*) FROM numbers a, numbers b, numbers c WHERE a.id + b.id + c.id = -{}"


@pytest.fixture(scope="module")
def client(spark: SparkSession, serving: Serving) -> Iterator[SqlClient]:
    with SqlClient(serving.uri) as found:
        yield found


@pytest.fixture(scope="module")
def alice(spark: SparkSession, guarded: Serving, users: dict[str, str]) -> Iterator[SqlClient]:
    with SqlClient(guarded.uri, users["alice"]) as found:
        yield found


@pytest.fixture(scope="module")
def bob(guarded: Serving, users: dict[str, str]) -> Iterator[SqlClient]:
    with SqlClient(guarded.uri, users["bob"]) as found:
        yield found


@pytest.fixture
def store(open_session: Callable[[], Session]) -> ObjectStore:
    return open_session().store


def ticket_of(handle: bytes) -> fl.Ticket:
    return fl.Ticket(pack(message("TicketStatementQuery", statement_handle=handle)))


# ------------------------------------------------------------------------------ results


def test_endpoints_in_their_order_are_the_result(client: SqlClient) -> None:
    info = client.info(ORDERED)
    assert info.ordered
    assert info.total_records == ROWS
    assert len(info.endpoints) > 1
    parts = [client.read(endpoint) for endpoint in info.endpoints]
    assert all(part.schema == info.schema for part in parts)
    assert pa.concat_tables(parts)["id"].to_pylist() == list(range(ROWS))
    # In any order, and again.
    assert client.read(info.endpoints[-1]) == parts[-1]
    assert info.endpoints[0].expiration_time is not None
    assert not client.info(MANY).ordered


def test_batches_are_small(client: SqlClient) -> None:
    endpoint = client.info(ORDERED).endpoints[0]
    sizes = [chunk.data.nbytes for chunk in client.reader(endpoint)]
    assert len(sizes) > 1
    assert max(sizes) <= 64 << 10


def test_a_result_of_no_rows_has_its_columns(client: SqlClient) -> None:
    found = client.query("SELECT id, text FROM numbers WHERE id < 0")
    assert found.schema == pa.schema([("id", pa.int64()), ("text", pa.string())])
    assert found.num_rows == 0


def test_metadata_that_adbc_does_not_ask_for(client: SqlClient) -> None:
    keys = client.query(command("CommandGetPrimaryKeys", field(3, b"pets")))
    assert (keys.num_rows, keys.num_columns) == (0, 6)
    assert client.query(command("CommandGetCrossReference")).num_columns == 13
    assert client.query(command("CommandGetXdbcTypeInfo", b"\x08\x03"))[
        "type_name"
    ].to_pylist() == ["decimal"]
    assert client.query(command("CommandGetDbSchemas")).to_pylist() == [
        {"catalog_name": "", "db_schema_name": ""}
    ]
    assert list(client.flight.list_flights()) == []


def test_a_lost_result_is_made_again(client: SqlClient, store: ObjectStore) -> None:
    sql = "SELECT id + 1 AS id FROM numbers ORDER BY id"
    info = client.info(sql)
    expected = [client.read(endpoint) for endpoint in info.endpoints]
    run = json.loads(info.app_metadata)["run"]
    pointer = json.loads(store.read_bytes(f"runs/{run}/stages/{_head(store, run)}"))
    keys = [k for k in store.list(f"shuffle/{pointer['fingerprint']}") if k.endswith(".arrow")]
    store.delete(keys[-1:])
    assert [client.read(endpoint) for endpoint in info.endpoints] == expected


def _head(store: ObjectStore, run: str) -> str:
    names = sorted(key.rsplit("/", 1)[1] for key in store.list(f"runs/{run}/stages"))
    return max(names, key=lambda name: int(name.partition("_")[2].partition(".")[0]))


def test_gc_keeps_what_can_be_read(
    make_serving: MakeServing, store: ObjectStore, spark: SparkSession
) -> None:
    sql = "SELECT id + 2 AS id FROM numbers"

    def collect() -> None:
        collect_garbage(store, older_than=timedelta(seconds=0))

    with make_serving() as serving, SqlClient(serving.uri) as client:
        info = client.info(sql)
        collect()
        assert sum(client.read(e).num_rows for e in info.endpoints) == ROWS
    # The server has ended, and with it the hold; another one with the same key finds nothing.
    time.sleep(1.1)
    collect()
    with (
        make_serving() as serving,
        SqlClient(serving.uri) as client,
        pytest.raises(KeyError, match="gone from storage; run the statement again"),
    ):
        client.read(info.endpoints[0])


def test_servers_of_one_storage_root_read_each_others_results(
    make_serving: MakeServing, spark: SparkSession
) -> None:
    with make_serving() as second:
        locations = ["grpc://nowhere:1", second.uri]
        with make_serving(locations=locations) as first, SqlClient(first.uri) as client:
            info = client.info(ORDERED)
        found = [[location.uri for location in e.locations] for e in info.endpoints[:2]]
        assert found[0] == [b"grpc://nowhere:1", second.uri.encode()]
        assert found[1] == [second.uri.encode(), b"grpc://nowhere:1"]
        with SqlClient(second.uri) as client:
            rows = pa.concat_tables([client.read(e) for e in info.endpoints])
        assert rows["id"].to_pylist() == list(range(ROWS))


# ------------------------------------------------------------------------------ tickets


def test_tickets_are_the_users_own(alice: SqlClient, bob: SqlClient) -> None:
    endpoint = alice.info(MANY).endpoints[0]
    assert alice.read(endpoint).num_rows
    with pytest.raises(fl.FlightUnauthorizedError, match="the ticket is another user's"):
        bob.read(endpoint)


def test_forged_and_expired_tickets_are_refused(client: SqlClient) -> None:
    raw = client.info(MANY).endpoints[0].ticket.ticket
    for position in range(len(raw) - 60, len(raw)):
        forged = bytearray(raw)
        forged[position] ^= 1
        with pytest.raises(fl.FlightUnauthorizedError, match="not one of this server's"):
            client.flight.do_get(fl.Ticket(bytes(forged))).read_all()
    signer = TicketSigner(KEY)
    handle = raw[raw.index(b"\x01", 60) :]
    ticket = signer.read(handle, "anonymous")
    for changed, text in ((b"{}", "not one of"), (b"", "not one of")):
        with pytest.raises(fl.FlightUnauthorizedError, match=text):
            client.flight.do_get(ticket_of(changed)).read_all()
    old = signer.sign(replace(ticket, expires=time.time() - 1))
    with pytest.raises(KeyError, match="expired"):
        client.flight.do_get(ticket_of(old)).read_all()
    elsewhere = signer.sign(replace(ticket, fingerprint="../../etc/passwd"))
    with pytest.raises(fl.FlightUnavailableError, match="is not 8 to 128"):
        client.flight.do_get(ticket_of(elsewhere)).read_all()
    other = signer.sign(replace(ticket, content="0" * 64))
    with pytest.raises(pa.ArrowInvalid, match="was recomputed"):
        client.flight.do_get(ticket_of(other)).read_all()


def test_a_ticket_can_be_renewed_and_cancelled(client: SqlClient, alice: SqlClient) -> None:
    info = client.info(MANY)
    endpoint = info.endpoints[0]
    body = field(1, endpoint.serialize())
    time.sleep(0.01)
    (renewed,) = client.action("RenewFlightEndpoint", body)
    later = fl.FlightEndpoint.deserialize(renewed)
    assert later.expiration_time.as_py() > endpoint.expiration_time.as_py()
    assert client.read(later) == client.read(endpoint)
    with pytest.raises(fl.FlightUnauthorizedError, match="another user's"):
        alice.action("CancelFlightInfo", field(1, info.serialize()))
    assert client.action("CancelFlightInfo", field(1, info.serialize())) == [b"\x08\x01"]
    with pytest.raises(KeyError, match="the result was cancelled"):
        client.read(later)


# ------------------------------------------------------------------------------ statements


class Asked(threading.Thread):
    """A statement that is asked in the background."""

    def __init__(self, client: SqlClient, sql: str, statement_id: str) -> None:
        super().__init__(daemon=True)
        self._call = lambda: client.info(sql, ("stagecoach-statement", statement_id))
        self.error: Exception | None = None
        self.start()

    def run(self) -> None:
        try:
            self._call()
        except Exception as error:  # noqa: BLE001 -- looked at by the test
            self.error = error


def progress(client: SqlClient, statement_id: str) -> dict[str, object]:
    try:
        return json.loads(client.action("stagecoach.progress", statement_id.encode())[0])
    except KeyError:
        return {"state": "unknown", "stages": []}


def test_progress_and_cancellation(alice: SqlClient, bob: SqlClient, guarded: Serving) -> None:
    asked = Asked(alice, ENDLESS.format(1), "long-1")
    wait_for(lambda: any(s["tasks"] for s in progress(alice, "long-1")["stages"]))
    found = progress(alice, "long-1")
    assert found["state"] == "running"
    assert {"stage", "title", "state", "tasks", "finished_tasks", "rows"} <= set(
        found["stages"][-1]
    )
    assert progress(bob, "long-1")["state"] == "unknown"
    with pytest.raises(KeyError, match="there is no statement 'long-1'"):
        bob.action("stagecoach.cancel", b"long-1")
    assert guarded.execution.gate.num_running == 1
    assert alice.action("stagecoach.cancel", b"long-1") == [b'{"cancelled": true}']
    asked.join(30)
    assert isinstance(asked.error, fl.FlightCancelledError)
    wait_for(lambda: guarded.execution.num_open == 0)
    assert guarded.execution.gate.num_running == 0
    assert progress(alice, "long-1")["state"] == "cancelled"
    with pytest.raises(fl.FlightUnauthorizedError, match="choose another id"):
        alice.info(MANY, ("stagecoach-statement", "long-1"))
    with pytest.raises(fl.FlightUnauthorizedError, match="1 to 64 letters"):
        alice.info(MANY, ("stagecoach-statement", "a/b"))


def test_a_client_that_goes_cancels_its_statement(guarded: Serving, users: dict[str, str]) -> None:
    with SqlClient(guarded.uri, users["alice"]) as gone:
        options = fl.FlightCallOptions(
            timeout=2.0, headers=[(b"authorization", f"Bearer {users['alice']}".encode())]
        )
        sql = ENDLESS.format(2).encode()
        with pytest.raises(fl.FlightTimedOutError):
            gone.flight.get_flight_info(
                fl.FlightDescriptor.for_command(command("CommandStatementQuery", field(1, sql))),
                options,
            )
    wait_for(lambda: guarded.execution.num_open == 0)


def test_limits_of_statements(make_serving: MakeServing, spark: SparkSession) -> None:
    limits = Limits(running=1, waiting=0, timeout_seconds=3.0)
    with make_serving(limits=limits) as serving, SqlClient(serving.uri) as client:
        client.info(MANY)  # which is answered from storage from now on
        asked = Asked(client, ENDLESS.format(3), "long-3")
        wait_for(lambda: serving.execution.gate.num_running == 1)
        with pytest.raises(fl.FlightUnavailableError, match="1 statements run and 0 wait"):
            client.info("SELECT max(id) + 77 FROM numbers")
        assert client.info(MANY).total_records == ROWS
        asked.join(60)
        assert isinstance(asked.error, fl.FlightTimedOutError)
        assert "longer than the server's limit of 3 s" in str(asked.error)
        wait_for(lambda: serving.execution.gate.num_running == 0)


def test_a_server_that_ends_lets_statements_and_streams_go_on(
    make_serving: MakeServing, spark: SparkSession
) -> None:
    with make_serving() as serving, SqlClient(serving.uri) as client:
        reader = client.reader(client.info(BIG).endpoints[0])
        assert reader.read_chunk().data.num_rows
        drained: list[bool] = []
        thread = threading.Thread(target=lambda: drained.append(serving.drain(60.0)))
        thread.start()
        wait_for(lambda: not serving.is_ready)
        with pytest.raises(fl.FlightUnavailableError, match="shutting down"):
            client.info(MANY)
        assert reader.read_all().num_rows
        thread.join()
        assert drained == [True]


# ------------------------------------------------------------------------------ abuse


def test_only_reading_is_possible(client: SqlClient) -> None:
    rows = pa.table({"a": [1]})
    for name in ("CommandStatementUpdate", "CommandStatementIngest"):
        body = command(name, field(1, b"DELETE FROM pets"))
        descriptor = fl.FlightDescriptor.for_command(body)
        with pytest.raises(pa.ArrowInvalid, match="only answers SELECT"):
            client.flight.get_flight_info(descriptor)
        with pytest.raises(pa.ArrowInvalid, match="only answers SELECT"):
            writer, reader = client.flight.do_put(descriptor, rows.schema)
            writer.write_table(rows)
            writer.done_writing()
            reader.read()
            writer.close()
    with pytest.raises(pa.ArrowInvalid, match="has no command"):
        client.flight.get_flight_info(fl.FlightDescriptor.for_path("etc", "passwd"))
    with pytest.raises(fl.FlightUnauthorizedError, match="read with a ticket"):
        client.flight.do_get(fl.Ticket(command("CommandStatementQuery", field(1, b"SELECT 1"))))
    for sql in (
        "SELECT * FROM parquet.`/etc`",
        "SELECT 1; SELECT 2",
        "SET a = b",
        "/* ${env:HOME} */",
    ):
        with pytest.raises(pa.ArrowInvalid):
            client.info(sql)


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("BeginTransaction", b""),
        ("Nothing", b"x" * 10_000),
        ("CreatePreparedStatement", b"\xff"),
        ("CreatePreparedStatement", command("ActionClosePreparedStatementRequest")),
        ("CancelFlightInfo", b"\xff\xff"),
        ("CancelFlightInfo", field(1, b"\x01\x02")),
        ("RenewFlightEndpoint", field(1, b"")),
        ("CancelQuery", command("ActionCancelQueryRequest", field(1, b"zz"))),
        ("stagecoach.progress", b"\xff" * 100),
        ("stagecoach.cancel", b""),
    ],
)
def test_actions_with_other_bodies(client: SqlClient, name: str, body: bytes) -> None:
    with pytest.raises((fl.FlightError, pa.ArrowException, NotImplementedError)):
        client.action(name, body)
    assert client.action("stagecoach.progress")


def test_oversized_messages_are_refused(client: SqlClient) -> None:
    with pytest.raises(pa.ArrowInvalid, match="characters; this server takes"):
        client.info("SELECT '" + "x" * (5 << 20) + "'")
    (handle,) = client.action(
        "CreatePreparedStatement",
        command("ActionCreatePreparedStatementRequest", field(1, b"SELECT ?")),
    )
    start = handle.index(b"\x10") + 1
    put = command("CommandPreparedStatementQuery", field(1, handle[start : start + 16]))
    rows = pa.table({"a": ["x" * (2 << 20)]})
    with pytest.raises(pa.ArrowInvalid, match="the parameters have more than"):
        writer, reader = client.flight.do_put(fl.FlightDescriptor.for_command(put), rows.schema)
        writer.write_table(rows)
        writer.done_writing()
        reader.read()
        writer.close()


def test_too_many_streams_are_refused(make_serving: MakeServing, spark: SparkSession) -> None:
    limits = Limits(streams=3, streams_per_connection=2, batch_bytes=16 << 10)
    with make_serving(limits=limits) as serving, SqlClient(serving.uri) as client:
        endpoint = client.info(BIG).endpoints[0]
        # A client that has opened a stream and reads no more of it than it was sent at once.
        readers = [client.reader(endpoint) for _ in range(2)]
        for reader in readers:
            reader.read_chunk()
        with pytest.raises(fl.FlightUnavailableError, match="this connection has 2 open streams"):
            client.read(endpoint)
        for reader in readers:
            reader.cancel()
        del readers, reader
        wait_for(lambda: serving.streams.num_open == 0)
        assert client.read(endpoint).num_rows


def test_a_stream_that_nobody_reads_is_ended(
    make_serving: MakeServing, spark: SparkSession
) -> None:
    limits = Limits(stall_seconds=1.0, batch_bytes=16 << 10)
    with make_serving(limits=limits) as serving, SqlClient(serving.uri) as client:
        endpoint = client.info(BIG).endpoints[0]
        reader = client.reader(endpoint)
        reader.read_chunk()
        wait_for(lambda: serving.streams.num_open == 1)
        wait_for(lambda: serving.streams.num_open == 0)
        # pyarrow's `read_all` takes any cancellation for an interrupt by the user.
        with pytest.raises(fl.FlightCancelledError):
            while reader.read_chunk():
                pass
        # Its connection goes on.
        assert client.read(endpoint).num_rows


def test_half_open_connections_hold_nothing_up(serving: Serving, client: SqlClient) -> None:
    host, port = serving.uri.removeprefix("grpc://").split(":")
    silent = [socket.create_connection((host, int(port))) for _ in range(50)]
    try:
        for number, found in enumerate(silent):
            found.sendall(
                (b"", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n")[number % 3]
            )
        assert client.query(MANY).num_rows == ROWS
    finally:
        for found in silent:
            found.close()
