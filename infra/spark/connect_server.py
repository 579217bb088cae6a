"""A warm Spark Connect server: one JVM that all runs of a UI, and commands beside it, share.

    stagecoach ui ─ exec ─▶ dagster dev            runs ──(address and token in the environment)──┐
         └─▶ watcher (this module as a program) ─▶ JVM ◀──────────────────────────────────────────┤
    stagecoach warm ─▶ watcher ─▶ JVM ◀── stagecoach query, notebooks ──(private file)────────────┘

The watcher starts the JVM again when it dies, and ends it when the server's life is over
(`server_life`): that of `stagecoach ui` ends with the UI, however that ended, that of
`stagecoach warm` after a time without use. The JVM itself dies with the watcher. The server listens
on the loopback address and takes only who has the token. The token is in no argument and no log; it
is in the environment of the server and of the UI's runs, and in the file by which other processes
of the user find the server, which only that user can read (`announcements`). Its Python workers
import our packages from where this process did, so that a client with the same code ships none.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any, TextIO
from urllib.parse import urlsplit

from stagecoach.infra.config.settings import ENVIRONMENT_PREFIX, EngineSettings
from stagecoach.infra.errors import ConfigError, SparkUnavailableError
from stagecoach.infra.host.processes import die_with_parent
from stagecoach.infra.spark.announcements import Announcement, Published
from stagecoach.infra.spark.command_fork import CommandHost
from stagecoach.infra.spark.connect_conf import (
    CODE_CONF,
    TOKEN_VARIABLE,
    free_port,
    package_root,
    properties_file,
    server_conf,
    spark_home,
)
from stagecoach.infra.spark.java import ensure_java
from stagecoach.infra.spark.java_options import set_java_options
from stagecoach.infra.spark.likeness import CLIENT_VARIABLES, digests, likeness
from stagecoach.infra.spark.server_life import Life
from stagecoach.infra.spark.worker_memory import keep_worker_memory

LOG_NAME = "connect-server.log"

_DEFAULT_PORT = 15002
_POLL_SECONDS = 0.3
_END_SECONDS = 8.0
# A server that ends sooner than this has not worked; so often in a row, and it never will.
_HEALTHY_SECONDS = 60.0
_MAX_FAILED_STARTS = 3


@dataclass(frozen=True, kw_only=True)
class WarmServer:
    """How to reach a server that runs, or is about to.

    Args:
        port: On the loopback address.
        token: What a client must show.
        log: What the JVM and the watcher say.
        watcher_pid: Process that keeps the server up.
    """

    port: int
    token: str = field(repr=False)
    log: Path
    watcher_pid: int

    @property
    def url(self) -> str:
        """The address, without the token."""
        # The name and not 127.0.0.1: only to `localhost` does pyspark send a token without TLS.
        return f"sc://localhost:{self.port}"

    @property
    def environment(self) -> dict[str, str]:
        """Variables with which another process uses the server."""
        return {f"{ENVIRONMENT_PREFIX}REMOTE": self.url, TOKEN_VARIABLE: self.token}


def launch(
    settings: EngineSettings,
    folder: Path,
    *,
    warm_up: bool = True,
    announced: bool = False,
    ttl_seconds: float | None = None,
) -> WarmServer:
    """Start a server in the background and return at once.

    Args:
        settings: Its master and Spark configuration.
        folder: Where its log goes; made if it is missing.
        warm_up: Whether it runs a small job when it is up, so that the first run need not.
        announced: Whether other processes of this user find it once it is warm.
        ttl_seconds: How long it stays without use; None if it ends with this process.
    """
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / LOG_NAME
    if log.exists():
        log.replace(log.with_suffix(".log.1"))
    port, token = free_port(), secrets.token_urlsafe(32)
    order = {
        "port": port,
        "token": token,
        "parent": os.getpid(),
        "ttl_seconds": ttl_seconds,
        "log": str(log),
        "python_path": os.environ.get("PYTHONPATH", ""),
        "digests": digests(likeness(settings, os.environ), token) if announced else None,
        "folder": str(folder),
        "conf": server_conf(settings, port),
        "warm_up": warm_up,
    }
    with open(log, "ab") as output:
        watcher = subprocess.Popen(
            [sys.executable, "-P", "-m", "stagecoach.infra.spark.connect_server"],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, "PYTHONPATH": _code_path()},
            # Ctrl-C in the terminal is for the UI: its runs still need the server to be cancelled.
            start_new_session=True,
        )
    assert watcher.stdin is not None
    with watcher.stdin as stdin:
        stdin.write(json.dumps(order).encode())
    watcher.returncode = 0  # it outlives this object on purpose: no warning about that
    return WarmServer(port=port, token=token, log=log, watcher_pid=watcher.pid)


def await_server(url: str, seconds: float) -> None:
    """Return when somebody listens at a Spark Connect URL.

    Args:
        url: `sc://host[:port][/;…]`.
        seconds: How long to wait.

    Raises:
        SparkUnavailableError: Nobody does.
    """
    host, port = _address(url)
    deadline = time.monotonic() + seconds
    while not _listens(host, port):
        if time.monotonic() >= deadline:
            raise SparkUnavailableError(
                f"no Spark Connect server answers at {host}:{port} after {seconds:.0f} s; if it is "
                f"that of `stagecoach ui`, see {LOG_NAME} in the folder `spark` of $DAGSTER_HOME, "
                "or start the UI with --no-warm; otherwise start the server or correct `remote`"
            )
        time.sleep(0.05)


def is_up(url: str) -> bool:
    """Whether somebody listens at a Spark Connect URL now."""
    return _listens(*_address(url))


# ------------------------------------------------------------------ the watcher, a process


class _Watcher:
    """Keeps one JVM up until its life is over or it is told to end."""

    def __init__(self, order: Mapping[str, Any], say: TextIO) -> None:
        self._order = order
        # Before a Java is chosen, and set there.
        self._given = dict(os.environ)
        self._port = int(order["port"])
        self._token = str(order["token"])
        self._life = Life(int(order["parent"]), order["ttl_seconds"])
        self._folder = str(order["folder"])
        self._conf: Mapping[str, str] = order["conf"]
        self._warm_up = bool(order["warm_up"])
        # Whether its executors are on this machine.
        self._is_here = CODE_CONF in self._conf
        self._say = say
        self._host: CommandHost | None = None
        self._is_warm = threading.Event()
        self._ended = threading.Event()

    def end(self, signal_number: int, frame: FrameType | None) -> None:
        """Signal handler."""
        self._ended.set()

    def run(self) -> int:
        """Start the server, and again whenever it ends; return the exit code."""
        try:
            if self._life.is_starting:
                # While the JVM starts, which takes longer. A UI has more urgent things to start.
                self._start_host()
            code = self._run_servers()
        finally:
            self._life.end()
            if self._host is not None:
                self._host.end()
        if code == 0 and self._order["ttl_seconds"] is not None:
            # Its own folder, with a log that nobody will ask for.
            shutil.rmtree(self._folder, ignore_errors=True)
        return code

    def _run_servers(self) -> int:
        failed = 0
        while not self._is_over():
            started = time.monotonic()
            with self._server() as process:
                self._wait(process)
                code = process.poll()
            if self._is_over():
                break
            failed = failed + 1 if time.monotonic() - started < _HEALTHY_SECONDS else 0
            self._tell(f"the Spark Connect server ended with {code}")
            if self._life.is_starting:
                return 1  # which tells `stagecoach warm`
            if failed >= _MAX_FAILED_STARTS:
                self._tell(f"it ended {failed} times soon after its start; not started again")
                return 1
            self._ended.wait(failed)
        self._tell("the Spark Connect server is ended")
        return 1 if self._life.is_starting else 0

    def _is_over(self) -> bool:
        return self._ended.is_set() or self._life.is_over()

    def _wait(self, process: subprocess.Popen[bytes]) -> None:
        warm_up = threading.Thread(target=self._first_job, args=(process,), daemon=True)
        if self._warm_up:
            warm_up.start()
        while process.poll() is None and not self._is_over():
            if self._is_warm.is_set() and not self._life.is_announced:
                self._announce()
            self._ended.wait(_POLL_SECONDS)

    @contextlib.contextmanager
    def _server(self) -> Iterator[subprocess.Popen[bytes]]:
        home, spark = ensure_java(), Path(spark_home())
        environment = self._environment()
        set_java_options(environment, home)
        with properties_file(self._conf, self._folder) as conf:
            command = [
                str(spark / "bin" / "spark-submit"),
                *("--properties-file", conf, "--load-spark-defaults"),
                str(Path(__file__).with_name("connect_app.py")),
            ]
            self._tell(f"starting Spark Connect on 127.0.0.1:{self._port}")
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                cwd=self._folder,
                env=environment,
                start_new_session=True,
                preexec_fn=die_with_parent,
            )
            try:
                yield process
            finally:
                _end(process)

    def _environment(self) -> dict[str, str]:
        # Nothing of a Connect client: spark-submit itself would look for a server.
        kept = {
            name: value
            for name, value in os.environ.items()
            if name not in CLIENT_VARIABLES and not name.startswith(ENVIRONMENT_PREFIX)
        }
        kept.setdefault("PYSPARK_PYTHON", sys.executable)
        if self._is_here:
            kept.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
            keep_worker_memory(kept)
        return {**kept, TOKEN_VARIABLE: self._token}

    def _first_job(self, server: subprocess.Popen[bytes]) -> None:
        """Run something small when the server is up: JVM and Python workers load their code."""
        while not _listens("127.0.0.1", self._port):
            if server.poll() is not None or self._is_over():
                return
            time.sleep(0.2)
        self._tell("the Spark Connect server is up")
        remote = {f"{ENVIRONMENT_PREFIX}REMOTE": f"sc://localhost:{self._port}"}
        code = self._program(
            "stagecoach.infra.runtime.stages.warm_up", {**self._environment(), **remote}
        )
        self._tell(f"warm-up ended with {code}")
        if code == 0:
            self._is_warm.set()
        elif self._life.is_starting:
            self._ended.set()
        if self._is_here:
            # For the next start, and only if it is missing: nobody waits for it.
            code = self._program(
                "stagecoach.infra.spark.class_data", self._environment(), nice=True
            )
            self._tell(f"class data ended with {code}")

    def _start_host(self) -> None:
        # By the main thread: the kernel ends the host with the thread that has started it. On other
        # systems a fork of a process that has imported so much is not safe.
        if sys.platform == "linux":
            self._host = CommandHost(self._given, self._order["python_path"])

    def _announce(self) -> None:
        """Let other processes of this user find the server, if they shall."""
        order = self._order
        if order["digests"] is None:
            self._is_warm.clear()
            return
        if self._host is None:
            self._start_host()
        host = self._host
        announcement = Announcement(
            port=self._port,
            token=self._token,
            owner="ui" if order["ttl_seconds"] is None else "warm",
            watcher_pid=os.getpid(),
            started=time.time(),
            ttl_seconds=order["ttl_seconds"],
            log=order["log"],
            host=host.path if host is not None and host.is_up() else "",
            digests=order["digests"],
        )
        try:
            self._life.announce(Published(announcement))
        except ConfigError as error:
            self._tell(str(error))
            self._is_warm.clear()
            return
        self._tell("other processes of this user can find the server")

    @staticmethod
    def _program(module: str, environment: Mapping[str, str], *, nice: bool = False) -> int:
        """Run a program of ours, which ends with this process; return its exit code."""

        def prepare() -> None:
            die_with_parent()
            if nice:
                os.nice(19)

        command = [sys.executable, "-P", "-m", module]
        return subprocess.run(command, env=environment, check=False, preexec_fn=prepare).returncode

    def _tell(self, text: str) -> None:
        moment = time.strftime("%Y-%m-%d %H:%M:%S")
        self._say.write(f"{moment} stagecoach: {text}\n")
        self._say.flush()


def _end(process: subprocess.Popen[bytes]) -> None:
    """SIGTERM, then SIGKILL, to the JVM; its Python workers end when it does."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(_END_SECONDS)


def _code_path() -> str:
    folders = [str(package_root().parent)]
    present = [f for f in os.environ.get("PYTHONPATH", "").split(os.pathsep) if f]
    # The server runs in another folder than this process.
    return os.pathsep.join(dict.fromkeys([*folders, *map(os.path.abspath, present)]))


def _address(url: str) -> tuple[str, int]:
    parts = urlsplit(url.split(";", 1)[0])
    if parts.scheme != "sc" or not parts.hostname:
        raise ConfigError(f"setting remote is '{url.split(';', 1)[0]}'; it must be sc://host:port")
    return parts.hostname, parts.port or _DEFAULT_PORT


def _listens(host: str, port: int) -> bool:
    try:
        socket.create_connection((host, port), timeout=1.0).close()
    except OSError:
        return False
    return True


def main() -> int:
    """Run as the watcher: an order as JSON on standard input, log lines on standard error."""
    watcher = _Watcher(json.load(sys.stdin), sys.stderr)
    signal.signal(signal.SIGTERM, watcher.end)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    return watcher.run()


if __name__ == "__main__":
    sys.exit(main())
