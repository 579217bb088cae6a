"""Runs of planned queries: in, a graph and where it runs; out, its context and its result."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from infra.runtime.stage import StageContext, StageResult, read_result, run_stage

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

    from infra.catalog.snapshot import SnapshotSource
    from infra.settings import EngineSettings
    from planner.stages import StageGraph


def new_context(
    graph: StageGraph,
    settings: EngineSettings,
    catalog: SnapshotSource,
    spark: Callable[[], SparkSession],
    /,
    **changes: Any,
) -> StageContext:
    """A run of its own; `changes` of any field, by default its store is that of the settings."""
    run = f"run-{uuid.uuid4().hex[:12]}"
    base = StageContext(
        graph=graph,
        run_id=run,
        root_run_id=run,
        settings=settings,
        store=changes.get("store") or settings.open_store(),
        catalog=catalog,
        spark=spark,
    )
    return replace(base, **changes)


def run_stages(context: StageContext) -> tuple[pa.Table, list[StageResult]]:
    """Run all stages in order; the result and how each stage ended."""
    results = [run_stage(stage.stage_id, context) for stage in context.graph.stages]
    return read_result(context), results
