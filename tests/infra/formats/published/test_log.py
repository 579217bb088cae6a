"""The commit protocol: who wins, what survives crashes, and races in every order."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stagecoach.infra.errors import StorageError
from stagecoach.infra.formats import version_log
from stagecoach.infra.formats.published import log, paths
from stagecoach.infra.formats.published.changes import TableChange
from stagecoach.infra.formats.published.log import (
    commit,
    read_current,
    read_version,
    version_numbers,
)
from stagecoach.infra.formats.published.version import TableFile, TableVersion, TableVersionError
from stagecoach.infra.formats.publishing import PublishMode
from stagecoach.infra.formats.version_json import seal
from stagecoach.infra.storage.local_store import LocalStore
from stagecoach.infra.storage.object_store import ObjectMissingError
from stagecoach.planner.types import INT, Field, struct_of

COLUMNS = (Field("a", INT),)


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    return LocalStore(str(tmp_path))


def change(
    token: str, mode: PublishMode = "replace", key: str | None = None, fingerprint: str = ""
) -> TableChange:
    file = TableFile(
        path=paths.table_file_path((), f"{token}-0.parquet"),
        num_rows=1,
        num_bytes=10,
        row_groups=(1,),
        footer_checksum="0" * 32,
        partition_key=key,
        fingerprint=fingerprint or token,
    )
    return TableChange(
        table="t",
        mode=mode,
        token=token,
        committed_at="2026-01-01T00:00:00Z",
        fingerprint=fingerprint or token,
        rows={key: 1},
        columns=COLUMNS,
        files=(file,),
    )


def tokens_in(version: TableVersion | None) -> set[str]:
    return {f.path.split("/")[-1].split("-")[0] for f in version.files} if version else set()


def test_nothing_was_ever_published(store: LocalStore) -> None:
    assert read_current(store, "t") is None
    with pytest.raises(ObjectMissingError, match=r"table 't' has no version 1; nothing was ever"):
        read_version(store, "t", 1)


def test_versions_count_up_and_stay(store: LocalStore) -> None:
    for token in ("x", "y", "z"):
        commit(store, change(token))
    current = read_current(store, "t")
    assert current == read_version(store, "t", 3)
    assert tokens_in(current) == {"z"}
    assert tokens_in(read_version(store, "t", 1)) == {"x"}
    assert version_numbers(store, "t") == [1, 2, 3]
    with pytest.raises(ObjectMissingError, match=r"no version 4; there are 1 to 3"):
        read_version(store, "t", 4)
    hint = json.loads(store.read_bytes(paths.table_current("t")))
    assert hint["version"] == 3
    assert hint["path"] == "versions/000000000003.json"


@pytest.mark.parametrize(
    "hint",
    [
        None,
        b"",
        b"{",
        b"[]",
        b'{"version": "x"}',
        b'{"version": 1}',
        b'{"version": 99}',
        b'{"version": 0}',
        b"null",
    ],
)
def test_a_bad_hint_costs_time_never_truth(store: LocalStore, hint: bytes | None) -> None:
    for token in ("x", "y", "z"):
        commit(store, change(token))
    store.delete([paths.table_current("t")])
    if hint is not None:
        store.write_bytes(paths.table_current("t"), hint)
    assert tokens_in(read_current(store, "t")) == {"z"}
    assert commit(store, change("w")).version.number == 4
    assert json.loads(store.read_bytes(paths.table_current("t")))["version"] in (4, 99)


def test_a_hint_to_what_gc_removed(store: LocalStore) -> None:
    for number in range(6):
        commit(store, change(f"x{number}"))
    store.delete([paths.table_version("t", number) for number in (1, 2, 3)])
    for hinted in (1, 2, 3, 4):
        store.write_bytes(paths.table_current("t"), json.dumps({"version": hinted}).encode())
        assert tokens_in(read_current(store, "t")) == {"x5"}


def test_a_crash_before_the_hint_loses_nothing(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit(store, change("x"))

    def crash(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(version_log, "write_hint", crash)
        with pytest.raises(KeyboardInterrupt):
            commit(store, change("y"))
    assert json.loads(store.read_bytes(paths.table_current("t")))["version"] == 1
    assert tokens_in(read_current(store, "t")) == {"y"}
    # The run is executed again: its result is there already.
    assert commit(store, change("y2", fingerprint="y")).reused
    assert commit(store, change("z")).version.number == 3


def test_a_hint_that_cannot_be_written_is_only_logged(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: Any) -> None:
        raise StorageError("no space")

    monkeypatch.setattr(version_log, "write_hint", fail)
    assert commit(store, change("x")).version.number == 1
    assert "its hint cannot be written: no space" in caplog.text


def test_a_damaged_version_is_no_answer(store: LocalStore) -> None:
    commit(store, change("x"))
    key = paths.table_version("t", 1)
    good = store.read_bytes(key)
    values = json.loads(good)
    body = {name: value for name, value in values.items() if name != "checksum"}
    for text, message in (
        (good[:-5], r"000000000001.json is damaged .*remove it to go back"),
        (good.replace(b"x-0.parquet", b"y-0.parquet"), r"checksum mismatch"),
        (b"[]", r"damaged"),
        (json.dumps({**values, "format_version": 9}).encode(), r"checksum mismatch"),
        (seal({**body, "format_version": 9}), r"format version 9"),
    ):
        store.write_bytes(key, text)
        with pytest.raises(TableVersionError, match=message):
            read_current(store, "t")
        with pytest.raises(TableVersionError, match=message):
            commit(store, change("z"))
    store.write_bytes(key, good)
    store.write_bytes(paths.table_version("t", 2), good)
    with pytest.raises(TableVersionError, match=r"is version 1 of table 't'; restore it"):
        read_current(store, "t")


@pytest.mark.parametrize("place", ["version", "file", "part"])
def test_unknown_fields_are_refused(place: str) -> None:
    from stagecoach.infra.formats import version_json as module
    from stagecoach.infra.formats.published.changes import apply_change

    made = apply_change(None, change("x"))
    values = json.loads(made.to_json())
    del values["checksum"]
    target = {"version": values, "file": values["files"][0], "part": values["parts"][0]}[place]
    target["extra"] = 1
    text = json.dumps({**values, "checksum": module.checksum(values)}).encode()
    with pytest.raises(TableVersionError, match=r"unknown field 'extra'"):
        TableVersion.from_json(text, uri="there")


def test_odd_member_names_survive() -> None:
    from stagecoach.infra.formats.published.changes import apply_change

    odd = struct_of((Field("a:b,c", INT), Field("<x>", INT)))
    made = apply_change(None, TableChange(**{**vars(change("x")), "columns": (Field("s", odd),)}))
    assert TableVersion.from_json(made.to_json(), uri="there") == made


def test_clear_leaves_nothing_to_read_and_the_history(store: LocalStore) -> None:
    commit(store, change("x", "replace_partition", "k"))
    log.clear_table(store, "t")
    current = read_current(store, "t")
    assert current is not None
    assert not current.has_data
    assert tokens_in(read_version(store, "t", 1)) == {"x"}
    # What was published before is published again.
    assert commit(store, change("x2", "replace_partition", "k", "x")).version.number == 3


class Turns:
    """Lets one of several threads make one step at a time, in an order that a list decides."""

    def __init__(self, count: int, order: Sequence[int]) -> None:
        self._condition = threading.Condition()
        self._order = list(order)
        self._alive = set(range(count))
        self._waiting: set[int] = set()
        self._chosen: int | None = None

    def wait(self, thread: int) -> None:
        with self._condition:
            self._waiting.add(thread)
            self._choose()
            while self._chosen != thread:
                assert self._condition.wait(120)
            self._chosen = None
            self._waiting.discard(thread)

    def end(self, thread: int) -> None:
        with self._condition:
            self._alive.discard(thread)
            self._choose()

    def _choose(self) -> None:
        if self._chosen is None and self._waiting == self._alive and self._waiting:
            ready = sorted(self._waiting)
            self._chosen = ready[(self._order.pop(0) if self._order else 0) % len(ready)]
            self._condition.notify_all()


class MemoryStore:
    """A store whose every request waits for its turn; conditional writes or not."""

    is_local = False

    def __init__(
        self, objects: dict[str, bytes], turn: Callable[[], None], *, conditional: bool
    ) -> None:
        self._objects = objects
        self._turn = turn
        self._conditional = conditional

    def uri(self, key: str) -> str:
        return f"memory://{key}"

    def to_dict(self) -> dict[str, Any]:
        return {"url": "memory://", "options": {}}

    def read_bytes(self, key: str) -> bytes:
        self._turn()
        if key not in self._objects:
            raise ObjectMissingError(key)
        return self._objects[key]

    def exists(self, key: str) -> bool:
        self._turn()
        return key in self._objects

    def write_bytes(self, key: str, data: bytes) -> None:
        self._turn()
        self._objects[key] = data

    def put_if_absent(self, key: str, data: bytes) -> bool:
        if self.exists(key):
            return False
        self._turn()
        if self._conditional and key in self._objects:
            return False
        self._objects[key] = data
        return True

    def list(self, prefix: str) -> list[str]:
        self._turn()
        return sorted(key for key in self._objects if key.startswith(f"{prefix}/"))


def race(
    changes: Sequence[Sequence[TableChange]], order: Sequence[int], *, conditional: bool = True
) -> tuple[MemoryStore, list[list[log.Committed]]]:
    """Commit each list in a thread of its own, one request at a time."""
    objects: dict[str, bytes] = {}
    turns = Turns(len(changes), order)
    results: list[list[log.Committed]] = [[] for _ in changes]
    errors: list[BaseException] = []

    def run(thread: int) -> None:
        store: Any = MemoryStore(objects, lambda: turns.wait(thread), conditional=conditional)
        try:
            for one in changes[thread]:
                results[thread].append(commit(store, one))
        except BaseException as error:  # noqa: BLE001 -- shown by the test's thread
            errors.append(error)
        finally:
            turns.end(thread)

    threads = [threading.Thread(target=run, args=(n,)) for n in range(len(changes))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors, errors
    return MemoryStore(objects, lambda: None, conditional=True), results


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(version_log, "_WAIT_SECONDS", 0.0)


ORDERS = st.lists(st.integers(0, 5), max_size=80)
MODES = st.sampled_from(["append", "replace_partition", "replace"])


@settings(max_examples=60, deadline=None)
@given(ORDERS, st.lists(st.lists(MODES, min_size=1, max_size=2), min_size=2, max_size=3))
def test_every_order_of_requests_is_some_order_of_commits(
    order: list[int], modes: list[list[PublishMode]]
) -> None:
    changes = [
        [change(f"t{thread}x{n}", mode, f"k{thread}{n}") for n, mode in enumerate(row)]
        for thread, row in enumerate(modes)
    ]
    any_store, results = race(changes, order)
    store: Any = any_store
    committed = sorted((c.version for row in results for c in row), key=lambda v: v.number)
    # Each commit has a number of its own, without gaps, and is still what it was.
    assert [v.number for v in committed] == list(range(1, len(committed) + 1))
    assert all(read_version(store, "t", v.number) == v for v in committed)
    # Applied one by one in that order they give the same tables.
    expected: set[str] = set()
    for version in committed:
        expected = set() if version.mode == "replace" else expected
        expected.add(version.token)
        assert tokens_in(version) == expected
    assert read_current(store, "t") == committed[-1]
    # A thread's commits are in its order.
    for row in results:
        assert [c.version.number for c in row] == sorted(c.version.number for c in row)


@settings(max_examples=40, deadline=None)
@given(ORDERS)
def test_the_same_result_published_twice_at_once_is_there_once(order: list[int]) -> None:
    twins = [[change(f"t{n}", "append", "k", fingerprint="same")] for n in range(3)]
    store, results = race(twins, order)
    current = read_current(store, "t")  # type: ignore[arg-type]  # a store as far as needed
    assert len(tokens_in(current)) == 1
    assert [c.reused for row in results for c in row].count(False) == 1


@settings(max_examples=60, deadline=None)
@given(ORDERS)
def test_without_conditional_writes_versions_are_whole_and_end(order: list[int]) -> None:
    changes = [[change(f"t{n}", "replace_partition", f"k{n}")] for n in range(3)]
    any_store, results = race(changes, order, conditional=False)
    store: Any = any_store
    numbers = version_numbers(store, "t")
    assert numbers == list(range(1, len(numbers) + 1))
    for number in numbers:
        version = read_version(store, "t", number)
        assert {p.partition_key for p in version.parts} == {f.partition_key for f in version.files}
    # Whoever came last is there.
    newest = read_current(store, "t")
    assert newest is not None
    assert newest.token in tokens_in(newest)
    assert len(results) == 3


def test_a_lost_race_without_conditional_writes_is_noticed_at_once() -> None:
    """The other one overwrites between our write and our reading it back."""
    objects: dict[str, bytes] = {}
    other: Any = MemoryStore(objects, lambda: None, conditional=False)
    from stagecoach.infra.formats.published.changes import apply_change

    class Overwritten(MemoryStore):
        def put_if_absent(self, key: str, data: bytes) -> bool:
            super().put_if_absent(key, data)
            if key.endswith("000000000001.json"):
                theirs = apply_change(None, change("theirs", "append", "b"))
                other.write_bytes(key, theirs.to_json())
            return True

    store: Any = Overwritten(objects, lambda: None, conditional=False)
    ours = commit(store, change("ours", "append", "a"))
    assert ours.version.number == 2
    assert tokens_in(read_current(store, "t")) == {"ours", "theirs"}
