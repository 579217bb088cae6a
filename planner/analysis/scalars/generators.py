"""Reject generators such as `explode` inside an expression."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stagecoach.planner.analysis.scalars.handlers import Names, builds
from stagecoach.planner.errors import AnalysisError
from stagecoach.planner.plan.expressions import Expression

if TYPE_CHECKING:
    from sqlglot import exp


@builds(
    "explode",
    "explode_outer",
    "posexplode",
    "posexplode_outer",
    "inline",
    "inline_outer",
    "stack",
    "json_tuple",
)
def _nested(node: exp.Anonymous, names: Names) -> Expression:
    del names
    raise AnalysisError(
        f"generator '{node.name.lower()}' is only allowed in the select list, LATERAL VIEW or "
        "FROM, not inside an expression"
    )
