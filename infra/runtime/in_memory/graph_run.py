"""Runs the stages of a query one after the other over tables in memory.

    tables ─▶ fragment of a stage, in its task engine ─▶ rows of the stage ─▶ next stage ─▶ result

The fragments are those that tasks run, rendered and executed by the same code. One task reads all
that a branch reads, as it may in any run: how rows are divided among tasks changes no row. So
nothing is partitioned, and nothing is written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

import pyarrow as pa

from stagecoach.infra.engines.protocol import Fragment, Relation, Resources
from stagecoach.infra.engines.registry import task_engine
from stagecoach.infra.errors import QueryError
from stagecoach.infra.functions.function_set import NO_FUNCTIONS, FunctionSet
from stagecoach.infra.pruning.fixed_times import with_fixed_times
from stagecoach.infra.reading.inputs import ArrowInput, LeafColumn, ParquetInput, leaf_schema
from stagecoach.infra.runtime.planning.bloom_steps import bloom_step
from stagecoach.infra.worker.task import output_schema
from stagecoach.planner.distribution.wide_tasks import leaves_build_side
from stagecoach.planner.engines.registry import SPARK, planner_engine
from stagecoach.planner.errors import CatalogError, StagecoachError
from stagecoach.planner.plan.expressions import Literal
from stagecoach.planner.plan.physical import ScanExec
from stagecoach.planner.plan.stages import Branch, Stage, StageGraph
from stagecoach.planner.render.fragment import render_fragment
from stagecoach.planner.types import BOOLEAN, Field
from stagecoach.planner.versioned_names import split_name


class SparkNeededError(StagecoachError):
    """A stage cannot run without Spark.

    Args:
        stage: Name of the stage.
        reason: Why.
    """

    def __init__(self, stage: str, reason: str) -> None:
        super().__init__(stage, reason)
        self.stage = stage
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.stage} needs Spark: {self.reason}"


Rows = tuple[tuple[Field, ...], pa.Table]
"""Columns and rows."""
RunsStage = Callable[[Stage, Mapping[str, Rows]], pa.Table]
"""Runs a stage over its inputs `in_0`, `in_1`, … and gives its rows."""


@dataclass(frozen=True, kw_only=True)
class MemoryRun:
    """One run of a query over tables in memory.

    Args:
        graph: The planned query.
        tables: Rows by name of the table, in lower case, with the columns of the plan.
        values: A value for every parameter of the graph, those of the clock included.
        resources: What an engine may use.
        code_path: Folders in which the project's functions are.
        on_spark: Runs the stages that need Spark; None to refuse them.
    """

    graph: StageGraph
    tables: Mapping[str, pa.Table]
    values: Mapping[str, Literal]
    resources: Resources
    code_path: tuple[str, ...] = ()
    on_spark: RunsStage | None = None
    _done: dict[int, pa.Table] = field(default_factory=dict, init=False)

    def result(self) -> pa.Table:
        """Run all stages; the rows of the last one, columns named `c0`, `c1`, ….

        Raises:
            SparkNeededError: A stage runs on Spark and there is none, or its engine cannot run it
                over these rows (Spark would run it then, and may raise).
            CatalogError: There are no rows of a table.
            QueryFailedError: Spark raises.
        """
        for stage in self.graph.stages:
            self._done[stage.stage_id] = self._run(stage)
        return self._done[self.graph.head.stage_id]

    def _run(self, stage: Stage) -> pa.Table:
        name = f"{self.graph.query}/stage_{stage.stage_id}"
        if stage.engine == SPARK:
            if self.on_spark is None or stage.sql is not None:
                raise SparkNeededError(name, stage.engine_reason)
            return self.on_spark(stage, self._whole_inputs(stage))
        try:
            return self._in_tasks(with_fixed_times(stage, self.graph.time_zone))
        except QueryError as error:
            if self.on_spark is not None:
                return self.on_spark(stage, self._whole_inputs(stage))
            label = planner_engine(stage.engine).label
            reason = f"{label} cannot run it over these rows: {str(error).splitlines()[0]}"
            raise SparkNeededError(name, reason) from error

    def _whole_inputs(self, stage: Stage) -> dict[str, Rows]:
        leaves = {f"in_{i}": self._leaf(stage, i) for i in range(len(stage.leaves))}
        return {
            name: (tuple(Field(c.name, c.dtype) for c in columns), rows)
            for name, (columns, rows) in leaves.items()
        }

    def _in_tasks(self, stage: Stage) -> pa.Table:
        schema = output_schema(tuple(f.dtype for f in stage.schema))
        batches = [b for branch in stage.branches for b in self._task(stage, branch, schema)]
        return pa.Table.from_batches(batches, schema=schema)

    def _task(self, stage: Stage, branch: Branch, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """The one task of a branch: it reads the leaves of others as empty."""
        others = {i for other in stage.branches if other is not branch for i in other.leaves}
        inputs: list[Relation] = []
        for position in range(len(stage.leaves)):
            columns, rows = self._leaf(stage, position)
            is_empty = position in others and position not in branch.leaves
            inputs.append(_relation(columns, None if is_empty else rows))
        step, given = bloom_step(stage), iter(())
        if step is not None and step.source >= 0:
            columns, rows = self._leaf(stage, step.source)
            given = iter(rows.to_batches())
            inputs[step.source] = _relation(columns, None)
        fragment_schema = schema if step is None else step.schema or schema
        functions = NO_FUNCTIONS
        if stage.functions:
            functions = FunctionSet(stage.functions, self.code_path)
        resources = replace(
            self.resources,
            functions=functions,
            threads=stage.cores,
            chooses_build_side=leaves_build_side(stage),
        )
        sql = render_fragment(stage, stage.engine, self.values)
        fragment = Fragment.of(sql, inputs, fragment_schema)
        with task_engine(stage.engine).run(fragment, resources) as batches:
            yield from batches if step is None else step.apply(batches, given)

    def _leaf(self, stage: Stage, position: int) -> tuple[tuple[LeafColumn, ...], pa.Table]:
        """The columns of a leaf, and all of its rows."""
        leaf = stage.leaves[position]
        if not isinstance(leaf, ScanExec):
            columns = tuple(LeafColumn(f"c{c.id}", "", c.dtype) for c in leaf.outputs)
            rows = self._done[leaf.stage_id]
            return columns, rows.rename_columns([c.name for c in columns])
        columns = tuple(
            LeafColumn(f"c{column.id}", source, column.dtype)
            for column, source in zip(leaf.outputs, leaf.source, strict=True)
        )
        table = self.tables.get(
            leaf.table.lower(), self.tables.get(split_name(leaf.table)[0].lower())
        )
        if table is None:
            raise CatalogError(f"there are no rows of table '{leaf.table}'")
        schema = leaf_schema(columns)
        if not columns:
            return columns, table.select([])
        places = {name.lower(): i for i, name in enumerate(table.schema.names)}
        arrays = [table.column(places[column.source.lower()]) for column in columns]
        return columns, pa.Table.from_arrays(arrays, schema=schema)


def _relation(columns: tuple[LeafColumn, ...], rows: pa.Table | None) -> Relation:
    if rows is None:
        return ParquetInput(columns, ())
    if not columns:  # a scan of no column: its rows still count
        numbered = pa.table({"no_column": pa.nulls(rows.num_rows, pa.bool_())})
        named = (LeafColumn("no_column", "", BOOLEAN),)
        return ArrowInput(named, partial(_batches, numbered), 0)
    return ArrowInput(columns, partial(_batches, rows), rows.nbytes)


def _batches(rows: pa.Table) -> Iterator[pa.RecordBatch]:
    yield from rows.to_batches()
