"""Render expressions as SQL-like text for people: `sum(l_extendedprice * (1 - l_discount))`.

Parentheses stand only where the meaning needs them, implicit casts are shown as `x::type`, and a
literal shows its type as Spark writes it (`1L` is a bigint, `1BD` a decimal). An unknown expression
is shown like a function call. The text is for reading and for golden files: no engine runs it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from stagecoach.planner.plan.expressions import (
    TRUE,
    AggregateCall,
    Call,
    Cast,
    ColumnRef,
    Expression,
    FrameBound,
    Lambda,
    Literal,
    Parameter,
    ProjectCall,
    SortKey,
    WindowCall,
    WindowFrame,
)
from stagecoach.planner.plan.subqueries import (
    Exists,
    InSubquery,
    ScalarSubquery,
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
        self._bound: dict[int, str] = {}

    def __call__(self, expr: Expression) -> str:
        """The text of an expression; no depth of nesting is too deep for it."""
        results: list[_Part] = []
        stack: list[tuple[Expression, bool]] = [(expr, False)]
        while stack:
            node, expanded = stack.pop()
            if not expanded:
                if isinstance(node, Lambda):
                    self._bound.update({c.id: c.name for c in node.parameters})
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
        return f"{self(key.expr)}{_direction(key)}"

    def _write(self, node: Expression, operands: list[_Part]) -> _Part:
        match node:
            case ColumnRef():
                bound = self._bound.get(node.id, f"outer.{node.name}")
                return self._names.get(node.id, bound), _ATOM
            case Literal():
                return _literal(node)
            case Parameter():
                return f":{node.name}", _ATOM
            case Call():
                return _call(node, operands)
            case ProjectCall():
                return f"{node.function.name}({', '.join(text for text, _ in operands)})", _ATOM
            case Cast():
                if node.safe:
                    return f"TRY_CAST({operands[0][0]} AS {node.dtype})", _ATOM
                return f"{_at_least(operands[0], _CAST)}::{node.dtype}", _CAST
            case AggregateCall():
                return _aggregate(node, operands), _ATOM
            case WindowCall():
                return _window(node, operands), _ATOM
            case Lambda():
                names = [c.name for c in node.parameters]
                left = names[0] if len(names) == 1 else f"({', '.join(names)})"
                return f"{left} -> {operands[0][0]}", _OR
            case ScalarSubquery():
                return f"({self._subquery(node)})", _ATOM
            case Exists():
                return f"EXISTS ({self._subquery(node)})", _ATOM
            case InSubquery():
                left = ", ".join(text for text, _ in operands)
                left = left if len(operands) == 1 else f"({left})"
                return f"{left} IN ({self._subquery(node)})", _COMPARED
        return _unknown(node, operands, self._subquery), _ATOM


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
        case "get_field" | "get_fields" if isinstance(node.args[1], Literal):
            return f"{_at_least(operands[0], _ATOM)}.{_one_line(str(node.args[1].value))}", _ATOM
        case "array_item" | "map_item":
            return f"{_at_least(operands[0], _ATOM)}[{texts[1]}]", _ATOM
        case "element_index":
            return operands[0]
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


def _unknown(node: Expression, operands: list[_Part], label: SubqueryLabel) -> str:
    name = str(getattr(node, "function", "") or getattr(node, "name", "") or type(node).__name__)
    texts = [text for text, _ in operands]
    if isinstance(node, SubqueryExpression):
        texts.append(label(node))
    return f"{name}({', '.join(texts)})"


def _aggregate(node: AggregateCall, operands: list[_Part]) -> str:
    texts = [text for text, _ in operands]
    head, rest = _called(node, texts)
    if not node.order:
        return head
    return f"{head} WITHIN GROUP (ORDER BY {_ordered(node.order, rest)})"


def _window(node: WindowCall, operands: list[_Part]) -> str:
    head, rest = _called(node, [text for text, _ in operands])
    count = len(node.partition)
    over = [f"PARTITION BY {', '.join(rest[:count])}"] if count else []
    over += [f"ORDER BY {_ordered(node.order, rest[count:])}"] if node.order else []
    over += [_frame(node.frame)] if node.frame is not None else []
    return f"{head} OVER ({' '.join(over)})"


def _called(node: AggregateCall | WindowCall, texts: list[str]) -> tuple[str, list[str]]:
    """The call with its filter, and the texts of the operands after them."""
    args, rest = texts[: len(node.args)], texts[len(node.args) :]
    where = ""
    if node.where is not None:
        where = "" if node.where == TRUE else f" FILTER (WHERE {rest[0]})"
        rest = rest[1:]
    distinct = "DISTINCT " if node.distinct else ""
    shown = ", ".join(args) or ("*" if node.function == "count" else "")
    nulls = " IGNORE NULLS" if node.ignore_nulls else ""
    return f"{node.function}({distinct}{shown}){nulls}{where}", rest


def _ordered(keys: tuple[SortKey, ...], texts: list[str]) -> str:
    return ", ".join(f"{t}{_direction(k)}" for k, t in zip(keys, texts, strict=True))


def _direction(key: SortKey) -> str:
    order = "" if key.ascending else " DESC"
    if key.nulls_first == key.ascending:
        return order
    return f"{order} NULLS {'FIRST' if key.nulls_first else 'LAST'}"


def _frame(frame: WindowFrame) -> str:
    start, end = _bound(frame.start), _bound(frame.end)
    return f"{frame.unit.upper()} BETWEEN {start} AND {end}"


def _bound(bound: FrameBound) -> str:
    if bound.kind == "current":
        return "CURRENT ROW"
    words = bound.kind.upper().replace("_", " ")
    return words if bound.offset is None else f"{_literal(bound.offset)[0]} {words}"


def _at_least(part: _Part, level: int) -> str:
    text, binds = part
    return text if binds >= level else f"({text})"
