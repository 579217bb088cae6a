"""What all parts of the builder share: the catalog, new columns, scopes.

In: a catalog and declared parameters. Out: numbered columns, scopes, the tables that were named.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from functools import cached_property

from sqlglot import exp

from planner.catalog import Catalog, TableInfo
from planner.expressions import Column, Expression
from planner.logical import (
    LogicalPlan,
)
from planner.scope import Relation, Scope
from planner.shared import SharedPlan
from planner.types import DataType

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
        self._plan_query = plan_query
        self._find_shared_ctes = shared_ctes
        self._ids = itertools.count()

    def is_shared(self, cte: exp.CTE) -> bool:
        """Whether all places that name the CTE read one result."""
        return id(cte) in self._shared_ctes

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
        )

    def output_scope(self, plan: LogicalPlan, outer: Scope | None, ctes: Ctes) -> Scope:
        """The names of a plan's output columns."""
        return self.scope((Relation("", plan.columns),), outer, ctes)
