"""A data file has two forms as plain data: that of the snapshot and that of tasks."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from stagecoach.infra.formats.deduplicated.inputs import ChunkRows
from stagecoach.infra.reading.data_file import DataFile
from stagecoach.infra.reading.deletes import UnitDeletes

FILE = DataFile(
    "/t/day=1/a.parquet",
    9,
    num_bytes=100,
    version="v",
    footer_checksum="c",
    row_groups=(4, 5),
    partition=("1", None),
    bounds=((0, 1, 2), (None, None, None)),
)


@pytest.mark.parametrize("deletes", [None, UnitDeletes((1, 3))])
def test_the_snapshot_keeps_the_whole_file(deletes: UnitDeletes | None):
    file = replace(FILE, deletes=deletes)
    stored = json.loads(json.dumps(file.to_json()))
    assert ("deletes" in stored) == (deletes is not None)
    assert DataFile.from_json(stored) == file


@pytest.mark.parametrize("version", [2, 3])
def test_files_of_older_snapshots_are_read(version: int):
    stored = FILE.to_json()
    del stored["checksums"]
    if version == 2:
        del stored["bounds"]
    assert DataFile.from_json(stored) == (replace(FILE, bounds=()) if version == 2 else FILE)


def test_a_file_with_other_keys_is_refused():
    for name in ("uri", "num_rows", "version", "partition"):
        stored = FILE.to_json()
        del stored[name]
        with pytest.raises(ValueError, match="a file has the keys"):
            DataFile.from_json(stored)
    with pytest.raises(ValueError, match="rows"):
        DataFile.from_json({**FILE.to_json(), "rows": [0, 1]})


def test_a_task_gets_rows_without_what_the_driver_needs():
    part = FILE.for_task((2, 5), (("day", "1"),))
    assert (part.row_start, part.row_end, part.read_rows, part.read_bytes) == (2, 5, 3, 33)
    assert (part.row_groups, part.partition, part.bounds) == ((), (), ())
    assert DataFile.from_list(json.loads(json.dumps(part.to_list()))) == part


@pytest.mark.parametrize("deletes", [None, UnitDeletes((1, 3))])
def test_what_a_file_stores_otherwise_travels_with_it(deletes: UnitDeletes | None):
    file = replace(FILE, stored_types=(("a", None), ("b", "int")), deletes=deletes)
    assert DataFile.from_json(json.loads(json.dumps(file.to_json()))) == file
    assert file.lacks == {"a"}
    part = file.for_task((2, 5), columns={"a", "c"})
    assert part.stored_types == (("a", None),)
    assert part.deletes == deletes
    assert DataFile.from_list(json.loads(json.dumps(part.to_list()))) == part
    assert "stored_types" not in FILE.to_json()


def test_all_rows_are_the_whole_file():
    whole = FILE.for_task((0, 9))
    assert whole.is_whole
    assert DataFile.from_list(json.loads(json.dumps(whole.to_list()))) == whole
    assert not FILE.for_task((0, 8)).is_whole


def test_rows_of_a_chunk_travel_with_what_the_chunk_tells():
    chunk = ChunkRows(
        uri="/c",
        num_rows=3,
        rows=(1, 3),
        checksums="s",
        kind="arrow",
        sequence=7,
        stored=(("k", "bigint"), ("d", "double")),
        may_hold_nan=("d",),
        has_duplicates=False,
        clip="k > 1",
    )
    assert ChunkRows.from_list(json.loads(json.dumps(chunk.to_list()))) == chunk
