"""A real server of `stagecoach warm`: two processes use it, and one goes on when it is killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import stagecoach
from stagecoach.infra.spark.announcements import machine
from tests.private_cache import private_cache

ROOT = Path(stagecoach.__path__[0]).parent
SQL = "SELECT k % 3 AS r, count(*) AS n, upper('x') AS u FROM t GROUP BY 1 ORDER BY 1"
ROWS = "r,n,u\n0,4,X\n1,3,X\n2,3,X\n"
MASTER = "local[2]"
_CLIENT = f"""
import logging, sys
import stagecoach
from stagecoach.infra.spark.session import get_session
from stagecoach.infra.spark.session_kinds import is_connect
logging.basicConfig(level=logging.WARNING)
settings = {{"warm": "always", "master": {MASTER!r}}}
with stagecoach.connect("catalog.yaml", "store-of-client", settings=settings) as session:
    def ask():
        rows = session.query({SQL!r}, fresh=True).to_arrow().to_pylist()
        print(rows, is_connect(get_session(session.settings)), flush=True)
    ask()
    sys.stdin.readline()
    ask()
    sys.stdin.readline()
    ask()
"""


@pytest.fixture
def environment(tmp_path: Path) -> Mapping[str, str]:
    """Variables of commands whose user has no warm Spark yet."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("STAGECOACH_", "SPARK_R"))}
    places = {"XDG_CACHE_HOME": str(private_cache(tmp_path)), "HOME": str(tmp_path)}
    return {**kept, **places, "PYTHONPATH": str(ROOT)}


@pytest.fixture
def server(tmp_path: Path, environment: Mapping[str, str]) -> Iterator[Path]:
    """The announcement of a server that was started."""
    (tmp_path / "t").mkdir()
    pq.write_table(pa.table({"k": list(range(10))}), tmp_path / "t" / "0.parquet")
    (tmp_path / "catalog.yaml").write_text("tables: {t: {location: t}}\n")
    (tmp_path / "q.sql").write_text(SQL)
    started = command(tmp_path, environment, "warm", "--ttl", "1m", "--master", MASTER)
    assert started.returncode == 0, started.stderr
    assert "ends after 1 m without use" in started.stderr
    try:
        (found,) = (tmp_path / "cache" / "stagecoach" / "warm").glob(f"{machine()}-*.json")
        yield found
    finally:
        ended = command(tmp_path, environment, "warm", "--stop")
        assert ended.returncode == 0, ended.stderr


def command(
    folder: Path, environment: Mapping[str, str], *arguments: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "stagecoach", *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def answer(output: IO[str]) -> tuple[list[dict[str, object]], bool]:
    rows, _, used = output.readline().strip().rpartition(" ")
    return json.loads(rows.replace("'", '"')), used == "True"


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.skipif(sys.platform != "linux", reason="ends the JVM with its watcher by prctl")
def test_processes_share_a_warm_spark_and_go_on_without_it(
    tmp_path: Path, environment: Mapping[str, str], server: Path
) -> None:
    rows = [{"r": r, "n": n, "u": "X"} for r, n in ((0, 4), (1, 3), (2, 3))]
    watcher_pid = json.loads(server.read_text())["watcher_pid"]
    token = json.loads(server.read_text())["token"]
    with subprocess.Popen(
        [sys.executable, "-c", _CLIENT],
        cwd=tmp_path,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as client:
        assert client.stdin is not None
        assert client.stdout is not None
        assert client.stderr is not None
        assert answer(client.stdout) == (rows, True)
        # Another process at the same time, of the command line.
        query = ("query", "q.sql", "--format", "csv", "--catalog", "catalog.yaml", "--debug")
        beside = command(tmp_path, environment, *query, "--master", MASTER, "--storage", "store")
        assert beside.stdout == ROWS, beside.stderr
        assert "using the warm Spark at sc://localhost:" in beside.stderr
        assert token not in beside.stderr
        client.stdin.write("go on\n")
        client.stdin.flush()
        assert answer(client.stdout) == (rows, True)

        elsewhere = command(
            tmp_path, {**environment, "AWS_PROFILE": "x"}, "warm", "--status", "--master", MASTER
        )
        assert "not used here: it has another variable AWS_PROFILE" in elsewhere.stdout

        os.kill(watcher_pid, signal.SIGKILL)  # and with it, the JVM
        client.stdin.write("go on\n")
        client.stdin.flush()
        assert answer(client.stdout) == (rows, False)
        client.stdin.close()
        assert client.wait(60) == 0, client.stderr.read()
    assert not server.exists()
    logs = [path.read_text() for path in server.parent.rglob("*.log")]
    assert [text for text in logs if "is up" in text]
    assert not [text for text in logs if token in text]
