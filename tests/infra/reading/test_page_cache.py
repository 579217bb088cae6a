"""Whether the page cache holds what a scan reads, which DuckDB then does not fetch ahead."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stagecoach.infra.engines.duckdb.engine import DuckDbEngine
from stagecoach.infra.engines.protocol import Fragment, Resources
from stagecoach.infra.errors import InputLostError
from stagecoach.infra.integrity.local import FileChecks, LocalReader
from stagecoach.infra.integrity.parquet import ColumnChunk, column_chunks, read_footer
from stagecoach.infra.integrity.read_parts import keep_parts, parts_key
from stagecoach.infra.reading.data_file import DataFile
from stagecoach.infra.reading.inputs import LeafColumn, ParquetInput
from stagecoach.infra.reading.parquet import check_local_files, is_cached_locally
from stagecoach.planner.types import BIGINT, BOOLEAN, Field, arrow_schema

ROWS = 1_000_000
"""Chunks of 8 MB: more than the system reads ahead when the head of one is looked at."""


@pytest.fixture
def file(tmp_path: Path) -> DataFile:
    return write(tmp_path / "0.parquet")


def write(path: Path) -> DataFile:
    values = np.random.default_rng(1).integers(0, 1 << 60, (2, ROWS))
    table = pa.table({"a": values[0], "b": values[1]})
    pq.write_table(table, path, compression="none", use_dictionary=False)
    return DataFile(str(path), ROWS)


def scan(*files: DataFile, columns: tuple[str, ...] = ("a", "b")) -> ParquetInput:
    leaves = tuple(LeafColumn(f"c{i}", name, BIGINT) for i, name in enumerate(columns))
    return ParquetInput(leaves, files)


def path_of(file: DataFile) -> str:
    assert file.local_path is not None
    return file.local_path


def forget(file: DataFile) -> None:
    """Drop a file from the page cache."""
    descriptor = os.open(path_of(file), os.O_RDONLY)
    try:
        os.fsync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(descriptor)
    with LocalReader(path_of(file)) as reader:
        if reader.has_cached(reader.status.st_size // 2):
            pytest.skip("this file system keeps its pages")


def warm(file: DataFile, *columns: str) -> None:
    with LocalReader(path_of(file)) as reader:
        metadata = read_footer(reader, reader.status.st_size)
        for chunk in column_chunks(metadata, columns):
            reader.read_at(chunk.end - chunk.start, chunk.start)


@pytest.mark.parametrize("checked", [True, False], ids=["checked", "not checked"])
def test_what_was_read_lately_is_there(file: DataFile, checked: bool) -> None:
    leaf = scan(file)
    forget(file)
    if checked:
        check_local_files(leaf)
    assert not is_cached_locally(leaf)
    warm(file, "a", "b")
    assert is_cached_locally(leaf)


def test_only_the_columns_that_are_read_count(file: DataFile) -> None:
    forget(file)
    warm(file, "a")
    assert is_cached_locally(scan(file, columns=("a",)))
    assert not is_cached_locally(scan(file, columns=("b",)))


@pytest.mark.parametrize("columns", [1, 2, 3, 7])
def test_all_columns_of_a_large_file_are_looked_at(columns: int) -> None:
    groups = [divmod(i, columns) for i in range(105)]
    chunks = [ColumnChunk(i, g, f"c{c}", 10 * i, 10 * i + 10) for i, (g, c) in enumerate(groups)]
    parts = keep_parts(parts_key(f"version {columns}", None, None), chunks)
    assert parts.numbers == (0, *range(1, 106)), "all of them are checked"
    assert 0 < len(parts.offsets) < len(chunks)
    assert {chunks[offset // 10].column for offset in parts.offsets} == {c.column for c in chunks}


def test_no_file_may_be_missing(file: DataFile, tmp_path: Path) -> None:
    other = write(tmp_path / "1.parquet")
    forget(other)
    warm(file, "a", "b")
    assert not is_cached_locally(scan(file, other))
    warm(other, "a", "b")
    assert is_cached_locally(scan(file, other))
    with pytest.raises(InputLostError, match="there is no such file"):
        is_cached_locally(scan(file, DataFile(str(tmp_path / "2.parquet"), ROWS)))


def test_a_system_that_does_not_tell_has_nothing(
    file: DataFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    warm(file, "a", "b")
    for flag in (None, 1 << 30):  # none, and one that the file system refuses
        monkeypatch.setattr("stagecoach.infra.integrity.local._NO_WAIT", flag)
        assert not is_cached_locally(scan(file))


def test_what_is_no_parquet_file_is_not_there(tmp_path: Path) -> None:
    path = tmp_path / "0.parquet"
    path.write_bytes(b"no footer")
    leaf = replace(scan(DataFile(str(path), 1)), checks=FileChecks(pages=False))
    assert not is_cached_locally(leaf)


def test_duckdb_fetches_ahead_what_is_not_there(file: DataFile, tmp_path: Path) -> None:
    folder = str(tmp_path)
    spill = str(tmp_path / "spill")
    resources = Resources(
        time_zone="UTC", memory_bytes=256 << 20, spill_dir=spill, directories=(folder,)
    )
    schema = arrow_schema((Field("c0", BOOLEAN),))
    sql = "SELECT NOT current_setting('disable_parquet_prefetching') AS c0 FROM in_0 LIMIT 1"

    def fetches_ahead() -> bool:
        fragment = Fragment.of(sql, [scan(file)], schema)
        with DuckDbEngine().run(fragment, resources) as batches:
            (value,) = pa.Table.from_batches(batches)["c0"].to_pylist()
        return bool(value)

    forget(file)
    assert fetches_ahead()
    warm(file, "a", "b")
    assert not fetches_ahead()
    forget(file)
    assert fetches_ahead(), "it is asked anew for each fragment"
