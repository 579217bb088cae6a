"""Generators where none may stand.

In: calls of `explode` and its kin inside an expression. Out: the mistake.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.errors import AnalysisError
from planner.expressions import Expression
from planner.scalars.handlers import Names, builds

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
        f"generator '{node.name.lower()}' stands in the select list, LATERAL VIEW or FROM only, "
        "not inside an expression"
    )
