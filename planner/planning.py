"""The planner's entry point: run all phases in order.

A query that cannot be staged becomes one Spark stage, with the reason.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from stagecoach.planner.analysis.queries import build_logical
from stagecoach.planner.arbiter import Arbiter, is_certain, unknown_function
from stagecoach.planner.cached_property import cached_property
from stagecoach.planner.catalog import Catalog, LookedUpCatalog, TableInfo
from stagecoach.planner.distribution import (
    distribute,
    distribute_shared,
    fits_one_task,
    fits_wide_task,
)
from stagecoach.planner.engines.registry import SPARK, planner_engine
from stagecoach.planner.errors import (
    AnalysisError,
    ParseError,
    PlanningTimeoutError,
    SqlError,
    UnknownTableError,
    UnsupportedSqlError,
)
from stagecoach.planner.estimates import Estimator
from stagecoach.planner.limits.deadline import deadline
from stagecoach.planner.limits.deep_stack import run_deep
from stagecoach.planner.lowering.lower import Lowering
from stagecoach.planner.optimizer.context import RuleContext, first_free_id
from stagecoach.planner.optimizer.rules import optimize_for_one_task
from stagecoach.planner.optimizer.shared_plans import optimize_shared
from stagecoach.planner.options import PlannerOptions, PlanPhase
from stagecoach.planner.plan.logical import LogicalPlan, Scan
from stagecoach.planner.plan.physical import OneRowExec, PhysicalPlan
from stagecoach.planner.plan.stages import Branch, ParameterSpec, Stage, StageGraph, StageOutput
from stagecoach.planner.project_function import ProjectFunction
from stagecoach.planner.render.limits import TOO_DEEP as _TOO_DEEP
from stagecoach.planner.render.limits import check_text
from stagecoach.planner.staging.cut import SharedSource, cut_into_stages
from stagecoach.planner.syntax.misspelled import at_misspelled_word
from stagecoach.planner.syntax.parse import parse_query, position, read_query
from stagecoach.planner.syntax.parsed_query import CHANGING_WORDS, ParsedQuery
from stagecoach.planner.syntax.places import located
from stagecoach.planner.syntax.unparsed_query import UnparsedQuery
from stagecoach.planner.tree import walk
from stagecoach.planner.types import DATE, TIMESTAMP, TIMESTAMP_NTZ, Field, to_arrow

DEFAULT_OPTIONS = PlannerOptions()
_SYNTAX_ERRORS = ("PARSE_", "INVALID_SQL_SYNTAX")
_CLOCK = (
    ParameterSpec("@now", TIMESTAMP),
    ParameterSpec("@date", DATE),
    ParameterSpec("@local", TIMESTAMP_NTZ),
)


@dataclass(frozen=True)
class _Request:
    """How a query is to be planned."""

    catalog: Catalog
    options: PlannerOptions
    name: str
    parameters: tuple[ParameterSpec, ...]


class _Planned:
    """A query after each phase; each is computed when it is first asked for."""

    def __init__(self, query: ParsedQuery, request: _Request) -> None:
        self.request = request
        self.built = build_logical(
            query, request.catalog, {p.name: p.dtype for p in request.parameters}
        )
        _refuse_changing(query, request.catalog)
        self.tables = {t.name: t for t in self.built.tables}
        first_id = first_free_id(self.built.plan, *(part.plan for part in self.built.shared))
        # Optimising adds the shared subplans to what the estimator knows, but no table of ours.
        known = dict(self.tables)
        self._context = RuleContext(request.options, Estimator(known), first_id)
        self.optimized, self._shared = optimize_shared(
            self.built.plan, self.built.shared, self._context, known
        )
        self._check_scans()
        self._lowering = Lowering(self._context)
        if not self._shared:
            self._optimize_for_one_task()

    def _optimize_for_one_task(self) -> None:
        """Optimise the query once more, if one task computes what comes of it."""
        optimized = optimize_for_one_task(self.optimized, self._context)
        if optimized is self.optimized:
            return
        lowering = Lowering(self._context)
        if fits_wide_task(lowering.lower(optimized), lowering.sizes, self._context):
            self.optimized, self._lowering = optimized, lowering

    def _check_scans(self) -> None:
        """Refuse a query that reads a column which only Spark can read.

        Raises:
            UnsupportedSqlError: Naming the column and its type.
        """
        for plan in (self.optimized, *(part.plan for part in self._shared)):
            for node in walk(plan):
                if isinstance(node, Scan):
                    for column, source in zip(node.outputs, node.source, strict=True):
                        if column.dtype.is_only_sparks:
                            raise UnsupportedSqlError(
                                f"column '{source}' of table '{node.table}' has the type "
                                f"{column.dtype}, which only Spark reads"
                            )

    @cached_property
    def _lowered(self) -> tuple[list[PhysicalPlan], PhysicalPlan]:
        """The shared subplans, then the query, without exchanges."""
        shared = [self._lowering.lower(part.plan) for part in self._shared]
        return shared, self._lowering.lower(self.optimized)

    @cached_property
    def _one_task(self) -> bool:
        shared, plan = self._lowered
        return fits_one_task([plan, *shared], self._context)

    @cached_property
    def physical(self) -> PhysicalPlan:
        """The query's plan with exchanges."""
        plan = self._lowered[1]
        return distribute(plan, self._lowering.sizes, self._context, one_task=self._one_task)

    @cached_property
    def stages(self) -> tuple[Stage, ...]:
        """The stages of the query and of its shared subplans."""
        options = self.request.options
        size = self._lowering.sizes.size
        physical = self.physical
        return cut_into_stages(physical, self.tables, options, size, self._shared_sources())

    def _shared_sources(self) -> tuple[SharedSource, ...]:
        """The shared subplans with exchanges."""
        sources = []
        for part, plan in zip(self._shared, self._lowered[0], strict=True):
            exchange = distribute_shared(
                plan, self._lowering.sizes, self._context, one_task=self._one_task
            )
            numbers = {name: column.id for name, column in part.columns.items()}
            sources.append(SharedSource(part.name, exchange, numbers))
        return tuple(sources)

    def size(self, _: int, node: LogicalPlan | PhysicalPlan) -> tuple[float, float] | None:
        """Estimated rows and bytes of an operator."""
        if isinstance(node, PhysicalPlan):
            return self._lowering.sizes.size(node)
        try:
            estimate = self._context.estimator.estimate(node)
        except TypeError:
            # Operators that the optimiser replaces, such as those of subqueries, need no estimate.
            return None
        return estimate.rows, estimate.num_bytes


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


