"""What a run does with a warm Spark Connect server, as a program: prints one JSON object.

A process of its own, because a process with a classic session cannot have a Connect session too.
Arguments: a folder for data, and the process id of the server's watcher.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
from pyspark.errors import PySparkException

from stagecoach.infra.config.settings import load_settings
from stagecoach.infra.errors import ConfigError, TaskFailedError
from stagecoach.infra.runtime.stages.dispatch import run_tasks
from stagecoach.infra.shuffle.map_file import OutputPartitioning
from stagecoach.infra.spark import session as spark_session
from stagecoach.infra.spark.connect_server import await_server
from stagecoach.infra.spark.jobs import (
    JobProgress,
    cancel_stage,
    job_tag,
    tagged_job,
    was_canceled,
)
from stagecoach.infra.spark.session import (
    get_session,
    isolated_session,
    stop_sessions,
    task_slots,
    task_threads,
)
from stagecoach.infra.storage.stores import open_store
from stagecoach.infra.worker.spec import TaskSettings, TaskSpec
from stagecoach.planner.types import BIGINT
from tests.waiting import wait_for

# Far longer than anybody waits for it here.
LONG = "SELECT count(*) AS c0 FROM range(1000000) a(x), range(1000000) b(y) WHERE x * y % 7 = 3"
WORK_SECONDS = 1.0


def make_spec(folder: Path, sql: str, run: str) -> TaskSpec:
    settings = TaskSettings(
        # With secrets, which travel as shares.
        store=open_store(folder / "store", {"secret_key": "marked-secret-71"}).to_dict(),
        time_zone="UTC",
        memory_bytes=128 << 20,
        writer_memory_bytes=16 << 20,
        max_spill_bytes=0,
        spill_dir=str(folder / "spill"),
        codec="lz4",
        directories=(),
    )
    return TaskSpec(
        query=run,
        stage_id=0,
        fingerprint="a" * 64,
        task_index=0,
        sql=sql,
        inputs=(),
        types=(BIGINT,),
        output=OutputPartitioning(),
        settings=settings,
    )


def where(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    import stagecoach.infra.worker.task as module

    for _ in batches:
        keeps = os.environ.get("MIMALLOC_PURGE_DELAY")
        yield pa.RecordBatch.from_pydict({"file": [f"{os.getpid()} {module.__file__} {keeps}"]})


def workers(session: Any) -> list[str]:
    rows = session.range(0, 1, 1, 1).mapInArrow(where, "file string").collect()
    return [row["file"] for row in rows]


def children_of(pid: int) -> list[int]:
    found = subprocess.run(
        ["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True, check=False
    )
    return [int(text) for text in found.stdout.split()]


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])


def busy_seconds(pid: int) -> float:
    """Processor time that a process has taken; 0 for one that is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return 0.0
    return int(fields[11]) / os.sysconf("SC_CLK_TCK")


def await_work(daemon: int) -> None:
    """Return when a worker has been at work for a while, which takes longer on a slow machine."""
    before = {pid: busy_seconds(pid) for pid in children_of(daemon)}
    wait_for(
        lambda: any(
            busy_seconds(pid) > before.get(pid, 0.0) + WORK_SECONDS for pid in children_of(daemon)
        )
    )


def canceled(folder: Path) -> dict[str, Any]:
    """A long DuckDB fragment, cancelled by its tag."""
    session = get_session(load_settings())
    daemon = parent_of(int(workers(session)[0].split()[0]))
    before = set(children_of(daemon))
    tag = job_tag("long", 0)
    raised: list[str] = []

    def work() -> None:
        try:
            with tagged_job(session, tag, "long"):
                run_tasks(session, [make_spec(folder, LONG, "long")])
        except TaskFailedError as error:
            raised.append(str(error))

    thread = threading.Thread(target=work)
    thread.start()
    await_work(daemon)
    started = time.monotonic()
    told = cancel_stage("long", 0)
    thread.join(60)
    ended = time.monotonic() - started
    # The worker was inside DuckDB: it must be gone, not finish its work.
    while before <= set(children_of(daemon)) and time.monotonic() - started < 60:
        time.sleep(0.05)
    return {
        "told": told,
        "raised": raised,
        "was_canceled": was_canceled(tag),
        "seconds": ended,
        "worker_gone_seconds": time.monotonic() - started,
        "again": run_tasks(session, [make_spec(folder, "SELECT 1 AS c0", "next")])[0].failure
        is None,
    }


def progress(session: Any) -> list[tuple[int, int]]:
    """Tasks that have ended and all tasks, as the server reports them of a job of some seconds."""
    heard: list[JobProgress] = []

    def slowly(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            time.sleep(3)  # the server reports every two seconds
            yield batch

    with tagged_job(session, job_tag("slow", 0), "slow", heard.append):
        session.range(2, numPartitions=2).mapInArrow(slowly, "id long").collect()
    return [(one.completed, one.total) for one in heard]


def interrupted(folder: Path) -> dict[str, Any]:
    """A signal in the thread that waits for the job (a step of Dagster's multiprocess executor)."""
    session = get_session(load_settings())
    tag = job_tag("interrupted", 0)
    daemon = parent_of(int(workers(session)[0].split()[0]))
    before = set(children_of(daemon))

    def interrupt() -> None:
        await_work(daemon)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt).start()
    raised = ""
    try:
        with tagged_job(session, tag, "interrupted"):
            run_tasks(session, [make_spec(folder, LONG, "interrupted")])
    except KeyboardInterrupt as error:
        raised = type(error).__name__
    started = time.monotonic()
    # The worker that was inside DuckDB is gone; the others are kept for the next job.
    while before <= set(children_of(daemon)) and time.monotonic() - started < 60:
        time.sleep(0.05)
    return {"raised": raised, "seconds": time.monotonic() - started}


def other_code() -> str:
    """What a client is told whose code is not the server's."""
    with patch.object(spark_session, "code_digest", lambda: "another"):
        try:
            spark_session._connect(load_settings())
        except ConfigError as error:
            return str(error)
    return ""


def restarted(watcher: int) -> dict[str, Any]:
    """What a run sees of a server that died."""
    settings = load_settings()
    session = get_session(settings)
    (jvm,) = children_of(watcher)
    os.kill(jvm, signal.SIGKILL)
    while Path(f"/proc/{jvm}").exists():
        time.sleep(0.05)
    time.sleep(0.2)
    await_server(settings.remote or "", 120)
    first = ""
    try:
        with tagged_job(session, job_tag("lost", 0), "lost"):
            session.range(3).count()
    except PySparkException as error:
        first = str(error)
    count = get_session(settings).range(3).count()
    return {"first": first, "count": count, "new": get_session(settings) is not session}


def main() -> None:
    logging.disable(logging.CRITICAL)
    folder, watcher = Path(sys.argv[1]), int(sys.argv[2])
    settings = load_settings()
    session = get_session(settings)
    same: list[str] = []
    for _ in range(3):
        with isolated_session(session, "Asia/Tokyo") as isolated:
            zone = isolated.sql("SELECT current_timezone() AS z").collect()[0]["z"]
            same += workers(isolated)
    report = {
        "slots": task_slots(settings),
        "threads": task_threads(settings),
        "workers": [*workers(session), *same],
        "zone": zone,
        "workers_after": workers(session),
        "progress": progress(session),
        "canceled": canceled(folder),
        "interrupted": interrupted(folder),
        "restarted": restarted(watcher),
        "other_code": other_code(),
    }
    stop_sessions()
    sys.stdout.write(json.dumps(report))


if __name__ == "__main__":
    main()
