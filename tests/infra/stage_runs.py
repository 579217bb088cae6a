"""A stage graph run task by task in this process: no Spark, but all of the runtime below it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from stagecoach.infra.catalog.catalog import FileCatalog
from stagecoach.infra.config.settings import EngineSettings
from stagecoach.infra.formats.snapshot import take_snapshot
from stagecoach.infra.runtime.adaptive.decision import Decision
from stagecoach.infra.runtime.planning.plan_tasks import (
    StageReads,
    build_specs,
    output_partitioning,
)
from stagecoach.infra.shuffle.commit import commit_manifest
from stagecoach.infra.shuffle.manifest import Manifest
from stagecoach.infra.storage.object_store import ObjectStore
from stagecoach.infra.worker.reports import TaskReport
from stagecoach.infra.worker.spec import TaskSpec
from stagecoach.infra.worker.task import output_schema, run_task
from stagecoach.planner.plan.stages import Stage, StageGraph
from stagecoach.planner.render.fragment import render_fragment
from stagecoach.planner.staging.row_states import passed_through


@dataclass(frozen=True)
class StageRun:
    """What a stage came to."""

    manifest: Manifest
    specs: tuple[TaskSpec, ...]
    decisions: tuple[Decision, ...]
    reports: tuple[TaskReport, ...] = ()


def run_here(
    graph: StageGraph, catalog: FileCatalog, settings: EngineSettings, store: ObjectStore
) -> Sequence[StageRun]:
    """All stages of a graph, each of which is planned for a task engine."""
    snapshot = take_snapshot(catalog, sorted(name for name, _ in graph.tables))
    done: list[StageRun] = []
    for stage in graph.stages:
        types = tuple(f.dtype for f in stage.schema)
        rows = passed_through(stage)
        planned = build_specs(
            StageReads(graph, stage, snapshot, {i: done[i].manifest for i in stage.inputs}, {}),
            settings,
            store,
            sql=render_fragment(stage, stage.engine, {}),
            fingerprint=_fingerprint(stage, settings),
            parallelism=settings.parallelism,
            row_sql=None if rows is None else render_fragment(rows, stage.engine, {}),
        )
        # As plain data, as tasks travel.
        specs = [TaskSpec.from_dict(json.loads(json.dumps(s.to_dict()))) for s in planned.specs]
        reports = [run_task(spec) for spec in specs]
        for report in reports:
            assert report.failure is None, report.failure
        manifest = commit_manifest(
            store,
            specs[0].fingerprint,
            [report.file for report in reports if report.file is not None],
            plan_hash=stage.plan_hash,
            query=graph.query,
            stage_id=stage.stage_id,
            engine=stage.engine,
            schema=output_schema(types),
            partitioning=output_partitioning(stage),
            codec=settings.codec,
            created_at="2026-01-01T00:00:00Z",
        )
        done.append(StageRun(manifest, tuple(specs), planned.decisions, tuple(reports)))
    return done


def _fingerprint(stage: Stage, settings: EngineSettings) -> str:
    return f"{stage.stage_id:02x}{int(settings.adaptive):02x}{stage.plan_hash[:60]}"
