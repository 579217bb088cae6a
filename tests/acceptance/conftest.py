"""TPC-H tables, plain Spark's answers and runners over them, and a UI, once a test process."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from stagecoach.infra.config.settings import EngineSettings
from tests.acceptance.comparison import Oracle
from tests.acceptance.running_ui import RunningUi, running_ui
from tests.acceptance.runs import Runner, store_settings
from tests.tpch import Tpch
from tests.tpch import tpch as tpch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def oracle(spark: SparkSession, tpch: Tpch) -> Oracle:
    """Plain Spark over the TPC-H tables, in a session of its own."""
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", "UTC")
    session.conf.set("spark.sql.ansi.enabled", "true")
    for table in tpch.catalog.table_names():
        path = str(tpch.folder / table)
        session.read.parquet(path).createOrReplaceTempView(table)
    return Oracle(session)


@pytest.fixture(scope="session")
def settings(
    spark_settings: EngineSettings, tmp_path_factory: pytest.TempPathFactory
) -> EngineSettings:
    """Settings with a storage root that all acceptance tests of this process share."""
    return store_settings(spark_settings, tmp_path_factory.mktemp("acceptance"))


@pytest.fixture(scope="session")
def in_process(tpch: Tpch, settings: EngineSettings, spark: SparkSession) -> Runner:
    """Runs DuckDB tasks in this process; Spark stages are Spark jobs."""
    return Runner(tpch.catalog, settings, spark, in_process=True)


@pytest.fixture(scope="session")
def runner(tpch: Tpch, settings: EngineSettings, spark: SparkSession) -> Runner:
    """Runs every stage as a Spark job."""
    return Runner(tpch.catalog, settings, spark)


@pytest.fixture(scope="session")
def ui(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningUi]:
    """A `stagecoach ui` in which much goes on; a process that runs classic Spark cannot use it."""
    with_shop = importlib.util.find_spec("playwright") is not None
    with running_ui(tmp_path_factory.mktemp("ui"), with_shop=with_shop) as running:
        yield running
