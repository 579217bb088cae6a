"""Publishing to Iceberg under faults: nothing is lost, nothing is doubled, leftovers are found."""

from __future__ import annotations

import datetime as dt
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitFailedException, CommitStateUnknownException

from stagecoach.infra.errors import StorageError
from stagecoach.infra.formats.iceberg import commit as commit_module
from stagecoach.infra.formats.iceberg import writer
from stagecoach.infra.formats.lake_tables import leftovers
from stagecoach.infra.formats.publishing import PublishError
from stagecoach.infra.publishing import jobs
from stagecoach.infra.publishing.merge_tasks import RewriteTask
from stagecoach.infra.publishing.publish import Published
from stagecoach.infra.publishing.tasks import PublishReport, PublishTask
from stagecoach.infra.upkeep.gc import collect_garbage
from tests.infra.formats.iceberg.lake import Lake, local_lake

MODES = ("append", "replace", "replace_partition", "merge")


class KilledError(BaseException):
    """The process ends here: nothing below may catch it."""


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return local_lake(tmp_path)


def rows(*keys: int) -> pa.Table:
    return pa.table({"k": pa.array(keys, pa.int64())})


def keys_of(lake: Lake) -> list[int]:
    return sorted(row["k"] for row in lake.rows())


def publish(lake: Lake, mode: str, *keys: int) -> Published:
    """Publish rows with these keys, which are also those of their partitions and of a merge."""
    target: dict[str, Any] = {"mode": mode}
    if mode == "replace_partition":
        target |= {"partition_keys": tuple(map(str, keys)), "partition_column": "k"}
    elif mode == "merge":
        target["key"] = ("k",)
    return lake.publish(rows(*keys), **target)


def left_of(mode: str, before: list[int], keys: list[int]) -> list[int]:
    """Which keys there are after these have been published over others."""
    match mode:
        case "append":
            return sorted(before + keys)
        case "replace":
            return sorted(keys)
    return sorted({*before, *keys})


def pending(lake: Lake) -> list[str]:
    return list(lake.store.list(f"iceberg/{lake.table}/pending"))


def collect(lake: Lake) -> Any:
    return collect_garbage(lake.store, older_than=dt.timedelta(0))


def killed(*args: Any, **kwargs: Any) -> Any:
    raise KilledError


def after(call: Callable[..., Any]) -> Callable[..., Any]:
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        call(*args, **kwargs)
        raise KilledError

    return wrapped


STEPS: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "before the table": lambda m: m.setattr(writer, "create_table", killed),
    "after the table": lambda m: m.setattr(writer, "create_table", after(writer.create_table)),
    "before the files": lambda m: m.setattr(jobs, "run_publish_task", killed),
    "after the files": lambda m: m.setattr(jobs, "run_publish_task", after(jobs.run_publish_task)),
    "before the manifests": lambda m: m.setattr(writer, "commit", killed),
    "after the manifests": lambda m: m.setattr(SqlCatalog, "commit_table", killed),
    "after the metadata file": lambda m: m.setattr(
        SqlCatalog, "_write_metadata", staticmethod(after(SqlCatalog._write_metadata))
    ),
    "after the commit": lambda m: m.setattr(writer, "commit", after(writer.commit)),
    "before the record goes": lambda m: m.setattr(leftovers, "end", killed),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("step", STEPS)
def test_a_run_that_dies_is_repeated(lake: Lake, step: str, mode: str) -> None:
    before: list[int] = []
    if "table" not in step:
        before = [1, 2] if mode == "merge" else [1]
        publish(lake, mode, *before)
    with pytest.MonkeyPatch.context() as patch, pytest.raises(KilledError):
        STEPS[step](patch)
        publish(lake, mode, 2, 3)
    publish(lake, mode, 2, 3)
    assert keys_of(lake) == left_of(mode, before, [2, 3])
    live = {
        path.split("/data/")[1] for path in lake.opened.inspect.all_files()["file_path"].to_pylist()
    }
    collect(lake)
    assert lake.data_files() == live
    assert pending(lake) == []
    assert keys_of(lake) == left_of(mode, before, [2, 3])


