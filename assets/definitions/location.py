"""`build_definitions`: a code location from a folder of queries and a catalog file.

It has an asset for each stage, the base tables, a job `run_<query>` for each query and the resource
`engine`. Spark is not started, and nothing is read but the footers of tables that queries name.

A mistake in a query's SQL or front matter fails the code location, with all mistakes in one error:
Dagster then keeps the last good version and shows the message. A table whose *data* cannot be had
is the fault of the place, not of the code: its queries are shown as assets that cannot be
materialized, with the reason, and everything else works.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import dagster as dg

from stagecoach.assets.automation.base_tables import base_table_sensor
from stagecoach.assets.automation.conditions import automation_sensor
from stagecoach.assets.automation.garbage_collection import (
    GarbageCollection,
    build_gc_job,
    build_gc_schedule,
)
from stagecoach.assets.automation.schedules import build_schedule
from stagecoach.assets.automation.verification import (
    StorageVerification,
    build_verify_job,
    build_verify_schedule,
)
from stagecoach.assets.definitions.checks import build_checks
from stagecoach.assets.definitions.collector import leave_out, young_objects_only
from stagecoach.assets.definitions.factory import ENGINE_RESOURCE, build_job
from stagecoach.assets.definitions.specs import (
    build_table_specs,
    check_keys,
    read_tables,
)
from stagecoach.assets.definitions.stage_layouts import LAYOUTS, StageLayout
from stagecoach.assets.definitions.translator import StageProps, StageTranslator
from stagecoach.assets.execution.audit import Audit
from stagecoach.assets.execution.executor import AssetJob, stagecoach_threads
from stagecoach.assets.execution.policy import execution_policy
from stagecoach.assets.execution.resources import EngineResource
from stagecoach.assets.plans.compiled import CompiledPlans
from stagecoach.assets.plans.pinned import PinnedPlans
from stagecoach.assets.plans.planned import PlannedQuery, PlanQuery
from stagecoach.assets.plans.planner import DecidedByRun, planner_of
from stagecoach.assets.plans.planning import PlannedProject, plan_project
from stagecoach.assets.project.dependencies import order_queries
from stagecoach.assets.project.front_matter import StagesAs
from stagecoach.assets.project.queries import (
    Project,
    ProjectError,
    Query,
    find_clashes,
    load_project,
)
from stagecoach.infra.catalog.catalog import FileCatalog, load_catalog
from stagecoach.infra.config.settings import load_configuration
from stagecoach.infra.errors import StorageError
from stagecoach.planner.catalog import Catalog, MappingCatalog, TableInfo
from stagecoach.planner.engines.registry import SPARK
from stagecoach.planner.errors import CatalogError
from stagecoach.planner.options import PlannerOptions
from stagecoach.planner.plan.physical import OneRowExec
from stagecoach.planner.plan.stages import Branch, Stage, StageGraph, StageOutput

# It imports numpy and more, which loading a code location need not wait for.
if TYPE_CHECKING:
    from stagecoach.infra.formats.protocol import Table

logger = logging.getLogger(__name__)


@young_objects_only()
def build_definitions(
    *,
    queries: Project | Path | str,
    catalog: Path | str,
    storage: Path | str | None = None,
    plans: Path | str | None = None,
    translator: StageTranslator | None = None,
    options: PlannerOptions | None = None,
    engine: "EngineResource | dg.ResourceDefinition | None" = None,
    plan: PlanQuery | None = None,
    schedules_run: bool = True,
    missing_data_hint: str = "",
    stages: StagesAs = "assets",
    audit: bool = True,
    gc: GarbageCollection | None = None,
    verify: StorageVerification | None = None,
    executor: dg.ExecutorDefinition | None = None,
) -> dg.Definitions:
    """Everything that Dagster needs to know of a project.

    Args:
        queries: The project, or the folder of its `*.sql` files.
        catalog: The catalog file (`catalog.yaml`).
        storage: Root of shuffles and results, a folder or URL; the settings' own if not given.
        plans: Folder of compiled plans; a query whose plan is there and is of its present text is
            not planned, and its tables are not looked at.
        translator: How stages look in Dagster; override a method of `StageTranslator` to change it.
        options: Knobs of the planner; as the settings of `engine` say if not given.
        engine: What runs stages; by default an `EngineResource` for this catalog and storage.
        plan: How a query gets its plan. By default a plan is kept in the storage and used until
            the query, the columns of its tables or their magnitude change.
        schedules_run: Whether schedules and automation run before anybody has turned them on.
        missing_data_hint: What to do where a table's data cannot be had, for the message.
        stages: Whether stages are assets of their own, or ops of their query's asset, where the
            front matter of a query does not say.
        audit: Whether results are published only after their blocking checks have passed, where
            the front matter of a query does not say.
        gc: When garbage is collected in the storage root, by a job with a schedule; None: never.
        verify: When all that is stored is verified, by a job with a schedule; None: never.
        executor: What runs the steps of a run; by default threads of its process, over one Spark
            session. One that starts processes or pods needs a `remote` Spark.

    Raises:
        ProjectError: Names clash, queries depend on each other in a circle, or SQL or front matter
            has mistakes; all are listed.
        CatalogError: The catalog file itself cannot be used.
    """
    translator = translator or StageTranslator()
    engine = engine or EngineResource(
        catalog=str(catalog), storage_root=str(storage) if storage is not None else ""
    )
    if isinstance(engine, EngineResource):
        found = engine.configuration()
    else:
        found = load_configuration(overrides={} if storage is None else {"storage_root": storage})
    settings, options = found.engine, options or found.planner
    tables = load_catalog(catalog, settings.storage_options)
    project = (
        queries if isinstance(queries, Project) else load_project(queries, macros=tables.macros)
    )
    if clashes := find_clashes(project.queries, tables.table_names()):
        raise ProjectError("\n  ".join([f"{len(clashes)} name clash(es):", *clashes]))
    if plan is None:
        plan = PinnedPlans(planner_of(options, DecidedByRun()), settings.open_store(), options)
    if plans is None:
        planned = plan_project(
            order_queries(project.queries), tables, plan, comments_of=partial(_comments, tables)
        )
    else:
        compiled = CompiledPlans(plan, Path(plans))
        order = order_queries(project.queries, compiled.reads)
        planned = plan_project(
            order, tables, compiled, compiled.is_compiled, partial(_comments, tables)
        )
    if planned.mistakes:
        head = f"{len(planned.mistakes)} mistake(s) in queries:"
        raise ProjectError("\n  ".join([head, *planned.mistakes]))
    if planned.blocked:
        names = ", ".join(query.name for query, _ in planned.blocked)
        reason = planned.blocked[0][1].rstrip(".")
        logger.error("no stages for %s: %s. %s", names, reason, missing_data_hint)
    # With compiled plans no table is looked at, not even for how many rows it has.
    catalog_now = tables if plans is None else MappingCatalog(())
    build = _Builder(
        planned, catalog_now, tables, translator, engine, missing_data_hint, stages, audit
    )
    definitions = build.definitions(
        schedules_run=schedules_run,
        gc=gc,
        verify=verify,
        executor=executor or stagecoach_threads,
    )
    leave_out(sum(len(item.graph.stages) for item in planned.queries))
    return definitions


class _Builder:
    """Definitions of one planned project."""

    def __init__(
        self,
        planned: PlannedProject,
        catalog: Catalog,
        listing: FileCatalog,
        translator: StageTranslator,
        engine: "EngineResource | dg.ResourceDefinition",
        hint: str,
        stages: StagesAs,
        audits: bool,
    ) -> None:
        self._planned = planned
        self._catalog = catalog
        self._listing = listing
        self._translator = translator
        self._engine = engine
        self._hint = hint
        self._stages = stages
        self._audits = audits
        self._makers = {item.query.table.lower(): item for item in planned.queries}

    def definitions(
        self,
        *,
        schedules_run: bool,
        gc: GarbageCollection | None,
        verify: StorageVerification | None,
        executor: dg.ExecutorDefinition,
    ) -> dg.Definitions:
        """All of them."""
        specs = [
            (item, self._layout(item).specs(item, self._translator, self._makers))
            for item in self._planned.queries
        ]
        tables = build_table_specs(
            [self._shown_table(table) for table in read_tables(self._planned.queries)],
            self._translator,
        )
        missing = [
            (query, _blocked_spec(query, reason, self._hint, self._translator))
            for query, reason in self._planned.blocked
        ]
        base_tables = self._listing.open_all()
        compactions, compaction_jobs = _compactions(base_tables, self._translator)
        check_keys(
            [
                *((asset.key, f"compaction of '{asset.key.path[0]}'") for asset in compactions),
                *((spec.key, item.query.source) for item, found in specs for _, spec in found),
                *((spec.key, "a table of the catalog") for spec in tables),
                *((spec.key, query.source) for query, spec in missing),
            ]
        )
        assets: list[dg.AssetsDefinition] = []
        checks: list[dg.AssetChecksDefinition] = []
        jobs: list[AssetJob] = []
        schedules: list[dg.ScheduleDefinition] = []
        status = dg.DefaultScheduleStatus.RUNNING if schedules_run else _STOPPED
        for item, found in specs:
            policy = execution_policy(item.query.front_matter)
            audit = self._audit(item)
            made = self._layout(item).assets(item, found, policy, audit)
            after = () if audit is not None else self._planned.checks.get(item.query.name, ())
            own = build_checks(item.query, found[-1][1].key, after)
            job = build_job(item, made, [own] if own else [], executor)
            assets += made
            checks += [own] if own else []
            jobs.append(job)
            if (schedule := build_schedule(item.query, job, status=status)) is not None:
                schedules.append(schedule)
        upkeep: list[dg.JobDefinition] = []
        if gc is not None:
            upkeep.append(build_gc_job(gc, base_tables))
            schedules.append(build_gc_schedule(gc, upkeep[-1], status=status))
        if verify is not None:
            upkeep.append(build_verify_job(base_tables))
            schedules.append(build_verify_schedule(verify, upkeep[-1], status=status))
        return dg.Definitions(
            assets=[*assets, *tables, *compactions, *(spec for _, spec in missing)],
            asset_checks=checks,
            jobs=[*jobs, *compaction_jobs, *upkeep],
            schedules=schedules,
            sensors=self._sensors(specs, running=schedules_run),
            resources={ENGINE_RESOURCE: self._engine},
            # Also for runs that "Materialize" starts in the UI, which belong to no job of ours.
            executor=executor,
        )

    def _layout(self, item: PlannedQuery) -> StageLayout:
        """How the stages of a query appear."""
        return LAYOUTS[item.query.front_matter.stages or self._stages]

    def _audit(self, item: PlannedQuery) -> Audit | None:
        """What the result of a query must pass to be published; None to publish it at once."""
        checks = self._planned.checks.get(item.query.name, ())
        is_audited = item.publishes and item.query.front_matter.is_audited(self._audits)
        return Audit(query=item.query, checks=checks) if is_audited and checks else None

    def _shown_table(self, table: TableInfo) -> TableInfo:
        """A base table as its asset shows it; what is declared of its columns needs no data."""
        found = _with_statistics(table, self._catalog)
        declared = table.name.lower() in {name.lower() for name in self._listing.table_names()}
        return replace(found, notes=self._listing.notes(table.name)) if declared else found

    def _sensors(
        self,
        specs: Sequence[tuple[PlannedQuery, Sequence[tuple[Stage, dg.AssetSpec]]]],
        *,
        running: bool,
    ) -> list[dg.SensorDefinition]:
        automated = [s for _, found in specs for _, s in found if s.automation_condition]
        if not automated:
            return []
        status = dg.DefaultSensorStatus.RUNNING if running else dg.DefaultSensorStatus.STOPPED
        read = {dep.asset_key for spec in automated for dep in spec.deps}
        names = [table.name for table in read_tables(self._planned.queries)]
        keys = {name: self._translator.get_table_key(name) for name in names}
        base = {name: key for name, key in keys.items() if key in read}
        triggers = [base_table_sensor(base, self._listing, status=status)] if base else []
        return [automation_sensor([s.key for s in automated], status=status), *triggers]


def _compactions(
    tables: "Sequence[Table]", translator: StageTranslator
) -> tuple[Sequence[dg.AssetsDefinition], Sequence[AssetJob]]:
    """An asset and a job for each table that can be compacted."""
    compacted = [found for table in tables if (found := table.compacts()) is not None]
    if not compacted:
        return (), ()
    from stagecoach.assets.definitions.compaction import build_compaction_jobs, build_compactions

    assets = build_compactions(compacted, translator)
    return assets, build_compaction_jobs(compacted, assets)


_STOPPED = dg.DefaultScheduleStatus.STOPPED


def _comments(catalog: FileCatalog, table: str) -> Mapping[str, str]:
    """Comments of a base table's columns; none of a table that the catalog does not have."""
    if table.lower() not in {name.lower() for name in catalog.table_names()}:
        return {}
    return {name: note.comment for name, note in catalog.notes(table).items() if note.comment}


