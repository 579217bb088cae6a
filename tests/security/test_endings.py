"""Commands that are interrupted end at once and leave no process; tests of JVMs are marked slow."""

from __future__ import annotations

import datetime
import os
import resource
import signal
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from stagecoach.commands.main import cli
from stagecoach.infra.errors import ConfigError
from stagecoach.infra.host.processes import descendants, send_signal
from stagecoach.infra.runtime.records.pointers import StagePointer, write_pointer
from stagecoach.infra.runtime.records.run_marks import mark_begun, mark_ended
from stagecoach.infra.spark.code_archive import code_zip
from stagecoach.infra.spark.jvm import describe_failure
from stagecoach.infra.storage import layout
from stagecoach.infra.storage.local_store import LocalStore
from stagecoach.infra.upkeep.gc import collect_garbage
from stagecoach.infra.upkeep.one_run import collect_run
from stagecoach.terminal.errors import describe_error
from tests.acceptance.processes import environment, kill_group, wait_until
from tests.share import EVERYTHING
from tests.stage_outputs import commit_files
from tests.waiting import wait_for

SIGNALS = [(signal.SIGINT, 130), (signal.SIGTERM, 143)]
CANCELLING = "Cancelling…"

# A command that starts a child which ignores SIGTERM, tells its number and never ends.
STUBBORN = """
import subprocess, sys, time
from stagecoach.terminal.interrupts import handled

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
        "import stagecoach, stagecoach.commands.main;"
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
        f"tables:\n  t:\n    location: {folder / 't.parquet'}\n", encoding="utf-8"
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


# Each moment with either signal; CI takes one of them in turn.
ENDINGS = [
    (moment, ending)
    for place, moment in enumerate((has_stage, has_jvm, has_finished_stage))
    for ending in (SIGNALS if EVERYTHING else [SIGNALS[place % len(SIGNALS)]])
]


@pytest.mark.slow
@pytest.mark.parametrize(("moment", "ending"), ENDINGS)
def test_a_signal_ends_a_query_at_every_moment(
    project: Path,
    tmp_path: Path,
    ending: tuple[signal.Signals, int],
    moment: Callable[[subprocess.Popen[bytes], Path], bool],
) -> None:
    number, code = ending
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


@pytest.mark.slow
def test_a_rerun_after_a_cancel_reuses_the_stages_that_have_finished(
    project: Path, tmp_path: Path
) -> None:
    command = ("-m", "stagecoach", "query", "long.sql", "--catalog", "catalog.yaml")
    options = ("--storage", str(tmp_path / "store"), "--set", "planner.force_distribution=true")
    store, log, again = LocalStore(str(tmp_path / "store")), tmp_path / "log", tmp_path / "again"
    with running(*command, *options, folder=project, log=log) as process:
        wait_until(lambda: has_finished_stage(process, log), process, log)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 130, log.read_text()
    committed = {key for key in store.list("shuffle") if key.endswith("manifest.json")}
    assert committed
    with running(*command, *options, folder=project, log=again) as process:
        wait_until(lambda: "reused" in again.read_text(), process, again)
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=60) == 143, again.read_text()
    assert committed <= set(store.list("shuffle"))


NOTEBOOK = """
import os, signal, sys, threading, time
import stagecoach
from pyspark import SparkContext

def interrupt():
    while True:
        context = SparkContext._active_spark_context
        is_up = getattr(context, "_jsc", None) is not None
        if is_up and context.statusTracker().getActiveJobsIds():
            break
        time.sleep(0.1)
    os.kill(os.getpid(), signal.SIGINT)

with stagecoach.connect("catalog.yaml", sys.argv[1]) as session:
    threading.Thread(target=interrupt, daemon=True).start()
    try:
        session.query(open("long.sql").read()).to_arrow()
    except KeyboardInterrupt:
        print("interrupted")
    print(session.query(open("short.sql").read()).to_arrow().to_pylist())
"""


@pytest.mark.slow
def test_a_session_is_usable_after_a_query_was_interrupted(project: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", NOTEBOOK, str(tmp_path / "store")],
        cwd=project,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["interrupted", "[{'n': 6000}]"]


# ------------------------------------------------------------------ what dead runs leave

# Begins a run as the process that hosts it, then waits to be killed.
HOST = """
import sys, time
from stagecoach.infra.runtime.records.run_marks import mark_begun
from stagecoach.infra.storage.local_store import LocalStore

