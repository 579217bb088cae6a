"""Logical plan: what to compute. Immutable nodes; each knows its output columns.

In: children and expressions. Out: trees that the optimiser rewrites. No node names an algorithm,
a partitioning or an engine.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal as OneOf

from planner.errors import InternalPlanError
from planner.expressions import (
    AggregateCall,
    Call,
    Column,
    Expression,
    SortKey,
    WindowCall,
    with_key_expressions,
)
from planner.tree import same, walk

JoinKind = OneOf["inner", "cross", "left", "right", "full", "semi", "anti"]
NamedExpression = tuple[Column, Expression]


@dataclass(frozen=True)
class LogicalPlan:
    """Base of logical operators."""

    @property
    def children(self) -> tuple[LogicalPlan, ...]:
        """Inputs, in order."""
        return ()

    def with_children(self, new: tuple[LogicalPlan, ...]) -> LogicalPlan:
        """The same operator over other inputs."""
        if new:
            raise InternalPlanError(f"{type(self).__name__} has no inputs")
        return self

    @property
    def columns(self) -> tuple[Column, ...]:
        """Output columns, in order."""
        raise NotImplementedError

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """The operator's own expressions."""
        return ()

    def with_expressions(self, new: tuple[Expression, ...]) -> LogicalPlan:
        """The same operator with other expressions, in the order of `expressions`."""
        if new:
            raise InternalPlanError(f"{type(self).__name__} has no expressions")
        return self

    def with_produced(self, rename: Callable[[Column], Column]) -> LogicalPlan:
        """The same operator under other numbers for the columns that it makes itself."""
        del rename
        return self

    @cached_property
    def column_ids(self) -> frozenset[int]:
        """Numbers of the output columns."""
        return frozenset(c.id for c in self.columns)

    @cached_property
    def free_ids(self) -> frozenset[int]:
        """Columns that the tree reads but nothing in it produces: its correlation."""
        produced: set[int] = set()
        read: set[int] = set()
        for node in walk(self):
            produced |= node.column_ids
            for expr in node.expressions:
                read |= expr.column_ids
        return frozenset(read - produced)


@dataclass(frozen=True)
class OneRow(LogicalPlan):
    """One row without columns: SELECT without FROM."""

    @property
    def columns(self) -> tuple[Column, ...]:
        """None."""
        return ()


