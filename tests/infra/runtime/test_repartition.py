"""Hints about tasks at run time: as many tasks and files as are asked for, the same in every run."""

from __future__ import annotations

import dataclasses
import warnings
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stagecoach.infra.catalog.catalog import FileCatalog, load_catalog
from stagecoach.infra.config.settings import EngineSettings
from stagecoach.infra.publishing.publish import PublishTarget, publish
from stagecoach.infra.runtime.adaptive.requested import (
    RequestedTasks,
    asks_for_tasks,
    requested_tasks,
)
from stagecoach.infra.shuffle.partitioner import partitions_in_turn
from stagecoach.infra.shuffle.reader import read_table
from stagecoach.infra.storage.stores import open_store
from stagecoach.planner.options import PlannerOptions
from stagecoach.planner.plan.stages import StageGraph
from stagecoach.planner.planning import plan_query
from tests.contexts import small_settings
from tests.infra.stage_runs import StageRun, run_here

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = 1000
OPTIONS = PlannerOptions(force_distribution=True, num_partitions=4)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hints")
    (folder / "t").mkdir()
    for number in range(2):
        ids = range(number, 2 * ROWS, 2)
        table = pa.table({"id": list(ids), "g": [i % 7 if i % 5 else None for i in ids]})
        # One row group: nothing below a file could be shared among tasks.
        pq.write_table(table, folder / "t" / f"{number}.parquet")
    (folder / "catalog.yaml").write_text("tables:\n  t:\n    location: t\n")
    return folder


@pytest.fixture(scope="module")
def catalog(folder: Path) -> FileCatalog:
    return load_catalog(folder / "catalog.yaml")


def settings_in(folder: Path) -> EngineSettings:
    return dataclasses.replace(small_settings(folder), parallelism=4, memory_bytes=512 << 20)


def run(sql: str, catalog: FileCatalog, folder: Path) -> tuple[StageGraph, Sequence[StageRun]]:
    graph = plan_query(sql, catalog, OPTIONS, name="q")
    settings = settings_in(folder)
    return graph, run_here(graph, catalog, settings, open_store(settings.storage_root))


def rows_of(run: StageRun, folder: Path) -> Counter[Any]:
    found = read_table(open_store(settings_in(folder).storage_root), run.manifest)
    return Counter(tuple(row.values()) for row in found.to_pylist())


def test_rows_are_dealt_out_evenly_and_alike_in_every_run(
    catalog: FileCatalog, tmp_path: Path
) -> None:
    sql = "SELECT /*+ REPARTITION(5) */ id, g FROM t WHERE id >= 100"
    first, second = (run(sql, catalog, tmp_path / name)[1] for name in ("a", "b"))
    files = first[-1].manifest.files
    assert [file.num_rows for file in files] == [380] * 5
    # The checksums of files have their names in them, which no two attempts share.
    again = second[-1].manifest
    assert [file.num_rows for file in files] == [file.num_rows for file in again.files]
    stores = (open_store(settings_in(tmp_path / name).storage_root) for name in ("a", "b"))
    tables = [read_table(s, m) for s, m in zip(stores, (first[-1].manifest, again), strict=True)]
    assert tables[0].equals(tables[1])
    assert set(rows_of(first[-1], tmp_path / "a").values()) == {1}


