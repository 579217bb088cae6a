"""A query that runs on Spark is cancelled by another thread, and the connection goes on."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stagecoach import dbapi
from stagecoach.api.errors import QueryCancelledError
from stagecoach.api.session import Session
from stagecoach.infra.catalog.catalog import load_catalog
from stagecoach.infra.config.settings import EngineSettings
from stagecoach.planner.options import PlannerOptions
from tests.acceptance.runs import store_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LONG = "SELECT count(*) FROM range(3000000000) WHERE sha2(string(id), 256) LIKE :pattern"


@pytest.mark.spark
@pytest.mark.slow
def test_a_query_on_spark_is_cancelled(
    tmp_path: Path, spark: SparkSession, spark_settings: EngineSettings
) -> None:
    del spark  # started
    pq.write_table(pa.table({"n": [1, 2]}), tmp_path / "t.parquet")
    (tmp_path / "catalog.yaml").write_text("tables: {t: {location: t.parquet}}")
    session = Session(
        catalog=load_catalog(tmp_path / "catalog.yaml"),
        settings=store_settings(spark_settings, tmp_path / "store"),
        options=PlannerOptions(),
    )
    cursor = dbapi.Connection(session).cursor()  # not closed: the tests share Spark
    assert cursor.execute("SELECT sum(n) FROM t").fetchall() == [(3,)]
    threading.Timer(2, cursor.cancel).start()
    with pytest.raises(dbapi.OperationalError, match="the query was cancelled") as caught:
        cursor.execute(LONG, {"pattern": "zz%"})
    assert isinstance(caught.value.__cause__, QueryCancelledError)
    assert cursor.execute("SELECT max(n) FROM t").fetchall() == [(2,)]
