"""SQLite, as the planner sees it: filters, projections, groups and orders of whole numbers and text."""

from __future__ import annotations

from collections.abc import Iterator

from stagecoach.planner.engines.aggregates import filled
from stagecoach.planner.engines.dialect import Dialect, Scalar
from stagecoach.planner.engines.protocol import Conditions, PlannerEngine
from stagecoach.planner.plan.expressions import (
    AggregateCall,
    Call,
    ColumnRef,
    Expression,
    Literal,
)
from stagecoach.planner.plan.physical import (
    AggregateExec,
    FilterExec,
    PhysicalPlan,
    ProjectionExec,
    ScanExec,
    SortExec,
    SortPreservingMergeExec,
    StageInputExec,
)
from stagecoach.planner.tree import walk
from stagecoach.planner.types import DataType

FUNCTIONS = {
    "eq": "({0} = {1})",
    "ne": "({0} <> {1})",
    "lt": "({0} < {1})",
    "le": "({0} <= {1})",
    "gt": "({0} > {1})",
    "ge": "({0} >= {1})",
    "and": "({0} AND {1})",
    "or": "({0} OR {1})",
    "is_not_null": "({0} IS NOT NULL)",
}
"""The spelling of each function that is proven."""

AGGREGATES = frozenset({"count", "sum", "min", "max"})
OPERATORS = (
    AggregateExec,
    FilterExec,
    ProjectionExec,
    ScanExec,
    SortExec,
    SortPreservingMergeExec,
    StageInputExec,
)
TYPES = {"int": "INTEGER", "bigint": "INTEGER", "string": "TEXT"}


class SqliteDialect(Dialect):
    """How SQLite writes SQL."""

    def type_name(self, dtype: DataType) -> str:
        """SQLite's name of a type."""
        return "INTEGER" if dtype.kind == "boolean" else TYPES[dtype.kind]  # of a condition

    def function(self, node: Call) -> str:
        """The template of a call."""
        return FUNCTIONS[node.function]

    def aggregate(self, node: AggregateCall, scalar: Scalar) -> str:
        """An aggregate call, cast to its type."""
        template = "{name}({distinct}{args}){filter}"
        return filled(template, node, self.type_name(node.dtype), scalar)


class Sqlite:
    """SQLite: it runs what the tables above list."""

    label = "SQLite"
    dialect = SqliteDialect()

    def refusal(self, fragment: PhysicalPlan, conditions: Conditions) -> str | None:
        """Why SQLite must not run the fragment; None if it may."""
        return next(_refusals(fragment, conditions), None)


def _refusals(fragment: PhysicalPlan, conditions: Conditions) -> Iterator[str]:
    for node in walk(fragment):
        if not isinstance(node, OPERATORS):
            yield f"{type(node).__name__} is not proven"
        table = conditions.tables.get(node.table) if isinstance(node, ScanExec) else None
        if table is not None and table.native_reason is not None:
            yield f"table '{table.name}': {table.native_reason}"
        for column in node.columns:
            if column.dtype.kind not in TYPES:
                yield f"a column of type {column.dtype} is not proven"
        for expr in node.expressions:
            for part in walk(expr):
                yield from _of_expression(part)


def _of_expression(node: Expression) -> Iterator[str]:
    match node:
        case Call() if node.function in FUNCTIONS and len(node.args) <= 2:
            return
        case AggregateCall() if node.function in AGGREGATES and len(node.args) <= 1:
            return
        case ColumnRef() | Literal() if node.dtype.kind in TYPES:
            return
        case Call() | AggregateCall():
            yield f"function '{node.function}' is not proven"
        case _:
            yield f"a {type(node).__name__} of type {node.dtype} is not proven"


ENGINE: PlannerEngine = Sqlite()
