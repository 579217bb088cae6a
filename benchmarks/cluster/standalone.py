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
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyspark

from benchmarks.cluster.environment import make_environment
from benchmarks.cluster.sessions import end_sessions
from stagecoach.infra.spark.connect_conf import free_port
from stagecoach.infra.spark.java import ensure_java

_START_SECONDS = 60.0
HOST = "127.0.0.1"
MASTER = "master"


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
    def name(self) -> str:
        """`master`, or `worker-` and a number."""
        return self.folder.name

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
        own_environments: The same of single workers, by name.
        prefixes: What a process is started by, such as `unshare --mount`, by its name. It must
            become that process.
        master_options: Options of the master's JVM.
    """

    folder: Path
    workers: int = 2
    cores: int = 1
    memory: str = "1536m"
    worker_environment: Mapping[str, str] = field(default_factory=dict)
    own_environments: dict[str, Mapping[str, str]] = field(default_factory=dict)
    prefixes: dict[str, Sequence[str]] = field(default_factory=dict)
    master_options: Sequence[str] = ()
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
        self.launch(MASTER)
        self._wait(lambda: self.alive() >= 0, "the master does not answer")
        for name in self.worker_names:
            self.launch(name)
        self._wait(lambda: self.alive() >= self.workers, "the workers do not register")

    @property
    def worker_names(self) -> list[str]:
        """Names of its workers."""
        return [f"worker-{number}" for number in range(1, self.workers + 1)]

    def process(self, name: str) -> Process:
        """The process of a name, whether it runs or has been killed."""
        return next(p for p in self.processes if p.name == name)

    def kill(self, name: str) -> None:
        """Kill a process and what it has started, and wait for its end; `launch` starts it anew."""
        killed = self.process(name)
        end_sessions([killed.pid])
        _wait_for(killed)
        self.processes.remove(killed)

    def launch(self, name: str) -> None:
        """Start the master or a worker, and return at once."""
        if name == MASTER:
            self._start_master()
        else:
            self._start_worker(name)

    def state(self) -> dict[str, Any] | None:
        """What the master tells of workers and applications; None while it does not."""
        try:
            with urllib.request.urlopen(f"http://{HOST}:{self.ui_port}/json/", timeout=5) as answer:
                found: dict[str, Any] = json.load(answer)
                return found
        except (OSError, ValueError):
            return None

    def _start_master(self) -> None:
        arguments = ["--host", HOST, "--port", str(self.port), "--webui-port", str(self.ui_port)]
        # Its REST server has a fixed port.
        options = ["-Dspark.master.rest.enabled=false", *self.master_options]
        variables = {"SPARK_MASTER_OPTS": " ".join(options)}
        self._launch(MASTER, "org.apache.spark.deploy.master.Master", arguments, variables)

    def _start_worker(self, name: str) -> None:
        home = self.folder / name
        python = make_environment(home / "python")
        arguments = ["--host", HOST, "--cores", str(self.cores), "--memory", self.memory]
        arguments += ["--webui-port", str(free_port()), "--work-dir", str(home / "work")]
        more = {"PATH": f"{python.parent}:{os.defpath}", **self.worker_environment}
        more |= self.own_environments.get(name, {})
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
            **variables,
        }
        command = [*self.prefixes.get(name, ()), str(home / "bin" / "spark-class"), kind]
        command += arguments
        with open(folder / "log", "ab") as log:
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

    def alive(self) -> int:
        """Workers that have registered; -1 while the master does not tell."""
        state = self.state()
        return -1 if state is None else int(state["aliveworkers"])

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
            _wait_for(process)
        self.processes.clear()

    def __enter__(self) -> StandaloneCluster:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def _wait_for(process: Process) -> None:
    with suppress(ChildProcessError):  # of another process
        os.waitpid(process.pid, 0)
