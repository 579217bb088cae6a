"""Runs of planned queries, and their results."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stagecoach.infra.config.settings import EngineSettings
from stagecoach.infra.runtime.stages.run_stage import (
    Run,
    StageResult,
    read_result,
    run_stage,
)

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

    from stagecoach.infra.formats.snapshot import SnapshotSource
    from stagecoach.planner.plan.stages import StageGraph


def small_settings(folder: Path) -> EngineSettings:
    """Settings with which small tables are read by two tasks, and everything is kept in a folder."""
    return EngineSettings(
        storage_root=str(folder / "store"),
        spill_dir=str(folder / "spill"),
        parallelism=2,
        memory_bytes=256 << 20,
        min_task_bytes=0,
    )


def new_context(
    graph: StageGraph,
    settings: EngineSettings,
    catalog: SnapshotSource,
    spark: Callable[[], SparkSession],
    /,
    **changes: Any,
) -> Run:
    """A run of its own; `changes` of any field, by default its store is that of the settings."""
    run = f"run-{uuid.uuid4().hex[:12]}"
    base = Run(
        graph=graph,
        run_id=run,
        root_run_id=run,
        settings=settings,
        store=changes.get("store") or settings.open_store(),
        catalog=catalog,
        spark=spark,
    )
    return replace(base, **changes)


def run_stages(context: Run) -> tuple[pa.Table, list[StageResult]]:
    """Run all stages in order; the result and how each stage ended."""
    results = [run_stage(stage.stage_id, context) for stage in context.graph.stages]
    return read_result(context), results
