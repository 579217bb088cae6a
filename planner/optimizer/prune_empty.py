"""Rule: do not compute what cannot have a row."""

from __future__ import annotations

from collections.abc import Iterable

from stagecoach.planner.optimizer.constants import COMPARE, Ordered, compared, ordered
from stagecoach.planner.optimizer.context import RuleContext
from stagecoach.planner.plan.comparisons import MIRRORED
from stagecoach.planner.plan.expressions import (
    FALSE,
    Call,
    ColumnRef,
    Expression,
    Literal,
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
    Sort,
    Union,
)
from stagecoach.planner.tree import transform_up


def prune_empty(plan: LogicalPlan, context: RuleContext) -> LogicalPlan:
    """Replace operators without rows by an empty relation, up to where it makes a difference.

    Before:  Union(Filter[k = 1 AND k > 3] <- a, b)
    After:   Union(b), as a projection
    Filters that are false, that contradict themselves or that hold NULL, LIMIT 0, joins with an
    empty side. An aggregate without groups keeps its one row; an outer join its preserved side.
    Never:   from statistics; for columns of nested types, of which there is no NULL to write.
    """
    del context
    return transform_up(plan, _prune)


def empty(plan: LogicalPlan) -> LogicalPlan:
    """A plan of the same columns and no row."""
    if isinstance(plan, Filter) and plan.predicate == FALSE and is_empty(plan):
        return plan
    if not all(c.dtype.is_atomic for c in plan.columns):
        return plan
    items = tuple((c, Literal(c.dtype, None)) for c in plan.columns)
    return Filter(Project(OneRow(), items), FALSE)


def is_empty(plan: LogicalPlan) -> bool:
    """Whether the plan is what `empty` makes."""
    return (
        isinstance(plan, Filter)
        and plan.predicate == FALSE
        and isinstance(plan.child, Project)
        and isinstance(plan.child.child, OneRow)
    )


def _prune(plan: LogicalPlan) -> LogicalPlan:
    match plan:
        case Filter():
            never = any(_is_never(part) for part in conjuncts(plan.predicate))
            if never or is_empty(plan.child) or _contradicts(conjuncts(plan.predicate)):
                return empty(plan)
        case Project() | Sort():
            if is_empty(plan.child):
                return empty(plan)
        case Limit():
            if plan.limit == 0 or is_empty(plan.child):
                return empty(plan)
        case Aggregate():
            if plan.groups and is_empty(plan.child):
                return empty(plan)
        case Join():
            return _join(plan)
        case Union():
            return _union(plan)
    return plan


def _is_never(part: Expression) -> bool:
    return isinstance(part, Literal) and part.value is not True


def _join(plan: Join) -> LogicalPlan:
    left, right = is_empty(plan.left), is_empty(plan.right)
    never = any(_is_never(part) for part in conjuncts(plan.condition))
    match plan.kind:
        case "inner" | "cross" | "semi" if left or right or never:
            return empty(plan)
        case "left" if left:
            return empty(plan)
        case "right" if right:
            return empty(plan)
        case "full" if left and right:
            return empty(plan)
        case "anti" if left:
            return empty(plan)
        case "anti" if right or never:
            return plan.left
        case "left" if right or never:
            return _padded(plan, plan.left)
        case "right" if left or never:
            return _padded(plan, plan.right)
        case "full" if right:
            return _padded(plan, plan.left)
        case "full" if left:
            return _padded(plan, plan.right)
    return plan


def _padded(plan: Join, kept: LogicalPlan) -> LogicalPlan:
    """The preserved side with NULL in the columns of the other one."""
    ids = kept.column_ids
    if not all(c.dtype.is_atomic for c in plan.columns if c.id not in ids):
        return plan
    items = [(c, c.ref if c.id in ids else Literal(c.dtype, None)) for c in plan.columns]
    return Project(kept, tuple(items))


def _union(plan: Union) -> LogicalPlan:
    inputs = tuple(child for child in plan.inputs if not is_empty(child))
    if not inputs:
        return empty(plan)
    if len(inputs) == 1:
        pairs = zip(plan.outputs, inputs[0].columns, strict=True)
        return Project(inputs[0], tuple((out, column.ref) for out, column in pairs))
    return plan if len(inputs) == len(plan.inputs) else Union(inputs, plan.outputs)


# ---------------------------------------------------------------- contradictions


def _contradicts(parts: Iterable[Expression]) -> bool:
    """Whether no value of some column passes all comparisons of it with constants."""
    compared_with: dict[int, _Comparisons] = {}
    for part in parts:
        if not isinstance(part, Call) or not part.args or not isinstance(part.args[0], ColumnRef):
            part = _mirrored(part)
        if not isinstance(part, Call) or not isinstance(part.args[0], ColumnRef):
            continue
        column = part.args[0]
        if compared_with.setdefault(column.id, _Comparisons()).add(part):
            return True
    return False


def _mirrored(part: Expression) -> Expression:
    """`5 < x` as `x > 5`."""
    if isinstance(part, Call) and part.function in MIRRORED and isinstance(part.args[1], ColumnRef):
        return Call(part.dtype, MIRRORED[part.function], part.args[::-1])
    return part


class _Comparisons:
    """The values that a column may have; NULL is none of them once it has been compared."""

    def __init__(self) -> None:
        self._comparisons: list[tuple[str, Ordered]] = []
        self._among: set[Ordered] | None = None
        self._null: bool | None = None

    def add(self, part: Call) -> bool:
        """Take note of a predicate on the column; whether nothing is left."""
        if part.function in ("is_null", "is_not_null"):
            null = part.function == "is_null"
            contradiction = self._null not in (None, null)
            self._null = null
            return contradiction
        values = [value for arg in part.args[1:] if (value := ordered(arg)) is not None]
        if part.function not in (*MIRRORED, "in") or len(values) < len(part.args) - 1:
            return False
        if self._null:
            return True
        self._null = False
        if part.function in ("eq", "in"):
            self._among = set(values) if self._among is None else self._among & set(values)
        else:
            self._comparisons.append((part.function, values[0]))
        return self._is_nothing()

    def _is_nothing(self) -> bool:
        if self._among is not None:
            return not any(self._allows(value) for value in self._among)
        lows = [(f, v) for f, v in self._comparisons if f in ("gt", "ge")]
        highs = [(f, v) for f, v in self._comparisons if f in ("lt", "le")]
        return any(_apart(low, high) for low in lows for high in highs)

    def _allows(self, value: Ordered) -> bool:
        return all(COMPARE[f](compared(value, bound)) for f, bound in self._comparisons)


def _apart(low: tuple[str, Ordered], high: tuple[str, Ordered]) -> bool:
    """Whether no value is above the one and below the other bound."""
    sign = compared(low[1], high[1])
    return sign > 0 or (sign == 0 and (low[0], high[0]) != ("ge", "le"))