def test_tasks_and_files_are_as_many_as_are_asked_for(catalog: FileCatalog, tmp_path: Path) -> None:
    for number, (hint, files) in enumerate(
        {
            "": 2,  # a table of two files
            "/*+ REPARTITION(6) */": 6,
            "/*+ REPARTITION(1) */": 1,
            "/*+ REPARTITION(3, id) */": 3,
            "/*+ REPARTITION(40, g) */": 8,  # more partitions than keys, and NULL is one
            "/*+ COALESCE(1) */": 1,
            "/*+ COALESCE(9) */": 2,
            "/*+ COALESCE(2), REPARTITION(6) */": 2,
        }.items()
    ):
        folder = tmp_path / str(number)
        graph, done = run(f"SELECT {hint} id, g FROM t", catalog, folder)
        rows = [file.num_rows for file in done[-1].manifest.files]
        assert len(rows) == files or (files == 8 and 2 < len(rows) <= 8), (hint, rows)
        assert sum(rows) == 2 * ROWS and min(rows) > 0
        assert asks_for_tasks(graph.head) == bool(hint)
        if number in (0, 1):
            store = open_store(settings_in(folder).storage_root)
            published = publish(
                done[-1].manifest,
                graph.result,
                PublishTarget(table="out"),
                store=store,
                settings=settings_in(folder),
                spark=lambda: pytest.fail("a small result needs no Spark"),
                keeps_files=asks_for_tasks(graph.head),
            )
            assert len(published.files) == (files if hint else 1)


def test_a_hint_counts_for_its_part_of_the_stage_only(catalog: FileCatalog, tmp_path: Path) -> None:
    sql = "SELECT /*+ COALESCE(1) */ id FROM t UNION ALL SELECT g FROM t"
    graph, done = run(sql, catalog, tmp_path)
    first, second = graph.head.branches
    assert requested_tasks(graph.head, first) == RequestedTasks(1, at_most=True)
    assert requested_tasks(graph.head, second) is None
    assert len(done[-1].manifest.files) == 3


def test_nothing_that_is_decided_changes_the_number(catalog: FileCatalog, tmp_path: Path) -> None:
    sql = (
        "SELECT a.id, b.id FROM (SELECT {} if(id % 10 < 9, 3, g) AS g, id FROM t) a "
        "JOIN (SELECT g, id FROM t WHERE id % 11 = 1) b ON a.g = b.g"
    )
    options = dataclasses.replace(OPTIONS, broadcast_bytes=0, runtime_filters=False)
    settings = dataclasses.replace(settings_in(tmp_path), skew_bytes=1, skew_factor=1.0)
    found: dict[str, tuple[int, set[str]]] = {}
    for hint in ("", "/*+ REPARTITION(6, g) */"):
        graph = plan_query(sql.format(hint), catalog, options, name="q")
        done = run_here(graph, catalog, settings, open_store(tmp_path / f"store{len(found)}"))
        kinds: set[str] = {d.kind for d in done[-1].decisions}
        found[hint] = len(done[-1].manifest.files), kinds & {"skew", "broadcast"}
    (_, decided), (files, kept) = found.values()
    assert decided and not kept
    assert 2 <= files <= 6


def test_partitions_in_turn_go_on_where_the_last_rows_ended() -> None:
    assert partitions_in_turn(3, 4, 3).tolist() == [0, 1, 2, 0]
    assert partitions_in_turn(0, 0, 3).tolist() == []
    assert partitions_in_turn(70_000, 2, 65_536).tolist() == [4464, 4465]


HINTED = [
    "SELECT /*+ REPARTITION(3) */ g, count(*) AS n, sum(id) AS s FROM t GROUP BY g",
    "SELECT a.id, b.g FROM (SELECT /*+ REPARTITION(5, id) */ * FROM t) a "
    "JOIN (SELECT /*+ REPARTITION_BY_RANGE(3, id) */ * FROM t WHERE g > 2) b ON a.id = b.id",
    "SELECT /*+ COALESCE(1), REPARTITION(g) */ DISTINCT g FROM t",
    "SELECT /*+ REBALANCE(id), NO_SUCH_HINT(1) */ id FROM t WHERE id % 9 = 0",
]


@pytest.mark.slow
@pytest.mark.spark
def test_rows_are_sparks(
    catalog: FileCatalog,
    folder: Path,
    tmp_path: Path,
    spark: SparkSession,
) -> None:
    spark.read.parquet(str(folder / "t")).createOrReplaceTempView("t")
    for number, sql in enumerate(HINTED):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = Counter(tuple(row) for row in spark.sql(sql).collect())
        _, done = run(sql, catalog, tmp_path / str(number))
        assert rows_of(done[-1], tmp_path / str(number)) == expected, sql
