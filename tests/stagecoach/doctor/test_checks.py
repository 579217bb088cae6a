"""What each check says of what it is told; `test_planted_mistakes` plants the mistakes for real."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stagecoach.doctor.checks import executors as executors_module
from stagecoach.doctor.checks import java as java_module
from stagecoach.doctor.checks import spark as spark_module
from stagecoach.doctor.checks.clocks import ClockCheck
from stagecoach.doctor.checks.dagster import DagsterCheck
from stagecoach.doctor.checks.disks import DiskCheck
from stagecoach.doctor.checks.disks import judge as judge_disk
from stagecoach.doctor.checks.executors import ExecutorCheck
from stagecoach.doctor.checks.java import JavaCheck
from stagecoach.doctor.checks.spark import SparkCheck, other_version
from stagecoach.doctor.checks.storage import StorageCheck
from stagecoach.doctor.checks.storage import judge as judge_storage
from stagecoach.doctor.checks.tables import TableCheck
from stagecoach.doctor.examine import examine
from stagecoach.doctor.findings import Check, Finding
from stagecoach.doctor.machines import MachineReport, clock_skew
from stagecoach.doctor.place import Place
from stagecoach.doctor.registry import CHECKS
from stagecoach.infra.config.settings import EngineSettings
from stagecoach.infra.errors import ConfigError, CredentialsError
from stagecoach.infra.storage.object_store import StorageOptions

GOOD_TRIAL: Mapping[str, Any] = {
    "steps": [
        {"name": name, "seconds": 0.01, "problem": ""}
        for name in ("open", "write", "read", "list", "put if absent", "clock", "delete")
    ],
    "conditional": True,
    "clock": 0.0,
}


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """A place without a mistake: a catalog of one table, and an executor that says all is well."""
    (tmp_path / "t").mkdir()
    pq.write_table(pa.table({"k": [1]}), tmp_path / "t" / "a.parquet")
    (tmp_path / "catalog.yaml").write_text("tables: {t: {location: t}}")
    settings = EngineSettings(
        storage_root=str(tmp_path / "store"), spill_dir=str(tmp_path / "spill"), warm="never"
    )
    found = Place(settings, tmp_path / "catalog.yaml")
    found.machines = [machine()]
    return found


def machine(**values: Any) -> MachineReport:
    told: dict[str, Any] = {
        "host": "worker-7",
        "python": "/usr/bin/python3",
        "executor": "1",
        "disk": {"free": 1 << 40, "total": 1 << 41, "problem": ""},
        "storage": GOOD_TRIAL,
    }
    return MachineReport(**{**told, **values})


def failed(name: str, problem: str) -> Mapping[str, Any]:
    """A trial that ended at one of its steps."""
    return {**GOOD_TRIAL, "steps": [{"name": name, "seconds": 0.1, "problem": problem}]}


def only(findings: Iterable[Finding], status: str) -> Finding:
    (found,) = [finding for finding in findings if finding.status == status]
    return found


def statuses(check: Check, place: Place) -> set[str]:
    return {finding.status for finding in check.run(place)}


@pytest.mark.parametrize("check", [StorageCheck(), ClockCheck(), DiskCheck(), TableCheck()])
def test_a_place_without_a_mistake(place: Place, check: Check) -> None:
    assert statuses(check, place) == {"ok"}


# ---------------------------------------------------------------- Java and Spark


def test_there_is_no_java(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> str:
        raise ConfigError("there is no Java")

    monkeypatch.setattr(java_module, "find_java", none)
    assert "install Java 17" in only(JavaCheck().run(place), "error").advice


def test_java_home_is_another_one(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", "/opt/java8")
    monkeypatch.setattr(java_module, "find_java", lambda: "/usr/lib/jvm/java-17")
    assert "JAVA_HOME=/opt/java8 is not used" in only(JavaCheck().run(place), "warning").text


@pytest.mark.parametrize(
    ("settings", "advice"),
    [
        ({"master": "spark://127.0.0.1:1"}, "start the master"),
        ({"master": "spark://127.0.0.1:1,127.0.0.1:2"}, "start the master"),
        ({"remote": "sc://127.0.0.1:1/;token=secret"}, "--remote"),
    ],
)
def test_nothing_answers_at_the_cluster(
    place: Place, settings: dict[str, Any], advice: str
) -> None:
    place.settings = replace(place.settings, **settings)
    found = only(SparkCheck().run(place), "error")
    assert "nothing answers at 127.0.0.1" in found.text
    assert "secret" not in found.text
    assert advice in found.advice
    assert place.spark is None


def test_spark_has_another_version(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    assert other_version("4.3.0", "4.3.2") is None
    assert other_version("4.3.0", "4.2.0") == "the driver has pyspark 4.3.0, Spark is 4.2.0"

    class Old:
        version = "3.5.1"

    monkeypatch.setattr("stagecoach.infra.spark.session.get_session", lambda settings: Old())
    found = only(SparkCheck().run(place), "error")
    assert "Spark is 3.5.1" in found.text
    assert found.advice.endswith("pip install pyspark==3.5.1")


def test_spark_does_not_start(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(settings: EngineSettings) -> None:
        raise ConfigError("the JVM has no memory\nmore")

    monkeypatch.setattr("stagecoach.infra.spark.session.get_session", none)
    assert "the JVM has no memory" in only(SparkCheck().run(place), "error").text


# ---------------------------------------------------------------- executors


def looked(monkeypatch: pytest.MonkeyPatch, answer: Callable[[], list[MachineReport]]) -> None:
    monkeypatch.setattr(executors_module, "look_at_executors", lambda *_: answer())


def test_no_executor_takes_a_task(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> list[MachineReport]:
        raise ConfigError("no executor has run a task within 60 s")

    place.spark = object()  # type: ignore[assignment]  # never used
    looked(monkeypatch, none)
    found = only(ExecutorCheck().run(place), "error")
    assert "no executor has run a task" in found.text
    assert "log of an executor" in found.advice


def test_there_are_no_credentials_to_send(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> list[MachineReport]:
        raise CredentialsError("this machine has no credentials")

    place.spark = object()  # type: ignore[assignment]  # never used
    looked(monkeypatch, none)
    assert "credentials of this machine" in only(ExecutorCheck().run(place), "error").advice


def test_an_executor_lacks_a_package(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    place.spark = object()  # type: ignore[assignment]  # never used
    bad = machine(executor="2", problem="worker-8 has no duckdb; pip install duckdb==2.0.0")
    looked(monkeypatch, lambda: [machine(), bad])
    findings = list(ExecutorCheck().run(place))
    assert only(findings, "error").advice == "pip install duckdb==2.0.0"
    assert "1 executor has what tasks need, on worker-7" in only(findings, "ok").text


# ---------------------------------------------------------------- storage


def test_the_storage_root_is_a_file(place: Place, tmp_path: Path) -> None:
    (tmp_path / "store").write_text("")
    found = next(iter(StorageCheck().run(place)))
    assert found.status == "error"
    assert "from this machine: open failed" in found.text


def test_nothing_answers_at_the_storage(place: Place) -> None:
    options = StorageOptions.from_dict(
        {
            "endpoint_url": "http://127.0.0.1:1",
            "access_key": "testkey1",
            "secret_key": "testsecret1",
        }
    )
    place.settings = replace(
        place.settings, storage_root="s3://lake/store", storage_options=options
    )
    found = next(iter(StorageCheck().run(place)))
    assert (found.status, "testsecret1" in found.text) == ("error", False)
    assert "storage options" in found.advice


@pytest.mark.parametrize(
    ("credentials", "advice"),
    [("executor", "engine.credentials=forward"), ("forward", "reach the storage")],
)
def test_executors_cannot_reach_the_storage(place: Place, credentials: str, advice: str) -> None:
    place.settings = replace(place.settings, credentials=credentials)  # type: ignore[arg-type]
    place.machines = [machine(storage=failed("write", "Unable to locate credentials"))]
    found = only(StorageCheck().run(place), "error")
    assert "worker-7: write failed: Unable to locate credentials" in found.text
    assert advice in found.advice


def test_the_storage_ignores_conditional_writes() -> None:
    trial = {**GOOD_TRIAL, "conditional": False}
    assert "If-None-Match" in only(judge_storage(trial, "here", ""), "warning").text


def test_the_storage_is_slow() -> None:
    steps = [{**step, "seconds": 1.5} for step in GOOD_TRIAL["steps"]]
    found = only(judge_storage({**GOOD_TRIAL, "steps": steps}, "here", ""), "warning")
    assert "write 1500 ms" in found.text


def test_a_local_folder_on_a_cluster(place: Place) -> None:
    place.settings = replace(place.settings, master="spark://host:7077")
    assert "object store" in only(StorageCheck().run(place), "warning").advice


# ---------------------------------------------------------------- clocks and disks


@pytest.mark.parametrize(
    ("skew", "status", "text"),
    [(20.0, "warning", "20 s ahead"), (-1200.0, "error", "1200 s behind")],
)
def test_the_clock_of_an_executor_is_wrong(
    place: Place, skew: float, status: str, text: str
) -> None:
    place.machines = [machine(), machine(host="worker-8", skew=skew)]
    found = only(ClockCheck().run(place), status)
    assert f"the clock of worker-8 is {text}" in found.text


def test_the_clock_of_the_storage_is_wrong(place: Place) -> None:
    place.machines = [machine(storage={**GOOD_TRIAL, "clock": -60.0})]
    assert "the clock of the storage" in only(ClockCheck().run(place), "warning").text


@pytest.mark.parametrize(
    ("clock", "skew"), [(100.5, 0.0), (100.0, 0.0), (102.0, 0.0), (110.0, 8.0), (90.0, -10.0)]
)
def test_a_clock_that_is_read_between_two_moments(clock: float, skew: float) -> None:
    assert clock_skew(clock, 100.0, 102.0) == skew


def test_a_folder_that_tasks_cannot_spill_to(place: Place, tmp_path: Path) -> None:
    (tmp_path / "spill").write_text("")
    assert "cannot spill" in only(DiskCheck().run(place), "error").text


def test_a_disk_without_room(place: Place) -> None:
    found = judge_disk({"free": 100 << 20, "total": 1 << 40, "problem": ""}, "there")
    assert (found.status, "engine.spill_dir" in found.advice) == ("warning", True)


# ---------------------------------------------------------------- tables and Dagster


def test_tables_that_cannot_be_read(place: Place) -> None:
    place.catalog_file.write_text("tables: {t: {location: t}, gone: {location: nowhere}}")
    place.machines = [machine(tables={"t": "no such file"})]
    texts = [f.text for f in TableCheck().run(place) if f.status == "error"]
    assert any(text.startswith("table 'gone': ") for text in texts)
    assert "table 't' cannot be read on an executor on worker-7: no such file" in texts


def test_a_catalog_that_is_not_yaml(place: Place) -> None:
    place.catalog_file.write_text("tables: [")
    assert "catalog.yaml" in only(TableCheck().run(place), "error").advice


@pytest.mark.parametrize("broken", ["home", "file", "yaml", "database"])
def test_an_instance_of_dagster_that_cannot_be_used(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    home = tmp_path / "dagster"
    if broken == "file":
        home.write_text("")
    elif broken != "home":
        home.mkdir()
    if broken == "yaml":
        (home / "dagster.yaml").write_text("no_such_key: 1\n")
    if broken == "database":
        (home / "history").mkdir()
        (home / "history" / "runs.db").write_text("this is no database" * 100)
    monkeypatch.setenv("DAGSTER_HOME", str(home))
    assert str(home) in only(DagsterCheck().run(place), "error").text


# ---------------------------------------------------------------- the whole


def test_an_error_that_a_check_did_not_expect_is_reported(place: Place) -> None:
    class Odd:
        name = "odd"

        def run(self, place: Place) -> Iterable[Finding]:
            raise ConfigError("s3://user:secret@lake is odd")

    ((name, found),) = examine(place, [Odd()])
    assert (name, found.status) == ("odd", "error")
    assert len({check.name for check in CHECKS}) == len(CHECKS) == 8


def doctor(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "stagecoach", "doctor", "--catalog", "catalog.yaml", *arguments],
        cwd=folder, capture_output=True, text=True, check=False, timeout=200,
    )  # fmt: skip


def test_the_command_says_what_is_wrong_and_exits_with_1(place: Place, tmp_path: Path) -> None:
    done = doctor(tmp_path, "--master", "spark://127.0.0.1:1", "--json")
    assert done.returncode == 1, done.stderr
    told = json.loads(done.stdout)
    assert told["ok"] is False
    assert [f["check"] for f in told["findings"] if f["status"] == "error"] == ["spark"]
    assert spark_module.SparkCheck.name in {f["check"] for f in told["findings"]}


@pytest.mark.slow
def test_the_command_finds_nothing_wrong_here(place: Place, tmp_path: Path) -> None:
    done = doctor(tmp_path, "--master", "local[1]", "--storage", "store")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "ERROR" not in done.stdout
    assert "1 executor has what tasks need" in done.stdout
    assert "1 of 1 tables can be read" in done.stdout
