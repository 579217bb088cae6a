"""Metrics and structured logs from end to end: processes that end, and the server beside the UI."""

from __future__ import annotations

import http.client
import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from stagecoach.assets.execution.engine import StageRequest
from stagecoach.assets.execution.observing import Observer
from stagecoach.assets.report.metadata import StageMetadata
from stagecoach.commands.main import cli
from stagecoach.host import metrics_server
from stagecoach.infra.config.settings import EngineSettings
from stagecoach.infra.telemetry.metrics import FOLDER_VARIABLE, MetricsFolder
from stagecoach.web.policy import WebPolicy
from stagecoach.web.serving import BackgroundServer
from tests.assets.fakes import make_graph


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def scrape(port: int) -> str | None:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
            return str(answer.read().decode())
    except (OSError, http.client.HTTPException):  # it may end in the middle of an answer
        return None


@pytest.mark.slow
@pytest.mark.spark
def test_a_query_counts_and_logs_json(tmp_path: Path) -> None:
    pq.write_table(pa.table({"k": [1, 1, 2], "name": ["hunter2"] * 3}), tmp_path / "t.parquet")
    (tmp_path / "catalog.yaml").write_text("tables: {t: {location: t.parquet}}")
    (tmp_path / "q.sql").write_text("SELECT k, count(*) AS n FROM t WHERE name > 'a' GROUP BY k")
    values = tmp_path / "values"
    values.mkdir()
    query = [
        sys.executable,
        "-m",
        "stagecoach.commands.main",
        "--log-format",
        "json",
        "query",
        "q.sql",
    ]
    options = ["--catalog", "catalog.yaml", "--storage", "store", "--master", "local[1]"]
    code = str(Path(__file__).parents[3])
    environment = {**os.environ, FOLDER_VARIABLE: str(values), "PYTHONPATH": code}
    logged = []
    for _ in range(2):
        done = subprocess.run(
            [*query, *options],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        assert "hunter2" not in done.stderr
        lines = [line for line in done.stderr.splitlines() if line.startswith("{")]
        logged += [json.loads(line) for line in lines]
    stages = [line for line in logged if "stage" in line]
    assert {line["query"] for line in stages} == {"q"}
    assert len({line["run"] for line in stages}) == 2
    assert {line["attempt"] for line in stages} == {0}
    assert any("2 rows, reused" in line["message"] for line in stages)

    app = metrics_server.metrics_app(MetricsFolder(values))
    with BackgroundServer(app, WebPolicy(), "127.0.0.1", 0) as server:
        text = scrape(server.port)
    assert text is not None
    computed = 'stagecoach_stages_total{engine="duckdb",outcome="computed",query="q"} 1.0'
    assert computed in text
    assert computed.replace("computed", "reused") in text
    assert 'stagecoach_rows_total{query="q"} 2.0' in text
    assert 'stagecoach_saved_bytes_total{query="q"}' in text


def test_what_becomes_of_a_stage_is_counted() -> None:
    observer = Observer(EngineSettings(metrics_pushgateway="127.0.0.1:1"))
    metrics = observer.metrics
    assert metrics is not None
    graph = make_graph("observed")
    request = StageRequest(graph=graph, stage_id=0, run_id="r", root_run_id="r", attempt=1)
    told = (
        StageMetadata(
            rows=3,
            bytes=9,
            bytes_read=5,
            seconds=0.2,
            engine="spark",
            reused=False,
            fallback_reason="no",
        ),
        StageMetadata(rows=3, bytes=9, reused=True, saved_bytes=14, engine="spark"),
        StageMetadata(deferred="the head does it"),
    )
    for metadata in told:
        with observer.stage(request) as observed:
            observed.append(metadata)
    with pytest.raises(ValueError, match="broken"), observer.stage(request):
        raise ValueError("broken")

    def value(name: str, **labels: str) -> float | None:
        return metrics.registry.get_sample_value(
            f"stagecoach_{name}_total", {"query": "observed", **labels}
        )

    for outcome, engine in (
        ("computed", "spark"),
        ("reused", "spark"),
        ("deferred", "duckdb"),
        ("failed", "duckdb"),
    ):
        assert value("stages", outcome=outcome, engine=engine) == 1, outcome
    expected = {"rows": 3, "read_bytes": 5, "written_bytes": 9, "saved_bytes": 14, "fallbacks": 1}
    for name, count in {**expected, "retries": 4}.items():
        assert value(name) == count, name


def test_the_metrics_server_ends_with_the_process_that_started_it(tmp_path: Path) -> None:
    port = free_port()
    code = (
        "import sys; from pathlib import Path; from stagecoach.host.metrics_server import launch;"
        "from stagecoach.web.policy import WebPolicy;"
        f"print(launch(Path({str(tmp_path)!r}), '127.0.0.1', {port}, WebPolicy()));"
        "sys.stdout.flush();"
        "sys.stdin.read()"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    deadline = time.monotonic() + 120
    while scrape(port) is None:
        assert time.monotonic() < deadline, (tmp_path / "server.log").read_text()
        time.sleep(0.1)
    parent.communicate("", timeout=60)
    deadline = time.monotonic() + 60
    while scrape(port) is not None:
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_the_ui_tells_runs_where_to_count_and_how_to_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environments: list[dict[str, str]] = []
    monkeypatch.setattr(os, "execve", lambda program, command, env: environments.append(env))
    launched: list[tuple[Path, str, int]] = []

    def launch(folder: Path, host: str, port: int, policy: WebPolicy) -> dict[str, str]:
        launched.append((folder, host, port))
        return {FOLDER_VARIABLE: "/values"}

    monkeypatch.setattr(metrics_server, "launch", launch)
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    port, other = free_port(), free_port()
    ui = ["ui", "--no-warm", "--port", str(port), "--metrics-port"]
    same = CliRunner().invoke(cli, [*ui, str(port)])
    assert same.exit_code == 2
    assert "--metrics-port is the port of the UI" in same.output
    done = CliRunner().invoke(cli, ["--log-format", "json", *ui, str(other)])
    assert done.exit_code == 0, done.output
    assert launched == [(tmp_path / "home" / "metrics", "127.0.0.1", other)]
    assert environments[0][FOLDER_VARIABLE] == "/values"
    assert environments[0]["STAGECOACH_LOG_FORMAT"] == "json"
