"""Publishing under faults: nothing is lost, nothing is doubled, leftovers are collected."""

from __future__ import annotations

import datetime as dt
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from stagecoach.infra.errors import StorageError
from stagecoach.infra.formats import version_log
from stagecoach.infra.formats.published.log import read_current
from stagecoach.infra.formats.published.writer import PublishedWriter
from stagecoach.infra.formats.version_log import VersionLog
from stagecoach.infra.publishing import jobs, merging
from stagecoach.infra.publishing.merge_tasks import RewriteTask
from stagecoach.infra.publishing.publish import Published
from stagecoach.infra.publishing.tasks import PublishReport, PublishTask
from stagecoach.infra.storage.local_store import LocalStore
from stagecoach.infra.upkeep.gc import collect_garbage
from tests.infra.formats.published.outputs import objects_in, publish_rows, read_rows

MODES = ("append", "replace", "replace_partition", "merge")


class KilledError(BaseException):
    """The process ends here: nothing below may catch it."""


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    return LocalStore(str(tmp_path))


def rows(*keys: int) -> pa.Table:
    return pa.table({"k": pa.array(keys, pa.int64())})


def publish(store: LocalStore, mode: str, *keys: int) -> Published:
    """Publish rows with these keys, which are also those of their partitions and of a merge."""
    target: dict[str, Any] = {"mode": mode, "keep_versions": 1}
    if mode == "replace_partition":
        target |= {"partition_keys": tuple(map(str, keys)), "partition_column": "k"}
    elif mode == "merge":
        target["key"] = ("k",)
    return publish_rows(store, rows(*keys), **target)


def left_of(mode: str, before: list[int], keys: list[int]) -> list[int]:
    """Which keys there are after these have been published over others."""
    match mode:
        case "append":
            return sorted(before + keys)
        case "replace":
            return sorted(keys)
    return sorted({*before, *keys})


def keys_of(store: LocalStore) -> list[int]:
    version = read_current(store, "t")
    return [] if version is None else sorted(row["k"] for row in read_rows(store, version))


def collect(store: LocalStore) -> None:
    """All that gc may remove, long after the last run."""
    later = dt.datetime.now(dt.UTC) + dt.timedelta(days=30)
    collect_garbage(store, older_than=dt.timedelta(0), now=later)


def killed(*args: Any, **kwargs: Any) -> Any:
    raise KilledError


def after(call: Callable[..., Any]) -> Callable[..., Any]:
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        call(*args, **kwargs)
        raise KilledError

    return wrapped


def rewriting(call: Callable[..., Any]) -> Callable[..., Any]:
    """Ends the process when a file of the table is to be rewritten, or before the commit."""

    def run(task: PublishTask, attempt: int = 0) -> PublishReport:
        return call(task, attempt) if isinstance(task, RewriteTask) else jobs_run(task, attempt)

    jobs_run = jobs.run_publish_task
    return run


def put_version(call: Callable[..., Any]) -> Callable[..., Any]:
    put = LocalStore.put_if_absent

    def wrapped(self: LocalStore, key: str, data: bytes, **how: Any) -> Any:
        return (call(put) if "/versions/" in key else put)(self, key, data, **how)

    return wrapped


STEPS: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "before the files": lambda m: m.setattr(jobs, "run_publish_task", killed),
    "after the files": lambda m: m.setattr(jobs, "run_publish_task", after(jobs.run_publish_task)),
    "before the commit": lambda m: m.setattr(PublishedWriter, "publish", killed),
    "before the version": lambda m: m.setattr(
        LocalStore, "put_if_absent", put_version(lambda put: killed)
    ),
    "after the version": lambda m: m.setattr(LocalStore, "put_if_absent", put_version(after)),
    "before the hint": lambda m: m.setattr(version_log, "write_hint", killed),
    "after the hint": lambda m: m.setattr(version_log, "write_hint", after(version_log.write_hint)),
    "after the commit": lambda m: m.setattr(
        PublishedWriter, "publish", after(PublishedWriter.publish)
    ),
}


def check_repeated(
    store: LocalStore, mode: str, step: Callable[[pytest.MonkeyPatch], None]
) -> None:
    before = [1, 2] if mode == "merge" else [1]
    publish(store, mode, *before)
    with pytest.MonkeyPatch.context() as patch, pytest.raises(KilledError):
        step(patch)
        publish(store, mode, 2, 3)
    assert keys_of(store) in (before, left_of(mode, before, [2, 3]))
    publish(store, mode, 2, 3)
    assert keys_of(store) == left_of(mode, before, [2, 3])
    version = read_current(store, "t")
    assert version is not None
    assert version.number == 2
    collect(store)
    assert objects_in(store, "results/t/files") == set(version.file_keys())
    assert keys_of(store) == left_of(mode, before, [2, 3])


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("step", STEPS)
def test_a_run_that_dies_is_repeated(store: LocalStore, step: str, mode: str) -> None:
    check_repeated(store, mode, STEPS[step])


