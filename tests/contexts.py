"""Runs of planned queries, and their results."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from stagecoach.infra.runtime.stages.run_stage import (
    Run,
    StageResult,
    read_result,
    run_stage,
)

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

    from stagecoach.infra.config.settings import EngineSettings
    from stagecoach.infra.formats.snapshot import SnapshotSource
    from stagecoach.planner.plan.stages import StageGraph


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
