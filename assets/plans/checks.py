"""Plans of a query's checks.

A check is a query for the rows that fail it, planned like any other over the published table.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from stagecoach.assets.plans.check_sql import failing_rows_sql
from stagecoach.assets.plans.planned import PlanQuery
from stagecoach.assets.project.front_matter.checks import Check
from stagecoach.assets.project.queries import ProjectError, Query
from stagecoach.planner.cached_property import cached_property
from stagecoach.planner.catalog import Catalog
from stagecoach.planner.errors import SqlError
from stagecoach.planner.plan.stages import StageGraph
from stagecoach.planner.syntax.parse import parameter_places
from stagecoach.planner.types import Field


@dataclass(frozen=True, kw_only=True)
class PlannedCheck:
    """A check about rows and the plan of the query for those that fail it.

    Args:
        check: The check.
        sql: The query.
        plan: How the query is planned.
    """

    check: Check
    sql: str
    plan: Callable[[], StageGraph]

    @cached_property
    def graph(self) -> StageGraph:
        """The query's plan, made when it is first asked for.

        Raises:
            ProjectError: A mistake in the SQL of the check; the message names it.
        """
        try:
            return self.plan()
        except SqlError as error:
            raise ProjectError(f"check '{self.check.check_name}': {error}") from error


def check_queries(query: Query, columns: Sequence[Field]) -> Iterator[tuple[Check, Query]]:
    """The checks of a query that are about rows, each with the query for the rows that fail it.

    Args:
        query: The query.
        columns: Columns of the table that it makes.
    """
    front_matter = query.front_matter
    for check in front_matter.checks:
        sql = failing_rows_sql(check, query.table, columns, front_matter.partitions)
        if sql is None:
            continue
        used = parameter_places(sql) if front_matter.parameters else {}
        parameters = {n: p for n, p in front_matter.parameters.items() if n in used}
        yield (
            check,
            Query(
                name=f"{query.name}.{check.check_name}",
                sql=sql,
                front_matter=front_matter.model_copy(update={"parameters": parameters}),
            ),
        )


def plan_checks(
    query: Query, columns: Sequence[Field], catalog: Catalog, plan: PlanQuery
) -> tuple[PlannedCheck, ...]:
    """The checks of a query that are about rows; they are planned when their plans are asked for.

    Args:
        query: The query.
        columns: Columns of the table that it makes.
        catalog: All tables, its own among them.
        plan: How a query gets its plan.
    """
    return tuple(
        PlannedCheck(check=check, sql=failing.sql, plan=partial(plan, failing, catalog))
        for check, failing in check_queries(query, columns)
    )
