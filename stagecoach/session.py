"""The Python API: in, a catalog, a storage root and SQL; out, results as Arrow or pandas.

    with stagecoach.connect(catalog="catalog.yaml") as session:
        session.query("SELECT count(*) FROM lineitem").show()

The command line stands on the same `Session`. Everything heavy (Spark, Dagster, Arrow) is imported
when it is first needed.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from stagecoach.result import Result

if TYPE_CHECKING:
    from assets.engine import RunListener
    from assets.front_matter import FrontMatter
    from infra.catalog.catalog import FileCatalog
    from infra.settings import EngineSettings
    from infra.storage.object_store import ObjectStore
    from planner.logical import LogicalPlan
    from planner.options import PlannerOptions, PlanPhase
    from planner.physical import PhysicalPlan
    from planner.stages import ParameterSpec, StageGraph
    from stagecoach.parameters import ParameterInput, ParameterValue
    from stagecoach.progress import StageProgress

DEFAULT_CATALOG = "pipelines/catalog.yaml"
DEFAULT_STORAGE = ".stagecoach/storage"
STORAGE_VARIABLE = "STAGECOACH_STORAGE"


def connect(
    catalog: str | os.PathLike[str] = DEFAULT_CATALOG,
    storage: str | os.PathLike[str] | None = None,
    *,
    settings: Mapping[str, object] | None = None,
    options: Mapping[str, object] | None = None,
) -> Session:
    """Return a session over the tables of a catalog; nothing is started yet.

    Args:
        catalog: The catalog file.
        storage: Folder or URL of shuffles and results; `STAGECOACH_STORAGE` or
            `.stagecoach/storage` by default.
        settings: Values of `infra.settings.EngineSettings`, such as `master`, by name.
        options: Values of `planner.options.PlannerOptions`, such as `num_partitions`, by name.

    Raises:
        CatalogError: The catalog file cannot be used.
        ConfigError: For an unknown setting or a value that does not fit.
        OptionError: For an unknown option or a value that does not fit.
    """
    from infra.catalog.catalog import load_catalog
    from infra.settings import load_settings
    from planner.options import PlannerOptions

    engine = load_settings(overrides=_with_storage(settings or {}, storage))
    texts = {name: _option_text(value) for name, value in (options or {}).items()}
    texts.setdefault("time_zone", engine.time_zone)
    return Session(
        catalog=load_catalog(Path(catalog), engine.storage_options),
        settings=engine,
        options=PlannerOptions().updated(texts),
    )


def open_storage(storage: str | os.PathLike[str] | None = None) -> ObjectStore:
    """Return the store of a storage root, found as `connect` finds it."""
    from infra.settings import load_settings

    return load_settings(overrides=_with_storage({}, storage)).open_store()


def storage_root(storage: str | os.PathLike[str] | None = None) -> str:
    """Return the storage root, found as `connect` finds it; a local one as an absolute path."""
    from infra.settings import load_settings

    root = load_settings(overrides=_with_storage({}, storage)).storage_root
    return root if "://" in root else os.path.abspath(os.path.expanduser(root))


def _with_storage(
    settings: Mapping[str, object], storage: str | os.PathLike[str] | None
) -> dict[str, object]:
    given = dict(settings)
    if root := os.fspath(storage or os.environ.get(STORAGE_VARIABLE) or ""):
        given["storage_root"] = root
    elif "storage_root" not in given and "STAGECOACH_STORAGE_ROOT" not in os.environ:
        given["storage_root"] = DEFAULT_STORAGE
    return given


def _option_text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


class Session:
    """Queries over one catalog, with one Spark session for all of them.

    Args:
        catalog: The tables.
        settings: The knobs of a run.
        options: The knobs of the planner.
    """

    def __init__(
        self, *, catalog: FileCatalog, settings: EngineSettings, options: PlannerOptions
    ) -> None:
        self.catalog = catalog
        self.settings = settings
        self.options = options
        self._storage_checked = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @cached_property
    def store(self) -> ObjectStore:
        """Where shuffles and runs are kept."""
        return self.settings.open_store()

    def check_storage(self) -> None:
        """Write and remove a small object, once: a bad root is found before Spark starts.

        Raises:
            StorageError: The storage cannot be written.
        """
        if self._storage_checked:
            return
        from infra.storage.layout import run_prefix

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
        planned = self.plan(sql, params, name=name)
        self.check_storage()
        return self.run(planned, fresh=fresh)

    def explain(
        self,
        sql: str,
        params: Mapping[str, ParameterInput] | None = None,
        *,
        plan: PlanPhase = "stages",
        format: str = "text",
        name: str = "query",
    ) -> str:
        """Return the plan of a query as text; nothing is run.

        Args:
            sql: One SELECT.
            params: A value for each `:name` in it; only their types matter here.
            plan: `logical`, `optimized`, `physical` or `stages`.
            format: Of `stages`: `text`, `json`, `yaml`, `mermaid` or `dot`; else `text`.
            name: What the query is called.

        Raises:
            SqlError: A mistake in the SQL.
            OptionError: The plan cannot be had in that format.
        """
        from planner.display import render_graph, render_plan
        from planner.errors import OptionError, UnsupportedSqlError
        from planner.stages import StageGraph

        if plan != "stages" and format != "text":
            raise OptionError(f"the {plan} plan is shown as text only; use --format text")
        try:
            found = self._plan_until(sql, params or {}, plan, name)
        except UnsupportedSqlError as error:
            raise UnsupportedSqlError(
                f"{error.message}, so Spark runs the query as one stage and there is no {plan} "
                "plan; explain its stages instead",
                line=error.line,
                column=error.column,
            ) from error
        return render_graph(found, format) if isinstance(found, StageGraph) else render_plan(found)

    def plan(
        self,
        sql: str,
        params: Mapping[str, ParameterInput] | None = None,
        *,
        name: str = "query",
    ) -> PlannedRun:
        """Plan a query and check its parameters; nothing is run."""
        from assets.front_matter import parse_front_matter
        from planner import plan_query
        from planner.errors import UnsupportedSqlError

        values = self._parameters(sql, params or {}, parse_front_matter(sql))
        specs = _specs(values)
        name = self._free_name(name)
        try:
            graph = plan_query(sql, self.catalog, self.options, name=name, parameters=specs)
        except UnsupportedSqlError as error:
            raise UnsupportedSqlError(
                f"{error.message}; the engine 'duckdb' was asked for, 'auto' lets Spark run it",
                line=error.line,
                column=error.column,
            ) from error
        return PlannedRun(graph=graph, parameters=values)

    def run(
        self,
        planned: PlannedRun,
        *,
        fresh: bool = False,
        progress: StageProgress | None = None,
        debug: bool = False,
    ) -> Result:
        """Run a planned query.

        Raises:
            StagecoachError: The run failed.
            KeyboardInterrupt: The run was interrupted; its jobs are cancelled.
        """
        from assets.resources import StageEngine
        from assets.run import run_graph
        from stagecoach.progress import StageProgress

        listener: RunListener = progress or StageProgress()
        engine = StageEngine(self.settings, self.catalog, fresh=fresh)
        outcome = run_graph(
            planned.graph,
            runner=engine,
            parameters={k: v.text for k, v in planned.parameters.items() if v.text is not None},
            listener=listener,
            store=self.store,
            debug=debug,
        )
        if outcome.cancelled:
            raise KeyboardInterrupt
        if outcome.failures:
            raise outcome.failures[min(outcome.failures)]
        if not outcome.success:
            from planner.errors import StagecoachError

            raise StagecoachError(f"the run failed outside of any stage: {outcome.problem}")
        stages = tuple(outcome.stages[s.stage_id] for s in planned.graph.stages)
        return Result(graph=planned.graph, run_id=outcome.run_id, stages=stages, store=self.store)

    def _free_name(self, name: str) -> str:
        """The name, changed where a table has it: query and table would be the same asset."""
        taken = {table.lower() for table in self.catalog.table_names()}
        while name.lower() in taken:
            name = f"{name}_query"
        return name

    def _plan_until(
        self, sql: str, params: Mapping[str, ParameterInput], phase: PlanPhase, name: str
    ) -> LogicalPlan | PhysicalPlan | StageGraph:
        from assets.front_matter import parse_front_matter
        from planner import plan_until

        specs = _specs(self._parameters(sql, params, parse_front_matter(sql)))
        return plan_until(sql, self.catalog, phase, self.options, name=name, parameters=specs)

    def close(self) -> None:
        """Stop Spark, if it was started."""
        import sys

        module = sys.modules.get("infra.runtime.spark_session")
        if module is not None:
            module.stop_sessions()

    def _parameters(
        self, sql: str, given: Mapping[str, ParameterInput], declared: FrontMatter
    ) -> dict[str, ParameterValue]:
        from stagecoach.parameters import check_known, resolve_parameters

        used = used_parameters(sql)
        if used is None:
            # No query that we can parse: whoever reads it next says what is wrong with it.
            used = tuple(dict.fromkeys([*given, *declared.parameters]))
        check_known(given, set(used) | set(declared.parameters))
        values = resolve_parameters(
            used,
            given,
            types=declared.parameter_types,
            defaults=declared.parameters,
            time_zone=self.options.time_zone,
        )
        if empty := [name for name, value in values.items() if value.text is None]:
            from planner.errors import ParameterError

            raise ParameterError(
                f"parameter '{empty[0]}' is NULL, which cannot be bound; write NULL in the SQL"
            )
        return values


def _specs(values: Mapping[str, ParameterValue]) -> tuple[ParameterSpec, ...]:
    from planner.stages import ParameterSpec

    return tuple(ParameterSpec(name, value.dtype) for name, value in values.items())


def used_parameters(sql: str) -> Sequence[str] | None:
    """Names of the parameters in the SQL, in order; None where it is no query that we can parse."""
    from sqlglot import exp

    from planner.errors import SqlError
    from planner.parse import parse_query

    try:
        tree = parse_query(sql)
    except SqlError:
        return None
    return tuple(dict.fromkeys(p.name for p in tree.find_all(exp.Placeholder) if p.name))


@dataclass(frozen=True, kw_only=True)
class PlannedRun:
    """A query that is ready to run.

    Args:
        graph: Its plan.
        parameters: Its parameter values.
    """

    graph: StageGraph
    parameters: Mapping[str, ParameterValue] = field(default_factory=dict)
