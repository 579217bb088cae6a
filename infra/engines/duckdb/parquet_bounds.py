"""SQL that keeps DuckDB from using bounds of Parquet columns that leave values out.

DuckDB takes the bounds in footers for true: it skips row groups and decides comparisons by them.
But as Parquet's format has it, those of floating point leave NaN out. What is computed has none.
"""

from __future__ import annotations

from stagecoach.planner.functions.nested_rules import has_kind
from stagecoach.planner.types import DataType


def leaves_out_values(dtype: DataType) -> bool:
    """Whether a column of this type may hold values beyond its bounds."""
    return has_kind(dtype, "float", "double")


def without_bounds(column: str) -> str:
    """SQL of a column's values, of which DuckDB does not know the bounds.

    Args:
        column: The column in SQL.
    """
    # Not -(-x), coalesce or if: it derives bounds of these from the column's.
    return f"CASE WHEN {column} IS NULL THEN NULL ELSE {column} END"
