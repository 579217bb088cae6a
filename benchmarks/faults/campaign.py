"""The faults of one process, drawn from a seed, and a tally of how they ended.

Faults of processes of Spark are in `benchmarks.faults.spark_faults`.
"""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from benchmarks.faults.damage import DAMAGE
from benchmarks.faults.local_runs import QUERIES, LocalRuns, write_tables
from benchmarks.faults.trial import Tally, Trial, load_manifest_of, until_met
from benchmarks.rclone import RcloneServer
from stagecoach.infra.config.settings import EngineSettings
from stagecoach.infra.runtime.stages.run import Run
from stagecoach.infra.storage.object_store import StorageOptions
from stagecoach.planner.plan.stages import StageGraph
from tests.fault_proxy import Fault, FaultProxy

if TYPE_CHECKING:
    import pyarrow as pa

log = logging.getLogger(__name__)

_BUCKET = "faults"
_S3_GROUPS = ("s3_damage", "network", "server_killed")

NETWORK: dict[str, Fault] = {
    "500": Fault("status", status=500),
    "503 SlowDown": Fault("status", status=503),
    "no answer": Fault("late", seconds=2),
    "connection reset": Fault("reset"),
    "reset after the request": Fault("reset_after"),
    "response cut short": Fault("cut"),
    "response short by its headers": Fault("short"),
    "slow response": Fault("slow", seconds=2),
    "bit of a response flipped": Fault("flip", path=r"\.arrow|manifest"),
    "403 for good": Fault("status", status=403, times=-1),
    "503 for good": Fault("status", status=503, times=-1),
}


