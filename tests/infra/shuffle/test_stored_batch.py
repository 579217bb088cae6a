"""Rows that are read as they are stored: checked like decoded ones, and equal to them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from stagecoach.infra.errors import ShuffleReadError
from stagecoach.infra.shuffle import reader
from stagecoach.infra.shuffle.commit import load_index
from stagecoach.infra.shuffle.map_file import Codec
from stagecoach.infra.shuffle.reader import ReadRequestError, read_stored, read_table
from stagecoach.infra.storage import layout
from stagecoach.infra.storage.stores import open_store
from tests.infra.shuffle.test_shuffle import CODECS, FINGERPRINT, flip, written


@pytest.mark.parametrize("whole_bytes", [1, 16 << 20])
@pytest.mark.parametrize("codec", CODECS)
def test_stored_batches_are_the_rows(
    tmp_path: Path, codec: Codec, whole_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "WHOLE_RANGE_BYTES", whole_bytes)
    store = open_store(tmp_path)
    manifest, _ = written(store, codec=codec, batch_rows=60)
    for files in (range(3), range(1, 2), range(0)):
        found = list(read_stored(store, manifest, files))
        expected = read_table(store, manifest, files=files)
        decoded = pa.Table.from_batches([b.decode() for b in found], schema=manifest.schema)
        assert decoded.equals(expected)
        assert sum(batch.num_rows for batch in found) == expected.num_rows
        assert all(batch.nbytes >= batch.decode().nbytes for batch in found)
        assert {batch.is_compressed for batch in found} <= {codec != "none"}
    with pytest.raises(ReadRequestError, match="which has 3"):
        read_stored(store, manifest, range(4))


@pytest.mark.parametrize("whole_bytes", [1, 16 << 20])
def test_no_flipped_byte_goes_unnoticed(
    tmp_path: Path, whole_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "WHOLE_RANGE_BYTES", whole_bytes)
    store = open_store(tmp_path)
    manifest, _ = written(store, num_tasks=1, num_partitions=1, batch_rows=250)
    key = layout.shuffle_file(FINGERPRINT, manifest.files[0].name)
    content = store.read_bytes(key)
    index = load_index(store, manifest)
    start, length = index.column("offset")[0].as_py(), index.column("length")[0].as_py()
    for position in range(start, start + length, 41):
        store.write_bytes(key, flip(content, position))
        with pytest.raises(ShuffleReadError, match="run q5/stage_2 again"):
            list(read_stored(store, manifest, range(1)))
