"""Physical plan: with which algorithm, on which partitions. The operators of a stage's fragment.

In: children and expressions. Out: trees that `distribute` adds exchanges to, `stages` cuts and
`fragment_sql` renders. Names follow DataFusion's, as in the seeds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
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

    def with_expressions(self, new: tuple[Expression, ...]) -> PhysicalPlan:
        """The same operator with other expressions, in the order of `expressions`."""
        if new:
            raise InternalPlanError(f"{type(self).__name__} has no expressions")
        return self

    def with_produced(self, rename: Callable[[Column], Column]) -> PhysicalPlan:
        """The same operator under other numbers for the columns that it makes itself."""
        del rename
        return self


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

    def with_produced(self, rename: Callable[[Column], Column]) -> PhysicalPlan:
        """The same rows under other column numbers."""
        return replace(self, outputs=tuple(rename(c) for c in self.outputs))


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

    def with_produced(self, rename: Callable[[Column], Column]) -> PhysicalPlan:
        """The same rows under other column numbers."""
        return replace(self, outputs=tuple(rename(c) for c in self.outputs))


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

    def with_expressions(self, new: tuple[Expression, ...]) -> PhysicalPlan:
        """The same rows under another predicate."""
        return replace(self, predicate=new[0])


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

    def with_expressions(self, new: tuple[Expression, ...]) -> PhysicalPlan:
        """The same columns, computed otherwise."""
        return replace(self, items=tuple((c, e) for (c, _), e in zip(self.items, new, strict=True)))

    def with_produced(self, rename: Callable[[Column], Column]) -> PhysicalPlan:
        """The same rows under other column numbers."""
        return replace(self, items=tuple((rename(c), e) for c, e in self.items))


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

    def with_expressions(self, new: tuple[Expression, ...]) -> PhysicalPlan:
        """The same columns, computed otherwise; the calls must stay aggregate calls."""
        count = len(self.groups)
        groups = tuple((c, e) for (c, _), e in zip(self.groups, new[:count], strict=True))
        calls = [e for e in new[count:] if isinstance(e, AggregateCall)]
        aggregates = tuple((c, e) for (c, _), e in zip(self.aggregates, calls, strict=True))
        return replace(self, groups=groups, aggregates=aggregates)

    def with_produced(self, rename: Callable[[Column], Column]) -> PhysicalPlan:
        """The same rows under other column numbers."""
        return replace(
            self,
            groups=tuple((rename(c), e) for c, e in self.groups),
            aggregates=tuple((rename(c), e) for c, e in self.aggregates),
        )


@dataclass(frozen=True)
class SortExec(_UnaryExec):
    """Sorts the rows of the task, keeping the first `fetch` (top-N) if that is set."""

    keys: tuple[SortKey, ...]
    fetch: int | None = None

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """The key expressions."""
        return tuple(key.expr for key in self.keys)

    def with_expressions(self, new: tuple[Expression, ...]) -> PhysicalPlan:
        """The same order by other keys."""
        return replace(self, keys=with_key_expressions(self.keys, new))


@dataclass(frozen=True)
class SortPreservingMergeExec(_UnaryExec):
    """Merges the sorted files of a gather into one order."""

    keys: tuple[SortKey, ...]
    fetch: int | None = None

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """The key expressions."""
        return tuple(key.expr for key in self.keys)

    def with_expressions(self, new: tuple[Expression, ...]) -> PhysicalPlan:
        """The same order by other keys."""
        return replace(self, keys=with_key_expressions(self.keys, new))


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
        null_safe: For each key whether NULL equals NULL (`<=>`); empty if that is so for none.
    """

    left: PhysicalPlan
    right: PhysicalPlan
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

    def with_expressions(self, new: tuple[Expression, ...]) -> PhysicalPlan:
        """The same join on other keys."""
        count = len(self.left_keys)
        return replace(self, left_keys=new[:count], right_keys=new[count:-1], residual=new[-1])


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

    def with_produced(self, rename: Callable[[Column], Column]) -> PhysicalPlan:
        """The same rows under other column numbers."""
        return replace(self, outputs=tuple(rename(c) for c in self.outputs))


@dataclass(frozen=True)
class WindowExec(_UnaryExec):
    """Window functions over partitions of the rows; all calls have the same partition keys.

    All rows of a partition must be in one task.
    """

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

    def with_expressions(self, new: tuple[Expression, ...]) -> PhysicalPlan:
        """The same columns, computed otherwise; the calls must stay window calls."""
        calls = [e for e in new if isinstance(e, WindowCall)]
        return replace(
            self, calls=tuple((c, e) for (c, _), e in zip(self.calls, calls, strict=True))
        )

    def with_produced(self, rename: Callable[[Column], Column]) -> PhysicalPlan:
        """The same rows under other column numbers."""
        return replace(self, calls=tuple((rename(c), e) for c, e in self.calls))


@dataclass(frozen=True)
class GenerateExec(_UnaryExec):
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

    def with_expressions(self, new: tuple[Expression, ...]) -> PhysicalPlan:
        """Another generator of the same columns."""
        (generator,) = new
        if not isinstance(generator, Call):
            raise InternalPlanError("a generator is a call")
        return replace(self, generator=generator)

    def with_produced(self, rename: Callable[[Column], Column]) -> PhysicalPlan:
        """The same rows under other column numbers."""
        return replace(self, outputs=tuple(rename(c) for c in self.outputs))


@dataclass(frozen=True)
class ValuesExec(PhysicalPlan):
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

    def with_expressions(self, new: tuple[Expression, ...]) -> PhysicalPlan:
        """The same columns with other items."""
        return replace(self, rows=_in_rows(new, len(self.outputs)))

    def with_produced(self, rename: Callable[[Column], Column]) -> PhysicalPlan:
        """The same rows under other column numbers."""
        return replace(self, outputs=tuple(rename(c) for c in self.outputs))


@dataclass(frozen=True)
class RangeExec(PhysicalPlan):
    """Whole numbers from `start` to below `stop`: the table function `range`."""

    outputs: tuple[Column, ...]
    start: int
    stop: int
    step: int

    @property
    def columns(self) -> tuple[Column, ...]:
        """The one column `id`, a bigint."""
        return self.outputs

    def with_produced(self, rename: Callable[[Column], Column]) -> PhysicalPlan:
        """The same rows under another column number."""
        return replace(self, outputs=tuple(rename(c) for c in self.outputs))


@dataclass(frozen=True)
class ExpandExec(_UnaryExec):
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

    def with_expressions(self, new: tuple[Expression, ...]) -> PhysicalPlan:
        """The same columns, computed otherwise."""
        return replace(self, projections=_in_rows(new, len(self.outputs)))

    def with_produced(self, rename: Callable[[Column], Column]) -> PhysicalPlan:
        """The same rows under other column numbers."""
        return replace(self, outputs=tuple(rename(c) for c in self.outputs))


def _in_rows(items: tuple[Expression, ...], width: int) -> tuple[tuple[Expression, ...], ...]:
    return tuple(items[i : i + width] for i in range(0, len(items), width))


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