@dataclass
class Campaign:
    """Faults in this process, against local folders and an S3 server.

    Args:
        folder: Where everything is kept.
        seed: The same seed gives the same faults (their moments are the machine's).
    """

    folder: Path
    seed: int
    tally: Tally = field(default_factory=Tally)

    def __post_init__(self) -> None:
        self.dice = Random(self.seed)
        self.catalog = write_tables(self.folder / "tables")
        self._expected: dict[str, pa.Table] = {}
        self._count = 0

    def settings(self, root: str, options: StorageOptions | None = None) -> EngineSettings:
        """Settings of a run."""
        return EngineSettings(
            storage_root=root,
            storage_options=options or StorageOptions(),
            spill_dir=str(self.folder / "spill"),
            parallelism=2,
            memory_bytes=256 << 20,
            # Half of the runs spill what they write.
            writer_memory_bytes=self.dice.choice((8 << 10, 256 << 20)),
            min_task_bytes=0,
            claim_seconds=2.0,
        )

    def trial(
        self, kind: str, root: str = "", options: StorageOptions | None = None, **changes: Any
    ) -> Trial:
        """A run of some query on a storage root of its own."""
        self._count += 1
        place = root or str(self.folder / "roots" / str(self._count))
        runs = LocalRuns(self.catalog, self.settings(place, options))
        name = self.dice.choice(sorted(QUERIES))
        graph = runs.plan(name)
        return Trial(kind, runs, graph, self.expected(name, graph), self.tally, changes)

    def expected(self, name: str, graph: StageGraph) -> pa.Table:
        """The result of a run without faults."""
        if name not in self._expected:
            runs = LocalRuns(self.catalog, self.settings(str(self.folder / "calm" / name)))
            self._expected[name], _ = runs.run(graph)
        return self._expected[name]

    # ---------------------------------------------------------------- what is stored

    def damage(self, count: int, server: RcloneServer | None = None) -> None:
        """Damage of committed stages while a later one has yet to read them."""
        for number in range(count):
            kind = sorted(DAMAGE)[number % len(DAMAGE)]
            recover = self.dice.random() < 0.7
            options = root = None
            if server is not None:
                options, root = _reached(server, retry_seconds=6), self._s3_root()
            trial = self.trial(kind, root or "", options, recover=recover)
            at = self.dice.randrange(1, len(trial.graph.stages) + 1)
            victim = self._victim(trial.graph, at)

            def between(
                context: Run, stage_id: int, *, at: int = at, victim: int = victim,
                kind: str = kind, trial: Trial = trial,
            ) -> None:  # fmt: skip
                manifest = load_manifest_of(context, victim) if stage_id == at else None
                if manifest is not None:
                    trial.damaged.add(manifest.fingerprint)
                    DAMAGE[kind](context, victim, manifest, self.dice)

            trial.play(between)

    def _victim(self, graph: StageGraph, at: int) -> int:
        """A stage that has run before this one, mostly one that it reads."""
        read = (graph.head.stage_id,) if at == len(graph.stages) else graph.stages[at].inputs
        return (
            self.dice.choice(read) if read and self.dice.random() < 0.9 else self.dice.randrange(at)
        )

    def full_disk(self, count: int) -> None:
        """No space left on the device of the storage root, at some moment; then there is again."""
        with small_disk() as place:
            if place is None:
                self.tally.leave_out(count, "no space on the device: no tmpfs can be mounted here")
                return
            for _ in range(count):
                self._fill(place)

    def _fill(self, place: Path) -> None:
        trial = self.trial("no space on the device", str(place / f"root{self._count}"))
        at = self.dice.randrange(len(trial.graph.stages))
        leave = self.dice.randrange(0, 9) * 4096
        filler = place / "filler"

        def between(context: Run, stage_id: int) -> None:
            if stage_id == at and not filler.exists():
                status = os.statvfs(place)
                free = status.f_bavail * status.f_frsize
                filler.write_bytes(bytes(max(free - leave, 0)))

        def repair() -> bool:
            filler.unlink(missing_ok=True)
            return True

        trial.play(between, repair=repair)
        filler.unlink(missing_ok=True)

    # ---------------------------------------------------------------- the network

    def network(self, count: int, server: RcloneServer, proxy: FaultProxy) -> None:
        """Requests that fail, some for a while and some for good."""
        for number in range(count):
            name = sorted(NETWORK)[number % len(NETWORK)]
            template = NETWORK[name]
            times = template.times if template.times < 0 else self.dice.randrange(1, 4)
            fault = replace(template, times=times, after=self.dice.randrange(40))
            if self.dice.random() < 0.5:
                fault.method = self.dice.choice(("GET", "PUT", "HEAD"))
            options = _reached(server, proxy.url, retry_seconds=1 if times < 0 else 6)
            trial = self.trial(name, self._s3_root(), options, recover=self.dice.random() < 0.7)
            started = False

            def between(context: Run, stage_id: int, *, fault: Fault = fault) -> None:
                nonlocal started
                if not started:
                    started = True
                    proxy.add(fault)

            def repair(*, fault: Fault = fault) -> bool:
                proxy.clear()
                return fault.met > 0

            started = False
            trial.play(between, repair=repair)
            proxy.clear()

    def server_killed(self, count: int, server: RcloneServer) -> None:
        """The S3 server is killed at some moment, and is back after a while, or after too long."""
        calm = self.trial("none", self._s3_root(), _reached(server, retry_seconds=6))
        started = time.monotonic()
        calm.runs.run(calm.graph)
        seconds = time.monotonic() - started
        for number in range(count):
            away = 12.0 if number % 5 == 4 else self.dice.uniform(0.1, 2.0)
            options = _reached(server, retry_seconds=6)
            trial = self.trial("S3 server killed", self._s3_root(), options)
            delay = self.dice.uniform(0.0, seconds)
            killed = threading.Event()

            def strike(
                delay: float = delay, away: float = away, killed: threading.Event = killed
            ) -> None:
                time.sleep(delay)  # any moment of the run, as the dice say
                server.kill()
                killed.set()
                time.sleep(away)  # shorter or longer than requests are tried again
                server.start()

            thread = threading.Thread(target=strike)

            def between(context: Run, stage_id: int, *, thread: threading.Thread = thread) -> None:
                if not stage_id:
                    thread.start()

            def repair(
                *, thread: threading.Thread = thread, killed: threading.Event = killed
            ) -> bool:
                met = killed.is_set()
                thread.join()
                return met

            trial.play(between, repair=repair)

    def _s3_root(self) -> str:
        self._count += 1
        return f"s3://{_BUCKET}/{self._count}"

    # ---------------------------------------------------------------- drivers

    def drivers_killed(self, count: int) -> None:
        """The process that runs a query is killed; the next run goes on from what it committed."""
        command = [sys.executable, "-m", "benchmarks.faults.zygote"]
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as zygote:
            try:
                for _ in range(count):
                    self._kill_driver(zygote)
            finally:
                if zygote.stdin:
                    zygote.stdin.close()

    def _kill_driver(self, zygote: subprocess.Popen[str]) -> None:
        trial = self.trial("driver killed")
        delay = self.dice.uniform(0.02, 0.5)
        settings = trial.runs.settings
        met = False

        def first(context: Run) -> None:
            nonlocal met
            kept = ["storage_root", "spill_dir", "parallelism", "memory_bytes"]
            kept += ["writer_memory_bytes", "min_task_bytes"]
            request = {
                "settings": {name: getattr(settings, name) for name in kept},
                "catalog": str(self.catalog),
                "query": trial.graph.query,
                "run_id": context.run_id,
                "changes": dict(trial.changes),
            }
            assert zygote.stdin is not None
            assert zygote.stdout is not None
            zygote.stdin.write(json.dumps(request) + "\n")
            zygote.stdin.flush()
            pid = int(zygote.stdout.readline())
            time.sleep(delay)  # any moment of the run, as the dice say
            # Ours, and not reaped yet by its parent unless it has ended: then its number is free.
            if Path(f"/proc/{pid}").exists():
                os.kill(pid, 9)
            status = int(zygote.stdout.readline().split()[1])
            met = os.WIFSIGNALED(status)

        trial.play(first=first, repair=lambda: met)


