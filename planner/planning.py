"""The planner's front door: all phases in order.

In: SQL text, a catalog, options, declared parameters. Out: a `StageGraph`, or the plan after
one phase. What cannot be staged becomes one Spark stage, with the reason.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

from sqlglot import exp

from planner.build import BuiltQuery, build_logical
from planner.build.places import located
from planner.catalog import Catalog, TableInfo
from planner.cut import SharedSource, cut_into_stages
from planner.deadline import deadline
from planner.deep_stack import on_deep_stack, run_deep
from planner.distribution import distribute, distribute_shared, fits_one_task
from planner.errors import AnalysisError, PlanningTimeoutError, UnsupportedSqlError
from planner.estimates import Estimator
from planner.logical import LogicalPlan
from planner.lower import Lowering
from planner.optimizer.context import RuleContext, first_free_id
from planner.optimizer.shared_plans import optimize_shared
from planner.options import PlannerOptions, PlanPhase
from planner.parse import is_deterministic, parse_query, position, table_names
from planner.physical import OneRowExec, PhysicalPlan
from planner.shared import SharedPlan
from planner.sql.limits import TOO_DEEP as _TOO_DEEP
from planner.sql.limits import check_text
from planner.stages import Branch, ParameterSpec, Stage, StageGraph, StageOutput
from planner.types import DATE, TIMESTAMP, TIMESTAMP_NTZ, Field, to_arrow

DEFAULT_OPTIONS = PlannerOptions()
_CLOCK = (
    ParameterSpec("@now", TIMESTAMP),
    ParameterSpec("@date", DATE),
    ParameterSpec("@local", TIMESTAMP_NTZ),
)


@dataclass(frozen=True)
class _Planned:
    built: BuiltQuery
    optimized: LogicalPlan
    physical: PhysicalPlan
    lowering: Lowering
    shared: tuple[tuple[SharedPlan, PhysicalPlan], ...] = ()

    @cached_property
    def _one_task(self) -> bool:
        plans = [self.physical, *(plan for _, plan in self.shared)]
        return fits_one_task(plans, self.lowering.context)

    def distributed(self) -> PhysicalPlan:
        """The query's plan with exchanges."""
        context = self.lowering.context
        return distribute(self.physical, self.lowering, context, one_task=self._one_task)

    def shared_sources(self) -> tuple[SharedSource, ...]:
        """The shared subplans with exchanges."""
        sources = []
        for part, plan in self.shared:
            exchange = distribute_shared(
                plan, self.lowering, self.lowering.context, one_task=self._one_task
            )
            numbers = {name: column.id for name, column in part.columns.items()}
            sources.append(SharedSource(part.name, exchange, numbers))
        return tuple(sources)


def plan_query(
    sql: str,
    catalog: Catalog,
    options: PlannerOptions = DEFAULT_OPTIONS,
    *,
    name: str = "query",
    parameters: tuple[ParameterSpec, ...] = (),
) -> StageGraph:
    """The stage graph of a query.

    Args:
        sql: One SELECT in Spark's SQL.
        catalog: Where tables are looked up.
        options: Planner options.
        name: Name of the query.
        parameters: Declared parameters; every `:name` in the text must be among them.

    Raises:
        ParseError: For text that is not one query.
        ForbiddenSqlError: For SQL that does more than read the catalog's tables.
        AnalysisError: For names or types that do not fit the catalog.
        CatalogError: For tables that cannot be read.
        UnsupportedSqlError: With `engine='duckdb'`, for what DuckDB is not proven to do.
        PlanningTimeoutError: Parsing took longer than `options.timeout_seconds`; with
            `engine='duckdb'` planning, too.
    """
    with deadline(options.timeout_seconds):
        query = parse_query(sql)
        try:
            return run_deep(lambda: _staged(sql, query, catalog, options, name, parameters))
        except UnsupportedSqlError as error:
            if options.engine == "duckdb":
                raise
            reason = error.message
        except RecursionError:
            if options.engine == "duckdb":
                line, column = position(query)
                raise UnsupportedSqlError(_TOO_DEEP, line=line, column=column) from None
            reason = _TOO_DEEP
        except PlanningTimeoutError as error:
            if options.engine == "duckdb":
                raise
            reason = str(error)
    # The tree was checked: it only reads tables. So Spark may have the text.
    return run_deep(lambda: _whole_query(sql, query, catalog, options, name, parameters, reason))


