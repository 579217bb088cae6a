"""Chunks that are cut short or damaged: an error that names file and table, whatever the engine."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from stagecoach.infra.engines.spark.errors import _main_line
from stagecoach.infra.errors import InputLostError, StorageError
from stagecoach.infra.integrity.errors import DamagedFileError
from stagecoach.infra.storage.stores import open_store
from stagecoach.infra.worker.read_failures import keep_failure, new_failure_key, take_failure
from stagecoach.planner.options import PlannerOptions
from tests.infra.runtime.test_chunk_stages import Metrics

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from stagecoach.infra.config.settings import EngineSettings


def cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


@pytest.mark.spark
@pytest.mark.parametrize("engine", ["auto", "spark"])
@pytest.mark.parametrize(
    ("damage", "kind", "problem"),
    [
        (cut, "parquet", r"it has \d+ bytes instead of \d+"),
        (cut, "arrow", r"it has \d+ bytes instead of \d+"),
        (Path.unlink, "parquet", "there is no such file"),
    ],
)
def test_a_damaged_chunk_is_named(
    damage: Callable[[Path], None],
    kind: str,
    problem: str,
    engine: str,
    tmp_path: Path,
    spark_settings: EngineSettings,
    spark: SparkSession,
):
    metrics = Metrics(tmp_path, spark_settings, spark)
    metrics.append([("a", i, i, None) for i in range(300)], sort=True)  # Parquet
    metrics.append([("b", i, i, None) for i in range(30)], sort=False)  # Arrow
    (path,) = (tmp_path / "m").rglob(f"*.{kind}")
    damage(path)
    options = dataclasses.replace(PlannerOptions(), engine=engine)
    graph = metrics.plan("SELECT sum(value) AS s FROM m", options)
    told = rf"^file {path} of table 'm' cannot be read: {problem}; Stagecoach wrote it .* restore"
    with pytest.raises(InputLostError, match=told):
        metrics.run(graph)


@pytest.mark.spark
@pytest.mark.parametrize("engine", ["auto", "spark"])
def test_a_chunk_of_zeros_is_named(
    engine: str, tmp_path: Path, spark_settings: EngineSettings, spark: SparkSession
):
    metrics = Metrics(tmp_path, spark_settings, spark)
    metrics.append([("b", i, i, None) for i in range(30)], sort=False)  # Arrow
    (path,) = (tmp_path / "m").rglob("*.arrow")
    path.write_bytes(bytes(path.stat().st_size))
    options = dataclasses.replace(PlannerOptions(), engine=engine)
    graph = metrics.plan("SELECT sum(value) AS s FROM m", options)
    with pytest.raises(DamagedFileError, match=rf"^file {path} .*is damaged") as caught:
        metrics.run(graph)
    assert "restore" in str(caught.value)


def test_failures_travel_as_data(tmp_path: Path):
    store = open_store(tmp_path)
    key = new_failure_key("a" * 64)
    assert take_failure(store, key) is None
    keep_failure(store, key, InputLostError("/f", "it is damaged", True))
    keep_failure(store, key, StorageError("later"))
    found = take_failure(store, key)
    assert found is not None
    error = found.to_error("q/stage_0", None)
    assert isinstance(error, InputLostError)
    assert str(error).startswith("file /f cannot be read: it is damaged; Stagecoach wrote it")
    assert take_failure(store, key) is None
    store.write_bytes(key, b"{")
    assert take_failure(store, key) is None


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("[X] it fails\n at java", "[X] it fails"),
        ("", ""),
        ("[P] thrown from the worker:", "[P] thrown from the worker: it says nothing more"),
        (
            '[P] thrown from the worker:\nTraceback:\n  File "x"\nValueError: odd\n\nSQLSTATE: 38000',
            "[P] thrown from the worker: ValueError: odd",
        ),
    ],
)
def test_what_spark_says_of_a_worker_is_never_empty(text: str, line: str):
    assert _main_line(text) == line
