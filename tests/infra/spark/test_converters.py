"""Values reach Java as pyspark's own converters give them, and no package is imported for it."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from py4j.protocol import INPUT_CONVERTER
from pyspark.sql.types import NumpyArrayConverter, NumpyScalarConverter

from stagecoach.infra.spark.converters import use_light_converters

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

VALUES = [
    *(np.int64(7), np.float32(1.5), np.bool_(True), np.str_("a"), np.datetime64("2024-01-01")),
    *(np.array([1, 2]), np.array(["a"]), np.array([[1, 2]]), np.array(3), np.array([])),
    *(None, 1, 1.5, True, "a", b"a", [1], (1,), {1: 2}, object()),
]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_the_same_values_are_converted(value: Any) -> None:
    use_light_converters()
    for theirs in (NumpyScalarConverter, NumpyArrayConverter):
        (ours,) = (one for one in INPUT_CONVERTER if isinstance(one, theirs))
        assert type(ours) is not theirs
        assert ours.can_convert(value) == theirs().can_convert(value)


def test_numpy_values_reach_java(spark: SparkSession) -> None:
    use_light_converters()
    jvm = spark.sparkContext._jvm
    assert jvm is not None
    assert jvm.java.lang.String.valueOf(np.int64(7)) == "7"
    assert jvm.java.lang.reflect.Array.getLength(np.array(["a", "b"])) == 2


def test_a_session_starts_without_pandas() -> None:
    program = """
import sys
from stagecoach.infra.config.settings import EngineSettings
from stagecoach.infra.spark.session import get_session, stop_sessions
session = get_session(EngineSettings(master="local[1]"))
assert session.sparkContext.parallelize([1, 2], 1).map(lambda x: x + 1).collect() == [2, 3]
stop_sessions()
print(sorted(name for name in ("pandas", "pyspark.testing") if name in sys.modules))
"""
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["[]"]
