"""Build the boolean conditions of WHERE, ON, HAVING and QUALIFY."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stagecoach.planner.analysis.scalars import build_scalar
from stagecoach.planner.analysis.scope import Scope
from stagecoach.planner.errors import AnalysisError
from stagecoach.planner.plan.coercion import cast_literal, is_castable
from stagecoach.planner.plan.expressions import Expression, cast
from stagecoach.planner.syntax.places import located
from stagecoach.planner.types import BOOLEAN, NULL

if TYPE_CHECKING:
    from sqlglot import exp


def condition_of(node: exp.Expr, scope: Scope, where: str) -> Expression:
    """The condition of a clause.

    Raises:
        AnalysisError: If it is not a boolean.
    """
    with located(node):
        result = build_scalar(node, scope)
        is_other = result.dtype not in (BOOLEAN, NULL)
        if where == "HAVING" and is_other and is_castable(result.dtype, BOOLEAN):
            return cast(result, BOOLEAN)  # Spark casts there only
        if result.dtype != BOOLEAN and (result.dtype != NULL or where in ("WHERE", "ON")):
            raise AnalysisError(f"{where} needs a boolean, found {result.dtype}")
        return cast_literal(result, BOOLEAN)
