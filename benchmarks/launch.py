"""From "launch" to "finished" for a small query: `python -m benchmarks.launch`.

A query of a few stages reads a table of two files in a temporary folder. It prints the seconds of
each run, through the launcher of a real `stagecoach ui` (GraphQL, warm Spark Connect
server), and of the second query of a warm session of the Python API. Where the time goes is read
from the run's own events. Aims: < 5 s through the launcher, of which < 1 s is ours; < 1 s in a warm
session.
"""

from __future__ import annotations

import itertools
import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.report import document, json_option, write_document

AIM_SECONDS = 5.0
AIM_WARM_SECONDS = 1.0
# A value of the parameter that no run has had before, in this UI or another: nothing is reused.
_values = itertools.count()
_SQL = "SELECT shop, sum(amount) AS total FROM sales WHERE amount > :least GROUP BY shop"
_HEADER = "/* parameters: {least: {type: int}} */\n"
_LOCATION = """\
from pathlib import Path

from stagecoach.assets import build_definitions

HERE = Path(__file__).parent
defs = build_definitions(queries=HERE / "queries", catalog=HERE / "catalog.yaml")
"""
_LAUNCH = """
mutation($location: String!, $tags: [ExecutionTag!]!) {
  launchRun(executionParams: {
    selector: {repositoryLocationName: $location, repositoryName: "__repository__",
               jobName: "run_small"},
    executionMetadata: {tags: $tags}, runConfigData: {}})
  { __typename ... on LaunchRunSuccess { run { runId } } ... on PythonError { message } }
}"""
_STATUS = """
query($id: ID!) { runOrError(runId: $id) { ... on Run {
  status creationTime startTime endTime
  stepStats { stepKey startTime endTime }
  stats { ... on RunStatsSnapshot { enqueuedTime launchTime startTime endTime } } } } }"""
_LOGS = """
query($id: ID!) { logsForRun(runId: $id) { ... on EventConnection { events {
  ... on MessageEvent { level message }
  ... on ErrorEvent { error { message cause { message } } } } } } }"""
_LOCATIONS = (
    "{ repositoriesOrError { ... on RepositoryConnection { nodes { location { name } } } } }"
)


def make_project(folder: Path) -> None:
    """A table of two files, its catalog, a query and a code location."""
    (folder / "sales").mkdir(parents=True)
    for part in range(2):
        rows = {"shop": [k % 7 for k in range(1000)], "amount": list(range(1000))}
        pq.write_table(pa.table(rows), folder / "sales" / f"{part}.parquet")
    (folder / "queries").mkdir()
    (folder / "queries" / "small.sql").write_text(_HEADER + _SQL)
    (folder / "catalog.yaml").write_text("tables: {sales: {location: sales}}")
    (folder / "launch_location.py").write_text(_LOCATION)


