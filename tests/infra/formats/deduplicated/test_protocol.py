"""Appends, compactions, readers and gc in any order, and writers that die: nothing lost or doubled.

A write is two steps here, as it is in truth: files are written, and a version is committed. What
others do between the two is up to hypothesis.
"""

from __future__ import annotations

import datetime
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, rule

from stagecoach.infra.formats.capabilities import ExpiryRule
from stagecoach.infra.formats.deduplicated import changes
from stagecoach.infra.formats.deduplicated.changes import Commit
from stagecoach.infra.formats.deduplicated.compaction import compact, groups_to_merge
from stagecoach.infra.formats.deduplicated.declaration import Declaration
from stagecoach.infra.formats.deduplicated.errors import CompactionError
from stagecoach.infra.formats.deduplicated.expiry import (
    find_expired_chunks,
)
from stagecoach.infra.formats.deduplicated.key_order import has_duplicates
from stagecoach.infra.formats.deduplicated.merge import Merger
from stagecoach.infra.formats.deduplicated.operations import ChunkOperations
from stagecoach.infra.formats.deduplicated.table import ChunkTable
from stagecoach.infra.formats.deduplicated.version import ChunkTableVersion
from stagecoach.infra.formats.deduplicated.writer import ChunkWriter
from stagecoach.infra.storage.local_store import LocalStore
from stagecoach.infra.storage.object_store import StorageOptions
from stagecoach.infra.storage.table_files import canonical_uri
from stagecoach.infra.upkeep.table_gc import collect_table_garbage
from stagecoach.planner.types import Field, parse_type
from tests.infra.formats.deduplicated.model import (
    TIMED,
    Key,
    Row,
    chunk_rows,
    latest,
    plain,
    sorted_by,
    stored_rows,
    visible,
)

COLUMNS = tuple(
    Field(name, parse_type(kind))
    for name, kind in {
        "k": "double",
        "t": "date",
        "p": "string",
        "v": "int",
        "ver": "int",
        "gone": "boolean",
    }.items()
)
FAST = StorageOptions(fsync="never")
EXAMPLES = int(os.environ.get("STAGECOACH_PROTOCOL_EXAMPLES", "8"))
SCHEMA = pa.schema(
    [
        ("k", pa.float64()),
        ("t", pa.date32()),
        ("p", pa.string()),
        ("v", pa.int32()),
        ("ver", pa.int32()),
        ("gone", pa.bool_()),
    ]
)
DECLARATIONS = [
    Declaration(primary_key=("k", "t")),
    TIMED,
    replace(TIMED, delete_column="gone"),
    replace(TIMED, delete_column="gone", version_column="ver"),
    replace(TIMED, chunk_interval=2 * 86_400, delete_column="gone"),
    Declaration(
        primary_key=("p", "k", "t"), time_column="t", partition_by=("p",), delete_column="gone"
    ),
    Declaration(primary_key=("p", "k"), partition_by=("p",), version_column="ver"),
    Declaration(primary_key=("k",), time_column="t", partition_by=("p",)),
]
KEYS = st.sampled_from([None, float("nan"), -0.0, 0.0, 1.0])
DAYS = st.integers(0, 7).map(lambda n: datetime.date(2024, 1, 1) + datetime.timedelta(days=n))
ROWS = st.lists(
    st.tuples(
        KEYS,
        DAYS,
        st.sampled_from([None, "a", "b"]),
        st.integers(0, 99),
        st.sampled_from([None, 1, 2, 3]),
        st.sampled_from([None, False, False, True]),
    ),
    min_size=1,
    max_size=8,
)


def as_rows(values: list[tuple[Any, ...]]) -> list[Row]:
    return [dict(zip(SCHEMA.names, row, strict=True)) for row in values]


@dataclass
class Write:
    """An append whose files are there."""

    commit: Commit
    writer: ChunkWriter
    rows: list[Row]


@dataclass
class Merge:
    """A compaction whose files are there."""

    commit: Commit
    writer: ChunkWriter
    old: list[str]


@dataclass
class Reader:
    """Somebody who has read a version and not yet its files."""

    version: ChunkTableVersion
    expected: dict[Key, Row] = field(default_factory=dict)


