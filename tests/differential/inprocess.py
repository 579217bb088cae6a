"""Run stage graphs over Parquet tables in this process, without a cluster.

Every stage runs task by task in this process, DuckDB stages on the real worker code with the real
partitioner, Spark stages as Spark SQL over the same inputs. Also here: the exact comparison of two
results.
"""

from __future__ import annotations

import functools
import math
import struct
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from stagecoach.infra.engines.duckdb.engine import DuckDbEngine
from stagecoach.infra.engines.protocol import Fragment, Resources
from stagecoach.infra.pruning.fixed_times import with_fixed_times
from stagecoach.infra.reading.data_file import DataFile
from stagecoach.infra.reading.inputs import (
    ArrowInput,
    LeafColumn,
    ParquetInput,
    PlainInput,
)
from stagecoach.infra.shuffle.partitioner import partition_ids
from stagecoach.infra.spark.float_digits import float_variables
from stagecoach.infra.worker.task import output_schema
from stagecoach.planner.distribution.wide_tasks import leaves_build_side
from stagecoach.planner.plan.expressions import Literal
from stagecoach.planner.plan.physical import ScanExec, StageInputExec
from stagecoach.planner.plan.stages import Branch, Stage, StageGraph
from stagecoach.planner.render.fragment import render_fragment
from stagecoach.planner.text.quoting import spark_name
from stagecoach.planner.text.type_names import ddl_type
from stagecoach.planner.types import (
    DATE,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DataType,
    Field,
    to_arrow,
)
from tests.differential.edge_tables import EdgeTables

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def settings_for(tables: EdgeTables, time_zone: str = "UTC") -> Resources:
    """Settings of the database that all in-process tasks share."""
    return Resources(
        time_zone=time_zone,
        memory_bytes=512 << 20,
        spill_dir=str(tables.folder / "spill"),
        directories=tuple(sorted(str(tables.folder / name) for name in tables.files)),
    )


# The moment of every run; queries only ask whether it is after others.
CLOCK = {
    "@now": Literal(TIMESTAMP, "2026-01-02 03:04:05.678901"),
    "@date": Literal(DATE, "2026-01-02"),
    "@local": Literal(TIMESTAMP_NTZ, "2026-01-02 03:04:05.678901"),
}


@dataclass(frozen=True)
class StageResult:
    """Rows of a stage by partition."""

    partitions: list[list[pa.RecordBatch]]


