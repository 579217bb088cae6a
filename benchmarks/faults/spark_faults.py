"""Faults of Spark's processes, such as a killed executor, and how they ended.

    worker      kill -9 of a Python worker of an executor
    executor    kill -9 of an executor's JVM, of two on this machine
    driver      kill -9 of `stagecoach query` with all its processes

Only processes that descend from this one are killed.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from benchmarks.faults.local_runs import FORCED, QUERIES, LocalRuns, write_tables
from benchmarks.faults.trial import Tally, Trial, until_met
from stagecoach.infra.config.settings import EngineSettings
from stagecoach.infra.runtime.stages.run import Run
from stagecoach.infra.spark.session import get_session, stop_sessions
from tests.contexts import run_stages

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

ROWS = 300_000
_MASTERS = {"worker": "local[2]", "executor": "local-cluster[2,1,1024]"}


def run_spark_faults(folder: Path, counts: Mapping[str, int], seed: int, tally: Tally) -> None:
    """Let so many of Spark's processes die.

    Args:
        folder: An empty folder.
        counts: By kind.
        seed: Of the dice.
        tally: Where the endings are counted.
    """
    faults = _SparkFaults(folder, Random(seed), tally)
    for kind, master in _MASTERS.items():
        if counts.get(kind):
            faults.kill_below(kind, master, counts[kind])
    faults.kill_drivers(counts.get("driver", 0))


class _SparkFaults:
    def __init__(self, folder: Path, dice: Random, tally: Tally) -> None:
        self.folder = folder
        self.dice = dice
        self.tally = tally
        self.catalog = write_tables(folder / "tables", ROWS)
        self._expected: dict[str, pa.Table] = {}
        self._count = 0

    def settings(self, master: str = "local[2]") -> EngineSettings:
        self._count += 1
        return EngineSettings(
            storage_root=str(self.folder / "roots" / str(self._count)),
            spill_dir=str(self.folder / "spill"),
            master=master,
            parallelism=2,
            memory_bytes=256 << 20,
            min_task_bytes=0,
            claim_seconds=2.0,
        )

    def expected(self, name: str) -> pa.Table:
        if name not in self._expected:
            runs = LocalRuns(self.catalog, self.settings())
            self._expected[name], _ = runs.run(runs.plan(name))
        return self._expected[name]

    def trial(self, kind: str, settings: EngineSettings) -> Trial:
        name = self.dice.choice(sorted(QUERIES))
        runs = LocalRuns(self.catalog, settings)
        return Trial(kind, runs, runs.plan(name), self.expected(name), self.tally)

    def kill_below(self, kind: str, master: str, count: int) -> None:
        """Kill processes below the session of this process while it runs queries."""
        stop_sessions()
        session = get_session(self.settings(master))
        label = {"worker": "Python worker killed", "executor": "executor JVM killed"}[kind]
        find = _python_workers if kind == "worker" else _executors

        def play(runs: int) -> None:
            for _ in range(runs):
                trial = self._in_session(label, master, session)
                striker = _Striker(find, self.dice.uniform(0.0, seconds))
                trial.play(striker.start, repair=striker.end)

        try:
            seconds = self._calm_seconds(master, session)
            until_met(play, count, self.tally)
        finally:
            stop_sessions()

    def _in_session(self, kind: str, master: str, session: SparkSession) -> Trial:
        trial = self.trial(kind, self.settings(master))
        trial.tasks = contextlib.nullcontext
        trial.changes = {"spark": lambda: session}
        return trial

    def _calm_seconds(self, master: str, session: SparkSession) -> float:
        """How long a run takes in a session that is warm."""
        seconds = 0.0
        for _ in range(2):
            trial = self._in_session("none", master, session)
            context = trial.runs.context(trial.graph, **trial.changes)
            started = time.monotonic()
            run_stages(context)
            seconds = time.monotonic() - started
        return seconds

    def kill_drivers(self, count: int) -> None:
        """Kill the command line, whole."""
        if count:
            seconds = self._calm_command_seconds()
            until_met(lambda runs: self._kill_drivers(runs, seconds), count, self.tally)

    def _calm_command_seconds(self) -> float:
        trial = self.trial("none", self.settings())
        started = time.monotonic()
        with self._command(trial) as process:
            if process.wait() != 0:
                raise RuntimeError("stagecoach query fails without any fault")
        return time.monotonic() - started

    def _kill_drivers(self, count: int, seconds: float) -> None:
        """Kill so many, each in the later part of its run: it starts Spark before."""
        for _ in range(count):
            trial = self.trial("driver killed (stagecoach query)", self.settings())
            delay = self.dice.uniform(0.3, 1.0) * seconds
            died: list[bool] = []

            def first(
                _: Run,
                trial: Trial = trial,
                delay: float = delay,
                died: list[bool] = died,
            ) -> None:
                with self._command(trial) as process:
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        process.wait(delay)
                    died.append(process.poll() is None)
                    with contextlib.suppress(ProcessLookupError):
                        os.killpg(process.pid, signal.SIGKILL)

            trial.play(first=first, repair=partial(any, died))

    @contextlib.contextmanager
    def _command(self, trial: Trial) -> Iterator[subprocess.Popen[bytes]]:
        name = trial.graph.query
        file = self.folder / f"{name}.sql"
        file.write_text(QUERIES[name], encoding="utf-8")
        options = {
            "force_distribution": "true",
            "num_partitions": str(FORCED.num_partitions),
            "broadcast_bytes": "0",
            "inline_bytes": "0",
        }
        settings = trial.runs.settings
        command = [sys.executable, "-m", "stagecoach.commands.main", "query", str(file)]
        command += ["--catalog", str(self.catalog), "--storage", settings.storage_root]
        command += ["--master", "local[2]"]
        for option, value in options.items():
            command += ["--set", f"planner.{option}={value}"]
        with subprocess.Popen(
            command,
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        ) as process:
            yield process


class _Striker:
    """Kills one process after a while, from another thread."""

    def __init__(self, find: Callable[[], list[int]], delay: float) -> None:
        self._find = find
        self._delay = delay
        self._done = threading.Event()
        self._hit = False
        self._thread = threading.Thread(target=self._strike, daemon=True)

    def start(self, _: Run, stage_id: int) -> None:
        """Begin with the first stage."""
        if not stage_id:
            self._thread.start()

    def end(self) -> bool:
        """Stop looking; whether a process was killed."""
        self._done.set()
        self._thread.join()
        return self._hit

    def _strike(self) -> None:
        time.sleep(self._delay)  # any moment of the run, as the dice say
        while not self._done.is_set() and not self._hit:
            for pid in self._find():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                    self._hit = True
                    break
            time.sleep(0.005)  # there may be none yet; workers live for milliseconds


def _python_workers() -> list[int]:
    """Python workers below this process: forks of Spark's daemon, not the daemon itself."""
    found = _descendants()
    daemons = {pid for pid, (_, command) in found.items() if "pyspark.daemon" in command}
    return [pid for pid in daemons if found[pid][0] in daemons]


def _executors() -> list[int]:
    return [
        pid for pid, (_, command) in _descendants().items()
        if "CoarseGrainedExecutorBackend" in command and "java" in command.split("\0")[0]
    ]  # fmt: skip


def _descendants() -> dict[int, tuple[int, str]]:
    """Processes below this one: parent and command line by number."""
    everything: dict[int, tuple[int, str]] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with contextlib.suppress(OSError, IndexError, ValueError):
                parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
                everything[int(folder.name)] = (parent, (folder / "cmdline").read_text())
    below: dict[int, tuple[int, str]] = {}
    left = [os.getpid()]
    while left:
        pid = left.pop()
        for child, (parent, command) in everything.items():
            if parent == pid and child not in below:
                below[child] = (parent, command)
                left.append(child)
    return below
