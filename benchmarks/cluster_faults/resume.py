"""What faults cost: workers killed, and drivers killed at 80 %, beside plain Spark SQL.

    python -m benchmarks.cluster_faults.resume --scale-factor 1 --workers 4

Plain Spark keeps shuffles on its workers and starts again when its driver is killed. A resumed run
of ours goes on from the stages that are committed. Both read the same Parquet files: ours from the
S3 server, plain Spark from the local disk.
"""

from __future__ import annotations

import tempfile
import time
import uuid
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click

from benchmarks.cluster_faults.driver_process import DriverProcess
from benchmarks.cluster_faults.testbed import CLASSIC, PLAIN, Testbed
from benchmarks.report import document, json_option, storage_option, table_text, write_document

_NAMES = {CLASSIC: "stagecoach", PLAIN: "spark"}
_DEADLINE_SECONDS = 600.0
_KILLED_AT = 0.5
_FAILED_AT = 0.8
_PLAN = {"force_distribution": True, "broadcast_bytes": 0, "num_partitions": 8}


class Comparison:
    """Runs of one query on a cluster.

    Args:
        bed: The cluster.
        query: The name of the query.
        seconds: Of calm runs, by mode, in a process whose Spark runs.
    """

    def __init__(self, bed: Testbed, query: str) -> None:
        self.bed = bed
        self.query = query
        self.seconds: dict[str, float] = {}

    def calm(self, mode: str, repeat: int) -> float:
        """The best time without a fault."""
        self._finish(mode, self._ask(mode))
        times = []
        for _ in range(repeat):
            started = time.monotonic()
            self._finish(mode, self._ask(mode))
            times.append(time.monotonic() - started)
        self.seconds[mode] = min(times)
        return self.seconds[mode]

    def workers_killed(self, mode: str, count: int) -> float:
        """Time to the end where so many workers are killed in the middle, and stay away."""
        names = self.bed.cluster.worker_names[:count]
        started = time.monotonic()
        driver = self._ask(mode)
        time.sleep(_KILLED_AT * self.seconds[mode])
        for name in names:
            self.bed.cluster.kill(name)
        self._finish(mode, driver)
        seconds = time.monotonic() - started
        for name in names:
            self.bed.cluster.launch(name)
        self.bed.settle()
        return seconds

    def driver_killed(self, mode: str) -> float:
        """Time from the start of a new process to the rows, after a driver was killed at 80 %."""
        root = self.bed.new_root()
        self._ask(mode, root)
        time.sleep(_FAILED_AT * self.seconds[mode])
        self.bed.end_driver(mode)
        return self._anew(mode, root)

    def started_again(self, mode: str) -> float:
        """Time from the start of a process to the rows where nothing is there."""
        self.bed.end_driver(mode)
        return self._anew(mode, self.bed.new_root())

    def _anew(self, mode: str, root: str) -> float:
        self.bed.settle()
        started = time.monotonic()
        self._finish(mode, self._ask(mode, root))
        return time.monotonic() - started

    def _ask(self, mode: str, root: str | None = None) -> DriverProcess:
        driver, run_id = self.bed.driver(mode), str(uuid.uuid4())
        request: dict[str, Any] = {"query": self.query, "sql": self.bed.queries[self.query]}
        if mode == PLAIN:
            conf = {**self.bed.spark_conf, "spark.sql.shuffle.partitions": _PLAN["num_partitions"]}
            request |= {"conf": conf, "master": self.bed.cluster.master}
            request |= {"tables": str(self.bed.tables)}
        else:
            settings = self.bed.settings(root or self.bed.new_root(), mode)
            del settings["writer_memory_bytes"], settings["min_task_bytes"]
            request |= {"settings": settings, "catalog": str(self.bed.catalog), "options": _PLAN}
            request |= {"run_id": run_id, "root_run_id": run_id}
        driver.ask(request)
        return driver

    def _finish(self, mode: str, driver: DriverProcess) -> None:
        """Wait for the rows.

        Raises:
            RuntimeError: They are wrong, or there are none.
        """
        deadline = time.monotonic() + _DEADLINE_SECONDS
        while time.monotonic() < deadline:
            event = driver.next_event(1.0)
            if event is not None and event["event"] == "ended":
                if event["ok"] and event["rows"] == self.bed.expected[self.query]:
                    return
                raise RuntimeError(f"{_NAMES[mode]}: {event}")
        raise RuntimeError(f"{_NAMES[mode]} does not end")


def compare(bed: Testbed, query: str, killed: Iterable[int], repeat: int) -> dict[str, Any]:
    """All times of both, in seconds, by name."""
    found: dict[str, Any] = {}
    for mode, name in _NAMES.items():
        run = Comparison(bed, query)
        times = {"calm": run.calm(mode, repeat)}
        for count in killed:
            times[f"{count} of {bed.workers} workers killed"] = run.workers_killed(mode, count)
        times["again after the driver was killed at 80 %"] = run.driver_killed(mode)
        times["again from the beginning"] = run.started_again(mode)
        bed.end_driver(mode)
        found[name] = {what: round(seconds, 2) for what, seconds in times.items()}
    return found


@click.command(context_settings={"show_default": True})
@click.option("--scale-factor", default=1.0, help="Of the TPC-H tables.")
@click.option("--workers", default=4)
@click.option("--query", default="q21")
@click.option("--repeat", default=2, help="Calm runs; the best counts.")
@json_option
@storage_option
def main(
    scale_factor: float,
    workers: int,
    query: str,
    repeat: int,
    json_path: Path | None,
    storage: Path,
) -> None:
    """Measure what faults cost, and write it as JSON."""
    storage.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory(prefix="bench-resume-", dir=storage.resolve()) as place,
        Testbed(Path(place), scale_factor, workers=workers, parts=2 * workers) as bed,
    ):
        seconds = compare(bed, query, range(1, workers), repeat)
    rows = [["seconds", *seconds]]
    rows += [
        [what, *(f"{found[what]:.1f}" for found in seconds.values())]
        for what in next(iter(seconds.values()))
    ]
    click.echo(table_text(rows))
    found = document(
        "cluster_resume", scale_factor=scale_factor, workers=workers, query=query, seconds=seconds
    )
    click.echo(f"Written to {write_document(found, json_path)}")


if __name__ == "__main__":
    main()
