"""The state that all parts of the query builder share.

One `BuildContext` numbers the columns, opens scopes, and records which tables a query names.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping

from sqlglot import exp

from stagecoach.planner.analysis.queries.stars import star_items
from stagecoach.planner.analysis.scope import Relation, Scope
from stagecoach.planner.cached_property import cached_property
from stagecoach.planner.catalog import Catalog, TableInfo
from stagecoach.planner.plan.expressions import Column, Expression
from stagecoach.planner.plan.logical import (
    LogicalPlan,
)
from stagecoach.planner.plan.shared import SharedPlan
from stagecoach.planner.syntax.parsed_query import cte_number
from stagecoach.planner.types import DataType

Ctes = Mapping[str, tuple[exp.CTE, "Ctes", Scope | None]]
"""By name: its text, the CTEs that it sees, the outer query of the query that it belongs to."""
PlanQuery = Callable[["BuildContext", exp.Query, Scope | None, Ctes], LogicalPlan]


class BuildContext:
    """State of one build.

    Args:
        catalog: Where tables are looked up.
        parameters: Types of the declared parameters by name.
        plan_query: Plans a nested query.
        shared_ctes: Finds the CTEs that are shared; called where a query names one.
    """

    def __init__(
        self,
        catalog: Catalog,
        parameters: Mapping[str, DataType],
        plan_query: PlanQuery,
        shared_ctes: Callable[[], frozenset[int]],
    ) -> None:
        self.catalog = catalog
        self.parameters = parameters
        self.tables: dict[str, TableInfo] = {}
        self.time_windows: set[int] = set()
        self.sessions: set[Expression] = set()
        self.sources: dict[int, int] = {}
        self.shared: dict[int, SharedPlan] = {}
        self.named_ctes: set[int] = set()
        self._plan_query = plan_query
        self._find_shared_ctes = shared_ctes
        self._ids = itertools.count()

    def is_shared(self, cte: exp.CTE) -> bool:
        """Whether all places that name the CTE read one result."""
        return cte_number(cte) in self._shared_ctes

    @cached_property
    def _shared_ctes(self) -> frozenset[int]:
        return self._find_shared_ctes()

    def column(self, name: str, dtype: DataType) -> Column:
        """A new column with a number that nothing else has."""
        return Column(next(self._ids), name, dtype)

    def query(self, node: exp.Query, outer: Scope | None, ctes: Ctes) -> LogicalPlan:
        """The plan of a query that is nested in another one."""
        return self._plan_query(self, node, outer, ctes)

    def scope(self, relations: tuple[Relation, ...], outer: Scope | None, ctes: Ctes) -> Scope:
        """The names of these relations, and those of the outer query."""
        return Scope(
            relations=relations,
            plan_subquery=lambda query, scope: self.query(query, scope, ctes),
            parameters=self.parameters,
            parent=outer,
            time_windows=self.time_windows,
            sources=self.sources,
            find_function=self.catalog.function,
            expand_star=star_items,
        )

    def output_scope(self, plan: LogicalPlan, outer: Scope | None, ctes: Ctes) -> Scope:
        """The names of a plan's output columns."""
        return self.scope((Relation("", plan.columns),), outer, ctes)
