"""Queries on a standalone cluster whose workers have no credentials and no package of ours.

Tables and shuffles are on an S3 server. Whatever Spark and its processes write is searched for the
credentials afterwards.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from benchmarks.cluster.standalone import HOST, StandaloneCluster
from stagecoach.infra.storage.stores import open_store
from tests.acceptance.comparison import Oracle, assert_same
from tests.acceptance.processes import COMMAND, FORCED, environment, planner_arguments
from tests.cluster import cluster as cluster
from tests.s3_server import ACCESS_KEY, SECRET_KEY, S3Server
from tests.s3_server import s3_server as s3_server
from tests.share import EVERYTHING, in_test_all
from tests.tpch import Tpch, query_text

pytestmark = [
    pytest.mark.slow,
    pytest.mark.spark,
    pytest.mark.s3,
    pytest.mark.timeout(600),
]

# Its first stage runs on Spark, which tasks of ours feed.
MIXED = """
SELECT o_orderpriority, count(*) AS n
FROM orders
WHERE length(aes_encrypt(o_clerk, '0123456789abcdef', 'CBC', 'DEFAULT', '0123456789abcdef')) <> 7
GROUP BY o_orderpriority ORDER BY o_orderpriority
"""
QUERIES = {"q03": query_text("q03"), "mixed": MIXED}
RUN = QUERIES if EVERYTHING else {"mixed": MIXED}


@pytest.fixture(scope="module")
def catalog(tpch: Tpch, s3_server: S3Server, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A catalog over tables on S3."""
    root = s3_server.new_root()
    store = open_store(root, s3_server.options)
    for path in sorted(tpch.folder.rglob("*.parquet")):
        store.write_bytes(path.relative_to(tpch.folder).as_posix(), path.read_bytes())
    target = tmp_path_factory.mktemp("catalog") / "catalog.yaml"
    tpch.catalog_at(root, s3_server.options, target)
    return target


def run_queries(
    names: list[str],
    folder: Path,
    catalog: Path,
    storage: str,
    variables: Mapping[str, str],
    *arguments: str,
) -> subprocess.CompletedProcess[str]:
    """Run queries by the command line, with event logs, in a process with these variables."""
    (folder / "events").mkdir(exist_ok=True)
    for name in names:
        (folder / f"{name}.sql").write_text(QUERIES[name])
    files = [f"{name}.sql" for name in names]
    where = ["--catalog", str(catalog), "--storage", storage, "--output-dir", "out"]
    spark = {"eventLog.enabled": "true", "eventLog.dir": str(folder / "events")}
    spark |= {"eventLog.compress": "false", "driver.host": HOST}
    options = [a for k, v in spark.items() for a in ("--set", f"spark.{k}={v}")]
    command = [*COMMAND, "query", *files, *where, *planner_arguments(FORCED), *options, *arguments]
    return subprocess.run(
        command,
        cwd=folder,
        env=environment(**{"SPARK_LOCAL_IP": HOST, **variables}),
        capture_output=True,
        text=True,
        check=False,
        timeout=400,
    )


def files_with(text: str, *folders: Path) -> list[Path]:
    """Files that hold the text."""
    wanted = text.encode()
    found = (p for folder in folders for p in folder.rglob("*") if p.is_file())
    return [path for path in found if "site-packages" not in str(path) and wanted in _read(path)]


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:  # an application that has just ended removes its own
        return b""


def test_the_credentials_of_the_driver_are_forwarded_unseen(
    cluster: StandaloneCluster, catalog: Path, s3_server: S3Server, tmp_path: Path, oracle: Oracle
) -> None:
    storage = s3_server.new_root()
    forward = ["--master", cluster.master, "--set", "engine.credentials=forward"]
    variables = s3_server.environment
    done = run_queries([*RUN], tmp_path, catalog, storage, variables, *forward)
    assert done.returncode == 0, done.stdout + done.stderr
    for name, sql in RUN.items():
        assert_same(pq.read_table(tmp_path / "out" / f"{name}.parquet"), oracle.answer(sql))
    for folder in cluster.folder.glob("worker-*"):
        assert list(folder.glob("work/app-*/*/stderr")), "each worker took part"
    events = "".join(p.read_text() for p in (tmp_path / "events").rglob("*") if p.is_file())
    values = re.findall(r'"spark\.stagecoach\.secret\.\w+":"([^"]*)"', events)
    assert set(values) == {"*********(redacted)"}
    assert '"spark.scheduler.mode":"FAIR"' in events
    for text in (SECRET_KEY, ACCESS_KEY):
        assert text not in done.stdout + done.stderr
        assert files_with(text, tmp_path, cluster.folder, s3_server.folder) == []


