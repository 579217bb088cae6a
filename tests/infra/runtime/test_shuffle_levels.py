"""Shuffles in two levels: the rows of one level, and far fewer byte ranges."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stagecoach.infra.catalog.catalog import load_catalog
from stagecoach.infra.config.settings import EngineSettings
from stagecoach.infra.runtime.adaptive.estimator import InputSizes, PartitionPiece
from stagecoach.infra.runtime.adaptive.tasks import divide_stage
from stagecoach.infra.shuffle.commit import load_index
from stagecoach.infra.shuffle.manifest import Manifest
from stagecoach.planner.options import PlannerOptions
from stagecoach.planner.plan.physical import StageInputExec
from stagecoach.planner.planning import plan_query
from tests.infra.spark_runs import run, run_tasks_here

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from stagecoach.infra.catalog.catalog import FileCatalog

ROWS, FILES, PARTITIONS, GROUPS = 20_000, 8, 64, 8
ONE = PlannerOptions(force_distribution=True, num_partitions=PARTITIONS, broadcast_bytes=0)
TWO = replace(ONE, shuffle_ranges=1)
SQL = "SELECT k, count(*) AS n, max(note) AS m FROM facts GROUP BY k HAVING count(*) > 1"


@pytest.fixture
def catalog(tmp_path: Path) -> FileCatalog:
    (tmp_path / "facts").mkdir()
    keys = [None if i % 97 == 0 else (i * i) % 5003 for i in range(ROWS)]
    table = pa.table({"k": pa.array(keys, pa.int64()), "note": [f"n{i % 13}" for i in range(ROWS)]})
    for number in range(FILES):
        part = table.slice(number * ROWS // FILES, ROWS // FILES)
        pq.write_table(part, tmp_path / "facts" / f"{number}.parquet")
    (tmp_path / "catalog.yaml").write_text("tables: {facts: {location: facts}}\n")
    return load_catalog(tmp_path / "catalog.yaml")


def settings_of(folder: Path, **changes: Any) -> EngineSettings:
    return EngineSettings(
        storage_root=str(folder),
        parallelism=FILES,
        min_task_bytes=0,
        target_task_bytes=1000,
        adaptive_coalesce=False,
        adaptive_passing=False,
        **changes,
    )


def ranges(settings: EngineSettings, manifest: Manifest) -> list[tuple[int, int]]:
    index = load_index(settings.open_store(), manifest)
    columns = (index.column(name).to_pylist() for name in ("partition", "file"))
    return list(zip(*columns, strict=True))


@pytest.mark.spark
def test_two_levels_give_the_rows_of_one(
    catalog: FileCatalog, tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_tasks_here(monkeypatch)
    one, two = (settings_of(tmp_path / name) for name in ("one", "two"))
    expected, (direct, *_) = run(plan_query(SQL, catalog, ONE, name="q"), catalog, one, spark)
    graph = plan_query(SQL, catalog, TWO, name="q")
    found, (first, second, *_) = run(graph, catalog, two, spark)
    assert found == expected
    assert len(found) > 1000
    assert isinstance(graph.stages[1].fragment, StageInputExec)
    assert (first.num_partitions, second.num_partitions) == (GROUPS, PARTITIONS)
    # The same rows in the same partitions, from tasks that have each a part of one group.
    assert second.partition_rows == direct.partition_rows
    files = ranges(two, second)
    assert all(len({p // GROUPS for p, f in files if f == file}) <= 1 for _, file in files)
    few = len(ranges(two, first)) + len(files)
    assert few <= len(first.files) * GROUPS + len(second.files) * PARTITIONS // GROUPS
    assert few < len(ranges(one, direct)) / 2


def test_tasks_share_a_group(catalog: FileCatalog) -> None:
    """There may be far more cores than groups, and a group is many times larger than a task's input."""
    stage = plan_query(SQL, catalog, TWO, name="q").stages[1]
    files, size = 16, 1 << 30
    divided = divide_stage(
        stage,
        InputSizes({}, {0: [size] * GROUPS}),
        EngineSettings(target_task_bytes=128 << 20),
        is_head=False,
        parallelism=64,
        file_bytes=lambda leaf, partition: [size // files] * files,
    )
    pieces = [t.slices[0] for t in divided.tasks]
    assert len(pieces) >= 64
    shared = Counter(p.partition for p in pieces if isinstance(p, PartitionPiece))
    assert sum(shared.values()) == len(pieces)
    assert set(shared) == set(range(GROUPS))
    assert sum(t.num_bytes for t in divided.tasks) == GROUPS * size
