"""Stage graphs run as runs are: shuffles in storage, decisions by sizes, stages committed."""

from __future__ import annotations

import random
import tempfile
from typing import TYPE_CHECKING, get_args

from benchmarks.faults.local_runs import tasks_here
from stagecoach.infra.catalog.catalog import load_catalog
from stagecoach.infra.config.settings import AdaptiveKind, EngineSettings, load_configuration
from stagecoach.infra.runtime.stages.run_stage import read_result, run_stage
from stagecoach.infra.worker.task import output_schema
from stagecoach.planner.plan.stages import StageGraph
from tests.differential.edge_tables import EdgeTables
from tests.infra.spark_runs import new_run

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

_MB = 1 << 20


def random_settings(seed: int, storage_root: str, master: str) -> EngineSettings:
    """Settings that a seed chooses: many tasks or few, most decisions, buffers of any size."""
    rng = random.Random(f"settings {seed}")
    values = {
        "storage_root": storage_root,
        "master": master,
        "parallelism": rng.choice((1, 2, 5)),
        "memory_bytes": 256 * _MB,
        "min_task_bytes": rng.choice((0, 1)),
        "target_task_bytes": rng.choice((2048, 1 << 30)),
        "writer_memory_bytes": rng.choice((1, 256 * _MB)),
        "reader_memory_bytes": rng.choice((1, 128 * _MB)),
        "broadcast_cache_bytes": rng.choice((0, 128 * _MB)),
        "skew_bytes": rng.choice((0, 2048)),
        "skew_factor": rng.choice((0.0, 1.5, 4.0)),
        "late_broadcast_bytes": rng.choice((0, 2048, 16 * _MB)),
        "passing_share": rng.choice((0.0, 0.8, 2.0)),
        "codec": rng.choice(("none", "lz4", "zstd")),
    }
    values |= {f"adaptive_{kind}": rng.random() > 0.15 for kind in get_args(AdaptiveKind)}
    return load_configuration(environment={}, overrides=values).engine


class StoredRunner:
    """Runs stage graphs over the tables; tasks of DuckDB stages run in this process.

    Args:
        tables: What scans read.
        spark: Runs the Spark stages.
    """

    def __init__(self, tables: EdgeTables, spark: SparkSession) -> None:
        self._spark = spark
        self._master = spark.sparkContext.master or ""
        file = tables.folder / "catalog.yaml"
        lines = (f"  {name}: {{location: {name}}}\n" for name in tables.files)
        file.write_text(f"tables:\n{''.join(lines)}", encoding="utf-8")
        self._catalog = load_catalog(file)

    def run(self, graph: StageGraph, seed: int) -> tuple[pa.Table, str]:
        """The result, its columns named by position, and which stages fell back to Spark.

        Args:
            graph: The planned query.
            seed: Of the settings.

        Raises:
            QueryFailedError: Spark refuses the query, too.
        """
        with (
            tempfile.TemporaryDirectory(prefix="stagecoach-random-") as folder,
            tasks_here(),
        ):
            settings = random_settings(seed, folder, self._master)
            run = new_run(graph, self._catalog, settings, self._spark)
            results = [run_stage(stage.stage_id, run) for stage in graph.stages]
            found = read_result(run)
        fallen = [
            str(stage.stage_id)
            for stage, result in zip(graph.stages, results, strict=True)
            if result.manifest is None or result.manifest.engine != stage.engine
        ]
        schema = output_schema(tuple(field.dtype for field in graph.head.schema))
        late = f"on Spark: stages {', '.join(fallen)}" if fallen else ""
        return found.rename_columns(schema.names), late
