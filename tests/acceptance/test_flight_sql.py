"""TPC-H through the ADBC driver of Flight SQL gives Spark's answers, names and types."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import adbc_driver_flightsql.dbapi as flight_sql
import pytest

from stagecoach.api.session import Session
from stagecoach.flight.serving import ServeOptions, Serving
from stagecoach.infra.config.settings import EngineSettings
from stagecoach.planner.options import PlannerOptions
from tests.acceptance.comparison import Oracle, assert_same
from tests.share import share
from tests.tpch import NAMES, Tpch, query_text

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.slow, pytest.mark.spark]


@pytest.fixture(scope="module")
def cursor(
    spark: SparkSession,
    tpch: Tpch,
    spark_settings: EngineSettings,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[flight_sql.Cursor]:
    root = str(tmp_path_factory.mktemp("flight-tpch"))
    settings = replace(spark_settings, storage_root=root)

    def open_session() -> Session:
        return Session(catalog=tpch.catalog, settings=settings, options=PlannerOptions())

    options = ServeOptions(ticket_key=os.urandom(32))
    with (
        Serving(open_session, options) as serving,
        flight_sql.connect(serving.uri, autocommit=True) as connection,
        connection.cursor() as found,
    ):
        yield found


@pytest.mark.parametrize("name", share(NAMES, 3))
def test_tpch(name: str, cursor: flight_sql.Cursor, oracle: Oracle) -> None:
    sql = query_text(name)
    cursor.execute(sql)
    assert_same(cursor.fetch_arrow_table(), oracle.answer(sql))
