"""The guide's example against a real `stagecoach serve`, from its start to its orderly end."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow.flight as fl
import pytest

from stagecoach import tpch
from tests.stagecoach.flight.sql_client import SqlClient

pytestmark = [pytest.mark.slow, pytest.mark.spark]

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "user-guide" / "flight.md"


@dataclass
class Server:
    """A running `stagecoach serve`."""

    process: subprocess.Popen[str]
    uri: str
    health: str
    token: str

    def get(self, path: str) -> tuple[int, str]:
        try:
            with urllib.request.urlopen(f"{self.health}{path}", timeout=30) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("serve")
    tpch.generate(folder / "data" / "tpch", 0.01)
    shutil.copytree(ROOT / "pipelines", folder / "pipelines")
    command = [sys.executable, "-m", "stagecoach", "serve", "--tokens", "tokens.txt"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}

    def start(*options: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*command, *options],
            cwd=folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    token = start("--new-token", "alice").communicate(timeout=120)[0].strip()
    process = start("--port", "0", "--health-port", "0", "--master", "local[2]")
    assert process.stderr is not None
    health = re.search(r"http://\S+:\d+", process.stderr.readline())
    uri = re.search(r"grpc://\S+:\d+", process.stderr.readline())
    assert health is not None
    assert uri is not None
    yield Server(process, uri[0], health[0], token)
    process.kill()
    process.communicate()


def test_the_example_runs(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    text = "\n".join(blocks)
    assert 'connect("grpc://127.0.0.1:31337", ' in text
    header = f'{{"adbc.flight.sql.authorization_header": "Bearer {server.token}"}}'
    text = text.replace('"grpc://127.0.0.1:31337", ', f'"{server.uri}", db_kwargs={header}, ')
    exec(compile(text, str(PAGE), "exec"), {"__name__": "guide"})
    shown = capsys.readouterr().out
    assert re.search(r"MIDDLE EAST +5", shown)
    assert "quantity: decimal128(25, 2)" in shown
    assert "total" in shown


def test_nobody_gets_in_without_a_token(server: Server) -> None:
    for token in (None, "sc_wrong"):
        with SqlClient(server.uri, token) as client:
            for call in (
                lambda client=client: client.info("SELECT 1"),
                lambda client=client: client.action("stagecoach.progress"),
                lambda client=client: list(client.flight.list_actions(client.options())),
            ):
                with pytest.raises(fl.FlightUnauthenticatedError, match="needs a token"):
                    call()


def test_health_metrics_and_the_end(server: Server) -> None:
    assert server.get("/healthz") == (200, "ok\n")
    assert server.get("/readyz") == (200, "ready\n")
    assert server.get("/other")[0] == 404
    with SqlClient(server.uri, server.token) as client:
        sql = "SELECT count(*) AS n FROM nation"
        assert client.query(sql).to_pylist() == [{"n": 25}]
        status, metrics = server.get("/metrics")
        assert status == 200
        assert re.search(r'serve_statements_total\{outcome="finished"\} [1-9]', metrics)
        assert "stagecoach_serve_streams 0.0" in metrics
        # A statement that runs when the signal comes is answered, and no other.
        server.process.send_signal(signal.SIGTERM)
        out, err = server.process.communicate(timeout=100)
    assert server.process.returncode == 0, err
    assert out == ""
    assert re.search(
        rf"statement \S+ of alice: finished after .* \(1 rows.*: {re.escape(sql)}", err
    )
    assert server.token not in err
