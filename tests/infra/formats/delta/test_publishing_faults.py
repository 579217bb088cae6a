"""Publishing to Delta under faults: nothing is lost, nothing is doubled, leftovers are found."""

from __future__ import annotations

import datetime as dt
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import CommitFailedError, DeltaError

from stagecoach.infra.errors import StorageError
from stagecoach.infra.formats.delta import writer
from stagecoach.infra.formats.delta.opening import storage_options
from stagecoach.infra.formats.lake_tables import leftovers
from stagecoach.infra.formats.publishing import PublishError
from stagecoach.infra.publishing import jobs
from stagecoach.infra.publishing.merge_tasks import RewriteTask
from stagecoach.infra.publishing.publish import Published
from stagecoach.infra.publishing.tasks import PublishReport, PublishTask
from stagecoach.infra.storage.object_store import StorageOptions
from stagecoach.infra.storage.stores import open_store
from stagecoach.infra.upkeep.gc import collect_garbage
from tests.infra.formats.delta.lake import DeltaLake, local_lake
from tests.moto_server import BUCKET
from tests.moto_server import moto_options as moto_options

MODES = ("append", "replace", "replace_partition", "merge")


class KilledError(BaseException):
    """The process ends here: nothing below may catch it."""


@pytest.fixture
def lake(tmp_path: Path) -> DeltaLake:
    return local_lake(tmp_path)


def rows(*keys: int) -> pa.Table:
    return pa.table({"k": pa.array(keys, pa.int64())})


def publish(lake: DeltaLake, mode: str, *keys: int) -> Published:
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


def named_files(lake: DeltaLake) -> set[str]:
    """Files that some version has."""
    found = set()
    for version in range(lake.opened.version() + 1):
        table = DeltaTable(lake.location, version=version)
        found |= set(table.get_add_actions().column("path").to_pylist())
    return found


def collect(lake: DeltaLake) -> Any:
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
    "before the commit": lambda m: m.setattr(writer, "commit", killed),
    "after the commit": lambda m: m.setattr(writer, "commit", after(writer.commit)),
    "before the record goes": lambda m: m.setattr(leftovers, "end", killed),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("step", STEPS)
def test_a_run_that_dies_is_repeated(lake: DeltaLake, step: str, mode: str) -> None:
    before: list[int] = []
    if "table" not in step:
        before = [1, 2] if mode == "merge" else [1]
        publish(lake, mode, *before)
    with pytest.MonkeyPatch.context() as patch, pytest.raises(KilledError):
        STEPS[step](patch)
        publish(lake, mode, 2, 3)
    publish(lake, mode, 2, 3)
    assert lake.keys() == left_of(mode, before, [2, 3])
    collect(lake)
    assert lake.data_files() == named_files(lake)
    assert lake.pending() == []
    assert lake.keys() == left_of(mode, before, [2, 3])


