"""Joins of every kind and condition are native, and equal Spark however distributed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.differential.case_files import read_families
from tests.differential.edge_tables import EdgeTables
from tests.differential.inprocess import InProcessRunner
from tests.differential.query_check import SHUFFLED, SINGLE
from tests.differential.spark_answers import all_differences, ask_spark_all

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OPTIONS = {"single": SINGLE, "shuffle-1": SHUFFLED[1], "shuffle-3": SHUFFLED[3]}
FAMILIES = read_families("joins.sql")


def test_there_are_many_queries() -> None:
    assert sum(map(len, FAMILIES.values())) >= 60


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("family", list(FAMILIES))
def test_joins_equal_spark(
    oracle: SparkSession, tables: EdgeTables, runner: InProcessRunner, family: str
) -> None:
    wrong = all_differences(ask_spark_all(oracle, FAMILIES[family]), tables, runner, OPTIONS)
    assert not wrong, f"{len(wrong)} differences:\n" + "\n".join(wrong)
