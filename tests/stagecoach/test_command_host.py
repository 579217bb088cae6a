"""Commands that are forked from a host: what they print and return, and when the host refuses."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import stagecoach
from stagecoach.infra.spark.announcements import Announcement, Published
from stagecoach.infra.spark.command_fork import CommandHost
from tests.waiting import wait_for

ROOT = Path(stagecoach.__path__[0]).parent
# The exit code, or None where no host has run the command.
_CLIENT = """
import sys
sys.argv = ["stagecoach", *sys.argv[1:]]
from stagecoach.host.handover import hand_over
print("code", hand_over(sys.argv), file=sys.stderr)
"""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(120),
    pytest.mark.skipif(sys.platform != "linux", reason="forks"),
]


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    """Variables of the host and of those who ask it."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("STAGECOACH_", "PYTEST_"))}
    cache = tmp_path_factory.mktemp("cache")
    # Not where servers of the user who runs the tests are.
    places = {"XDG_CACHE_HOME": str(cache), "HOME": str(cache)}
    return {**kept, **places, "PYTHONPATH": str(ROOT)}


@pytest.fixture(scope="module")
def _host(environment: Mapping[str, str]) -> Iterator[None]:
    """A host that is announced, without a Spark."""
    with pytest.MonkeyPatch.context() as patch:
        for name in set(os.environ) - set(environment):
            patch.delenv(name)
        for name, value in environment.items():
            patch.setenv(name, value)
        host = CommandHost(environment, str(ROOT))
        published = Published(
            Announcement(
                port=1,
                token="secret",
                owner="warm",
                watcher_pid=os.getpid(),
                started=1.0,
                ttl_seconds=60.0,
                log="log",
                host=host.path,
                digests={},
            )
        )
    assert host.is_up()
    yield
    published.withdraw()
    host.end()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "t").mkdir()
    pq.write_table(pa.table({"k": list(range(10))}), tmp_path / "t" / "0.parquet")
    (tmp_path / "catalog.yaml").write_text("tables: {t: {location: t}}\n")
    (tmp_path / "q.sql").write_text("SELECT k FROM t WHERE k > 3")
    return tmp_path


def ask(
    project: Path, environment: Mapping[str, str], *arguments: str, text: str = ""
) -> tuple[str, str, str]:
    """What a command prints, its errors, and its exit code as told by the host."""
    done = subprocess.run(
        [sys.executable, "-c", _CLIENT, *arguments],
        cwd=project,
        env=environment,
        input=text,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    errors, _, code = done.stderr.rpartition("code ")
    return done.stdout, errors, code.strip()


def here(project: Path, environment: Mapping[str, str], *arguments: str) -> tuple[str, str, str]:
    """The same of a command that runs by itself."""
    done = subprocess.run(
        [sys.executable, "-m", "stagecoach", *arguments],
        cwd=project,
        env={**environment, "STAGECOACH_WARM": "never"},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    return done.stdout, done.stderr, str(done.returncode)


@pytest.mark.usefixtures("_host")
@pytest.mark.parametrize(
    "arguments",
    [
        ("explain", "q.sql", "--catalog", "catalog.yaml"),
        ("explain", "nothing.sql", "--catalog", "catalog.yaml"),
        ("query", "q.sql", "--wrong"),
        ("query", "--help"),
    ],
)
def test_a_command_of_the_host_prints_and_returns_the_same(
    project: Path, environment: Mapping[str, str], arguments: tuple[str, ...]
) -> None:
    assert ask(project, environment, *arguments) == here(project, environment, *arguments)


@pytest.mark.usefixtures("_host")
def test_its_streams_and_its_folder_are_those_of_who_asks(
    project: Path, environment: Mapping[str, str]
) -> None:
    arguments = ("explain", "-", "--catalog", "catalog.yaml", "--plan", "logical")
    shown, _, code = ask(project, environment, *arguments, text="SELECT k + 1 AS more FROM t")
    assert code == "0"
    assert "more" in shown


@pytest.mark.usefixtures("_host")
def test_variables_of_our_settings_are_those_of_who_asks(
    project: Path, environment: Mapping[str, str]
) -> None:
    told = {**environment, "STAGECOACH_PLANNER__ENGINE": "nonsense", "TERM": "dumb"}
    _, errors, code = ask(project, told, "explain", "q.sql", "--catalog", "catalog.yaml")
    assert code == "2"
    assert "nonsense" in errors


@pytest.mark.usefixtures("_host")
@pytest.mark.parametrize(
    ("variables", "arguments"),
    [
        ({"AWS_PROFILE": "other"}, ("explain", "q.sql")),
        ({"STAGECOACH_WARM": "never"}, ("explain", "q.sql")),
        ({}, ("explain", "q.sql", "--set", "engine.warm=never")),
        ({}, ("ui", "--help")),
        ({}, ("--help",)),
        ({"PYTHONWARNINGS": "error"}, ("explain", "q.sql")),
    ],
)
def test_a_host_does_not_run_what_it_would_run_differently(
    project: Path,
    environment: Mapping[str, str],
    variables: Mapping[str, str],
    arguments: tuple[str, ...],
) -> None:
    assert ask(project, {**environment, **variables}, *arguments) == ("", "", "None")


@pytest.mark.usefixtures("_host")
def test_a_signal_ends_the_command(project: Path, environment: Mapping[str, str]) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", _CLIENT, "explain", "-", "--catalog", "catalog.yaml"],
        cwd=project,
        env=environment,
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        wait_for(lambda: reading_of(project, process.pid))
        time.sleep(0.5)  # it waits for its input
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0  # of the client above, which prints the code
        assert process.stderr is not None
        assert process.stderr.read().split() == ["Cancelling…", "code", "130"]


_LEAVES = """
import os, socket, sys
sys.argv = ["stagecoach", *sys.argv[1:]]
from stagecoach.host import handover
from stagecoach.infra.spark.announcements import find_servers
with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as host:
    host.connect(find_servers()[0].announcement.host)
    handover.send_request(host, handover._request(sys.argv), [0, 1, 2])
    print(handover._answer(host)["pid"], flush=True)
"""


@pytest.mark.usefixtures("_host")
def test_a_command_does_not_begin_where_nobody_waits_for_it(
    project: Path, environment: Mapping[str, str]
) -> None:
    arguments = ("explain", "q.sql", "--catalog", "catalog.yaml")
    # Its output closes when the forked process has ended, too.
    done = subprocess.run(
        [sys.executable, "-c", _LEAVES, *arguments],
        cwd=project,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout.strip().isdigit()  # the number of the process, and no plan


@pytest.mark.usefixtures("_host")
def test_a_killed_command_is_told_and_not_run_again(
    project: Path, environment: Mapping[str, str]
) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", _CLIENT, "explain", "-", "--catalog", "catalog.yaml"],
        cwd=project,
        env=environment,
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        wait_for(lambda: reading_of(project, process.pid))
        time.sleep(0.5)  # it waits for its input
        child = reading_of(project, process.pid)
        assert child is not None
        os.kill(child, signal.SIGKILL)
        assert process.wait(20) == 0
        assert process.stderr is not None
        assert process.stderr.read().split() == ["code", str(128 + signal.SIGKILL)]


def reading_of(folder: Path, asking: int) -> int | None:
    """The process that a host has forked for another one, in its folder."""
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if int(path.name) != asking and (path / "cwd").resolve() == folder.resolve():
                return int(path.name)
    return None
