"""Edge tables, once a test run, in a Spark session with views of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.differential.edge_tables import EdgeTables, write_edge_tables
from tests.differential.inprocess import InProcessRunner
from tests.differential.relation_tables import write_relation_tables
from tests.differential.shop_tables import write_shop_tables
from tests.differential.spark_answers import plain_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def tables(tmp_path_factory: pytest.TempPathFactory) -> EdgeTables:
    """The edge tables, the relation tables (their `n` is called `tree`), and the tables of a shop."""
    folder = tmp_path_factory.mktemp("edges")
    found = (
        write_edge_tables(folder),
        write_relation_tables(folder, {"n": "tree"}),
        write_shop_tables(folder),
    )
    files = {name: paths for part in found for name, paths in part.files.items()}
    return EdgeTables(folder, files, {n: s for part in found for n, s in part.schemas.items()})


@pytest.fixture(scope="session")
def oracle(spark: SparkSession, tables: EdgeTables) -> SparkSession:
    """Plain Spark over the edge tables."""
    return plain_session(spark, tables)


@pytest.fixture(scope="session")
def runner(oracle: SparkSession, tables: EdgeTables) -> InProcessRunner:
    """Runs stage graphs in this process."""
    return InProcessRunner(tables, oracle)
