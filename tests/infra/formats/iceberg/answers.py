"""Rows of queries over Iceberg tables, from stages that run in this process."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from stagecoach.infra.catalog.catalog import FileCatalog, load_catalog
from stagecoach.infra.config.settings import EngineSettings
from stagecoach.infra.shuffle.reader import read_table
from stagecoach.infra.storage.object_store import StorageOptions
from stagecoach.planner.options import PlannerOptions
from stagecoach.planner.planning import plan_query
from tests.infra.stage_runs import StageRun, run_here

FORCED = PlannerOptions(force_distribution=True, num_partitions=3, inline_bytes=0)


def catalog_of(
    folder: Path, options: StorageOptions | None = None, **locations: str
) -> FileCatalog:
    """A catalog of tables by their metadata files."""
    text = "tables:\n" + "".join(
        f"  {name}:\n    format: iceberg\n    location: {json.dumps(location)}\n"
        for name, location in locations.items()
    )
    path = folder / f"catalog-{uuid.uuid4().hex[:8]}.yaml"
    path.write_text(text)
    return load_catalog(path, options)


def run(
    catalog: FileCatalog,
    sql: str,
    folder: Path,
    options: PlannerOptions | None = None,
    **settings: Any,
) -> tuple[list[dict[str, Any]], Sequence[StageRun]]:
    """The rows of a query under the names of its columns, and its stages."""
    given = EngineSettings(
        storage_root=str(folder / "stores" / uuid.uuid4().hex),
        spill_dir=str(folder / "spill"),
        parallelism=2,
        **settings,
    )
    store = given.open_store()
    graph = plan_query(sql, catalog, options or PlannerOptions(), name=f"q{uuid.uuid4().hex[:8]}")
    assert {stage.engine for stage in graph.stages} == {"duckdb"}, graph.stages
    stages = run_here(graph, catalog, given, store)
    found = read_table(store, stages[-1].manifest)
    names = [field.name for field in graph.stages[-1].schema]
    return found.rename_columns(names).to_pylist(), stages


def rows(catalog: FileCatalog, sql: str, folder: Path, **settings: Any) -> list[dict[str, Any]]:
    """The rows of a query."""
    return run(catalog, sql, folder, **settings)[0]


def as_set(found: Sequence[Mapping[str, Any]]) -> list[str]:
    """Rows in an order of their own, to be compared whatever order they came in."""
    return sorted(repr(sorted(row.items())) for row in found)


def files_read(stages: Sequence[StageRun]) -> int:
    """How many files the first stage read."""
    return len({f.uri for spec in stages[0].specs for f in spec.inputs[0].file_rows})  # type: ignore[union-attr]
