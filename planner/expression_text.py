"""Expressions → SQL-like text for people: `sum(l_extendedprice * (1 - l_discount))`.

In: an expression and the names of columns. Out: one line. Parentheses stand only where the meaning
needs them, implicit casts are shown as `x::type`, and a literal shows its type as Spark writes it
(`1L` is a bigint, `1BD` a decimal). The text is for reading and for golden files: no engine runs
it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from planner.errors import InternalPlanError
from planner.expressions import (
    TRUE,
    AggregateCall,
    Call,
    Cast,
    ColumnRef,
    Exists,
    Expression,
    InSubquery,
    Literal,
    Parameter,
    ScalarSubquery,
    SortKey,
    SubqueryExpression,
)

SubqueryLabel = Callable[[SubqueryExpression], str]

# How tightly a text binds; an operand that binds less tightly than its place needs parentheses.
_ATOM, _CAST, _NEGATIVE, _PRODUCT, _SUM, _COMPARED, _NOT, _AND, _OR = range(9, 0, -1)
_INFIX = {
    "or": ("OR", _OR),
    "and": ("AND", _AND),
    "eq": ("=", _COMPARED),
    "ne": ("<>", _COMPARED),
    "lt": ("<", _COMPARED),
    "le": ("<=", _COMPARED),
    "gt": (">", _COMPARED),
    "ge": (">=", _COMPARED),
    "eq_null_safe": ("<=>", _COMPARED),
    "like": ("LIKE", _COMPARED),
    "ilike": ("ILIKE", _COMPARED),
    "rlike": ("RLIKE", _COMPARED),
    "add": ("+", _SUM),
    "subtract": ("-", _SUM),
    "multiply": ("*", _PRODUCT),
    "divide": ("/", _PRODUCT),
    "div": ("DIV", _PRODUCT),
    "mod": ("%", _PRODUCT),
}
_SUFFIXES = {"tinyint": "Y", "smallint": "S", "bigint": "L", "float": "F", "double": "D"}

_Part = tuple[str, int]


class ExpressionText:
    """Writes the expressions of one plan.

    Args:
        names: Names by column number; a column that is not there belongs to an outer query.
        subquery: Label of a subquery expression's plan, which is drawn elsewhere.
    """

    def __init__(self, names: Mapping[int, str], subquery: SubqueryLabel | None = None) -> None:
        self._names = names
        self._subquery = subquery or (lambda _: "subquery")

    def __call__(self, expr: Expression) -> str:
        """The text of an expression; no depth of nesting is too deep for it."""
        results: list[_Part] = []
        stack: list[tuple[Expression, bool]] = [(expr, False)]
        while stack:
            node, expanded = stack.pop()
            if not expanded:
                stack.append((node, True))
                stack.extend((child, False) for child in reversed(node.children))
                continue
            count = len(node.children)
            operands = results[len(results) - count :]
            del results[len(results) - count :]
            results.append(self._write(node, operands))
        return results[0][0]

    def sort_key(self, key: SortKey) -> str:
        """One item of ORDER BY; the place of NULLs only where it is not Spark's default."""
        order = "" if key.ascending else " DESC"
        nulls = "" if key.nulls_first == key.ascending else " NULLS LAST"
        if key.nulls_first and not key.ascending:
            nulls = " NULLS FIRST"
        return f"{self(key.expr)}{order}{nulls}"

    def _write(self, node: Expression, operands: list[_Part]) -> _Part:
        match node:
            case ColumnRef():
                return self._names.get(node.id, f"outer.{node.name}"), _ATOM
            case Literal():
                return _literal(node)
            case Parameter():
                return f":{node.name}", _ATOM
            case Call():
                return _call(node, operands)
            case Cast():
                if node.safe:
                    return f"TRY_CAST({operands[0][0]} AS {node.dtype})", _ATOM
                return f"{_at_least(operands[0], _CAST)}::{node.dtype}", _CAST
            case AggregateCall():
                return _aggregate(node, operands), _ATOM
            case ScalarSubquery():
                return f"({self._subquery(node)})", _ATOM
            case Exists():
                return f"EXISTS ({self._subquery(node)})", _ATOM
            case InSubquery():
                left = ", ".join(text for text, _ in operands)
                left = left if len(operands) == 1 else f"({left})"
                return f"{left} IN ({self._subquery(node)})", _COMPARED
        raise InternalPlanError(f"{type(node).__name__} has no text")


def _literal(node: Literal) -> _Part:
    kind, value = node.dtype.kind, node.value
    if value is None:
        return ("NULL", _ATOM) if kind == "void" else (f"NULL::{node.dtype}", _CAST)
    if isinstance(value, bool):
        return str(value).lower(), _ATOM
    if kind == "string":
        return "'" + _one_line(str(value)).replace("'", "''") + "'", _ATOM
    if kind in ("date", "timestamp", "timestamp_ntz", "interval", "binary"):
        return f"{kind.upper()} '{value}'", _ATOM
    suffix = _SUFFIXES.get(kind, "")
    if kind == "decimal" and "." not in str(value):
        suffix = "BD"
    text = f"{value}{suffix}"
    return text, _NEGATIVE if text.startswith("-") else _ATOM


def _one_line(text: str) -> str:
    """Text without characters that would break the line or the terminal."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def _call(node: Call, operands: list[_Part]) -> _Part:
    name = node.function
    texts = [text for text, _ in operands]
    if name in _INFIX and len(operands) > 1:
        sign, level = _INFIX[name]
        # a - (b - c) is not a - b - c, and a = (b = c) is not valid: the right side binds tighter.
        first = level if level in (_SUM, _PRODUCT, _AND, _OR) else level + 1
        rest = level if name in ("and", "or") else level + 1
        sides = [_at_least(operands[0], first), *(_at_least(o, rest) for o in operands[1:])]
        return f" {sign} ".join(sides), level
    match name:
        case "not":
            return f"NOT {_at_least(operands[0], _NOT)}", _NOT
        case "negate":
            return f"-{_at_least(operands[0], _CAST)}", _NEGATIVE
        case "is_null" | "is_not_null":
            sign = "IS NULL" if name == "is_null" else "IS NOT NULL"
            return f"{_at_least(operands[0], _SUM)} {sign}", _COMPARED
        case "in":
            return f"{_at_least(operands[0], _SUM)} IN ({', '.join(texts[1:])})", _COMPARED
        case "case":
            pairs = zip(texts[:-1:2], texts[1::2], strict=True)
            whens = " ".join(f"WHEN {test} THEN {value}" for test, value in pairs)
            return f"CASE {whens} ELSE {texts[-1]} END", _ATOM
    return f"{name}({', '.join(texts)})", _ATOM


def _aggregate(node: AggregateCall, operands: list[_Part]) -> str:
    texts = [text for text, _ in operands]
    where = "" if node.where is None or node.where == TRUE else f" FILTER (WHERE {texts[-1]})"
    args = ", ".join(texts[: len(node.args)]) or "*"
    return f"{node.function}({'DISTINCT ' if node.distinct else ''}{args}){where}"


def _at_least(part: _Part, level: int) -> str:
    text, binds = part
    return text if binds >= level else f"({text})"
