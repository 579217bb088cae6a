"""What Spark keeps of ended jobs, by whether its UI is there to show it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from stagecoach.infra.config.settings import EngineSettings
from stagecoach.infra.spark.connect_conf import server_conf
from stagecoach.infra.spark.kept_status import without_ui
from tests.waiting import wait_for

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KEPT = "spark.sql.ui.retainedExecutions"


def test_little_is_kept_without_the_ui() -> None:
    assert without_ui({})["spark.ui.enabled"] == "false"
    assert int(without_ui({"spark.ui.enabled": "false"})[KEPT]) < 100


@pytest.mark.parametrize("spelling", ["true", "TRUE", " true "])
def test_who_turns_the_ui_on_sees_what_spark_shows(spelling: str) -> None:
    assert without_ui({"spark.ui.enabled": spelling}) == {}


def test_the_users_own_numbers_win(tmp_path: Path) -> None:
    def conf(**own: str) -> dict[str, str]:
        spark_conf = {name.replace("_", "."): value for name, value in own.items()}
        return server_conf(EngineSettings(storage_root=str(tmp_path), spark_conf=spark_conf), 1)

    assert KEPT in conf()
    assert conf(spark_sql_ui_retainedExecutions="7")[KEPT] == "7"
    shown = conf(spark_ui_enabled="true")
    assert shown["spark.ui.enabled"] == "true"
    assert KEPT not in shown


@pytest.mark.spark
def test_the_plans_of_ended_queries_are_dropped(spark: SparkSession) -> None:
    store = spark._jsparkSession.sharedState().statusStore()
    kept = int(without_ui({})[KEPT])
    for number in range(2 * kept):
        spark.sql(f"SELECT {number}").collect()
    # Spark hears of them, and drops them, in threads of its own.
    wait_for(lambda: 0 < store.executionsCount() <= kept + 1, 30)
