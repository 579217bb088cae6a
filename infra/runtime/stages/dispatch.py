"""Hands tasks to Spark: each task of a stage, each piece of an input, each partition of a result.

Driver code for classic Spark and Spark Connect. The stage of a task engine is one Spark job with
one Spark task each (`run_tasks`). A stage on Spark is Spark SQL over the same inputs, whose
partitions are written as the same map files (`run_sql`). All but `run_tasks` use the DataFrame API
alone. Nested functions are pickled by value, so executors import `stagecoach.infra.worker` and not
this module.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa
from pyspark.sql.types import LongType, StringType, StructField, StructType

from stagecoach.infra.engines.protocol import Fragment, Relation
from stagecoach.infra.engines.spark.engine import FedRelation, SparkEngine
from stagecoach.infra.engines.spark.errors import SPARK_ERRORS, explain_error
from stagecoach.infra.errors import TaskFailedError
from stagecoach.infra.reading.format_input import FormatInput
from stagecoach.infra.reading.inputs import ParquetInput, ScanInput
from stagecoach.infra.spark.session import is_connect
from stagecoach.infra.storage.stores import store_from_dict
from stagecoach.infra.worker.read_failures import new_failure_key, take_failure
from stagecoach.infra.worker.reports import TaskReport
from stagecoach.infra.worker.spec import InputSpec, TaskSpec
from stagecoach.infra.worker.task import output_schema
from stagecoach.planner.plan.expressions import Literal
from stagecoach.planner.syntax.text import SparkText

if TYPE_CHECKING:
    from pyspark.core.rdd import RDD
    from pyspark.sql import DataFrame, SparkSession

# As text, it would be parsed by the server of a Connect session, with one more request.
_REPORT_SCHEMA = StructType([StructField("task", LongType()), StructField("report", StringType())])
_RANGE_SCHEMA = StructType([StructField("id", LongType(), nullable=False)])


def run_tasks(spark: SparkSession, specs: Sequence[TaskSpec]) -> list[TaskReport]:
    """Run tasks as one Spark job, one Spark task each.

    Args:
        spark: Any session; only its executors matter.
        specs: The tasks, numbered from 0 in order.

    Raises:
        TaskFailedError: A Spark task died (a task's own errors are in its report).
    """
    # Settings and SQL are the same objects in all specs, so pickle writes them once.
    task = _task_function([spec.to_dict() for spec in specs])
    count, stage = len(specs), specs[0].stage_name
    if is_connect(spark):
        numbers = spark.range(0, count, 1, count)
        # pyspark would ask the server for it; an attribute that it does not know harms nothing.
        cast("Any", numbers)._cached_schema = _RANGE_SCHEMA
        return _collect(numbers.mapInArrow(_of_batches(task), _REPORT_SCHEMA), stage)
    try:
        found = _bare_tasks(spark, count, task).collect()
    except SPARK_ERRORS as error:
        raise explain_error(error, specs[0].query, stage) from error
    return _reports(found)


def _bare_tasks(spark: SparkSession, count: int, task: Callable[[int], str]) -> RDD[str]:
    """A job of nothing but tasks.

    A DataFrame would be analysed, optimised, planned and compiled, which takes longer than a small
    task; and `SparkContext.parallelize` writes a file.
    """
    from pyspark.core.rdd import RDD

    def run(index: int, nothing: Iterable[None]) -> Iterator[str]:
        list(nothing)  # a worker is used again only where its input was read to the end
        yield task(index)

    context = spark.sparkContext
    jvm: Any = context._jvm
    empty = context._jsc.parallelize(jvm.java.util.ArrayList(), count)
    tasks: RDD[None] = RDD(empty, context, context.serializer)
    return tasks.mapPartitionsWithIndex(run)


def _task_function(payload: list[dict[str, Any]]) -> Callable[[int], str]:
    def run(index: int) -> str:
        import json  # pickling a function that refers to a module looks through all that are loaded

        from pyspark import TaskContext

        from stagecoach.infra.worker.process import settle
        from stagecoach.infra.worker.spec import TaskSpec
        from stagecoach.infra.worker.task import run_task

        context = TaskContext.get()
        attempt = 0 if context is None else context.attemptNumber()
        report = run_task(TaskSpec.from_dict(payload[index]), attempt)
        settle()
        return json.dumps(report.to_dict())

    return run


def _of_batches(
    task: Callable[[int], str],
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for index in batch.column(0).to_pylist():
                yield pa.RecordBatch.from_pydict({"task": [index], "report": [task(index)]})

    return run


def check_inputs(spark: SparkSession, spec: TaskSpec, leaves: Sequence[InputSpec]) -> None:
    """Read inputs piece by piece, and raise the first error as itself.

    What Spark passes on of an error in a task that feeds it is a text. Local Parquet files are
    checked as far as they are not yet, and not read: Spark reads them by itself, as it does other
    files (`SparkFiles`).

    Args:
        spark: A session.
        spec: Says how inputs are read.
        leaves: What to read.

    Raises:
        StagecoachError: What reading an input raises.
        TaskFailedError: Spark itself failed.
    """
    pieces = [{**vars(spec), "inputs": (piece,)} for leaf in leaves for piece in _pieces_of(leaf)]
    if not pieces:
        return
    payload = [TaskSpec(**piece).to_dict() for piece in pieces]
    frame = spark.range(0, len(pieces), 1, len(pieces))
    reports = _collect(
        frame.mapInArrow(_of_batches(_check_function(payload)), _REPORT_SCHEMA), spec.stage_name
    )
    for report in reports:
        if report.failure is not None:
            raise report.failure.to_error(spec.stage_name, report.task_index)


def _pieces_of(leaf: InputSpec) -> Iterator[InputSpec]:
    if isinstance(leaf, ScanInput):
        yield from (replace(leaf, files=(file,)) for file in leaf.files)
    elif isinstance(leaf, FormatInput) and leaf.spark_files() is None:
        spread = leaf.spread()
        yield from (spread.part(i) for i in range(spread.num_parts))


def _check_function(payload: list[dict[str, Any]]) -> Callable[[int], str]:
    def run(index: int) -> str:
        import json

        from stagecoach.infra.worker.spec import TaskSpec
        from stagecoach.infra.worker.task import check_task

        return json.dumps(check_task(TaskSpec.from_dict(payload[index]), index).to_dict())

    return run


def run_sql(
    spark: SparkSession,
    spec: TaskSpec,
    text: SparkText,
    *,
    views: Mapping[str, InputSpec],
    parameters: Mapping[str, Literal],
) -> list[TaskReport]:
    """Run SQL in Spark and write each partition of its result as a map file, in order.

    Args:
        spark: A session of the caller's own: its temporary views are replaced.
        spec: Says where the output goes; task numbers come from Spark.
        text: What to run.
        views: What the SQL reads, by name; each is read whole.
        parameters: Values of the parameter markers in the SQL.

    Raises:
        ForbiddenSqlError: The query does more than read the views.
        QueryFailedError: Spark refuses the SQL or fails on the data.
        TaskFailedError: Spark itself failed.
    """
    failure_key = new_failure_key(spec.fingerprint)
    relations = {name: _relation(spec, leaf, failure_key) for name, leaf in views.items()}
    fragment = Fragment(text.text, relations, output_schema(spec.fragment_types))
    settings = spec.settings
    engine = SparkEngine(
        spark, parameters, verify_pages=settings.verify_pages, functions=settings.functions
    )
    try:
        write = _write_function({**spec.to_dict(), "inputs": []})
        written = engine.run(fragment).mapInArrow(write, _REPORT_SCHEMA)
        return _reports(row["report"] for row in written.collect())
    except SPARK_ERRORS as error:
        failure = take_failure(store_from_dict(spec.settings.store), failure_key)
        if failure is None:
            raise explain_error(error, spec.query, spec.stage_name) from error
        if failure.kind == "query":  # of an input, which no other form of the query would mend
            raise TaskFailedError(spec.stage_name, None, str(failure.args[0])) from error
        raise failure.to_error(spec.stage_name, None) from error


def _relation(spec: TaskSpec, leaf: InputSpec, failure_key: str) -> Relation:
    """An input as Spark takes it: files that it reads by itself, or pieces that tasks read."""
    if isinstance(leaf, ScanInput) and all(f.local_path is not None for f in leaf.files):
        return ParquetInput(leaf.columns, leaf.files)
    if isinstance(leaf, FormatInput):
        if (files := leaf.spark_files()) is not None:
            return files
        leaf = leaf.spread()
    payload = replace(spec, inputs=(leaf,)).to_dict()
    return FedRelation(leaf.columns, _num_parts(leaf), _read_function(payload, failure_key))


def _num_parts(leaf: InputSpec) -> int:
    """How many pieces of an input are read by themselves; see `read_input`."""
    if isinstance(leaf, ScanInput):
        return len(leaf.files)
    if isinstance(leaf, FormatInput):
        return leaf.num_parts
    return max(leaf.high - leaf.low, 1)  # of no partition, one piece without rows


def _read_function(
    payload: dict[str, Any], failure_key: str
) -> Callable[[int], Iterator[pa.RecordBatch]]:
    def read(index: int) -> Iterator[pa.RecordBatch]:
        from stagecoach.infra.storage.stores import store_from_dict
        from stagecoach.infra.worker.inputs import read_input
        from stagecoach.infra.worker.read_failures import keep_failure
        from stagecoach.infra.worker.spec import TaskSpec

        spec = TaskSpec.from_dict(payload)
        try:
            yield from read_input(spec, index)
        except Exception as error:
            keep_failure(store_from_dict(spec.settings.store), failure_key, error)
            raise

    return read


def _write_function(
    payload: dict[str, Any],
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        from stagecoach.infra.worker.spec import TaskSpec
        from stagecoach.infra.worker.task import write_batches

        context = TaskContext.get()
        index = 0 if context is None else context.partitionId()
        attempt = 0 if context is None else context.attemptNumber()
        spec = TaskSpec.from_dict({**payload, "task_index": index})
        report = write_batches(spec, batches, attempt)
        rows = {"task": [index], "report": [json.dumps(report.to_dict())]}
        yield pa.RecordBatch.from_pydict(rows)

    return write


def _collect(frame: DataFrame, stage: str) -> list[TaskReport]:
    try:
        if is_connect(frame.sparkSession):
            # Rows would be made by a setting, for which pyspark asks the server.
            return _reports(frame.toArrow().column("report").to_pylist())
        return _reports(row["report"] for row in frame.collect())
    except SPARK_ERRORS as error:
        raise explain_error(error, stage.split("/", 1)[0], stage) from error


def _reports(texts: Iterable[str]) -> list[TaskReport]:
    """Reports as tasks wrote them, in the order of the tasks."""
    reports = [TaskReport.from_dict(json.loads(text)) for text in texts]
    return sorted(reports, key=lambda report: report.task_index)