@pytest.mark.parametrize("is_over", [False, True])
def test_a_merge_that_dies_while_it_rewrites_files_is_repeated(
    store: LocalStore, is_over: bool
) -> None:
    call = after(jobs.run_publish_task) if is_over else killed
    check_repeated(store, "merge", lambda m: m.setattr(jobs, "run_publish_task", rewriting(call)))


@pytest.mark.parametrize("mode", MODES)
def test_an_answer_that_is_lost_is_asked_for(
    store: LocalStore, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(store, mode, 1)

    def lost(put: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*args: Any) -> None:
            put(*args)
            raise StorageError("the connection was closed")

        return wrapped

    with monkeypatch.context() as patch, pytest.raises(StorageError, match="was closed") as raised:
        patch.setattr(LocalStore, "put_if_absent", put_version(lost))
        publish(store, mode, 2)
    assert raised.value.retryable
    assert publish(store, mode, 2).reused
    assert keys_of(store) == left_of(mode, [1], [2])


@pytest.mark.parametrize("mode", MODES)
def test_two_publishers_at_once(
    store: LocalStore, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both have made their next version before either writes it."""
    publish(store, mode, 1)
    both = threading.Barrier(2)
    write = VersionLog._write
    met = threading.local()

    def together(self: Any, version: Any) -> bool:
        if not getattr(met, "already", False):
            met.already = True
            both.wait(60)
        return write(self, version)

    monkeypatch.setattr(VersionLog, "_write", together)
    with ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(publish, store, mode, *k) for k in ((1, 3), (4, 5))]:
            assert not done.result(120).reused
    match mode:
        case "append":
            assert keys_of(store) == [1, 1, 3, 4, 5]
        case "replace":
            assert keys_of(store) in ([1, 3], [4, 5])
        case _:
            assert keys_of(store) == [1, 3, 4, 5]
    version = read_current(store, "t")
    assert version is not None
    assert version.number == 3


def test_merges_of_one_key_at_once(store: LocalStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each finds the rows of those before it, so each key is there once."""
    monkeypatch.setattr(merging, "MAX_MERGE_TRIES", 100)
    count = 6

    def merge(number: int) -> None:
        table = pa.table({"k": [0, number], "by": [number, number]})
        publish_rows(store, table, mode="merge", key=("k",))

    with ThreadPoolExecutor(count) as pool:
        list(pool.map(merge, range(1, count + 1)))
    version = read_current(store, "t")
    assert version is not None
    found = {row["k"]: row["by"] for row in read_rows(store, version)}
    assert version.num_rows == len(found) == count + 1
    assert found[0] in range(1, count + 1)
    assert all(found[number] == number for number in range(1, count + 1))
    assert version.number == count


def test_the_same_merge_at_once(store: LocalStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second finds that the first has merged its rows, and removes its own files."""
    publish(store, "merge", 1, 2)
    made = PublishedWriter.publish

    def overtaken(self: PublishedWriter) -> int:
        monkeypatch.undo()
        publish(store, "merge", 2, 3)
        return made(self)

    monkeypatch.setattr(PublishedWriter, "publish", overtaken)
    assert publish(store, "merge", 2, 3).reused
    version = read_current(store, "t")
    assert version is not None
    assert (keys_of(store), version.number) == ([1, 2, 3], 2)
    assert len(objects_in(store, "results/t/files")) == version.num_files + 1  # of version 1


def test_a_repeated_run_does_not_undo_what_followed(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It died after its commit, and another run has merged the same key since."""

    def merge(value: str, run_id: str) -> Published:
        writer = PublishedWriter.__init__

        def with_run(self: Any, *args: Any, **kwargs: Any) -> None:
            writer(self, *args, **{**kwargs, "run_id": run_id})

        with monkeypatch.context() as patch:
            patch.setattr(PublishedWriter, "__init__", with_run)
            table = pa.table({"k": [1], "v": [value]})
            return publish_rows(store, table, mode="merge", key=("k",))

    merge("early", "run1")
    merge("late", "run2")
    assert merge("early", "run1").reused
    version = read_current(store, "t")
    assert version is not None
    assert read_rows(store, version) == [{"k": 1, "v": "late"}]
    assert not merge("early", "run3").reused