@dataclass(frozen=True)
class Scan(LogicalPlan):
    """Columns of a base table.

    Args:
        table: Name in the catalog.
        outputs: Columns to read.
        source: Their names in the files, in the same order.
    """

    table: str
    outputs: tuple[Column, ...]
    source: tuple[str, ...]

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns that are read."""
        return self.outputs

    def with_produced(self, rename: Callable[[Column], Column]) -> LogicalPlan:
        """The same rows under other column numbers."""
        return replace(self, outputs=tuple(rename(c) for c in self.outputs))


@dataclass(frozen=True)
class _Unary(LogicalPlan):
    child: LogicalPlan

    @property
    def children(self) -> tuple[LogicalPlan, ...]:
        """The one input."""
        return (self.child,)

    def with_children(self, new: tuple[LogicalPlan, ...]) -> LogicalPlan:
        """The same operator over another input."""
        return self if new[0] is self.child else replace(self, child=new[0])

    @property
    def columns(self) -> tuple[Column, ...]:
        """Those of the input."""
        return self.child.columns


@dataclass(frozen=True)
class Filter(_Unary):
    """Rows for which the predicate is true."""

    predicate: Expression

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """The predicate."""
        return (self.predicate,)

    def with_expressions(self, new: tuple[Expression, ...]) -> LogicalPlan:
        """The same rows under another predicate."""
        return replace(self, predicate=new[0])


@dataclass(frozen=True)
class Project(_Unary):
    """New columns computed from each row."""

    items: tuple[NamedExpression, ...]

    @property
    def columns(self) -> tuple[Column, ...]:
        """One column an item."""
        return tuple(column for column, _ in self.items)

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """The item expressions."""
        return tuple(expr for _, expr in self.items)

    def with_expressions(self, new: tuple[Expression, ...]) -> LogicalPlan:
        """The same columns, computed otherwise."""
        return replace(self, items=tuple((c, e) for (c, _), e in zip(self.items, new, strict=True)))

    def with_produced(self, rename: Callable[[Column], Column]) -> LogicalPlan:
        """The same rows under other column numbers."""
        return replace(self, items=tuple((rename(c), e) for c, e in self.items))


@dataclass(frozen=True)
class Aggregate(_Unary):
    """Groups and their aggregates; without groups exactly one row, without aggregates DISTINCT."""

    groups: tuple[NamedExpression, ...]
    aggregates: tuple[tuple[Column, AggregateCall], ...]

    @property
    def columns(self) -> tuple[Column, ...]:
        """Group columns, then aggregate columns."""
        return (*(c for c, _ in self.groups), *(c for c, _ in self.aggregates))

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """Group expressions, then aggregate calls."""
        return (*(e for _, e in self.groups), *(e for _, e in self.aggregates))

    def with_expressions(self, new: tuple[Expression, ...]) -> LogicalPlan:
        """The same columns, computed otherwise; the calls must stay aggregate calls."""
        count = len(self.groups)
        groups = tuple((c, e) for (c, _), e in zip(self.groups, new[:count], strict=True))
        calls = [e for e in new[count:] if isinstance(e, AggregateCall)]
        aggregates = tuple((c, e) for (c, _), e in zip(self.aggregates, calls, strict=True))
        return replace(self, groups=groups, aggregates=aggregates)

    def with_produced(self, rename: Callable[[Column], Column]) -> LogicalPlan:
        """The same rows under other column numbers."""
        return replace(
            self,
            groups=tuple((rename(c), e) for c, e in self.groups),
            aggregates=tuple((rename(c), e) for c, e in self.aggregates),
        )


@dataclass(frozen=True)
class Sort(_Unary):
    """A total order of the rows."""

    keys: tuple[SortKey, ...]

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """The key expressions."""
        return tuple(key.expr for key in self.keys)

    def with_expressions(self, new: tuple[Expression, ...]) -> LogicalPlan:
        """The same order by other keys."""
        return replace(self, keys=with_key_expressions(self.keys, new))


@dataclass(frozen=True)
class Limit(_Unary):
    """At most `limit` rows after the first `offset`; None is without bound."""

    limit: int | None
    offset: int = 0


@dataclass(frozen=True)
class Join(LogicalPlan):
    """Two inputs combined; semi and anti keep only the columns of the left one."""

    left: LogicalPlan
    right: LogicalPlan
    kind: JoinKind
    condition: Expression

    @property
    def children(self) -> tuple[LogicalPlan, ...]:
        """Left, right."""
        return (self.left, self.right)

    def with_children(self, new: tuple[LogicalPlan, ...]) -> LogicalPlan:
        """The same join of other inputs."""
        return self if same(self.children, new) else replace(self, left=new[0], right=new[1])

    @property
    def columns(self) -> tuple[Column, ...]:
        """Left columns, then right ones unless the kind is semi or anti."""
        if self.kind in ("semi", "anti"):
            return self.left.columns
        return (*self.left.columns, *self.right.columns)

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """The condition."""
        return (self.condition,)

    def with_expressions(self, new: tuple[Expression, ...]) -> LogicalPlan:
        """The same join on another condition."""
        return replace(self, condition=new[0])


@dataclass(frozen=True)
class Union(LogicalPlan):
    """All rows of all inputs (UNION ALL); inputs agree in number and types of columns."""

    inputs: tuple[LogicalPlan, ...]
    outputs: tuple[Column, ...]

    def __post_init__(self) -> None:
        for child in self.inputs:
            if [c.dtype for c in child.columns] != [c.dtype for c in self.outputs]:
                raise InternalPlanError("UNION inputs differ in their columns")

    @property
    def children(self) -> tuple[LogicalPlan, ...]:
        """All inputs."""
        return self.inputs

    def with_children(self, new: tuple[LogicalPlan, ...]) -> LogicalPlan:
        """The union of other inputs."""
        return self if same(self.inputs, new) else replace(self, inputs=new)

    @property
    def columns(self) -> tuple[Column, ...]:
        """Columns of its own, by position."""
        return self.outputs

    def with_produced(self, rename: Callable[[Column], Column]) -> LogicalPlan:
        """The same rows under other column numbers."""
        return replace(self, outputs=tuple(rename(c) for c in self.outputs))


@dataclass(frozen=True)
class Window(_Unary):
    """Window functions over partitions of the rows; all calls have the same partition keys."""

    calls: tuple[tuple[Column, WindowCall], ...]

    @property
    def partition(self) -> tuple[Expression, ...]:
        """The partition keys."""
        return self.calls[0][1].partition

    @property
    def columns(self) -> tuple[Column, ...]:
        """Those of the input, then one a call."""
        return (*self.child.columns, *(c for c, _ in self.calls))

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """The calls."""
        return tuple(e for _, e in self.calls)

    def with_expressions(self, new: tuple[Expression, ...]) -> LogicalPlan:
        """The same columns, computed otherwise; the calls must stay window calls."""
        calls = [e for e in new if isinstance(e, WindowCall)]
        return replace(
            self, calls=tuple((c, e) for (c, _), e in zip(self.calls, calls, strict=True))
        )

    def with_produced(self, rename: Callable[[Column], Column]) -> LogicalPlan:
        """The same rows under other column numbers."""
        return replace(self, calls=tuple((rename(c), e) for c, e in self.calls))


@dataclass(frozen=True)
class Generate(_Unary):
    """Each row of the input with each row that a generator such as `explode` makes of it.

    Args:
        generator: A call of a table-valued function on the row.
        outputs: The generated columns.
        outer: Whether a row without generated rows stays, with NULLs.
    """

    generator: Call
    outputs: tuple[Column, ...]
    outer: bool = False

    @property
    def columns(self) -> tuple[Column, ...]:
        """Those of the input, then the generated ones."""
        return (*self.child.columns, *self.outputs)

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """The generator."""
        return (self.generator,)

    def with_expressions(self, new: tuple[Expression, ...]) -> LogicalPlan:
        """Another generator of the same columns."""
        (generator,) = new
        if not isinstance(generator, Call):
            raise InternalPlanError("a generator is a call")
        return replace(self, generator=generator)

    def with_produced(self, rename: Callable[[Column], Column]) -> LogicalPlan:
        """The same rows under other column numbers."""
        return replace(self, outputs=tuple(rename(c) for c in self.outputs))


@dataclass(frozen=True)
class Values(LogicalPlan):
    """Rows that are written out: VALUES. No item reads a column."""

    rows: tuple[tuple[Expression, ...], ...]
    outputs: tuple[Column, ...]

    @property
    def columns(self) -> tuple[Column, ...]:
        """One column an item of a row."""
        return self.outputs

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """The items, row by row."""
        return tuple(item for row in self.rows for item in row)

    def with_expressions(self, new: tuple[Expression, ...]) -> LogicalPlan:
        """The same columns with other items."""
        return replace(self, rows=_in_rows(new, len(self.outputs)))

    def with_produced(self, rename: Callable[[Column], Column]) -> LogicalPlan:
        """The same rows under other column numbers."""
        return replace(self, outputs=tuple(rename(c) for c in self.outputs))


@dataclass(frozen=True)
class Range(LogicalPlan):
    """Whole numbers from `start` to below `stop`: the table function `range`."""

    outputs: tuple[Column, ...]
    start: int
    stop: int
    step: int

    @property
    def columns(self) -> tuple[Column, ...]:
        """The one column `id`, a bigint."""
        return self.outputs

    def with_produced(self, rename: Callable[[Column], Column]) -> LogicalPlan:
        """The same rows under another column number."""
        return replace(self, outputs=tuple(rename(c) for c in self.outputs))


@dataclass(frozen=True)
class Expand(_Unary):
    """Each row once per projection: what GROUPING SETS aggregate over (Spark's `Expand`).

    Args:
        projections: For each copy of the row one expression an output column.
        outputs: The columns.
    """

    projections: tuple[tuple[Expression, ...], ...]
    outputs: tuple[Column, ...]

    @property
    def columns(self) -> tuple[Column, ...]:
        """Columns of its own only."""
        return self.outputs

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """The expressions, projection by projection."""
        return tuple(item for row in self.projections for item in row)

    def with_expressions(self, new: tuple[Expression, ...]) -> LogicalPlan:
        """The same columns, computed otherwise."""
        return replace(self, projections=_in_rows(new, len(self.outputs)))

    def with_produced(self, rename: Callable[[Column], Column]) -> LogicalPlan:
        """The same rows under other column numbers."""
        return replace(self, outputs=tuple(rename(c) for c in self.outputs))


def _in_rows(items: tuple[Expression, ...], width: int) -> tuple[tuple[Expression, ...], ...]:
    return tuple(items[i : i + width] for i in range(0, len(items), width))


def distinct(child: LogicalPlan) -> Aggregate:
    """The different rows of a plan, under the same column numbers."""
    return Aggregate(child=child, groups=tuple((c, c.ref) for c in child.columns), aggregates=())
