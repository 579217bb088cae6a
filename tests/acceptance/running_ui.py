"""One `stagecoach ui`, with its GraphQL and warm Spark, for all tests that need one.

Two code locations in one Dagster: the project of `warehouse.py` and, where there is a browser to
look at it, that of the tutorial. What takes a daemon's interval or many runs begins at once, and is
looked at by the tests that come last: they run while this goes on.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from stagecoach.infra.spark.connect_conf import TOKEN_VARIABLE
from stagecoach.infra.spark.connect_server import await_server
from stagecoach.infra.storage.local_store import LocalStore
from tests.acceptance import warehouse
from tests.acceptance.dagster_client import DagsterClient
from tests.acceptance.processes import (
    COMMAND,
    environment,
    free_port,
    kill_group,
    started,
    wait_until,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

REMOTE_VARIABLE = "STAGECOACH_REMOTE"
_START_SECONDS = 300.0
_WORKSPACE = """load_from:
  - python_module:
      module_name: warehouse_location
      working_directory: warehouse
      location_name: warehouse_location
"""
_SHOP = """  - python_file:
      relative_path: shop/pipelines/definitions.py
      working_directory: shop
      location_name: shop
"""


@dataclass(frozen=True, kw_only=True)
class RunningUi:
    """A UI that runs.

    Args:
        url: Its webserver.
        folder: Of the projects, each in a folder of its own.
        spark: Variables with which a process uses its warm Spark.
        dagster: GraphQL of the warehouse.
        begun: Ids of what goes on, by name.
    """

    url: str
    folder: Path
    spark: Mapping[str, str]
    dagster: DagsterClient
    begun: Mapping[str, str]

    @property
    def warehouse(self) -> Path:
        """The project of `warehouse.py`."""
        return self.folder / "warehouse"

    @property
    def shop(self) -> Path:
        """The tutorial's project, if it is there."""
        return self.folder / "shop"

    @property
    def store(self) -> LocalStore:
        """The storage root of both."""
        return LocalStore(str(self.folder / "store"))

    def busy_workers(self) -> set[int]:
        """Python workers of the warm Spark that compute just now."""
        return busy_workers(self.spark[TOKEN_VARIABLE])


@contextlib.contextmanager
def running_ui(folder: Path, *, with_shop: bool) -> Iterator[RunningUi]:
    """Start a UI and what takes a while; end it with its warm Spark."""
    (folder / "warehouse").mkdir()
    warehouse.write_project(folder / "warehouse")
    (folder / "workspace.yaml").write_text(_WORKSPACE + (_SHOP if with_shop else ""))
    if with_shop:
        from docs import ui_pages

        ui_pages.write_project(folder / "shop")
    port, log = free_port(), folder / "ui.log"
    command = [*COMMAND, "ui", "--port", str(port), "--storage", str(folder / "store")]
    variables = environment(
        DAGSTER_HOME=str(folder / "home"),
        STAGECOACH_MASTER="local[2]",
        STAGECOACH_PARALLELISM="2",
        STAGECOACH_MIN_TASK_BYTES="0",
    )
    with started(command, folder, log, variables) as process:
        try:
            dagster = DagsterClient(f"http://127.0.0.1:{port}", warehouse.LOCATION)
            wait_until(
                dagster.is_loaded, process, log, seconds=_START_SECONDS, interval_seconds=0.3
            )
            yield RunningUi(
                url=f"http://127.0.0.1:{port}",
                folder=folder,
                spark=_spark_of(folder / "home"),
                dagster=dagster,
                begun=_begin(dagster),
            )
        finally:
            # Not a kill at once: the watcher of the warm Spark ends it with the UI.
            os.kill(process.pid, signal.SIGINT)
            deadline = time.monotonic() + 20
            while process.poll() is None and time.monotonic() < deadline:
                time.sleep(0.1)
            kill_group(process)


def _begin(dagster: DagsterClient) -> dict[str, str]:
    queries = warehouse.BACKFILLED
    assets = [key for name in queries for key in dagster.asset_keys(name)]
    backfill = dagster.backfill(assets, [str(day) for day in warehouse.DAYS])
    dagster.start_schedule(warehouse.SCHEDULE)
    dagster.start_sensor(warehouse.SENSOR)
    return {"backfill": backfill}


@contextlib.contextmanager
def plain_spark(ui: RunningUi) -> Iterator[SparkSession]:
    """A session of the warm Spark, for answers to compare with."""
    from pyspark.sql import SparkSession

    url = ui.spark[REMOTE_VARIABLE]
    await_server(url, _START_SECONDS)
    os.environ[TOKEN_VARIABLE] = ui.spark[TOKEN_VARIABLE]
    session = SparkSession.builder.remote(url).create()
    try:
        yield session
    finally:
        session.stop()
        del os.environ[TOKEN_VARIABLE]


def _spark_of(home: Path) -> Mapping[str, str]:
    """How the UI's processes reach its warm Spark, from the environment of one of them."""
    ours = f"DAGSTER_HOME={home}".encode()
    names = (TOKEN_VARIABLE, REMOTE_VARIABLE)
    for process in Path("/proc").glob("[0-9]*"):
        try:
            variables = (process / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        pairs = dict(text.decode(errors="replace").partition("=")[::2] for text in variables)
        if ours in variables and all(name in pairs for name in names):
            return {name: pairs[name] for name in names}
    raise AssertionError("no process of the UI has the address of its warm Spark")


def busy_workers(token: str) -> set[int]:
    """Python workers of the Spark with that token that compute just now."""
    wanted = f"{TOKEN_VARIABLE}={token}".encode()

    def ticks() -> dict[int, int]:
        found: dict[int, int] = {}
        for process in Path("/proc").glob("[0-9]*"):
            try:
                if b"pyspark.daemon" not in (process / "cmdline").read_bytes():
                    continue
                if wanted in (process / "environ").read_bytes().split(b"\0"):
                    fields = (process / "stat").read_text().rsplit(")", 1)[1].split()
                    found[int(process.name)] = int(fields[11])
            except OSError:
                continue
        return found

    before = ticks()
    time.sleep(0.4)
    after = ticks()
    return {pid for pid, count in before.items() if after.get(pid, 0) - count >= 3}
