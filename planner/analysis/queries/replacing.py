"""Replace whole subtrees of an expression, the largest first.

An expression above an aggregate or a window is written over its input; this rewrites it over the
columns that the operator produces.
"""

from __future__ import annotations

from collections.abc import Mapping

from stagecoach.planner.plan.expressions import Expression


def exchanged(expr: Expression, replaced: Mapping[Expression, Expression]) -> Expression:
    """`expr` with every subtree that is a key of `replaced` exchanged for its value."""
    if expr in replaced:
        return replaced[expr]
    return expr.with_children(tuple(exchanged(c, replaced) for c in expr.children))
