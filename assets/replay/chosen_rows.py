"""Chooses rows of the result of a run: those that fail a check, or those that a predicate names.

Both are queries over the result alone. They are planned as any query and run in this process.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from stagecoach.assets.plans.check_sql import MAX_FAILING_ROWS, failing_rows_sql
from stagecoach.assets.project.queries import ProjectError, Query
from stagecoach.infra.errors import ConfigError
from stagecoach.infra.replay.recorded_run import RecordedRun
from stagecoach.infra.runtime.in_memory.graph_run import MemoryRun
from stagecoach.infra.worker.inputs import task_resources
from stagecoach.planner.catalog import MappingCatalog, TableInfo
from stagecoach.planner.errors import SqlError
from stagecoach.planner.options import PlannerOptions
from stagecoach.planner.planning import plan_query
from stagecoach.planner.syntax.parse import parameter_places
from stagecoach.planner.text.quoting import spark_name
from stagecoach.planner.types import Field

RESULT = "result"
"""What a predicate may call the table."""

_FAILING = "failing"
_COUNT = "num_rows"


@dataclass(frozen=True, kw_only=True)
class ResultRows:
    """The result of a run, from which rows are chosen.

    Args:
        run: The run.
        fields: Its columns, each with a name of its own.
        rows: Its rows.
    """

    run: RecordedRun
    fields: tuple[Field, ...]
    rows: pa.Table

    def where(self, predicate: str) -> pa.Table:
        """The rows for which a predicate over the columns holds, a thousand at most.

        Raises:
            SqlError: A mistake in it.
            SparkNeededError: DuckDB cannot evaluate it as Spark does.
        """
        # On lines of its own: it may end in a comment.
        sql = f"SELECT * FROM {RESULT} WHERE (\n{predicate}\n) LIMIT {MAX_FAILING_ROWS}"
        try:
            return self._asked(sql, {RESULT: (self.fields, self.rows)})[1]
        except SqlError as error:
            raise (
                error if error.line is None else error.at(error.line - 1, error.column)
            ) from None

    def failing(self, query: Query, check_name: str) -> pa.Table:
        """The rows that fail a check of the query, or belong to what fails it.

        Args:
            query: The query as the project has it now.
            check_name: Name of one of its checks.

        Raises:
            ConfigError: There is no such check, or it is not about rows.
            ProjectError: A mistake in the check.
            SparkNeededError: DuckDB cannot evaluate it as Spark does.
        """
        checks = {check.check_name: check for check in query.front_matter.checks}
        if (check := checks.get(check_name)) is None:
            known = ", ".join(f"'{name}'" for name in checks) or "none"
            raise ConfigError(
                f"the query '{query.name}' has no check '{check_name}'; its checks: {known}"
            )
        # The result has the rows of its own partition only.
        sql = failing_rows_sql(check, query.table, self.fields)
        if sql is None or check.kind == "row_count":
            raise ConfigError(
                f"check '{check_name}' is not about single rows; choose rows with --where"
            )
        try:
            fields, found = self._asked(sql, {query.table: (self.fields, self.rows)})
        except SqlError as error:
            raise ProjectError(
                f"check '{check_name}' cannot be asked of the result of the run alone: {error}; "
                "choose rows with --where"
            ) from error
        return self._like(check_name, fields, found)

    def _like(self, check_name: str, fields: Sequence[Field], found: pa.Table) -> pa.Table:
        """The rows of the result that are like these in the columns that both have."""
        own = {field.name.lower(): field.dtype for field in self.fields}
        shared = [f for f in fields if own.get(f.name.lower()) == f.dtype]
        shared = [f for f in shared if f.name != _COUNT and f.dtype.kind != "map"]
        if not shared:
            raise ConfigError(
                f"the rows of check '{check_name}' have no column of the result; choose rows "
                "with --where"
            )
        same = " AND ".join(f"r.{spark_name(f.name)} <=> f.{spark_name(f.name)}" for f in shared)
        sql = (
            f"SELECT r.* FROM {RESULT} AS r LEFT SEMI JOIN {_FAILING} AS f ON {same} "
            f"LIMIT {MAX_FAILING_ROWS}"
        )
        tables = {RESULT: (self.fields, self.rows), _FAILING: (tuple(fields), found)}
        return self._asked(sql, tables)[1]

    def _asked(
        self, sql: str, tables: Mapping[str, tuple[tuple[Field, ...], pa.Table]]
    ) -> tuple[tuple[Field, ...], pa.Table]:
        """Columns and rows of a query over tables in memory."""
        run = self.run
        catalog = MappingCatalog(
            [TableInfo(name=name, columns=fields) for name, (fields, _) in tables.items()],
            run.graph.functions,
        )
        used = parameter_places(sql)
        graph = plan_query(
            sql,
            catalog,
            PlannerOptions(time_zone=run.graph.time_zone),
            name="chosen",
            parameters=tuple(p for p in run.graph.parameters if p.name in used),
        )
        asked = MemoryRun(
            graph=graph,
            tables={
                name.lower(): rows.rename_columns([f.name for f in fields])
                for name, (fields, rows) in tables.items()
            },
            values={p.name: run.values[p.name] for p in graph.parameters if p.name in run.values},
            resources=task_resources(run.task_settings(())),
            code_path=run.code_path,
        )
        return graph.result, asked.result()