class InProcessRunner:
    """Runs stage graphs over the tables.

    Args:
        tables: What scans read.
        spark: Runs the Spark stages.
    """

    def __init__(self, tables: EdgeTables, spark: SparkSession | None = None) -> None:
        self._tables = tables
        self._spark = spark
        self._settings = settings_for(tables)
        self._variables = {} if spark is None else float_variables(spark)

    def run(self, graph: StageGraph) -> pa.Table:
        """The result, its columns named by position.

        Raises:
            QueryError: DuckDB fails.
        """
        done: dict[int, StageResult] = {}
        for stage in graph.stages:
            rendered = (
                with_fixed_times(stage, graph.time_zone) if stage.engine == "duckdb" else stage
            )
            done[stage.stage_id] = self._stage(rendered, done)
        schema = output_schema(tuple(f.dtype for f in graph.head.schema))
        batches = [b for part in done[graph.head.stage_id].partitions for b in part]
        return pa.Table.from_batches(batches, schema=schema)

    def _stage(self, stage: Stage, done: dict[int, StageResult]) -> StageResult:
        count = max(stage.output.num_partitions, 1)
        result = StageResult([[] for _ in range(count)])
        schema = output_schema(tuple(f.dtype for f in stage.schema))
        runs = self._on_spark(stage, done) if stage.engine == "spark" else self._tasks(stage, done, schema)  # fmt: skip
        for batch in runs:
            if stage.output.kind != "shuffle" or count == 1 or not stage.output.keys:
                result.partitions[0].append(batch)
                continue
            ids = partition_ids(batch, stage.output.keys, count)
            for partition in range(count):
                result.partitions[partition].append(batch.filter(pa.array(ids == partition)))
        return result

    def _tasks(
        self, stage: Stage, done: dict[int, StageResult], schema: pa.Schema
    ) -> Iterator[pa.RecordBatch]:
        sql = render_fragment(stage, "duckdb", CLOCK)
        settings = replace(
            self._settings,
            threads=stage.cores,
            chooses_build_side=leaves_build_side(stage),
        )
        for branch in stage.branches:
            for part in self._parts(stage, branch, done):
                inputs = [
                    self._input(stage, position, branch, part, done)
                    for position in range(len(stage.leaves))
                ]
                fragment = Fragment.of(sql, inputs, schema, self._variables)
                with DuckDbEngine().run(fragment, settings) as batches:
                    yield from batches

    def _parts(
        self, stage: Stage, branch: Branch, done: dict[int, StageResult]
    ) -> Sequence[int | None]:
        if branch.kind == "single":
            return [None]
        leaf = stage.leaves[branch.leaves[0]]
        if isinstance(leaf, ScanExec):
            return range(len(self._tables.files[leaf.table]))
        sizes = {
            len(done[x.stage_id].partitions)
            for x in (stage.leaves[p] for p in branch.leaves)
            if isinstance(x, StageInputExec)
        }
        assert len(sizes) == 1, "inputs of one branch differ in their number of partitions"
        return range(sizes.pop())

    def _input(
        self,
        stage: Stage,
        position: int,
        branch: Branch | None,
        part: int | None,
        done: dict[int, StageResult],
    ) -> PlainInput:
        """What a task of `branch` reads of a leaf; without a branch, all of it."""
        leaf = stage.leaves[position]
        mine = branch is not None and position in branch.leaves
        elsewhere = (
            branch is not None and not mine and any(position in b.leaves for b in stage.branches)
        )
        if isinstance(leaf, ScanExec):
            columns = tuple(
                LeafColumn(f"c{c.id}", s, c.dtype)
                for c, s in zip(leaf.outputs, leaf.source, strict=True)
            )
            paths = self._tables.files[leaf.table]
            if elsewhere:
                paths = ()
            elif mine and part is not None:
                paths = paths[part : part + 1]
            sizes = [(p, pq.read_metadata(p).num_rows) for p in paths]
            return ParquetInput(columns, tuple(DataFile(p, n) for p, n in sizes if n))
        columns = tuple(LeafColumn(f"c{c.id}", "", c.dtype) for c in leaf.outputs)
        partitions = done[leaf.stage_id].partitions
        if elsewhere:
            partitions = []
        elif mine and part is not None:
            partitions = partitions[part : part + 1]
        batches = [b for p in partitions for b in p]
        return ArrowInput(columns, functools.partial(_renamed, batches, columns))

    def _on_spark(self, stage: Stage, done: dict[int, StageResult]) -> Iterator[pa.RecordBatch]:
        assert self._spark is not None
        if stage.sql is not None:
            raise AssertionError(f"the whole query runs on Spark: {stage.engine_reason}")
        for position in range(len(stage.leaves)):
            leaf = self._input(stage, position, None, None, done)
            register_view(self._spark, f"in_{position}", leaf)
        frame = self._spark.sql(render_fragment(stage, "spark", CLOCK))
        types = tuple(f.dtype for f in stage.schema)
        assert spark_types(frame) == types
        yield from collect(frame).cast(output_schema(types)).to_batches()


def _renamed(
    batches: list[pa.RecordBatch], columns: tuple[LeafColumn, ...]
) -> Iterator[pa.RecordBatch]:
    schema = pa.schema([pa.field(c.name, to_arrow(c.dtype)) for c in columns])
    for batch in batches:
        yield pa.RecordBatch.from_arrays(batch.columns, schema=schema)