@pytest.mark.parametrize("is_over", [False, True])
def test_a_run_that_dies_while_it_rewrites_files_is_repeated(
    lake: DeltaLake, is_over: bool, monkeypatch: pytest.MonkeyPatch
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
    assert lake.keys() == [1, 2]
    publish(lake, "merge", 2, 3)
    assert lake.keys() == [1, 2, 3]
    collect(lake)
    assert (lake.data_files(), lake.pending()) == (named_files(lake), [])


def test_leftovers_stay_while_they_may_be_under_way(lake: DeltaLake) -> None:
    lake.publish(rows(1))
    with pytest.MonkeyPatch.context() as patch, pytest.raises(KilledError):
        STEPS["before the commit"](patch)
        lake.publish(rows(2))
    collect_garbage(lake.store, older_than=dt.timedelta(hours=1))
    assert (len(lake.data_files()), len(lake.pending())) == (2, 1)
    report = collect_garbage(lake.store, older_than=dt.timedelta(0), dry_run=True)
    assert [dict(item.counts) for item in report.versions] == [{"files of a lost commit": 1}]
    assert len(lake.data_files()) == 2
    collect(lake)
    assert (len(lake.data_files()), len(lake.pending())) == (1, 0)


def test_live_files_whose_commit_is_cleaned_up_stay(lake: DeltaLake) -> None:
    """The commit was made, its record was left, and a checkpoint has replaced its entry since."""
    with pytest.MonkeyPatch.context() as patch, pytest.raises(KilledError):
        STEPS["before the record goes"](patch)
        lake.publish(rows(1), mode="append")
    lake.publish(rows(2), mode="append")
    table = lake.opened
    table.create_checkpoint()
    for number in range(table.version() + 1):
        (Path(lake.location) / "_delta_log" / f"{number:020}.json").unlink()
    collect(lake)
    assert lake.keys() == [1, 2]


def test_replaced_files_stay_for_older_versions(lake: DeltaLake) -> None:
    with pytest.MonkeyPatch.context() as patch, pytest.raises(KilledError):
        STEPS["before the record goes"](patch)
        lake.publish(rows(1), mode="append")
    first = lake.opened.version()
    lake.publish(rows(2), mode="replace")
    collect(lake)
    assert DeltaTable(lake.location, version=first).to_pyarrow_table()["k"].to_pylist() == [1]


def test_leftovers_of_a_table_that_is_gone_stay(lake: DeltaLake) -> None:
    """It may have been moved, so its files may be live in another place."""
    with pytest.MonkeyPatch.context() as patch, pytest.raises(KilledError):
        STEPS["before the record goes"](patch)
        lake.publish(rows(1), mode="append")
    log = Path(lake.location) / "_delta_log"
    log.rename(log.with_name("elsewhere"))
    collect(lake)
    assert len(lake.data_files()) == 1


def test_an_answer_that_is_lost_is_asked_for(
    lake: DeltaLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.publish(rows(1), mode="append")
    made = DeltaTable.create_write_transaction

    def lost(*args: Any, **kwargs: Any) -> None:
        made(*args, **kwargs)
        monkeypatch.undo()
        raise DeltaError("the connection was closed")

    monkeypatch.setattr(DeltaTable, "create_write_transaction", lost)
    with pytest.raises(StorageError, match="the connection was closed") as raised:
        lake.publish(rows(2), mode="append")
    assert raised.value.retryable
    assert lake.publish(rows(2), mode="append").reused
    assert lake.keys() == [1, 2]


def test_a_commit_that_is_called_lost_and_was_made_keeps_its_files(
    lake: DeltaLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer is lost below deltalake, and others have replaced the rows since."""
    lake.publish(rows(1), mode="append")
    made = DeltaTable.create_write_transaction

    def lost(*args: Any, **kwargs: Any) -> None:
        made(*args, **kwargs)
        monkeypatch.undo()
        lake.opened.alter.set_table_properties({"delta.appendOnly": "false"})
        write_deltalake(lake.opened, rows(9), mode="append")
        raise CommitFailedError("Failed to commit transaction: 0")

    monkeypatch.setattr(DeltaTable, "create_write_transaction", lost)
    assert not lake.publish(rows(2), mode="replace").reused
    assert lake.keys() == [2, 9]
    assert lake.pending() == []


@pytest.mark.parametrize("mode", MODES)
def test_two_publishers_at_once(
    lake: DeltaLake, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(lake, mode, 1)
    publish_together(lake, mode, monkeypatch)
    match mode:
        case "append":
            assert lake.keys() == [1, 1, 3, 4, 5]
        case "replace":
            assert lake.keys() in ([1, 3], [4, 5])
        case _:
            assert lake.keys() == [1, 3, 4, 5]
    assert (lake.opened.version(), lake.pending()) == (3, [])


@pytest.mark.s3
def test_two_publishers_at_once_on_s3(
    moto_options: StorageOptions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a server that refuses to overwrite an object."""
    root = f"s3://{BUCKET}/{tmp_path.name}"
    store = open_store(f"{root}/root", moto_options)
    lake = DeltaLake(tmp_path, store, f"{root}/lake", storage_options(moto_options))
    publish(lake, "append", 1)
    publish_together(lake, "append", monkeypatch)
    assert lake.keys() == [1, 1, 3, 4, 5]
    assert (lake.opened.version(), lake.pending()) == (3, [])


def publish_together(lake: DeltaLake, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Publish twice; both have looked at the table before either commits."""
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


def test_two_publishers_create_the_table_at_once(
    lake: DeltaLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = threading.Barrier(2)
    made = DeltaTable.create

    def together(*args: Any, **kwargs: Any) -> Any:
        both.wait(60)
        return made(*args, **kwargs)

    monkeypatch.setattr(DeltaTable, "create", together)
    with ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(lake.publish, rows(k), mode="append") for k in (1, 2)]:
            assert not done.result(120).reused
    assert (lake.keys(), lake.opened.version()) == ([1, 2], 2)


def test_two_runs_of_the_same_result_at_once(
    lake: DeltaLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second finds that the first has published its rows, and removes its own files."""
    lake.publish(rows(1), mode="append")
    made = writer.commit

    def overtaken(*args: Any) -> None:
        monkeypatch.undo()
        lake.publish(rows(2), mode="append")
        made(*args)

    monkeypatch.setattr(writer, "commit", overtaken)
    assert lake.publish(rows(2), mode="append").reused
    assert lake.keys() == [1, 2]
    assert (len(lake.data_files()), lake.pending()) == (2, [])


def test_a_table_that_changes_meanwhile_is_refused(
    lake: DeltaLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.publish(rows(1), mode="append")
    made = writer.commit

    def altered(*args: Any) -> None:
        monkeypatch.undo()
        new = rows(5).append_column("more", pa.array(["x"]))
        write_deltalake(lake.opened, new, mode="append", schema_mode="merge")
        made(*args)

    monkeypatch.setattr(writer, "commit", altered)
    with pytest.raises(PublishError, match="column 'more' is string there and missing here"):
        lake.publish(rows(2), mode="append")
    assert (len(lake.data_files()), lake.pending()) == (2, [])


def test_files_of_attempts_that_failed_are_removed(
    lake: DeltaLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark repeats a task that has written its files and then lost its executor."""
    run = jobs.run_publish_task

    def twice(task: PublishTask, attempt: int = 0) -> PublishReport:
        run(task, attempt)
        return run(task, attempt + 1)

    monkeypatch.setattr(jobs, "run_publish_task", twice)
    lake.publish(rows(1, 2), mode="append")
    assert (lake.keys(), len(lake.data_files())) == ([1, 2], 1)
