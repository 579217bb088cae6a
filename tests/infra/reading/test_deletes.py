"""Deleted rows of a unit: their form as plain data, and who must not be given them."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from stagecoach.infra.reading.data_file import DataFile
from stagecoach.infra.reading.deletes import DeletedKeys, DeleteFile, UnitDeletes
from stagecoach.infra.reading.inputs import LeafColumn, ScanInput
from stagecoach.planner.types import BIGINT

DELETES = UnitDeletes(
    positions=(0, 3, 9),
    keys=(DeletedKeys((1, "b"), ((1, None), (2, "x"))),),
    files=(
        DeleteFile("s3://b/d.puffin", num_bytes=7, offset=4),
        DeleteFile("/e", "keys", 1, 0, (2,)),
    ),
)


def test_deletes_travel_as_plain_data() -> None:
    rows = DataFile(
        "/f",
        9,
        num_bytes=100,
        version="v",
        constants=(("p", None),),
        footer_checksum="c",
        checksums="s",
        deletes=DELETES,
        rows=(0, 2),
    )
    assert DataFile.from_list(json.loads(json.dumps(rows.to_list()))) == rows
    column = LeafColumn("c1", "a", BIGINT, 7)
    assert LeafColumn.from_list(json.loads(json.dumps(column.to_list()))) == column


def test_rows_without_deletes_are_what_they_were() -> None:
    rows = DataFile(
        "/f",
        9,
        num_bytes=100,
        version="v",
        constants=(("p", None),),
        footer_checksum="c",
        checksums="s",
        rows=(0, 2),
    )
    assert rows.to_list() == ["/f", 0, 2, 9, 100, "v", (("p", None),), "c", "s"]
    assert DataFile.from_list(json.loads(json.dumps(rows.to_list()))) == rows
    assert LeafColumn("c1", "a", BIGINT).to_list() == ["c1", "a", "bigint"]


@pytest.mark.parametrize(("start", "kept"), [(0, [1, 2, 4]), (3, [4, 5, 6, 7]), (6, [6, 7, 8, 10])])
def test_positions_count_from_the_start_of_the_unit(start: int, kept: list[int]) -> None:
    rows = pa.RecordBatch.from_pydict({"n": list(range(start, start + 5))})
    assert DELETES.kept(rows, start).column("n").to_pylist() == kept


def test_an_engine_is_not_given_a_file_with_deletes() -> None:
    with pytest.raises(ValueError, match="engines would read deleted rows"):
        ScanInput(columns=(), files=(DataFile("/f", 2, deletes=DELETES),))
