"""The rows of a stage of an earlier run: as they were committed, and computed again.

    committed_rows   what is in storage
    native_rows      its fragment in its task engine, in this process, over all that it read
    spark_rows       the same fragment, or the whole query, as Spark SQL over the same inputs

Inputs are streamed, as in a task; the rows of the stage are held in memory, up to a limit. Where a
stage of several tasks is computed again, one task reads all that a branch read.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from stagecoach.infra.engines.protocol import Fragment
from stagecoach.infra.engines.registry import task_engine
from stagecoach.infra.errors import QueryError, QueryFailedError
from stagecoach.infra.pruning.fixed_times import with_fixed_times
from stagecoach.infra.reading.format_input import EngineInput, FormatInput
from stagecoach.infra.reading.input_files import check_still_same
from stagecoach.infra.reading.inputs import ArrowInput, ParquetInput, ScanInput
from stagecoach.infra.replay.recorded_run import RecordedRun
from stagecoach.infra.runtime.planning.bloom_steps import bloom_step
from stagecoach.infra.runtime.planning.leaf_inputs import whole_tables
from stagecoach.infra.runtime.planning.plan_tasks import StageReads, output_partitioning
from stagecoach.infra.shuffle.manifest import Manifest
from stagecoach.infra.shuffle.reader import read_partitions
from stagecoach.infra.storage.object_store import StorageOptions
from stagecoach.infra.worker.inputs import TaskMeter, engine_input, task_resources
from stagecoach.infra.worker.spec import EXPANSION, InputSpec, TaskSettings, TaskSpec
from stagecoach.infra.worker.task import output_schema
from stagecoach.planner.distribution.wide_tasks import leaves_build_side
from stagecoach.planner.engines.registry import SPARK
from stagecoach.planner.engines.spark.dialect import marker_values
from stagecoach.planner.errors import SqlError, StagecoachError
from stagecoach.planner.plan.expressions import Literal
from stagecoach.planner.plan.stages import Branch, Stage
from stagecoach.planner.render.fragment import render_fragment
from stagecoach.planner.syntax.parse import spark_text
from stagecoach.planner.syntax.text import SparkText
from stagecoach.planner.text.sizes import format_bytes
from stagecoach.planner.types import DataType

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DEFAULT_MAX_BYTES = 1 << 30


class TooManyRowsError(StagecoachError):
    """The rows of a stage are more than may be held in memory."""

    def __init__(self, stage: str, max_bytes: int) -> None:
        super().__init__(stage, max_bytes)
        self.stage = stage
        self.max_bytes = max_bytes

    def __str__(self) -> str:
        return (
            f"{self.stage} has more than {format_bytes(self.max_bytes)} of rows, which are held in "
            "memory to be compared; --max-bytes raises the limit"
        )


@dataclass(frozen=True, kw_only=True)
class StageRows:
    """Computes the rows of the stages of a run again.

    Args:
        run: The run.
        max_bytes: Most bytes of rows that one stage may have, in memory.
    """

    run: RecordedRun
    max_bytes: int = DEFAULT_MAX_BYTES

    def committed(self, stage: Stage) -> pa.Table | None:
        """The rows that the run committed; None where the stage has no output in it.

        Raises:
            NotReplayableError: They are gone.
            ShuffleReadError: They are damaged.
            TooManyRowsError: They are more than may be held in memory.
        """
        manifest = self.run.output(stage.stage_id)
        return None if manifest is None else self.rows_of(manifest)

    def rows_of(self, manifest: Manifest) -> pa.Table:
        """The rows of a commit."""
        store = self.run.store
        schema, batches = read_partitions(store, manifest, 0, manifest.num_partitions)
        return self.held(manifest.stage_name, batches, schema)

    def native(self, stage: Stage) -> pa.Table:
        """The rows that the stage's own engine makes of what it read.

        Raises:
            QueryError: The engine refuses the fragment or raises on its data.
            StagecoachError: An input is lost, or there are too many rows.
        """
        run = self.run
        name = run.stage_name(stage.stage_id)
        reads = run.reads(stage)
        try:
            rendered = with_fixed_times(stage, run.graph.time_zone)
            sql = render_fragment(rendered, stage.engine, run.values)
        except SqlError as error:
            raise QueryError(str(error)) from error
        settings = run.task_settings(stage.functions)
        settings = replace(
            settings, threads=stage.cores, chooses_build_side=leaves_build_side(stage)
        )
        schema = output_schema(tuple(f.dtype for f in stage.schema))
        batches = (
            batch
            for branch in stage.branches
            for batch in _task(stage, sql, branch_inputs(reads, stage, branch), settings, run)
        )
        rows = self.held(name, batches, schema)
        check_unchanged(run, whole_inputs(reads))
        return rows

    def on_spark(self, stage: Stage, session: Callable[[], SparkSession]) -> pa.Table:
        """The rows that Spark makes of what the stage read.

        Args:
            stage: The stage; one that is the whole query is run as its text.
            session: Gives the Spark session.

        Raises:
            QueryFailedError: Spark refuses it or raises on its data.
            StagecoachError: An input is lost, or there are too many rows.
        """
        run = self.run
        if stage.sql is not None:
            return self.query_on_spark(session)
        try:
            text = SparkText(render_fragment(stage, SPARK, run.values))
        except SqlError as error:
            raise QueryFailedError(run.graph.query, type(error).__name__, str(error)) from error
        leaves = whole_inputs(run.reads(stage))
        for leaf in leaves:
            if isinstance(leaf, FormatInput) and (reason := leaf.whole_query_reason) is not None:
                raise QueryFailedError(run.graph.query, "WHOLE_QUERY", reason)
        views = {f"in_{position}": leaf for position, leaf in enumerate(leaves)}
        step = bloom_step(stage)
        types = tuple(f.dtype for f in stage.schema)
        given = types if step is None else step.types or types
        found = self._spark_sql(session, stage, text, views, given, marker_values(run.values))
        if step is None:
            return found
        schema = output_schema(types)
        bloom = _filter_rows(leaves, step.source, run) if step.source >= 0 else iter(())
        batches = step.apply(iter(found.to_batches()), bloom)
        return self.held(run.stage_name(stage.stage_id), batches, schema)

    def query_on_spark(self, session: Callable[[], SparkSession]) -> pa.Table:
        """The result of the query's text on Spark, over the tables of the run's snapshot."""
        run = self.run
        head = run.graph.head
        pointer = run.pointers.get(head.stage_id)
        fields = run.graph.result if pointer is None else pointer.fields or run.graph.result
        types = tuple(f.dtype for f in fields)
        views = whole_tables(run.graph, run.snapshot)
        return self._spark_sql(session, head, spark_text(run.graph.sql), views, types, run.values)

    def held(self, name: str, batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> pa.Table:
        """Batches as one table in memory.

        Raises:
            TooManyRowsError: They are more than may be held.
        """
        kept: list[pa.RecordBatch] = []
        num_bytes = 0
        for batch in batches:
            num_bytes += batch.nbytes
            if num_bytes > self.max_bytes:
                raise TooManyRowsError(name, self.max_bytes)
            kept.append(batch)
        return pa.Table.from_batches(kept, schema=schema)

    def _spark_sql(
        self,
        session: Callable[[], SparkSession],
        stage: Stage,
        text: SparkText,
        views: Mapping[str, InputSpec],
        types: tuple[DataType, ...],
        values: Mapping[str, Literal],
    ) -> pa.Table:
        from stagecoach.infra.runtime.stages.dispatch import sql_rows
        from stagecoach.infra.runtime.stages.fetched_files import within_reach
        from stagecoach.infra.spark.session import isolated_session

        run, name = self.run, self.run.stage_name(stage.stage_id)
        manifest = run.output(stage.stage_id)
        if manifest is not None and manifest.num_bytes * EXPANSION > 2 * self.max_bytes:
            raise TooManyRowsError(name, self.max_bytes)
        functions = run.graph.functions if stage.sql is not None else stage.functions
        settings = run.task_settings(functions)
        spec = TaskSpec(
            query=run.graph.query,
            stage_id=stage.stage_id,
            fingerprint=stage.plan_hash,  # where a failure of reading is left for a moment
            task_index=0,
            sql=text.text,
            inputs=(),
            types=types,
            output=output_partitioning(stage),
            settings=settings,
        )
        with (
            isolated_session(session(), run.graph.time_zone) as spark,
            within_reach(views, run.settings, settings.store) as reached,
        ):
            found = sql_rows(spark, spec, text, views=reached, parameters=values)
        check_unchanged(run, list(views.values()))
        return self.held(name, found.to_batches(), found.schema)


def branch_inputs(reads: StageReads, stage: Stage, branch: Branch) -> tuple[InputSpec, ...]:
    """All that one task of a branch may read: the leaves of other branches are empty for it."""
    sizes = reads.sizes()
    others = {i for other in stage.branches if other is not branch for i in other.leaves}
    others -= set(branch.leaves)
    return reads.bind(
        [sizes.empty(i) if i in others else sizes.whole(i) for i in range(len(stage.leaves))]
    )


def whole_inputs(reads: StageReads) -> tuple[InputSpec, ...]:
    """All of each leaf of a stage."""
    sizes = reads.sizes()
    return reads.bind([sizes.whole(i) for i in range(len(reads.stage.leaves))])


def check_unchanged(run: RecordedRun, inputs: Sequence[InputSpec]) -> None:
    """Look whether the table files that were read are still those of the snapshot.

    Raises:
        InputLostError: One is not.
    """
    options = StorageOptions.of(run.store)
    for leaf in inputs:
        if isinstance(leaf, ScanInput):
            check_still_same(leaf.files, options)
        elif isinstance(leaf, FormatInput):
            check_still_same(leaf.file_rows, options)


def bound_inputs(
    run: RecordedRun, specs: Sequence[InputSpec], settings: TaskSettings
) -> list[EngineInput]:
    """Inputs as an engine of this process takes them."""
    meter = TaskMeter(rows_in=[0] * len(specs))
    return [engine_input(run.store, one, settings, i, meter) for i, one in enumerate(specs)]


def _task(
    stage: Stage,
    sql: str,
    specs: Sequence[InputSpec],
    settings: TaskSettings,
    run: RecordedRun,
) -> Iterator[pa.RecordBatch]:
    """The rows of one task, as `stagecoach.infra.worker.task` makes them, but for writing them."""
    inputs = bound_inputs(run, specs, settings)
    step, bloom = bloom_step(stage), iter(())
    if step is not None and step.source >= 0:
        found = inputs[step.source]
        bloom = found.batches() if isinstance(found, ArrowInput) else iter(())
        inputs[step.source] = ParquetInput(found.columns, ())
    schema = output_schema(tuple(f.dtype for f in stage.schema))
    fragment = Fragment.of(sql, inputs, schema if step is None else step.schema or schema)
    os.makedirs(settings.spill_dir, exist_ok=True)
    with task_engine(stage.engine).run(fragment, task_resources(settings)) as batches:
        yield from batches if step is None else step.apply(batches, bloom)


def _filter_rows(
    leaves: Sequence[InputSpec], source: int, run: RecordedRun
) -> Iterator[pa.RecordBatch]:
    (found,) = bound_inputs(run, [leaves[source]], run.task_settings(()))
    return found.batches() if isinstance(found, ArrowInput) else iter(())