def _staged(
    sql: str,
    query: exp.Query,
    catalog: Catalog,
    options: PlannerOptions,
    name: str,
    parameters: tuple[ParameterSpec, ...],
) -> StageGraph:
    with located(query):
        planned = _plan(query, catalog, options, parameters)
        result = tuple(Field(c.name, c.dtype) for c in planned.built.plan.columns)
        for field in result:
            to_arrow(field.dtype)
        tables = {t.name: t for t in planned.built.tables}
        stages = cut_into_stages(
            planned.distributed(),
            tables,
            options,
            planned.lowering.size,
            planned.shared_sources(),
        )
        check_text(stages)
        for field in (f for stage in stages for f in stage.schema):
            to_arrow(field.dtype)  # what no exchange can carry, such as an interval of months
    if options.engine == "duckdb":
        _require_duckdb(stages, query)
    used = {p for stage in stages for p in stage.parameters}
    return StageGraph(
        query=name,
        sql=sql,
        stages=stages,
        result=result,
        parameters=tuple(p for p in (*parameters, *_CLOCK) if p in parameters or p.name in used),
        tables=tuple((t.name, t.columns) for t in planned.built.tables),
        time_zone=options.time_zone,
        ordered=planned.built.ordered,
    )


def plan_until(
    sql: str,
    catalog: Catalog,
    phase: PlanPhase,
    options: PlannerOptions = DEFAULT_OPTIONS,
    *,
    name: str = "query",
    parameters: tuple[ParameterSpec, ...] = (),
) -> LogicalPlan | PhysicalPlan | StageGraph:
    """The plan after one phase: `logical`, `optimized`, `physical` (with exchanges) or `stages`.

    Raises:
        UnsupportedSqlError: For a query that cannot be staged (but with `stages`).
        ParseError, AnalysisError, CatalogError: As `plan_query`.
    """
    if phase == "stages":
        return plan_query(sql, catalog, options, name=name, parameters=parameters)
    with deadline(options.timeout_seconds):
        return _plan_until(sql, catalog, phase, options, parameters)


@on_deep_stack
def _plan_until(
    sql: str,
    catalog: Catalog,
    phase: PlanPhase,
    options: PlannerOptions,
    parameters: tuple[ParameterSpec, ...],
) -> LogicalPlan | PhysicalPlan:
    planned = _plan(parse_query(sql), catalog, options, parameters)
    if phase == "logical":
        return planned.built.plan
    if phase == "optimized":
        return planned.optimized
    return planned.distributed()


@dataclass(frozen=True)
class PlanPhases:
    """A query after each phase, for `explain`.

    Args:
        graph: Its stages.
        plans: The logical, optimized and physical plan by phase; empty if it is not staged.
        reason: Why it is not, or None.
        sizes: Estimated rows and bytes of an operator of these plans, where it has an estimate.
    """

    graph: StageGraph
    plans: Mapping[PlanPhase, LogicalPlan | PhysicalPlan]
    reason: str | None
    sizes: Callable[[int, LogicalPlan | PhysicalPlan], tuple[float, float] | None]


