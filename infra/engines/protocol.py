"""What an engine is: it runs a fragment and gives its rows as record batches.

    Fragment (SQL, relations, schema) ─▶ engine ─▶ record batches of pinned names and types

A *task engine* runs inside a task of a stage. `stagecoach.infra.worker` finds it by its name in
`stagecoach.infra.engines.registry` and writes its batches to the shuffle. Spark is not one: it
spreads a fragment over all executors by itself, so the driver hands it the same `Fragment` and gets
a DataFrame, each partition of which is a stream of such batches
(`stagecoach.infra.engines.spark.engine`).

Worker code.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from stagecoach.infra.functions.function_set import NO_FUNCTIONS, FunctionSet
from stagecoach.infra.reading.inputs import LeafColumn

if TYPE_CHECKING:
    import pyarrow as pa


class Relation(Protocol):
    """Rows that a fragment reads: Parquet files, record batches, or what a table format gives."""

    @property
    def columns(self) -> tuple[LeafColumn, ...]:
        """The columns that the fragment sees."""


@dataclass(frozen=True)
class Fragment:
    """A fragment and the data that it reads.

    Args:
        sql: One SELECT over the relations, with one output column for each field of `schema`.
        relations: What the SQL reads, by name: `in_0`, `in_1`, … in the order of the leaves.
        schema: Pinned names and types of the result, by position.
        variables: Whole numbers that the SQL reads, by name; it also runs without them.
    """

    sql: str
    relations: Mapping[str, Relation]
    schema: pa.Schema
    variables: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        sql: str,
        relations: Sequence[Relation],
        schema: pa.Schema,
        variables: Mapping[str, int] | None = None,
    ) -> Fragment:
        """The fragment that reads these relations as `in_0`, `in_1`, …."""
        named = {f"in_{i}": one for i, one in enumerate(relations)}
        return cls(sql, named, schema, variables or {})


@dataclass(frozen=True, kw_only=True)
class Resources:
    """What a task engine may use of the machine, alike for all tasks of a stage.

    Args:
        time_zone: Session time zone, an IANA name.
        memory_bytes: Memory above which the engine spills.
        spill_dir: Local folder for spilled data, made if it is missing.
        max_spill_bytes: Most that may be spilled; 0 for the engine's own limit.
        directories: Local folders of the input files; it opens no file elsewhere.
        functions: Functions of the project that fragments call.
        threads: Cores that it may use.
        chooses_build_side: Whether it may make the hash table of the left side of a join.
    """

    time_zone: str
    memory_bytes: int
    spill_dir: str
    max_spill_bytes: int = 0
    directories: tuple[str, ...] = ()
    functions: FunctionSet = NO_FUNCTIONS
    threads: int = 1
    chooses_build_side: bool = False


class TaskEngine(Protocol):
    """An engine that runs inside a task."""

    def run(
        self, fragment: Fragment, resources: Resources
    ) -> AbstractContextManager[Iterator[pa.RecordBatch]]:
        """Run a fragment and give its rows as a stream, valid inside the block.

        Raises:
            QueryError: The engine refuses the SQL or fails on the data (also while the stream is
                read); the driver has Spark run the stage then.
            StagecoachError: What reading a relation raised, as it is.
        """
