"""The instance of runs that nobody looks up later: Dagster's own in memory, with one connection."""

import threading
import uuid
from concurrent.futures import ThreadPoolExecutor

import dagster as dg
import pytest
import sqlalchemy as db

from stagecoach.assets.in_process.instance import ephemeral_instance


@dg.asset
def numbers() -> int:
    return 7


def test_runs_of_several_threads_are_recorded_apart() -> None:
    with ephemeral_instance() as instance:
        together = threading.Barrier(4)

        def run(_: int) -> str:
            together.wait()
            result = dg.materialize([numbers], instance=instance)
            assert result.success
            return result.run_id

        with ThreadPoolExecutor(4) as threads:
            runs = list(threads.map(run, range(4)))
        assert {run.run_id for run in instance.get_runs()} == set(runs)
        for run_id in runs:
            types = [e.dagster_event_type for e in instance.all_logs(run_id) if e.dagster_event]
            assert types.count(dg.DagsterEventType.ASSET_MATERIALIZATION) == 1
            assert types[-1] is dg.DagsterEventType.RUN_SUCCESS
        assert len(instance.fetch_materializations(numbers.key, limit=9).records) == 4
        instance.delete_run(runs[0])
        assert len(instance.get_runs()) == 3
        assert not instance.all_logs(runs[0])


def test_a_transaction_that_fails_leaves_nothing_and_may_hold_another() -> None:
    with ephemeral_instance() as instance:
        storage = instance.run_storage
        insert = db.text("INSERT INTO kvs (key, value) VALUES (:key, 'x')")
        with pytest.raises(db.exc.IntegrityError), storage.connect() as connection:  # type: ignore[attr-defined]  # SQL storages have it
            connection.execute(insert, {"key": str(uuid.UUID(int=1))})
            connection.execute(insert, {"key": str(uuid.UUID(int=1))})
        with storage.connect() as outer, storage.connect() as inner:  # type: ignore[attr-defined]  # likewise
            inner.execute(insert, {"key": "kept"})
            assert outer.execute(db.text("SELECT key FROM kvs")).fetchall() == [("kept",)]
            assert outer.execute(db.text("PRAGMA foreign_keys")).scalar() == 1
