"""The logical plan: what to compute, without algorithms, partitionings or engines."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

from stagecoach.planner.cached_property import cached_property
from stagecoach.planner.errors import InternalPlanError
from stagecoach.planner.plan.expressions import AggregateCall, Column, Expression
from stagecoach.planner.plan.operators import JoinKind as JoinKind
from stagecoach.planner.plan.operators import NamedExpression as NamedExpression
from stagecoach.planner.plan.operators import (
    Operator,
    WithBounds,
    WithChild,
    WithGenerator,
    WithGroups,
    WithInputs,
    WithItems,
    WithOutputs,
    WithPredicate,
    WithProjections,
    WithRows,
    WithSides,
    WithSortKeys,
    WithTasks,
    WithWindowCalls,
    joined_columns,
)
from stagecoach.planner.tree import walk


@dataclass(frozen=True)
class LogicalPlan(Operator):
    """Base of logical operators."""

    @property
    def children(self) -> tuple[LogicalPlan, ...]:
        """Inputs, in order."""
        return ()

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
class Scan(WithOutputs, LogicalPlan):
    """Columns of a base table.

    Args:
        table: Name in the catalog.
        outputs: Columns to read.
        source: Their names in the files, in the same order.
    """

    table: str
    outputs: tuple[Column, ...]
    source: tuple[str, ...]


@dataclass(frozen=True)
class DedupScan(Scan):
    """Columns of a table whose unique key the scan enforces: one row, the latest, for each key.

    Args:
        key: Names of the columns of the unique key, whether they are read or not.
    """

    key: tuple[str, ...]


@dataclass(frozen=True)
class SharedScan(Scan):
    """Columns of a shared subplan, which is planned and computed once for all that read it.

    To the optimiser it is a table under a name of its own, with estimates for statistics; see
    `stagecoach.planner.plan.shared`.
    """


@dataclass(frozen=True)
class _Unary(WithChild, LogicalPlan):
    child: LogicalPlan


@dataclass(frozen=True)
class Filter(WithPredicate, _Unary):
    """Rows for which the predicate is true."""


@dataclass(frozen=True)
class Project(WithItems, _Unary):
    """New columns computed from each row."""


@dataclass(frozen=True)
class Aggregate(WithGroups, _Unary):
    """Groups and their aggregates; without groups exactly one row, without aggregates DISTINCT."""

    groups: tuple[NamedExpression, ...]
    aggregates: tuple[tuple[Column, AggregateCall], ...]


@dataclass(frozen=True)
class Sort(WithSortKeys, _Unary):
    """A total order of the rows."""


@dataclass(frozen=True)
class Repartition(WithTasks, _Unary):
    """Rows as they are, from as many tasks as a hint asks for."""


@dataclass(frozen=True)
class Limit(_Unary):
    """At most `limit` rows after the first `offset`; None is without bound."""

    limit: int | None
    offset: int = 0


@dataclass(frozen=True)
class Join(WithSides, LogicalPlan):
    """Two inputs combined; semi and anti keep only the columns of the left one."""

    left: LogicalPlan
    right: LogicalPlan
    kind: JoinKind
    condition: Expression

    @property
    def columns(self) -> tuple[Column, ...]:
        """Left columns, then right ones unless the kind is semi or anti."""
        return joined_columns(self, self.kind)

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """The condition."""
        return (self.condition,)

    def with_expressions(self, new: tuple[Expression, ...]) -> Self:
        """The same join on another condition."""
        return replace(self, condition=new[0])


@dataclass(frozen=True)
class Union(WithInputs, WithOutputs, LogicalPlan):
    """All rows of all inputs (UNION ALL); inputs agree in number and types of columns."""

    inputs: tuple[LogicalPlan, ...]
    outputs: tuple[Column, ...]

    def __post_init__(self) -> None:
        for child in self.inputs:
            if [c.dtype for c in child.columns] != [c.dtype for c in self.outputs]:
                raise InternalPlanError("UNION inputs differ in their columns")


@dataclass(frozen=True)
class Window(WithWindowCalls, _Unary):
    """Window functions over partitions of the rows; all calls have the same partition keys."""


@dataclass(frozen=True)
class Generate(WithGenerator, _Unary):
    """Each row of the input with each row that a generator such as `explode` makes of it."""


@dataclass(frozen=True)
class Values(WithRows, LogicalPlan):
    """Rows that are written out: VALUES. No item reads a column."""


@dataclass(frozen=True)
class Range(WithBounds, LogicalPlan):
    """Whole numbers from `start` to below `stop`: the table function `range`."""


@dataclass(frozen=True)
class Expand(WithProjections, _Unary):
    """Each row once per projection: what GROUPING SETS aggregate over (Spark's `Expand`)."""


def distinct(child: LogicalPlan) -> Aggregate:
    """The different rows of a plan, under the same column numbers."""
    return Aggregate(child=child, groups=tuple((c, c.ref) for c in child.columns), aggregates=())
