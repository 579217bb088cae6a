"""Jobs of nothing but tasks: few and many results, and what a failed one tells."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from py4j.protocol import Py4JJavaError

from stagecoach.infra.engines.spark.errors import explain_error
from stagecoach.infra.spark.bare_tasks import run_bare_tasks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("count", [1, 2, 4, 5, 40])
def test_texts_come_in_the_order_of_the_tasks(spark: SparkSession, count: int) -> None:
    def task(index: int) -> str:
        import time

        # So that they end in another order.
        time.sleep(0.002 * ((count - index) % 3))
        return f"{index} é\u2028" * (1 + index % 2)

    expected = [task(index) for index in range(count)]
    assert run_bare_tasks(spark.sparkContext, count, task) == expected


def test_a_long_text_arrives_whole(spark: SparkSession) -> None:
    found = run_bare_tasks(spark.sparkContext, 1, lambda _: "é" * 3_000_000)
    assert found == ["é" * 3_000_000]


@pytest.mark.parametrize("count", [1, 6])
def test_an_error_tells_what_the_task_raised(spark: SparkSession, count: int) -> None:
    def task(index: int) -> str:
        raise ValueError(f"{index} is not wanted")

    with pytest.raises(Py4JJavaError) as raised:
        run_bare_tasks(spark.sparkContext, count, task)
    assert raised.value.java_exception.getClass().getSimpleName() == "PythonException"
    told = str(explain_error(raised.value, "q", "q/stage_0"))
    assert told.startswith("q/stage_0 failed: Spark failed with PYTHON_EXCEPTION")
    assert told.endswith("is not wanted")


def test_a_task_that_carries_much_arrives_by_broadcast(spark: SparkSession) -> None:
    for letter in "ab":
        carried = [f"{letter}{number}" for number in range(300_000)]  # above Spark's 1 MiB
        found = run_bare_tasks(spark.sparkContext, 2, lambda index, c=carried: c[index - 1])  # type: ignore[misc]
        assert found == [f"{letter}299999", f"{letter}0"]


def test_a_module_that_was_added_later_can_be_imported(spark: SparkSession, tmp_path: Path) -> None:
    context = spark.sparkContext
    assert run_bare_tasks(context, 1, lambda _: "before") == ["before"]
    (tmp_path / "added_to_workers.py").write_text("NAME = 'of the module'")
    context.addPyFile(str(tmp_path / "added_to_workers.py"))

    def task(_: int) -> str:
        import added_to_workers  # type: ignore[import-not-found]

        return str(added_to_workers.NAME)

    assert run_bare_tasks(context, 1, task) == ["of the module"]
