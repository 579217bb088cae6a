"""Physical plan: with which algorithm, on which partitions. The operators of a stage's fragment.

In: children and expressions. Out: trees that `distribute` adds exchanges to, `stages` cuts and
`fragment_sql` renders. Names follow DataFusion's, as in the seeds.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal as OneOf

from planner.errors import InternalPlanError
from planner.expressions import AggregateCall, Column, Expression, SortKey
from planner.logical import JoinKind, NamedExpression
from planner.tree import same

ExchangeKind = OneOf["shuffle", "broadcast", "gather"]
AggregateMode = OneOf["partial", "final", "single"]
ReadMode = OneOf["split", "all"]


@dataclass(frozen=True)
class PhysicalPlan:
    """Base of physical operators."""

    @property
    def children(self) -> tuple[PhysicalPlan, ...]:
        """Inputs, in order."""
        return ()

    def with_children(self, new: tuple[PhysicalPlan, ...]) -> PhysicalPlan:
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


@dataclass(frozen=True)
class OneRowExec(PhysicalPlan):
    """One row without columns."""

    @property
    def columns(self) -> tuple[Column, ...]:
        """None."""
        return ()


@dataclass(frozen=True)
class ScanExec(PhysicalPlan):
    """Reads columns of a base table; filters above it are pushed into the Parquet reader.

    Args:
        table: Name in the catalog.
        outputs: Columns to read.
        source: Their names in the files, in the same order.
        read: `split`: each task its share of the files; `all`: each task the whole table.
    """

    table: str
    outputs: tuple[Column, ...]
    source: tuple[str, ...]
    read: ReadMode = "split"

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns that are read."""
        return self.outputs


@dataclass(frozen=True)
class StageInputExec(PhysicalPlan):
    """Reads the output of another stage.

    Args:
        stage_id: The producer.
        kind: The exchange that was cut here; `shuffle`: each task its partitions, `broadcast` and
            `gather`: each task everything.
        outputs: Columns, in the producer's order.
    """

    stage_id: int
    kind: ExchangeKind
    outputs: tuple[Column, ...]

    @property
    def columns(self) -> tuple[Column, ...]:
        """The producer's columns."""
        return self.outputs


@dataclass(frozen=True)
class _UnaryExec(PhysicalPlan):
    child: PhysicalPlan

    @property
    def children(self) -> tuple[PhysicalPlan, ...]:
        """The one input."""
        return (self.child,)

    def with_children(self, new: tuple[PhysicalPlan, ...]) -> PhysicalPlan:
        """The same operator over another input."""
        return self if new[0] is self.child else replace(self, child=new[0])

    @property
    def columns(self) -> tuple[Column, ...]:
        """Those of the input."""
        return self.child.columns


@dataclass(frozen=True)
class FilterExec(_UnaryExec):
    """Rows for which the predicate is true."""

    predicate: Expression

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """The predicate."""
        return (self.predicate,)


@dataclass(frozen=True)
class ProjectionExec(_UnaryExec):
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


@dataclass(frozen=True)
class AggregateExec(_UnaryExec):
    """Hash aggregate.

    A partial aggregate emits one row per group *of its task*, a final one merges them; a single one
    needs all rows of a group in one task. All three are ordinary aggregates to an engine.
    """

    mode: AggregateMode
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


@dataclass(frozen=True)
class SortExec(_UnaryExec):
    """Sorts the rows of the task, keeping the first `fetch` (top-N) if that is set."""

    keys: tuple[SortKey, ...]
    fetch: int | None = None

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """The key expressions."""
        return tuple(key.expr for key in self.keys)


@dataclass(frozen=True)
class SortPreservingMergeExec(_UnaryExec):
    """Merges the sorted files of a gather into one order."""

    keys: tuple[SortKey, ...]
    fetch: int | None = None

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """The key expressions."""
        return tuple(key.expr for key in self.keys)


@dataclass(frozen=True)
class LimitExec(_UnaryExec):
    """At most `limit` rows of the task after the first `offset`."""

    limit: int | None
    offset: int = 0


@dataclass(frozen=True)
class HashJoinExec(PhysicalPlan):
    """Join on equal keys: `right` is the build side, `left` is streamed against it.

    Args:
        left_keys: Key expressions over the left columns.
        right_keys: Their partners, of the same types.
        residual: What else must hold for a pair to match.
        broadcast: Whether each task needs the whole build side (else both are partitioned by key).
        build_inline: Whether each task scans the build side's tables itself.
    """

    left: PhysicalPlan
    right: PhysicalPlan
    kind: JoinKind
    left_keys: tuple[Expression, ...]
    right_keys: tuple[Expression, ...]
    residual: Expression
    broadcast: bool = False
    build_inline: bool = False

    def __post_init__(self) -> None:
        if [k.dtype for k in self.left_keys] != [k.dtype for k in self.right_keys]:
            raise InternalPlanError("join keys differ in type")

    @property
    def children(self) -> tuple[PhysicalPlan, ...]:
        """Left (probe), right (build)."""
        return (self.left, self.right)

    def with_children(self, new: tuple[PhysicalPlan, ...]) -> PhysicalPlan:
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
        """Keys of both sides, then the residual."""
        return (*self.left_keys, *self.right_keys, self.residual)


@dataclass(frozen=True)
class UnionExec(PhysicalPlan):
    """All rows of all inputs; each task works on one input."""

    inputs: tuple[PhysicalPlan, ...]
    outputs: tuple[Column, ...]

    @property
    def children(self) -> tuple[PhysicalPlan, ...]:
        """All inputs."""
        return self.inputs

    def with_children(self, new: tuple[PhysicalPlan, ...]) -> PhysicalPlan:
        """The union of other inputs."""
        return self if same(self.inputs, new) else replace(self, inputs=new)

    @property
    def columns(self) -> tuple[Column, ...]:
        """Columns of its own, by position."""
        return self.outputs


@dataclass(frozen=True)
class ExchangeExec(_UnaryExec):
    """Where partitioning changes; the only border between stages.

    Args:
        kind: `shuffle` by key hash, `broadcast` to every task, `gather` into one task.
        keys: Numbers of the key columns; only a shuffle has them.
        num_partitions: Partitions that a shuffle writes; 1 for the other kinds.
    """

    kind: ExchangeKind
    keys: tuple[int, ...] = ()
    num_partitions: int = 1