def plan_query(
    query: str | ParsedQuery,
    catalog: Catalog,
    options: PlannerOptions = DEFAULT_OPTIONS,
    *,
    name: str = "query",
    parameters: tuple[ParameterSpec, ...] = (),
    arbiter: Arbiter | None = None,
) -> StageGraph:
    """The stage graph of a query.

    Args:
        query: One SELECT in Spark's SQL.
        catalog: Where tables are looked up.
        options: Planner options.
        name: Name of the query.
        parameters: Declared parameters; every `:name` in the text must be among them.
        arbiter: Is asked about a query that the planner cannot stage. None takes what is not
            supported for valid, and an AnalysisError for final.

    Raises:
        ParseError: For text that is not one query.
        ForbiddenSqlError: For SQL that does more than read the catalog's tables.
        AnalysisError: For names or types that do not fit the catalog.
        CatalogError: For tables that cannot be read.
        UnsupportedSqlError: If the options name a task engine, for what it is not proven to do.
        PlanningTimeoutError: Parsing took longer than `options.timeout_seconds`; planning, too, if
            the options name a task engine.
    """
    return plan_phases(
        query, catalog, options, name=name, parameters=parameters, arbiter=arbiter
    ).graph


def plan_until(
    query: str | ParsedQuery,
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
        return plan_query(query, catalog, options, name=name, parameters=parameters)
    with deadline(options.timeout_seconds):
        text = parse_query(query) if isinstance(query, str) else query
        request = _Request(_looked_up(text, catalog), options, name, parameters)
        return run_deep(lambda: _plans(_Planned(text, request), phase)[phase])


def plan_phases(
    query: str | ParsedQuery,
    catalog: Catalog,
    options: PlannerOptions = DEFAULT_OPTIONS,
    *,
    name: str = "query",
    parameters: tuple[ParameterSpec, ...] = (),
    arbiter: Arbiter | None = None,
) -> PlanPhases:
    """The plans of all phases of a query, which is parsed and planned once.

    Raises:
        ParseError, ForbiddenSqlError, AnalysisError, CatalogError, UnsupportedSqlError: As
            `plan_query`.
    """
    with deadline(options.timeout_seconds):
        text = read_query(query) if isinstance(query, str) else query
        request = _Request(catalog, options, name, parameters)
        if isinstance(text, ParsedQuery):
            request = replace(request, catalog=_looked_up(text, catalog))
            try:
                return run_deep(lambda: _staged(text, request))
            except (AnalysisError, UnsupportedSqlError, PlanningTimeoutError) as error:
                refused: SqlError | PlanningTimeoutError = error
            except RecursionError:
                line, column = position(text.tree)
                refused = UnsupportedSqlError(_TOO_DEEP, line=line, column=column)
        else:
            refused = text.error
    _raise_if_final(refused, text, request, arbiter)
    return _on_spark(text, request, refused, arbiter)


def _looked_up(query: ParsedQuery | UnparsedQuery, catalog: Catalog) -> Catalog:
    """The catalog after it was asked about the tables of a query."""
    return LookedUpCatalog(catalog, (name for name, _ in query.tables))


def _on_spark(
    query: ParsedQuery | UnparsedQuery,
    request: _Request,
    refused: SqlError | PlanningTimeoutError,
    arbiter: Arbiter | None,
) -> PlanPhases:
    """A query that the planner refuses as one Spark stage.

    Raises:
        SqlError: Spark refuses it, too.
    """
    reason = refused.message if isinstance(refused, SqlError) else str(refused)
    if isinstance(query, UnparsedQuery):
        request = replace(request, catalog=_looked_up(query, request.catalog))
    graph = run_deep(lambda: _whole_query(query, request, reason))
    if arbiter is not None:
        try:
            columns = arbiter.check(graph)
        except SqlError as error:
            told = error
            if isinstance(refused, ParseError) and not error.condition.startswith(_SYNTAX_ERRORS):
                # Spark read the text in a way that its author may not have meant.
                meant = reason.removeprefix(f"[{refused.condition}] ")
                told = error.with_note(f"to the planner's parser it is a {meant}")
            if told.line is None and isinstance(refused, SqlError) and refused.line is not None:
                told = told.at(refused.line, refused.column)
            raise at_misspelled_word(told, query.sql) from refused
        if columns:  # queries that read this one's table are planned with them
            graph = replace(graph, result=columns)
    return PlanPhases(graph, {}, reason, lambda _, __: None)


def _raise_if_final(
    error: SqlError | PlanningTimeoutError,
    query: ParsedQuery | UnparsedQuery,
    request: _Request,
    arbiter: Arbiter | None,
) -> None:
    """Raise the planner's refusal of a query unless Spark may answer it."""
    if isinstance(query, UnparsedQuery):
        if arbiter is None or not request.options.may_fall_back:
            told = at_misspelled_word(query.error, query.sql)
            raise told from error.__cause__ if told is error else error
        return
    if isinstance(error, SqlError) and (missing := unknown_function(query, request.catalog)):
        raise missing from error
    if not request.options.may_fall_back:
        raise error
    if isinstance(error, AnalysisError) and (
        arbiter is None or is_certain(error, query, request.catalog)
    ):
        raise error


def _plans(planned: _Planned, phase: PlanPhase) -> dict[PlanPhase, LogicalPlan | PhysicalPlan]:
    """The plans up to one phase."""
    plans: dict[PlanPhase, LogicalPlan | PhysicalPlan] = {
        "logical": planned.built.plan,
        "optimized": planned.optimized,
    }
    return plans if phase in plans else {**plans, "physical": planned.physical}


def _staged(query: ParsedQuery, request: _Request) -> PlanPhases:
    options = request.options
    with located(query.tree):
        planned = _Planned(query, request)
        result = tuple(Field(c.name, c.dtype) for c in planned.built.plan.columns)
        for field in result:
            to_arrow(field.dtype)
        stages = planned.stages
        check_text(stages)
        for field in (f for stage in stages for f in stage.schema):
            to_arrow(field.dtype)  # what no exchange can carry, such as an interval of months
    if not options.may_fall_back:
        _require_engine(stages, options.engine, query.tree)
    declared = request.parameters
    used = {p for stage in stages for p in stage.parameters}
    graph = StageGraph(
        query=request.name,
        sql=query.sql,
        stages=stages,
        result=result,
        parameters=tuple(p for p in (*declared, *_CLOCK) if p in declared or p.name in used),
        tables=tuple((t.name, t.columns) for t in planned.built.tables),
        time_zone=options.time_zone,
        ordered=planned.built.ordered,
        functions=_functions_of(query, request.catalog),
    )
    return PlanPhases(graph, _plans(planned, "physical"), None, planned.size)


def _require_engine(stages: tuple[Stage, ...], name: str, query: exp.Expr) -> None:
    label = planner_engine(name).label
    for stage in stages:
        if stage.engine != name:
            reason = stage.engine_reason or ""
            named = {name.lower() for name in re.findall(r"'(\w+)'", reason)}
            with located(next((n for n in query.walk() if n.name.lower() in named), query)):
                raise UnsupportedSqlError(f"stage {stage.stage_id} cannot run on {label}: {reason}")


def _whole_query(query: ParsedQuery | UnparsedQuery, request: _Request, reason: str) -> StageGraph:
    """One Spark stage that runs the text as it stands; its columns are Spark's to tell."""
    tables = _tables_of(query, request.catalog)
    functions = _functions_of(query, request.catalog)
    stage = Stage(
        stage_id=0,
        title="the whole query on Spark → gather",
        fragment=OneRowExec(),
        branches=(Branch("single", ()),),
        output=StageOutput("gather"),
        schema=(),
        engine=SPARK,
        engine_reason=reason,
        sql=query.sql,
        sql_tables=tuple(t.name for t in tables),
        sql_functions=functions,
        deterministic=_is_deterministic(query, tables) and all(f.deterministic for f in functions),
    )
    return StageGraph(
        query=request.name,
        sql=query.sql,
        stages=(stage,),
        result=(),
        parameters=request.parameters,
        tables=tuple((t.name, t.columns) for t in tables),
        time_zone=request.options.time_zone,
        ordered=query.is_ordered,
        fallback_reason=reason,
        functions=functions,
    )


def _is_deterministic(query: ParsedQuery | UnparsedQuery, tables: Sequence[TableInfo]) -> bool:
    """Whether the query's own text gives the same rows for the same data in every run."""
    if isinstance(query, ParsedQuery):
        columns = {column.name.lower() for table in tables for column in table.columns}
        if query.may_call(CHANGING_WORDS - columns):
            return False
    return query.is_deterministic


def _functions_of(
    query: ParsedQuery | UnparsedQuery, catalog: Catalog
) -> tuple[ProjectFunction, ...]:
    """The functions of the project that a query calls, sorted by name."""
    found = (catalog.function(name) for name in sorted(query.function_names))
    return tuple(function for function in found if function is not None)


def _refuse_changing(query: ParsedQuery, catalog: Catalog) -> None:
    """Leave a query to Spark that calls a function whose results may change.

    Stages may be computed again, or read by several others, and rules copy and move expressions.

    Raises:
        UnsupportedSqlError: Naming the function, placed at its call.
    """
    for call in query.tree.find_all(exp.Anonymous):
        function = catalog.function(call.name)
        if function is not None and not function.deterministic:
            line, column = position(call)
            raise UnsupportedSqlError(
                f"function '{function.name}' is not declared deterministic",
                line=line,
                column=column,
            )


def _tables_of(query: ParsedQuery | UnparsedQuery, catalog: Catalog) -> list[TableInfo]:
    found = []
    for name, is_maybe_other in query.tables:
        info = catalog.table(name)
        if info is not None:
            found.append(info)
        elif not is_maybe_other:
            known = ", ".join(catalog.table_names())
            line, column = query.place_of(name) or (None, None)
            raise UnknownTableError(
                f"table '{name}' is not in the catalog (tables: {known or 'none'})",
                line=line,
                column=column,
            )
    return found
