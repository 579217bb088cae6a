"""Build UNION, INTERSECT and EXCEPT over the common types of their inputs.

INTERSECT and EXCEPT become an aggregate over the rows of both sides, each tagged with its side.
NULLs then meet in one group as SQL requires, each task counts its own rows first, and one exchange
is enough.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stagecoach.planner.analysis.queries.context import BuildContext, Ctes
from stagecoach.planner.analysis.queries.sorting import order_and_limit
from stagecoach.planner.analysis.scope import Scope
from stagecoach.planner.errors import AnalysisError, UnsupportedSqlError
from stagecoach.planner.functions import make_call
from stagecoach.planner.plan.coercion import comparison_type
from stagecoach.planner.plan.expressions import (
    AggregateCall,
    Column,
    Expression,
    Literal,
    cast,
)
from stagecoach.planner.plan.logical import (
    Aggregate,
    Filter,
    Generate,
    LogicalPlan,
    NamedExpression,
    Project,
    Union,
    distinct,
)
from stagecoach.planner.syntax.places import located
from stagecoach.planner.types import BIGINT, INT, DataType

if TYPE_CHECKING:
    from sqlglot import exp

_LEFT, _RIGHT = Literal(INT, 0), Literal(INT, 1)


def plan_set_operation(
    context: BuildContext, node: exp.SetOperation, outer: Scope | None, ctes: Ctes
) -> LogicalPlan:
    """The plan of a set operation.

    Raises:
        AnalysisError: For sides that do not fit, with the place of the right one.
        UnsupportedSqlError: For forms that Spark's SQL does not have, such as BY NAME.
    """
    if node.args.get("by_name") or node.args.get("on"):
        with located(node.expression):
            raise UnsupportedSqlError(f"{node.key.upper()} BY NAME is not SQL of Spark")
    sides = (
        context.query(node.this, outer, ctes),
        context.query(node.expression, outer, ctes),
    )
    with located(node.expression):
        plan = combined(context, node.key, sides, bool(node.args.get("distinct")))
    return order_and_limit(context, node, plan, context.output_scope(plan, outer, ctes))


def combined(
    context: BuildContext, kind: str, sides: tuple[LogicalPlan, LogicalPlan], is_distinct: bool
) -> LogicalPlan:
    """Two plans by `union`, `intersect` or `except`."""
    types = _types(kind.upper(), sides)
    if kind != "union" or is_distinct:
        _refuse_maps(types, sides[0])
    if kind != "union":
        matched = _matched(context, kind, sides, types, is_distinct)
        return _named_as(context, matched, sides[0])
    plan: LogicalPlan = _union(context, sides, types)
    plan = distinct(plan) if is_distinct else plan
    return _named_as(context, plan, sides[0])


def _named_as(context: BuildContext, plan: LogicalPlan, left: LogicalPlan) -> LogicalPlan:
    """The plan, in which columns that are one on the left are one: a name may mean both."""
    for column, source in zip(plan.columns, left.columns, strict=True):
        if column.dtype == source.dtype:
            context.sources[column.id] = context.sources.get(source.id, source.id)
    return plan


def _types(name: str, sides: tuple[LogicalPlan, LogicalPlan]) -> tuple[DataType, ...]:
    left, right = (side.columns for side in sides)
    if len(left) != len(right):
        raise AnalysisError(f"{name} of {len(left)} columns with {len(right)} columns")
    found = []
    for number, (a, b) in enumerate(zip(left, right, strict=True), 1):
        try:
            found.append(comparison_type(a.dtype, b.dtype))
        except AnalysisError as error:
            raise AnalysisError(
                f"column {number} of {name} mixes {a.dtype} and {b.dtype}"
            ) from error
    return tuple(found)


def _refuse_maps(types: tuple[DataType, ...], left: LogicalPlan) -> None:
    for column, dtype in zip(left.columns, types, strict=True):
        if any(part.kind == "map" for part in _parts(dtype)):
            raise AnalysisError(
                f"column '{column.name}' is a map, and maps cannot be compared in a set operation"
            )


def _parts(dtype: DataType) -> list[DataType]:
    return [dtype, *(part for field in dtype.fields for part in _parts(field.dtype))]


def _union(
    context: BuildContext, sides: tuple[LogicalPlan, LogicalPlan], types: tuple[DataType, ...]
) -> Union:
    names = [c.name for c in sides[0].columns]
    outputs = tuple(context.column(n, t) for n, t in zip(names, types, strict=True))
    inputs: list[LogicalPlan] = []
    for side in sides:
        new = _retyped(context, side, types)
        inputs.extend(new.inputs if isinstance(new, Union) and side is sides[0] else [new])
    return Union(tuple(inputs), outputs)


def _matched(
    context: BuildContext,
    kind: str,
    sides: tuple[LogicalPlan, LogicalPlan],
    types: tuple[DataType, ...],
    is_distinct: bool,
) -> LogicalPlan:
    """The rows of INTERSECT or EXCEPT, from which sides each different row is on and how often."""
    tagged = []
    for side, tag in zip(sides, (_LEFT, _RIGHT), strict=True):
        items: list[NamedExpression] = [
            (context.column(c.name, t), cast(c.ref, t))
            for c, t in zip(side.columns, types, strict=True)
        ]
        tagged.append(Project(side, (*items, (context.column("side", INT), tag))))
    outputs = tuple(context.column(c.name, c.dtype) for c in tagged[0].columns)
    both = Union(tuple(tagged), outputs)
    rows, side_column = outputs[:-1], outputs[-1]
    groups = tuple((context.column(c.name, c.dtype), c.ref) for c in rows)
    columns = tuple(c for c, _ in groups)
    if is_distinct:
        first, last = (context.column(name, INT) for name in ("min", "max"))
        calls: tuple[tuple[Column, AggregateCall], ...] = (
            (first, AggregateCall(INT, "min", (side_column.ref,))),
            (last, AggregateCall(INT, "max", (side_column.ref,))),
        )
        counted = Aggregate(both, groups, calls)
        keep = make_call("eq", last.ref, _RIGHT if kind == "intersect" else _LEFT)
        if kind == "intersect":
            keep = make_call("and", make_call("eq", first.ref, _LEFT), keep)
        return _only(Filter(counted, keep), columns)
    left, right = (context.column(name, BIGINT) for name in ("left", "right"))
    calls = tuple(
        (column, AggregateCall(BIGINT, "count", (), where=make_call("eq", side_column.ref, tag)))
        for column, tag in ((left, _LEFT), (right, _RIGHT))
    )
    counted = Aggregate(both, groups, calls)
    return _repeated(context, counted, columns, _count(kind, left.ref, right.ref))


def _count(kind: str, left: Expression, right: Expression) -> Expression:
    """How often a row is in the result of an ALL form."""
    if kind == "intersect":
        return make_call("case", make_call("lt", left, right), left, right)
    return make_call("subtract", left, right)


def _repeated(
    context: BuildContext, plan: LogicalPlan, columns: tuple[Column, ...], count: Expression
) -> LogicalPlan:
    number = context.column("count", BIGINT)
    plan = Project(plan, (*((c, c.ref) for c in columns), (number, count)))
    plan = Filter(plan, make_call("gt", number.ref, Literal(BIGINT, 0)))
    copy = context.column("copy", BIGINT)
    generator = make_call("repeat_row", number.ref)
    return _only(Generate(plan, generator, (copy,)), columns)


def _only(plan: LogicalPlan, columns: tuple[Column, ...]) -> LogicalPlan:
    return Project(plan, tuple((c, c.ref) for c in columns))


def _retyped(context: BuildContext, plan: LogicalPlan, types: tuple[DataType, ...]) -> LogicalPlan:
    if tuple(c.dtype for c in plan.columns) == types:
        return plan
    items = tuple(
        (context.column(c.name, t), cast(c.ref, t))
        for c, t in zip(plan.columns, types, strict=True)
    )
    return Project(plan, items)
