"""Render plans as indented text, one operator per line, inputs below their consumer.

A line looks like `HashJoinExec: kind=inner, on=[o_custkey = c_custkey]`; operators are named as in
DataFusion. A column shows its number (`n_name#7`) only where its name is ambiguous in the plan.
Plans of subqueries are drawn below the operator that holds them.
"""

from __future__ import annotations

from collections.abc import Collection

from stagecoach.planner.distribution.reasons import size_text
from stagecoach.planner.explain.describe import Plan, Size, Sizer, describe
from stagecoach.planner.explain.describe import column_names as column_names

_INDENT = "  "


def render_plan(plan: Plan, sizes: Sizer | None = None) -> str:
    """The plan as text, without a newline at the end."""
    return "\n".join(plan_lines(plan, sizes=sizes))


def plan_lines(
    plan: Plan,
    inputs: dict[int, str] | None = None,
    sizes: Sizer | None = None,
    once: Collection[Plan] = (),
) -> list[str]:
    """The plan, a line an operator.

    Args:
        plan: A logical plan, or a physical one with or without exchanges.
        inputs: What to say of the output of a stage, by its number.
        sizes: The estimated size of each operator, shown at the end of its line.
        once: Parts that stand in several places and are computed once.
    """
    return [
        f"{_INDENT * row.depth}{row.line}{_size_end(row.size)}"
        for row in describe(plan, inputs=inputs, sizes=sizes, once=once)
    ]


def estimate_text(size: Size) -> str:
    """Estimated rows and bytes for people."""
    rows, num_bytes = size
    return f"~{rows_text(rows)}, {size_text(num_bytes)}"


def rows_text(rows: float) -> str:
    """A number of rows for people."""
    return f"{rows:,.0f} row{'' if round(rows) == 1 else 's'}"


def _size_end(size: Size | None) -> str:
    return "" if size is None else f"  ({estimate_text(size)})"
