"""A Spark Connect server on a standalone cluster, which can be killed and started again."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Mapping
from contextlib import closing, suppress
from pathlib import Path

import pyspark

from benchmarks.cluster.sessions import end_sessions
from benchmarks.cluster.standalone import HOST, StandaloneCluster
from stagecoach.infra.spark.connect_conf import free_port
from stagecoach.infra.spark.java import ensure_java

_START_SECONDS = 90.0


class ConnectServer:
    """The server, always at the same address.

    Args:
        folder: Its home and its log.
        cluster: Where its executors are.
        conf: Spark's configuration.
    """

    def __init__(self, folder: Path, cluster: StandaloneCluster, conf: Mapping[str, str]) -> None:
        self.folder = folder
        self.port = free_port()
        self._cluster = cluster
        self._conf = conf
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Its address, as the setting `remote` takes it."""
        return f"sc://{HOST}:{self.port}"

    @property
    def pid(self) -> int:
        """Of the server, which leads a session of its own.

        Raises:
            RuntimeError: It does not run.
        """
        if self._process is None:
            raise RuntimeError("the Connect server does not run")
        return self._process.pid

    def start(self) -> None:
        """Start it unless it runs, and wait until it listens.

        Raises:
            RuntimeError: It does not in time; with the end of its log.
        """
        if self._process is not None:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        home = Path(pyspark.__file__).parent
        conf = {
            **self._conf,
            "spark.connect.grpc.binding.address": HOST,
            "spark.connect.grpc.binding.port": str(self.port),
        }
        command = [str(home / "bin" / "spark-submit"), "--master", self._cluster.master]
        command += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer"]
        command += [word for name, value in conf.items() for word in ("--conf", f"{name}={value}")]
        environment = {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": str(self.folder),
            "JAVA_HOME": str(ensure_java()),
            "SPARK_LOCAL_IP": HOST,
            "PYSPARK_PYTHON": "python3",
        }
        log = self.folder / "log"
        with open(log, "ab") as output:
            self._process = subprocess.Popen(
                [*command, "spark-internal"],
                cwd=self.folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        deadline = time.monotonic() + _START_SECONDS
        while not self._listens():
            if time.monotonic() > deadline or self._process.poll() is not None:
                self.kill()
                raise RuntimeError(log.read_text(errors="replace")[-2000:])
            time.sleep(0.2)

    def kill(self) -> None:
        """Kill it, if it runs."""
        if self._process is not None:
            end_sessions([self._process.pid])
            self._process.wait()
            self._process = None

    def _listens(self) -> bool:
        with suppress(OSError), closing(socket.create_connection((HOST, self.port), 0.5)):
            return True
        return False
