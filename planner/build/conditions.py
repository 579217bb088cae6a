"""Conditions: WHERE, ON, HAVING, QUALIFY.

In: a node and a scope. Out: a boolean expression.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.build.places import located
from planner.coercion import cast_literal
from planner.errors import AnalysisError
from planner.expressions import Expression
from planner.scalars import build_scalar
from planner.scope import Scope
from planner.types import BOOLEAN, NULL

if TYPE_CHECKING:
    from sqlglot import exp


def condition_of(node: exp.Expr, scope: Scope, where: str) -> Expression:
    """The condition of a clause.

    Raises:
        AnalysisError: If it is no boolean.
    """
    with located(node):
        result = build_scalar(node, scope)
        if result.dtype != BOOLEAN and (result.dtype != NULL or where in ("WHERE", "ON")):
            raise AnalysisError(f"{where} needs a boolean, found {result.dtype}")
        return cast_literal(result, BOOLEAN)