@contextmanager
def small_disk(megabytes: int = 4) -> Iterator[Path | None]:
    """A folder on a device of its own that is soon full; None where none can be mounted.

    The mount is one of a process that does nothing else, so it needs no root and ends with us.
    Its files are reached by way of that process.
    """
    script = 'mount -t tmpfs -o "size=$1m,mode=0700" tmpfs "$0" && echo ready && read end'
    as_root = ["--map-root-user"] if os.geteuid() else []
    with tempfile.TemporaryDirectory() as place:
        command = ["unshare", "--mount", *as_root, "sh", "-c", script, place, str(megabytes)]
        try:
            holder = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        except FileNotFoundError:  # not Linux, or util-linux is not there
            yield None
            return
        with holder:
            assert holder.stdin is not None
            assert holder.stdout is not None
            is_there = holder.stdout.readline() == b"ready\n"
            yield Path(f"/proc/{holder.pid}/root{place}") if is_there else None
            holder.stdin.close()


@contextmanager
def served(folder: Path) -> Iterator[tuple[RcloneServer, FaultProxy] | None]:
    """An S3 server and a proxy before it; None where there is no server to be had."""
    if RcloneServer.command() is None:
        yield None
        return
    with RcloneServer(folder, _BUCKET) as server, FaultProxy(server.url).running() as proxy:
        yield server, proxy


def _reached(
    server: RcloneServer, url: str | None = None, *, retry_seconds: float
) -> StorageOptions:
    """How trials reach it: they wait for an answer only for a moment."""
    return server.options(url, timeout_seconds=0.5, retry_seconds=retry_seconds)


def run_campaign(
    folder: Path, counts: Mapping[str, int], seed: int, say: Callable[[str], None]
) -> Tally:
    """Let so many faults of each group happen.

    Args:
        folder: An empty folder.
        counts: To be met, by group: `damage`, `s3_damage`, `full_disk`, `network`, `server_killed`,
            `drivers_killed`.
        seed: Of the dice.
        say: Told of the progress.
    """
    campaign = Campaign(folder, seed)
    with served(folder / "s3") as s3:
        groups: dict[str, Callable[[int], None]] = {
            "damage": campaign.damage,
            "full_disk": campaign.full_disk,
            "drivers_killed": campaign.drivers_killed,
        }
        if s3 is None:
            for name in _S3_GROUPS:
                if count := counts.get(name, 0):
                    campaign.tally.leave_out(count, f"{name}: rclone is not installed")
        else:
            server, proxy = s3
            groups["s3_damage"] = lambda n: campaign.damage(n, server)
            groups["network"] = lambda n: campaign.network(n, server, proxy)
            groups["server_killed"] = lambda n: campaign.server_killed(n, server)
        for name, run in groups.items():
            if count := counts.get(name, 0):
                started = time.monotonic()
                met, runs = until_met(run, count, campaign.tally)
                seconds = time.monotonic() - started
                say(f"{name}: {met} faults in {runs} runs, {seconds:.0f} s")
    return campaign.tally
