"""Compare two results, Arrow tables, and say what differs."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from stagecoach.planner.syntax.parse import parse_query
from stagecoach.planner.types import from_arrow

if TYPE_CHECKING:
    import pyarrow as pa

_FLOAT_TOLERANCE = 1e-12
_DUCKDB_TOLERANCE = 1e-6


def ordered_columns(sql: str, names: Sequence[str]) -> list[int]:
    """Positions of the result columns that the query's ORDER BY names."""
    order = parse_query(sql).tree.args.get("order")
    keys = [item.this for item in order.expressions] if order else []
    lowered = [name.lower() for name in names]
    found = [k.name.lower() for k in keys if isinstance(k, exp.Column | exp.Identifier)]
    return [lowered.index(name) for name in found if name in lowered]


def difference(expected: pa.Table, found: pa.Table, sql: str) -> str | None:
    """How a result differs from Spark's: names, types, rows, and the order that was asked for.

    Rows that tie in the ORDER BY may come in any order. Floats are equal to rounding.
    """
    if expected.schema.names != found.schema.names:
        return f"columns {found.schema.names}, Spark has {expected.schema.names}"
    for wanted, column in zip(expected.schema, found.schema, strict=True):
        if from_arrow(wanted.type) != from_arrow(column.type):
            return f"column {column.name} is {column.type}, Spark has {wanted.type}"
    left, right = _rows(expected), _rows(found)
    if len(left) != len(right):
        return f"{len(right)} rows, Spark has {len(left)}"
    keys = ordered_columns(sql, expected.schema.names)
    for number, (a, b) in enumerate(zip(left, right, strict=True)):
        if any(not _close(a[k], b[k], _FLOAT_TOLERANCE) for k in keys):
            return f"row {number} is {b}, Spark has {a}"
    return _multiset_difference(left, right)


def rough_difference(expected: pa.Table, found: pa.Table) -> str | None:
    """How DuckDB's own result differs; its types are its own, so numbers are compared roughly."""
    left, right = _rows(expected), _rows(found)
    if len(left) != len(right):
        return f"{len(right)} rows, Spark has {len(left)}"
    if all(_all_close(a, b) for a, b in zip(left, right, strict=True)):
        return None
    for a, b in zip(sorted(left, key=_sort_key), sorted(right, key=_sort_key), strict=True):
        if not _all_close(a, b):
            return f"a row is {b}, Spark has {a}"
    return None


def _multiset_difference(left: list[tuple[Any, ...]], right: list[tuple[Any, ...]]) -> str | None:
    if left == right:
        return None
    missing, extra = Counter(left) - Counter(right), Counter(right) - Counter(left)
    rest_left, rest_right = sorted(missing, key=_sort_key), sorted(extra, key=_sort_key)
    for a, b in zip(rest_left, rest_right, strict=False):
        if not all(_close(x, y, _FLOAT_TOLERANCE) for x, y in zip(a, b, strict=True)):
            return f"row {b} is not among Spark's, which has {a}"
    return None


def _rows(table: pa.Table) -> list[tuple[Any, ...]]:
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


def _close(a: Any, b: Any, tolerance: float) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        return a == b or math.isclose(a, b, rel_tol=tolerance) or (a != a and b != b)
    return bool(a == b)


def _all_close(a: tuple[Any, ...], b: tuple[Any, ...]) -> bool:
    if len(a) != len(b):
        return False
    for x, y in zip(a, b, strict=True):
        if isinstance(x, int | float | Decimal) and isinstance(y, int | float | Decimal):
            if not math.isclose(float(x), float(y), rel_tol=1e-6, abs_tol=_DUCKDB_TOLERANCE):
                return False
        elif x != y:
            return False
    return True


def _sort_key(row: tuple[Any, ...]) -> tuple[str, ...]:
    return tuple(
        f"{float(v):.3e}" if isinstance(v, int | float | Decimal) else repr(v) for v in row
    )
