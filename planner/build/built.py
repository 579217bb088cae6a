"""Parsed SQL + catalog → logical plan, with every name resolved and every type known.

In: a sqlglot query. Out: a `LogicalPlan` whose columns are numbered, and which may still hold
subquery expressions (the optimiser turns them into joins).
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from planner.build.context import BuildContext
from planner.build.query import plan_query
from planner.build.shared_ctes import shared_ctes
from planner.catalog import Catalog, TableInfo
from planner.logical import (
    LogicalPlan,
)
from planner.shared import SharedPlan
from planner.types import DataType

if TYPE_CHECKING:
    from sqlglot import exp


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
    query: exp.Query, catalog: Catalog, parameters: Mapping[str, DataType]
) -> BuiltQuery:
    """The logical plan of a query.

    Raises:
        AnalysisError: For unknown or ambiguous names and wrong types.
        UnsupportedSqlError: For SQL that cannot be planned in stages.
        CatalogError: For a table whose files cannot be used.
    """
    context = BuildContext(catalog, parameters, plan_query, functools.partial(shared_ctes, query))
    plan = context.query(query, None, {})
    return BuiltQuery(
        plan,
        tuple(context.tables.values()),
        query.args.get("order") is not None,
        tuple(context.shared.values()),
    )
