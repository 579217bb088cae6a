"""Why DuckDB must not run a fragment.

It may run one if each expression is proven for its types, and DuckDB may read each table.
"""

from __future__ import annotations

from collections.abc import Mapping

from stagecoach.planner.aggregates import AGGREGATES
from stagecoach.planner.catalog import TableInfo
from stagecoach.planner.engines.duckdb.window_proofs import refuse_window
from stagecoach.planner.engines.protocol import Conditions
from stagecoach.planner.functions import REGISTRY
from stagecoach.planner.functions.casts import cast_reason
from stagecoach.planner.functions.nested_rules import has_kind
from stagecoach.planner.functions.spell_numbers import APPROXIMATE
from stagecoach.planner.functions.spell_times import uses_zone
from stagecoach.planner.functions.tables.structs import duplicate_names
from stagecoach.planner.plan.expressions import (
    AggregateCall,
    Call,
    Cast,
    Expression,
    Literal,
    Parameter,
    ProjectCall,
    WindowCall,
)
from stagecoach.planner.plan.physical import (
    AggregateExec,
    HashJoinExec,
    PhysicalPlan,
    ScanExec,
    ValuesExec,
)
from stagecoach.planner.text.time_zones import duckdb_zone, zone_reason
from stagecoach.planner.tree import walk


def refusal(fragment: PhysicalPlan, conditions: Conditions) -> str | None:
    """Why DuckDB must not run the fragment; None if it may."""
    tables, exact_math = conditions.tables, conditions.exact_math
    if duckdb_zone(conditions.time_zone) is None:
        return f"DuckDB does not know the time zone '{conditions.time_zone}'"
    zone = zone_reason(conditions.time_zone)
    for column in fragment.columns:
        if not column.dtype.is_atomic and has_kind(column.dtype, "void"):
            return f"a column of type {column.dtype} is not proven"
    zeros: set[str] = set()
    for node in walk(fragment):
        reason = _operator(node, tables)
        if reason is not None:
            return reason
        for expr in node.expressions:
            for part in walk(expr):
                if not isinstance(node, ValuesExec):
                    zeros |= _zero(part)
                reason = _expression(part) or (zone if uses_zone(part) else None)
                if exact_math and reason is None:
                    reason = _inexact(part)
                if reason is not None:
                    return reason
    if len(zeros) > 1:
        return "expressions with 0.0 and others with -0.0 may be one to DuckDB"
    return None


def _zero(node: Expression) -> set[str]:
    """`0.0` or `-0.0` where an expression is that constant: DuckDB compares constants by value."""
    value = node.arg.value if isinstance(node, Cast) and isinstance(node.arg, Literal) else None
    if isinstance(node, Literal):
        value = node.value
    if value is None or not node.dtype.is_floating:
        return set()
    try:
        number = float(value)
    except ValueError:
        return set()
    return {repr(number)} if number == 0 else set()


def _operator(node: PhysicalPlan, tables: Mapping[str, TableInfo]) -> str | None:
    for column in node.columns:
        if (reason := duplicate_names(column.dtype)) is not None:
            return reason
    if isinstance(node, ScanExec) and node.table in tables:
        reason = _scan(node, tables[node.table])
        return f"table '{node.table}': {reason}" if reason else None
    if isinstance(node, AggregateExec):
        wrong = next((e.dtype for _, e in node.groups if has_kind(e.dtype, "map")), None)
        return f"GROUP BY {wrong} is not proven" if wrong else None
    if isinstance(node, HashJoinExec):
        wrong = next((k.dtype for k in node.left_keys if has_kind(k.dtype, "map")), None)
        return f"a join on {wrong} is not proven" if wrong else None
    return None


def _scan(node: ScanExec, table: TableInfo) -> str | None:
    read = (table.spark_columns.get(name.lower()) for name in node.source)
    return table.native_reason or next(filter(None, read), None)


def _inexact(node: Expression) -> str | None:
    if isinstance(node, Call) and node.function in APPROXIMATE:
        return f"function '{node.function}' differs in the last bits (planner.exact_math)"
    return None


def _expression(node: Expression) -> str | None:
    if isinstance(node, Call):
        function = REGISTRY[node.function]
        if function.duckdb is None:
            why = f": {function.reason}" if function.reason else " is not proven on DuckDB"
            return function.refuse(node) or f"function '{node.function}'{why}"
        return function.refuse(node)
    if isinstance(node, ProjectCall):
        # Rows are computed by the same code on both engines (`infra.functions`).
        types = (*node.function.arguments, node.dtype)
        return next((reason for t in types if (reason := duplicate_names(t))), None)
    if isinstance(node, AggregateCall):
        aggregate = AGGREGATES[node.function]
        if aggregate.template(node) is not None:
            return None
        if aggregate.duckdb is None:
            why = aggregate.reason or "these arguments are not proven on DuckDB"
            return f"aggregate '{node.function}': {why}"
        return aggregate.refuse(node)
    if isinstance(node, WindowCall):
        return refuse_window(node)
    if isinstance(node, Cast):
        return cast_reason(node.arg.dtype, node.dtype, safe=node.safe)
    if isinstance(node, Literal | Parameter) and node.dtype.kind == "interval":
        return "interval values are not proven"
    if isinstance(node, Literal) and "\x00" in str(node.value):
        return "DuckDB text cannot hold a NUL"
    return None
