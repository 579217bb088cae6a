"""Joins of every kind and condition are native, and equal Spark however distributed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.differential.case_files import read_families
from tests.differential.edge_tables import EdgeTables
from tests.differential.inprocess import InProcessRunner
from tests.differential.query_check import SHUFFLED, SINGLE, differences
from tests.differential.spark_answers import ask_spark_all

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
    wrong = []
    answers = ask_spark_all(oracle, FAMILIES[family])
    for sql, expected in answers.items():
        for name, options in OPTIONS.items():
            found = differences(sql, tables.catalog, runner, expected, options)
            wrong += [f"{sql} [{name}]: {line}" for line in found]
    assert not wrong, f"{len(wrong)} differences:\n" + "\n".join(wrong)
