"""Queries over deduplicated tables against Spark's `row_number() = 1` over all rows.

A seeded part runs always; `STAGECOACH_CHUNK_QUERIES=2000` runs that many cases, from
`STAGECOACH_CHUNK_SEED` on.
"""

from __future__ import annotations

import dataclasses
import math
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stagecoach.infra.config.settings import EngineSettings
from stagecoach.infra.engines.duckdb.engine import DuckDbEngine
from stagecoach.infra.engines.protocol import Fragment, Resources
from stagecoach.infra.formats.deduplicated import writer
from stagecoach.infra.formats.snapshot import take_snapshot
from stagecoach.infra.runtime.planning.plan_tasks import StageReads, build_specs
from stagecoach.infra.worker.spec import TaskSpec
from stagecoach.infra.worker.task import output_schema
from stagecoach.planner.formats.deduplicated import slices
from stagecoach.planner.options import PlannerOptions
from stagecoach.planner.planning import plan_query
from stagecoach.planner.render.fragment import render_fragment
from tests.infra.chunk_query_cases import COLUMNS, QueryCase, query_case

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

_CASES = int(os.environ.get("STAGECOACH_CHUNK_QUERIES", "40"))
_FIRST = int(os.environ.get("STAGECOACH_CHUNK_SEED", "0"))
_BATCH = 20
_PAST_WINDOWS = "org.apache.spark.sql.catalyst.optimizer.PushDownPredicates"


def our_rows(case: QueryCase, folder: Path, settings: EngineSettings, tasks: int) -> list[str]:
    """The rows of the query as our tasks give them, each task run here."""
    catalog = case.write(folder)
    graph = plan_query(case.query("m"), catalog, PlannerOptions(force_distribution=tasks > 1))
    (stage,) = graph.stages
    snapshot = take_snapshot(catalog, ["m"])
    tiny = dataclasses.replace(settings, min_task_bytes=1, target_task_bytes=1)
    planned = build_specs(
        StageReads(graph, stage, snapshot, {}, {}),
        tiny,
        settings.open_store(),
        sql=render_fragment(stage, "duckdb", {}),
        fingerprint="f" * 64,
        parallelism=tasks,
    )
    rows: list[str] = []
    for spec in planned.specs:
        again = TaskSpec.from_dict(spec.to_dict())
        schema = output_schema(again.types)
        database = Resources(
            time_zone="UTC",
            memory_bytes=1 << 28,
            spill_dir=settings.spill_folder,
            directories=again.settings.directories,
        )
        with DuckDbEngine().run(
            Fragment.of(again.sql, list(again.inputs), schema), database
        ) as batches:  # type: ignore[arg-type]
            rows += [text(list(row.values())) for b in batches for row in b.to_pylist()]
    return sorted(rows)


def spark_rows(cases: list[QueryCase], folder: Path, spark: SparkSession) -> dict[int, list[str]]:
    """The rows of each case as Spark gives them, all in one query."""
    selects = []
    for case in cases:
        path = folder / f"all_{case.seed}.parquet"
        extra = [("write_", pa.int32()), ("position_", pa.int32())]
        schema = pa.schema([*((c, COLUMNS[c]) for c in case.names), *extra])
        pq.write_table(pa.Table.from_pylist(case.all_rows(), schema=schema), path)
        spark.read.parquet(str(path)).createOrReplaceTempView(f"all_{case.seed}")
        columns = dict.fromkeys(COLUMNS, "NULL") | {c: c for c in case.columns}
        items = ", ".join(f"{value} AS o_{c}" for c, value in columns.items())
        inner = case.window_query(f"all_{case.seed}")
        selects.append(f"SELECT {case.seed} AS case_, {items} FROM ({inner})")
    found: dict[int, list[str]] = {case.seed: [] for case in cases}
    wanted = {case.seed: [f"o_{c}" for c in case.columns] for case in cases}
    table = spark.sql(" UNION ALL ".join(selects)).toArrow()
    for row in table.to_pylist():
        found[row["case_"]].append(text([row[c] for c in wanted[row["case_"]]]))
    return {seed: sorted(rows) for seed, rows in found.items()}


def text(values: list[Any]) -> str:
    """A row as text that tells zeros of both signs apart, and NaN from nothing."""
    return repr([_plain(v) for v in values])


def _plain(value: Any) -> Any:
    if isinstance(value, float) and math.isnan(value):
        return "NaN"
    return value.timestamp() if hasattr(value, "timestamp") else value


@pytest.fixture
def plain_spark(spark: SparkSession) -> Iterator[SparkSession]:
    """Spark without what pays for large data only: generated code, adaptive plans, partitions."""
    plain = {
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.shuffle.partitions": "1",
        # A file whose dictionary has 0.0 is left out by Spark where `= -0.0` is asked for, though
        # that is true of 0.0.
        "spark.sql.parquet.filterPushdown": "false",
        # It takes a filter on a key below the window, also one that tells zeros of both signs apart,
        # which are one key to the window: then rows are filtered that others should have hidden.
        "spark.sql.optimizer.excludedRules": _PAST_WINDOWS,
    }
    before: dict[str, str | None] = {name: spark.conf.get(name, None) for name in plain}
    for name, value in plain.items():
        spark.conf.set(name, value)
    yield spark
    for name, old in before.items():
        if old is None:
            spark.conf.unset(name)
        else:
            spark.conf.set(name, old)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("batch", range(math.ceil(_CASES / _BATCH)))
def test_queries_give_sparks_rows(
    batch: int,
    tmp_path: Path,
    plain_spark: SparkSession,
    spark_settings: EngineSettings,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # What is large in earnest is small here: row groups, what tasks share by ranges or by hash.
    monkeypatch.setattr(writer, "ROW_GROUP_ROWS", 3)
    monkeypatch.setattr(slices, "RANGE_BYTES", 1000 + 500 * (batch % 4))
    monkeypatch.setattr(slices, "SHARE_BYTES", 2000 + 2000 * (batch % 2))
    settings = dataclasses.replace(spark_settings, storage_root=str(tmp_path / "store"))
    first = _FIRST + batch * _BATCH
    cases = [query_case(seed) for seed in range(first, min(first + _BATCH, _FIRST + _CASES))]
    expected = spark_rows(cases, tmp_path, plain_spark)
    for case in cases:
        tasks = 1 + case.seed % 3
        found = our_rows(case, tmp_path / str(case.seed), settings, tasks)
        assert found == expected[case.seed], case