class Protocol(RuleBasedStateMachine):
    """All that happens to one table."""

    writes = Bundle("writes")
    merges = Bundle("merges")
    readers = Bundle("readers")

    @initialize(declaration=st.sampled_from(DECLARATIONS), size=st.integers(2, 20))
    def create(self, declaration: Declaration, size: int) -> None:
        self.folder = tempfile.mkdtemp()
        self.table = ChunkTable("t", LocalStore(f"{self.folder}/t", FAST), declaration)
        self.table.create(COLUMNS)
        self.size = size
        self.rows: list[Row] = []
        self.open: list[Reader] = []

    def teardown(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    @rule(values=ROWS, sort=st.booleans())
    def append(self, values: list[tuple[Any, ...]], sort: bool) -> None:
        rows = as_rows(values)
        self.table.append([pa.Table.from_pylist(rows, SCHEMA)], sort=sort)
        self.rows += rows

    @rule(target=writes, values=ROWS, sort=st.booleans())
    def begin_append(self, values: list[tuple[Any, ...]], sort: bool) -> Write:
        rows, commit = as_rows(values), self.table.new_commit()
        writer = ChunkWriter(self.table.store, self.table.declaration, commit.token)
        writer.append(pa.Table.from_pylist(rows, SCHEMA), COLUMNS, sort=sort)
        return Write(commit, writer, rows)

    @rule(write=consumes(writes))
    def end_append(self, write: Write) -> None:
        step = partial(changes.append, commit=write.commit, chunks=write.writer.chunks, place="")
        self.table.log.commit(write.commit.token, step)
        self.rows += write.rows

    @rule(write=consumes(writes))
    def kill_append(self, write: Write) -> None:
        """Its files are of no version."""

    @rule(target=merges, choice=st.integers(0, 3))
    def begin_compaction(self, choice: int) -> Merge | None:
        version = self.table.read()
        groups = groups_to_merge(self.table, version, self.size)
        if not groups:
            return None
        ids = {chunk.chunk_id for chunk in groups[choice % len(groups)]}
        old = [c for c in version.chunks if c.name.rpartition(".")[0] in ids]
        old.sort(key=lambda chunk: chunk.sequence)
        commit = self.table.new_commit()
        writer = ChunkWriter(self.table.store, self.table.declaration, commit.token)
        declaration, store = self.table.declaration, self.table.store
        Merger(store, declaration, version.columns, old, self.size).write(writer)
        return Merge(commit, writer, [chunk.name for chunk in old])

    @rule(merge=consumes(merges))
    def end_compaction(self, merge: Merge | None) -> None:
        if merge is None:
            return
        live = {chunk.name for chunk in self.table.read().chunks}
        step = partial(
            changes.replace_chunks, commit=merge.commit, old=merge.old, new=merge.writer.chunks
        )
        try:
            self.table.log.commit(merge.commit.token, step)
            assert set(merge.old) <= live
        except CompactionError:
            assert not set(merge.old) <= live

    @rule(merge=consumes(merges))
    def kill_compaction(self, merge: Merge | None) -> None:
        """Its files are of no version."""

    @rule()
    def compact(self) -> None:
        report = compact(self.table, target_rows=self.size)
        assert report.skipped == 0

    @rule(target=readers)
    def begin_read(self) -> Reader:
        reader = Reader(self.table.read(), dict(latest(self.rows, self.table.declaration)))
        self.open.append(reader)
        return reader

    @rule(reader=consumes(readers))
    def end_read(self, reader: Reader) -> None:
        self.open.remove(reader)
        assert plain(visible(self.table, reader.version)) == plain(reader.expected)

    @rule()
    def collect(self) -> None:
        """Nothing is young enough to stay, except for what a reader or a write needs."""
        store = self.table.store
        pinned = {canonical_uri(store, c.key) for r in self.open for c in r.version.chunks}
        expired = find_expired_chunks(
            self.table,
            ExpiryRule(
                pinned_uris=pinned,
                now=datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=5),
                older_than=datetime.timedelta(0),
            ),
        )
        expired.remove()
        left = {c.name for c in self.table.read().replaced}
        assert all(canonical_uri(store, f"chunks/{name}") in pinned for name in left)

    @invariant()
    def rows_are_those_that_were_appended(self) -> None:
        version = self.table.read()
        expected = latest(self.rows, self.table.declaration)
        assert plain(visible(self.table, version)) == plain(expected)

    @invariant()
    def chunks_are_what_they_say(self) -> None:
        version = self.table.read()
        key = self.table.declaration.primary_key
        assert [c.sequence for c in version.chunks] == sorted(c.sequence for c in version.chunks)
        for chunk in version.chunks:
            rows = chunk_rows(self.table.store, chunk)
            assert (rows.num_rows, sum(chunk.row_groups)) == (chunk.num_rows,) * 2
            assert self.table.store.size(chunk.key) == chunk.num_bytes
            assert sorted_by(rows, chunk.sort_order)
            assert chunk.may_contain_duplicates or not has_duplicates(rows, key)
            assert (
                chunk.has_deletes
                or True not in rows.column("gone").to_pylist()
                or (self.table.declaration.delete_column is None)
            )
            if chunk.partition is not None:
                assert set(rows.column("p").to_pylist()) == set(chunk.partition)


