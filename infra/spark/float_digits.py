"""How the Java of a Spark writes floating-point numbers, which changed with Java 19."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from stagecoach.planner.functions.text_casts import SHORTEST_FLOATS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# A double that Java 19 writes as 2.0E23, and an older Java as 1.9999999999999998E23.
_PROBE = "SELECT CAST(2E23D AS STRING)"
_FEWEST = "2.0E23"

_known: WeakKeyDictionary[SparkSession, int] = WeakKeyDictionary()


def reads_float_digits(sql: str) -> bool:
    """Whether a fragment of DuckDB depends on how Java writes floating-point numbers."""
    return SHORTEST_FLOATS in sql


def float_variables(spark: SparkSession) -> Mapping[str, int]:
    """The variable of a fragment that says it; each session is asked once.

    Raises:
        PySparkException: Spark cannot be asked.
    """
    if spark not in _known:
        row = spark.sql(_PROBE).first()
        assert row is not None
        _known[spark] = int(row[0] == _FEWEST)
    return {SHORTEST_FLOATS: _known[spark]}
