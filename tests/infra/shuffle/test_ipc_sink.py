"""Messages of map files: the buffer in which they are made, and how little is needed to read them."""

from __future__ import annotations

import io

import google_crc32c
import numpy as np
import pyarrow as pa
import pytest

from stagecoach.infra.shuffle.encoding import Piece, concat
from stagecoach.infra.shuffle.ipc_sink import MapFileSink, MessageEncoder, message_seed, read_seal
from stagecoach.infra.shuffle.map_file import Codec
from stagecoach.infra.shuffle.row_streams import RowSlices, whole
from stagecoach.infra.shuffle.sorted_rows import HeldRows, SortedChunk


def batch(num_rows: int, seed: int = 0) -> pa.RecordBatch:
    random = np.random.default_rng(seed)
    numbers = random.integers(0, 1 << 62, num_rows)  # no codec makes these smaller
    return pa.record_batch(
        [pa.array(numbers), pa.array([f"{n:x}" for n in numbers], pa.string())], names=["n", "t"]
    )


def decoded(rows: RowSlices, schema: pa.Schema) -> pa.RecordBatch:
    message = pa.ipc.read_message(MessageEncoder(schema, "none").encode(rows, 0))
    return pa.ipc.read_record_batch(message, schema)


@pytest.mark.parametrize("codec", ["none", "lz4", "zstd"])
@pytest.mark.parametrize("told", [0, 1.0, 10.0], ids=["far too few", "right", "too many"])
def test_a_wrong_size_of_a_piece_costs_time_only(codec: Codec, told: float) -> None:
    encoder = MessageEncoder(batch(0).schema, codec, seed=message_seed("map.arrow"))
    for seed, num_rows in enumerate([5, 200_000, 0, 40_000, 1]):
        rows = batch(num_rows, seed)
        message = encoder.encode(whole(Piece(rows, int(rows.nbytes * told))), 7)
        found = pa.ipc.read_record_batch(pa.ipc.read_message(message), rows.schema)
        assert found.equals(rows)
        assert b"partition=00007;" in message.to_pybytes()[:1000]
        seal = read_seal(message.to_pybytes())
        assert seal.partition == 7
        content = google_crc32c.value(seal.unsealed)
        assert content ^ google_crc32c.value(b"map.arrow") == seal.checksum
        assert encoder.content_checksum(message) == content


@pytest.mark.parametrize("codec", ["lz4", "zstd"])
def test_noise_is_stored_as_it_is_and_what_follows_untried(codec: Codec) -> None:
    noise = batch(5000).select(["n"])
    encoder = MessageEncoder(noise.schema, codec)
    flat = pa.record_batch([pa.array([7] * 5000)], names=["n"])
    for rows in (noise, noise, flat):
        message = encoder.encode(whole(Piece(rows, rows.nbytes)), 0)
        assert len(message) > rows.nbytes
        assert pa.ipc.read_record_batch(pa.ipc.read_message(message), rows.schema).equals(rows)


def test_small_messages_are_written_together_and_nothing_is_lost() -> None:
    class Target(io.BytesIO):
        writes = 0

        def write(self, data: object, /) -> int:
            self.writes += 1
            return super().write(data)  # type: ignore[arg-type]

    target = Target()
    sink = MapFileSink(target, batch(0).schema, "lz4")
    batches = [batch(size, size) for size in (1, 2000, 100_000, 3, *[50] * 100)]
    for rows in batches:
        sink.write(Piece(rows, rows.nbytes), 0, 0)
    sink.close()
    content = target.getvalue()
    assert target.writes < 10
    assert (len(content), google_crc32c.value(content)) == (sink.num_bytes, sink.checksum)
    with pa.ipc.open_file(pa.BufferReader(content)) as reader:
        assert reader.num_record_batches == len(batches)
        assert reader.read_all().to_batches()[1].equals(batches[1])


@pytest.mark.parametrize("num_partitions", [1, 3, 40, 300])
def test_held_rows_come_in_order_whatever_partition_is_asked_for(num_partitions: int) -> None:
    random = np.random.default_rng(num_partitions)
    held = HeldRows(num_partitions, batch_rows=3000, batch_bytes=1 << 20)
    chunks = [batch(size, size) for size in (4000, 1, 900)]
    ids = [random.integers(0, num_partitions, c.num_rows).astype(np.uint16) for c in chunks]
    for rows, partitions in zip(chunks, ids, strict=True):
        held.add(SortedChunk(rows, partitions, num_partitions))
    whole, of_row = concat(chunks), np.concatenate(ids)
    for partition in [*range(num_partitions), 0, num_partitions - 1, num_partitions // 2]:
        pieces = [
            decoded(piece, rows.schema) if isinstance(piece, RowSlices) else piece.batch
            for piece in held.pieces(partition)
        ]
        found = [row for piece in pieces for row in piece.to_pylist()]
        assert found == whole.take(pa.array(np.flatnonzero(of_row == partition))).to_pylist()
        assert all(piece.num_rows <= 3000 for piece in pieces)


def test_what_is_not_worth_compressing_is_stored_until_it_is_tried_again() -> None:
    encoder = MessageEncoder(batch(0).schema, "lz4")
    rows = batch(20_000)
    even = rows.set_column(0, "n", pa.array(np.zeros(20_000, dtype=np.int64)))
    sizes = {}
    for number, kept in enumerate([even, rows, *[even] * 20]):
        message = encoder.encode(whole(Piece(kept, kept.nbytes)), 0)
        found = pa.ipc.read_record_batch(pa.ipc.read_message(message), rows.schema)
        assert found.equals(kept)
        sizes[number] = message.size - encoder.encode(whole(Piece(kept.slice(0, 0), 0)), 0).size
    compressed, stored = sizes[0], sizes[2]
    assert compressed + 150_000 < stored == sizes[16]
    assert sizes[21] == compressed


def test_bitmaps_of_some_chunks_only_are_joined() -> None:
    texts = ["", "x" * 300, None, "y"]
    kind = pa.struct([("f", pa.bool_()), ("l", pa.list_(pa.string()))])
    nested = [None, {"f": None, "l": None}, {"f": True, "l": []}, {"f": False, "l": texts}]
    full = [{"f": True, "l": ["a"]}, {"f": False, "l": ["", "b"]}]
    chunks = [
        pa.record_batch([pa.array(t), pa.array(n, kind)], names=["t", "n"])
        for t, n in [(["a", "b"], full), (texts, nested), (["c", None], [full[0], None])]
    ]
    # Slices, whose bitmaps begin within a byte.
    chunks.append(concat([chunks[1]] * 5).slice(3, 15))
    held = HeldRows(2, batch_rows=3000, batch_bytes=1 << 20)
    expected: list[list[object]] = [[], []]
    for chunk in chunks:
        ids = (np.arange(chunk.num_rows) % 3 == 1).astype(np.uint16)
        held.add(SortedChunk(chunk, ids, 2))
        for row, partition in zip(chunk.to_pylist(), ids, strict=True):
            expected[partition].append(row)
    for partition in range(2):
        (piece,) = held.pieces(partition)
        assert isinstance(piece, RowSlices)
        found = decoded(piece, chunks[0].schema)
        found.validate(full=True)
        assert found.to_pylist() == expected[partition]
