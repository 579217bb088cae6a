"""Query 3 on real executor processes, through a Spark Connect server, and on S3."""

from __future__ import annotations

import contextlib
import dataclasses
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pyspark
import pytest

from stagecoach.infra.config.settings import EngineSettings
from stagecoach.infra.storage.stores import open_store
from stagecoach.planner.options import PlannerOptions
from tests.acceptance.comparison import Oracle, assert_same
from tests.acceptance.processes import (
    FORCED,
    environment,
    free_port,
    is_open,
    planner_arguments,
    run_command,
    started,
    wait_until,
)
from tests.acceptance.runs import Runner
from tests.s3_server import S3Server
from tests.s3_server import s3_server as s3_server
from tests.share import EVERYTHING, in_test_all
from tests.tpch import Tpch, query_text

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.slow, pytest.mark.spark, pytest.mark.timeout(600)]

SQL = query_text("q03")
# Its first stage runs on Spark, so that Spark's own executors write map files too.
MIXED = """
SELECT o_orderpriority, count(*) AS n, sum(l_extendedprice) AS s
FROM lineitem JOIN orders ON l_orderkey = o_orderkey
WHERE length(aes_encrypt(l_shipmode, '0123456789abcdef', 'CBC', 'DEFAULT', '0123456789abcdef')) <> 7
GROUP BY o_orderpriority ORDER BY o_orderpriority
"""
WHOLE = "SELECT r_name, length(collate(r_name, 'UNICODE')) AS n FROM region ORDER BY r_name"
QUERIES = {"q03": SQL, "mixed": MIXED, "whole": WHOLE}
RUN = QUERIES if EVERYTHING else {"mixed": MIXED}


def run_queries(arguments: Sequence[str], tpch: Tpch, folder: Path) -> dict[str, pa.Table]:
    """Run the queries by the command line in a process of its own; return the results."""
    files = []
    for name, sql in RUN.items():
        (folder / f"{name}.sql").write_text(sql)
        files.append(f"{name}.sql")
    where = ["--catalog", str(tpch.catalog_file), "--storage", str(folder / "store")]
    options = [*planner_arguments(FORCED), "--output-dir", "out"]
    done = run_command(["query", *files, *where, *options, *arguments], folder, seconds=400)
    assert done.returncode == 0, done.stdout + done.stderr
    found = {}
    for name in RUN:
        content = (folder / "out" / f"{name}.parquet").read_bytes()
        found[name] = pq.read_table(pa.BufferReader(content))
    return found


def check_answers(found: dict[str, pa.Table], oracle: Oracle) -> None:
    for name, sql in RUN.items():
        assert_same(found[name], oracle.answer(sql))


@in_test_all
def test_two_executor_processes(tpch: Tpch, tmp_path: Path, oracle: Oracle) -> None:
    found = run_queries(["--master", "local-cluster[2,1,1024]"], tpch, tmp_path)
    check_answers(found, oracle)


@contextlib.contextmanager
def connect_server(folder: Path) -> Iterator[str]:
    """A Spark Connect server in processes of its own, started as Spark's own script does."""
    # Not the plugin inside a classic session: that server does not isolate what clients ship, so a
    # session that ends takes the code of the others away.
    port = free_port()
    log = folder / "server.log"
    (folder / "server").mkdir()
    program = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    command = [str(program), "--class", "org.apache.spark.sql.connect.service.SparkConnectServer"]
    conf = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
    }
    for name, value in conf.items():
        command += ["--conf", f"{name}={value}"]
    command += ["--master", "local[2]", "spark-internal"]
    env = environment(PYSPARK_PYTHON=sys.executable)
    with started(command, folder / "server", log, env) as process:
        wait_until(lambda: is_open(port), process, log, interval_seconds=0.2)
        yield f"sc://127.0.0.1:{port}"


def test_through_a_connect_server(tpch: Tpch, tmp_path: Path, oracle: Oracle) -> None:
    with connect_server(tmp_path) as url:
        check_answers(run_queries(["--remote", url], tpch, tmp_path), oracle)


# ---------------------------------------------------------------- S3


PLANS = {
    "default": PlannerOptions(),
    "forced": PlannerOptions(force_distribution=True, broadcast_bytes=0, num_partitions=3),
    "broadcast": PlannerOptions(force_distribution=True, num_partitions=2),
}


@pytest.fixture(scope="module")
def tables_on_s3(tpch: Tpch, s3_server: S3Server) -> str:
    """URL of a folder on S3 with copies of the tables."""
    root = s3_server.new_root()
    store = open_store(root, s3_server.options)
    for path in sorted(tpch.folder.rglob("*.parquet")):
        store.write_bytes(path.relative_to(tpch.folder).as_posix(), path.read_bytes())
    return root


@pytest.mark.s3
@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("tables", ["local tables", "tables on s3"])
def test_on_s3(
    plan: str,
    tables: str,
    tpch: Tpch,
    tables_on_s3: str,
    s3_server: S3Server,
    settings: EngineSettings,
    spark: SparkSession,
    oracle: Oracle,
    tmp_path: Path,
) -> None:
    remote = tables == "tables on s3"
    target = tmp_path / "catalog.yaml"
    catalog = tpch.catalog_at(tables_on_s3, s3_server.options, target) if remote else tpch.catalog
    storage = s3_server.new_root()
    there = dataclasses.replace(settings, storage_root=storage, storage_options=s3_server.options)
    runner = Runner(catalog, there, spark)
    ran = runner.run(SQL, PLANS[plan], name="q03", fresh=False)
    assert set(ran.engines) == {"duckdb"}
    assert_same(ran.table, oracle.answer(SQL))
    again = runner.run(SQL, PLANS[plan], name="q03", fresh=False)
    assert all(stage.reused for stage in again.stages)
    assert again.table.equals(ran.table)


@pytest.mark.s3
@pytest.mark.parametrize("name", ["mixed", "whole"])
def test_spark_stages_on_s3(
    name: str,
    tpch: Tpch,
    tables_on_s3: str,
    s3_server: S3Server,
    settings: EngineSettings,
    spark: SparkSession,
    oracle: Oracle,
    tmp_path: Path,
) -> None:
    catalog = tpch.catalog_at(tables_on_s3, s3_server.options, tmp_path / "catalog.yaml")
    there = dataclasses.replace(
        settings, storage_root=s3_server.new_root(), storage_options=s3_server.options
    )
    ran = Runner(catalog, there, spark).run(QUERIES[name], PLANS["forced"], name=name)
    assert "spark" in ran.engines
    assert_same(ran.table, oracle.answer(QUERIES[name]))
