"""The instance of runs that nobody looks up later: what a run asks of it, and nothing more."""

import os
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import dagster as dg
import pytest
from dagster._core.errors import DagsterRunAlreadyExists
from dagster._core.storage import root

from stagecoach.assets.execution.executor import execute_in_process, stagecoach_threads
from stagecoach.assets.in_process.instance import ephemeral_instance


@dg.asset
def numbers() -> int:
    return 7


@dg.asset(deps=[numbers], retry_policy=dg.RetryPolicy(max_retries=1))
def more(context: dg.AssetExecutionContext) -> None:
    if context.retry_number == 0:
        raise RuntimeError("the first try fails")


@dg.asset
def broken() -> None:
    raise RuntimeError("always")


def _job(*assets: dg.AssetsDefinition) -> dg.JobDefinition:
    job = dg.define_asset_job("run", executor_def=stagecoach_threads)
    return dg.Definitions(assets=assets, jobs=[job]).resolve_job_def("run")


def _run(instance: dg.DagsterInstance, *assets: dg.AssetsDefinition) -> dg.ExecuteInProcessResult:
    return execute_in_process(_job(*assets), instance=instance, run_config={}, tags={"a": "b"})


def _types(instance: dg.DagsterInstance, run_id: str) -> list[dg.DagsterEventType]:
    return [e.dagster_event_type for e in instance.all_logs(run_id) if e.dagster_event_type]


def test_runs_of_several_threads_are_recorded_apart() -> None:
    with ephemeral_instance() as instance:
        together = threading.Barrier(4)

        def run(_: int) -> str:
            together.wait()
            result = _run(instance, numbers)
            assert result.success
            return result.run_id

        with ThreadPoolExecutor(4) as threads:
            runs = list(threads.map(run, range(4)))
        assert len(set(runs)) == 4
        for run_id in runs:
            types = _types(instance, run_id)
            assert types.count(dg.DagsterEventType.ASSET_MATERIALIZATION) == 1
            assert types[-1] is dg.DagsterEventType.RUN_SUCCESS
            record = instance.get_run_record_by_id(run_id)
            assert record is not None
            assert record.dagster_run.status is dg.DagsterRunStatus.SUCCESS
            assert record.dagster_run.tags["a"] == "b"
            assert record.update_timestamp >= record.create_timestamp
        instance.delete_run(runs[0])
        assert instance.get_run_by_id(runs[0]) is None
        assert not instance.all_logs(runs[0])
        assert instance.get_run_by_id(runs[1]) is not None


def test_threads_share_one_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []

    class Slow(tempfile.TemporaryDirectory[str]):
        def __init__(self) -> None:
            super().__init__()
            made.append(self.name)
            time.sleep(0.05)  # the other threads ask meanwhile

    monkeypatch.setattr(root, "TemporaryDirectory", Slow)
    with ephemeral_instance() as instance, ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda _: instance.storage_directory(), range(4)))
        assert len(set(found)) == len(made) == 1
        assert os.path.isdir(made[0])
    assert not os.path.exists(made[0])


def test_events_are_those_that_dagster_s_own_instance_has() -> None:
    planned = dg.DagsterEventType.ASSET_MATERIALIZATION_PLANNED
    for assets in ((numbers,), (numbers, more), (broken,)):
        with ephemeral_instance() as ours, dg.DagsterInstance.ephemeral() as theirs:
            mine, other = _run(ours, *assets), _run(theirs, *assets)
            assert mine.success == other.success == (broken not in assets)
            events = [t for t in _types(theirs, other.run_id) if t is not planned]
            assert _types(ours, mine.run_id) == events
            found, expected = mine.dagster_run, other.dagster_run
            assert found.status is expected.status
            assert found.job_name == expected.job_name


def test_what_a_run_in_this_process_does_not_ask_for_is_refused() -> None:
    with ephemeral_instance() as instance:
        with pytest.raises(NotImplementedError, match="neither SQL"):
            instance.get_run_records()
        with pytest.raises(NotImplementedError, match="neither SQL"):
            instance.fetch_materializations(numbers.key, limit=1)
        by_tags = dg.RunsFilter(run_ids=["some"], tags={"a": "b"})
        with pytest.raises(NotImplementedError, match="neither SQL"):
            instance.get_run_records(by_tags)
        with pytest.raises(NotImplementedError, match="whole job"):
            instance.create_run_for_job(_job(numbers))


def test_an_id_is_that_of_one_run() -> None:
    with ephemeral_instance() as instance:
        result = _run(instance, numbers)
        with pytest.raises(DagsterRunAlreadyExists, match=result.run_id):
            instance.add_run(result.dagster_run)
