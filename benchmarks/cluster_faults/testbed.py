"""A cluster with all that faults happen to: workers, their networks and disks, servers, drivers.

Each worker reaches the storage by a proxy of its own, and a driver directly. Driver and executors
have their own credentials, by variables. `settle` makes all of it whole again after a fault.
"""

from __future__ import annotations

import signal
import sys
import time
import uuid
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.cluster.standalone import HOST, StandaloneCluster
from benchmarks.cluster_faults.connect_server import ConnectServer
from benchmarks.cluster_faults.driver_process import DriverProcess
from benchmarks.cluster_faults.queries import expected_rows, queries
from benchmarks.rclone import RcloneServer
from stagecoach import tpch
from stagecoach.infra.storage.object_store import ObjectStore, StorageOptions
from stagecoach.infra.storage.stores import open_store
from tests.fault_proxy import FaultProxy

CLASSIC, CONNECT, PLAIN = "classic", "connect", "plain"
"""Modes of drivers: ours on the cluster, ours on a Connect server, plain Spark on the cluster."""

_DRIVER = "benchmarks.cluster_faults.driver"
_MODULES = {PLAIN: "benchmarks.cluster_faults.plain_driver"}

_BUCKET = "faults"
_KEYS = ("faultskey1", "faultssecret1")
_SETTLE_SECONDS = 90.0

_SPARK_CONF = {
    "spark.executor.cores": "1",
    "spark.executor.memory": "600m",
    # By default an executor that is frozen is missed only after two minutes.
    "spark.network.timeout": "20s",
    "spark.network.timeoutInterval": "5s",
    "spark.executor.heartbeatInterval": "3s",
    "spark.decommission.enabled": "true",
    "spark.driver.host": HOST,
    "spark.driver.bindAddress": HOST,
    "spark.ui.enabled": "false",
}
_WORKER_OPTIONS = "-Dspark.decommission.enabled=true -Dspark.worker.timeout=20"


class Testbed:
    """The cluster; also a context that starts and stops it.

    Args:
        folder: Where everything is kept.
        scale_factor: Of the TPC-H tables.
        workers: How many. Each has one executor with one core for each application.
        parts: Files of each larger table.
    """

    def __init__(
        self, folder: Path, scale_factor: float, *, workers: int = 2, parts: int = 4
    ) -> None:
        self.folder = folder
        self.workers = workers
        self.spark_conf = {"spark.cores.max": str(workers), **_SPARK_CONF}
        self.spill = folder / "spill"
        self.recovery = folder / "recovery"
        self.recovery.mkdir(parents=True)
        self.tables = folder / "s3" / _BUCKET / "tables"
        tpch.generate(self.tables, scale_factor, parts=parts)
        self.queries = queries()
        self.expected = expected_rows(self.tables)
        self.server = RcloneServer(
            folder / "s3", _BUCKET, access_key=_KEYS[0], secret_key=_KEYS[1], detached=True
        )
        self.catalog = folder / "catalog.yaml"
        tpch.write_catalog(self.catalog, f"s3://{_BUCKET}/tables")
        self.proxies: dict[str, FaultProxy] = {}
        self.cluster = StandaloneCluster(
            folder / "cluster",
            workers=workers,
            cores=2,
            memory="2g",
            worker_environment={"SPARK_WORKER_OPTS": _WORKER_OPTIONS},
            master_options=(
                "-Dspark.worker.timeout=20",
                "-Dspark.deploy.recoveryMode=FILESYSTEM",
                f"-Dspark.deploy.recoveryDirectory={self.recovery}",
            ),
        )
        self.connect = ConnectServer(folder / "connect", self.cluster, self.spark_conf)
        self._drivers: dict[str, DriverProcess] = {}
        self._stack = ExitStack()

    def __enter__(self) -> Testbed:
        # So that the cluster ends with this process when that is told to end.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
        with ExitStack() as stack:
            stack.enter_context(self.server)
            for name in self.cluster.worker_names:
                proxy = stack.enter_context(FaultProxy(self.server.url).running())
                self.proxies[name] = proxy
                self.cluster.own_environments[name] = self._variables(proxy.url)
            stack.enter_context(self.cluster)
            stack.callback(self.end_drivers)
            stack.callback(self.connect.kill)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def new_root(self) -> str:
        """An empty storage root."""
        return f"s3://{_BUCKET}/roots/{uuid.uuid4().hex[:12]}"

    def open(self, root: str) -> ObjectStore:
        """A storage root, from this process."""
        return open_store(root, self.server.options())

    def settings(self, root: str, mode: str) -> dict[str, Any]:
        """Settings of a run, as plain data."""
        options = replace(StorageOptions(), timeout_seconds=5.0, retry_seconds=15.0)
        where = {"remote": self.connect.url} if mode == CONNECT else {"master": self.cluster.master}
        return {
            **where,
            "storage_root": root,
            "storage_options": options.to_dict(),
            "spill_dir": str(self.spill),
            "parallelism": self.workers,
            "memory_bytes": 256 << 20,
            "writer_memory_bytes": 64 << 10,  # so that writers spill
            "min_task_bytes": 0,
            "claim_seconds": 5.0,
            "executor_seconds": 25.0,
            "spark_conf": self.spark_conf,
        }

    def driver(self, mode: str) -> DriverProcess:
        """The driver of a mode, started if there is none."""
        found = self._drivers.get(mode)
        if found is not None and found.is_running:
            return found
        if mode == CONNECT:
            self.connect.start()
        log = self.folder / f"driver-{mode}.log"
        variables = {**self._variables(self.server.url), "SPARK_LOCAL_IP": HOST}
        place, module = self.folder / f"driver-{mode}", _MODULES.get(mode, _DRIVER)
        self._drivers[mode] = DriverProcess(module, place, log, variables)
        return self._drivers[mode]

    def end_driver(self, mode: str) -> None:
        """Kill a driver, if there is one."""
        if (found := self._drivers.pop(mode, None)) is not None:
            found.kill()

    def end_drivers(self) -> None:
        """Kill all drivers."""
        for mode in list(self._drivers):
            self.end_driver(mode)

    def app(self, mode: str) -> str | None:
        """The newest application of a mode that the master knows."""
        state = self.cluster.state()
        found = [
            app["id"]
            for app in ([] if state is None else state["activeapps"])
            if (app["name"] == "stagecoach") == (mode == CLASSIC)
        ]
        return max(found, default=None)

    def restart(self, name: str) -> None:
        """Kill a worker if it runs, start it, and wait until it is there."""
        self.cluster.kill(name)
        self.cluster.launch(name)
        self.settle()

    def settle(self) -> bool:
        """Wait until all workers are there and applications have their executors.

        Returns:
            Whether that came in time.
        """
        deadline = time.monotonic() + _SETTLE_SECONDS
        while time.monotonic() < deadline:
            state = self.cluster.state()
            if state is not None and state["aliveworkers"] == self.workers:
                waiting = [app for app in state["activeapps"] if app["cores"] < self.workers]
                if not waiting:
                    return True
            time.sleep(0.2)
        return False

    def _variables(self, endpoint: str) -> dict[str, str]:
        return {
            "AWS_ENDPOINT_URL": endpoint,
            "AWS_ACCESS_KEY_ID": _KEYS[0],
            "AWS_SECRET_ACCESS_KEY": _KEYS[1],
            "AWS_DEFAULT_REGION": "us-east-1",
        }
