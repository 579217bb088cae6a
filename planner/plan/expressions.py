"""Typed scalar expressions, independent of any engine's spelling.

Every implicit cast of Spark is explicit, so an engine only has to spell what it is given. Columns
are referred to by a number that is unique in the plan; names are for people.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal as OneOf

from stagecoach.planner.cached_property import cached_property
from stagecoach.planner.plan.value import Value
from stagecoach.planner.project_function import ProjectFunction
from stagecoach.planner.tree import same, transform_up, walk
from stagecoach.planner.types import BOOLEAN, DataType

LiteralValue = None | bool | int | float | str


@dataclass(frozen=True)
class Column:
    """A column that an operator produces.

    Args:
        id: Number, unique in the plan.
        name: Name for people; does not take part in comparisons.
        dtype: Spark type.
    """

    id: int
    name: str = field(compare=False)
    dtype: DataType

    @property
    def ref(self) -> ColumnRef:
        """A reference to this column."""
        return ColumnRef(id=self.id, name=self.name, dtype=self.dtype)


@dataclass(frozen=True)
class Expression(Value):
    """Base of all expressions."""

    dtype: DataType

    @property
    def children(self) -> tuple[Expression, ...]:
        """Operands, in order."""
        return ()

    def with_children(self, new: tuple[Expression, ...]) -> Expression:
        """A copy with other operands."""
        if new:
            raise TypeError(f"{type(self).__name__} has no operands")
        return self

    @cached_property
    def column_ids(self) -> frozenset[int]:
        """Numbers of all columns that the expression reads, those of subqueries included."""
        ids: set[int] = set()
        bound: set[int] = set()
        for node in walk(self):
            ids |= node.own_ids
            if isinstance(node, Lambda):
                bound.update(parameter.id for parameter in node.parameters)
        return frozenset(ids - bound)

    @property
    def own_ids(self) -> frozenset[int]:
        """Numbers of the columns that the node reads itself, not through its operands."""
        return frozenset()


@dataclass(frozen=True)
class ColumnRef(Expression):
    """The value of a column of the row at hand."""

    id: int
    name: str = field(compare=False)

    @property
    def own_ids(self) -> frozenset[int]:
        """Its number."""
        return frozenset((self.id,))


@dataclass(frozen=True)
class Literal(Expression):
    """A constant in canonical form.

    Args:
        value: None, bool, int, float or text. Decimals, dates (`2024-01-31`) and timestamps
            (`2024-01-31 10:00:00.000000`, UTC for the zoned type) are text; an interval is
            `months days microseconds`.
    """

    value: LiteralValue

    def __eq__(self, other: object) -> bool:
        """Whether it is the same constant: 0.0 and -0.0 are two, and NaN is one."""
        if type(other) is not Literal:
            return NotImplemented
        if isinstance(self.value, float) or isinstance(other.value, float):
            return self.dtype == other.dtype and repr(self.value) == repr(other.value)
        return self.dtype == other.dtype and self.value == other.value


@dataclass(frozen=True)
class Parameter(Expression):
    """A value that is bound when the query runs (`:name`, or the run's clock as `@now`)."""

    name: str


@dataclass(frozen=True)
class Call(Expression):
    """An operator or function of the registry, by its canonical name."""

    function: str
    args: tuple[Expression, ...]

    @property
    def children(self) -> tuple[Expression, ...]:
        """The arguments."""
        return self.args

    def with_children(self, new: tuple[Expression, ...]) -> Expression:
        """A call of the same function on other arguments."""
        return self if same(self.args, new) else replace(self, args=new)


@dataclass(frozen=True)
class ProjectCall(Expression):
    """A call of a function of the project, whose arguments have the declared types.

    It is not a `Call`: no rule knows anything of it, so none evaluates or moves it unless that is
    right for every expression.
    """

    function: ProjectFunction
    args: tuple[Expression, ...]

    @property
    def children(self) -> tuple[Expression, ...]:
        """The arguments."""
        return self.args

    def with_children(self, new: tuple[Expression, ...]) -> Expression:
        """A call of the same function on other arguments."""
        return self if same(self.args, new) else replace(self, args=new)


@dataclass(frozen=True)
class Cast(Expression):
    """A strict (ANSI) cast; `safe` makes it TRY_CAST."""

    arg: Expression
    safe: bool = False

    @property
    def children(self) -> tuple[Expression, ...]:
        """The one operand."""
        return (self.arg,)

    def with_children(self, new: tuple[Expression, ...]) -> Expression:
        """The same cast of another operand."""
        return self if new[0] is self.arg else replace(self, arg=new[0])


@dataclass(frozen=True)
class Lambda(Expression):
    """A function given to a higher-order function, such as `x -> x + 1`; its type is the body's.

    Args:
        parameters: Columns that only the body sees, numbered like all others.
        body: The value for one element.
    """

    parameters: tuple[Column, ...]
    body: Expression

    @property
    def children(self) -> tuple[Expression, ...]:
        """The body."""
        return (self.body,)

    def with_children(self, new: tuple[Expression, ...]) -> Expression:
        """The same parameters with another body."""
        return self if new[0] is self.body else replace(self, body=new[0], dtype=new[0].dtype)


@dataclass(frozen=True)
class SortKey:
    """One item of ORDER BY."""

    expr: Expression
    ascending: bool = True
    nulls_first: bool = True


@dataclass(frozen=True)
class AggregateCall(Expression):
    """An aggregate function over the rows of a group.

    Args:
        function: Canonical name; `count` without arguments counts rows.
        args: Arguments, evaluated per row.
        distinct: Whether equal argument rows count once.
        where: The FILTER clause, or None.
        order: WITHIN GROUP (ORDER BY …), for functions that depend on an order.
        ignore_nulls: Whether NULL arguments are passed over (`first`, `last`, …).
    """

    function: str
    args: tuple[Expression, ...]
    distinct: bool = False
    where: Expression | None = None
    order: tuple[SortKey, ...] = ()
    ignore_nulls: bool = False

    @property
    def children(self) -> tuple[Expression, ...]:
        """Arguments, then the filter if there is one, then the sort keys."""
        filter_ = () if self.where is None else (self.where,)
        return (*self.args, *filter_, *(k.expr for k in self.order))

    def with_children(self, new: tuple[Expression, ...]) -> AggregateCall:
        """The same aggregate over other operands."""
        if same(self.children, new):
            return self
        args, rest = new[: len(self.args)], new[len(self.args) :]
        where, keys = (None, rest) if self.where is None else (rest[0], rest[1:])
        return replace(self, args=args, where=where, order=with_key_expressions(self.order, keys))


BoundKind = OneOf["unbounded_preceding", "preceding", "current", "following", "unbounded_following"]


@dataclass(frozen=True)
class FrameBound:
    """One end of a window frame.

    Args:
        kind: Where it lies.
        offset: How far before or after the current row; None but for `preceding` and `following`.
    """

    kind: BoundKind
    offset: Literal | None = None


@dataclass(frozen=True)
class WindowFrame:
    """The rows around the current one that a window function sees."""

    unit: OneOf["rows", "range", "groups"]
    start: FrameBound
    end: FrameBound


@dataclass(frozen=True)
class WindowCall(Expression):
    """A function over the rows of the current row's partition.

    Args:
        function: Canonical name of a window function or an aggregate.
        args: Arguments, evaluated per row.
        partition: PARTITION BY.
        order: ORDER BY within the partition.
        frame: The frame; None for functions that have none (`rank`, `row_number`, …).
        where: The FILTER clause of an aggregate, or None.
        distinct: Whether equal argument rows count once.
        ignore_nulls: Whether NULL arguments are passed over.
    """

    function: str
    args: tuple[Expression, ...]
    partition: tuple[Expression, ...] = ()
    order: tuple[SortKey, ...] = ()
    frame: WindowFrame | None = None
    where: Expression | None = None
    distinct: bool = False
    ignore_nulls: bool = False

    @property
    def children(self) -> tuple[Expression, ...]:
        """Arguments, the filter if there is one, partition keys, sort keys."""
        filter_ = () if self.where is None else (self.where,)
        return (*self.args, *filter_, *self.partition, *(k.expr for k in self.order))

    def with_children(self, new: tuple[Expression, ...]) -> Expression:
        """The same call over other operands."""
        if same(self.children, new):
            return self
        args, rest = new[: len(self.args)], new[len(self.args) :]
        where, rest = (None, rest) if self.where is None else (rest[0], rest[1:])
        count = len(self.partition)
        order = with_key_expressions(self.order, rest[count:])
        return replace(self, args=args, where=where, partition=rest[:count], order=order)


def with_key_expressions(
    keys: tuple[SortKey, ...], new: tuple[Expression, ...]
) -> tuple[SortKey, ...]:
    """Sort keys of the same directions over other expressions."""
    return tuple(replace(k, expr=e) for k, e in zip(keys, new, strict=True))


TRUE = Literal(BOOLEAN, True)
FALSE = Literal(BOOLEAN, False)


def call(function: str, dtype: DataType, *args: Expression) -> Call:
    """A call with its result type."""
    return Call(dtype=dtype, function=function, args=args)


def cast(arg: Expression, dtype: DataType) -> Expression:
    """`arg` as `dtype`; `arg` itself if it already is."""
    return arg if arg.dtype == dtype else Cast(dtype=dtype, arg=arg)


def conjuncts(predicate: Expression) -> Iterator[Expression]:
    """The operands of nested ANDs, left to right; TRUE yields nothing."""
    stack = [predicate]
    while stack:
        node = stack.pop()
        if isinstance(node, Call) and node.function == "and":
            stack.extend(reversed(node.args))
        elif node != TRUE:
            yield node


def conjoin(predicates: tuple[Expression, ...] | list[Expression]) -> Expression:
    """One AND of all predicates, each once; TRUE for none."""
    unique = tuple(dict.fromkeys(predicates))
    if not unique:
        return TRUE
    return unique[0] if len(unique) == 1 else call("and", BOOLEAN, *unique)


def substitute(expr: Expression, mapping: Mapping[int, Expression]) -> Expression:
    """`expr` with the columns in `mapping` replaced."""
    if not mapping or expr.column_ids.isdisjoint(mapping):
        return expr

    def visit(node: Expression) -> Expression:
        return mapping.get(node.id, node) if isinstance(node, ColumnRef) else node

    return transform_up(expr, visit)


def substitute_operands(call: AggregateCall, mapping: Mapping[int, Expression]) -> AggregateCall:
    """The same aggregate, with the columns in `mapping` replaced in its operands."""
    return call.with_children(tuple(substitute(c, mapping) for c in call.children))


def contains(expr: Expression, kind: type[Expression]) -> bool:
    """Whether a node of that class stands anywhere in `expr` (not inside its subqueries)."""
    return any(isinstance(node, kind) for node in walk(expr))
