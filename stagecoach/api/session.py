"""Sessions: plan, explain and run queries from Python.

    with stagecoach.connect(catalog="catalog.yaml") as session:
        session.query("SELECT count(*) FROM lineitem").show()

The command line stands on the same `Session`. Everything heavy (Spark, Dagster, Arrow) is imported
when it is first needed.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Self

from stagecoach.api.errors import SessionClosedError
from stagecoach.api.plan_cache import PlanCache
from stagecoach.api.planned_run import PlannedRun as PlannedRun
from stagecoach.api.result import Result
from stagecoach.api.session_spark import SessionSpark
from stagecoach.api.storage_root import with_storage
from stagecoach.planner.cached_property import cached_property
from stagecoach.planner.errors import GraphFormatError, StagecoachError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from stagecoach.api.analysis import Analysis
    from stagecoach.api.cancelling import Cancellation
    from stagecoach.api.explaining import PlanResult
    from stagecoach.api.parameters import ParameterInput, ParameterValue
    from stagecoach.infra.catalog.planned import TableCatalog
    from stagecoach.infra.catalog.stored import StoredCatalog
    from stagecoach.infra.config.settings import EngineSettings
    from stagecoach.infra.storage.object_store import ObjectStore
    from stagecoach.planner.arbiter import Arbiter
    from stagecoach.planner.catalog import Catalog
    from stagecoach.planner.options import PlannerOptions, PlanPhase
    from stagecoach.planner.plan.stages import StageGraph
    from stagecoach.planner.planning import PlanPhases
    from stagecoach.planner.syntax.macros.expansion import Expansion
    from stagecoach.terminal.progress import StageProgress

DEFAULT_CATALOG = "pipelines/catalog.yaml"


def connect(
    catalog: str | os.PathLike[str] = DEFAULT_CATALOG,
    storage: str | os.PathLike[str] | None = None,
    *,
    settings: Mapping[str, object] | None = None,
    options: Mapping[str, object] | None = None,
    offline: bool = False,
) -> Session:
    """Return a session over the tables of a catalog; nothing is started yet.

    Args:
        catalog: The catalog file.
        storage: Folder or URL of shuffles and results; as the settings say, or
            `.stagecoach/storage` by default.
        settings: Values of `EngineSettings`, such as `master`, by name; what is not
            given comes from the environment, then from the settings file.
        options: Values of `PlannerOptions`, such as `num_partitions`, likewise.
        offline: Plan without ever asking Spark: a query that the planner does not understand is
            an error then. Running a query needs Spark all the same.

    Raises:
        CatalogError: The catalog file cannot be used.
        ConfigError: For an unknown setting or a value that does not fit.
        OptionError: For an unknown option or a value that does not fit.
    """
    from stagecoach.infra.catalog.catalog import load_catalog
    from stagecoach.infra.config.settings import load_configuration
    from stagecoach.planner.options import PREFIX

    overrides = with_storage(settings or {}, storage)
    overrides |= {f"{PREFIX}{name}": value for name, value in (options or {}).items()}
    found = load_configuration(overrides=overrides)
    return Session(
        catalog=load_catalog(Path(catalog), found.engine.storage_options),
        settings=found.engine,
        options=found.planner,
        offline=offline,
    )


class Session:
    """Queries over one catalog, with one Spark session for all of them.

    Tables that a project has published in the storage root can be read beside those of the catalog.

    Args:
        catalog: The base tables.
        settings: The knobs of a run.
        options: The knobs of the planner.
        offline: Whether planning never asks Spark: then a query that the planner does not
            understand is an error.

    Attributes:
        on_spark: Is called before planning asks Spark for the first time.
    """

    def __init__(
        self,
        *,
        catalog: TableCatalog,
        settings: EngineSettings,
        options: PlannerOptions,
        offline: bool = False,
    ) -> None:
        self.base_catalog = catalog
        self.settings = settings
        self.options = options
        self.offline = offline
        self.on_spark: Callable[[], None] = lambda: None
        self._storage_checked = False
        self._spark = SessionSpark()
        self._plans = PlanCache()
        self._is_closed = False

    def __repr__(self) -> str:
        count = len(self.base_catalog.table_names())
        tables = f"{count:,} table{'' if count == 1 else 's'} of the catalog"
        return f"<{'closed ' if self._is_closed else ''}Session over {tables}>"

    def __enter__(self) -> Self:
        self._check_open()
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    @cached_property
    def store(self) -> ObjectStore:
        """Where shuffles and runs are kept."""
        return self.settings.open_store()

    @cached_property
    def catalog(self) -> StoredCatalog:
        """The base tables and the published ones."""
        from stagecoach.infra.catalog.stored import StoredCatalog

        return StoredCatalog(self.base_catalog, self.store)

    def check_storage(self) -> None:
        """Write and remove a small object, once: a bad root is found before Spark starts.

        Raises:
            StorageError: The storage cannot be written.
        """
        self._check_open()
        if self._storage_checked:
            return
        from stagecoach.infra.storage.layout import run_prefix

        key = f"{run_prefix(f'probe-{uuid.uuid4()}')}/probe"
        self.store.write_bytes(key, b"")
        self.store.delete([key])
        self._storage_checked = True

    def query(
        self,
        sql: str,
        params: Mapping[str, ParameterInput] | None = None,
        *,
        name: str = "query",
        fresh: bool = False,
    ) -> Result:
        """Run a query through Dagster and Spark, and return its result.

        Args:
            sql: One SELECT; front matter in its leading comment may declare parameters.
            params: A value for each `:name` in it.
            name: What the query is called in plans and messages.
            fresh: Run every stage even where its output is there already.

        Raises:
            SqlError: A mistake in the SQL.
            ParameterError: A parameter is missing, unknown or of the wrong type.
            StagecoachError: The run failed.
        """
        if (explained := self.explained(sql, params, name=name)) is not None:
            return explained
        planned = self.plan(sql, params, name=name)
        self.check_storage()
        return self.run(planned, fresh=fresh)

    def explained(
        self,
        sql: str,
        params: Mapping[str, ParameterInput] | None = None,
        *,
        name: str = "query",
    ) -> PlanResult | None:
        """Return the result of an EXPLAIN statement; None where the SQL is none.

        Raises:
            SqlError: A mistake in the SQL, or EXPLAIN CODEGEN.
        """
        from stagecoach.api.explaining import PlanResult, statement_text
        from stagecoach.planner.syntax.explain_statement import split_explain

        statement = split_explain(sql)
        if statement is None:
            return None
        phases = self.phases(statement.sql, params, name=name)
        text = statement_text(phases, statement.mode)
        return PlanResult(graph=phases.graph, run_id="", stages=(), store=self.store, text=text)

    def expand(self, sql: str) -> Expansion:
        """Return the text of a query with the macros of the project written out.

        Raises:
            SqlError: It uses a macro wrongly.
        """
        return self.base_catalog.macros.expand(sql)

    def phases(
        self,
        sql: str,
        params: Mapping[str, ParameterInput] | None = None,
        *,
        name: str = "query",
    ) -> PlanPhases:
        """Return the plans of a query after each phase; nothing is run.

        Raises:
            SqlError: A mistake in the SQL.
        """
        from stagecoach.api.query_parameters import query_options, specs_of
        from stagecoach.planner.planning import plan_phases

        expansion = self.expand(sql)
        with expansion.places():
            values, name = self._prepared(expansion.text, params, name)
            return plan_phases(
                expansion.text,
                self.catalog,
                query_options(sql, self.options),
                name=name,
                parameters=specs_of(values),
                arbiter=self.arbiter(values),
            )

    def explain(
        self,
        sql: str,
        params: Mapping[str, ParameterInput] | None = None,
        *,
        plan: PlanPhase | Literal["all"] = "stages",
        format: str = "text",
        details: bool = False,
        name: str = "query",
    ) -> str:
        """Return the plan of a query as text; nothing is run.

        Args:
            sql: One SELECT, with or without EXPLAIN before it.
            params: A value for each `:name` in it; only their types matter here.
            plan: `logical`, `optimized`, `physical`, `stages` or `all` of them.
            format: `text`, `json`, `yaml`, `mermaid` or `dot`; a diagram shows one plan.
            details: Whether text tells the SQL of each stage and why its engine runs it.
            name: What the query is called.

        Raises:
            SqlError: A mistake in the SQL.
            OptionError: The plan cannot be had in that format.
        """
        from stagecoach.api.explaining import phases_text, without_explain

        phases = self.phases(without_explain(sql), params, name=name)
        text = phases_text(phases, plan, format, details=details)
        if format == "text" and plan in ("stages", "all"):
            from stagecoach.infra.formats.explain import scans_text

            scans = scans_text(phases.graph, self.catalog, details=details)
            text = f"{text.rstrip()}\n\n{scans}\n" if scans else text
        return text

    def analyze(
        self,
        sql: str,
        params: Mapping[str, ParameterInput] | None = None,
        *,
        name: str = "query",
        fresh: bool = False,
    ) -> Analysis:
        """Run a query and return how the run went beside its plan.

        Args:
            sql: One SELECT, with or without EXPLAIN before it.
            params: A value for each `:name` in it.
            name: What the query is called.
            fresh: Run every stage even where its output is there already.

        Raises:
            SqlError: A mistake in the SQL.
            StagecoachError: The run failed.
        """
        from stagecoach.api.explaining import without_explain

        planned = self.plan(without_explain(sql), params, name=name)
        self.check_storage()
        return self.analyze_run(planned, fresh=fresh)

    def analyze_run(
        self,
        planned: PlannedRun,
        *,
        fresh: bool = False,
        progress: StageProgress | None = None,
        debug: bool = False,
    ) -> Analysis:
        """Run a planned query and return how the run went.

        Raises:
            StagecoachError: The run failed.
            KeyboardInterrupt: The run was interrupted; its jobs are cancelled.
        """
        import time

        from stagecoach.api.analysis import Recorder, analyze_result
        from stagecoach.terminal.progress import StageProgress

        recorder = Recorder(progress or StageProgress())
        started_at, begun = time.time(), time.perf_counter()
        result = self.run(planned, fresh=fresh, progress=recorder, debug=debug)
        seconds = time.perf_counter() - begun
        return analyze_result(result, recorder.spans, started_at, seconds)

    def plan(
        self,
        sql: str,
        params: Mapping[str, ParameterInput] | None = None,
        *,
        name: str = "query",
    ) -> PlannedRun:
        """Plan a query and check its parameters; nothing is run."""
        from stagecoach.api.query_parameters import query_options, specs_of
        from stagecoach.planner import plan_query
        from stagecoach.planner.engines.registry import AUTO
        from stagecoach.planner.errors import UnsupportedSqlError

        expansion = self.expand(sql)
        options = query_options(sql, self.options)
        with expansion.places():
            values, name = self._prepared(expansion.text, params, name)
            specs = specs_of(values)

            def made(catalog: Catalog) -> StageGraph:
                return plan_query(
                    expansion.text,
                    catalog,
                    options,
                    name=name,
                    parameters=specs,
                    arbiter=self.arbiter(values),
                )

            request = (expansion.text, options, name, specs)
            try:
                graph = self._plans.get(request, self.catalog, made)
            except UnsupportedSqlError as error:
                raise UnsupportedSqlError(
                    f"{error.message}; the engine '{self.options.engine}' was asked for, "
                    f"'{AUTO}' lets Spark run it",
                    line=error.line,
                    column=error.column,
                ) from error
        return PlannedRun(graph=graph, parameters=values)

    def take_plans(self, other: Session) -> None:
        """Share the plans of another session, as far as its tables and functions are the same."""
        self._plans = other._plans

    def arbiter(self, values: Mapping[str, ParameterValue] | None = None) -> Arbiter | None:
        """Return what decides about queries that the planner cannot stage; None when offline.

        It starts Spark when it is first asked.

        Args:
            values: Values of the parameters of the query at hand.
        """
        if self.offline:
            return None
        from stagecoach.infra.engines.spark.arbiter import SparkArbiter
        from stagecoach.planner.plan.literal_text import parse_literal

        literals = {
            name: parse_literal(value.text, value.dtype, self.options.time_zone)
            for name, value in (values or {}).items()
            if value.text is not None
        }
        return SparkArbiter(self.spark, literals)

    def spark(self) -> SparkSession:
        """Return the Spark that the session's queries run on; it starts when it is first asked."""
        self._check_open()
        if not self._spark.is_used:
            self.on_spark()
        return self._spark.get(self.settings)

    def expect_spark(self, *, fresh: bool) -> None:
        """Let Spark start already if a run that follows will surely compute something.

        For a process that ends with this session: a start that nobody has waited for is ended with
        all other children of the process.

        Args:
            fresh: Whether the run reuses nothing.
        """
        from stagecoach.infra.storage import layout

        if self._spark.is_used or self.settings.remote:
            return
        store = self.store
        if fresh or (store.is_local and not Path(store.uri(layout.SHUFFLE_ROOT)).exists()):
            self._spark.expect(self.settings)

    def _start_spark(self) -> None:
        """Let Spark start, unless it is there: a run will ask for it in a moment."""
        self._check_open()
        self._spark.start(self.settings)

    def load(
        self, path: str | os.PathLike[str], params: Mapping[str, ParameterInput] | None = None
    ) -> PlannedRun:
        """Read a compiled plan and check its parameters; `run` runs it.

        Args:
            path: A file that `stagecoach compile` wrote.
            params: A value for each parameter without a default.

        Raises:
            GraphFormatError: The file is not a plan that this version can run.
            ParameterError: A parameter is missing, unknown or of the wrong type.
        """
        from stagecoach.api.query_parameters import plan_parameters
        from stagecoach.assets.plans.files import read_plan

        self._check_open()
        if Path(path).suffix == ".sql":
            raise GraphFormatError(f"{path} is SQL, not a compiled plan; run it as a query")
        graph = read_plan(Path(path)).graph
        read = [table for table, _ in graph.tables]
        graph = replace(graph, query=self._free_name(graph.query, read))
        return PlannedRun(graph=graph, parameters=plan_parameters(graph, params or {}))

    def run(
        self,
        planned: PlannedRun,
        *,
        fresh: bool = False,
        progress: StageProgress | None = None,
        debug: bool = False,
        cancellation: Cancellation | None = None,
    ) -> Result:
        """Run a planned query.

        Args:
            planned: The query.
            fresh: Run every stage even where its output is there already.
            progress: What hears of the progress.
            debug: Whether Dagster's own log lines go to standard error.
            cancellation: A handle by which another thread can cancel the query.

        Raises:
            StagecoachError: The run failed.
            QueryCancelledError: Another thread has cancelled it.
            KeyboardInterrupt: The run was interrupted; its jobs are cancelled.
        """
        from stagecoach.api.cancelling import Cancellation
        from stagecoach.api.running import run_planned
        from stagecoach.terminal.progress import StageProgress

        self._check_open()
        cancellation = cancellation or Cancellation()
        cancellation.check()
        try:
            return run_planned(
                planned,
                settings=self.settings,
                catalog=self.base_catalog,
                store=self.store,
                needs_spark=self._start_spark,
                listener=progress or StageProgress(),
                fresh=fresh,
                debug=debug,
                run_id=cancellation.run_id,
            )
        except StagecoachError:
            cancellation.check()  # whatever it is follows from that
            raise
        finally:
            cancellation.end()

    def _prepared(
        self, sql: str, params: Mapping[str, ParameterInput] | None, name: str
    ) -> tuple[dict[str, ParameterValue], str]:
        """The values of a query's parameters, and its name in plans."""
        from stagecoach.api.query_parameters import query_parameters
        from stagecoach.assets.project.dependencies import tables_read

        self._check_open()
        time_zone = self.options.time_zone
        values = query_parameters(sql, params or {}, time_zone=time_zone, name=name)
        return values, self._free_name(name, tables_read(sql))

    def _free_name(self, name: str, read: Iterable[str]) -> str:
        """The name, changed where a table has it: query and table would be the same asset.

        Args:
            name: What the query is called.
            read: Names of the tables that it reads, published ones among them.
        """
        taken = {table.lower() for table in [*self.base_catalog.table_names(), *read]}
        while name.lower() in taken:
            name = f"{name}_query"
        return name

    def _check_open(self) -> None:
        if self._is_closed:
            raise SessionClosedError(
                "this session is closed; open another one with stagecoach.connect(…)"
            )

    def close(self) -> None:
        """End the session, and stop the Spark that it has used unless another session uses it too.

        A closed session runs nothing any more. Results that it has given can still be read.
        """
        if self._is_closed:
            return
        self._is_closed = True
        self._spark.end()
