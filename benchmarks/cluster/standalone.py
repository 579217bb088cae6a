"""A master and workers of Spark's standalone cluster, each a process with a folder of its own.

A worker has its own home and its own Python environment, whose `python3` is the first on its path.
Its environment has no credentials and nothing else of this process's.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
import urllib.request
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pyspark

from benchmarks.cluster.environment import make_environment
from benchmarks.cluster.sessions import end_sessions
from stagecoach.infra.spark.connect_conf import free_port
from stagecoach.infra.spark.java import ensure_java

_START_SECONDS = 60.0
HOST = "127.0.0.1"


@dataclass(frozen=True)
class Process:
    """A master or a worker.

    Args:
        pid: Of its JVM, which leads a session of its own.
        folder: Its home, its log and its work.
    """

    pid: int
    folder: Path

    @property
    def log(self) -> Path:
        """What it prints."""
        return self.folder / "log"


@dataclass
class StandaloneCluster:
    """A cluster that is started in a folder; also a context that starts and stops it.

    Args:
        folder: Where its processes live.
        workers: How many.
        cores: Of each worker.
        memory: Of each worker, as Spark writes it.
        worker_environment: Further variables of workers, which their executors have as well.
    """

    folder: Path
    workers: int = 2
    cores: int = 1
    memory: str = "1536m"
    worker_environment: Mapping[str, str] = field(default_factory=dict)
    processes: list[Process] = field(default_factory=list)
    port: int = 0
    ui_port: int = 0

    @property
    def master(self) -> str:
        """Its address, as the setting `master` takes it."""
        return f"spark://{HOST}:{self.port}"

    def start(self) -> None:
        """Start all processes and wait until the workers have registered.

        Raises:
            RuntimeError: They do not in time; with the end of their logs.
        """
        self.port, self.ui_port = free_port(), free_port()
        arguments = ["--host", HOST, "--port", str(self.port), "--webui-port", str(self.ui_port)]
        self._launch("master", "org.apache.spark.deploy.master.Master", arguments, {})
        self._wait(self._answers, "the master does not answer")
        for number in range(1, self.workers + 1):
            self._start_worker(f"worker-{number}")
        self._wait(lambda: self._alive() >= self.workers, "the workers do not register")

    def _start_worker(self, name: str) -> None:
        home = self.folder / name
        python = make_environment(home / "python")
        arguments = ["--host", HOST, "--cores", str(self.cores), "--memory", self.memory]
        arguments += ["--webui-port", str(free_port()), "--work-dir", str(home / "work")]
        more = {"PATH": f"{python.parent}:{os.defpath}", **self.worker_environment}
        kind = "org.apache.spark.deploy.worker.Worker"
        self._launch(name, kind, [*arguments, self.master], more)

    def _launch(
        self, name: str, kind: str, arguments: list[str], variables: Mapping[str, str]
    ) -> None:
        folder = self.folder / name
        folder.mkdir(parents=True, exist_ok=True)
        home = Path(pyspark.__file__).parent
        environment = {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": str(folder),
            "JAVA_HOME": str(ensure_java()),
            "SPARK_HOME": str(home),
            "SPARK_LOCAL_IP": HOST,
            "SPARK_MASTER_OPTS": "-Dspark.master.rest.enabled=false",  # it has a fixed port
            **variables,
        }
        command = [str(home / "bin" / "spark-class"), kind, *arguments]
        with open(folder / "log", "wb") as log:
            process = subprocess.Popen(
                command,
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.processes.append(Process(process.pid, folder))
        process.returncode = 0  # it is ended by its number, perhaps by another process

    def _answers(self) -> bool:
        return self._alive() >= 0

    def _alive(self) -> int:
        """Workers that have registered; -1 while the master does not tell."""
        try:
            with urllib.request.urlopen(f"http://{HOST}:{self.ui_port}/json/", timeout=5) as answer:
                return int(json.load(answer)["aliveworkers"])
        except (OSError, ValueError):
            return -1

    def _wait(self, condition: Callable[[], bool], problem: str) -> None:
        deadline = time.monotonic() + _START_SECONDS
        while not condition():
            if time.monotonic() > deadline:
                said = [p.log.read_text(errors="replace")[-1000:] for p in self.processes]
                self.stop()
                raise RuntimeError(f"{problem}:\n" + "\n".join(said))
            time.sleep(0.1)

    def stop(self) -> None:
        """Kill all processes and what they have started, and wait for their end."""
        end_sessions(process.pid for process in self.processes)
        for process in self.processes:
            with suppress(ChildProcessError):  # of another process
                os.waitpid(process.pid, 0)
        self.processes.clear()

    def __enter__(self) -> StandaloneCluster:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
