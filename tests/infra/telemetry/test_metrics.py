"""Metrics: what is counted, what many short processes come to, and that off costs nothing."""

from __future__ import annotations

import http.server
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from stagecoach.infra.telemetry.metrics import (
    FOLDER_VARIABLE,
    MAX_NAMES,
    MetricsFolder,
    StageMetrics,
    StageOutcome,
    metrics_of,
)

COUNT = """
import sys
from stagecoach.infra.telemetry.metrics import StageOutcome, metrics_of
metrics = metrics_of("")
for query in sys.argv[1:]:
    metrics.stage(StageOutcome(query=query, engine="duckdb", outcome="computed", seconds=0.3,
                               rows=10, bytes_read=7, bytes_written=5))
metrics.published("t")
"""


def computed(query: str, **more: Any) -> StageOutcome:
    return StageOutcome(query=query, engine="duckdb", outcome="computed", **more)


def sample(metrics: StageMetrics, name: str, **labels: str) -> float | None:
    return metrics.registry.get_sample_value(f"stagecoach_{name}", labels)


def count_in_a_process(folder: Path, *queries: str) -> None:
    environment = {**os.environ, FOLDER_VARIABLE: str(folder)}
    subprocess.run([sys.executable, "-c", COUNT, *queries], check=True, env=environment)


def values_of(folder: MetricsFolder) -> dict[str, float]:
    registry = CollectorRegistry()
    registry.register(folder)
    lines = generate_latest(registry).decode().splitlines()
    pairs = (line.rsplit(" ", 1) for line in lines if line and not line.startswith("#"))
    return {name: float(value) for name, value in pairs}


def test_stages_are_counted_by_what_became_of_them() -> None:
    metrics = StageMetrics()
    metrics.stage(computed("q", seconds=0.3, rows=10, bytes_read=7, fell_back=True))
    metrics.stage(computed("q", rows=5, retried=True))
    reused = StageOutcome(
        query="q", engine="duckdb", outcome="reused", saved_bytes=9, saved_seconds=2.5
    )
    metrics.stage(reused)
    stages = {"query": "q", "engine": "duckdb"}
    assert sample(metrics, "stages_total", **stages, outcome="computed") == 2
    assert sample(metrics, "stages_total", **stages, outcome="reused") == 1
    values = {"rows": 15, "read_bytes": 7, "saved_bytes": 9, "saved_seconds": 2.5}
    for name, value in {**values, "fallbacks": 1, "retries": 1}.items():
        assert sample(metrics, f"{name}_total", query="q") == value, name
    labels = {"engine": "duckdb", "outcome": "computed"}
    assert sample(metrics, "stage_seconds_count", **labels) == 2


def test_the_number_of_series_is_bounded() -> None:
    metrics = StageMetrics()
    for number in range(MAX_NAMES + 10):
        metrics.stage(computed(f"q{number}", rows=1))
    assert sample(metrics, "rows_total", query="other") == 10
    metrics.stage(computed("q0", rows=1))
    assert sample(metrics, "rows_total", query="q0") == 2


def test_the_sum_of_processes_that_have_ended_is_kept_in_few_files(tmp_path: Path) -> None:
    folder = MetricsFolder(tmp_path)
    count_in_a_process(tmp_path, "a", "b")
    count_in_a_process(tmp_path, "a")
    assert len(list(tmp_path.iterdir())) == 4
    for _ in range(2):
        found = values_of(folder)
        assert found['stagecoach_rows_total{query="a"}'] == 20
        assert found['stagecoach_written_bytes_total{query="b"}'] == 5
        assert found['stagecoach_published_versions_total{table="t"}'] == 2
        histogram = 'stagecoach_stage_seconds_bucket{engine="duckdb",le="0.5",outcome="computed"}'
        assert found[histogram] == 3
        assert {p.name for p in tmp_path.iterdir()} == {"counter_ended.db", "histogram_ended.db"}
    count_in_a_process(tmp_path, "a")
    assert values_of(folder)['stagecoach_rows_total{query="a"}'] == 30
    folder.clear()
    assert values_of(folder) == {}


@pytest.fixture
def gateway() -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """A Pushgateway: its address, and the paths and bodies that were pushed."""
    pushed: list[tuple[str, str]] = []

    class Gateway(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            pushed.append((self.path, body))
            self.send_response(202)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Gateway)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"127.0.0.1:{server.server_port}", pushed
    server.shutdown()
    server.server_close()


def test_metrics_are_pushed_by_query(gateway: tuple[str, list[tuple[str, str]]]) -> None:
    address, pushed = gateway
    metrics = StageMetrics()
    metrics.stage(computed("q", rows=3))
    metrics.push(address, "q")
    ((path, body),) = pushed
    assert path.startswith("/metrics/job/stagecoach/")
    assert "/query_group/q" in path
    assert 'stagecoach_rows_total{query="q"} 3.0' in body


def test_a_gateway_that_is_away_fails_no_run(caplog: pytest.LogCaptureFixture) -> None:
    StageMetrics().push("127.0.0.1:1", "q")
    assert "cannot be pushed to 127.0.0.1:1" in caplog.text


def test_off_means_not_even_imported() -> None:
    assert metrics_of("", environment={}) is None
    code = (
        "import sys; from stagecoach.assets.execution.stage_engine import StageEngine; from stagecoach.infra.telemetry.metrics import metrics_of;"
        "assert metrics_of('') is None; assert 'prometheus_client' not in sys.modules;"
        "assert 'pythonjsonlogger' not in sys.modules"
    )
    environment = {k: v for k, v in os.environ.items() if k != FOLDER_VARIABLE}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)
