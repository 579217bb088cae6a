"""Find expressions that Spark takes for the same: `1 + a` and `a + 1`, `a > b` and `b < a`.

Source: Spark's `Expression.canonicalized` and `CommutativeExpression`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from stagecoach.planner.plan.expressions import Call, Expression

_COMMUTATIVE = frozenset(
    ("add", "multiply", "and", "or", "bit_and", "bit_or", "bit_xor", "greatest", "least")
)
_SYMMETRIC = frozenset(("eq", "ne", "eq_null_safe"))
_MIRRORED = {"gt": "lt", "ge": "le"}
_NEGATED = {"gt": "le", "ge": "lt", "lt": "ge", "le": "gt", "eq": "ne", "ne": "eq"}


class SameExpressions:
    """Values of expressions, found by any expression that is the same to Spark.

    Args:
        values: The values by expression.
    """

    def __init__(self, values: Mapping[Expression, Expression]) -> None:
        self._values = values
        self._forms: dict[Expression, Expression] = {}
        self._by_form = {
            form: (key.dtype, value)
            for key, value in reversed(list(values.items()))
            if (form := self._canonical(key)).children
        }

    def get(self, expr: Expression) -> Expression | None:
        """The value of an expression, or of one that is the same; else None."""
        found = self._values.get(expr)
        if found is not None or not self._by_form or not expr.children:
            return found
        dtype, value = self._by_form.get(self._canonical(expr), (None, None))
        return value if dtype == expr.dtype else None

    def _canonical(self, expr: Expression) -> Expression:
        if not expr.children:
            return expr
        known = self._forms.get(expr)
        if known is None:
            known = self._forms[expr] = _ordered(
                expr.with_children(tuple(self._canonical(c) for c in expr.children))
            )
        return known


def _ordered(expr: Expression) -> Expression:
    """An expression over canonical operands in canonical form."""
    if not isinstance(expr, Call):
        return expr
    name, args = expr.function, expr.args
    if name == "not" and isinstance(args[0], Call) and args[0].function in _NEGATED:
        inner = args[0]
        return _ordered(replace(inner, function=_NEGATED[inner.function]))
    if name in _MIRRORED:
        return replace(expr, function=_MIRRORED[name], args=args[::-1])
    if name in _COMMUTATIVE:
        parts: list[Expression] = []
        for arg in args:
            same = isinstance(arg, Call) and arg.function == name
            parts.extend(arg.args if same and isinstance(arg, Call) else (arg,))
        return replace(expr, args=tuple(sorted(parts, key=repr)))
    if name in _SYMMETRIC:
        return replace(expr, args=tuple(sorted(args, key=repr)))
    if name == "in":
        return replace(expr, args=(args[0], *sorted(args[1:], key=repr)))
    return expr
