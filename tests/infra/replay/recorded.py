"""Runs as they are in storage when they have ended, made task by task in this process."""

from __future__ import annotations

from collections.abc import Mapping

from stagecoach.infra.catalog.catalog import FileCatalog
from stagecoach.infra.config.settings import EngineSettings
from stagecoach.infra.formats.snapshot import take_snapshot
from stagecoach.infra.runtime.records.pointers import StagePointer, write_pointer
from stagecoach.infra.runtime.records.run_marks import mark_begun, mark_ended
from stagecoach.infra.runtime.records.run_plan import RunPlan, write_run_plan
from stagecoach.infra.shuffle.manifest import Manifest
from stagecoach.infra.storage import layout
from stagecoach.infra.storage.object_store import ObjectStore
from stagecoach.planner.plan.expressions import Literal
from stagecoach.planner.plan.stages import StageGraph
from tests.infra.stage_runs import run_here


def record_run(
    graph: StageGraph,
    catalog: FileCatalog,
    settings: EngineSettings,
    store: ObjectStore,
    run_id: str,
    parameters: Mapping[str, Literal] | None = None,
) -> list[Manifest]:
    """Run a graph without parameters and leave what a run leaves."""
    mark_begun(store, run_id, run_id)
    write_run_plan(store, run_id, RunPlan(graph, parameters or {}))
    snapshot = take_snapshot(catalog, sorted(name for name, _ in graph.tables))
    store.write_bytes(layout.run_snapshot(run_id), snapshot.to_json())
    manifests = [done.manifest for done in run_here(graph, catalog, settings, store)]
    for stage, manifest in zip(graph.stages, manifests, strict=True):
        point_to(graph, store, run_id, stage.stage_id, manifest)
    mark_ended(store, run_id, run_id)
    return manifests


def point_to(
    graph: StageGraph, store: ObjectStore, run_id: str, stage_id: int, manifest: Manifest
) -> None:
    """Say that a stage of a run came to this commit."""
    fields = graph.result if graph.stages[stage_id] is graph.head else ()
    pointer = StagePointer(
        expected=manifest.fingerprint,
        fingerprint=manifest.fingerprint,
        manifest_hash=manifest.manifest_hash,
        columns=tuple((f.name, str(f.dtype)) for f in fields),
        engine=manifest.engine,
        content=manifest.content_hash,
        plan=graph.plan_hash,
    )
    write_pointer(store, run_id, stage_id, pointer)
