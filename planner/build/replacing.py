"""Whole subtrees of an expression exchanged, the largest first.

In: an expression and what stands for what. Out: the expression over columns of the operator below.
"""

from __future__ import annotations

from collections.abc import Mapping

from planner.expressions import Expression


def exchanged(expr: Expression, replaced: Mapping[Expression, Expression]) -> Expression:
    """`expr` with every subtree that is a key of `replaced` exchanged for its value."""
    if expr in replaced:
        return replaced[expr]
    return expr.with_children(tuple(exchanged(c, replaced) for c in expr.children))
