"""Python workers of a classic session keep their memory; those of Connect: test_connect_server."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from stagecoach.infra.spark.worker_memory import WORKER_MEMORY, keep_worker_memory

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_what_somebody_set_stays() -> None:
    found = {"MIMALLOC_PURGE_DELAY": "5"}
    keep_worker_memory(found)
    assert found == {**WORKER_MEMORY, "MIMALLOC_PURGE_DELAY": "5"}


@pytest.mark.spark
def test_workers_of_a_session_keep_their_memory(spark: SparkSession) -> None:
    names = list(WORKER_MEMORY)
    rows = spark.sparkContext.parallelize([0], 1)
    (found,) = rows.map(lambda _: [os.environ.get(name) for name in names]).collect()
    assert dict(zip(names, found, strict=True)) == WORKER_MEMORY
