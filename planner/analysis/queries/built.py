"""Build the logical plan of a parsed query, with every name resolved and every type known.

The plan may still hold subquery expressions; the optimiser turns them into joins.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stagecoach.planner.analysis.queries.context import BuildContext
from stagecoach.planner.analysis.queries.query import plan_query
from stagecoach.planner.analysis.queries.shared_ctes import shared_ctes
from stagecoach.planner.catalog import Catalog, TableInfo
from stagecoach.planner.plan.logical import (
    LogicalPlan,
)
from stagecoach.planner.plan.shared import SharedPlan
from stagecoach.planner.types import DataType

if TYPE_CHECKING:
    from stagecoach.planner.syntax.parsed_query import ParsedQuery


@dataclass(frozen=True)
class BuiltQuery:
    """A logical plan and what is known of it.

    Args:
        plan: The plan; its columns are the result's.
        tables: Catalog entries of all tables that it scans.
        shared: The shared subplans that it scans, each after those that it scans itself.
        ordered: Whether the outermost query asks for an order.
    """

    plan: LogicalPlan
    tables: tuple[TableInfo, ...]
    ordered: bool
    shared: tuple[SharedPlan, ...] = ()


def build_logical(
    query: ParsedQuery, catalog: Catalog, parameters: Mapping[str, DataType]
) -> BuiltQuery:
    """The logical plan of a query.

    Raises:
        AnalysisError: For unknown or ambiguous names and wrong types.
        UnsupportedSqlError: For SQL that cannot be planned in stages.
        CatalogError: For a table whose files cannot be used.
    """
    context = BuildContext(
        catalog, parameters, plan_query, functools.partial(shared_ctes, query.tree)
    )
    plan = context.query(query.tree, None, {})
    return BuiltQuery(
        plan,
        tuple(context.tables.values()),
        query.tree.args.get("order") is not None,
        tuple(context.shared.values()),
    )
