"""Rows as they are sent, and as they are received, without a server."""

from __future__ import annotations

import pyarrow as pa
import pytest

from stagecoach.flight.clients import takes_compressed
from stagecoach.flight.errors import NotAllowedError
from stagecoach.flight.messages.flight_data import encoded, ipc_message, pieces, schema_message
from stagecoach.flight.messages.received import MAX_BYTES, received_rows
from stagecoach.flight.messages.wire import MessageError, parse
from stagecoach.infra.shuffle.stored_batch import StoredBatch

ROWS = pa.record_batch(
    {
        "id": pa.array(range(5000), pa.int64()),
        "text": [None if i % 7 == 0 else f"row {i}" for i in range(5000)],
        "tags": [["a"] * (i % 3) for i in range(5000)],
        "nothing": pa.nulls(5000),
    }
)


def stored(batch: pa.RecordBatch, codec: str | None) -> StoredBatch:
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression=codec)
    with pa.ipc.new_stream(sink, batch.schema, options=options) as writer:
        writer.write_batch(batch)
    source = pa.BufferReader(sink.getvalue())
    assert pa.ipc.read_message(source).type == "schema"
    return StoredBatch(pa.ipc.read_message(source), batch.schema)


def received(contents: list[bytes]) -> pa.Table:
    """What a client makes of messages."""
    parts = [parse("FlightData", content) for content in contents]
    whole = b"".join(ipc_message(part.data_header, part.data_body) for part in parts)
    return pa.ipc.open_stream(whole).read_all()


@pytest.mark.parametrize("codec", [None, "lz4", "zstd"])
def test_a_stored_batch_tells_its_size_without_being_decoded(codec: str | None) -> None:
    found = stored(ROWS, codec)
    assert found.num_rows == ROWS.num_rows
    assert found.is_compressed == (codec is not None)
    # Arrow pads buffers, and leaves out those of validity without a null.
    assert abs(found.nbytes - ROWS.nbytes) < ROWS.nbytes / 20
    assert found.decode().equals(ROWS)
    assert found.slice(0) is found
    assert found.slice(4990).equals(ROWS.slice(4990))


def test_a_stored_batch_of_no_rows() -> None:
    found = stored(pa.RecordBatch.from_pylist([], schema=ROWS.schema), "lz4")
    assert (found.num_rows, found.nbytes < 100) == (0, True)


@pytest.mark.parametrize("compressed", [True, False])
@pytest.mark.parametrize("codec", [None, "lz4"])
def test_rows_arrive_as_they_were(codec: str | None, compressed: bool) -> None:
    schema = pa.schema([f.with_name(f"{f.name}2") for f in ROWS.schema])
    given = [stored(ROWS, codec), ROWS, stored(ROWS.slice(1000, 10), codec), ROWS.slice(0, 0)]
    messages = list(encoded(given, schema, 64 << 10, compressed=compressed))
    assert sum(m.num_rows for m in messages) == 10_010
    assert max(m.nbytes for m in messages) <= 64 << 10
    found = received([schema_message(schema), *(m.content for m in messages)])
    assert found.schema == schema
    expected = pa.Table.from_batches([ROWS, ROWS, ROWS.slice(1000, 10)])
    assert found.rename_columns(ROWS.schema.names).equals(expected)


def test_a_small_stored_batch_is_passed_on_as_it_is() -> None:
    found = stored(ROWS, "lz4")
    for compressed, is_same in ((True, True), (False, False)):
        (sent,) = encoded([found], ROWS.schema, 8 << 20, compressed=compressed)
        data = parse("FlightData", sent.content)
        assert (data.data_body == found.message.body.to_pybytes()) == is_same
        assert (sent.num_rows, len(sent.content) < ROWS.nbytes) == (ROWS.num_rows, is_same)


def test_batches_are_cut() -> None:
    batch = pa.record_batch({"a": pa.array(range(1000), pa.int64())})
    found = list(pieces(iter([batch]), 1000))
    assert max(b.nbytes for b in found) <= 1000
    assert pa.Table.from_batches(found)["a"].to_pylist() == list(range(1000))
    wide = pa.record_batch({"a": ["x" * 5000, "y", "z"]})
    assert [b.num_rows for b in pieces(iter([wide]), 1000)] == [1, 2]


def sent(batch: pa.RecordBatch, codec: str | None = None) -> list[bytes]:
    found = encoded([stored(batch, codec)], batch.schema, 1 << 30, compressed=True)
    return [schema_message(batch.schema), *(message.content for message in found)]


def test_parameters_are_received() -> None:
    row = pa.record_batch({"a": pa.array([1], pa.int8()), "b": ["x"]})
    for codec in (None, "lz4"):
        first, *further = sent(row, codec)
        found = received_rows(parse("FlightData", first), further)
        assert found.to_batches() == [row]


@pytest.mark.parametrize("codec", [None, "lz4"])
def test_too_many_bytes_of_parameters_are_refused_before_they_are_decoded(
    codec: str | None,
) -> None:
    first, *further = sent(pa.record_batch({"a": ["x" * (MAX_BYTES + 1)]}), codec)
    assert (len(further[0]) < MAX_BYTES) == (codec is not None)
    with pytest.raises(MessageError, match="have more than 1,048,576 bytes"):
        received_rows(parse("FlightData", first), further)


def test_parameters_that_are_no_rows_are_refused() -> None:
    first, message = sent(ROWS.slice(0, 3))
    with pytest.raises(MessageError, match="not Arrow rows"):
        received_rows(parse("FlightData", b""), [])
    for position in range(0, len(message), 3):
        damaged = bytearray(message)
        damaged[position] ^= 0xFF
        try:
            received_rows(parse("FlightData", first), [bytes(damaged)])
        except MessageError:
            continue


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"user-agent": ["grpc-c++/1.78.1 grpc-c/53.0.0 (linux; chttp2)"]}, True),
        ({"user-agent": ["ADBC Flight SQL Driver v1.13.0 grpc-go/1.78.0"]}, True),
        ({"user-agent": ["grpc-java-netty/1.70.0"]}, False),
        ({"user-agent": ["tonic/0.14"], "stagecoach-compression": ["stored"]}, True),
        ({"user-agent": ["grpc-go/1.78.0"], "stagecoach-compression": ["none"]}, False),
        ({}, False),
    ],
)
def test_clients_that_read_compressed_messages(
    headers: dict[str, list[str]], expected: bool
) -> None:
    assert takes_compressed(headers) == expected


def test_another_compression_is_refused() -> None:
    with pytest.raises(NotAllowedError, match="may be 'stored' or 'none'"):
        takes_compressed({"stagecoach-compression": ["zstd"]})
