"""Dagster's own command line and re-execution over assets made from a stage graph."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

from tests.assets import fake_location

ROOT = Path(__file__).resolve().parents[3]

pytestmark = pytest.mark.slow


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "stages.log"
    path.touch()
    monkeypatch.setenv("STAGECOACH_TEST_LOG", str(path))
    return path


@pytest.fixture
def environment(tmp_path: Path, log: Path) -> dict[str, str]:
    home = tmp_path / "home"
    home.mkdir()
    (home / "dagster.yaml").write_text("telemetry: {enabled: false}\n")
    return {**os.environ, "DAGSTER_HOME": str(home), "PYTHONPATH": str(ROOT)}


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "dagster", *arguments, "-m", "tests.assets.fake_location"]


def lines(log: Path, verb: str) -> list[int]:
    return sorted(int(line.split()[1]) for line in log.read_text().splitlines() if verb in line)


def test_materialize_a_selection(environment: dict[str, str], log: Path) -> None:
    done = subprocess.run(
        command("asset", "materialize", "--select", 'key:"sales/stage_2"+'),
        env=environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert lines(log, "end") == [2, 3]
    with dg.DagsterInstance.from_config(environment["DAGSTER_HOME"]) as instance:
        event = instance.get_latest_materialization_event(dg.AssetKey(["sales"]))
        assert event is not None
        assert event.asset_materialization is not None
        assert event.asset_materialization.metadata["stagecoach/rows"].value == 7
        tags = event.asset_materialization.tags or {}
        assert tags["dagster/data_version"] == "fingerprint-3"
        assert tags["dagster/code_version"] == fake_location.make_graph("sales").head.plan_hash


def test_execute_the_job(environment: dict[str, str], log: Path) -> None:
    started = time.monotonic()
    done = subprocess.run(
        command("job", "execute", "-j", "run_sales"),
        env={**environment, "STAGECOACH_TEST_TOGETHER": "0 1"},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "BetaWarning" not in done.stderr
    assert lines(log, "end") == [0, 1, 2, 3]
    # Both leaves started before either ended.
    verbs = [line.split()[0] for line in log.read_text().splitlines()]
    assert verbs[:2] == ["start", "start"]
    assert time.monotonic() - started < 120


def test_an_interrupted_job_cancels_its_stages(environment: dict[str, str], log: Path) -> None:
    process = subprocess.Popen(
        # A shell's background job would have SIGINT ignored; restore it as a terminal has it.
        [
            sys.executable,
            "-c",
            "import os, signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
            "os.execv(sys.argv[1], sys.argv[1:])",
            *command("job", "execute", "-j", "run_sales"),
        ],
        env={**environment, "STAGECOACH_TEST_SECONDS": "300"},
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        deadline = time.monotonic() + 120
        while len(lines(log, "start")) < 2 and time.monotonic() < deadline:
            time.sleep(0.1)
        process.send_signal(signal.SIGTERM)
        interrupted = time.monotonic()
        process.wait(timeout=120)
        assert time.monotonic() - interrupted < 60
    finally:
        process.kill()
        process.wait()
    assert lines(log, "cancel") == [0, 1]
    assert lines(log, "end") == []
    assert process.returncode != 0


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.instance_for_test() as made:
        yield made


def test_reexecution_from_failure(
    log: Path, monkeypatch: pytest.MonkeyPatch, instance: dg.DagsterInstance
) -> None:
    job = dg.reconstructable(fake_location.sales_job)
    tags = {"stagecoach/parameter/day": "2024-01-31"}
    monkeypatch.setenv("STAGECOACH_TEST_FAIL", "1")
    with dg.execute_job(job, instance=instance, tags=tags) as first:
        assert not first.success
    assert lines(log, "end") == [0]
    monkeypatch.delenv("STAGECOACH_TEST_FAIL")
    log.write_text("")
    options = dg.ReexecutionOptions.from_failure(first.run_id, instance)
    with dg.execute_job(job, instance=instance, tags=tags, reexecution_options=options) as second:
        assert second.success
    assert lines(log, "end") == [1, 2, 3]
    roots = {line.split()[2] for line in log.read_text().splitlines() if line.startswith("start")}
    assert roots == {first.run_id}
