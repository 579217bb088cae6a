"""The warm Spark Connect server: its token, its code, cancellation, and that it ends with its parent."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import stagecoach
from stagecoach.infra.config.settings import EngineSettings
from stagecoach.infra.errors import ConfigError
from stagecoach.infra.spark.connect_conf import (
    CODE_CONF,
    SLOTS_CONF,
    TOKEN_VARIABLE,
    code_digest,
    properties_file,
    server_conf,
)
from stagecoach.infra.spark.connect_server import WarmServer, await_server
from stagecoach.infra.spark.worker_memory import WORKER_MEMORY
from tests.share import in_test_all

ROOT = Path(stagecoach.__path__[0]).parent
_PARENT = """
import dataclasses, json, sys, time
from pathlib import Path
from stagecoach.infra.spark.connect_server import launch
from stagecoach.infra.config.settings import EngineSettings
server = launch(EngineSettings(master="local[2]"), Path(sys.argv[1]), warm_up=False)
print(json.dumps({**dataclasses.asdict(server), "log": str(server.log)}), flush=True)
time.sleep(600)
"""


def test_what_a_server_is_configured_with() -> None:
    settings = EngineSettings(
        master="local[3]", time_zone="Asia/Tokyo", spark_conf={"spark.driver.memory": "3g"}
    )
    conf = server_conf(settings, 20_123)
    assert conf["spark.connect.grpc.binding.address"] == "127.0.0.1"
    assert conf["spark.connect.grpc.binding.port"] == "20123"
    assert conf["spark.sql.session.timeZone"] == "Asia/Tokyo"
    assert conf["spark.driver.memory"] == "3g"
    assert conf[SLOTS_CONF] == "3"
    assert conf[CODE_CONF] == code_digest()
    assert conf["spark.sql.artifact.isolation.enabled"] == "false"
    assert not [value for name, value in conf.items() if "token" in name.lower()]


def test_the_file_of_a_killed_watcher_goes_with_the_next(tmp_path: Path) -> None:
    program = (
        "import sys, time\nfrom stagecoach.infra.spark.connect_conf import properties_file\n"
        "with properties_file({'k': 'secret'}, sys.argv[1]) as file:\n"
        "    print(file, flush=True)\n    time.sleep(600)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path)],
        stdout=subprocess.PIPE,
        env=environment(),
        text=True,
    ) as watcher:
        assert watcher.stdout is not None
        left = Path(watcher.stdout.readline().strip())
        with properties_file({}, str(tmp_path)):
            assert left.read_text() == "k=secret\n"  # it lives
        watcher.kill()
        watcher.wait()
    assert left.exists()
    with properties_file({"a": "b\\c"}, str(tmp_path)) as file:
        assert [str(path) for path in tmp_path.rglob("*.properties")] == [file]
        assert Path(file).read_text() == "a=b\\\\c\n"
        assert Path(file).parent.stat().st_mode & 0o077 == 0
    assert list(tmp_path.iterdir()) == []


def test_executors_elsewhere_do_not_have_our_code() -> None:
    conf = server_conf(EngineSettings(master="spark://somewhere:7077"), 20_123)
    assert CODE_CONF not in conf
    assert SLOTS_CONF not in conf
    assert conf["spark.sql.artifact.isolation.enabled"] == "true"


def test_a_server_that_is_not_there_is_named() -> None:
    with pytest.raises(ConfigError, match=r"no Spark Connect server answers at 127.0.0.1:9 after"):
        await_server("sc://127.0.0.1:9/;token=secret", 0.1)


@pytest.mark.parametrize("url", ["http://localhost:1", "localhost:15002", "sc://"])
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match="must be sc://host:port"):
        await_server(f"{url};token=secret", 0.1)


def test_the_token_is_not_shown() -> None:
    server = WarmServer(port=20_123, token="secret", log=Path("log"), watcher_pid=1)
    assert "secret" not in repr(server)
    assert "secret" not in server.url
    assert server.environment[TOKEN_VARIABLE] == "secret"


def environment(**more: str) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("STAGECOACH_", "SPARK_"))}
    return {
        **kept,
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(Path(__file__).parents[3])]),
        **more,
    }


@pytest.fixture(scope="module")
def parent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[int, WarmServer]]:
    """A process that has launched a server, and the server; both are gone afterwards."""
    folder = tmp_path_factory.mktemp("warm")
    process = subprocess.Popen(
        [sys.executable, "-c", _PARENT, str(folder)],
        stdout=subprocess.PIPE,
        env=environment(),
        text=True,
    )
    assert process.stdout is not None
    with process.stdout as output:
        values: dict[str, Any] = json.loads(output.readline())
    server = WarmServer(**{**values, "log": Path(values["log"])})
    try:
        await_server(server.url, 120)
        yield process.pid, server
    finally:
        process.kill()
        process.wait(30)


def processes_with(text: str) -> list[int]:
    """Processes with that text in their arguments."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if text.encode() in (folder / "cmdline").read_bytes():
                found.append(int(folder.name))
        except OSError:
            continue
    return found


