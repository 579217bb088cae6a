"""Compaction: what is merged, into what, and what is left alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from stagecoach.infra.formats.deduplicated.compaction import compact, merge_group
from stagecoach.infra.formats.deduplicated.declaration import Declaration
from stagecoach.infra.formats.deduplicated.errors import CompactionError
from stagecoach.infra.formats.deduplicated.grouping import (
    compactions,
    overlap_groups,
    overlap_share,
)
from stagecoach.infra.formats.deduplicated.merge import Merger
from stagecoach.infra.formats.deduplicated.table import ChunkTable
from stagecoach.infra.formats.deduplicated.view import dedup_table, table_chunks
from stagecoach.infra.formats.deduplicated.writer import ChunkWriter
from stagecoach.infra.storage.local_store import LocalStore
from stagecoach.planner.formats.deduplicated.chunk import Chunk, DedupTable
from stagecoach.planner.types import BIGINT, STRING, Field
from tests.infra.formats.deduplicated.model import KEYED, TIMED, chunk_rows, plain, visible

COLUMNS = (Field("p", STRING), Field("k", BIGINT), Field("t", BIGINT))
TABLE = DedupTable(
    name="t",
    columns=COLUMNS,
    primary_key=("p", "k", "t"),
    time_column="t",
    partition_by=("p",),
)


def chunk(name: str, times: tuple[int, int] | None, rows: int = 100, **more: Any) -> Chunk:
    settled = {"sort_order": ("p", "k", "t"), "may_contain_duplicates": False}
    return Chunk(
        chunk_id=name,
        num_rows=rows,
        columns=COLUMNS,
        partition=more.pop("partition", ("a",)),
        time_min=times[0] if times else None,
        time_max=times[1] if times else None,
        sequence=int(name.strip("c")),
        **{**settled, **more},
    )


def names(groups: list[tuple[Chunk, ...]]) -> list[str]:
    return ["".join(c.chunk_id for c in group) for group in groups]


def test_groups_are_those_that_may_share_keys() -> None:
    chunks = [
        chunk("c1", (1, 10)),
        chunk("c2", (10, 12)),  # touches
        chunk("c3", (13, 14)),
        chunk("c4", (1, 20), partition=(None,)),
        chunk("c5", (12, 13)),  # chains
        chunk("c6", (30, 31)),
    ]
    groups = overlap_groups(TABLE, chunks)
    assert names(groups) == ["c1c2c3c5", "c6", "c4"]
    assert overlap_share(groups) == pytest.approx(4 / 6)
    assert overlap_share([]) == 0.0
    assert names(overlap_groups(TABLE, [*chunks, chunk("c7", (5, 5), partition=None)])) == [
        "c1c2c3c4c5c7",
        "c6",
    ]
    assert len(overlap_groups(TABLE, [*chunks, chunk("c7", None)])) == 2
    loose = replace(TABLE, primary_key=("k",))
    assert names(overlap_groups(loose, chunks)) == ["c1c2c3c4c5c6"]


@pytest.mark.parametrize(
    ("chunks", "expected"),
    [
        ([chunk("c1", (1, 2))], []),
        ([chunk("c1", (1, 2), kind="arrow")], ["c1"]),
        ([chunk("c1", (1, 2), sort_order=())], ["c1"]),
        ([chunk("c1", (1, 2), may_contain_duplicates=True)], ["c1"]),
        ([chunk("c1", (1, 2), has_deletes=True)], ["c1"]),
        ([chunk("c2", (1, 2)), chunk("c1", (2, 3))], ["c1c2"]),
        # Neighbours: worth it if that does not write a large chunk again for a few rows.
        ([chunk("c1", (1, 2)), chunk("c2", (3, 4))], ["c1c2"]),
        ([chunk("c1", (1, 2), 900), chunk("c2", (3, 4), 90)], []),
        ([chunk("c1", (1, 2), 900), chunk("c2", (3, 4), 90, kind="arrow")], ["c2"]),
        ([chunk("c1", (1, 2), 900), chunk("c2", (3, 4), 200)], []),
        (
            [chunk(f"c{i}", (i, i), 1) for i in range(1, 5)] + [chunk("c9", (9, 9), 999)],
            ["c1c2c3c4"],
        ),
        ([chunk("c1", (1, 2)), chunk("c2", (3, 4), partition=("b",))], []),
    ],
    ids=lambda v: "-".join(v) if v and isinstance(v[0], str) else "",
)
def test_what_is_merged(chunks: list[Chunk], expected: list[str]) -> None:
    assert names(compactions(TABLE, chunks, target_rows=1000)) == expected


def test_neighbours_of_different_intervals_are_left_apart() -> None:
    chunks = [chunk("c1", (1, 2)), chunk("c2", (8, 9)), chunk("c3", (10, 11))]
    assert names(compactions(TABLE, chunks, target_rows=1000, interval=10)) == ["c1c2"]


def test_markers_of_versioned_tables_are_kept() -> None:
    versioned = replace(TABLE, version_column="k")
    assert not compactions(versioned, [chunk("c1", (1, 2), has_deletes=True)])


def rows(first: int, last: int, value: int = 0, **more: Any) -> pa.Table:
    count = last - first
    times = list(range(first, last))
    return pa.table({"k": [t % 3 for t in times], "t": times, "v": [value] * count, **more})


def table(folder: Path, declaration: Declaration = TIMED) -> ChunkTable:
    return ChunkTable("t", LocalStore(str(folder / "t")), declaration)


def test_results_are_divided_by_time(tmp_path: Path) -> None:
    made = table(tmp_path)
    made.append([rows(0, 100), rows(50, 150, 1), rows(300, 310)])
    expected = plain(visible(made))
    report = compact(made, target_rows=40)
    assert (report.before.num_files, report.before.rows) == (3, 210)
    assert report.before.overlap_share == pytest.approx(200 / 210)
    assert (report.after.rows, report.after.overlap_share) == (160, 0.0)
    chunks = made.read().chunks
    assert max(c.num_rows for c in chunks) <= 60
    assert all(c.is_parquet and c.sort_order == ("k", "t") for c in chunks)
    assert plain(visible(made)) == expected
    assert compact(made, target_rows=40).merged == 0


def test_without_time_a_group_becomes_one_file(tmp_path: Path) -> None:
    made = table(tmp_path, KEYED)
    nan = float("nan")
    keys = [3.0, None, nan, -0.0, 1.0, 2.0, 0.0, nan, None, 5.0]
    made.append([pa.table({"k": keys, "v": list(range(10))}), pa.table({"k": [1.0], "v": [99]})])
    expected = plain(visible(made))
    report = compact(made, target_rows=3)
    (only,) = made.read().chunks
    assert report.after.num_files == 1
    assert chunk_rows(made.store, only).column("v").to_pylist() == [8, 6, 99, 5, 0, 9, 7]
    assert not only.may_contain_duplicates
    assert plain(visible(made)) == expected


def test_pieces_of_a_killed_compaction_are_removed_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / "temporary"
    left = temporary / "stagecoach-compaction-1-x"
    left.mkdir(parents=True)
    (left / "piece").write_text("x")
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    made = table(tmp_path)
    made.append([rows(0, 100), rows(50, 150, 1)])
    assert compact(made, target_rows=40).merged
    assert list(temporary.iterdir()) == []


def test_a_table_of_which_nothing_is_left(tmp_path: Path) -> None:
    made = table(tmp_path, replace(TIMED, delete_column="gone"))
    made.append([rows(0, 3, gone=[False] * 3), rows(0, 3, gone=[True] * 3)])
    compact(made)
    assert made.read().chunks == ()
    assert visible(made) == {}
    assert overlap_groups(dedup_table(made.read()), table_chunks(made.store, made.read())) == []
    made.append([rows(1, 2, gone=[None])])
    assert len(visible(made)) == 1


def test_intervals_divide_appends_and_results(tmp_path: Path) -> None:
    made = table(tmp_path, replace(TIMED, chunk_interval=10))
    appended = made.append([rows(5, 25)])
    assert [(c.time_min, c.time_max) for c in appended.chunks] == [(5, 9), (10, 19), (20, 24)]
    wide = replace(made, declaration=TIMED)  # as it was written before there were intervals
    wide.append([rows(0, 30)])
    compact(made)
    assert [(c.time_min, c.time_max) for c in made.read().chunks] == [(0, 9), (10, 19), (20, 29)]


def test_of_two_compactions_one_gives_up(tmp_path: Path) -> None:
    made = table(tmp_path)
    made.append([rows(0, 10), rows(5, 15)])
    version = made.read()
    (group,) = compactions(dedup_table(version), table_chunks(made.store, version))
    merge_group(made, version, group, 100)
    files = list(made.store.list("chunks"))
    with pytest.raises(CompactionError, match=r"another compaction has replaced the same chunks"):
        merge_group(made, version, group, 100)
    assert list(made.store.list("chunks")) == files
    assert made.read().number == 2


def test_two_compactions_at_once_leave_one_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from stagecoach.infra.formats.deduplicated import compaction

    made = table(tmp_path)
    made.append([rows(0, 10), rows(5, 15)])
    original = compaction.merge_group

    def late(*args: Any) -> Any:
        monkeypatch.setattr(compaction, "merge_group", original)
        compact(made)
        return original(*args)

    monkeypatch.setattr(compaction, "merge_group", late)
    report = compact(made)
    assert (report.merged, report.skipped) == (0, 1)
    assert len(made.read().chunks) == 1
    assert len(visible(made)) == 15


def test_rows_that_are_appended_meanwhile_are_newer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The result is as new as what it replaces, whenever it is committed."""
    made = table(tmp_path, replace(TIMED, delete_column="gone"))
    made.append([rows(0, 5, 1, gone=[None] * 5), rows(0, 5, 2, gone=[None] * 5)])
    original = Merger.write

    def late(merger: Merger, writer: ChunkWriter) -> None:
        original(merger, writer)
        made.append([rows(0, 2, 3, gone=[None, True])])

    monkeypatch.setattr(Merger, "write", late)
    report = compact(made)
    monkeypatch.undo()
    assert (report.merged, report.after.num_files) == (1, 2)
    assert [c.sequence for c in made.read().chunks] == [2, 3]
    expected = {(0, 0): 3, (2, 2): 2, (0, 3): 2, (1, 4): 2}
    assert {key: row["v"] for key, row in visible(made).items()} == expected
    compact(made)
    assert {key: row["v"] for key, row in visible(made).items()} == expected
