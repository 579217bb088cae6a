"""Which engine runs a fragment, and why.

In: a fragment and the catalog's word on its tables. Out: `duckdb` where every expression is in the
registry of proven ones for the types at hand, else `spark`; always with the reason.
"""

from __future__ import annotations

from collections.abc import Mapping

from planner.aggregates import AGGREGATES
from planner.catalog import TableInfo
from planner.expressions import AggregateCall, Call, Cast, Expression, Literal, Parameter
from planner.functions import REGISTRY
from planner.physical import AggregateExec, HashJoinExec, PhysicalPlan, ScanExec
from planner.stages import Engine
from planner.tree import walk
from planner.types import DataType

PROVEN = "every expression is proven equal to Spark's"


def choose_engine(
    fragment: PhysicalPlan, tables: Mapping[str, TableInfo], choice: str
) -> tuple[Engine, str]:
    """The engine of a fragment and the reason, in words for `explain`."""
    reason = fallback_reason(fragment, tables)
    if choice == "spark":
        return "spark", "asked for by --engine spark"
    return ("duckdb", PROVEN) if reason is None else ("spark", reason)


def fallback_reason(fragment: PhysicalPlan, tables: Mapping[str, TableInfo]) -> str | None:
    """Why DuckDB must not run the fragment; None where it may."""
    for node in walk(fragment):
        reason = _operator(node, tables)
        if reason is not None:
            return reason
        for expr in node.expressions:
            for part in walk(expr):
                reason = _expression(part)
                if reason is not None:
                    return reason
    return None


def _operator(node: PhysicalPlan, tables: Mapping[str, TableInfo]) -> str | None:
    if isinstance(node, ScanExec) and node.table in tables:
        native = tables[node.table].native_reason
        return f"table '{node.table}': {native}" if native else None
    if isinstance(node, AggregateExec):
        wrong = next((e.dtype for _, e in node.groups if not e.dtype.is_atomic), None)
        return f"GROUP BY {wrong} is not proven" if wrong else None
    if isinstance(node, HashJoinExec):
        wrong = next((k.dtype for k in node.left_keys if not k.dtype.is_atomic), None)
        return f"a join on {wrong} is not proven" if wrong else None
    return None


def _expression(node: Expression) -> str | None:
    if isinstance(node, Call):
        function = REGISTRY[node.function]
        if function.duckdb is None:
            refused = function.refuse(node)
            return refused or f"function '{node.function}' is not proven on DuckDB"
        return function.refuse(node)
    if isinstance(node, AggregateCall):
        aggregate = AGGREGATES[node.function]
        if aggregate.duckdb is None:
            return f"aggregate '{node.function}' is not proven on DuckDB"
        return aggregate.refuse(node)
    if isinstance(node, Cast):
        return cast_reason(node.arg.dtype, node.dtype, safe=node.safe)
    if isinstance(node, Literal | Parameter) and node.dtype.kind == "interval":
        return "interval values are not proven"
    if isinstance(node, Literal) and "\x00" in str(node.value):
        return "DuckDB text cannot hold a NUL"
    return None


def cast_reason(source: DataType, target: DataType, *, safe: bool = False) -> str | None:
    """Why a cast must not run on DuckDB; None for the proven ones."""
    text = f"CAST({source} AS {target}) is not proven"
    if safe:
        return f"TRY_{text}"
    if source == target or source.kind == "void":
        return None
    if source.is_integral:
        proven = target.is_numeric or target.kind in ("string", "boolean")
    elif source.is_decimal:
        proven = target.is_integral or target.is_decimal or target.kind == "double"
    elif source.kind == "float":
        proven = target.kind == "double"
    elif source.kind == "boolean":
        proven = target.is_integral or target.kind == "string"
    elif source.kind == "date":
        proven = target.kind in ("string", "timestamp", "timestamp_ntz")
    else:
        proven = (source.kind, target.kind) in (("timestamp", "date"), ("timestamp_ntz", "date"))
    return None if proven else text