def is_gone(pid: int, seconds: float = 60.0) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
        except OSError:
            return True
        if state == "Z":
            return True
        time.sleep(0.1)
    return False


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.timeout(900)
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@in_test_all
def test_a_warm_server_serves_recovers_and_ends(
    parent: tuple[int, WarmServer], tmp_path: Path
) -> None:
    parent_pid, server = parent
    assert processes_with(server.token) == []
    stranger = subprocess.run(
        [sys.executable, "-c", _STRANGER, server.url],
        env=environment(**{TOKEN_VARIABLE: "wrong"}),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert "refused" in stranger.stdout, stranger.stdout + stranger.stderr

    client = subprocess.run(
        [
            sys.executable,
            "-m",
            "tests.infra.connect_client",
            str(tmp_path),
            str(server.watcher_pid),
        ],
        env=environment(**server.environment),
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert client.returncode == 0, client.stderr[-3000:]
    seen = json.loads(client.stdout)
    assert seen["slots"] == 2
    assert seen["threads"] == 2  # one machine, so a task may have both
    assert seen["zone"] == "Asia/Tokyo"
    # Nothing was shipped, and four sessions have the same workers, one for each slot.
    assert {text.split()[1] for text in seen["workers"]} == {
        str(ROOT / "stagecoach/infra/worker/task.py")
    }
    assert {text.split()[2] for text in seen["workers"]} == {WORKER_MEMORY["MIMALLOC_PURGE_DELAY"]}
    assert len(seen["workers"]) == 4
    assert len(set(seen["workers"])) <= 2
    assert "start the UI again" in seen["other_code"]
    assert seen["workers_after"][0] in seen["workers"]

    assert seen["progress"][0] == [0, 2], "while both tasks run"
    assert all(total == 2 for _, total in seen["progress"])
    assert seen["canceled"]["told"]
    assert seen["canceled"]["was_canceled"]
    assert seen["canceled"]["raised"]
    assert seen["canceled"]["again"]
    assert seen["canceled"]["worker_gone_seconds"] < 20
    assert seen["interrupted"]["raised"] == "KeyboardInterrupt"
    assert seen["interrupted"]["seconds"] < 20

    assert seen["restarted"]["first"]
    assert seen["restarted"]["count"] == 3
    assert seen["restarted"]["new"]
    assert server.token not in server.log.read_text()

    (jvm,) = processes_with(f"{server.log.parent}/stagecoach-conf-")
    os.kill(parent_pid, signal.SIGKILL)
    assert is_gone(jvm)
    assert is_gone(server.watcher_pid)
    assert not list(server.log.parent.glob("stagecoach-conf-*"))


_STRANGER = """
import sys
from pyspark.sql import SparkSession
try:
    SparkSession.builder.remote(sys.argv[1]).getOrCreate().range(1).count()
except Exception as error:
    print("refused", type(error).__name__)
"""
