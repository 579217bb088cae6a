"""Commands that are interrupted end at once and leave no process; tests of JVMs are marked slow."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from infra.processes import descendants, send_signal
from tests.acceptance.processes import environment, kill_group, wait_until
from tests.waiting import wait_for

SIGNALS = [(signal.SIGINT, 130), (signal.SIGTERM, 143)]
CANCELLING = "Cancelling…"

# A command that starts a child which ignores SIGTERM, tells its number and never ends.
STUBBORN = """
import subprocess, sys, time
from stagecoach.interrupts import handled

child = [sys.executable, "-c", "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
         "print('ready', flush=True); time.sleep(600)"]
with handled():
    process = subprocess.Popen(child, stdout=subprocess.PIPE, text=True)
    process.stdout.readline()
    print(process.pid, flush=True)
    while True:
        try:
            time.sleep(600)
        except KeyboardInterrupt:
            pass
"""


def start(*arguments: str, folder: Path, log: Path, **more: str) -> subprocess.Popen[bytes]:
    with open(log, "wb") as output:
        return subprocess.Popen(
            [sys.executable, *arguments],
            cwd=folder,
            env=environment(**more),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


@contextmanager
def running(*arguments: str, folder: Path, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    process = start(*arguments, folder=folder, log=log)
    try:
        yield process
    finally:
        kill_group(process)


# ------------------------------------------------------------------ signals


@pytest.mark.parametrize(("number", "code"), SIGNALS)
def test_a_signal_ends_a_command_that_ignores_it_and_its_children(
    tmp_path: Path, number: signal.Signals, code: int
) -> None:
    log = tmp_path / "log"
    with running("-c", STUBBORN, folder=tmp_path, log=log) as process:
        wait_until(lambda: log.read_text().strip().isdigit(), process, log)
        child = int(log.read_text())
        assert child in descendants(process.pid)
        process.send_signal(number)
        assert process.wait(timeout=60) == code
        assert CANCELLING in log.read_text()
        assert "Traceback" not in log.read_text()
        wait_for(lambda: child not in descendants(os.getpid(), [child]))


def test_a_second_signal_ends_a_command_as_well(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with running("-c", STUBBORN, folder=tmp_path, log=log) as process:
        wait_until(lambda: log.read_text().strip().isdigit(), process, log)
        child = int(log.read_text())
        process.send_signal(signal.SIGINT)
        wait_until(lambda: CANCELLING in log.read_text(), process, log)
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=60) == 130
        wait_for(lambda: child not in descendants(os.getpid(), [child]))


def test_a_command_without_a_signal_ends_with_its_own_code(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "stagecoach", "query", "missing.sql"],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 2
    assert "missing.sql" in done.stderr
    assert CANCELLING not in done.stderr


@pytest.mark.parametrize(("number", "code"), SIGNALS)
def test_a_signal_while_modules_are_imported(
    tmp_path: Path, number: signal.Signals, code: int
) -> None:
    log = tmp_path / "log"
    # The command line itself is imported after the handlers are there; this import never ends.
    (tmp_path / "click.py").write_text(
        "import time; print('importing', flush=True); time.sleep(600)", encoding="utf-8"
    )
    with running("-m", "stagecoach", "--help", folder=tmp_path, log=log) as process:
        wait_until(lambda: "importing" in log.read_text(), process, log)
        process.send_signal(number)
        assert process.wait(timeout=60) == code
        assert CANCELLING in log.read_text()
        assert "Traceback" not in log.read_text()


def test_the_python_api_leaves_signals_as_they_are() -> None:
    code = (
        "import signal; before = [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)];"
        "import stagecoach, stagecoach.cli;"
        "assert before == [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)];"
        "assert signal.set_wakeup_fd(-1) == -1"
    )
    subprocess.run([sys.executable, "-c", code], env=environment(), check=True, timeout=60)


def test_descendants_are_found_when_their_parents_have_ended() -> None:
    code = "import subprocess; subprocess.Popen(['sleep', '600']); input()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE) as parent:
        try:
            wait_for(lambda: len(descendants(parent.pid)) == 1)
            found = descendants(os.getpid())
            [child] = descendants(parent.pid)
            assert {parent.pid, child} <= set(found)
        finally:
            parent.kill()
    assert parent.pid not in descendants(os.getpid(), found)
    assert child in descendants(os.getpid(), found)
    send_signal([child], signal.SIGKILL)
    wait_for(lambda: child not in descendants(os.getpid(), found))


# ------------------------------------------------------------------ commands with a JVM


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A catalog, and a query whose second stage runs for minutes."""
    folder = tmp_path_factory.mktemp("project")
    pq.write_table(pa.table({"x": pa.array(range(6000), pa.int64())}), folder / "t.parquet")
    (folder / "catalog.yaml").write_text(
        f"tables:\n  t:\n    paths: [{folder / 't.parquet'}]\n", encoding="utf-8"
    )
    (folder / "long.sql").write_text(
        "SELECT count(*) AS n FROM (SELECT DISTINCT x FROM t) a, t b, t c "
        "WHERE sqrt(a.x + b.x * c.x) > 7",
        encoding="utf-8",
    )
    (folder / "short.sql").write_text("SELECT count(*) AS n FROM t", encoding="utf-8")
    return folder


def has_jvm(process: subprocess.Popen[bytes], log: Path) -> bool:
    return bool(descendants(process.pid))


def has_stage(process: subprocess.Popen[bytes], log: Path) -> bool:
    return "started" in log.read_text()


def has_finished_stage(process: subprocess.Popen[bytes], log: Path) -> bool:
    return " row" in log.read_text()


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), SIGNALS)
@pytest.mark.parametrize("moment", [has_stage, has_jvm, has_finished_stage])
def test_a_signal_ends_a_query_at_every_moment(
    project: Path,
    tmp_path: Path,
    number: signal.Signals,
    code: int,
    moment: Callable[[subprocess.Popen[bytes], Path], bool],
) -> None:
    log = tmp_path / "log"
    command = ("-m", "stagecoach", "query", "long.sql", "--catalog", "catalog.yaml")
    options = ("--storage", str(tmp_path / "store"), "--set", "planner.force_distribution=true")
    with running(*command, *options, folder=project, log=log) as process:
        wait_until(lambda: moment(process, log), process, log)
        members = descendants(process.pid)
        process.send_signal(number)
        assert process.wait(timeout=60) == code, log.read_text()
        assert CANCELLING in log.read_text()
        assert "Traceback" not in log.read_text()
        assert "error" not in log.read_text().split(CANCELLING)[1]
        wait_for(lambda: not descendants(process.pid, members))


@pytest.mark.slow
def test_a_signal_ends_explain_analyze_while_spark_starts(project: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    command = ("-m", "stagecoach", "explain", "--analyze", "short.sql", "--catalog", "catalog.yaml")
    with running(
        *command, "--storage", str(tmp_path / "store"), folder=project, log=log
    ) as process:
        wait_until(lambda: has_jvm(process, log), process, log)
        members = descendants(process.pid)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 130, log.read_text()
        assert CANCELLING in log.read_text()
        wait_for(lambda: not descendants(process.pid, members))
