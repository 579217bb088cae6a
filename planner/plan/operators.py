"""The fields that logical and physical operators share, one base class per kind of operator.

`plan.logical` and `plan.physical` add what differs: the inputs, and with them the algorithm.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Self, TypeVar, cast
from typing import Literal as OneOf

from stagecoach.planner.errors import InternalPlanError
from stagecoach.planner.plan.expressions import (
    AggregateCall,
    Call,
    Column,
    Expression,
    SortKey,
    WindowCall,
    with_key_expressions,
)
from stagecoach.planner.plan.value import Value
from stagecoach.planner.tree import same

JoinKind = OneOf["inner", "cross", "left", "right", "full", "semi", "anti"]
NamedExpression = tuple[Column, Expression]
Rename = Callable[[Column], Column]
N = TypeVar("N", bound="Operator")


@dataclass(frozen=True)
class Operator(Value):
    """Base of all operators: what it computes, whatever its inputs are."""

    @property
    def children(self) -> tuple[Any, ...]:
        """Inputs, in order."""
        return ()

    @property
    def columns(self) -> tuple[Column, ...]:
        """Output columns, in order."""
        raise NotImplementedError

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """The operator's own expressions."""
        return ()

    def with_expressions(self, new: tuple[Expression, ...]) -> Self:
        """The same operator with other expressions, in the order of `expressions`."""
        if new:
            raise InternalPlanError(f"{type(self).__name__} has no expressions")
        return self

    def with_produced(self, rename: Rename) -> Self:
        """The same operator under other numbers for the columns that it makes itself."""
        del rename
        return self

    def with_children(self, new: tuple[Any, ...]) -> Self:
        """The same operator over other inputs; itself if all of them are the same objects."""
        if new:
            raise InternalPlanError(f"{type(self).__name__} has no inputs")
        return self


class WithChild(Operator):
    """An operator with one input; the field is where its class wants it."""

    child: Operator

    @property
    def children(self) -> tuple[Any, ...]:
        """The one input."""
        return (self.child,)

    def with_children(self, new: tuple[Any, ...]) -> Self:
        """The same operator over another input."""
        return self if new[0] is self.child else _changed(self, child=new[0])

    @property
    def columns(self) -> tuple[Column, ...]:
        """Those of the input."""
        return self.child.columns


class WithSides(Operator):
    """An operator with two inputs."""

    left: Operator
    right: Operator

    @property
    def children(self) -> tuple[Any, ...]:
        """Left, right."""
        return (self.left, self.right)

    def with_children(self, new: tuple[Any, ...]) -> Self:
        """The same operator over other inputs."""
        return self if same(self.children, new) else _changed(self, left=new[0], right=new[1])


class WithInputs(Operator):
    """An operator with any number of inputs."""

    inputs: tuple[Operator, ...]

    @property
    def children(self) -> tuple[Any, ...]:
        """All inputs."""
        return self.inputs

    def with_children(self, new: tuple[Any, ...]) -> Self:
        """The same operator over other inputs."""
        return self if same(self.inputs, new) else _changed(self, inputs=new)