def _with_statistics(table: TableInfo, catalog: Catalog) -> TableInfo:
    """The table as the catalog has it now, else as it was planned for."""
    try:
        return catalog.table(table.name) or table
    except (CatalogError, StorageError):
        return table


def _blocked_spec(
    query: Query, reason: str, hint: str, translator: StageTranslator
) -> dg.AssetSpec:
    """An asset in the place of the query's result, under the key that this will have."""
    reason = " ".join([f"{reason.rstrip('.')}.", *([hint] if hint else [])])
    head = Stage(
        stage_id=0,
        title="not planned",
        fragment=OneRowExec(),
        branches=(Branch("single", ()),),
        output=StageOutput("gather"),
        schema=(),
        engine=SPARK,
        engine_reason=reason,
        sql=query.sql,
    )
    graph = StageGraph(query=query.name, sql=query.sql, stages=(head,), result=())
    props = StageProps.head_of(PlannedQuery(query=query, graph=graph, publishes=True))
    return dg.AssetSpec(
        key=translator.get_asset_key(props),
        group_name=translator.get_group_name(props),
        owners=translator.get_owners(props),
        tags=translator.get_tags(props),
        description=f"⚠ not planned: {reason}\n\n{query.front_matter.description}".strip(),
        metadata={"stagecoach/problem": reason},
    )
