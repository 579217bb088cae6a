"""Facts that a plan proves by itself, without statistics: totality, uniqueness, repeatability.

Every answer is "no" where it is not certain, so an unknown operator or function only costs an
optimisation.
"""

from __future__ import annotations

from stagecoach.planner.plan.expressions import (
    AggregateCall,
    Call,
    Cast,
    ColumnRef,
    Expression,
    Literal,
    Parameter,
    conjuncts,
)
from stagecoach.planner.plan.logical import (
    Aggregate,
    Filter,
    Join,
    Limit,
    LogicalPlan,
    OneRow,
    Project,
    Scan,
    Sort,
)
from stagecoach.planner.tree import walk
from stagecoach.planner.types import DataType

_SMALL_INTEGERS = ("tinyint", "smallint", "int")
_INTEGERS = (*_SMALL_INTEGERS, "bigint")
_MAX_DIGITS = 38
# Functions that raise for no argument of their types.
_TOTAL = frozenset(
    (
        "and", "or", "not", "eq", "ne", "lt", "le", "gt", "ge", "eq_null_safe", "is_null",
        "is_not_null", "in", "case", "coalesce", "if", "nullif", "startswith", "endswith",
        "contains", "length", "upper", "lower", "substring", "year", "month", "day", "concat",
    )
)  # fmt: skip
_PURE = frozenset(
    (
        "add", "subtract", "multiply", "divide", "negate", "div", "mod", "abs", "like",
        "add_months", "date_add", "date_sub", "datediff", "average",
    )
)  # fmt: skip
# Aggregates whose result does not depend on the order of the rows.
_ORDERLESS = frozenset(("count", "sum", "avg", "min", "max", "bool_and", "bool_or"))
_INSENSITIVE = frozenset(("min", "max", "bool_and", "bool_or"))


def is_total(expr: Expression) -> bool:
    """Whether the expression has a value for every row: it raises no error (overflow, bad cast)."""
    return all(_is_total_node(node) for node in walk(expr))


def _is_total_node(node: Expression) -> bool:
    match node:
        case ColumnRef() | Literal() | Parameter():
            return True
        case Cast():
            return node.safe or _widens(node.arg.dtype, node.dtype)
        case Call() if node.function in _TOTAL:
            return True
        case Call() if node.dtype.is_floating:
            return node.function in ("add", "subtract", "multiply", "negate")
        case Call() if node.dtype.is_decimal:
            return _exact_decimal(node)
        case AggregateCall():
            return _total_aggregate(node)
    return False


def _widens(source: DataType, target: DataType) -> bool:
    """Whether each value of a numeric type is one of the other."""
    if source == target:
        return True
    if target.is_floating:
        return source.is_integral or source.is_decimal or source.kind == "float"
    if target.is_decimal and source.is_decimal:
        whole = source.precision - source.scale
        return target.scale >= source.scale and target.precision - target.scale >= whole
    if target.is_decimal and source.kind in _INTEGERS:
        digits = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 19}[source.kind]
        return target.precision - target.scale >= digits
    if source.kind in _INTEGERS and target.kind in _INTEGERS:
        return _INTEGERS.index(target.kind) >= _INTEGERS.index(source.kind)
    return False


def _exact_decimal(node: Call) -> bool:
    """Whether the declared type of a decimal result has room for every result."""
    types = [a.dtype for a in node.args]
    if not all(t.is_decimal for t in types) or node.dtype.precision >= _MAX_DIGITS:
        return False
    return node.function in ("add", "subtract", "multiply", "negate")


def _total_aggregate(node: AggregateCall) -> bool:
    if node.function in ("sum", "avg"):
        arg = node.args[0]
        if arg.dtype.is_decimal:  # ten digits more than an argument has: 10^10 rows at the least
            return arg.dtype.precision + 10 <= _MAX_DIGITS
        while isinstance(arg, Cast) and arg.arg.dtype.kind in _INTEGERS:
            arg = arg.arg
        return arg.dtype.is_floating or arg.dtype.kind in _SMALL_INTEGERS or node.function == "avg"
    return node.function in _ORDERLESS


def is_repeatable(plan: LogicalPlan) -> bool:
    """Whether a copy of the plan gives the same rows: no LIMIT, no choice, no rounding by order."""
    return all(
        isinstance(node, Scan | Filter | Project | Join | OneRow)
        and all(_is_repeatable(e) for e in node.expressions)
        for node in walk(plan)
    )


def _is_repeatable(expr: Expression) -> bool:
    """Whether it is a function of its columns: all calls are of those that are known to be."""
    return all(
        isinstance(node, ColumnRef | Literal | Parameter | Cast)
        or (isinstance(node, Call) and node.function in _TOTAL | _PURE)
        for node in walk(expr)
    )


def unique_keys(plan: LogicalPlan) -> tuple[frozenset[int], ...]:
    """Sets of columns that no two rows of the plan agree in, NULLs counted as equal.

    An empty set stands for a plan of at most one row. What a table holds is not asked.
    """
    match plan:
        case OneRow():
            return (frozenset(),)
        case Aggregate():
            return (frozenset(c.id for c, _ in plan.groups),)
        case Limit() if plan.limit is not None and plan.limit <= 1:
            return (frozenset(),)
        case Filter() | Sort() | Limit():
            return unique_keys(plan.child)
        case Project():
            return _projected_keys(plan)
        case Join():
            return _join_keys(plan)
    return ()


def _projected_keys(plan: Project) -> tuple[frozenset[int], ...]:
    names: dict[int, int] = {}
    for column, expr in plan.items:
        if isinstance(expr, ColumnRef):
            names.setdefault(expr.id, column.id)
    keys = unique_keys(plan.child)
    return tuple(frozenset(names[i] for i in key) for key in keys if all(i in names for i in key))


def _join_keys(plan: Join) -> tuple[frozenset[int], ...]:
    if plan.kind in ("semi", "anti"):
        return unique_keys(plan.left)
    if plan.kind == "full":
        return ()
    keys: list[frozenset[int]] = []
    if plan.kind != "right" and is_unique(plan.right, joined_columns(plan, plan.right)):
        keys.extend(unique_keys(plan.left))
    if plan.kind in ("inner", "cross", "right") and is_unique(
        plan.left, joined_columns(plan, plan.left)
    ):
        keys.extend(unique_keys(plan.right))
    return tuple(keys)


def is_unique(plan: LogicalPlan, columns: frozenset[int]) -> bool:
    """Whether no two rows agree in all of the columns."""
    return any(key <= columns for key in unique_keys(plan))


def joined_columns(join: Join, side: LogicalPlan) -> frozenset[int]:
    """Columns of one side of a join that must equal something of the other side."""
    found: set[int] = set()
    for part in conjuncts(join.condition):
        if isinstance(part, Call) and part.function == "eq":
            for mine, theirs in (part.args, part.args[::-1]):
                mine = _uncast(mine)
                if (
                    isinstance(mine, ColumnRef)
                    and mine.id in side.column_ids
                    and theirs.column_ids.isdisjoint(side.column_ids)
                ):
                    found.add(mine.id)
    return frozenset(found)


def _uncast(expr: Expression) -> Expression:
    """The whole number below casts to wider whole numbers, which keep different values apart."""
    while isinstance(expr, Cast) and expr.dtype.is_integral and _widens(expr.arg.dtype, expr.dtype):
        expr = expr.arg
    return expr


def ignores_duplicates(plan: Aggregate) -> bool:
    """Whether the aggregate is the same over a row once and over it twice."""
    return all(call.distinct or call.function in _INSENSITIVE for _, call in plan.aggregates)