mark_begun(LocalStore(sys.argv[1]), "run", "run", is_hosted=True)
print("begun", flush=True)
time.sleep(600)
"""
NO_AGE = datetime.timedelta(0)


def pin_output(store: LocalStore, run_id: str, number: int) -> str:
    """An output that is committed and that a run has pinned."""
    fingerprint = f"{number:032x}"
    if not store.exists(layout.manifest(fingerprint)):
        commit_files(store, fingerprint, [], pa.schema([("x", pa.int64())]))
    pointer = StagePointer(expected=fingerprint, fingerprint=fingerprint)
    write_pointer(store, run_id, number, pointer)
    return fingerprint


def test_a_killed_run_is_known_to_be_dead(tmp_path: Path) -> None:
    store, log = LocalStore(str(tmp_path / "store")), tmp_path / "log"
    with running("-c", HOST, str(tmp_path / "store"), folder=tmp_path, log=log) as process:
        wait_until(lambda: "begun" in log.read_text(), process, log)
        fingerprint = pin_output(store, "run", 1)
        assert collect_garbage(store, older_than=NO_AGE).expired == ()
        with pytest.raises(ConfigError, match="run 'run' has not ended"):
            collect_run(store, "run")
        process.kill()
        process.wait(timeout=60)
    [shuffle] = collect_garbage(store, older_than=NO_AGE).expired
    assert shuffle.fingerprint == fingerprint


def test_runs_whose_process_is_not_known_count_as_alive(tmp_path: Path) -> None:
    store = LocalStore(str(tmp_path))
    mark_begun(store, "run", "run")
    pin_output(store, "run", 1)
    assert collect_garbage(store, older_than=NO_AGE).expired == ()
    # Marked on another machine.
    mark = layout.run_prefix("run") + "/begun/run"
    store.write_bytes(mark, b'{"machine": "another"}')
    assert collect_garbage(store, older_than=NO_AGE).expired == ()
    store.write_bytes(mark, b'{"machine": ')
    assert collect_garbage(store, older_than=NO_AGE).expired == ()


def test_a_run_of_this_process_is_alive_until_it_ends(tmp_path: Path) -> None:
    store = LocalStore(str(tmp_path))
    mark_begun(store, "run", "run", is_hosted=True)
    pin_output(store, "run", 1)
    assert collect_garbage(store, older_than=NO_AGE).expired == ()
    mark_ended(store, "run", "run")
    assert len(collect_garbage(store, older_than=NO_AGE).expired) == 1


def test_gc_of_one_run_keeps_what_others_need(tmp_path: Path) -> None:
    store = LocalStore(str(tmp_path))
    own, shared = pin_output(store, "first", 1), pin_output(store, "first", 2)
    pin_output(store, "second", 2)
    other = pin_output(store, "second", 3)
    for run in ("first", "second"):
        mark_begun(store, run, run)
        mark_ended(store, run, run)
    gc = ["gc", "--storage", str(tmp_path), "--run", "first"]
    before = set(store.list(""))
    planned = CliRunner().invoke(cli, [*gc, "--dry-run"])
    assert planned.exit_code == 0, planned.output
    assert "would remove the folder of run first" in planned.output
    assert set(store.list("")) == before
    done = CliRunner().invoke(cli, gc)
    assert done.output == planned.output.replace("would remove", "removed")
    assert not store.exists(layout.manifest(own))
    assert store.exists(layout.manifest(shared))
    assert store.exists(layout.manifest(other))
    assert not list(store.list(layout.run_prefix("first")))
    assert list(store.list(layout.run_prefix("second")))
    again = CliRunner().invoke(cli, gc)
    assert again.exit_code == 2
    assert "there is no run 'first'" in again.output


def test_gc_of_one_run_takes_no_age(tmp_path: Path) -> None:
    gc = ["gc", "--storage", str(tmp_path), "--run", "first", "--older-than", "1d"]
    done = CliRunner().invoke(cli, gc)
    assert done.exit_code == 2
    assert "leave --older-than out" in done.output


# ------------------------------------------------------------------ the archive of the code


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    code_zip.cache_clear()
    yield tmp_path / "stagecoach"
    code_zip.cache_clear()


def test_one_archive_for_each_version_of_the_code(cache: Path) -> None:
    first = code_zip()
    content = first.read_bytes()
    code_zip.cache_clear()
    assert code_zip() == first
    assert first.read_bytes() == content
    assert os.listdir(cache) == [first.name]
    first.write_bytes(b"cut short by somebody")
    code_zip.cache_clear()
    assert code_zip().read_bytes() == content


def test_a_planted_archive_is_not_used(cache: Path, tmp_path: Path) -> None:
    target = code_zip()
    content = target.read_bytes()
    planted = tmp_path / "planted.zip"
    with zipfile.ZipFile(planted, "w") as archive:
        archive.writestr("infra/__init__.py", "raise SystemExit('planted')")
    target.unlink()
    target.symlink_to(planted)
    code_zip.cache_clear()
    assert code_zip().read_bytes() == content
    target.write_bytes(planted.read_bytes())
    target.chmod(0o666)
    code_zip.cache_clear()
    assert code_zip().read_bytes() == content


def test_a_folder_that_others_can_write_is_not_used(cache: Path) -> None:
    cache.mkdir(mode=0o777)
    cache.chmod(0o777)
    assert cache not in code_zip().parents


# ------------------------------------------------------------------ why Spark does not start


@pytest.mark.parametrize(
    ("printed", "told"),
    [
        ("java.io.FileNotFoundException: x.jar (Too many open files)", "ulimit -n"),
        ("OpenJDK: unable to create native thread", "ulimit -u"),
        ("Error: Could not reserve enough space for object heap", "spark.driver.memory is 999g"),
        ("Invalid maximum heap size: -Xmx999x", "spark.driver.memory"),
        ("java.io.IOException: No space left on device", "TMPDIR"),
        ("java.lang.UnsupportedClassVersionError: org/apache", "Java 17"),
        ("something else entirely", "ended before it was ready"),
    ],
)
def test_why_the_jvm_does_not_start(printed: str, told: str) -> None:
    lines = ["WARNING: Using incubator modules", printed, "\tat java.lang.Thread.run"]
    text = describe_failure(lines, {"spark.driver.memory": "999g"})
    assert told in text
    assert printed in text
    assert "incubator" not in text
    assert "Thread.run" not in text


def test_a_low_file_limit_is_told_whatever_the_jvm_says(monkeypatch: pytest.MonkeyPatch) -> None:
    printed = "java.lang.InternalError: Error loading java.security file"
    assert "ulimit" not in describe_failure([printed], {})
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (64, 64))
    text = describe_failure(["[JAVA_GATEWAY_EXITED] Java gateway process exited", printed], {})
    assert "this process may open 64 files at a time (`ulimit -n`), which is too few" in text
    assert "raise the limit to 4096 or more" in text
    assert printed in text
    assert "JAVA_GATEWAY_EXITED" not in text


def test_all_that_a_jvm_says_is_shown() -> None:
    text = describe_failure(["[0.01s][error] Cannot open [x]", "Error: no main class"], {})
    assert "JVM: Error: no main class" in describe_error(ConfigError(text))


def test_a_java_that_ends_at_once(
    tmp_path: Path,
) -> None:
    """Spark's own scripts start a fake `java`, in a process that has no JVM."""
    program = tmp_path / "bin" / "java"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho 'Error: no such runtime' >&2\nexit 1\n", encoding="utf-8")
    program.chmod(0o755)
    code = (
        "from stagecoach.infra.errors import ConfigError\n"
        "from stagecoach.infra.spark.jvm import start_session\n"
        "try: start_session({'spark.master': 'local[1]'})\n"
        "except ConfigError as error: print('TOLD', error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment(JAVA_HOME=str(tmp_path)),
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    told = done.stdout[done.stdout.index("TOLD") :]
    assert f"its JVM ({tmp_path}) ended before it was ready" in told
    assert "JVM: Error: no such runtime" in told


@pytest.mark.slow
@pytest.mark.parametrize(
    ("prefix", "setting", "told"),
    [
        ("", "spark.driver.memory=999999g", "spark.driver.memory is 999999g"),
        # Python runs with that many files; the JVM says that it cannot load a security file.
        ("ulimit -n 128; ", "", "this process may open 128 files at a time (`ulimit -n`)"),
    ],
)
def test_a_query_says_why_spark_does_not_start(
    project: Path, tmp_path: Path, prefix: str, setting: str, told: str
) -> None:
    options = f"--set {setting}" if setting else ""
    command = (
        f"{prefix}exec {sys.executable} -m stagecoach query short.sql --catalog catalog.yaml "
        f"--engine spark --storage {tmp_path / 'store'} {options}"
    )
    done = subprocess.run(
        ["sh", "-c", command],
        cwd=project,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
    )
    assert done.returncode == 2, done.stderr
    assert "Spark cannot start" in done.stderr
    assert told in done.stderr
    assert "\n  JVM: " in done.stderr
    assert "Traceback" not in done.stderr