@on_deep_stack
def plan_phases(
    sql: str,
    catalog: Catalog,
    options: PlannerOptions = DEFAULT_OPTIONS,
    *,
    name: str = "query",
    parameters: tuple[ParameterSpec, ...] = (),
) -> PlanPhases:
    """The plans of all phases of a query.

    Raises:
        ParseError, ForbiddenSqlError, AnalysisError, CatalogError, UnsupportedSqlError: As
            `plan_query`.
    """
    graph = plan_query(sql, catalog, options, name=name, parameters=parameters)
    if graph.fallback_reason is not None:
        return PlanPhases(graph, {}, graph.fallback_reason, lambda _, __: None)
    planned = _plan(parse_query(sql), catalog, options, parameters)
    lowering = planned.lowering

    def sizes(_: int, node: LogicalPlan | PhysicalPlan) -> tuple[float, float] | None:
        if isinstance(node, PhysicalPlan):
            return lowering.size(node)
        try:
            estimate = lowering.context.estimator.estimate(node)
        except TypeError:
            # Operators that the optimiser replaces, such as those of subqueries, need no estimate.
            return None
        return estimate.rows, estimate.num_bytes

    plans: dict[PlanPhase, LogicalPlan | PhysicalPlan] = {
        "logical": planned.built.plan,
        "optimized": planned.optimized,
        "physical": planned.distributed(),
    }
    return PlanPhases(graph, plans, None, sizes)


def _plan(
    query: exp.Query,
    catalog: Catalog,
    options: PlannerOptions,
    parameters: tuple[ParameterSpec, ...],
) -> _Planned:
    built = build_logical(query, catalog, {p.name: p.dtype for p in parameters})
    tables = {t.name: t for t in built.tables}
    first_id = first_free_id(built.plan, *(part.plan for part in built.shared))
    context = RuleContext(options, Estimator(tables), first_id)
    optimized, shared = optimize_shared(built.plan, built.shared, context, tables)
    lowering = Lowering(context)
    lowered = tuple((part, lowering.lower(part.plan)) for part in shared)
    return _Planned(built, optimized, lowering.lower(optimized), lowering, lowered)


def _require_duckdb(stages: tuple[Stage, ...], query: exp.Query) -> None:
    for stage in stages:
        if stage.engine != "duckdb":
            reason = stage.engine_reason or ""
            named = {name.lower() for name in re.findall(r"'(\w+)'", reason)}
            with located(next((n for n in query.walk() if n.name.lower() in named), query)):
                raise UnsupportedSqlError(f"stage {stage.stage_id} cannot run on DuckDB: {reason}")


def _whole_query(
    sql: str,
    query: exp.Query,
    catalog: Catalog,
    options: PlannerOptions,
    name: str,
    parameters: tuple[ParameterSpec, ...],
    reason: str,
) -> StageGraph:
    """One Spark stage that runs the text as it stands; its schema is Spark's to tell."""
    tables = _tables_of(query, catalog)
    stage = Stage(
        stage_id=0,
        title="the whole query on Spark → gather",
        fragment=OneRowExec(),
        branches=(Branch("single", ()),),
        output=StageOutput("gather"),
        schema=(),
        engine="spark",
        engine_reason=reason,
        sql=sql,
        sql_tables=tuple(t.name for t in tables),
        deterministic=is_deterministic(query),
    )
    return StageGraph(
        query=name,
        sql=sql,
        stages=(stage,),
        result=(),
        parameters=parameters,
        tables=tuple((t.name, t.columns) for t in tables),
        time_zone=options.time_zone,
        ordered=query.args.get("order") is not None,
        fallback_reason=reason,
    )


def _full_name(table: exp.Table) -> str:
    return ".".join(part.name for part in table.parts)


def _tables_of(query: exp.Query, catalog: Catalog) -> list[TableInfo]:
    found = []
    for name, is_cte in table_names(query):
        info = catalog.table(name)
        if info is None and is_cte:
            continue
        if info is None:
            known = ", ".join(catalog.table_names())
            with located(next(n for n in query.find_all(exp.Table) if _full_name(n) == name)):
                raise AnalysisError(
                    f"table '{name}' is not in the catalog (tables: {known or 'none'})"
                )
        found.append(info)
    return found
