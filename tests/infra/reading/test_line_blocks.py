"""Ranges of a text file have each of its lines once, wherever they are cut."""

from __future__ import annotations

import bz2
import gzip
import random
from itertools import pairwise
from pathlib import Path

import pytest

from stagecoach.infra.errors import InputLostError, QueryError
from stagecoach.infra.reading.data_file import DataFile
from stagecoach.infra.reading.line_blocks import is_split, line_blocks, spark_only
from stagecoach.infra.storage.object_store import StorageOptions
from stagecoach.infra.storage.table_files import stat_file

OPTIONS = StorageOptions()


def data_file(path: Path, rows: tuple[int, int] | None = None, num_rows: int = 0) -> DataFile:
    entry = stat_file(str(path))
    size = entry.num_bytes
    return DataFile(entry.uri, num_rows or size, num_bytes=size, version=entry.version, rows=rows)


def blocks_of(path: Path, rows: tuple[int, int], block_bytes: int) -> list[bytes]:
    return list(line_blocks(data_file(path, rows), OPTIONS, block_bytes))


@pytest.mark.parametrize("seed", range(60))
def test_ranges_have_each_line_once(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    lines = [rng.randbytes(rng.choice((0, 1, 5, 40))).hex().encode() for _ in range(30)]
    content = rng.choice((b"\n", b"\r\n")).join(lines) + rng.choice((b"", b"\n"))
    path = tmp_path / "a.csv"
    path.write_bytes(content)
    cuts = sorted(rng.randrange(len(content) + 1) for _ in range(rng.choice((0, 1, 3, 20))))
    places = [0, *cuts, len(content)]
    size = rng.choice((1, 3, 7, 64, 10_000))
    found = b""
    for low, high in pairwise(places):
        blocks = blocks_of(path, (low, high), size) if low < high else []
        assert all(block.endswith(b"\n") for block in blocks[:-1])
        part = b"".join(blocks)
        if part:  # it begins where the last one has ended, at a line that begins in the range
            assert low <= len(found) < high
            assert low == 0 or content[len(found) - 1 : len(found)] == b"\n"
        found += part
    assert found == content


def test_a_byte_order_mark_is_left_out_at_the_beginning_of_the_file_only(tmp_path: Path) -> None:
    mark = b"\xef\xbb\xbf"
    path = tmp_path / "a.csv"
    path.write_bytes(mark + b"a\n" + mark + b"b\n")
    assert blocks_of(path, (0, 9), 64) == [b"a\n" + mark + b"b\n"]
    assert blocks_of(path, (0, 5), 64) == [b"a\n"]
    assert blocks_of(path, (5, 9), 64) == [mark + b"b\n"]


@pytest.mark.parametrize(("end", "pack"), [(".gz", gzip.compress), (".bz2", bz2.compress)])
def test_compressed_files_are_read_whole(end: str, pack: object, tmp_path: Path) -> None:
    assert callable(pack)
    path = tmp_path / f"a.csv{end}"
    path.write_bytes(pack(b"a\nb\n") + pack(b"c"))  # two members
    assert not is_split(str(path))
    assert b"".join(line_blocks(data_file(path), OPTIONS, 8)) == b"a\nb\nc"
    path.write_bytes(b"a\nb\n")
    with pytest.raises(QueryError, match="cannot be decompressed"):
        list(line_blocks(data_file(path), OPTIONS))


def test_other_compressed_files_are_left_to_spark() -> None:
    assert spark_only("/t/a.csv.snappy") == "files compressed as .snappy are read by Spark"
    assert spark_only("/t/a.csv.gz") is None
    assert spark_only("/t/a.csv") is None


def test_a_file_that_has_changed_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b"a\nb\n")
    file = data_file(path)
    path.write_bytes(b"a\nb\nc\n")
    with pytest.raises(InputLostError, match="instead of 4"):
        list(line_blocks(file, OPTIONS))


def test_a_line_that_is_too_long_is_left_to_spark(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b"x" * 200)
    with pytest.raises(QueryError, match="more than 100 bytes"):
        list(line_blocks(data_file(path), OPTIONS, 16, max_line_bytes=100))
