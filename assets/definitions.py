"""The code location in one call: queries, a catalog and a storage root → `Definitions`.

In: a folder of queries, a catalog file. Out: an asset per stage, the base tables, a job
`run_<query>` per query, the resource `engine`. Spark is not started and no data is read, except for
the footers of the tables that the queries name.

A mistake in a query's SQL or front matter fails the code location, with all mistakes in one error:
Dagster then keeps the last good version and shows the message. A table whose *data* cannot be had
is the fault of the place, not of the code: its queries are shown as assets that cannot be
materialized, with the reason, and everything else works.
"""

import logging
from collections.abc import Callable, Sequence
from pathlib import Path

import dagster as dg

from assets.executor import AssetJob, stagecoach_threads
from assets.factory import ENGINE_RESOURCE, build_assets, build_job
from assets.parameters import declared_parameters
from assets.project import Project, ProjectError, Query, find_clashes, load_project
from assets.resources import EngineResource
from assets.specs import (
    PlannedQuery,
    build_stage_specs,
    build_table_specs,
    check_keys,
    read_tables,
)
from assets.translator import StageTranslator
from infra.catalog.catalog import load_catalog
from infra.errors import StorageError
from infra.settings import EngineSettings
from planner import plan_query
from planner.catalog import Catalog, TableInfo
from planner.errors import CatalogError, StagecoachError
from planner.options import PlannerOptions
from planner.stages import StageGraph

logger = logging.getLogger(__name__)

PlanQuery = Callable[[Query, Catalog], StageGraph]


def build_definitions(
    *,
    queries: Project | Path | str,
    catalog: Path | str,
    storage: Path | str | None = None,
    translator: StageTranslator | None = None,
    options: PlannerOptions | None = None,
    engine: "EngineResource | dg.ResourceDefinition | None" = None,
    plan: PlanQuery | None = None,
    missing_data_hint: str = "",
) -> dg.Definitions:
    """Everything that Dagster needs to know of a project.

    Args:
        queries: The project, or the folder of its `*.sql` files.
        catalog: The catalog file (`catalog.yaml`).
        storage: Root of shuffles and results, a folder or URL; the settings' own if not given.
        translator: How stages look in Dagster; override a method of `StageTranslator` to change it.
        options: Knobs of the planner.
        engine: What runs stages; by default an `EngineResource` for this catalog and storage.
        plan: How a query gets its plan; plans it anew by default.
        missing_data_hint: What to do where a table's data cannot be had, for the message.

    Raises:
        ProjectError: Names clash, or SQL or front matter has mistakes; all are listed.
        CatalogError: The catalog file itself cannot be used.
    """
    translator = translator or StageTranslator()
    engine = engine or EngineResource(
        catalog=str(catalog), storage_root=str(storage) if storage is not None else ""
    )
    settings = engine.engine_settings() if isinstance(engine, EngineResource) else EngineSettings()
    tables = load_catalog(catalog, settings.storage_options)
    project = queries if isinstance(queries, Project) else load_project(queries)
    if clashes := find_clashes(project.queries, tables.table_names()):
        raise ProjectError("\n  ".join([f"{len(clashes)} name clash(es):", *clashes]))
    plans, blocked = _plan_all(
        project, tables, plan or _planner(options or PlannerOptions(time_zone=settings.time_zone))
    )
    if blocked:
        hint = f" {missing_data_hint}" if missing_data_hint else ""
        names = ", ".join(query.name for query, _ in blocked)
        logger.error("no stages for %s: %s.%s", names, blocked[0][1].rstrip("."), hint)
        blocked = [(query, f"{reason.rstrip('.')}.{hint}") for query, reason in blocked]
    return _definitions(plans, blocked, tables, translator, engine)


def _planner(options: PlannerOptions) -> PlanQuery:
    def plan(query: Query, catalog: Catalog) -> StageGraph:
        parameters = declared_parameters(query.front_matter, options.time_zone)
        return plan_query(query.sql, catalog, options, name=query.name, parameters=parameters)

    return plan


def _plan_all(
    project: Project, catalog: Catalog, plan: PlanQuery
) -> tuple[list[PlannedQuery], list[tuple[Query, str]]]:
    """The plans, and the queries that have none because of their tables' data, with the reason."""
    plans: list[PlannedQuery] = []
    blocked: list[tuple[Query, str]] = []
    mistakes: list[str] = []
    for query in project.queries:
        try:
            plans.append(PlannedQuery(query=query, graph=plan(query, catalog)))
        except (CatalogError, StorageError) as error:
            blocked.append((query, str(error)))
        except StagecoachError as error:
            mistakes.append(f"{query.source}: {error}")
    if mistakes:
        raise ProjectError("\n  ".join([f"{len(mistakes)} query(ies) with mistakes:", *mistakes]))
    return plans, blocked


def _definitions(
    plans: Sequence[PlannedQuery],
    blocked: Sequence[tuple[Query, str]],
    catalog: Catalog,
    translator: StageTranslator,
    engine: "EngineResource | dg.ResourceDefinition",
) -> dg.Definitions:
    stages = [(planned, build_stage_specs(planned, translator)) for planned in plans]
    tables = build_table_specs(
        [_with_statistics(t, catalog) for t in read_tables(plans)], translator
    )
    missing = [(query, _blocked_spec(query, reason)) for query, reason in blocked]
    check_keys(
        [
            *((spec.key, item.query.source) for item, specs in stages for _, spec in specs),
            *((spec.key, "a table of the catalog") for spec in tables),
            *((spec.key, query.source) for query, spec in missing),
        ]
    )
    assets: list[dg.AssetsDefinition] = []
    jobs: list[AssetJob] = []
    for planned, specs in stages:
        made = build_assets(planned, specs)
        assets += made
        jobs.append(build_job(planned, made))
    return dg.Definitions(
        assets=[*assets, *tables, *(spec for _, spec in missing)],
        jobs=jobs,
        resources={ENGINE_RESOURCE: engine},
        # Also for runs that "Materialize" starts in the UI, which belong to no job of ours.
        executor=stagecoach_threads,
    )


def _with_statistics(table: TableInfo, catalog: Catalog) -> TableInfo:
    """The table as the catalog has it now, else as it was planned for."""
    try:
        return catalog.table(table.name) or table
    except (CatalogError, StorageError):
        return table


def _blocked_spec(query: Query, reason: str) -> dg.AssetSpec:
    return dg.AssetSpec(
        key=dg.AssetKey([query.name]),
        group_name=query.name,
        owners=query.front_matter.owners,
        tags=query.front_matter.tags,
        description=f"⚠ not planned: {reason}\n\n{query.front_matter.description}".strip(),
        metadata={"stagecoach/problem": reason},
    )