Protocol.TestCase.settings = settings(max_examples=EXAMPLES, stateful_step_count=20, deadline=None)
TestProtocol = pytest.mark.slow(Protocol.TestCase)


class Killed(BaseException):
    """The process is gone."""


class Dying(LocalStore):
    """Dies at some request: before it, in the middle of it, or after it."""

    left = 10**9
    moment = "before"

    def _count(self) -> bool:
        self.left -= 1
        if self.left == 0 and self.moment == "before":
            raise Killed
        return self.left == 0

    def write_bytes(self, key: str, data: bytes) -> None:
        dies = self._count()
        super().write_bytes(key, data)
        if dies:
            raise Killed

    def put_if_absent(self, key: str, data: bytes) -> bool:
        dies = self._count()
        done = super().put_if_absent(key, data)
        if dies:
            raise Killed
        return done

    @contextmanager
    def open_output(self, key: str) -> Iterator[Any]:
        dies = self._count()
        with super().open_output(key) as sink:
            yield sink
            if dies and self.moment == "middle":
                raise Killed
        if dies:
            raise Killed

    def delete(self, keys: Any) -> None:
        if self.left <= 0:
            return  # nobody is there to clean up
        dies = self._count()
        super().delete(keys)
        if dies:
            raise Killed


@pytest.mark.parametrize("moment", ["before", "middle", "after"])
@pytest.mark.parametrize("action", ["append", "compact", "gc"])
def test_a_writer_killed_at_any_request_leaves_the_table_readable(
    tmp_path: Path, action: str, moment: str
) -> None:
    def rows(start: int) -> pa.Table:
        return pa.table({"k": [start, start + 1], "t": [1, 2], "v": [start, start]})

    deaths = 0
    for left in range(1, 100):
        table = ChunkTable("t", Dying(str(tmp_path / f"{left}"), FAST), TIMED)
        table.append([rows(0), rows(1), rows(10)])
        if action == "gc":
            compact(table)
        before = visible(table)
        dying = Dying(str(tmp_path / f"{left}"), FAST)
        dying.left, dying.moment = left, moment
        victim = replace(table, store=dying)
        try:
            match action:
                case "append":
                    victim.append([rows(1), rows(20)])
                case "compact":
                    compact(victim, target_rows=2)
                case _:
                    later = datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=30)
                    age = datetime.timedelta(days=1)
                    collect_table_garbage(
                        table.store, [ChunkOperations(victim)], older_than=age, now=later
                    )
        except Killed:
            deaths += 1
        after = visible(table)
        expected = [plain(before)]
        if action == "append":
            expected.append(
                plain({**before, **latest([*rows(1).to_pylist(), *rows(20).to_pylist()], TIMED)})
            )
        assert plain(after) in expected
        # Life goes on.
        table.append([rows(30)])
        compact(table)
        assert plain(visible(table)) == plain({**after, **latest(rows(30).to_pylist(), TIMED)})
        if dying.left > 0:
            break
    assert deaths >= 3
    assert deaths == left - 1
    assert stored_rows(table, table.read())
