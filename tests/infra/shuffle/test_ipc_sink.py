"""Messages of map files: what they carry, and the rows of which they are made."""

from __future__ import annotations

import io

import google_crc32c
import numpy as np
import pyarrow as pa
import pytest

from stagecoach.infra.shuffle.encoding import Piece, concat
from stagecoach.infra.shuffle.ipc_sink import MapFileSink, MessageEncoder, message_seed, read_seal
from stagecoach.infra.shuffle.map_file import Codec
from stagecoach.infra.shuffle.sorted_rows import HeldRows, SortedChunk


def batch(num_rows: int, seed: int = 0) -> pa.RecordBatch:
    random = np.random.default_rng(seed)
    numbers = random.integers(0, 1 << 62, num_rows)  # no codec makes these smaller
    return pa.record_batch(
        [pa.array(numbers), pa.array([f"{n:x}" for n in numbers], pa.string())], names=["n", "t"]
    )


@pytest.mark.parametrize("codec", ["none", "lz4", "zstd"])
def test_a_message_carries_its_partition_and_its_checksum(codec: Codec) -> None:
    encoder = MessageEncoder(batch(0).schema, codec, seed=message_seed("map.arrow"))
    for seed, num_rows in enumerate([5, 200_000, 0, 40_000, 1]):
        rows = batch(num_rows, seed)
        message = encoder.encode(rows, 7)
        found = pa.ipc.read_record_batch(pa.ipc.read_message(message), rows.schema)
        assert found.equals(rows)
        assert b"partition=00007;" in message.to_pybytes()[:1000]
        seal = read_seal(message.to_pybytes())
        assert seal.partition == 7
        content = google_crc32c.value(seal.unsealed)
        assert content ^ google_crc32c.value(b"map.arrow") == seal.checksum


@pytest.mark.parametrize("codec", ["none", "lz4", "zstd"])
def test_the_message_of_a_batch_is_always_the_same(codec: Codec) -> None:
    rows = batch(3000)
    first, second = (MessageEncoder(rows.schema, codec) for _ in range(2))
    second.encode(batch(40), 3)
    assert first.encode(rows, 1).equals(second.encode(rows, 1))
    part = concat([rows, rows]).slice(3000)
    assert first.encode(part, 1).equals(second.encode(rows, 1))


@pytest.mark.parametrize("codec", ["none", "lz4"])
def test_texts_that_look_like_a_seal_are_not_taken_for_one(codec: Codec) -> None:
    rows = pa.record_batch([pa.array(["partition=00001;crc32c=########"] * 3)], names=["crc32c="])
    seal = read_seal(MessageEncoder(rows.schema, codec).encode(rows, 5).to_pybytes())
    assert (seal.partition, seal.checksum) == (5, google_crc32c.value(seal.unsealed))


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
    held = HeldRows(batch_rows=3000, batch_bytes=1 << 20)
    chunks = [batch(size, size) for size in (4000, 1, 900)]
    ids = [random.integers(0, num_partitions, c.num_rows).astype(np.uint16) for c in chunks]
    for rows, partitions in zip(chunks, ids, strict=True):
        held.add(SortedChunk(rows, partitions, num_partitions))
    whole, of_row = concat(chunks), np.concatenate(ids)
    for partition in [*range(num_partitions), 0, num_partitions - 1, num_partitions // 2]:
        pieces = [piece.batch for piece in held.pieces(partition)]
        found = [row for piece in pieces for row in piece.to_pylist()]
        assert found == whole.take(pa.array(np.flatnonzero(of_row == partition))).to_pylist()
        assert all(piece.num_rows <= 3000 for piece in pieces)


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
    held = HeldRows(batch_rows=3000, batch_bytes=1 << 20)
    expected: list[list[object]] = [[], []]
    for chunk in chunks:
        ids = (np.arange(chunk.num_rows) % 3 == 1).astype(np.uint16)
        held.add(SortedChunk(chunk, ids, 2))
        for row, partition in zip(chunk.to_pylist(), ids, strict=True):
            expected[partition].append(row)
    for partition in range(2):
        (piece,) = held.pieces(partition)
        found = piece.batch
        found.validate(full=True)
        assert found.to_pylist() == expected[partition]