class WithOutputs(Operator):
    """An operator all of whose columns are its own; the field is where its class wants it."""

    outputs: tuple[Column, ...]

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns of its own."""
        return self.outputs

    def with_produced(self, rename: Rename) -> Self:
        """The same rows under other column numbers."""
        return _changed(self, outputs=tuple(rename(c) for c in self.outputs))


@dataclass(frozen=True)
class WithPredicate(Operator):
    """Rows for which the predicate is true."""

    predicate: Expression

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """The predicate."""
        return (self.predicate,)

    def with_expressions(self, new: tuple[Expression, ...]) -> Self:
        """The same rows under another predicate."""
        return replace(self, predicate=new[0])


@dataclass(frozen=True)
class WithItems(Operator):
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

    def with_expressions(self, new: tuple[Expression, ...]) -> Self:
        """The same columns, computed otherwise."""
        return replace(self, items=tuple((c, e) for (c, _), e in zip(self.items, new, strict=True)))

    def with_produced(self, rename: Rename) -> Self:
        """The same rows under other column numbers."""
        return replace(self, items=tuple((rename(c), e) for c, e in self.items))


class WithGroups(Operator):
    """One row a group, with aggregates over its rows; one row in all where no group is named."""

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

    def with_expressions(self, new: tuple[Expression, ...]) -> Self:
        """The same columns, computed otherwise; the calls must stay aggregate calls."""
        count = len(self.groups)
        groups = tuple((c, e) for (c, _), e in zip(self.groups, new[:count], strict=True))
        calls = [e for e in new[count:] if isinstance(e, AggregateCall)]
        aggregates = tuple((c, e) for (c, _), e in zip(self.aggregates, calls, strict=True))
        return _changed(self, groups=groups, aggregates=aggregates)

    def with_produced(self, rename: Rename) -> Self:
        """The same rows under other column numbers."""
        return _changed(
            self,
            groups=tuple((rename(c), e) for c, e in self.groups),
            aggregates=tuple((rename(c), e) for c, e in self.aggregates),
        )


@dataclass(frozen=True)
class WithSortKeys(Operator):
    """Rows in an order."""

    keys: tuple[SortKey, ...]

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """The key expressions."""
        return tuple(key.expr for key in self.keys)

    def with_expressions(self, new: tuple[Expression, ...]) -> Self:
        """The same order by other keys."""
        return replace(self, keys=with_key_expressions(self.keys, new))


@dataclass(frozen=True)
class WithTasks(Operator):
    """Rows as they are, from as many tasks as a hint asks for.

    Args:
        count: Tasks; None leaves it to the sizes.
        keys: Columns of which equal values meet in one task; without, rows are dealt out in turn.
        at_most: Whether fewer tasks will do, so that no row need move.
    """

    count: int | None
    keys: tuple[Expression, ...] = ()
    at_most: bool = False

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """The keys."""
        return self.keys

    def with_expressions(self, new: tuple[Expression, ...]) -> Self:
        """The same by other keys."""
        return replace(self, keys=new)


@dataclass(frozen=True)
class WithWindowCalls(Operator):
    """Window functions over partitions of the rows; all calls have the same partition keys."""

    calls: tuple[tuple[Column, WindowCall], ...]

    @property
    def partition(self) -> tuple[Expression, ...]:
        """The partition keys."""
        return self.calls[0][1].partition

    @property
    def columns(self) -> tuple[Column, ...]:
        """Those of the input, then one a call."""
        return (*super().columns, *(c for c, _ in self.calls))

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """The calls."""
        return tuple(e for _, e in self.calls)

    def with_expressions(self, new: tuple[Expression, ...]) -> Self:
        """The same columns, computed otherwise; the calls must stay window calls."""
        calls = [e for e in new if isinstance(e, WindowCall)]
        return replace(
            self, calls=tuple((c, e) for (c, _), e in zip(self.calls, calls, strict=True))
        )

    def with_produced(self, rename: Rename) -> Self:
        """The same rows under other column numbers."""
        return replace(self, calls=tuple((rename(c), e) for c, e in self.calls))


@dataclass(frozen=True)
class WithGenerator(WithOutputs):
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
        return (*super(WithOutputs, self).columns, *self.outputs)

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """The generator."""
        return (self.generator,)

    def with_expressions(self, new: tuple[Expression, ...]) -> Self:
        """Another generator of the same columns."""
        (generator,) = new
        if not isinstance(generator, Call):
            raise InternalPlanError("a generator is a call")
        return replace(self, generator=generator)


@dataclass(frozen=True)
class WithRows(WithOutputs):
    """Rows that are written out: VALUES. No item reads a column."""

    rows: tuple[tuple[Expression, ...], ...]
    outputs: tuple[Column, ...]

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """The items, row by row."""
        return tuple(item for row in self.rows for item in row)

    def with_expressions(self, new: tuple[Expression, ...]) -> Self:
        """The same columns with other items."""
        return replace(self, rows=_in_rows(new, len(self.outputs)))


@dataclass(frozen=True)
class WithBounds(WithOutputs):
    """Whole numbers from `start` to below `stop`, in the one column `id`: `range`."""

    outputs: tuple[Column, ...]
    start: int
    stop: int
    step: int


@dataclass(frozen=True)
class WithProjections(WithOutputs):
    """Each row once per projection: what GROUPING SETS aggregate over (Spark's `Expand`).

    Args:
        projections: For each copy of the row one expression an output column.
        outputs: The columns.
    """

    projections: tuple[tuple[Expression, ...], ...]
    outputs: tuple[Column, ...]

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """The expressions, projection by projection."""
        return tuple(item for row in self.projections for item in row)

    def with_expressions(self, new: tuple[Expression, ...]) -> Self:
        """The same columns, computed otherwise."""
        return replace(self, projections=_in_rows(new, len(self.outputs)))


def joined_columns(join: Operator, kind: JoinKind) -> tuple[Column, ...]:
    """Left columns, then right ones unless the kind is semi or anti.

    Remembered in the join: a tree of n joins would copy n² columns each time.
    """
    known: tuple[Column, ...] | None = vars(join).get("_columns")
    if known is None:
        left, right = join.children
        known = left.columns if kind in ("semi", "anti") else (*left.columns, *right.columns)
        vars(join)["_columns"] = known
    return known


def _changed(operator: N, **fields: object) -> N:
    """`replace` for fields that only the classes below declare, each where it wants them."""
    return cast("N", replace(cast("Any", operator), **fields))


def _in_rows(items: tuple[Expression, ...], width: int) -> tuple[tuple[Expression, ...], ...]:
    return tuple(items[i : i + width] for i in range(0, len(items), width))
