"""Operators that read the chunks of a deduplicated table.

They are immutable trees, which `rules` rewrite and the runtime divides among tasks.

Predicates are the planner's expressions whose column numbers are positions in the table's columns.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from stagecoach.planner.errors import InternalPlanError
from stagecoach.planner.formats.deduplicated.chunk import Chunk
from stagecoach.planner.plan.expressions import TRUE, Expression
from stagecoach.planner.tree import same


@dataclass(frozen=True)
class ChunkPlan:
    """Base of the operators."""

    @property
    def children(self) -> tuple[ChunkPlan, ...]:
        """Inputs, in order."""
        return ()

    def with_children(self, new: tuple[ChunkPlan, ...]) -> ChunkPlan:
        """The same operator over other inputs."""
        if new:
            raise InternalPlanError(f"{type(self).__name__} has no inputs")
        return self

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns that it gives."""
        raise NotImplementedError

    @property
    def chunks(self) -> tuple[Chunk, ...]:
        """Chunks that are read below, left to right."""
        return tuple(chunk for child in self.children for chunk in child.chunks)


@dataclass(frozen=True)
class UnaryExec(ChunkPlan):
    """Base of operators over one input."""

    child: ChunkPlan

    @property
    def children(self) -> tuple[ChunkPlan, ...]:
        """The one input."""
        return (self.child,)

    def with_children(self, new: tuple[ChunkPlan, ...]) -> ChunkPlan:
        """The same operator over another input."""
        return self if new[0] is self.child else replace(self, child=new[0])

    @property
    def columns(self) -> tuple[str, ...]:
        """Those of the input."""
        return self.child.columns


@dataclass(frozen=True)
class ProjectionExec(UnaryExec):
    """Some columns of the input, in the order of `keep`."""

    keep: tuple[str, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """Those that are kept."""
        return self.keep


@dataclass(frozen=True)
class FilterExec(UnaryExec):
    """Rows for which the predicate is true."""

    predicate: Expression


@dataclass(frozen=True)
class DeduplicateExec(UnaryExec):
    """The latest row for each value of the key.

    Args:
        key: Columns that tell rows apart, in the order in which it is cheapest to sort by them.
        is_fused: Whether groups were put together on purpose: it is not split again.
    """

    key: tuple[str, ...]
    is_fused: bool = False


@dataclass(frozen=True)
class UnionExec(ChunkPlan):
    """All rows of any number of inputs, which have the same columns."""

    inputs: tuple[ChunkPlan, ...]

    @property
    def children(self) -> tuple[ChunkPlan, ...]:
        """All inputs."""
        return self.inputs

    def with_children(self, new: tuple[ChunkPlan, ...]) -> ChunkPlan:
        """The same operator over other inputs."""
        return self if same(self.inputs, new) else replace(self, inputs=new)

    @property
    def columns(self) -> tuple[str, ...]:
        """Those of each input."""
        return self.inputs[0].columns if self.inputs else ()


@dataclass(frozen=True)
class EmptyExec(ChunkPlan):
    """No rows."""

    schema: tuple[str, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """As stated."""
        return self.schema


@dataclass(frozen=True)
class RecordBatchesExec(ChunkPlan):
    """Rows of Arrow chunks; it filters nothing, and makes NULLs for columns that a chunk lacks.

    Args:
        batches: The chunks.
        schema: Columns to make.
    """

    batches: tuple[Chunk, ...]
    schema: tuple[str, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """As stated."""
        return self.schema

    @property
    def chunks(self) -> tuple[Chunk, ...]:
        """The chunks."""
        return self.batches


@dataclass(frozen=True)
class FileGroup:
    """Files that are read one after the other.

    Args:
        chunks: The files.
        order: Columns by which each single one is sorted; empty where that is not so.
    """

    chunks: tuple[Chunk, ...]
    order: tuple[str, ...] = ()


@dataclass(frozen=True)
class ParquetExec(ChunkPlan):
    """Rows of Parquet chunks in one store.

    Args:
        file_groups: What is read together.
        schema: Columns of the table, of which predicate and projection are.
        store: Where the files are.
        predicate: Rows for which it is not true may be left out; none need be. A filter above says
            which are not wanted.
        projection: Columns to give; None for all of `schema`.
    """

    file_groups: tuple[FileGroup, ...]
    schema: tuple[str, ...]
    store: str = "file"
    predicate: Expression = TRUE
    projection: tuple[str, ...] | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """Those of the projection."""
        return self.schema if self.projection is None else self.projection

    @property
    def chunks(self) -> tuple[Chunk, ...]:
        """The chunks of all groups."""
        return tuple(chunk for group in self.file_groups for chunk in group.chunks)


ChunkExec = RecordBatchesExec | ParquetExec
"""The operators that read chunks."""


def chunk_exec(chunk: Chunk, schema: tuple[str, ...]) -> ChunkExec:
    """The operator that reads one chunk whole."""
    if chunk.kind == "arrow":
        return RecordBatchesExec((chunk,), schema)
    return ParquetExec((FileGroup((chunk,), chunk.sort_order),), schema, chunk.store)


def plain_chunks(plan: ChunkPlan) -> tuple[Chunk, ...] | None:
    """The chunks below, if all that the plan does is to read them whole; None where it does more.

    Any such plan may be made again from its chunks.
    """
    match plan:
        case UnionExec():
            found: list[Chunk] = []
            for child in plan.inputs:
                below = plain_chunks(child)
                if below is None:
                    return None
                found.extend(below)
            return tuple(found)
        case ParquetExec(predicate=predicate, projection=None) if predicate == TRUE:
            return plan.chunks
        case RecordBatchesExec():
            return plan.batches
        case EmptyExec():
            return ()
    return None