@pytest.mark.parametrize("is_over", [False, True])
def test_a_run_that_dies_while_it_rewrites_files_is_repeated(
    lake: Lake, is_over: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(lake, "merge", 1, 2)
    run = jobs.run_publish_task

    def dies(task: PublishTask, attempt: int = 0) -> PublishReport:
        report = run(task, attempt) if is_over or not isinstance(task, RewriteTask) else None
        if report is None or isinstance(task, RewriteTask):
            raise KilledError
        return report

    with monkeypatch.context() as patch, pytest.raises(KilledError):
        patch.setattr(jobs, "run_publish_task", dies)
        publish(lake, "merge", 2, 3)
    assert keys_of(lake) == [1, 2]
    publish(lake, "merge", 2, 3)
    assert keys_of(lake) == [1, 2, 3]
    collect(lake)
    assert (len(lake.data_files()), pending(lake)) == (2 + 1, [])  # one is of an older snapshot


def test_leftovers_stay_while_they_may_be_under_way(lake: Lake) -> None:
    lake.publish(rows(1))
    with pytest.MonkeyPatch.context() as patch, pytest.raises(KilledError):
        STEPS["before the manifests"](patch)
        lake.publish(rows(2))
    collect_garbage(lake.store, older_than=dt.timedelta(hours=1))
    assert (len(lake.data_files()), len(pending(lake))) == (2, 1)
    report = collect_garbage(lake.store, older_than=dt.timedelta(0), dry_run=True)
    assert [dict(item.counts) for item in report.versions] == [{"files of a lost commit": 1}]
    assert len(lake.data_files()) == 2
    collect(lake)
    assert (len(lake.data_files()), len(pending(lake))) == (1, 0)


def test_live_files_of_an_expired_snapshot_stay(lake: Lake) -> None:
    """The commit was made, its record was left, and its snapshot has expired since."""
    with pytest.MonkeyPatch.context() as patch, pytest.raises(KilledError):
        STEPS["before the record goes"](patch)
        lake.publish(rows(1), mode="append")
    first = lake.opened.current_snapshot().snapshot_id
    lake.publish(rows(2), mode="append")
    lake.opened.maintenance.expire_snapshots().by_id(first).commit()
    assert len(lake.opened.snapshots()) == 1
    collect(lake)
    assert keys_of(lake) == [1, 2]


def test_leftovers_of_a_table_that_is_gone_stay(lake: Lake) -> None:
    """It may have been renamed, so its files may be live under another name."""
    with pytest.MonkeyPatch.context() as patch, pytest.raises(KilledError):
        STEPS["before the record goes"](patch)
        lake.publish(rows(1), mode="append")
    lake.catalog.rename_table(lake.table, "tpch.renamed")
    collect(lake)
    assert lake.catalog.load_table("tpch.renamed").scan().to_arrow().num_rows == 1


def test_an_answer_that_is_lost_is_asked_for(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    lake.publish(rows(1), mode="append")
    made = commit_module.commit

    def lost(*args: Any) -> None:
        made(*args)
        monkeypatch.undo()
        raise CommitStateUnknownException("the connection was closed")

    monkeypatch.setattr(writer, "commit", lost)
    with pytest.raises(StorageError, match="the connection was closed") as raised:
        lake.publish(rows(2), mode="append")
    assert raised.value.retryable
    assert lake.publish(rows(2), mode="append").reused
    assert keys_of(lake) == [1, 2]


@pytest.mark.parametrize("mode", MODES)
def test_two_publishers_at_once(lake: Lake, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both have looked at the table before either commits."""
    publish(lake, mode, 1)
    both = threading.Barrier(2)
    made = writer.commit
    met = threading.local()

    def together(*args: Any) -> None:
        if not getattr(met, "already", False):
            met.already = True
            both.wait(60)
        made(*args)

    monkeypatch.setattr(writer, "commit", together)
    with ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(publish, lake, mode, *k) for k in ((1, 3), (4, 5))]:
            assert not done.result(120).reused
    match mode:
        case "append":
            assert keys_of(lake) == [1, 1, 3, 4, 5]
        case "replace":
            assert keys_of(lake) in ([1, 3], [4, 5])
        case _:
            assert keys_of(lake) == [1, 3, 4, 5]
    assert len(lake.opened.snapshots()) == 3
    assert pending(lake) == []


def test_two_runs_of_the_same_result_at_once(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second finds that the first has published its rows, and removes its own files."""
    lake.publish(rows(1), mode="append")
    made = writer.commit

    def overtaken(*args: Any) -> None:
        monkeypatch.undo()
        lake.publish(rows(2), mode="append")
        made(*args)

    monkeypatch.setattr(writer, "commit", overtaken)
    assert lake.publish(rows(2), mode="append").reused
    assert keys_of(lake) == [1, 2]
    assert (len(lake.data_files()), pending(lake)) == (2, [])


def test_a_table_that_changes_meanwhile_is_refused(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.publish(rows(1), mode="append")
    made = writer.commit

    def altered(*args: Any) -> None:
        monkeypatch.undo()
        with lake.opened.update_schema() as schema:
            schema.rename_column("k", "key")
        made(*args)

    monkeypatch.setattr(writer, "commit", altered)
    with pytest.raises(PublishError, match="column 'key' is bigint there and missing here"):
        lake.publish(rows(2), mode="append")
    assert (len(lake.data_files()), pending(lake)) == (1, [])


def test_files_of_attempts_that_failed_are_removed(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark repeats a task that has written its files and then lost its executor."""
    run = jobs.run_publish_task

    def twice(task: PublishTask, attempt: int = 0) -> PublishReport:
        run(task, attempt)
        return run(task, attempt + 1)

    monkeypatch.setattr(jobs, "run_publish_task", twice)
    lake.publish(rows(1, 2), mode="append")
    assert (keys_of(lake), len(lake.data_files())) == ([1, 2], 1)


def test_a_commit_that_is_called_lost_and_was_made_keeps_its_files(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer is lost below pyiceberg, and the table has got other columns since."""
    lake.publish(rows(1), mode="append")
    made = writer.commit

    def lost(*args: Any) -> None:
        made(*args)
        with lake.opened.update_schema() as schema:
            schema.rename_column("k", "key")
        monkeypatch.undo()
        raise CommitFailedException("somebody else was first")

    monkeypatch.setattr(writer, "commit", lost)
    assert not lake.publish(rows(2), mode="append").reused
    assert sorted(row["key"] for row in lake.rows()) == [1, 2]
    assert pending(lake) == []