def register_view(spark: SparkSession, name: str, leaf: PlainInput) -> None:
    """A temporary view of an input."""
    if isinstance(leaf, ParquetInput) and leaf.files and leaf.columns:
        frame = spark.read.parquet(*(f.uri for f in leaf.files))
        frame = frame.select(*(frame[f"`{c.source}`"].alias(c.name) for c in leaf.columns))
    elif isinstance(leaf, ParquetInput) and leaf.files:
        frame = spark.read.parquet(*(f.uri for f in leaf.files)).selectExpr("1 AS no_column")
    else:
        batches = list(leaf.batches()) if isinstance(leaf, ArrowInput) else []
        schema = pa.schema([pa.field(c.name, to_arrow(c.dtype)) for c in leaf.columns])
        # One chunk: createDataFrame loses rows of tables with many small ones.
        table = pa.Table.from_batches(batches, schema=schema).combine_chunks()
        if not table.num_rows:  # without a chunk it refuses nested columns
            table = pa.Table.from_arrays([pa.array([], f.type) for f in schema], schema=schema)
        # Else a moment without a zone becomes one with a zone.
        ddl = ", ".join(f"{spark_name(c.name)} {ddl_type(c.dtype)}" for c in leaf.columns)
        frame = spark.createDataFrame(table, ddl) if ddl else spark.createDataFrame(table)
    frame.createOrReplaceTempView(name)


# ---------------------------------------------------------------- results of Spark


def spark_types(frame: DataFrame) -> tuple[DataType, ...]:
    """Our names of the types of a DataFrame."""
    from stagecoach.planner.types import parse_type

    return tuple(parse_type(f.dataType.simpleString()) for f in frame.schema.fields)


def spark_fields(frame: DataFrame) -> tuple[Field, ...]:
    """Names and types of a DataFrame."""
    pairs = zip(frame.schema.names, spark_types(frame), strict=True)
    return tuple(Field(name, dtype) for name, dtype in pairs)


def collect(frame: DataFrame) -> pa.Table:
    """The rows with columns `c0`, `c1`, …: a result may use a name twice."""
    return frame.toDF(*(f"c{i}" for i in range(len(frame.columns)))).toArrow()


# ---------------------------------------------------------------- comparison


def canonical(array: pa.ChunkedArray | pa.Array) -> list[Any]:
    """Values that are equal exactly if the SQL values are: NaN = NaN, -0.0 ≠ 0.0."""
    values = python_values(array)
    if pa.types.is_nested(array.type):
        return [_members(v) for v in values]
    return [_bits(v) for v in values] if pa.types.is_floating(array.type) else values


def python_values(array: pa.ChunkedArray | pa.Array) -> list[Any]:
    """Values; dates and timestamps as numbers, because Python's end with the year 9999."""
    numbers = _with_numbers(array.type)
    return (array if numbers == array.type else array.cast(numbers)).to_pylist()


def _with_numbers(kind: pa.DataType) -> pa.DataType:
    """The type with numbers in place of dates and timestamps, at any depth."""
    if pa.types.is_timestamp(kind):
        return pa.int64()
    if pa.types.is_date(kind):
        return pa.int32()
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_with_numbers(kind.value_type)))
    if pa.types.is_map(kind):
        return pa.map_(_with_numbers(kind.key_type), _with_numbers(kind.item_type))
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_with_numbers(field.type)) for field in kind])
    return kind


def _members(value: Any) -> Any:
    """Values that can be hashed, floats by their bits; the entries of a map keep their order."""
    if isinstance(value, float):
        return _bits(value)
    if isinstance(value, list | tuple):
        return tuple(_members(v) for v in value)
    if isinstance(value, dict):
        return tuple((name, _members(v)) for name, v in value.items())
    return value


def _bits(value: float | None) -> Any:
    if value is None:
        return None
    return "NaN" if math.isnan(value) else struct.pack("<d", value)


def close(left: float | None, right: float | None, magnitude: float) -> bool:
    """Whether two sums of floats differ by rounding only."""
    if left is None or right is None or math.isnan(left) or math.isnan(right):
        return left is right or (left is not None and right is not None and left != left and right != right)  # fmt: skip
    return left == right or abs(left - right) <= 1e-12 * magnitude


def multiset(table: pa.Table) -> Counter[tuple[Any, ...]]:
    """The rows without their order."""
    return Counter(rows_of(table))


def rows_of(table: pa.Table) -> list[tuple[Any, ...]]:
    """The rows in canonical values."""
    columns = [canonical(c) for c in table.columns]
    return list(zip(*columns, strict=True)) if columns else [()] * table.num_rows