@in_test_all
def test_executors_use_the_credentials_of_their_machine(
    cluster: StandaloneCluster, catalog: Path, s3_server: S3Server, tmp_path: Path, oracle: Oracle
) -> None:
    for home in (folders := sorted(cluster.folder.glob("worker-*"))):
        (home / ".aws").mkdir()
        lines = f"aws_access_key_id = {ACCESS_KEY}\naws_secret_access_key = {SECRET_KEY}\n"
        place = f"endpoint_url = {s3_server.endpoint_url}\nregion = us-east-1\n"
        (home / ".aws" / "credentials").write_text(f"[default]\n{lines}")
        (home / ".aws" / "config").write_text(f"[default]\n{place}")
    try:
        storage, variables = s3_server.new_root(), s3_server.environment
        own = ["--master", cluster.master]
        done = run_queries(["q03"], tmp_path, catalog, storage, variables, *own)
    finally:
        for home in folders:
            shutil.rmtree(home / ".aws")
    assert done.returncode == 0, done.stdout + done.stderr
    assert_same(pq.read_table(tmp_path / "out" / "q03.parquet"), oracle.answer(QUERIES["q03"]))
    events = "".join(p.read_text() for p in (tmp_path / "events").rglob("*") if p.is_file())
    assert "SparkListenerJobEnd" in events
    found = re.findall(r'"spark\.stagecoach\.secret\.shares":"([^"]*)"', events)
    assert set(found) <= {"*********(redacted)"}


def test_executors_without_credentials_are_named_soon(
    cluster: StandaloneCluster, catalog: Path, s3_server: S3Server, tmp_path: Path
) -> None:
    started = time.monotonic()
    storage, variables = s3_server.new_root(), s3_server.environment
    done = run_queries(["q03"], tmp_path, catalog, storage, variables, "--master", cluster.master)
    seconds = time.monotonic() - started
    assert done.returncode == 1, done.stdout
    assert "there are no credentials" in done.stderr
    assert f"this is on machine {os.uname().nodename}, in a task" in done.stderr
    assert "credentials: forward" in done.stderr
    assert "`stagecoach doctor`" in done.stderr
    # Spark and two executors start meanwhile.
    assert seconds < 120


def test_wrong_credentials_that_are_forwarded(
    cluster: StandaloneCluster, catalog: Path, s3_server: S3Server, tmp_path: Path
) -> None:
    variables = {**s3_server.environment, "AWS_SECRET_ACCESS_KEY": "marked-wrong-99"}
    forward = ["--master", cluster.master, "--set", "engine.credentials=forward"]
    started = time.monotonic()
    done = run_queries(["q03"], tmp_path, catalog, s3_server.new_root(), variables, *forward)
    assert done.returncode == 1, done.stdout
    assert "credentials" in done.stderr
    assert "marked-wrong" not in done.stdout + done.stderr
    assert time.monotonic() - started < 20, "the driver finds it, before Spark is needed"


@in_test_all
def test_the_doctor_names_the_worker_that_lacks_a_package(
    cluster: StandaloneCluster, catalog: Path, s3_server: S3Server, tmp_path: Path
) -> None:
    (link,) = (cluster.folder / "worker-1" / "python").glob("lib/*/site-packages/duckdb-*")
    link.rename(link.with_suffix(".away"))
    where = ["--catalog", str(catalog), "--storage", s3_server.new_root()]
    spark = ["--master", cluster.master, "--set", f"spark.driver.host={HOST}"]
    # No task before both executors are there, however long the second takes on a busy machine.
    spark += ["--set", f"spark.cores.max={cluster.workers * cluster.cores}"]
    spark += ["--set", "spark.scheduler.minRegisteredResourcesRatio=1.0"]
    command = [*COMMAND, "doctor", "--json", "--set", "engine.credentials=forward", *where, *spark]
    try:
        done = subprocess.run(
            command,
            cwd=tmp_path,
            env=environment(**{"SPARK_LOCAL_IP": HOST, **s3_server.environment}),
            capture_output=True,
            text=True,
            check=False,
            timeout=200,
        )
    finally:
        link.with_suffix(".away").rename(link)
    assert done.returncode == 1, done.stdout + done.stderr
    found = {(f["check"], f["status"]): f for f in json.loads(done.stdout)["findings"]}
    missing = found["executors", "error"]
    assert "an executor lacks duckdb" in missing["text"]
    assert str(cluster.folder / "worker-1") in missing["text"]
    assert "1 executor has what tasks need" in found["executors", "ok"]["text"]
    assert {check for check, status in found if status == "error"} == {"executors"}
    assert found["tables", "ok"]
    assert SECRET_KEY not in done.stdout + done.stderr
