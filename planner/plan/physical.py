"""The physical plan: the operators of a stage's fragment, with algorithm and partitioning.

Operators are named as in DataFusion.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Literal as OneOf
from typing import Self

from stagecoach.planner.errors import InternalPlanError
from stagecoach.planner.plan.encoding import SPARSE
from stagecoach.planner.plan.expressions import AggregateCall, Column, Expression, Literal
from stagecoach.planner.plan.operators import (
    JoinKind,
    NamedExpression,
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

ExchangeKind = OneOf["shuffle", "broadcast", "gather"]
AggregateMode = OneOf["partial", "final", "single"]
ReadMode = OneOf["split", "all"]


@dataclass(frozen=True)
class PhysicalPlan(Operator):
    """Base of physical operators."""

    @property
    def children(self) -> tuple[PhysicalPlan, ...]:
        """Inputs, in order."""
        return ()


@dataclass(frozen=True)
class OneRowExec(PhysicalPlan):
    """One row without columns."""

    @property
    def columns(self) -> tuple[Column, ...]:
        """None."""
        return ()


@dataclass(frozen=True)
class ScanExec(WithOutputs, PhysicalPlan):
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


@dataclass(frozen=True)
class DedupScanExec(ScanExec):
    """Reads a table whose unique key the scan enforces: one row, the latest, for each key.

    The plan does not depend on what is stored: which stored rows are compared with each other is
    decided when the stage runs, by the table's format.

    Args:
        key: Names of the columns of the unique key, whether they are read or not.
    """

    key: tuple[str, ...] = ()


@dataclass(frozen=True)
class SharedScanExec(ScanExec):
    """Reads the result of a shared subplan; the cutter puts the input of a stage in its place."""


@dataclass(frozen=True)
class StageInputExec(WithOutputs, PhysicalPlan):
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


@dataclass(frozen=True)
class _UnaryExec(WithChild, PhysicalPlan):
    child: PhysicalPlan


@dataclass(frozen=True)
class _BinaryExec(WithSides, PhysicalPlan):
    left: PhysicalPlan
    right: PhysicalPlan


@dataclass(frozen=True)
class FilterExec(WithPredicate, _UnaryExec):
    """Rows for which the predicate is true."""


@dataclass(frozen=True)
class ProjectionExec(WithItems, _UnaryExec):
    """New columns computed from each row."""


@dataclass(frozen=True)
class AggregateExec(WithGroups, _UnaryExec):
    """Hash aggregate.

    A partial aggregate emits one row per group *of its task*, a final one merges them; a single one
    needs all rows of a group in one task. All three are ordinary aggregates to an engine.

    Args:
        range_group: Position of the group of whose values an engine may take one range after the
            other, so that it has fewer groups at once.
        range_ends: Where each range ends and the next one begins, ascending; none for one range.
    """

    mode: AggregateMode
    groups: tuple[NamedExpression, ...]
    aggregates: tuple[tuple[Column, AggregateCall], ...]
    range_group: int = field(default=0, metadata={SPARSE: True})
    range_ends: tuple[Literal, ...] = field(default=(), metadata={SPARSE: True})


@dataclass(frozen=True)
class SortExec(WithSortKeys, _UnaryExec):
    """Sorts the rows of the task, keeping the first `fetch` (top-N) if that is set."""

    fetch: int | None = None


@dataclass(frozen=True)
class SortPreservingMergeExec(WithSortKeys, _UnaryExec):
    """Merges the sorted files of a gather into one order."""

    fetch: int | None = None


@dataclass(frozen=True)
class RepartitionExec(WithTasks, _UnaryExec):
    """Rows as they are; says how many tasks give them, which the runtime follows.

    `distribute` puts an exchange below it where rows must move, and drops the keys.
    """


@dataclass(frozen=True)
class LimitExec(_UnaryExec):
    """At most `limit` rows of the task after the first `offset`."""

    limit: int | None
    offset: int = 0


@dataclass(frozen=True)
class HashJoinExec(_BinaryExec):
    """Join on equal keys: `right` is the build side, `left` is streamed against it.

    Args:
        left_keys: Key expressions over the left columns.
        right_keys: Their partners, of the same types.
        residual: What else must hold for a pair to match.
        broadcast: Whether each task needs the whole build side (else both are partitioned by key).
        build_inline: Whether each task scans the build side's tables itself.
        null_safe: For each key whether NULL equals NULL (`<=>`); empty if that is so for none.
    """

    kind: JoinKind
    left_keys: tuple[Expression, ...]
    right_keys: tuple[Expression, ...]
    residual: Expression
    broadcast: bool = False
    build_inline: bool = False
    null_safe: tuple[bool, ...] = ()

    def __post_init__(self) -> None:
        if [k.dtype for k in self.left_keys] != [k.dtype for k in self.right_keys]:
            raise InternalPlanError("join keys differ in type")
        if len(self.null_safe) not in (0, len(self.left_keys)):
            raise InternalPlanError("null_safe must be given for each key")

    @property
    def key_pairs(self) -> tuple[tuple[Expression, Expression, bool], ...]:
        """Left key, right key, and whether NULL equals NULL."""
        null_safe = self.null_safe or (False,) * len(self.left_keys)
        return tuple(zip(self.left_keys, self.right_keys, null_safe, strict=True))

    @property
    def columns(self) -> tuple[Column, ...]:
        """Left columns, then right ones unless the kind is semi or anti."""
        return joined_columns(self, self.kind)

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """Keys of both sides, then the residual."""
        return (*self.left_keys, *self.right_keys, self.residual)

    def with_expressions(self, new: tuple[Expression, ...]) -> Self:
        """The same join on other keys."""
        count = len(self.left_keys)
        return replace(self, left_keys=new[:count], right_keys=new[count:-1], residual=new[-1])


@dataclass(frozen=True)
class UnionExec(WithInputs, WithOutputs, PhysicalPlan):
    """All rows of all inputs; each task works on one input."""

    inputs: tuple[PhysicalPlan, ...]
    outputs: tuple[Column, ...]


@dataclass(frozen=True)
class WindowExec(WithWindowCalls, _UnaryExec):
    """Window functions over partitions of the rows; all calls have the same partition keys.

    All rows of a partition must be in one task.
    """


@dataclass(frozen=True)
class GenerateExec(WithGenerator, _UnaryExec):
    """Each row of the input with each row that a generator such as `explode` makes of it."""


@dataclass(frozen=True)
class ValuesExec(WithRows, PhysicalPlan):
    """Rows that are written out: VALUES. No item reads a column."""


@dataclass(frozen=True)
class RangeExec(WithBounds, PhysicalPlan):
    """Whole numbers from `start` to below `stop`: the table function `range`."""


@dataclass(frozen=True)
class ExpandExec(WithProjections, _UnaryExec):
    """Each row once per projection: what GROUPING SETS aggregate over (Spark's `Expand`)."""


@dataclass(frozen=True)
class BloomBuildExec(_UnaryExec):
    """One row: a Bloom filter of the keys of all rows of the task; the root of its fragment.

    Args:
        keys: The key columns; none where the input's rows are filters, of which it is the union.
        outputs: The one column, binary.
        num_words: 64-bit words of the filter.
    """

    keys: tuple[Expression, ...]
    outputs: tuple[Column, ...]
    num_words: int

    @property
    def columns(self) -> tuple[Column, ...]:
        """The filter."""
        return self.outputs

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """The keys."""
        return self.keys

    def with_expressions(self, new: tuple[Expression, ...]) -> Self:
        """The filter of other columns."""
        return replace(self, keys=new)

    def with_produced(self, rename: Callable[[Column], Column]) -> Self:
        """The same filter under another column number."""
        return replace(self, outputs=tuple(rename(c) for c in self.outputs))


@dataclass(frozen=True)
class BloomProbeExec(_BinaryExec):
    """The rows whose key may be in a Bloom filter; the root of its fragment.

    It may let any row pass: what is above finds out by itself. So an engine need not apply it.

    Args:
        left: The rows.
        right: The filter, one row.
        keys: The key columns, of the left side.
        num_words: 64-bit words of the filter.
    """

    keys: tuple[Expression, ...]
    num_words: int

    @property
    def columns(self) -> tuple[Column, ...]:
        """Those of the rows."""
        return self.left.columns

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """The keys."""
        return self.keys

    def with_expressions(self, new: tuple[Expression, ...]) -> Self:
        """The same look-up of other columns."""
        return replace(self, keys=new)


@dataclass(frozen=True)
class ExchangeExec(_UnaryExec):
    """Where partitioning changes; the only border between stages.

    Args:
        kind: `shuffle` by key hash, `broadcast` to every task, `gather` into one task.
        keys: Numbers of the key columns; only a shuffle has them.
        num_partitions: Partitions that a shuffle writes; 1 for the other kinds.
        reason: Why it is there, for people; see `exchange_reasons`.
    """

    kind: ExchangeKind
    keys: tuple[int, ...] = ()
    num_partitions: int = 1
    reason: str = field(default="", compare=False)