class Ui:
    """A `stagecoach ui` that runs, by its GraphQL."""

    def __init__(self, port: int, location: str = "launch_location") -> None:
        self._url = f"http://127.0.0.1:{port}/graphql"
        self._location = location

    def ask(self, query: str, **variables: Any) -> Any:
        """The answer's `data`."""
        body = json.dumps({"query": query, "variables": variables}).encode()
        request = urllib.request.Request(self._url, body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as response:
            return json.load(response)["data"]

    def is_ready(self) -> bool:
        """Whether the code location is loaded."""
        try:
            nodes = self.ask(_LOCATIONS)["repositoriesOrError"].get("nodes", [])
        except (OSError, urllib.error.URLError, ValueError):
            return False
        return any(n["location"]["name"] == self._location for n in nodes)

    def launch(self, tags: dict[str, str]) -> str:
        """Launch the small query; return the run's id."""
        given = [{"key": k, "value": v} for k, v in tags.items()]
        answer = self.ask(_LAUNCH, location=self._location, tags=given)["launchRun"]
        if "run" not in answer:
            raise click.ClickException(f"the run was not launched: {answer}")
        return str(answer["run"]["runId"])

    def finished(self, run_id: str, seconds: float = 120) -> dict[str, Any]:
        """The run when it has ended."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            run: dict[str, Any] = self.ask(_STATUS, id=run_id)["runOrError"]
            if run["status"] in ("SUCCESS", "FAILURE", "CANCELED"):
                return run
            time.sleep(0.03)
        raise click.ClickException(f"run {run_id} did not end in {seconds} s")

    def errors(self, run_id: str) -> str:
        """What the run's events tell of errors."""
        events = self.ask(_LOGS, id=run_id)["logsForRun"].get("events", [])
        return "\n".join(json.dumps(e) for e in events if e.get("error") or e["level"] == "ERROR")


@contextmanager
def running_ui(folder: Path, *options: str) -> Iterator[tuple[Ui, Path]]:
    """`stagecoach ui` over the project; yields it and its log, and ends it."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    home, log = folder / "home", folder / "ui.log"
    environment = {k: v for k, v in os.environ.items() if not k.startswith("STAGECOACH_")}
    environment["DAGSTER_HOME"] = str(home)
    root = str(Path(__file__).resolve().parents[1])
    environment["PYTHONPATH"] = os.pathsep.join([str(folder), root])
    command = [
        sys.executable,
        "-m",
        "stagecoach.commands.main",
        "ui",
        "--module",
        "launch_location",
    ]
    with open(log, "wb") as output:
        process = subprocess.Popen(
            [*command, "--port", str(port), "--storage", str(folder / "store"), *options],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    ui = Ui(port)
    try:
        deadline = time.monotonic() + 120
        while not ui.is_ready():
            if process.poll() is not None or time.monotonic() > deadline:
                raise click.ClickException(f"the UI did not come up:\n{log.read_text()[-3000:]}")
            time.sleep(0.2)
        yield ui, home
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(30)


def through_ui(folder: Path, repeat: int, *options: str) -> list[dict[str, float]]:
    """Runs through the launcher, each of which computes all its stages."""
    with running_ui(folder, *options) as (ui, home):
        spark_log = home / "spark" / "connect-server.log"
        deadline = time.monotonic() + 120
        while "--no-warm" not in options and "warm-up ended" not in _text(spark_log):
            if time.monotonic() > deadline:
                raise click.ClickException(f"no warm Spark:\n{_text(spark_log)[-3000:]}")
            time.sleep(0.2)
        runs = []
        for _ in range(repeat):
            runs.append(_one_run(ui, next(_values)))
            click.echo(f"{runs[-1]['total']:6.2f} s {json.dumps(runs[-1])}", err=True)
        return runs


def _one_run(ui: Ui, number: int) -> dict[str, float]:
    begun = time.time()
    run_id = ui.launch({"stagecoach/parameter/least": str(number)})
    run = ui.finished(run_id)
    ended = time.time()
    if run["status"] != "SUCCESS":
        raise click.ClickException(f"run {run_id} ended with {run['status']}:\n{ui.errors(run_id)}")
    stats = run["stats"]
    steps = [(s["startTime"], s["endTime"]) for s in run["stepStats"]]
    first, last = min(s for s, _ in steps), max(e for _, e in steps)
    return {
        "total": ended - begun,
        "queued": stats["launchTime"] - begun,
        "process": stats["startTime"] - stats["launchTime"],
        "before_steps": first - stats["startTime"],
        "steps": last - first,
        "end": stats["endTime"] - last,
    }


def warm_session(folder: Path, repeat: int) -> list[float]:
    """Seconds of queries after the first in one session of the Python API, nothing reused."""
    from stagecoach.api.session import connect

    found = []
    with connect(folder / "catalog.yaml", folder / "api") as session:
        for number in range(repeat + 1):
            begun = time.perf_counter()
            session.query(_SQL, {"least": 100 + number}, name="small").to_arrow()
            found.append(time.perf_counter() - begun)
    return found[1:]


def _text(path: Path) -> str:
    return path.read_text(errors="replace") if path.exists() else ""


@click.command(context_settings={"show_default": True})
@click.option("--repeat", type=click.IntRange(min=1), default=5, help="Runs; the median counts.")
@click.option("--cold/--no-cold", default=True, help="Also one run whose process starts Spark.")
@json_option
def main(repeat: int, cold: bool, json_path: Path | None) -> None:
    """Print and keep what lies between the launch and the end of a small query."""
    found = document("launch", aims_seconds={"ui": AIM_SECONDS, "warm_session": AIM_WARM_SECONDS})
    with tempfile.TemporaryDirectory(prefix="stagecoach-launch-") as name:
        folder = Path(name)
        make_project(folder)
        runs = through_ui(folder, repeat + 1)
        found["ui_first_run"], found["ui_runs"] = runs[0], runs[1:]
        found["ui_median"] = {
            part: statistics.median(run[part] for run in runs[1:]) for part in runs[0]
        }
        if cold:
            found["ui_no_warm"] = through_ui(folder, 1, "--no-warm")[0]
        found["warm_session_runs"] = warm_session(folder, repeat)
    found["warm_session_median"] = statistics.median(found["warm_session_runs"])
    for part, seconds in found["ui_median"].items():
        click.echo(f"through the UI  {part:13} {seconds:6.2f} s")
    click.echo(f"warm session    total         {found['warm_session_median']:6.2f} s")
    click.echo(f"\nWritten to {write_document(found, json_path)}")


if __name__ == "__main__":
    main()
